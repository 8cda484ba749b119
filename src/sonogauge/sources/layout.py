"""What a declarative file of a source says: licence and origin, and how its folders become cases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sonogauge._errors import BadInput
from sonogauge.sources.readers.tree import Template, compile_pattern
from sonogauge.tables import PROVENANCES, REFERENCE_STANDARDS

VERIFIED: Final = ("real files", "converter code", "description", "own map")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Strict):
    """Text made from the facts of a case: a template, then a map of what it may say.

    A value that the map lacks stays as it is; with `only` it counts as missing. `missing` lists words for no value.
    """

    value: str
    map: dict[str, str] = Field(default_factory=dict)
    lower: bool = False
    only: bool = False
    missing: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"value": given} if isinstance(given, str) else given

    @field_validator("map", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        return {str(key): str(one) for key, one in given.items()} if isinstance(given, dict) else given

    def of(self, facts: dict[str, str]) -> str | None:
        """Return the value for a case, None if it has none."""
        text = Template(self.value).fill(facts)
        if text is None or text in self.missing:
            return None
        if self.lower:
            text = text.lower()
        return self.map.get(text, None if self.only else text)


class MaskRule(_Strict):
    """Where the masks of an image lie and how they are to be read.

    files: path pattern; a mask belongs to the image with which it shares all common fields. match, key: compare these
    instead. names: names of files, from a cell, separated by `separator`.
    """

    files: tuple[str, ...] = ()
    key: str | None = None
    match: str | None = None
    names: str | None = None
    separator: str = "&"
    kind: Literal["binary", "outline", "classes", "colours", "polygon", "box", "boxes", "point"] = "binary"
    category: Value = Value(value="lesion")
    classes: dict[int, str] = Field(default_factory=dict)
    ignored: tuple[int, ...] = (0,)
    colours: dict[str, tuple[int, int, int]] = Field(default_factory=dict)
    background: tuple[int, int, int] | None = (0, 0, 0)
    threshold: int = 127
    rotate: int = 0  # quarter turns clockwise, as the image is turned
    larger: str | None = None  # the class that must be the largest
    box: tuple[str, str, str, str] | None = None  # templates of x, y, width, height
    corners: tuple[str, str, str, str] | None = None  # or of left, top, right, bottom
    point: tuple[str, str] | None = None  # templates of x, y; the category names it
    boxes: str | None = None  # template of a JSON list of [category, [left, top, right, bottom]], or of corners alone
    box_labels: str | None = None  # template of a JSON list of the categories, for corners alone
    optional: bool = True
    fan: bool = False  # the mask of the scan itself

    @model_validator(mode="after")
    def _cells(self) -> MaskRule:
        needed = {"box": (self.box, self.corners), "boxes": (self.boxes,), "point": (self.point,)}.get(self.kind)
        if needed is not None and sum(one is not None for one in needed) != 1:
            words = "`box` or `corners`" if self.kind == "box" else f"`{self.kind}`"
            raise ValueError(f"kind '{self.kind}' needs {words}")
        return self

    @field_validator("files", mode="before")
    @classmethod
    def _many(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given


class TableRule(_Strict):
    """A table whose row for an image adds its columns to the facts of the image.

    key: template over a row (with the fields of the table's path). match: template over the facts of the image.
    compare: as text, as file names without their ending, or as numbers. A table that is not needed may be absent or
    lack the key. rows: with `each`, an image has a row for each of its boxes, points or measurements: every row adds
    what the rules `box`, `point` and `measurements` make of it, and only what all rows agree on is a fact of the image.
    """

    file: str
    kind: str | None = None
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    sheet: str | None = None
    key: str
    match: str
    compare: Literal["text", "stem", "number"] = "text"
    needed: bool = True
    prefix: str = ""
    rows: Literal["one", "each"] = "one"


class Measurement(_Strict):
    """A number with its unit; all three are templates."""

    name: str
    value: str
    unit: str


class TextRule(_Strict):
    """A text and what it is."""

    kind: str
    text: str
    language: str = "en"


class FrameRule(_Strict):
    """Which frames of a clip or stack become cases.

    annotated: those with annotations. uniform: so many, evenly spread. scenes: where the picture changes by more than
    `change` (mean absolute difference, 0 to 1), at most so many. all: every one.
    """

    keep: Literal["all", "annotated", "uniform", "scenes", "middle"] = "uniform"
    count: int = Field(default=8, ge=1)
    change: float = Field(default=0.1, gt=0, le=1)
    empty: int = Field(default=0, ge=0)  # with `annotated`: so many frames without annotations, evenly spread


class MaskLabel(_Strict):
    """A label that the categories of the masks give. none: its value where there is no mask."""

    name: str
    none: str | None = None


class Layout(_Strict):
    """One layout of a source: `find` matches the files that drive the reader, the rest says what they mean."""

    name: str = "default"
    reader: str = "files"
    find: tuple[str, ...] = Field(min_length=1)
    skip: tuple[str, ...] = ()
    id: str | None = None
    patient: Value | None = None
    group: Value | None = None
    split: Value | None = None
    view: Value | None = None
    device: Value | None = None
    anatomy: Value | None = None
    spacing: tuple[str, str] | None = None
    stated_size: tuple[str, str] | None = None  # templates of width and height, compared with the image
    mask_label: MaskLabel | None = None
    labels: dict[str, Value] = Field(default_factory=dict)
    demographics: dict[str, Value] = Field(default_factory=dict)
    meta: dict[str, Value] = Field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    texts: tuple[TextRule, ...] = ()
    tables: tuple[TableRule, ...] = ()
    masks: tuple[MaskRule, ...] = ()
    frames: FrameRule = FrameRule()
    rotate: int = 0
    issues: dict[str, str] = Field(default_factory=dict)  # case id -> what is known about it
    options: dict[str, Any] = Field(default_factory=dict)  # of the reader

    @field_validator("find", "skip", mode="before")
    @classmethod
    def _many(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _patterns(self) -> Layout:
        if self.reader != "files" and any(one.rows == "each" for one in self.tables):
            raise ValueError("tables with `rows: each` are read beside image files only")
        for pattern in (*self.find, *self.skip, *(one.file for one in self.tables)):
            _compiles(pattern)
        for rule in self.masks:
            for pattern in rule.files:
                _compiles(pattern)
        return self

    @field_validator("spacing", mode="before")
    @classmethod
    def _pair(cls, given: Any) -> Any:
        return (given, given) if isinstance(given, str) else given


class Obtain(_Strict):
    """How to get a source. files: address and, once known, SHA-256 of what `get` may download."""

    how: str
    page: str | None = None
    files: tuple[dict[str, str], ...] = ()


class SourceSpec(_Strict):
    """One source of images."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$")
    title: str
    aliases: tuple[str, ...] = ()
    organ: str
    licence: str
    licence_checked: bool = False
    redistributable: bool = False
    citation: str = ""
    obtain: Obtain = Obtain(how="your own files")
    annotations: tuple[str, ...] = ()
    patient_id: bool = False
    provenance: str = "unknown"
    reference_standard: str = "unknown"
    known_issues: tuple[str, ...] = ()
    verified: str = "own map"
    counts: dict[str, int] = Field(default_factory=dict)  # "cases", "label NAME=VALUE", "split NAME", "patients"
    use: Literal["first", "all"] = "first"  # the first layout that finds something, or all that do
    layouts: tuple[Layout, ...] = Field(min_length=1)

    def with_layout(self, name: str | None) -> SourceSpec:
        """Return the source with one of its layouts only, or as it is without a name; raise BadInput if it has none."""
        if name is None:
            return self
        names = list(dict.fromkeys(layout.name for layout in self.layouts))
        if name not in names:
            raise BadInput(f"no layout '{name}' of '{self.name}'", field="layout", fix=f"it has: {', '.join(names)}")
        return self.model_copy(update={"layouts": tuple(one for one in self.layouts if one.name == name)})

    @field_validator("provenance")
    @classmethod
    def _provenance(cls, given: str) -> str:
        return _one_of(given, PROVENANCES)

    @field_validator("reference_standard")
    @classmethod
    def _standard(cls, given: str) -> str:
        return _one_of(given, REFERENCE_STANDARDS)

    @field_validator("verified")
    @classmethod
    def _verified(cls, given: str) -> str:
        return _one_of(given, VERIFIED)


def _compiles(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except re.error as error:
        raise ValueError(f"the pattern '{pattern}' does not compile ({error})") from error


def _one_of(given: str, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        raise ValueError(f"'{given}' is none of: {', '.join(allowed)}")
    return given


def read_spec(path: Path, **defaults: Any) -> SourceSpec:
    """Read a declarative file.

    Args:
        path: a YAML file.
        defaults: values of keys that the file may leave out.

    Raises:
        BadInput: unreadable, an unknown key, a wrong value, a pattern that is no pattern.
    """
    try:
        given = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"not YAML ({error})", file=path) from error
    if not isinstance(given, dict):
        raise BadInput("not a mapping", file=path, fix="write keys such as `layouts:`")
    return make_spec({**defaults, **given}, path)


def make_spec(given: dict[str, Any], path: Path | str) -> SourceSpec:
    """Return the checked form of a declarative file's content; see `read_spec`."""
    try:
        return SourceSpec.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], file=path, field=field, fix="see docs/sources.md") from error
