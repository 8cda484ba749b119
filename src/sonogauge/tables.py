"""The tables: one declared, versioned schema for each noun of the toolkit.

A folder holds Parquet files named after their table and a `manifest.json` (see `folders`). Columns are added, never
renamed or reused; a reader refuses a table written by a newer version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

TABLE_VERSION: Final = 1

STRING: Final = pa.string()
STRINGS: Final = pa.list_(pa.string())

BOX: Final = pa.struct(
    [("category", STRING), ("x", pa.float64()), ("y", pa.float64()), ("w", pa.float64()), ("h", pa.float64())]
)
POINT: Final = pa.struct([("name", STRING), ("x", pa.float64()), ("y", pa.float64())])
# COCO compressed run-length code; `size` is [height, width].
MASK: Final = pa.struct([("mask_id", STRING), ("category", STRING), ("size", pa.list_(pa.int32())), ("counts", STRING)])
SENTENCE: Final = pa.struct([("text", STRING), ("mask_ids", STRINGS)])
LABEL: Final = pa.struct([("name", STRING), ("value", STRING)])
# Free facts, sorted by name. Not an Arrow map: Hugging Face `datasets` has no such type and could not load the file.
FACTS: Final = pa.list_(LABEL)
MEASUREMENT: Final = pa.struct([("name", STRING), ("value", pa.float64()), ("unit", STRING)])
TEXT: Final = pa.struct([("kind", STRING), ("text", STRING), ("language", STRING)])

# What an answer can hold; references and predictions share it, so that any form can be stored and compared.
VALUE: Final = pa.struct(
    [
        ("choices", STRINGS),
        ("places", STRINGS),
        ("number", pa.float64()),
        ("texts", STRINGS),
        ("boxes", pa.list_(BOX)),
        ("points", pa.list_(POINT)),
        ("masks", pa.list_(MASK)),
        ("sentences", pa.list_(SENTENCE)),
        ("ranking", STRINGS),
    ]
)
ANSWER: Final = pa.struct(
    [
        ("form", STRING),
        ("options", STRINGS),
        ("letters", STRINGS),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("unit", STRING),
        ("tolerance", pa.float64()),
    ]
)
ITEM_IMAGE: Final = pa.struct([("case_id", STRING), ("role", STRING), ("frame", pa.int32())])
SENT_IMAGE: Final = pa.struct(
    [("width", pa.int32()), ("height", pa.int32()), ("bytes", pa.int64()), ("hash", STRING), ("policy", STRING)]
)

REFERENCE_STATES: Final = ("ok", "absent", "null", "error")
REPLY_STATUSES: Final = ("ok", "truncated", "error")
REASONS: Final = (
    "empty",
    "refusal_insufficient",
    "refusal_policy",
    "none",
    "ambiguous",
    "negated",
    "error",
    "truncated",
    "missing",
    "unit",
    "range",
    "format",
    "size",
)
ORIGINS: Final = ("computed", "published", "baseline")
PROVENANCES: Final = ("clinical", "volunteer", "phantom", "simulated", "unknown")
REFERENCE_STANDARDS: Final = ("histology", "follow-up", "reader", "score system", "algorithm", "unknown")
DETERMINABLE: Final = ("yes", "partly", "no")


def _schema(name: str, key: tuple[str, ...], fields: list[tuple[str, pa.DataType]]) -> pa.Schema:
    required = set(key)
    return pa.schema(
        [pa.field(column, kind, nullable=column not in required) for column, kind in fields],
        metadata={"sonogauge.table": name, "sonogauge.version": str(TABLE_VERSION), "sonogauge.key": ",".join(key)},
    )


def _with_image_feature(schema: pa.Schema) -> pa.Schema:
    # Hugging Face `datasets` reads this key and shows the column as images.
    features = {"info": {"features": {"image": {"_type": "Image"}}}}
    return schema.with_metadata({**schema.metadata, b"huggingface": json.dumps(features).encode()})


CASES: Final = _with_image_feature(
    _schema(
        "cases",
        ("case_id",),
        [
            ("case_id", STRING),
            ("image", pa.struct([("bytes", pa.binary()), ("path", STRING)])),
            ("media_type", STRING),
            ("sha256", STRING),  # of the media bytes
            ("pixel_hash", STRING),  # of the decoded pixels
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("frames", pa.int32()),
            ("spacing", pa.struct([("x", pa.float64()), ("y", pa.float64())])),  # mm per pixel
            ("fan_mask", MASK),
            ("patient", STRING),
            ("group", STRING),
            ("source", STRING),
            ("licence", STRING),
            ("redistributable", pa.bool_()),
            ("private", pa.bool_()),
            ("provenance", STRING),
            ("reference_standard", STRING),
            ("device", STRING),
            ("view", STRING),
            ("anatomy", STRING),
            ("demographics", FACTS),
            ("labels", pa.list_(LABEL)),
            ("masks", pa.list_(MASK)),
            ("boxes", pa.list_(BOX)),
            ("points", pa.list_(POINT)),
            ("measurements", pa.list_(MEASUREMENT)),
            ("texts", pa.list_(TEXT)),
            ("known_issues", STRINGS),
            ("split", STRING),  # the source's own
            ("frame", pa.int32()),  # number in its video or stack, from 0
            ("meta", FACTS),
        ],
    )
)

ITEMS: Final = _schema(
    "items",
    ("item_id",),
    [
        ("item_id", STRING),
        ("task", STRING),
        ("dataset", STRING),
        ("source", STRING),  # the stratum of resampling
        ("group", STRING),  # the unit of resampling
        ("split", STRING),
        ("images", pa.list_(ITEM_IMAGE)),
        ("question", STRING),
        ("prompt_id", STRING),
        ("variables", FACTS),
        ("answer", ANSWER),
        ("reference", VALUE),
        ("reference_state", STRING),
        ("chance", pa.float64()),
        ("anatomy", STRING),
        ("determinable", STRING),
        ("meta", FACTS),
    ],
)

REPLY_KEY: Final = ("item_id", "variant", "epoch", "rater_id")
_REPLY_KEY_FIELDS: Final = [("item_id", STRING), ("variant", STRING), ("epoch", pa.int32()), ("rater_id", STRING)]

REPLIES: Final = _schema(
    "replies",
    REPLY_KEY,
    [
        *_REPLY_KEY_FIELDS,
        ("status", STRING),
        ("text", STRING),
        ("error", STRING),
        ("finish_reason", STRING),
        ("attempts", pa.int32()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cost", pa.float64()),
        ("latency", pa.float64()),  # seconds
        ("option_probabilities", pa.list_(pa.struct([("option", STRING), ("probability", pa.float64())]))),
        ("trace", STRING),  # JSON
        ("level", STRING),
        ("images_sent", pa.list_(SENT_IMAGE)),
    ],
)

SCORE_ITEMS: Final = _schema(
    "score_items",
    ("protocol", *REPLY_KEY),
    [
        ("protocol", STRING),
        *_REPLY_KEY_FIELDS,
        ("model", STRING),
        ("task", STRING),
        ("dataset", STRING),
        ("source", STRING),
        ("group", STRING),
        ("status", STRING),
        ("prediction", VALUE),
        ("reason", STRING),
        ("excluded", STRING),  # why the item counts nowhere; null = it counts
        ("values", pa.map_(pa.string(), pa.float64())),
    ],
)

METRICS: Final = _schema(
    "metrics",
    ("model", "protocol", "variant", "scenario_set", "task", "dataset", "slice", "metric"),
    [
        ("model", STRING),
        ("model_group", STRING),
        ("protocol", STRING),
        ("variant", STRING),
        ("scenario_set", STRING),
        ("task", STRING),  # empty for a composite
        ("dataset", STRING),  # empty for a task value
        ("slice", STRING),  # empty for all items, else "column=value"
        ("metric", STRING),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("n", pa.int64()),
        ("valid", pa.int64()),
        ("excluded", pa.int64()),
        ("groups", pa.int64()),
        ("reliable", pa.bool_()),  # false below 20 groups
        ("signature", STRING),
        ("direction", STRING),
        ("chance", pa.float64()),
        ("origin", STRING),
        ("datasets", STRINGS),
        ("why_null", STRING),
        ("source", STRING),
        ("doubt", STRING),
    ],
)

VERDICTS: Final = _schema(
    "verdicts",
    (*REPLY_KEY, "judge", "leniency"),
    [
        *_REPLY_KEY_FIELDS,
        ("judge", STRING),
        ("status", STRING),  # ok, rule, no_answer, judge_failed
        ("verdict", pa.float64()),
        ("rationale", STRING),
        ("text", STRING),
        ("prompt_hash", STRING),
        ("leniency", STRING),
        ("cost", pa.float64()),
    ],
)

VOTES: Final = _schema(
    "votes",
    ("item_id", "reviewer", "role", "question"),
    [
        ("item_id", STRING),
        ("reviewer", STRING),
        ("role", STRING),
        ("question", STRING),
        ("vote", STRING),
        ("cause", STRING),
        ("comment", STRING),
        ("signed_off", pa.bool_()),
    ],
)

SCHEMAS: Final[dict[str, pa.Schema]] = {
    "cases": CASES,
    "items": ITEMS,
    "replies": REPLIES,
    "score_items": SCORE_ITEMS,
    "metrics": METRICS,
    "verdicts": VERDICTS,
    "votes": VOTES,
}
# Columns added since the first tables were written: a table without them reads as one where they are null.
ADDED: Final[dict[str, frozenset[str]]] = {"cases": frozenset({"split", "frame", "meta"})}


def key_of(name: str) -> tuple[str, ...]:
    """Return the key columns of a table, in the order in which its rows are sorted."""
    return tuple(SCHEMAS[name].metadata[b"sonogauge.key"].decode().split(","))


def to_facts(facts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the value of a FACTS column.

    >>> to_facts({"sex": "f", "age": "31"})
    [{'name': 'age', 'value': '31'}, {'name': 'sex', 'value': 'f'}]
    """
    return [{"name": name, "value": value} for name, value in sorted(facts.items())]


def from_facts(rows: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Return a FACTS value as a dict; null gives an empty one.

    >>> from_facts(to_facts({"sex": "f"}))
    {'sex': 'f'}
    """
    return {row["name"]: row["value"] for row in rows or ()}
