"""What a row of U2-BENCH says: its reference, the variables of its prompt, and the facts of its image.

One function per answer form. A row that cannot be an item raises RowFault; a reference that cannot be used gives a
state other than "ok", and the row stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sonogauge.answers.place import PLACES, is_near_edge, place_of
from sonogauge.benchmarks.spec import Scenario
from sonogauge.benchmarks.vocabulary import map_keypoint, map_structure
from sonogauge.sources.cells import CellError, bare_text, is_missing, parse_cell

NOT_VISIBLE: Final = "not visible"
_TOLERANCE: Final = 1e-6  # boxes are written with few digits
_INTEGRAL: Final = re.compile(r"[+-]?\d+\.0+")


class RowFault(ValueError):
    """A row that cannot be an item; the message is the reason under which it is counted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one row says.

    state: one of `tables.REFERENCE_STATES`; why: reason of "error". value: fields of `tables.VALUE`, empty unless "ok".
    chance: share that uniform guessing gets right, or None. variables: for the prompt.
    facts: annotation columns of the cases table that the row adds. notes: things to count.
    """

    state: str
    value: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    chance: float | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    spacing: float | None = None
    notes: tuple[str, ...] = ()
    askable: bool = True  # False where the row lacks what its prompt must name


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Choices of the user. report_column: read first in RG. measurement: foreign name -> key of the benchmark."""

    report_column: str = "report"
    measurement: Mapping[str, str] = field(default_factory=dict)


def read_choice(cells: Mapping[str, str], scenario: Scenario) -> Reading:
    """Read a class label; raise RowFault if it is none of the options."""
    cell = cells.get("class_label", "")
    notes = _compare_options(cells, scenario)
    if not cell.strip():
        return Reading("absent", notes=notes)
    label = _option(_label(cell, cells.get("classification_task", "").strip() or scenario.dataset), scenario)
    name = f"{scenario.task}/{scenario.dataset}"
    return Reading(
        "ok",
        {"choices": (label,)},
        chance=1 / len(scenario.options),
        facts={"labels": [{"name": name, "value": label}]},
        notes=notes,
    )


def _label(cell: str, label_set: str) -> str:
    text = cell.strip()
    if text[0] not in "[{('\"":
        return _without_zeros(text)
    try:
        value = parse_cell(text)
    except CellError:
        if text[0] == "{":
            raise RowFault("unparsable label") from None
        return _without_zeros(bare_text(text))
    while isinstance(value, list | dict):
        parts = value
        if isinstance(value, dict):
            named = [one for key, one in value.items() if key.casefold() == label_set.casefold()]
            parts = named or list(value.values())
        if len(parts) != 1:
            raise RowFault("not exactly one label")
        value = parts[0]
    return _without_zeros(str(value).strip())


def _without_zeros(text: str) -> str:
    return text.partition(".")[0] if _INTEGRAL.fullmatch(text) else text


def _option(label: str, scenario: Scenario) -> str:
    label = scenario.extra.get("aliases", {}).get(label, label)
    if label in scenario.options:
        return str(label)
    alike = [option for option in scenario.options if option.casefold() == label.casefold()]
    if len(alike) != 1:
        raise RowFault("label outside its options")
    return alike[0]


def _compare_options(cells: Mapping[str, str], scenario: Scenario) -> tuple[str, ...]:
    cell = cells.get("options", "")
    if is_missing(cell):
        return ()
    try:
        sets = parse_cell(cell)
    except CellError:
        return ("options cell unparsable, the registry's are used",)
    found = sets.get(cells.get("classification_task", "").strip()) if isinstance(sets, dict) else None
    if not isinstance(found, list):
        return ("options cell without the label set, the registry's are used",)
    theirs = {_without_zeros(str(one)).casefold() for one in found}
    if theirs != {option.casefold() for option in scenario.options}:
        return ("options of the row differ from the registry's",)
    return ()


def read_place(cells: Mapping[str, str], scenario: Scenario, width: int, height: int) -> Reading:
    """Read boxes (or, in KD, points) as places; width, height: of the image, in pixels."""
    points = scenario.extra.get("column") == "keypoints"
    try:
        marks = _marks(cells.get("keypoints" if points else "gt_bbox", ""), 2 if points else 4)
    except CellError as error:
        return Reading("error", why=str(error), variables=_named(scenario, "", points), askable=not points)
    target = _target(marks, scenario, points)
    variables = _named(scenario, target, points)
    if points and not variables:
        # Without a name there is no question to ask, visible or not.
        return Reading("error", why="no key point named", askable=False)
    chosen = [numbers for name, numbers in marks if numbers and (scenario.task == "LL" or name == target)]
    if any(not -_TOLERANCE <= number <= 1 + _TOLERANCE for numbers in chosen for number in numbers):
        return Reading("error", why="point outside 0-1" if points else "box outside 0-1", variables=variables)
    if not chosen:
        return Reading("ok", {"places": (NOT_VISIBLE,)}, chance=1 / len(PLACES), variables=variables)
    places = tuple(place_of(numbers[0], numbers[1]) for numbers in chosen)
    native: list[dict[str, Any]]
    if points:
        native = [{"name": target, "x": x * width, "y": y * height} for x, y, *_ in chosen]
    else:
        names = [name for name, numbers in marks if numbers and (scenario.task == "LL" or name == target)]
        native = [_native_box(name, box, width, height) for name, box in zip(names, chosen, strict=True)]
    kind = "points" if points else "boxes"
    others = len({name for name, numbers in marks if numbers}) > 1 and scenario.task != "LL"
    return Reading(
        "ok",
        {"places": places, kind: tuple(native)},
        chance=len(set(places)) / len(PLACES),
        variables=variables,
        # Each of the places is accepted, so one close call among them makes the item one.
        meta={"near_edge": "1" if any(is_near_edge(x, y) for x, y, *_ in chosen) else "0"},
        facts={kind: native},
        notes=("several structures in a row, one is asked for",) if others else (),
    )


