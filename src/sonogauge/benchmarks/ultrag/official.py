"""The official layout, read and written: a JSONL per category, images and COCO files in `<name>_coco/{train,test}/`."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.records import ImageRecord
from sonogauge.benchmarks.ultrag.vocabulary import Category, category_of_source
from sonogauge.cases.geometry import encode_mask
from sonogauge.folders import Folder, Manifest, write_bytes

COCO_FILE: Final = "_annotations.coco.json"
MAX_DROPPED: Final = 0.05
_MOST_PIXELS: Final = 2**26


def is_official(data: Path) -> bool:
    """Whether a folder holds the official layout."""
    return (
        data.is_dir()
        and next(data.rglob(COCO_FILE), None) is not None
        and next(data.rglob("*.jsonl"), None) is not None
    )


class RecordFault(ValueError):
    """A record that cannot be used; the message says why."""


def read_official(
    data: Path, counts: dict[str, Any], *, keep_negatives: bool = True, max_dropped: float = MAX_DROPPED
) -> Iterator[tuple[ImageRecord, dict[str, Any]]]:
    """Yield a record with the row of its case for every line of every JSONL file, in the order of the files.

    Lines that cannot be used are counted by cause.

    Raises:
        BadInput: more than `max_dropped` of all lines cannot be used, or a COCO file does not read.
    """
    folders = {(path.parent.parent.name, path.parent.name): path.parent for path in sorted(data.rglob(COCO_FILE))}
    coco: dict[tuple[str, str], _Coco] = {}
    lines = dropped = 0
    why: dict[str, int] = {}
    for file in sorted(data.rglob("*.jsonl")):
        with file.open("rb") as stream:
            for line in stream:
                if not line.strip():
                    continue
                lines += 1
                try:
                    pair = _read_line(line, folders, coco)
                except RecordFault as fault:
                    dropped += 1
                    why[str(fault)] = why.get(str(fault), 0) + 1
                    continue
                if pair[0].record["masks"] or keep_negatives:
                    yield pair
                else:
                    counts["images without a target, not kept"] = counts.get("images without a target, not kept", 0) + 1
    counts["lines read"] = lines
    counts |= {f"dropped: {cause}": number for cause, number in sorted(why.items())}
    if dropped > max_dropped * lines:
        causes = ", ".join(f"{cause} ({number})" for cause, number in sorted(why.items()))
        raise BadInput(f"{dropped} of {lines} records cannot be used: {causes}", file=data)


class _Coco:
    """One COCO file: its images and annotations by id."""

    def __init__(self, folder: Path) -> None:
        file = folder / COCO_FILE
        try:
            content = json.loads(file.read_bytes())
            self.images = {one["id"]: one for one in content["images"]}
            self.annotations = {one["id"]: one for one in content.get("annotations", ())}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadInput(f"not a COCO file ({error})", file=file) from error


def _read_line(
    line: bytes, folders: Mapping[tuple[str, str], Path], coco: dict[tuple[str, str], _Coco]
) -> tuple[ImageRecord, dict[str, Any]]:
    try:
        record = json.loads(line)
        key = (str(record["dataset"]), str(record["split"]))
        name = str(record["image"]["file_name"])
        size = (int(record["image"]["width"]), int(record["image"]["height"]))
        masks = {str(one["mask_id"]): one for one in record["masks"]}
        sample = record["sample_id"]
        if not isinstance(sample, str) or not all(isinstance(one["annotation_id"], int) for one in masks.values()):
            raise TypeError("sample_id or annotation_id")
        _check_annotation(record["annotation"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RecordFault("not a whole record") from error
    if key not in folders:
        raise RecordFault("no folder for its source and split")
    if Path(name).name != name:
        raise RecordFault("image name with a folder in it")
    found = category_of_source(key[0].removesuffix("_coco"))
    if found is None:
        raise RecordFault("source that no category knows")
    category, source = found
    if key not in coco:
        coco[key] = _Coco(folders[key])
    rows = {name: row for name, one in masks.items() if (row := _mask_row(name, one, coco[key], size)) is not None}
    case = _case(folders[key] / name, source, key[1], category, size, list(rows.values()))
    one = ImageRecord(
        case_id=case["case_id"],
        group=case["group"],
        category=category,
        source=source,
        split=key[1],
        size=size,
        record=record,
        masks=rows,
        origin=str(record.get("reference_origin") or "official"),
    )
    return one, case


def _check_annotation(annotation: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError where a field is missing or of another kind than it must be."""
    report = annotation["grounded_report"]
    for rows, texts, ids in (
        (annotation["segmentation_tasks"], ("instruction", "answer", "answerability"), "target_mask_ids"),
        (annotation["grounded_vqa"], ("question", "answer", "answer_type"), "evidence_mask_ids"),
        (report["sentences"], ("section", "text", "finding_type"), "evidence_mask_ids"),
    ):
        if not isinstance(rows, list):
            raise TypeError(ids)
        for one in rows:
            if not all(isinstance(one[name], str) for name in texts):
                raise TypeError(str(texts))
            if not isinstance(one[ids], list) or not all(isinstance(name, str) for name in one[ids]):
                raise TypeError(ids)
    if not all(isinstance(one["requires_grounding"], bool) for one in annotation["grounded_vqa"]):
        raise TypeError("requires_grounding")
    if not isinstance(report["prompt"], str) or not report["sentences"]:
        raise KeyError("prompt")


