"""Replies from anywhere, joined to the items of a benchmark by id.

A join is by item id, never by row order. Ids that the benchmark does not know, doubled keys and replies to another
benchmark are faults of structure; an item that was asked and has no reply is a failure with the reason `missing`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from sonogauge._errors import BadInput
from sonogauge.answers.variants import exists
from sonogauge.folders import MANIFEST, Folder, Manifest
from sonogauge.items import Item
from sonogauge.tables import REPLY_KEY, REPLY_STATUSES

TEXT_COLUMNS = ("text", "reply", "response", "prediction")
_MOST_EPOCHS = 2**31
_MOST_WEIGHT = 1e100  # of an option: they need not add up to 1, but their sum must be a number
_SHORT = 40
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


class Reply(NamedTuple):
    """What scoring needs of a reply; `status` is "missing" for an item without one."""

    item_id: str
    variant: str
    epoch: int
    rater_id: str
    status: str
    text: str | None
    size: tuple[int, int] | None = None  # (width, height) of the first image as sent
    probabilities: tuple[tuple[str, float], ...] | None = None  # of the options, where the reply carries them


@dataclass(frozen=True)
class ReplySource:
    """Replies to one benchmark and what is known of how they came about.

    asked: ids that were asked; None = all items of `split`. identity: the parameters of the run.
    file: where rows are counted for messages.
    """

    model: str
    replies: Sequence[Reply]
    content_hash: str
    path: Path
    asked: frozenset[str] | None = None
    split: str = "test"
    identity: Mapping[str, Any] | None = None
    file: Path | None = None


def read_jsonl(
    path: Path, model: str | None = None, image_hashes: Callable[[], Mapping[str, str]] | None = None
) -> ReplySource:
    """Read replies made elsewhere: one JSON object a line with `item_id` and `text`.

    Optional fields: `status` (ok, truncated, error), `variant`, `epoch`, `rater_id`, `model`, `image_sha256` and
    `image_size` ([width, height] as sent, for boxes and points in pixels), `option_probabilities` ({option: number}).
    `reply`, `response` and `prediction` are read as `text`, `id` as `item_id`; half a character in a text (a lone
    surrogate) becomes the replacement character.

    image_hashes: gives item id to SHA-256 of its first image, asked only if a reply names its image; one that names
    another is an error.

    Raises:
        BadInput: a line that is not a JSON object, a missing or wrong field, several models.
    """
    import hashlib

    if not path.is_file():
        raise BadInput("no such file", file=path)
    digest = hashlib.sha256()
    replies: list[Reply] = []
    models: set[str] = set()
    hashes: Mapping[str, str] | None = None
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            digest.update(line)
            if line.strip():
                row = _whole_characters(_json_object(line, path, number), path, number)
                replies.append(_reply(row, path, number))
                if "model" in row:
                    models.add(str(row["model"]))
                if row.get("image_sha256") and image_hashes is not None:
                    hashes = image_hashes() if hashes is None else hashes
                    _check_image(row["image_sha256"], replies[-1].item_id, hashes, path, number)
    if not replies:
        raise BadInput("no replies in it", file=path)
    if len(models) > 1:
        raise BadInput(f"replies of {len(models)} models", file=path, field="model", fix="write one file per model")
    name = model or (models.pop() if models else path.stem)
    return ReplySource(name, replies, digest.hexdigest(), path, file=path)


def _json_object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON ({error})", file=path, row=number, fix="write one JSON object a line") from error
    if not isinstance(row, dict):
        raise BadInput("not a JSON object", file=path, row=number, fix='write {"item_id": …, "text": …}')
    return row


def _whole_characters(row: dict[str, Any], path: Path, number: int) -> dict[str, Any]:
    # JSON can write half a character, which no table holds: a model may say it, a name may not.
    for name, value in row.items():
        if not isinstance(value, str) or value.isascii():
            continue
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            if name not in TEXT_COLUMNS:
                raise BadInput("half a character", file=path, row=number, field=name, fix="write UTF-8") from error
            row[name] = _HALF_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", value)
    return row


def _reply(row: Mapping[str, Any], path: Path, number: int) -> Reply:
    item_id = row.get("item_id", row.get("id"))
    if not isinstance(item_id, str) or not item_id:
        raise BadInput("no item id", file=path, row=number, field="item_id", fix="use the ids of the benchmark's items")
    status = row.get("status", "ok")
    if status not in REPLY_STATUSES:
        raise BadInput(
            f"unknown status {status!r}", file=path, row=number, field="status", fix="use " + ", ".join(REPLY_STATUSES)
        )
    column = next((name for name in TEXT_COLUMNS if name in row), None)
    if column is None and status == "ok":
        raise BadInput("no reply text", file=path, row=number, field="text", fix="an empty reply is an empty string")
    text = row.get(column) if column else None
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = json.dumps(text)
    if text is not None and not isinstance(text, str):
        raise BadInput(f"not a text but {type(text).__name__}", file=path, row=number, field=column)
    if text is None and status == "ok":
        raise BadInput("null text", file=path, row=number, field=column, fix='say "status": "error" if it failed')
    epoch = row.get("epoch", 0)
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < _MOST_EPOCHS:
        raise BadInput(f"not a count: {epoch!r}", file=path, row=number, field="epoch")
    size = row.get("image_size")
    if size is not None and not (isinstance(size, list) and len(size) == 2 and all(_is_count(one) for one in size)):
        raise BadInput("not [width, height]", file=path, row=number, field="image_size")
    return Reply(
        item_id,
        _key(row, "variant", path, number),
        epoch,
        _key(row, "rater_id", path, number),
        _once(status),
        None if text is None else _once(text),
        (size[0], size[1]) if size else None,
        _probabilities(row.get("option_probabilities"), path, number),
    )


def _key(row: Mapping[str, Any], field: str, path: Path, number: int) -> str:
    value = row.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"not a name but {type(value).__name__}", file=path, row=number, field=field)
    return _once(str(value))  # rater 0 is a rater too, and not the model


def _probabilities(value: Any, path: Path, number: int) -> tuple[tuple[str, float], ...] | None:
    if value is None:
        return None
    pairs = value.items() if isinstance(value, dict) else ()
    if not pairs or not all(isinstance(one, int | float) and 0 <= one <= _MOST_WEIGHT for _, one in pairs):
        raise BadInput(
            "not {option: probability}", file=path, row=number, field="option_probabilities", fix="numbers from 0 to 1"
        )
    return tuple((str(name), float(one)) for name, one in pairs)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _check_image(said: Any, item_id: str, hashes: Mapping[str, str], path: Path, number: int) -> None:
    if item_id in hashes and hashes[item_id] != said:
        raise BadInput(
            f"reply to another image than item {item_id}",
            file=path,
            row=number,
            field="image_sha256",
            fix="ask the model about the images of this benchmark",
        )


def _once(text: str) -> str:
    """Return an equal string, a short one the same object each time: replies are few words, said over and over."""
    return intern(text) if len(text) <= _SHORT else text


def read_run(path: Path) -> ReplySource:
    """Read the replies of a run folder.

    Raises:
        BadInput: not a run, or a run that has not written its replies table.
    """
    folder = Folder(path, "run")
    manifest = folder.manifest
    replies = [_stored(row) for row in folder.rows("replies", _REPLY_COLUMNS)]
    asked = manifest.counts.get("asked") or {}
    table = manifest.tables.get("replies")
    if not isinstance(asked, Mapping) or table is None:
        broken = "asked" if table else "tables"
        raise BadInput("broken manifest", file=folder.path / MANIFEST, field=broken, fix="make the run again")
    part = asked.get("limit") is not None or asked.get("tasks") is not None
    return ReplySource(
        model=manifest.name,
        replies=replies,
        content_hash=table.hash,
        path=folder.path,
        # A run that was limited holds a reply, good or bad, to each item it asked.
        asked=frozenset(reply.item_id for reply in replies) if part else None,
        split=str(asked.get("split") or "test"),
        identity=manifest.parameters,
        file=folder.file("replies"),
    )


_REPLY_COLUMNS = [*REPLY_KEY, "status", "text", "images_sent", "option_probabilities"]


def _stored(row: Mapping[str, Any]) -> Reply:
    sent = (row["images_sent"] or [None])[0]
    size = (sent["width"], sent["height"]) if sent and sent["width"] and sent["height"] else None
    stored = tuple((one["option"], one["probability"]) for one in row["option_probabilities"] or ())
    return Reply(
        row["item_id"],
        _once(row["variant"]),
        row["epoch"],
        _once(row["rater_id"]),
        _once(row["status"]),
        None if row["text"] is None else _once(row["text"]),
        size,
        stored or None,
    )


def check_ids(source: ReplySource, items: Mapping[str, Item], bench: Path) -> None:
    """Refuse unknown ids and doubled keys.

    Raises:
        BadInput: naming the first offender, its row and what to do.
    """
    file = source.file or source.path
    if not source.replies:
        raise BadInput("no replies in it", file=file, fix="a model that has no answer to these tasks leaves none")
    known = sum(reply.item_id in items for reply in source.replies)
    if not known:
        raise BadInput(
            f"none of its {len(source.replies)} item ids is in the benchmark",
            file=file,
            field="item_id",
            fix=f"these are replies to another benchmark than {bench}",
        )
    seen: set[tuple[str, str, int, str]] = set()
    for number, reply in enumerate(source.replies, start=1):
        if reply.item_id not in items:
            raise BadInput(
                f"no item '{reply.item_id}' in {bench}",
                file=file,
                row=number,
                field="item_id",
                fix="remove the row or name the right benchmark",
            )
        if reply[:4] in seen:
            raise BadInput(
                f"a second reply to '{reply.item_id}'",
                file=file,
                row=number,
                field="item_id",
                fix="keep one reply for each item, variant, epoch and rater",
            )
        seen.add(reply[:4])


def join(source: ReplySource, items: Sequence[Item]) -> Iterator[tuple[Item, Reply]]:
    """Yield each item with each of its replies, sorted as `Reply` is: by item id, variant, epoch and rater.

    Where a reply was due there is one of the status `missing`. A reply is due for every asked item in the unvaried run,
    and in a variant for every asked item that can be asked so, of the (task, dataset) pairs that the variant has
    replies to, once per epoch. Human raters answer what they like. Replies to other items are passed over.
    """
    replies = sorted(source.replies)
    ordered = sorted(items, key=lambda item: item.item_id)
    due: dict[str, tuple[set[tuple[str, str]], set[int]]] = {}
    for reply in replies:
        if not reply.rater_id and not reply.variant:
            due.setdefault("", (set(), set()))[1].add(reply.epoch)
    for item, own in _matched(ordered, replies):
        for reply in own:
            if not reply.rater_id and reply.variant:
                pairs, epochs = due.setdefault(reply.variant, (set(), set()))
                pairs.add((item.task, item.dataset))
                epochs.add(reply.epoch)
    for item, own in _matched(ordered, replies):
        if source.asked is None or item.item_id in source.asked:
            have = {(reply.variant, reply.epoch) for reply in own if not reply.rater_id}
            missing = [
                Reply(item.item_id, variant, epoch, "", "missing", None)
                for variant, (pairs, epochs) in due.items()
                if not variant or ((item.task, item.dataset) in pairs and exists(item.answer, variant))
                for epoch in epochs
                if (variant, epoch) not in have
            ]
            own = sorted(own + missing) if missing else own
        yield from ((item, reply) for reply in own)


def _matched(items: Sequence[Item], replies: Sequence[Reply]) -> Iterator[tuple[Item, list[Reply]]]:
    """Yield each item with its replies, both sorted by item id; no table of ids is held."""
    at, last = 0, len(replies)
    for item in items:
        while at < last and replies[at].item_id < item.item_id:
            at += 1
        start = at
        while at < last and replies[at].item_id == item.item_id:
            at += 1
        yield item, list(replies[start:at])


def annotator_notices(source: ReplySource, bench: Manifest) -> list[str]:
    """Return notices where somebody who made the references answers too, or where raters are counted with a model."""
    raters = {reply.rater_id for reply in source.replies}
    notices = []
    if "" in raters and len(raters) > 1:
        notices.append(
            f"Replies of {len(raters) - 1} raters and of the model are counted together: keep a file for each and "
            "score them apart."
        )
    made = frozenset((bench.counts.get("annotators") or {}).get("names") or ())
    if both := sorted(made & raters - {""}):
        notices.append(
            f"FLAGGED: {', '.join(both)} annotated this benchmark and answer it; their scores are no yardstick."
        )
    return notices
