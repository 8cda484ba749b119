"""The shipped prompts have none of the eleven faults, and each fault is found by the check of its number."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from sonogauge.answers import FORMS
from sonogauge.benchmarks import lint
from sonogauge.benchmarks.lint import CHECKS, FAULTS, lint_prompts, main
from sonogauge.benchmarks.spec import BenchmarkSpec, load_spec

pytestmark = pytest.mark.part("prompts")
SPEC = load_spec("u2bench")


def test_shipped_prompts_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint_prompts(SPEC) == []
    assert main([]) == 0
    assert capsys.readouterr().out == ""


def test_every_file_belongs_to_a_scenario() -> None:
    names = {one.name for one in (files("sonogauge.benchmarks") / "u2bench" / "prompts" / "1").iterdir()}
    own = {f"{scenario.prompt}.txt" for scenario in SPEC.scenarios}
    assert names - own == {"ll.txt", "od.txt", "kd.txt"}
    assert len(names) == 35


def swap(name: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of a prompt file; it must change something."""

    def change(folder: Path) -> None:
        file = folder / "1" / f"{name}.txt"
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")

    return change


def copy(source: str, target: str) -> Callable[[Path], None]:
    return lambda folder: shutil.copyfile(folder / "1" / f"{source}.txt", folder / "1" / f"{target}.txt") and None


def of_spec(task: str, dataset: str, **changes: object) -> BenchmarkSpec:
    assert SPEC.scenario(task, dataset) is not None
    return SPEC.model_copy(
        update={
            "scenarios": tuple(
                one.model_copy(update=changes) if one.key == (task, dataset) else one for one in SPEC.scenarios
            )
        }
    )


FORMAT = "\n{answer_format}"


@pytest.mark.parametrize(
    ("number", "pair", "change"),
    [
        (1, "CVE/31", swap("cve-31", "{pixel_size_mm}", "{pixel size}")),
        (1, "CVE/31", swap("cve-31", "{pixel_size_mm}", "{pixel_size}")),
        (1, "CVE/31", swap("cve-31", "{pixel_size_mm} mm", "0.1 mm")),
        (1, "OD/31", swap("od", "{structure}", "the organ")),
        (2, "LL/64", swap("ll", "{anatomy}", "nan")),
        (3, "LL/23", swap("ll", "of the {anatomy}", "of the malignant {anatomy}")),
        (4, "KD/48", swap("kd", "this one anatomical point: {keypoint}", "this keypoint, {keypoint}")),
        (5, "OD/09", swap("od", "this one structure", "each of these structures")),
        (6, "VRA/10", swap("vra-10", "huvb: head up, back", "huvb: head down, back")),
        (6, "DD/57", swap("dd-57", "Decide whether features", "Give the grade in which features")),
        (6, "DD/32", swap("dd-32", "- benign:", "- normal thyroid: no nodule is seen\n- benign:")),
        (7, "VRA/74is_visible", swap("vra-74is_visible", "in this image", "in this abnormal image")),
        (8, "CVE/18", swap("cve-18", "best estimate in percent", "best estimate; leave out mm")),
        (8, "CVE/50", swap("cve-50", "The pixel size is not given, so give your best estimate.", "Take care.")),
        (8, "CVE/27", swap("cve-27", "The pixel size", "Expect 0.3 to 15 mm. The pixel size")),
        (8, "CVE/57", swap("cve-57", "Give a", "Expect 0-100. Give a")),
        (9, "RG/39", swap("rg-39", "Report only", "Example: The liver is of normal size.\nReport only")),
        (9, "CG/10", swap("cg-10", "Say only", 'Like "fetal head, back in front".\nSay only')),
        (10, "VRA/03", swap("vra-03", "- fetal femur", "- 'fetal femur")),
        (10, "DD/40", swap("dd-40", "match the category", "match the category ['2', '3']")),
        (10, "VRA/50", swap("vra-50", "- none: the image holds", "The image holds")),
        (10, "RG/39", swap("rg-39", FORMAT, " {answer_format}")),
        (10, "CG/44", swap("cg-44", "\nSay only", "\\nSay only")),
        (10, "CG/44", swap("cg-44", "A-lines", "A\\_lines")),
        (10, "DD/21", swap("dd-21", "- benign", "- Benign")),
        (11, "DD/25", copy("dd-32", "dd-25")),
        (11, "VRA/18", copy("vra-69", "vra-18")),
        (11, "VRA/18", lambda folder: (folder / "1" / "vra-18.txt").unlink()),
    ],
)
def test_a_fault_in_a_file_is_found(number: int, pair: str, change: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    shutil.copytree(str(files("sonogauge.benchmarks") / "u2bench" / "prompts"), folder)
    assert lint_prompts(SPEC, folder=folder) == []
    change(folder)
    found = lint_prompts(SPEC, folder=folder)
    assert any(line.startswith(f"fault {number} ({FAULTS[number]}): {pair}: ") for line in found), found
    assert found == lint_prompts(SPEC, folder=folder)


@pytest.mark.parametrize(
    ("number", "pair", "spec"),
    [
        (2, "LL/64", of_spec("LL", "64", anatomy="nan")),
        (2, "OD/31", of_spec("OD", "31", structure="nan")),
        (3, "LL/23", of_spec("LL", "23", anatomy="malignant breast cancer")),
        (3, "LL/23", SPEC.model_copy(update={"parameters": {"anatomies": {"malignant breast cancer": []}}})),
        (4, "KD/48", of_spec("KD", "48", extra={"column": "keypoints", "keys": {"apex": "keypoint", "rim": "point"}})),
        (5, "OD/09", of_spec("OD", "09", structure="renal cortex, renal medulla")),
        (8, "CVE/50", of_spec("CVE", "50", determinable="yes", determinable_reason="")),
        (8, "CVE/31", of_spec("CVE", "31", unit="%")),
        (10, "DD/70", of_spec("DD", "70", options=("normal thyroid", "Benign", "Malignant"))),
        (11, "DD/23", of_spec("DD", "23", prompt="dd-25")),
        (11, "DD/21", of_spec("DD", "21", prompt="")),
    ],
)
def test_a_fault_in_the_registry_is_found(number: int, pair: str, spec: BenchmarkSpec) -> None:
    found = lint_prompts(spec)
    assert any(line.startswith(f"fault {number} ({FAULTS[number]}): {pair}: ") for line in found), found


def test_each_fault_has_a_check() -> None:
    assert sorted(CHECKS) == sorted(FAULTS) == list(range(1, 12))


def test_options_of_the_output_format_equal_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS.load("choice")
    broken = replace(form, ask=lambda answer: re.sub("4A", "4a", form.ask(answer)))
    monkeypatch.setitem(FORMS._loaded, "choice", broken)
    assert [line for line in lint_prompts(SPEC) if line.startswith("fault 10")] == [
        "fault 10 (broken text): DD/40: option '4A' is not offered with its exact text"
    ]


def test_the_range_must_stand_in_the_output_format(monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS.load("number")
    monkeypatch.setitem(
        FORMS._loaded, "number", replace(form, ask=lambda answer: f"A number, or null, in {answer.unit}.")
    )
    found = lint_prompts(SPEC)
    assert len(found) == 5
    assert all(line.startswith("fault 8") and "must state the range" in line for line in found)


def test_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "no benchmark 'nothing'" in capsys.readouterr().err
    monkeypatch.setattr(lint, "load_spec", lambda name: of_spec("DD", "23", prompt="dd-25"))
    assert main(["u2bench"]) == 1
    assert "fault 11" in capsys.readouterr().out