def _mask_row(mask_id: str, fact: Mapping[str, Any], coco: _Coco, size: tuple[int, int]) -> dict[str, Any] | None:
    """Return the pixels of a mask fact; None where the COCO file has none, which a citation then stumbles over."""
    annotation = coco.annotations.get(fact["annotation_id"])
    if not isinstance(annotation, Mapping):
        return None
    mask = _segmentation(annotation.get("segmentation"), size)
    return None if mask is None else encode_mask(mask, mask_id, str(fact.get("category") or ""))


def _segmentation(segmentation: Any, size: tuple[int, int]) -> Any:
    from sonogauge.answers.shapes import ShapeFault, read_shapes

    width, height = size
    if width * height > _MOST_PIXELS or width < 1 or height < 1:
        raise RecordFault("image too large")
    if isinstance(segmentation, Mapping):
        from sonogauge.answers.convention import Convention
        from sonogauge.answers.raster import draw

        try:
            return draw(read_shapes({"type": "rle", **segmentation}), size, Convention())
        except ShapeFault as fault:
            raise RecordFault("run-length code that does not fit its image") from fault
    from pycocotools import mask as coco

    try:
        polygons = [np.array(flat, dtype=np.float64) for flat in segmentation or ()]
    except (TypeError, ValueError) as error:
        raise RecordFault("polygon that does not read") from error
    if not polygons:
        return None
    if any(one.ndim != 1 or len(one) < 6 or len(one) % 2 or not (np.abs(one) < 1e6).all() for one in polygons):
        raise RecordFault("polygon that does not read")
    codes = coco.frPyObjects([one.tolist() for one in polygons], height, width)
    return np.asarray(coco.decode(codes).any(axis=2))


def _case(
    file: Path, source: str, split: str, category: Category, size: tuple[int, int], masks: list[dict[str, Any]]
) -> dict[str, Any]:
    from PIL import Image, UnidentifiedImageError

    try:
        data = file.read_bytes()
        with Image.open(io.BytesIO(data)) as picture:
            found, kind = picture.size, Image.MIME.get(picture.format or "", "image/png")
            if found != size:
                raise RecordFault("image of another size than its record says")
            digest = hashlib.sha256(f"{picture.mode}:{size[0]}x{size[1]}:".encode())
            digest.update(picture.convert("RGB").tobytes())
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise RecordFault("image that is missing or does not read") from error
    pixel_hash = digest.hexdigest()
    return {
        "case_id": f"{source}/{split}/{file.name}",
        "image": {"bytes": data, "path": file.name},
        "media_type": kind,
        "sha256": hashlib.sha256(data).hexdigest(),
        "pixel_hash": pixel_hash,
        "width": size[0],
        "height": size[1],
        "frames": 1,
        "group": f"{source}:image-{pixel_hash[:20]}",
        "source": source,
        "licence": f"{source}: see its source",
        "redistributable": False,
        "private": False,
        "provenance": "unknown",
        "reference_standard": "unknown",
        "anatomy": category.anatomy,
        "masks": masks,
        "known_issues": ["patient_unknown"],
        "split": split,
    }


