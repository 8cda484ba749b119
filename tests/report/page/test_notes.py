from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.report.made_scores import SPEC, beside, counts, model_rows, row, write_scores

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import load_spec
from sonogauge.folders import Manifest, new_folder
from sonogauge.report import report
from sonogauge.report.page import page_data

pytestmark = pytest.mark.part("page")

U2 = load_spec("u2bench")


def _u2_scores(out: Path, tasks: dict[str, float]) -> Path:
    rows = [row("vendor/m", code, "", U2.tasks[code].headline, 0.5) for code in U2.tasks]
    for code, value in tasks.items():
        rows.append(row("baseline/random", code, "", U2.tasks[code].headline, value, origin="baseline", chance=0.25))
    rows += [row("baseline/random", "", "", "u2", 0.2, origin="baseline"), row("vendor/m", "", "", "u2", 0.4)]
    return write_scores(out, "vendor/m", rows, U2, counts={**counts(), "partial": False, "missing": []})


def test_the_two_random_rows_stand_side_by_side(tmp_path: Path) -> None:
    ours = {"DD": 0.3, "VRA": 0.2, "LL": 0.1, "OD": 0.1, "KD": 0.1, "CVE": 0.4, "RG": 0.02, "CG": 0.03}
    found = page_data([_u2_scores(tmp_path / "s", ours)])["random"]
    total = next(one for one in found["rows"] if one["metric"] == "u2")
    assert (total["published"], total["computed"]) == (0.2125, 0.2)
    # Over the six tasks of the published row, by hand: weights sum to 0.88.
    published = (0.2 * 0.4143 + 0.2 * 0.3195 + 0.07 * 0.1118 + 0.27 * 0.068 + 0.07 * 0.112 + 0.07 * (1 - 0.5472)) / 0.88
    computed = (0.2 * 0.3 + 0.2 * 0.2 + 0.07 * 0.1 + 0.27 * 0.1 + 0.07 * 0.1 + 0.07 * 0.6) / 0.88
    assert found["shared"]["tasks"] == ["DD", "VRA", "LL", "OD", "KD", "CVE"]
    assert found["shared"]["published"] == pytest.approx(published)
    assert found["shared"]["computed"] == pytest.approx(computed)
    assert any("other data sets" in one for one in found["causes"])


def test_without_a_computed_random_row_there_is_nothing_to_explain(tmp_path: Path) -> None:
    rows = [row("vendor/m", "DD", "", "accuracy", 0.5)]
    assert page_data([write_scores(tmp_path / "s", "vendor/m", rows, U2)])["random"] is None


def test_published_rows_are_marked_and_keep_source_and_doubt(tmp_path: Path) -> None:
    data = page_data([write_scores(tmp_path / "s")])
    names, facts = data["strings"], data["facts"]
    published = [row for row, line in enumerate(facts["line"]) if data["lines"][line]["kind"] == "published"]
    assert published
    assert all(facts["protocol"][row] == -1 and facts["low"][row] is None for row in published)
    assert all(names[facts["source"][row]] == "public leaderboard, 2025" for row in published)
    assert "data set 27 rests on one reply" in {names[facts["doubt"][row]] for row in published}


def test_no_place_is_told_twice_where_both_protocols_were_scored(tmp_path: Path) -> None:
    rows = model_rows("vendor/m")
    both = [*rows, *({**one, "protocol": "published"} for one in rows), *beside()]
    facts = page_data([write_scores(tmp_path / "s", "vendor/m", both)])["facts"]
    keys = list(zip(*(facts[name] for name in ("protocol", "line", "task", "dataset", "slice", "metric")), strict=True))
    assert len(set(keys)) == len(keys) == len(both)


def test_partial_scores_stand_in_a_banner(tmp_path: Path) -> None:
    banners = page_data([write_scores(tmp_path / "s")])["banners"]
    assert [one["title"] for one in banners] == ["Simulated, not clinical", "Partial: vendor/model-1"]
    assert "RG/39" in banners[1]["text"]


def test_an_empty_run_makes_a_page_that_says_so(tmp_path: Path) -> None:
    rows = [row("vendor/m", "DD", "", "accuracy", None, n=0, valid=0, why_null="no items")]
    none = {"scored": 0, "valid": 0, "failures": {"strict": {}}, "verdicts": {}}
    scores = write_scores(tmp_path / "s", "vendor/m", rows, counts=none)
    assert "Nothing to show" in report([scores], tmp_path / "page.html", protocol="strict")


def test_no_computed_row_at_all_is_bad_input(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "s", rows=[row("baseline/random", "DD", "", "accuracy", 0.5, origin="baseline")])
    with pytest.raises(BadInput, match="no computed metrics"):
        report([scores], tmp_path / "page.html")


def test_scores_of_another_version_are_bad_input(tmp_path: Path) -> None:
    other = SPEC.model_copy(update={"version": "4"})
    folders = [write_scores(tmp_path / "a"), write_scores(tmp_path / "b", "vendor/b", model_rows("vendor/b"), other)]
    with pytest.raises(BadInput, match="report one benchmark and version"):
        report(folders, tmp_path / "page.html")


def _comparison(out: Path, version: str = "3", text: str = '{"differences": [], "models": ["a"]}') -> Path:
    with new_folder(out) as folder:
        (folder.path / "comparison.json").write_text(text, "utf-8")
        folder.finish(Manifest(kind="comparison", maker="test", name="toy", version=version))
    return out


def test_a_comparison_may_stand_among_the_scores(tmp_path: Path) -> None:
    difference = {
        "first": "a",
        "second": "b",
        "task": "DD",
        "d_difference": 0.1,
        "d_low": -0.1,
        "d_high": 0.3,
        "p": 0.2,
    }
    folder = _comparison(tmp_path / "c", text=json.dumps({"differences": [difference], "models": ["a", "b"]}))
    text = report([write_scores(tmp_path / "s"), folder], tmp_path / "page.html")
    assert '"d_low":-0.1' in text


@pytest.mark.parametrize(
    ("version", "text", "match"),
    [("4", "{}", "report one benchmark"), ("3", "[]", "not a comparison"), ("3", "{", "not a comparison")],
)
def test_a_wrong_comparison_is_bad_input(tmp_path: Path, version: str, text: str, match: str) -> None:
    folder = _comparison(tmp_path / "c", version, text)
    with pytest.raises(BadInput, match=match):
        report([write_scores(tmp_path / "s"), folder], tmp_path / "page.html")


def test_two_comparisons_are_one_too_many(tmp_path: Path) -> None:
    folders = [write_scores(tmp_path / "s"), _comparison(tmp_path / "c"), _comparison(tmp_path / "d")]
    with pytest.raises(BadInput, match="second comparison"):
        report(folders, tmp_path / "page.html")
