"""A recipe: which image sets become which benchmark, stage by stage, as checked YAML.

Paths in a recipe are relative to the folder given with `--data`, else to the recipe's own folder.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sonogauge._errors import BadInput
from sonogauge.benchmarks.prompts import ANSWER_FORMAT, placeholders

Action = Literal["drop", "flag", "off"]
# What the quality stage looks at, and what happens to a case by default.
CHECKS: Final[dict[str, Action]] = {
    "unreadable": "drop",
    "blank": "drop",
    "tiny": "drop",
    "broken mask": "drop",
    "size of a mask": "drop",
    "box outside": "drop",
    "missing label": "drop",
    "contradicting labels": "drop",
    "identifying tag": "drop",
    "blurred": "flag",
    "dark": "flag",
    "overexposed": "flag",
    "burned-in text": "flag",
    "callipers": "flag",
}
Part = Literal["train", "val", "test"]
# Words of the sources for the parts.
PART_NAMES: Final[dict[str, Part]] = {
    "train": "train",
    "training": "train",
    "val": "val",
    "validation": "val",
    "valid": "val",
    "test": "test",
    "testing": "test",
}
METRICS: Final = {
    "choice": ("accuracy", "macro_f1", "macro_precision", "macro_recall"),
    "place": ("accuracy",),
    "number": ("rmse_scaled", "mae_scaled", "std_scaled", "within_tolerance", "median_error"),
    "text": ("bleu4", "rouge_l"),
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class SourceEntry(_Strict):
    """One image set: a folder of cases, or a known source (or kind of files) with the folder of its files."""

    cases: str | None = None
    import_: str | None = Field(default=None, alias="import")
    dir: str = "."
    map: str | None = None
    private: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.cases is None) == (self.import_ is None):
            raise ValueError("give either `cases` or `import`")
        return self


class VocabularyRule(_Strict):
    """Raw words to canonical ones.

    file: CSV with the columns raw, canonical, source, field; an empty source or field means all. use: false builds
    without the file, for an ablation. unmapped: what happens to a label that the file does not name. drop: label name
    -> canonical values whose cases are left out (the class filter).
    """

    file: str | None = None
    use: bool = True
    unmapped: Literal["keep", "drop", "refuse"] = "keep"
    drop: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Contradiction(_Strict):
    """A label that excludes an annotation: a normal image with a lesion's mask."""

    label: dict[str, str]
    category: str


class QualityRule(_Strict):
    """Limits of the quality stage and what happens to a case that breaks them.

    min_side: pixels. blank: least standard deviation of the grey values. blur: least variance of the Laplacian of the
    image scaled to 256 pixels. dark, bright: limits of the mean grey value inside the scan. needs: labels that every
    case must have.
    """

    checks: dict[str, Action] = Field(default_factory=dict)
    min_side: int = 32
    blank: float = 2.0
    blur: float = 8.0
    dark: float = 12.0
    bright: float = 200.0
    needs: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    @field_validator("checks", mode="before")
    @classmethod
    def _bare_off(cls, checks: Any) -> Any:
        # YAML reads a bare `off` as false.
        return (
            {name: "off" if one is False else one for name, one in checks.items()} if type(checks) is dict else checks
        )

    @model_validator(mode="after")
    def _known_checks(self) -> Self:
        if unknown := sorted(set(self.checks) - set(CHECKS)):
            raise ValueError(f"no check '{unknown[0]}'; known: {', '.join(CHECKS)}")
        return self

    def action(self, check: str) -> Action:
        """Return what happens to a case that a check finds fault with."""
        return self.checks.get(check, CHECKS[check])


class PublishedSplit(_Strict):
    """How a published benchmark split a source: at random by image or by group, perhaps stratified by a label."""

    by: Literal["image", "group", "official"] = "image"
    test_fraction: float = Field(default=0.2, gt=0, lt=1)
    random_state: int = 42
    stratify: str | None = None


class SplitRule(_Strict):
    """Which cases are for the test.

    official: the source's own split, which every case must have. patient_safe: the source's own split where all cases
    of the source have one, else by group, with sources of up to `small_source` cases wholly in the test. published:
    as `published` says for each source; sources it does not name are split patient-safe. copies: what keeps groups
    together besides their id: images with the same pixels, or also those that the leakage audit finds alike.
    """

    rule: Literal["official", "patient_safe", "published"] = "patient_safe"
    test_fraction: float = Field(default=0.25, gt=0, lt=1)
    small_source: int = 300
    stratify: str | None = None
    copies: Literal["exact", "near"] = "exact"
    published: dict[str, PublishedSplit] = Field(default_factory=dict)
    names: dict[str, Part] = Field(default_factory=lambda: dict(PART_NAMES))


class SamplingRule(_Strict):
    """How many items of a scenario and split are kept.

    per_group: of one patient. per_scenario: in all. weights: reference value -> how much likelier than 1 an item is
    kept; no item is asked twice.
    """

    per_group: int | None = Field(default=None, ge=1)
    per_scenario: int | None = Field(default=None, ge=1)
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)


