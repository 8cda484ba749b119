from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from tests.report.page.made import Made
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.report import report
from sonogauge.report.figures import write_figures
from sonogauge.report.page import Gallery, page_data

pytestmark = [pytest.mark.part("page"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def data(made: Made) -> dict:
    require_extra("figures", "matplotlib")
    found = page_data([made.bad], gallery=Gallery(cases=0))
    # A few cells are enough.
    return {**found, "choices": found["choices"][:1], "numbers": found["numbers"][:1], "tasks": found["tasks"][:2]}


def test_every_figure_comes_as_svg_and_png(data: dict, tmp_path: Path) -> None:
    written = write_figures(data, tmp_path / "figures")
    stems = {path.stem for path in written}
    assert {"total-synthetic_score", "task-DD", "heatmap-tasks"} <= stems
    assert {stem.partition("-")[0] for stem in stems} == {
        "total",
        "task",
        "heatmap",
        "differences",
        "confusion",
        "numbers",
    }
    assert {path.suffix for path in written} == {".svg", ".png"} and len(written) == 2 * len(stems)
    for path in written:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 200
        else:
            words = " ".join(ElementTree.parse(path).getroot().itertext())
            assert "simulated, not clinical" in words
    assert "<b>bad</b> & worse" in " ".join(
        ElementTree.parse(tmp_path / "figures" / "task-DD.svg").getroot().itertext()
    )


def test_same_data_same_bytes(data: dict, tmp_path: Path) -> None:
    one, other = (write_figures(data, tmp_path / name) for name in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_points_outside_the_declared_range_are_drawn() -> None:
    require_extra("figures", "matplotlib")
    from matplotlib.figure import Figure

    from sonogauge.report.figures import _Facts, _scatter

    page = {
        "strings": [""],
        "facts": {name: [] for name in ("line", "task", "dataset", "slice", "metric", "protocol")},
        "protocols": [{"name": "strict"}],
        "shown": "strict",
        "lines": [{"label": "m", "kind": "model"}],
    }
    cell = {"task": "CVE", "dataset": "31", "unit": "mm", "low": 100.0, "high": 350.0}
    figure = Figure()
    _scatter(_Facts(page), {**cell, "reference": [45.0, 200.0, 400.0], "models": {"0": [120.0, 90.0, 360.0]}}, "0")(
        figure
    )
    axes = figure.axes[0]
    assert axes.get_xlim()[0] <= 45 and axes.get_xlim()[1] >= 400
    assert axes.get_ylim()[0] <= 90 and axes.get_ylim()[1] >= 360


def test_a_file_in_the_way_is_bad_input(made: Made, tmp_path: Path) -> None:
    require_extra("figures", "matplotlib")
    (tmp_path / "f").write_text("x")
    with pytest.raises(BadInput, match="is a file"):
        report([made.bad], tmp_path / "page.html", figures=tmp_path / "f")