def _marks(cell: str, least: int) -> list[tuple[str, list[float]]]:
    """Return (name, numbers) of every box or point; a name without numbers is an object that is not visible."""
    if is_missing(cell):
        return []
    value = parse_cell(cell)
    marks: list[tuple[str, list[float]]] = []
    for part in value if isinstance(value, list) else [value]:
        if part is None or (isinstance(part, float) and math.isnan(part)):
            continue
        if not isinstance(part, dict):
            raise CellError("not a dict of names")
        for name, numbers in part.items():
            several = isinstance(numbers, list) and bool(numbers) and all(isinstance(one, list) for one in numbers)
            marks.extend((name.strip(), _numbers(one, least)) for one in (numbers if several else [numbers]))
    return marks


def _numbers(value: Any, least: int) -> list[float]:
    if value is None or value == [] or (isinstance(value, float) and math.isnan(value)):
        return []
    if not isinstance(value, list) or len(value) < least:
        raise CellError(f"fewer than {least} numbers")
    numbers = value[:least]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        raise CellError("not a number")
    return [float(one) for one in numbers]


def _target(marks: list[tuple[str, list[float]]], scenario: Scenario, points: bool) -> str:
    known = {name.casefold() for name in scenario.extra.get("keys", {})}
    names = [name for name, numbers in marks if numbers] or [name for name, _ in marks]
    if not points:
        names = [name for name in names if name.casefold() in known] or names
    return names[0] if names else ""


def _named(scenario: Scenario, target: str, points: bool) -> dict[str, str]:
    """Return the prompt variable for the structure or key point; none for a lesion or a point without a name."""
    if scenario.task == "LL":
        return {}
    if points:
        word = map_keypoint(target, scenario)
        return {} if word is None else {"keypoint": word}
    return {"structure": map_structure(target, scenario)}


def _native_box(name: str, box: list[float], width: int, height: int) -> dict[str, Any]:
    x, y, w, h = box
    return {"category": name, "x": (x - w / 2) * width, "y": (y - h / 2) * height, "w": w * width, "h": h * height}


def read_number(cells: Mapping[str, str], scenario: Scenario, rules: ReadingRules) -> Reading:
    """Read a measurement, and the pixel size where the prompt states it."""
    cell = cells.get("measurement", "")
    empty = Reading("null" if scenario.null_allowed else "absent")
    needs_size = bool(scenario.extra.get("pixel_size_keys"))
    if is_missing(cell):
        return Reading("error", why="no pixel size", askable=False) if needs_size else empty
    try:
        found = _measurements(parse_cell(cell))
    except CellError as error:
        return Reading("error", why=str(error), askable=not needs_size)
    variables, spacing = {}, None
    if needs_size:
        try:
            spacing = _number(_first(found, scenario.extra["pixel_size_keys"], rules))
        except (KeyError, CellError):
            spacing = None
        if spacing is None or spacing <= 0:
            return Reading("error", why="no pixel size", askable=False)
        variables = {"pixel_size_mm": repr(spacing)}
    try:
        number = _number(_first(found, scenario.extra["keys"], rules))
    except KeyError:
        return Reading(empty.state, variables=variables, spacing=spacing)
    except CellError as error:
        return Reading("error", why=str(error), variables=variables, spacing=spacing)
    if number is None:
        return Reading("null", variables=variables, spacing=spacing)
    name = str(scenario.extra["keys"][0])
    return Reading(
        "ok",
        {"number": number},
        variables=variables,
        facts={"measurements": [{"name": name, "value": number, "unit": scenario.unit}]},
        spacing=spacing,
    )


def _measurements(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict):
            raise CellError("not a dict of measurements")
        for key, one in part.items():
            found.setdefault(key.strip(), one)
    return found


def _first(found: Mapping[str, Any], keys: list[str], rules: ReadingRules) -> Any:
    own = [name for name, meaning in rules.measurement.items() if meaning in keys]
    for key in (*own, *keys):
        if key in found:
            return found[key]
    raise KeyError(keys[0])


def _number(value: Any) -> float | None:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        if is_missing(value):
            return None
        try:
            value = float(value)
        except ValueError:
            raise CellError("measurement is not a number") from None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CellError("measurement is not a number")
    return float(value)


def read_text(cells: Mapping[str, str], scenario: Scenario, rules: ReadingRules) -> Reading:
    """Read a report or caption from the first column that holds one."""
    columns = sorted(scenario.extra["columns"], key=lambda name: name != rules.report_column)
    for column in columns:
        text = cells.get(column, "")
        if not is_missing(text):
            text = text.strip()
            return Reading(
                "ok",
                {"texts": (text,)},
                meta={"reference_column": column},
                facts={"texts": [{"kind": column, "text": text, "language": "en"}]},
            )
    return Reading("absent")
