"""A benchmark as data: what `benchmark.yaml` may say, checked when it is loaded.

A built benchmark carries its own copy (`benchmark.json`), so that scoring needs nothing but the folder.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput

SPEC_FILE = "benchmark.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Task(_Strict):
    """One task: its answer form and what is counted on it. The first metric is the headline."""

    title: str
    form: str
    metrics: tuple[str, ...] = Field(min_length=1)
    folder: str = ""

    @property
    def headline(self) -> str:
        """The metric that enters composites and verdicts."""
        return self.metrics[0]


class Scenario(_Strict):
    """A task on a data set, with its answer options, range, prompt and what one image can tell."""

    task: str
    dataset: str
    source: str = ""
    rows: int | None = None
    options: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    unit: str = ""
    tolerance: float | None = None
    null_allowed: bool = False
    anatomy: str = ""
    structure: str = ""
    determinable: Literal["yes", "partly", "no"] = "yes"
    determinable_reason: str = ""
    prompt: str = ""
    positive: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    extra: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """(task, dataset)."""
        return self.task, self.dataset


class ScenarioSet(_Strict):
    """A named choice of scenarios; pairs are written "TASK/DATASET"."""

    title: str
    without: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


class Composite(_Strict):
    """A total over tasks: the stated function of its parts.

    weights: name of a weight table. level: task value that enters ("macro" over datasets or by "cases").
    skill: rescale each part by the best non-reading baseline.
    """

    title: str
    weights: str
    level: Literal["macro", "cases"] = "macro"
    skill: bool = False
    formula: str


class BenchmarkSpec(_Strict):
    """A whole benchmark as data."""

    name: str
    version: str
    title: str
    citation: str = ""
    licence: str = ""
    redistributable: bool = False
    simulated: bool = False
    notices: tuple[str, ...] = ()
    prompt_version: str = "1"
    tasks: dict[str, Task]
    scenarios: tuple[Scenario, ...]
    sets: dict[str, ScenarioSet] = Field(default_factory=dict)
    default_set: str = "all"
    weights: dict[str, dict[str, float]] = Field(default_factory=dict)
    composites: dict[str, Composite] = Field(default_factory=dict)
    protocols: dict[str, str] = Field(default_factory=dict)  # besides strict: name -> "package.module:object"
    no_published: str = ""  # why there is no published protocol
    parameters: dict[str, Any] = Field(default_factory=dict)  # declared parameters with their defaults

    def scenario(self, task: str, dataset: str) -> Scenario | None:
        """Return the scenario of a pair, or None."""
        return next((one for one in self.scenarios if one.key == (task, dataset)), None)

    def scenario_set(self, name: str) -> tuple[Scenario, ...]:
        """Return the scenarios of a named set; raise BadInput for an unknown name."""
        rule = self.sets.get(name)
        if rule is None:
            raise BadInput(
                f"no scenario set '{name}' in {self.name}", fix="known: " + ", ".join([*self.sets, "present"])
            )
        chosen = []
        for one in self.scenarios:
            pair = f"{one.task}/{one.dataset}"
            if (not rule.only or pair in rule.only) and pair not in rule.without:
                chosen.append(one)
        return tuple(chosen)


def known_benchmarks() -> list[str]:
    """Return the names of the benchmarks that ship with the package, sorted."""
    return sorted(one.name for one in files("sonogauge.benchmarks").iterdir() if (one / "benchmark.yaml").is_file())


@lru_cache
def load_spec(name: str) -> BenchmarkSpec:
    """Load the specification of a benchmark that ships with the package; raise BadInput for an unknown name."""
    if name not in known_benchmarks():
        raise BadInput(f"no benchmark '{name}'", fix="known: " + ", ".join(known_benchmarks()))
    file = files("sonogauge.benchmarks") / name / "benchmark.yaml"
    return BenchmarkSpec.model_validate(yaml.safe_load(file.read_text("utf-8")))


def read_spec(folder: Path | str) -> BenchmarkSpec:
    """Read the specification that a built benchmark carries.

    Raises:
        BadInput: no benchmark folder, or a specification that does not read.
    """
    file = Path(folder) / SPEC_FILE
    if not file.is_file():
        raise BadInput(f"no {SPEC_FILE}, so not a benchmark folder", file=folder)
    try:
        return BenchmarkSpec.model_validate(json.loads(file.read_text("utf-8")))
    except (ValueError, ValidationError) as error:
        raise BadInput(
            f"broken benchmark specification ({error})", file=file, fix="build the benchmark again"
        ) from error


def dump_spec(spec: BenchmarkSpec) -> str:
    """Return the JSON of a specification; the order of tasks and scenarios is kept, since tables follow it."""
    return json.dumps(spec.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