def write_official(bench: Path | str, out: Path | str) -> dict[str, int]:
    """Write a benchmark of this kind in the official layout; return the number of images by category.

    `out` gets `annotations/<Category>.jsonl` and `datasets/<Category>/Datasets/<name>_coco/{train,test}/`. Records
    carry `reference_origin`, which official files do not have. Private images, and those that may not be passed on,
    stay back.

    Raises:
        BadInput: `out` is not empty, or the folder holds no records.
    """
    target = Path(out)
    if target.exists() and any(target.iterdir()):
        raise BadInput("exists already", file=target, fix="choose another folder")
    folder = Folder(bench, "benchmark")
    facts = folder.rows("cases", ["case_id", "redistributable", "private"])
    may_leave = {row["case_id"] for row in facts if row["redistributable"] is True and not row["private"]}
    return write_layout(folder, target, may_leave.__contains__)


def write_layout(folder: Folder, target: Path, keep: Callable[[str], bool]) -> dict[str, int]:
    """Write the images that may leave, with their records, as `write_official`; keep: whether a case id may.

    Raises:
        BadInput: the folder holds no records.
    """
    files = sorted((folder.path / "records").glob("*.jsonl"))
    if not files:
        raise BadInput("no records in it", file=folder.path, fix="build it with `sonogauge build ultrag`")
    case_of = _cases_of_records(folder)
    places: dict[str, tuple[str, dict[str, Any]]] = {}
    written: dict[str, int] = {}
    for file in files:
        lines = []
        for text in file.read_text("utf-8").splitlines():
            record = json.loads(text)
            if not keep(case_of[record["sample_id"]]):
                continue
            places[case_of[record["sample_id"]]] = file.stem, record
            lines.append(json.dumps({**record, "reference_origin": _origin(folder.manifest)}, ensure_ascii=False))
        if lines:
            written[file.stem] = len(lines)
            write_bytes(target / "annotations" / file.name, ("\n".join(lines) + "\n").encode("utf-8"))
    _write_images(folder, places, target)
    return written


def _origin(manifest: Manifest) -> str:
    return str(manifest.parameters.get("reference_origin", "toolkit"))


def _cases_of_records(folder: Folder) -> dict[str, str]:
    found = {}
    for row in folder.rows("items", ["images", "meta"]):
        meta = {one["name"]: one["value"] for one in row["meta"]}
        found[meta["sample_id"]] = str(row["images"][0]["case_id"])
    return found


def _write_images(folder: Folder, places: Mapping[str, tuple[str, dict[str, Any]]], target: Path) -> None:
    coco: dict[Path, dict[str, list[dict[str, Any]]]] = {}
    for row in folder.rows("cases", ["case_id", "image", "masks"]):
        if row["case_id"] not in places:
            continue
        category, record = places[row["case_id"]]
        place = target / "datasets" / category / "Datasets" / record["dataset"] / record["split"]
        content = coco.setdefault(place, {"images": [], "annotations": []})
        image, number = record["image"], int(record["sample_id"].rpartition("_")[2])
        write_bytes(place / image["file_name"], row["image"]["bytes"])
        content["images"].append(
            {"id": number, "file_name": image["file_name"], "width": image["width"], "height": image["height"]}
        )
        pixels = {one["mask_id"]: one for one in row["masks"]}
        for fact in record["masks"]:
            mask = pixels[fact["mask_id"]]
            content["annotations"].append(
                {
                    "id": fact["annotation_id"],
                    "image_id": number,
                    "category": fact["source_category"],
                    "bbox": fact["bbox_xywh"],
                    "area": fact["mask_area_px"],
                    "iscrowd": 0,
                    "segmentation": {"size": list(mask["size"]), "counts": mask["counts"]},
                }
            )
    for place, content in sorted(coco.items()):
        names = sorted({one["category"] for one in content["annotations"]})
        numbers = {name: number for number, name in enumerate(names, start=1)}
        for one in content["annotations"]:
            one["category_id"] = numbers[one.pop("category")]
        whole = {**content, "categories": [{"id": number, "name": name} for name, number in numbers.items()]}
        write_bytes(place / COCO_FILE, json.dumps(whole).encode("utf-8"))
