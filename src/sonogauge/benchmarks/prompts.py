"""Prompts: text files with a version, rendered from named variables.

`benchmarks/<name>/prompts/<version>/<file>.txt` holds the whole text of one prompt: the role line, the instruction, and
on the last line `{answer_format}`, which the answer form fills so that the options equal those of the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, NULL, AnswerSpec
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario
from sonogauge.benchmarks.vocabulary import is_missing

ANSWER_FORMAT: Final = "answer_format"

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def unescape(text: str) -> str:
    r"""Undo the escapes of foreign prompts: an escaped underscore, and line breaks written as two characters.

    >>> unescape(r"of the {anatomy\_location}.\nAnswer:")
    'of the {anatomy_location}.\nAnswer:'
    """
    return text.replace("\\_", "_").replace("\\r\\n", "\n").replace("\\n", "\n")


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders of a template, each once, in order.

    >>> placeholders("{anatomy}, {structure}, {anatomy}")
    ('anatomy', 'structure')
    """
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


def render(template: str, variables: Mapping[str, str]) -> str:
    """Fill the named placeholders of a template, once: a value is never read as a template.

    Variables without a placeholder are allowed. Raises BadInput for a placeholder without a variable, a brace that
    belongs to no placeholder, and a value that is empty, `nan` or looks like a placeholder itself.

    >>> render("An image of the {anatomy}.", {"anatomy": "breast", "structure": ""})
    'An image of the breast.'
    """
    names = placeholders(template)
    if re.search(r"[{}]", _PLACEHOLDER.sub("", template)):
        raise BadInput("the prompt has a brace outside a placeholder", fix="write placeholders as {name}")
    for name in names:
        if name not in variables:
            raise BadInput(
                f"the prompt asks for an unknown variable '{name}'", fix="known: " + (", ".join(variables) or "none")
            )
        if is_missing(variables[name]):
            raise BadInput(f"the prompt variable is empty or missing ('{variables[name]}')", field=name)
        if _PLACEHOLDER.search(variables[name]):
            raise BadInput(f"the prompt variable holds a placeholder ('{variables[name]}')", field=name)
    return _PLACEHOLDER.sub(lambda hit: variables[hit[1]], template)


def prompt_id(bench: str, name: str, version: str) -> str:
    """Return the id stored with each item, such as "u2bench/dd-23@1"; `load_prompt` finds the text again.

    >>> prompt_id("u2bench", "dd-23", "1")
    'u2bench/dd-23@1'
    """
    return f"{bench}/{name}@{version}"


def find_prompt(bench: str, name: str, version: str, folder: Path | str | None = None) -> Traversable:
    """Return the file of a prompt: `<name>.txt`, else that of the whole task ("ll-23" -> `ll.txt`).

    folder: takes the place of the `prompts` folder that ships with the benchmark; it holds one folder per version.
    Raises BadInput for a name that is no plain file name and for a prompt that is not there.
    """
    for value, field in ((bench, "benchmark"), (name, "prompt"), (version, "prompt version")):
        if not _NAME.fullmatch(value):
            raise BadInput(f"not a plain name: '{value}'", field=field, fix="use letters, digits, '_', '-', '.'")
    base: Traversable = Path(folder) if folder is not None else files("sonogauge.benchmarks") / bench / "prompts"
    for stem in dict.fromkeys((name, name.partition("-")[0])):
        file = base / version / f"{stem}.txt"
        if file.is_file():
            return file
    raise BadInput(
        f"no prompt '{name}' of version '{version}'", file=str(base), fix=f"write {version}/{name}.txt in that folder"
    )


def load_prompt(bench: str, name: str, version: str, folder: Path | str | None = None) -> str:
    """Return the text of a prompt without its final line break; arguments as in `find_prompt`.

    Raises:
        BadInput: no such prompt, or one that is not UTF-8 text.

    >>> load_prompt("u2bench", "ll-23", "1").splitlines()[0]
    'You are a radiologist reading an ultrasound image of the {anatomy}.'
    """
    file = find_prompt(bench, name, version, folder)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the prompt is not UTF-8 text", file=str(file), fix="save it as UTF-8") from error
    return text.replace("\r\n", "\n").rstrip("\n")


def answer_for(spec: BenchmarkSpec, scenario: Scenario) -> AnswerSpec:
    """Return what an item of a scenario accepts; a number that allows it offers the word `null`.

    Raises BadInput if the scenario's task is not one of the benchmark.
    """
    task = spec.tasks.get(scenario.task)
    if task is None:
        raise BadInput(f"no task '{scenario.task}' in {spec.name}", fix="known: " + ", ".join(spec.tasks))
    tolerance = scenario.tolerance
    if tolerance is None and task.form == "number":
        tolerance = spec.parameters.get("tolerance")
    return AnswerSpec(
        form=task.form,
        options=(*scenario.options, NULL) if scenario.null_allowed else scenario.options,
        low=scenario.low,
        high=scenario.high,
        unit=scenario.unit,
        tolerance=tolerance,
    )


def render_question(
    spec: BenchmarkSpec,
    scenario: Scenario,
    answer: AnswerSpec,
    variables: Mapping[str, str],
    *,
    version: str | None = None,
    folder: Path | str | None = None,
) -> tuple[str, str]:
    """Return the question of an item and the id of its prompt.

    variables: `anatomy`, and by task `structure`, `keypoint`, `pixel_size_mm`; only those that the prompt names matter.
    version, folder: another prompt version, perhaps of the user's own folder. Raises BadInput as `render` does.
    """
    version = spec.prompt_version if version is None else version
    template = load_prompt(spec.name, scenario.prompt, version, folder)
    identity = prompt_id(spec.name, scenario.prompt, version)
    try:
        question = render(template, {**variables, ANSWER_FORMAT: FORMS.load(answer.form).ask(answer)})
    except BadInput as error:
        raise BadInput(f"prompt {identity}: {error}") from error
    return question, identity
