"""The check of a benchmark's prompts: one named check for each of the eleven faults seen in public prompt sets.

Run as `python -m sonogauge.benchmarks.lint [BENCHMARK]`: one line per finding, exit code 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.benchmarks.prompts import (
    ANSWER_FORMAT,
    answer_for,
    find_prompt,
    load_prompt,
    placeholders,
    render,
)
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, load_spec
from sonogauge.benchmarks.vocabulary import DIAGNOSIS, is_missing, map_anatomy, map_keypoint, map_structure

FAULTS: Final[dict[int, str]] = {
    1: "unfilled placeholder",
    2: "missing value as a word",
    3: "diagnosis in the anatomy",
    4: "generic target",
    5: "several structures, one place",
    6: "conflated outcomes",
    7: "state of the image given away",
    8: "unit or range",
    9: "example in the prompt",
    10: "broken text",
    11: "prompt of another scenario",
}

# What rows have been seen to hold where an anatomy or a target belongs.
_FOREIGN_ANATOMY: Final = ("", "nan", "malignant breast cancer", "{anatomy}")
_FOREIGN_TARGET: Final = ("", "nan", "keypoint", "{'keypoint': [0.5, ", "malignant tumor")

# "between 0.3 and 1.5", "from 0 to 85", "0-85".
_RANGE: Final = re.compile(r"(\d+(?:\.\d+)?)(?: and | to | ?- ?)(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Prompt:
    """The prompt of a scenario, rendered with one set of values a row can lead to."""

    spec: BenchmarkSpec
    scenario: Scenario
    answer: AnswerSpec
    template: str
    values: Mapping[str, str]
    text: str
    form_text: str

    @property
    def role(self) -> str:
        """The first line, part 1."""
        return self.text.split("\n", 1)[0]

    @property
    def body(self) -> str:
        """Parts 1 and 2: everything before the output format."""
        return self.text.removesuffix(self.form_text)

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """(option, definition) of each line "- option; option: definition"."""
        found = []
        for line in self.body.split("\n"):
            names, colon, text = line.removeprefix("- ").partition(": ")
            if line.startswith("- ") and colon:
                found += [(name, text.strip()) for name in names.split("; ")]
        return found


def lint_prompts(spec: BenchmarkSpec, *, version: str | None = None, folder: Path | str | None = None) -> list[str]:
    """Return one line "fault N (name): TASK/DATASET: what" for each fault in the prompts of all scenarios.

    Each prompt is rendered with every set of values that a row can lead to, junk included, and checked as it would be
    sent. version, folder: another prompt version, as in `load_prompt`.
    """
    version = spec.prompt_version if version is None else version
    found: list[tuple[int, str, str]] = []
    users: dict[str, dict[str, str]] = defaultdict(dict)  # text -> pair -> file
    for scenario in spec.scenarios:
        pair = f"{scenario.task}/{scenario.dataset}"
        found += [(11, pair, what) for what in _wrong_name(spec, scenario, version, folder)]
        try:
            template = load_prompt(spec.name, scenario.prompt, version, folder)
            answer = answer_for(spec, scenario)
        except BadInput as error:
            found.append((11, pair, str(error)))
            continue
        users[template][pair] = find_prompt(spec.name, scenario.prompt, version, folder).name
        found += [(number, pair, what) for number, what in _check_scenario(spec, scenario, answer, template)]
    for files in users.values():
        names = sorted(set(files.values()))
        if len(names) > 1:
            found += [(11, pair, f"the same text in {' and '.join(names)}") for pair in files]
    return [
        f"fault {number} ({FAULTS[number]}): {pair}: {what}"
        for number, pair, what in sorted(dict.fromkeys(found), key=lambda one: one[0])
    ]


def _wrong_name(spec: BenchmarkSpec, scenario: Scenario, version: str, folder: Path | str | None) -> Iterator[str]:
    own = f"{scenario.task}-{scenario.dataset}".lower()
    if scenario.prompt != own:
        yield f"prompt '{scenario.prompt}' instead of '{own}'"
        return
    try:
        file = find_prompt(spec.name, own, version, folder)
    except BadInput:
        return  # reported where the text is loaded
    if file.name != f"{own}.txt" and spec.tasks[scenario.task].form != "place":
        yield f"{file.name} is shared, but only prompts for a place say the same for all data sets"


def _check_scenario(
    spec: BenchmarkSpec, scenario: Scenario, answer: AnswerSpec, template: str
) -> Iterator[tuple[int, str]]:
    if _asks_point(scenario):
        unnamed = [key for key in _keys(scenario) if map_keypoint(key, scenario) is None]
        yield from ((4, f"'{key}' names no point") for key in unnamed)
        if len(unnamed) == len(_keys(scenario)):
            yield 4, "no key point has a name"
    names = placeholders(template)
    form_text = FORMS.load(answer.form).ask(answer)
    for values in _values(spec, scenario):
        missing = [name for name in names if name in values and is_missing(values[name])]
        if missing:
            yield 2, f"no value for {', '.join(missing)}"
            continue
        try:
            text = render(template, {**values, ANSWER_FORMAT: form_text})
        except BadInput as error:
            yield 1, str(error)
            continue
        prompt = Prompt(spec, scenario, answer, template, values, text, form_text)
        for number, check in CHECKS.items():
            for what in check(prompt):
                yield number, what


def _values(spec: BenchmarkSpec, scenario: Scenario) -> Iterator[dict[str, str]]:
    """Every distinct set of values: what good rows and junk rows of a scenario lead to."""
    keys = _keys(scenario)
    anatomies = dict.fromkeys(map_anatomy(raw, scenario, spec) for raw in (scenario.anatomy, *_FOREIGN_ANATOMY))
    targets: list[dict[str, str]] = [{}]
    if _asks_point(scenario):
        points = dict.fromkeys(map_keypoint(raw, scenario) for raw in (*keys, *_FOREIGN_TARGET))
        targets = [{"keypoint": point} for point in points if point is not None]
    elif scenario.structure:
        structures = dict.fromkeys(map_structure(raw, scenario) for raw in ("", "nan", *keys))
        targets = [{"structure": one} for one in structures]
    pixel = {"pixel_size_mm": "0.125"} if scenario.extra.get("pixel_size_keys") else {}
    for anatomy in anatomies:
        for target in targets:
            yield {"anatomy": anatomy, **target, **pixel}


def _keys(scenario: Scenario) -> list[str]:
    keys = scenario.extra.get("keys")
    return [str(key) for key in keys] if isinstance(keys, Mapping) else []


def _asks_point(scenario: Scenario) -> bool:
    return scenario.extra.get("column") == "keypoints"


def _placeholder(prompt: Prompt) -> Iterator[str]:
    if re.search(r"[{}]", prompt.body):
        yield "a brace is left in the text"
    for name in ("structure", "keypoint", "pixel_size_mm"):
        if name in prompt.values and name not in placeholders(prompt.template):
            yield f"the prompt never uses {{{name}}}"


def _missing_word(prompt: Prompt) -> Iterator[str]:
    if re.search(r"\bnan\b", prompt.body, re.IGNORECASE):
        yield "the word nan"
    if re.search(r"\b(?:of the|structure:|point:) +(?:none|null)?[.,;]", prompt.body):
        yield "nothing stands where a name belongs"


def _diagnosis(prompt: Prompt) -> Iterator[str]:
    for where, words in (("role line", prompt.role), *prompt.values.items()):
        hit = DIAGNOSIS.search(words)
        if hit:
            yield f"'{hit[0]}' in the {where}"


def _generic_target(prompt: Prompt) -> Iterator[str]:
    if not _asks_point(prompt.scenario):
        return
    if map_keypoint(prompt.values["keypoint"], prompt.scenario) is None:
        yield f"'{prompt.values['keypoint']}' names no point"
    if re.search(r"\b(?:the|this) key ?points?\b", prompt.body, re.IGNORECASE):
        yield "the prompt speaks of a key point without its name"


def _several(prompt: Prompt) -> Iterator[str]:
    if prompt.answer.form != "place":
        return
    if re.search(r"[\[\],;/]| or ", prompt.values.get("structure", "")):
        yield f"the structure is a list: '{prompt.values['structure']}'"
    if re.search(r"\b(?:structures|each|every|all of|all the|organs)\b", prompt.body, re.IGNORECASE):
        yield "the prompt asks for several structures"


def _conflated(prompt: Prompt) -> Iterator[str]:
    if prompt.answer.form != "choice":
        return
    by_text: dict[str, set[str]] = defaultdict(set)
    for line in prompt.body.split("\n"):
        names, colon, text = line.removeprefix("- ").partition(": ")
        if line.startswith("- ") and colon:
            by_text[" ".join(re.findall(r"\w+", text.casefold()))].add(names)
    for names_of_text in by_text.values():
        if len(names_of_text) > 1:
            yield f"the same meaning for {' and '.join(sorted(names_of_text))}"
    for name in sorted({name for name, _ in prompt.definitions} - set(prompt.answer.options)):
        yield f"an outcome that is no option: '{name}'"
    if len(prompt.answer.options) == 2 and re.search(r"\b(?:grade|stage|degree)\b", prompt.body, re.IGNORECASE):
        yield "asks for a grade, but offers two options"


def _given_away(prompt: Prompt) -> Iterator[str]:
    options = " ".join(prompt.answer.options).casefold()
    if prompt.answer.form == "choice" and "abnormal" not in options and "abnormal" in prompt.text.casefold():
        yield "the prompt calls the image abnormal"


def _unit(prompt: Prompt) -> Iterator[str]:
    if prompt.answer.form != "number":
        return
    millimetres = re.search(r"\b(?:mm|cm|millimet\w+|centimet\w+)\b", prompt.text)
    percent = re.search(r"%|\bpercent", prompt.text)
    wrong, right = (millimetres, percent) if prompt.answer.unit == "%" else (percent, millimetres)
    if wrong:
        yield f"'{wrong[0]}' in a question that asks for {prompt.answer.unit}"
    if not right:
        yield f"the prompt does not say that the value is in {prompt.answer.unit}"
    ends = (prompt.answer.low, prompt.answer.high)
    stated = [(float(low), float(high)) for low, high in _RANGE.findall(prompt.text)]
    if ends not in stated or len(set(stated)) > 1:
        yield f"the prompt must state the range {ends[0]} to {ends[1]} and no other, not {stated}"
    if prompt.answer.unit == "mm" and "pixel_size_mm" not in placeholders(prompt.template):
        scenario = prompt.scenario
        if scenario.determinable == "yes" or "pixel size" not in scenario.determinable_reason:
            yield "millimetres without a pixel size, and the scenario is not marked as a guess"
        if "pixel size is not given" not in prompt.body:
            yield "the prompt does not say that the pixel size is not given"


def _example(prompt: Prompt) -> Iterator[str]:
    if prompt.answer.form != "text":
        return
    hit = re.search(r"\b(?:examples?|for instance|e\.g\.|sample|template)|[\"\u201c\u201d]", prompt.body, re.IGNORECASE)
    if hit:
        yield f"'{hit[0]}': an example lets a model copy a reference"


def _broken(prompt: Prompt) -> Iterator[str]:
    body, template = prompt.body, prompt.template
    if "\\" in prompt.text:
        yield "an escape is left in the text"
    if re.search(r"[\[\]\"\u201c\u201d\u2018`]|(?<![A-Za-z])'|'(?![A-Za-z])", body):
        yield "quotes or list syntax in the text"
    lines = template.split("\n")
    if len(lines) < 3 or not lines[0].startswith("You are ") or lines[-1] != f"{{{ANSWER_FORMAT}}}":
        yield f"role, instruction and {{{ANSWER_FORMAT}}} must be parts on lines of their own"
    if template.count(f"{{{ANSWER_FORMAT}}}") != 1 or any(line != line.strip() or not line for line in lines):
        yield "a part is doubled, empty or padded"
    for option in prompt.answer.options:
        if not re.search(rf"(?<!\w){re.escape(option)}(?!\w)", prompt.form_text):
            yield f"option '{option}' is not offered with its exact text"
    if prompt.answer.form == "choice":
        defined = Counter(name for name, text in prompt.definitions if text)
        for option in prompt.answer.options:
            if defined[option] != 1:
                yield f"option '{option}' is defined {defined[option]} times"


def _foreign_options(prompt: Prompt) -> Iterator[str]:
    defined = {name for name, _ in prompt.definitions}
    if prompt.answer.form == "choice" and not defined & set(prompt.answer.options):
        yield "the prompt defines none of this scenario's options"


CHECKS: Final[dict[int, Callable[[Prompt], Iterator[str]]]] = {
    1: _placeholder,
    2: _missing_word,
    3: _diagnosis,
    4: _generic_target,
    5: _several,
    6: _conflated,
    7: _given_away,
    8: _unit,
    9: _example,
    10: _broken,
    11: _foreign_options,
}


def main(names: list[str]) -> int:
    """Print the findings of the named benchmarks; return 1 if there is any, 2 for an unknown name, else 0."""
    found: list[str] = []
    for name in names or ["u2bench"]:
        try:
            found += [f"{name}: {line}" for line in lint_prompts(load_spec(name))]
        except BadInput as error:
            print(error, file=sys.stderr)
            return 2
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
