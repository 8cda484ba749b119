"""VGG Image Annotator: csv with one row for each region of an image."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from sonogauge.sources.cells import CellError, parse_cell
from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.locate import locate
from sonogauge.sources.readers.open import open_still
from sonogauge.sources.readers.rows import Row, plain, read_rows
from sonogauge.sources.readers.shapes import Shape, draw, ellipse_points
from sonogauge.sources.readers.tree import Tree

_COLUMNS = ("filename", "region_shape_attributes", "region_attributes")


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of VIA files that lie in the folder; several rows of one image are one finding.

    Options: `category`, the region attribute that names the region (the first one by default); `images`, folder of the
    image files.
    """
    for path, fields in tree.match(*layout.find):
        by_name: dict[str, list[tuple[int, Row]]] = {}
        for number, row in enumerate(read_rows(tree.read(path), path), 1):
            if number == 1 and any(column not in row for column in _COLUMNS):
                log.count("csv files that are not of VIA")
                break
            by_name.setdefault(row["filename"], []).append((number, row))
        if by_name:
            log.used.add(path)
        for name, rows in by_name.items():
            found = locate(tree, name, path, layout.options.get("images"))
            if found is None:
                log.miss(name, "annotated image is not in the folder")
                continue
            log.used.add(found)
            try:
                yield _finding(tree, layout, found, fields, rows)
            except MediaFault as fault:
                log.drop(f"{path}, {name}", str(fault))


def _finding(tree: Tree, layout: Layout, path: str, fields: dict[str, str], rows: list[tuple[int, Row]]) -> Finding:
    facts = {
        **fields,
        "path": path,
        "file": path.rpartition("/")[2],
        "stem": path.rpartition("/")[2].rpartition(".")[0],
    }
    shapes = []
    for _, row in rows:
        for column in ("file_size", "region_count"):
            facts.setdefault(column, row.get(column, ""))
        for key, value in _object(row.get("file_attributes", "")).items():
            facts.setdefault(str(key), plain(value))
        shape = _object(row["region_shape_attributes"])
        if shape:
            shapes.append(_shape(shape, _category(_object(row["region_attributes"]), layout)))
    finding = Finding(path, path.rpartition(".")[0], facts, partial(open_still, tree, path))
    finding.regions.append(partial(draw, shapes))
    return finding


def _object(cell: str) -> Mapping[str, Any]:
    text = cell.strip()
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Some copies went through a program that wrote single quotes.
        try:
            value = parse_cell(text)
        except CellError as error:
            raise MediaFault(f"cell that does not read ({error})") from error
    if not isinstance(value, dict):
        raise MediaFault("cell that is no object")
    return value


def _category(attributes: Mapping[str, Any], layout: Layout) -> str:
    wanted = layout.options.get("category")
    value = attributes.get(wanted) if wanted else next(iter(attributes.values()), None)
    if isinstance(value, Mapping):  # check boxes: {"cortex": true}
        value = next((key for key, on in value.items() if on), None)
    return plain(value) or "region"


def _shape(given: Mapping[str, Any], category: str) -> Shape:
    try:
        kind = given["name"]
        if kind in ("polygon", "polyline"):
            xs, ys = given["all_points_x"], given["all_points_y"]
            points = tuple((float(x), float(y)) for x, y in zip(xs, ys, strict=True))
            return Shape(category, "polygon" if kind == "polygon" else "line", points)
        if kind == "rect":
            x, y, w, h = (float(given[name]) for name in ("x", "y", "width", "height"))
            return Shape(category, "box", ((x, y), (x + w, y + h)))
        if kind in ("circle", "ellipse"):
            rx, ry = float(given.get("rx", given.get("r", 0))), float(given.get("ry", given.get("r", 0)))
            turn = math.degrees(float(given.get("theta", 0)))
            return Shape(
                category, "polygon", tuple(ellipse_points(float(given["cx"]), float(given["cy"]), rx, ry, turn))
            )
        if kind == "point":
            return Shape(category, "points", ((float(given["cx"]), float(given["cy"])),))
    except (KeyError, TypeError, ValueError) as error:
        raise MediaFault("region that does not read") from error
    return Shape(category, str(kind), ())
