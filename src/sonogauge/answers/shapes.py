"""Shapes as models write them, read from parsed JSON: polygons, boxes, run-length codes, pictures, points, phrases.

`read_shapes` knows no image and no coordinate convention, and never guesses: what does not fit one of the forms is a
fault with its reason. `raster` turns shapes into pixels once both are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["polygon", "box", "rle", "png", "points", "cell", "phrase"]

MOST_POINTS: Final = 50_000
MOST_SHAPES: Final = 10_000
LARGEST: Final = 1e7
_DEPTH: Final = 8
PNG_PREFIX: Final = "data:image/png;base64,"
_NOTHING: Final = frozenset({"", "null", "none", "empty"})
_CORNER_KEYS: Final = (
    ("x0", "y0", "x1", "y1"),
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("left", "top", "right", "bottom"),
)
_SIZE_KEYS: Final = (("x", "y", "w", "h"), ("x", "y", "width", "height"))
_POINT_KEYS: Final = ("points", "polygon", "coordinates", "coords")
# Keys of models trained on boxes: each vendor means another order by them, so that one must be declared.
_VENDOR_KEYS: Final = ("bbox_2d", "box_2d")
ROWS: Final = ("upper", "middle", "lower")
COLUMNS: Final = ("left", "central", "right")


class ShapeFault(ValueError):
    """A mask that cannot be read; `reason` is one of `tables.REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape in the coordinates it was written in.

    numbers: polygon x, y, x, y, …; box four numbers; points x, y, label, …; rle height, width, run, run, …
    order: of a box: "xywh", "xyxy" (corners), "bare" (as declared, else xywh), "declared" (only as declared).
    text: compressed counts of an rle, base64 of a png, name of a cell, phrase.
    """

    kind: Kind
    numbers: tuple[float, ...] = ()
    order: str = ""
    text: str = ""

    @property
    def draws(self) -> bool:
        """Whether the shape has pixels of its own, without a segmenter."""
        return self.kind not in ("points", "phrase")


def read_shapes(value: Any) -> tuple[Shape, ...]:
    """Return the shapes of a mask value; an empty tuple is an explicit empty mask.

    Raises:
        ShapeFault: `format` (no known form, too few points, not finite), `range` (beyond 10^7), `size` (too many
            points or shapes), `ambiguous` (a box whose order only a declaration could tell is read later).

    >>> read_shapes({"type": "bbox", "bbox_xywh": [0, 0, 4, 4]})[0].numbers
    (0.0, 0.0, 4.0, 4.0)
    >>> read_shapes(None), read_shapes({"type": "none"})
    ((), ())
    """
    found: list[Shape] = []
    _read(value, found, 0)
    if sum(len(one.numbers) for one in found if one.kind == "polygon") > 2 * MOST_POINTS:
        raise ShapeFault("size")
    return tuple(found)


def _read(value: Any, found: list[Shape], depth: int) -> None:
    if depth > _DEPTH:
        raise ShapeFault("format")
    if value is None:
        return
    if isinstance(value, str):
        if value.strip().lower() in _NOTHING:
            return
        if not value.startswith(PNG_PREFIX):
            raise ShapeFault("format")
        found.append(Shape("png", text=value[len(PNG_PREFIX) :]))
    elif isinstance(value, Mapping):
        _read_object(value, found, depth)
    elif isinstance(value, list):
        _read_list(value, found, depth)
    else:
        raise ShapeFault("format")
    if len(found) > MOST_SHAPES:
        raise ShapeFault("size")


def _read_object(value: Mapping[str, Any], found: list[Shape], depth: int) -> None:
    kind = value.get("type")
    if "type" in value and (kind is None or (isinstance(kind, str) and kind.strip().lower() in _NOTHING)):
        return
    name = kind.strip().lower().replace("-", "_") if isinstance(kind, str) else ""
    if name in ("multi", "multi_polygon", "multipolygon") or (not name and "masks" in value):
        members = value.get("masks", value.get("polygons"))
        if not isinstance(members, list):
            raise ShapeFault("format")
        for member in members:
            _read(member, found, depth + 1)
    elif name == "polygon" or (not name and "polygon" in value):
        found.append(_polygon(_first(value, _POINT_KEYS)))
    elif name == "points":
        found.append(_points(value.get("points")))
    elif name in ("text", "phrase") or (not name and "phrase" in value):
        phrase = value.get("phrase", value.get("text"))
        if not isinstance(phrase, str) or not phrase.strip():
            raise ShapeFault("format")
        found.append(Shape("phrase", text=phrase.strip()))
    elif name == "rle" or (not name and "counts" in value):
        found.append(_runs(value))
    elif name in ("png", "image"):
        data = value.get("data", value.get("png"))
        if not isinstance(data, str) or not data.startswith(PNG_PREFIX):
            raise ShapeFault("format")
        found.append(Shape("png", text=data[len(PNG_PREFIX) :]))
    elif name == "cell" or (not name and "cell" in value):
        found.append(Shape("cell", text=_cell(value.get("cell"))))
    elif name in ("bbox", "box", "bounding_box", ""):
        _read_box(value, found, depth)
    else:
        raise ShapeFault("format")


def _read_box(value: Mapping[str, Any], found: list[Shape], depth: int) -> None:
    for keys, order in (*((keys, "xyxy") for keys in _CORNER_KEYS), *((keys, "xywh") for keys in _SIZE_KEYS)):
        if all(key in value for key in keys):
            found.append(_box([value[key] for key in keys], order))
            return
    for key, order in (("bbox_xywh", "xywh"), ("bbox_xyxy", "xyxy"), ("bbox", "xywh"), ("box", "xyxy")):
        if key in value:
            inner = value[key]
            if isinstance(inner, Mapping):
                _read_box(inner, found, depth + 1) if depth < _DEPTH else _fail()
            elif _is_pairs(inner) and len(inner) == 2:
                found.append(_box([*inner[0], *inner[1]], "xyxy"))
            else:
                found.append(_box(inner, order))
            return
    for key in _VENDOR_KEYS:
        if key in value:
            found.append(_box(value[key], "declared"))
            return
    # Four numbers or two points are corners, more points a polygon.
    inner = _first(value, _POINT_KEYS)
    if isinstance(inner, list) and len(inner) == 4 and all(_is_number(one) for one in inner):
        found.append(_box(inner, "xyxy"))
    elif _is_pairs(inner) and len(inner) == 2:
        found.append(_box([*inner[0], *inner[1]], "xyxy"))
    else:
        found.append(_polygon(inner))


def _read_list(value: list[Any], found: list[Shape], depth: int) -> None:
    if not value:
        return
    if all(_is_number(one) for one in value):
        if len(value) == 4:
            found.append(_box(value, "bare"))
        else:
            found.append(_polygon(value))
    elif _is_pairs(value):
        if len(value) == 2:
            found.append(_box([*value[0], *value[1]], "xyxy"))
        else:
            found.append(_polygon(value))
    elif all(isinstance(one, Mapping) and {"x", "y"} <= set(one) and not {"w", "width"} & set(one) for one in value):
        found.append(_polygon(value))
    elif any(_is_number(one) for one in value):
        raise ShapeFault("format")
    else:
        for member in value:
            _read(member, found, depth + 1)


def _fail() -> None:
    raise ShapeFault("format")


def _first(value: Mapping[str, Any], keys: Sequence[str]) -> Any:
    for key in keys:
        if key in value:
            return value[key]
    raise ShapeFault("format")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_pairs(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, list) and len(one) == 2 and all(_is_number(part) for part in one) for one in value)
    )


def _number(value: Any) -> float:
    if not _is_number(value):
        raise ShapeFault("format")
    # An integer of a thousand digits is a valid JSON number, and no float.
    if not -LARGEST <= value <= LARGEST:
        raise ShapeFault("format" if isinstance(value, float) and not math.isfinite(value) else "range")
    return float(value)


def _polygon(points: Any) -> Shape:
    if not isinstance(points, list):
        raise ShapeFault("format")
    if len(points) > 2 * MOST_POINTS:
        raise ShapeFault("size")
    if points and all(_is_number(one) for one in points):
        if len(points) % 2:
            raise ShapeFault("format")
        flat = [_number(one) for one in points]
    else:
        flat = []
        for one in points:
            if isinstance(one, Mapping) and "x" in one and "y" in one:
                flat += [_number(one["x"]), _number(one["y"])]
            elif isinstance(one, list) and len(one) == 2:
                flat += [_number(one[0]), _number(one[1])]
            else:
                raise ShapeFault("format")
    if len(flat) < 6:
        raise ShapeFault("format")
    return Shape("polygon", tuple(flat))


def _points(points: Any) -> Shape:
    if not isinstance(points, list) or not points:
        raise ShapeFault("format")
    if len(points) > MOST_POINTS:
        raise ShapeFault("size")
    flat: list[float] = []
    for one in points:
        if isinstance(one, Mapping):
            one = [one.get("x"), one.get("y"), one.get("label", 1)]
        if not isinstance(one, list) or len(one) not in (2, 3):
            raise ShapeFault("format")
        label = one[2] if len(one) == 3 else 1
        if isinstance(label, bool) or label not in (0, 1):
            raise ShapeFault("format")
        flat += [_number(one[0]), _number(one[1]), float(label)]
    return Shape("points", tuple(flat))


def _box(numbers: Any, order: str) -> Shape:
    if not isinstance(numbers, list) or len(numbers) != 4:
        raise ShapeFault("format")
    found = tuple(_number(one) for one in numbers)
    if order == "xywh" and min(found[2:]) < 0:
        raise ShapeFault("format")
    return Shape("box", found, order)


def _runs(value: Mapping[str, Any]) -> Shape:
    size, counts = value.get("size"), value.get("counts")
    whole = isinstance(size, list) and len(size) == 2 and all(type(one) is int and one > 0 for one in size)
    if not whole or not isinstance(size, list):
        raise ShapeFault("format")
    if max(size) > LARGEST:
        raise ShapeFault("size")
    if isinstance(counts, str):
        return Shape("rle", (float(size[0]), float(size[1])), text=counts)
    if not isinstance(counts, list) or any(type(one) is not int or one < 0 for one in counts):
        raise ShapeFault("format")
    # Checked here already: a sum that is off says nothing of which pixels were meant.
    if sum(counts) != size[0] * size[1]:
        raise ShapeFault("size")
    return Shape("rle", (float(size[0]), float(size[1]), *map(float, counts)))


def _cell(name: Any) -> str:
    if not isinstance(name, str):
        raise ShapeFault("format")
    row, _, column = name.strip().lower().replace(" ", "-").replace("_", "-").partition("-")
    column = {"center": "central", "centre": "central", "middle": "central"}.get(column, column)
    if row not in ROWS or column not in COLUMNS:
        raise ShapeFault("format")
    return f"{row}-{column}"
