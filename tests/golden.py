"""A dozen rows written by hand: one item per answer form, and every odd thing the tables must hold.

Two images in one item, a frame of a video, a failed reply, a run with three variants, a reference that cannot be given,
a published row. Later answer forms add values to these columns, never columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, dump_spec
from sonogauge.folders import Folder, Input, Manifest, new_folder, sort_rows
from sonogauge.tables import FACTS, SCHEMAS, to_facts

# A grey PNG of one pixel.
PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a4944415478da636800000082008177cd72b60000000049454e44ae426082"
)
MODEL: Final = "vendor/golden-model"
VARIANTS: Final = ("", "no-image", "reworded")
# A square of 2 x 2 pixels in the middle.
MASK: Final = {"mask_id": "m1", "category": "lesion", "size": [4, 4], "counts": "52203"}
BOX: Final = {"category": "lesion", "x": 10.0, "y": 20.0, "w": 30.5, "h": 40.0}
PLACES: Final = [
    *("upper left", "upper center", "upper right", "middle left", "center", "middle right"),
    *("lower left", "lower center", "lower right", "not visible"),
]


def complete(row: Mapping[str, Any], kind: pa.Schema | pa.StructType) -> dict[str, Any]:
    """Return a row with every column of its schema, structs filled up with nulls: as it is read back."""
    return {field.name: _complete(row.get(field.name), field.type) for field in kind}


def _complete(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return complete(value, kind)
    if kind == FACTS:
        return to_facts(value) if isinstance(value, Mapping) else value
    if pa.types.is_list(kind):
        return [_complete(one, kind.value_type) for one in value]
    return value


def _case(case_id: str, **more: Any) -> dict[str, Any]:
    return complete(
        {
            "case_id": case_id,
            "image": {"bytes": PNG, "path": f"{case_id}.png"},
            "media_type": "image/png",
            "width": 1,
            "height": 1,
            "frames": 1,
            "group": "golden:patient-1",
            "source": "golden",
            "licence": "Apache-2.0",
            "redistributable": True,
            "private": False,
            "provenance": "simulated",
            "reference_standard": "algorithm",
            **more,
        },
        SCHEMAS["cases"],
    )


def _item(form: str, reference: Mapping[str, Any] | None, answer: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return complete(
        {
            "item_id": f"golden/{form}",
            "task": form.upper(),
            "dataset": "01",
            "source": "golden",
            "group": "golden:patient-1",
            "split": "test",
            "images": [{"case_id": "still-a", "role": "image", "frame": None}],
            "question": f"A question of the form {form}?",
            "prompt_id": f"golden/{form}@1",
            "variables": {"anatomy": "thyroid"},
            "answer": {"form": form, "options": [], "letters": [], "low": None, "unit": "", **answer},
            "reference": reference or {},
            "reference_state": "ok",
            "anatomy": "thyroid",
            "determinable": "yes",
            "meta": {"row": "1"},
            **more,
        },
        SCHEMAS["items"],
    )


def _reply(item_id: str, text: str | None, variant: str = "", status: str = "ok", **more: Any) -> dict[str, Any]:
    return complete(
        {
            "item_id": item_id,
            "variant": variant,
            "epoch": 0,
            "rater_id": "",
            "status": status,
            "text": text,
            "finish_reason": "stop" if status == "ok" else None,
            "attempts": 1,
            "input_tokens": 300,
            "output_tokens": 7,
            "cost": 0.0001,
            "latency": 0.25,
            "images_sent": [{"width": 1, "height": 1, "bytes": len(PNG), "hash": "ab" * 32, "policy": "original"}],
            **more,
        },
        SCHEMAS["replies"],
    )


CASES: Final = [
    _case("still-a", labels=[{"name": "diagnosis", "value": "benign"}], masks=[MASK], boxes=[BOX]),
    _case("still-b", measurements=[{"name": "diameter", "value": 12.5, "unit": "mm"}], demographics={"age": "61"}),
    _case("video", media_type="video/mp4", frames=30, group="golden:video-1", known_issues=["cropped"]),
]

_SENTENCE: Final = {"text": "A round lesion.", "mask_ids": ["m1"]}

ITEMS: Final = [
    _item(
        "choice",
        {"choices": ["benign"]},
        {"options": ["benign", "malignant"], "letters": ["A", "B"]},
        chance=0.5,
        images=[
            {"case_id": "still-a", "role": "image", "frame": None},
            {"case_id": "still-b", "role": "comparison", "frame": None},
        ],
    ),
    _item(
        "choice",
        {"choices": ["malignant"]},
        {"options": ["benign", "malignant"], "letters": ["A", "B"]},
        item_id="golden/choice-failed",
        chance=0.5,
        group="golden:patient-2",
    ),
    _item("multi_choice", {"choices": ["shadow", "cyst"]}, {"options": ["cyst", "shadow", "halo"]}),
    _item("ranking", {"ranking": ["b", "a", "c"]}, {"options": ["a", "b", "c"]}),
    _item(
        "place",
        {"places": ["center", "lower left"]},
        {"options": PLACES},
        images=[{"case_id": "video", "role": "image", "frame": 12}],
        group="golden:video-1",
    ),
    _item("box", {"boxes": [BOX]}, {}, meta={"width": "100", "height": "80"}),
    _item("point", {"boxes": [BOX]}, {}, meta={"width": "100", "height": "80"}),
    _item("number", {"number": 12.5}, {"low": 0.0, "high": 100.0, "unit": "mm", "tolerance": 0.1}),
    _item(
        "number",
        None,
        {"options": ["null"], "low": 0.0, "high": 100.0, "unit": "mm"},
        item_id="golden/number-null",
        reference_state="null",
    ),
    _item("text", {"texts": ["The gland is normal in size ."]}, {}),
    _item("mask", {"masks": [MASK]}, {}),
    _item("grounded", {"texts": ["benign"], "masks": [MASK]}, {}, meta={"answer_type": "classification"}),
    _item(
        "grounded_report",
        {"sentences": [_SENTENCE], "masks": [MASK]},
        {},
        meta={"finding_types": '["organ_presence"]'},
    ),
]

REPLIES: Final = [
    _reply("golden/choice", "A", option_probabilities=[{"option": "benign", "probability": 0.75}]),
    _reply("golden/choice", "malignant", "reworded"),
    _reply("golden/choice", "I cannot tell without an image.", "no-image"),
    _reply("golden/choice-failed", None, status="error", error="504 after 3 attempts", attempts=3),
    _reply("golden/multi_choice", "cyst, shadow"),
    _reply("golden/ranking", "b > a > c"),
    _reply("golden/place", "lower left", trace='{"steps":[]}'),
    _reply("golden/box", "[100, 250, 405, 750]"),
    _reply("golden/point", "(200, 500)"),
    _reply("golden/number", "22.5 mm"),
    _reply("golden/number-null", "null"),
    _reply("golden/text", "The gland is normal in size ."),
    _reply("golden/mask", '{"answer": "[SEG]", "predicted_mask": {"size": [4, 4], "counts": "52203"}}'),
    _reply("golden/grounded", '{"answer": "benign", "predicted_mask": null}'),
    _reply("golden/grounded_report", "A round lesion.", status="truncated", finish_reason="length"),
]

# A row of a published table: no interval, no coverage, its source and its doubt.
PUBLISHED: Final = complete(
    {
        "model": "Known-1",
        "model_group": "closed",
        "protocol": "published",
        "variant": "",
        "scenario_set": "all",
        "task": "CHOICE",
        "dataset": "",
        "slice": "",
        "metric": "accuracy",
        "value": 0.4821,
        "direction": "up",
        "origin": "published",
        "source": "a paper, table 2",
        "doubt": "averages other data sets",
    },
    SCHEMAS["metrics"],
)

METRICS_OF: Final = {
    "choice": ["accuracy", "macro_f1"],
    "multi_choice": ["accuracy"],
    "ranking": ["mrr"],
    "place": ["accuracy"],
    "box": ["box_iou"],
    "point": ["pointing"],
    "number": ["rmse_scaled", "mae_scaled"],
    "text": ["bleu4", "rouge_l"],
    "mask": ["dice"],
    "grounded": ["g_acc"],
    "grounded_report": ["sem_acc"],
}

SPEC: Final = BenchmarkSpec.model_validate(
    {
        "name": "golden",
        "version": "1",
        "title": "Golden rows",
        "licence": "Apache-2.0",
        "simulated": True,
        "tasks": {form.upper(): {"title": form, "form": form, "metrics": names} for form, names in METRICS_OF.items()},
        "scenarios": [
            {
                "task": form.upper(),
                "dataset": "01",
                "source": "golden",
                **({"low": 0.0, "high": 100.0, "unit": "mm", "null_allowed": True} if form == "number" else {}),
                **({"options": ["benign", "malignant"]} if form == "choice" else {}),
            }
            for form in METRICS_OF
        ],
        "sets": {"all": {"title": "all forms"}},
        "weights": {"equal": {"CHOICE": 0.5, "BOX": 0.5}},
        "composites": {"golden_score": {"title": "total", "weights": "equal", "formula": "mean of CHOICE and BOX"}},
        "no_published": "written for the tests",
    }
)


def _write(out: Path, tables: Mapping[str, Iterable[dict[str, Any]]], manifest: Manifest, spec: bool = False) -> Folder:
    with new_folder(out) as folder:
        for name, rows in tables.items():
            folder.table(name).write(sort_rows(rows, name))
        if spec:
            (folder.path / SPEC_FILE).write_text(dump_spec(SPEC), "utf-8")
        folder.finish(manifest)
    return Folder(out)


def write_benchmark(out: Path) -> Folder:
    """Write the golden cases and items as a benchmark folder."""
    manifest = Manifest(kind="benchmark", maker="golden", name=SPEC.name, version=SPEC.version, licences=["Apache-2.0"])
    return _write(out, {"cases": CASES, "items": ITEMS}, manifest, spec=True)


def write_run(out: Path, benchmark: Folder) -> Folder:
    """Write the golden replies as a run on that benchmark."""
    manifest = Manifest(
        kind="run",
        maker="golden",
        name=MODEL,
        inputs=[Input(role="benchmark", path=str(benchmark.path), hash=benchmark.manifest.hash)],
        parameters={"model": MODEL},
    )
    return _write(out, {"replies": REPLIES}, manifest)
