from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.models.segmenters.made_images import disc, grey_image
from tests.models.segmenters.test_drawing import make_cases
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.models.segmenters import load_segmenter
from sonogauge.models.segmenters.evaluate import Contender, evaluate_segmenters

pytestmark = pytest.mark.part("segmenters")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    masks = [disc((60, 80), 30 + 4 * number, 30, 10 + number) for number in range(4)]
    made = {f"c{number}": (grey_image(mask, 30, 150, 9), [("lesion", mask)]) for number, mask in enumerate(masks)}
    return make_cases(tmp_path / "cases", made)


def test_segmenters_are_compared_on_the_command_line(cases: Path) -> None:
    names = "box-fill@reference otsu@reference box-fill@fan"
    arguments = ["compare-segmenters", str(cases), "--segmenters", names, "--draws", "200"]
    found = CliRunner().invoke(app, [*arguments, "--json"])
    assert found.exit_code == 0, found.output
    rows = {(row["segmenter"], row["metric"]): row for row in json.loads(found.stdout)}
    assert rows["otsu (reference)", "iou"]["less_first"]["low"] > 0
    assert rows["box-fill (fan)", "dice"]["less_first"]["high"] < 0
    assert "otsu (reference)" in CliRunner().invoke(app, arguments).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare-segmenters", "CASES", "--segmenters", "otsu"],
        ["compare-segmenters", "CASES", "--segmenters", "otsu@text"],
        ["compare-segmenters", "CASES", "--segmenters", "nothing@fan"],
        ["compare-segmenters", "CASES", "--each", "pixel"],
        ["agent-grid", "CASES", "--out", "OUT"],
        ["agent-grid", "CASES", "--out", "OUT", "--switch", "top_k"],
        ["agent-grid", "CASES", "--out", "OUT", "--switch", "compose_style=neutral"],
        ["agent-grid", "CASES", "--out", "OUT", "--switch", "colour=red"],
        ["serve-segmenter", "otsu", "--port", "99999"],
        ["train-segmenter", "CASES", "--out", "OUT", "--epochs", "0"],
    ],
)
def test_wrong_arguments_are_bad_input(arguments: list[str], cases: Path, tmp_path: Path) -> None:
    places = {"CASES": str(cases), "OUT": str(tmp_path / "out")}
    found = CliRunner().invoke(app, [places.get(one, one) for one in arguments])
    assert isinstance(found.exception, BadInput), found.output
    assert "\n" not in str(found.exception)


@pytest.mark.parametrize("allowed", [False, True])
def test_private_cases_reach_no_segmenter_elsewhere_unasked(cases: Path, tmp_path: Path, allowed: bool) -> None:
    rows = Folder(cases).table("cases").to_pylist()
    with new_folder(tmp_path / "private") as folder:
        folder.table("cases").write([{**row, "private": True} for row in rows])
        folder.finish(Manifest(kind="cases", maker="test"))
    far = Far()
    found = [Contender(load_segmenter("box-fill"), "reference"), Contender(far, "reference")]
    if allowed:
        evaluate_segmenters(tmp_path / "private", found, allow_upload=True, draws=100)
    else:
        with pytest.raises(BadInput, match=r"private images would leave for https://far\.example\.org"):
            evaluate_segmenters(tmp_path / "private", found, draws=100)
    assert far.seen == 4 * allowed


class Far:
    """A segmenter on another machine that counts what it gets."""

    name, version, weights_id, licence, device, endpoint = "far", "1", "", "", "", "https://far.example.org"
    capabilities = frozenset({"box"})

    def __init__(self) -> None:
        self.seen = 0

    def segment(self, *arguments: Any, **named: Any) -> list[Any]:
        """Draw nothing."""
        self.seen += 1
        return []
