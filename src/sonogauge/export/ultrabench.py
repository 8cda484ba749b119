"""The output tree of UltraBench from a folder of cases: images, masks of class numbers, two lists of records.

Source: dataset specification, section 1.2. What differs from set to set stands in `ultrabench_sets.yaml`.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.export.content import WITHHELD
from sonogauge.export.done import Done
from sonogauge.export.scan_masks import scan_mask
from sonogauge.export.ultrabench_set import PARTS, UltraBenchSet, filled, parts_of, record_of, ultrabench_sets
from sonogauge.folders import Folder, FolderWriter, Input, Manifest, new_folder, write_bytes
from sonogauge.hashes import canonical_json
from sonogauge.sources.media import strict_pixels

VERSION: Final = "1.0.1"
_JPEG_QUALITY: Final = 95
_FACTS: Final = [
    *("case_id", "media_type", "width", "height", "patient", "view", "frame", "split", "labels", "measurements"),
    *("meta", "demographics", "source", "licence", "redistributable", "private", "sha256", "pixel_hash"),
]


@dataclass(frozen=True, slots=True)
class _Member:
    case_id: str
    facts: dict[str, str]
    part: str
    file: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cases of a set that are written, in its order; the recipe of those that may not be passed on."""

    members: list[_Member]
    withheld: list[dict[str, Any]]
    private: int


def write_ultrabench(cases: Path | str, out: Path | str, *, own_use: bool = False) -> Done:
    """Write the sets of UltraBench that a source belongs to, each as `out/<name>_v<version>/`.

    Private images are never written. Those that may not be passed on are written only for own use; parts are those of
    the whole source either way.

    Raises:
        BadInput: cases of another source, a set that exists already, facts that a set needs and the cases lack.
    """
    folder = Folder.open(cases, "cases")
    source = folder.manifest.name
    sets = {name: one for name, one in ultrabench_sets().items() if one.source == source}
    if not sets:
        known = ", ".join(sorted({one.source for one in ultrabench_sets().values()}))
        raise BadInput(f"'{source}' is no source of UltraBench", file=folder.path, fix=f"it has: {known}")
    targets = {name: Path(out) / f"{name}_v{VERSION}" for name in sets}
    for target in targets.values():
        if os.path.lexists(target):
            raise BadInput("exists already", file=target, fix="choose another --out; a set is never overwritten")
    files: dict[str, int] = {}
    plans = {name: _plan(one, folder, own_use) for name, one in sets.items()}
    if not any(plan.members for plan in plans.values()):
        closed = any(plan.withheld for plan in plans.values())
        fix = "pass --own-use for a tree that stays on this machine" if closed else "private images are never written"
        raise BadInput("none of its images may be passed on", file=folder.path, fix=fix)
    for name, one in sets.items():
        with new_folder(targets[name]) as writer, strict_pixels():
            records = _write(one, folder, plans[name].members, writer)
            if plans[name].withheld:
                lines = "".join(canonical_json(row) + "\n" for row in plans[name].withheld)
                write_bytes(writer.path / WITHHELD, lines.encode("utf-8"))
            for part in PARTS:
                own = [records[member.case_id] for member in plans[name].members if member.part == part]
                write_bytes(writer.path / f"{part}.json", (json.dumps(own, indent=4) + "\n").encode("utf-8"))
                files[f"{targets[name].name}/{part}.json"] = len(own)
            made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            text = f"UltraBench Version: {VERSION}\nCreated: {made}\nMade by: sonogauge {__version__}\n"
            write_bytes(writer.path / "version.txt", text.encode("utf-8"))
            writer.finish(_manifest(name, one, folder, plans[name], own_use))
    return Done(
        format="ultrabench",
        items=sum(files.values()),
        withheld=sum(len(plan.withheld) for plan in plans.values()),
        private=sum(plan.private for plan in plans.values()),
        files=files,
        notices=[*dict.fromkeys(notice for one in sets.values() for notice in _notices(one, own_use))],
    )


def _notices(one: UltraBenchSet, own_use: bool) -> list[str]:
    own = ["for own use: images that may not be passed on may be among these, keep them on this machine"]
    return [*one.notices, *(own if own_use else [])]


def _plan(one: UltraBenchSet, folder: Folder, own_use: bool) -> _Plan:
    """Return what is written of a set and in which part; parts are drawn before anything stays back."""
    found = []
    masks = [*one.masks[one.needs].classes.values()] if one.needs else []
    needed = {category for categories in masks for category in categories}
    for row in folder.rows("cases", [*_FACTS, "masks"]):
        facts = one.facts_of(row)
        if facts is not None:
            has = not needed or any(mask["category"] in needed for mask in row["masks"])
            found.append((filled(one.order or "", facts, row["case_id"]), row["case_id"], facts, row, has))
    found.sort(key=lambda entry: entry[:2])
    if one.once is not None:
        first: dict[str, Any] = {}
        for entry in found:
            first.setdefault(filled(one.once, entry[2], entry[1]), entry)
        found = list(first.values())
    if not found:
        how = f"with --layout {one.layout}" if one.layout else "as a whole"
        raise BadInput(
            "none of its cases belongs to UltraBench", file=folder.path, fix=f"import the source again {how}"
        )
    parts = parts_of(one.split, [entry[2] for entry in found], [entry[1] for entry in found])
    plan = _Plan([], [], sum(bool(entry[3]["private"]) for entry in found if entry[4]))
    names: set[str] = set()
    for (_, case_id, facts, row, has), part in zip(found, parts, strict=True):
        if not has or row["private"]:
            continue
        # Unknown counts as no: only a stated permission lets an image out.
        if row["redistributable"] is not True and not own_use:
            recipe = {key: row[key] for key in ("case_id", "source", "licence", "sha256", "pixel_hash")}
            plan.withheld.append({**recipe, "part": part})
            continue
        file = filled(one.file, facts, case_id)
        if file in names or "/" in file or "\\" in file:
            raise BadInput(f"'{file}' cannot be the name of a file of its own", file=folder.path, field=case_id)
        names.add(file)
        plan.members.append(_Member(case_id, facts, part, file))
    return plan


