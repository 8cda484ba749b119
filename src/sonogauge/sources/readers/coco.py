"""COCO annotation files: polygons and run-length codes, boxes, key points."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import Mask, decode_mask
from sonogauge.sources.findings import Finding, ReadLog, Regions
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.locate import locate
from sonogauge.sources.readers.open import open_still
from sonogauge.sources.readers.rows import flatten
from sonogauge.sources.readers.shapes import polygon_mask
from sonogauge.sources.readers.tree import Tree


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of COCO files that lie in the folder.

    Options: `images`, the folder of the image files; `labels`, a label name under which the categories present on an
    image are listed.
    """
    for path, fields in tree.match(*layout.find):
        content = _load(tree, path)
        if content is None:
            log.count("JSON files that are not COCO")
            continue
        log.used.add(path)
        categories = {one.get("id"): one for one in content.get("categories", ())}
        by_image: dict[Any, list[Mapping[str, Any]]] = {}
        for annotation in content.get("annotations", ()):
            by_image.setdefault(annotation.get("image_id"), []).append(annotation)
        for image in content["images"]:
            yield from _image(tree, layout, log, path, fields, image, by_image.pop(image.get("id"), []), categories)
        for orphans in by_image.values():
            log.drop(path, "annotation of no image", len(orphans))


def _load(tree: Tree, path: str) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(tree.read(path))
    except (ValueError, RecursionError) as error:
        raise BadInput("not JSON", file=path) from error
    except MediaFault as fault:
        raise BadInput(str(fault), file=path) from fault
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list) or not all(isinstance(one, dict) and one.get("file_name") for one in images):
        return None
    lists = (content.get("categories", []), content.get("annotations", []))
    if not all(isinstance(one, list) and all(isinstance(entry, dict) for entry in one) for one in lists):
        raise BadInput("categories or annotations are no lists of objects", file=path)
    return content


def _image(
    tree: Tree,
    layout: Layout,
    log: ReadLog,
    path: str,
    fields: dict[str, str],
    image: Mapping[str, Any],
    annotations: list[Mapping[str, Any]],
    categories: dict[Any, Mapping[str, Any]],
) -> Iterator[Finding]:
    name = str(image["file_name"])
    found = locate(tree, name, path, layout.options.get("images"))
    if found is None:
        log.miss(name, "annotated image is not in the folder")
        return
    log.used.add(found)
    facts = {**flatten(image, path), **fields, "path": found, "file": found.rpartition("/")[2]}
    facts["stem"] = facts["file"].rpartition(".")[0]
    finding = Finding(found, found.rpartition(".")[0], facts, partial(open_still, tree, found))
    for annotation in annotations:
        category = categories.get(annotation.get("category_id"))
        if category is None:
            log.drop(name, "annotation of an unknown category")
            continue
        finding.regions.append(partial(_region, annotation, str(category.get("name", "region")), category, image))
        if label := layout.options.get("labels"):
            finding.labels.append((str(label), str(category.get("name"))))
    yield finding


def _region(
    annotation: Mapping[str, Any],
    name: str,
    category: Mapping[str, Any],
    image: Mapping[str, Any],
    width: int,
    height: int,
) -> Regions:
    stated = (image.get("width", width), image.get("height", height))
    if stated != (width, height):
        raise MediaFault(f"annotated at {stated[0]} x {stated[1]}, the image has {width} x {height}")
    found = Regions()
    try:
        mask = _mask(annotation.get("segmentation"), width, height)
        if mask is not None:
            found.masks.append((name, mask))
        elif annotation.get("bbox"):
            x, y, w, h = (float(value) for value in annotation["bbox"])
            found.boxes.append((name, x, y, w, h))
        flat = [float(value) for value in annotation.get("keypoints") or ()]
    except MediaFault:
        raise
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise MediaFault("annotation that does not read") from error
    names = category.get("keypoints") or ()
    for place in range(len(flat) // 3):
        x, y, visible = flat[3 * place : 3 * place + 3]
        if visible > 0:
            found.points.append((str(names[place]) if place < len(names) else f"{name} {place + 1}", x, y))
    return found


def _mask(segmentation: Any, width: int, height: int) -> Mask | None:
    if not segmentation:
        return None
    if isinstance(segmentation, Mapping):
        return _runs(segmentation, width, height)
    total: Mask = np.zeros((height, width), dtype=np.bool_)
    for flat in segmentation:
        values = [float(value) for value in flat]
        total |= polygon_mask(list(zip(values[::2], values[1::2], strict=True)), width, height)
    return total


def _runs(segmentation: Mapping[str, Any], width: int, height: int) -> Mask:
    size, counts = [int(one) for one in segmentation["size"]], segmentation["counts"]
    if size != [height, width] or width * height > MAX_PIXELS:
        raise MediaFault("run-length code of another size than the image")
    if isinstance(counts, str):
        try:
            return decode_mask({"size": size, "counts": counts})
        except BadInput as error:
            raise MediaFault("run-length code that does not add up") from error
    runs = [int(one) for one in counts]
    if any(one < 0 for one in runs) or sum(runs) != width * height:
        raise MediaFault("run-length code that does not add up")
    values = np.arange(len(runs)) % 2 == 1
    return np.asarray(np.repeat(values, runs).reshape((width, height)).T)