class Sentence(_Strict):
    """A sentence of a reference text; it is left out where `when` does not hold or a fact it names is missing."""

    text: str
    when: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"text": given}
        if isinstance(given, dict) and isinstance(given.get("when"), dict):
            return {**given, "when": {key: _several(one) for key, one in given["when"].items()}}
        return given


class BoxStyle(_Strict):
    """How a box is drawn: colour, line width in pixels (None = max(2, 0.4 % of the longer side)), padding."""

    colour: tuple[int, int, int] = (255, 0, 0)
    line: int | None = Field(default=None, ge=1)
    side: Literal["outward", "inward"] = "outward"
    pad: int = Field(default=0, ge=0)


class TaskRecipe(_Strict):
    """One task: what is asked of which cases.

    question: choice (of the values of a label), place (of a category), number (a measurement), text (a caption or
    report), boxed (which category lies in the drawn box).
    """

    title: str
    question: Literal["choice", "place", "number", "text", "boxed"]
    template: str
    metrics: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    sampling: SamplingRule | None = None
    determinable: Literal["yes", "partly", "no"] = "yes"
    determinable_reason: str = ""
    # choice and boxed
    label: str = ""
    options: tuple[str, ...] = ()
    n_options: int | None = Field(default=None, ge=2)
    pool: Literal["source", "task", "global"] = "source"
    shuffle: Literal["hash", "fixed"] = "fixed"
    letters: bool = False
    positive: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    # place and boxed
    category: str = ""
    structure: str = ""
    component: Literal["union", "largest", "each"] = "union"
    min_side: int = 8
    absent: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    box: BoxStyle = BoxStyle()
    # number
    measurement: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    tolerance: float | None = None
    # text
    kind: str = ""
    sentences: tuple[Sentence, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _lists(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        more = {
            key: {name: _several(one) for name, one in given[key].items()}
            for key in ("where", "absent")
            if isinstance(given.get(key), dict)
        }
        return {**given, **more}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {
            "choice": ("label",),
            "place": ("category",),
            "number": ("measurement", "unit"),
            "text": (),
            "boxed": (),
        }[self.question]
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f"a question of kind '{self.question}' needs `{name}`")
        if self.question == "number" and not (self.low is not None and self.high is not None and self.low < self.high):
            raise ValueError("a question of kind 'number' needs `low` and `high`, low below high")
        if self.question == "text" and bool(self.kind) == bool(self.sentences):
            raise ValueError("a question of kind 'text' needs either `kind` (a text of the cases) or `sentences`")
        if self.question == "place" and self.component == "each":
            raise ValueError("a place is asked of the union or the largest part")
        if ANSWER_FORMAT not in placeholders(self.template):
            raise ValueError(f"the template lacks {{{ANSWER_FORMAT}}}")
        if self.options and len({option.casefold() for option in self.options}) != len(self.options):
            raise ValueError("an option is there twice")
        return self

    @property
    def form(self) -> str:
        """The answer form."""
        return "choice" if self.question == "boxed" else self.question


class Recipe(_Strict):
    """A whole recipe."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    version: str
    title: str
    citation: str = ""
    notices: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0)
    sources: tuple[SourceEntry, ...] = Field(min_length=1)
    vocabulary: VocabularyRule = VocabularyRule()
    quality: QualityRule = QualityRule()
    split: SplitRule = SplitRule()
    sampling: SamplingRule = SamplingRule()
    max_dropped: float = Field(default=0.05, ge=0, le=1)
    leaks: Literal["report", "refuse"] = "report"
    tasks: dict[str, TaskRecipe] = Field(min_length=1)


def _several(given: Any) -> Any:
    return (str(given),) if isinstance(given, (str, int, float)) else given


def shipped_recipes() -> list[str]:
    """Return the names of the recipes that ship with the package, sorted.

    >>> "breast-lesion" in shipped_recipes()
    True
    """
    folder = files("sonogauge.build") / "recipes"
    return sorted(one.name.removesuffix(".yaml") for one in folder.iterdir() if one.name.endswith(".yaml"))


def find_recipe(name: str) -> Path | None:
    """Return the file of a recipe: a path that ends with .yaml or .yml, or the name of one that ships; else None."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    if name in shipped_recipes():
        return Path(str(files("sonogauge.build") / "recipes" / f"{name}.yaml"))
    return None


def read_recipe(path: Path | str, **instead: Any) -> Recipe:
    """Read a recipe; `instead`: values of keys that take the place of its own.

    Raises:
        BadInput: unreadable, not YAML, an unknown key or a wrong value; the line names the field.
    """
    file = Path(path)
    try:
        given = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=file) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"not YAML ({' '.join(str(error).split())})", file=file) from error
    if not isinstance(given, dict):
        raise BadInput("not a mapping", file=file, fix="write keys such as `sources:` and `tasks:`")
    try:
        return Recipe.model_validate({**given, **instead})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], file=file, field=field or None, fix="see docs/recipes.md") from error
