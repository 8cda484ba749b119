"""Entity agreement of annotations with the re-check, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.benchmarks.medlesionvqa.made import annotation, write
from typer.testing import CliRunner

from sonogauge import BadInput
from sonogauge.analyses.entities import entity_agreement, entity_table
from sonogauge.benchmarks.medlesionvqa.annotations import Annotation, read_annotations
from sonogauge.benchmarks.medlesionvqa.vocabulary import load_vocabularies
from sonogauge.cli import app

pytestmark = pytest.mark.part("rater agreement")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[Annotation]:
    root = tmp_path_factory.mktemp("entities")
    file = write(root / "a.jsonl", [annotation(root, number) for number in range(6)])
    return read_annotations(file, load_vocabularies())


def test_an_annotation_agrees_with_itself(given: list[Annotation]) -> None:
    for one in entity_agreement(given, given):
        assert one.precision.value == one.recall.value == 1.0
        assert one.shared == one.given == one.checked


def test_what_is_missed_costs_recall_and_what_is_too_much_precision(given: list[Annotation]) -> None:
    checked = [one.model_copy(update={"lesions": one.lesions[:1]}) if at == 0 else one for at, one in enumerate(given)]
    found = {one.layer: one for one in entity_agreement(given, checked)}
    lesions = found["lesion"]
    assert (lesions.shared, lesions.given, lesions.checked) == (11, 12, 11)
    assert lesions.precision.value == pytest.approx(11 / 12) and lesions.recall.value == 1.0
    back = {one.layer: one for one in entity_agreement(checked, given)}
    assert back["lesion"].recall.value == pytest.approx(11 / 12) and back["lesion"].precision.value == 1.0
    assert found["body part"].precision.value == 1.0 and found["disease"].shared == 12
    every = found["all"]
    assert every.given == sum(found[layer].given for layer in ("body part", "lesion", "attribute", "disease"))
    assert [row["layer"] for row in entity_table(list(found.values()))["rows"]][-1] == "all"


def test_an_image_that_was_not_checked_is_named(given: list[Annotation]) -> None:
    with pytest.raises(BadInput, match="image5 was annotated but not checked"):
        entity_agreement(given, given[:-1])


def test_the_command_compares_two_files(tmp_path: Path) -> None:
    rows = [annotation(tmp_path, number) for number in range(4)]
    write(tmp_path / "annotations.jsonl", rows)
    rows[0]["body_part"] = "back"
    write(tmp_path / "checked.jsonl", rows)
    arguments = ["analyse", str(tmp_path), "--analysis", "entities", "--against", str(tmp_path / "checked.jsonl")]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    found = {row["layer"]: row for row in document["tables"][0]["rows"]}
    assert (found["body part"]["shared"], found["body part"]["precision"]["value"]) == (3, 0.75)
    assert found["lesion"]["recall"]["value"] == 1.0
    # Two readers of one file need a second file, of the same images.
    write(tmp_path / "checked.jsonl", rows[1:])
    for wrong, what in ((arguments[:4], "name the re-checked ones"), (arguments, "image0 was annotated but not")):
        result = CliRunner().invoke(app, wrong)
        assert isinstance(result.exception, BadInput) and what in str(result.exception)