def _write(
    one: UltraBenchSet, folder: Folder, members: list[_Member], writer: FolderWriter
) -> dict[str, dict[str, Any]]:
    by_id = {member.case_id: member for member in members}
    records = {}
    for row in _rows(folder):
        member = by_id.get(row["case_id"])
        if member is None:
            continue
        image = f"images/{member.file}.{one.image}"
        pixels = _pixels(row, one.colour)
        _save(writer.path / image, _image_bytes(row, pixels, one))
        grey = np.asarray(pixels.mean(axis=-1), dtype=np.uint8) if pixels.ndim == 3 else pixels
        paths: dict[str, str | None] = {"scan": f"masks/scan/{member.file}.{one.scan_ending}"}
        fan = row["fan_mask"]
        scan = decode_mask(fan) if fan is not None else scan_mask(grey, one.scan)
        _save_mask(writer.path / str(paths["scan"]), scan.astype(np.uint8), one.scan_ending)
        for kind, rule in one.masks.items():
            values, found = _classes(row, rule.classes)
            empty = any(member.facts.get(name) == text for name, text in rule.empty.items())
            if not (found or rule.always or empty):
                paths[kind] = None
                continue
            paths[kind] = f"masks/{rule.folder or kind}/{member.file}{rule.suffix}.png"
            _save_mask(writer.path / str(paths[kind]), values, "png")
        records[member.case_id] = record_of(one, member.facts, row, image, paths)
    return records


def _rows(folder: Folder) -> Iterator[dict[str, Any]]:
    for batch in folder.batches("cases", [*_FACTS, "image", "masks", "boxes", "fan_mask"], 64):
        yield from batch.to_pylist()


def _pixels(row: Mapping[str, Any], colour: bool) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(row["image"]["bytes"])) as opened:
        image = opened if opened.mode in ("L", "RGB") else opened.convert("RGB")
        pixels = np.asarray(image.convert("RGB") if colour else image)
    return pixels if colour or pixels.ndim == 2 else np.asarray(pixels.mean(axis=-1), dtype=np.uint8)


def _image_bytes(row: Mapping[str, Any], pixels: NDArray[np.uint8], one: UltraBenchSet) -> bytes:
    """Return the file's own bytes where it is of the wanted kind already, else the pixels in that kind."""
    media = bytes(row["image"]["bytes"])
    wanted = {"png": "image/png", "jpg": "image/jpeg"}[one.image]
    if row["media_type"] == wanted:
        with Image.open(io.BytesIO(media)) as opened:
            if opened.mode == ("RGB" if one.colour else "L"):
                return media
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    if one.image == "jpg":
        image.save(stream, "JPEG", quality=_JPEG_QUALITY)
    else:
        image.save(stream, "PNG")
    return stream.getvalue()


def _classes(row: Mapping[str, Any], classes: Mapping[int, tuple[str, ...]]) -> tuple[NDArray[np.uint8], bool]:
    index = {name.lower(): number for number, names in classes.items() for name in names}
    values = np.zeros((row["height"], row["width"]), dtype=np.uint8)
    found = False
    for mask in row["masks"]:
        number = index.get((mask["category"] or "").lower())
        if number is not None:
            values[decode_mask(mask)] = number
            found = True
    return values, found


def _save_mask(path: Path, values: NDArray[np.uint8], ending: str) -> None:
    stream = io.BytesIO()
    if ending == "jpg":
        # JPEG loses values as near as 0 and 1; readers have to threshold these masks anyway.
        Image.fromarray(values * 255).save(stream, "JPEG", quality=_JPEG_QUALITY)
    else:
        Image.fromarray(values).save(stream, "PNG")
    _save(path, stream.getvalue())


def _save(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _manifest(name: str, one: UltraBenchSet, folder: Folder, plan: _Plan, own_use: bool) -> Manifest:
    parts = Counter(member.part for member in plan.members)
    return Manifest(
        kind="export",
        maker=f"sonogauge {__version__}",
        name=name,
        version=VERSION,
        inputs=[Input(role="cases", path=str(folder.path), hash=folder.manifest.hash)],
        parameters={"format": "ultrabench", "own_use": own_use, "split": one.split.model_dump(mode="json")},
        counts={**{part: parts[part] for part in PARTS}, "withheld": len(plan.withheld), "private": plan.private},
        licences=list(folder.manifest.licences),
        notices=[*_notices(one, own_use), *folder.manifest.notices],
    )
