"""The embedded default, small: build, run, score and report without data or key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.shared import ROOT

from sonogauge import BadInput, report
from sonogauge.demo import demo
from sonogauge.folders import Folder

pytestmark = [pytest.mark.part("demo"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    root = tmp_path_factory.mktemp("demo") / "out"
    return root, demo(root, seed=3, patients=16)


def test_the_reference_model_reads_images_and_the_oracle_is_perfect(made: tuple[Path, list[Path]]) -> None:
    reference, oracle = (json.loads(report([one], format="json")) for one in made[1])
    assert oracle["composites"]["synthetic_score"]["value"] == pytest.approx(1.0, abs=1e-6)
    best = max(one["DD"] for one in reference["baselines"].values())
    assert reference["tasks"]["DD"]["metrics"]["accuracy"]["value"] > best + 0.1
    assert 0.4 < reference["composites"]["synthetic_score"]["value"] < 0.999
    assert not any(name.startswith("u2") for name in reference["composites"])


def test_everything_says_that_it_is_simulated(made: tuple[Path, list[Path]]) -> None:
    root, _ = made
    text = (root / "report.md").read_text("utf-8")
    assert "Simulated, not clinical" in text
    assert "trained in-domain" in text.lower()
    assert all(row["provenance"] == "simulated" for row in Folder(root / "bench").rows("cases", ["provenance"]))


def test_runs_of_all_baselines_are_there(made: tuple[Path, list[Path]]) -> None:
    names = {path.name for path in (made[0] / "runs").iterdir()}
    assert names == {"random", "majority", "prior", "constant", "not-visible", "oracle", "reference"}


def test_again_replaces_its_own_folders_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "mine.txt").write_text("keep")
    with pytest.raises(BadInput, match="exists already"):
        demo(tmp_path, patients=16)
    assert (tmp_path / "bench" / "mine.txt").read_text() == "keep"


@pytest.mark.slow
def test_the_numbers_of_the_readme_and_of_the_docs_are_those_of_the_demo(tmp_path: Path) -> None:
    """Up to a few answers of the reference model, which differ with the versions of numpy and OpenCV."""
    found = json.loads(report([demo(tmp_path / "demo")[0]], format="json"))
    readme, docs = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/intervals.md"))
    rows = {
        line.split("|")[1].partition(",")[0].strip(): line for line in f"{readme}\n{docs}".splitlines() if "|" in line
    }
    for shown, told, scale, most in (
        (rows["reference/image-features"], found["composites"]["synthetic_score"], 1.0, 0.01),
        (rows["DD"], found["tasks"]["DD"]["metrics"]["accuracy"], 100.0, 2.5),
        (rows["CVE"], found["tasks"]["CVE"]["metrics"]["rmse_scaled"], 1.0, 0.004),
    ):
        quoted = re.search(r"([\d.]+)%? \[([\d.]+), ([\d.]+)\]", shown)
        assert quoted is not None
        for end, number in zip(("value", "low", "high"), quoted.groups(), strict=True):
            assert float(number) == pytest.approx(scale * told[end], abs=most), (shown, end)
    for name in ("prior", "random"):
        assert f"| {100 * found['baselines'][name]['DD']:.1f} % |" in rows[name]
