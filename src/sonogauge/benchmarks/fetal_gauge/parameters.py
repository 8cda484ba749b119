"""The declared parameters of a Fetal-Gauge-style build: what the paper leaves open, with defaults.

Source of names and defaults: specification of Fetal-Gauge, section 3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sonogauge._errors import BadInput

CHOICE_TASKS: Final = ("PI", "VC", "FO", "CD", "VG")
OWN_TASKS: Final = ("VL", "MS")
TASKS: Final = (*CHOICE_TASKS, *OWN_TASKS)

# Labels that give a task its answer, the first that a case has counts. "source:label" is for one source, and such a
# label is then no answer of another task for that source.
LABELS: Final[dict[str, tuple[str, ...]]] = {
    "PI": ("brain plane", "plane", "view"),
    "VC": ("acouslic-ai:plane", "conformity", "view conformity"),
    "FO": ("orientation", "presentation"),
    "CD": ("diagnosis",),
}
# Words that overlap in meaning, of which no two are offered together.
OVERLAPS: Final[tuple[tuple[str, ...], ...]] = (
    ("fetal abdomen plane", "abdominal circumference plane"),
    ("fetal femur plane", "femur length plane"),
    (
        *("fetal brain plane", "biparietal diameter plane", "trans-thalamic plane"),
        *("trans-cerebellar plane", "trans-ventricular plane"),
    ),
)
# Sub-planes of the brain are told apart, though each overlaps with the generic plane.
APART: Final = frozenset({"trans-thalamic plane", "trans-cerebellar plane", "trans-ventricular plane"})
DROPPED: Final = ("other", "others", "none", "no plane", "no_plane", "not a brain", "unknown", "background")

Fraction = Annotated[float, Field(gt=0, lt=1)]


class Parameters(BaseModel):
    """All that decides a build besides the sources.

    labels: task -> label names, see `LABELS`. vocabulary: file in place of the one that ships; use_vocabulary: false
    builds on raw words, for an ablation. drop: low-value classes, in any case. vg_component_rule: one box around all of
    a label (union), its largest part, or one for each. box_line_px: None = max(2, 0.4 % of the longer side).
    draw_stage: the box is drawn on the native image, or after it was resized to `image_size` (longer side; None =
    native). n_options: 0 = all labels of the pool. distractor_pool: of the same task and source, filled up from the
    task where it is too small; of the task; or of all tasks. shuffle: by hash of question and random_state, fixed
    (sorted), or circular: every question k times, once in each rotation. held_out: sources wholly in the test, besides
    the small ones. templates: prompt versions, one is drawn for each question. prompts: folder of own prompt versions
    (`VERSION/pi.txt`, …), which `run --prompts` needs too for varied questions. on_overlap: what happens where a
    patient or an image lies in train and test: refuse, or drop the questions of the train part. vl_answer: box or
    point. ms_range: declared range of a measurement in mm.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: tuple[Literal["PI", "VC", "FO", "CD", "VG", "VL", "MS"], ...] = Field(default=TASKS, min_length=1)
    labels: dict[str, tuple[str, ...]] = Field(default_factory=lambda: dict(LABELS))
    vocabulary: str | None = None
    use_vocabulary: bool = True
    overlaps: tuple[tuple[str, ...], ...] = OVERLAPS
    drop: tuple[str, ...] = DROPPED
    vg_component_rule: Literal["union", "largest", "each"] = "union"
    vg_min_box_side_px: int = Field(default=8, ge=1)
    vg_pad_px: int = Field(default=0, ge=0)
    box_line_px: int | None = Field(default=None, ge=1)
    box_rgb: tuple[int, int, int] = (255, 0, 0)
    box_antialias: bool = False
    box_side: Literal["outward", "inward"] = "outward"
    draw_stage: Literal["native", "after"] = "native"
    image_size: int | None = Field(default=None, ge=32)
    n_options: dict[str, int] = Field(default_factory=lambda: {"PI": 4, "VC": 2, "FO": 4, "CD": 3, "VG": 4})
    distractor_pool: Literal["source", "task", "global"] = "source"
    shuffle: Literal["permutation", "fixed", "circular"] = "permutation"
    random_state: int = 0
    small_source_max_images: int = Field(default=300, ge=0)
    test_fraction: Fraction = 0.25
    held_out: tuple[str, ...] = ()
    templates: tuple[str, ...] = Field(default=("1",), min_length=1)
    prompts: str | None = None
    on_overlap: Literal["refuse", "drop"] = "refuse"
    vl_answer: Literal["box", "point"] = "box"
    ms_range: tuple[float, float] = (10.0, 450.0)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if unknown := sorted(set(self.labels) - set(LABELS)):
            raise ValueError(f"labels: no task '{unknown[0]}' with labels; known: {', '.join(LABELS)}")
        if unknown := sorted(set(self.n_options) - set(CHOICE_TASKS)):
            raise ValueError(f"n_options: no task '{unknown[0]}' with options; known: {', '.join(CHOICE_TASKS)}")
        if any(count == 1 or not 0 <= count <= 26 for count in self.n_options.values()):
            raise ValueError("n_options: from 2 to 26, or 0 for all")
        if any(not 0 <= part <= 255 for part in self.box_rgb):
            raise ValueError("box_rgb: parts from 0 to 255")
        if not self.ms_range[0] < self.ms_range[1]:
            raise ValueError("ms_range: low below high")
        if self.draw_stage == "after" and self.image_size is None:
            raise ValueError("draw_stage: 'after' needs an image_size")
        # Parameters that a file leaves out of a mapping keep their defaults.
        object.__setattr__(self, "labels", {**LABELS, **self.labels})
        object.__setattr__(self, "n_options", {"PI": 4, "VC": 2, "FO": 4, "CD": 3, "VG": 4, **self.n_options})
        return self


def make_parameters(given: Parameters | dict[str, Any] | Path | str | None) -> Parameters:
    """Return checked parameters from a mapping, a YAML file, or nothing.

    Raises:
        BadInput: unreadable, an unknown name or a wrong value; the line names it.

    >>> make_parameters({"n_options": {"PI": 6}}).n_options["VG"]
    4
    """
    file: Path | None = None
    if isinstance(given, Parameters):
        return given
    if isinstance(given, (str, Path)):
        file = Path(given)
        try:
            given = yaml.safe_load(file.read_text("utf-8"))
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", file=file) from error
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"not YAML ({' '.join(str(error).split())})", file=file) from error
        if not isinstance(given, dict):
            raise BadInput("not a mapping", file=file, fix="write one `parameter: value` a line")
    try:
        return Parameters.model_validate(given or {})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(Parameters.model_fields)
            raise BadInput("no such parameter", file=file, field=field, fix=f"known: {known}") from error
        why = first["msg"].removeprefix("Value error, ")
        raise BadInput(why, file=file, field=field or None, fix="see docs/fetal-gauge.md") from error
