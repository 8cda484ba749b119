"""The public function: which folders it takes, which numbers it shows, and how several models stand side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.report.made_scores import SPEC, beside, counts, model_rows, row, write_scores

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.folders import Manifest, new_folder
from sonogauge.report import report, view_rows, view_scores
from sonogauge.report.cells import DASH, Table, View

pytestmark = pytest.mark.part("report")


def table(view: View, key: str) -> Table:
    return next(one for one in view.tables if one.key == key)


def texts(view: View, key: str) -> list[dict[str, str]]:
    """Rows of a table as header -> text without footnote marks."""
    one = table(view, key)
    return [{c.title: cell.plain for c, cell in zip(one.columns, cells, strict=True)} for cells in one.rows]


def test_headline_stands_beside_coverage_chance_baseline_and_verdict(tmp_path: Path) -> None:
    rows = texts(view_scores([write_scores(tmp_path / "s")]), "tasks")
    assert [one["Task"] for one in rows] == ["DD", "CVE", "RG"]  # the order of the benchmark
    assert rows[0] == {
        "Task": "DD",
        "Metric": "accuracy",
        "Value": "56.2% [51.2, 61.3]",
        "By cases": "61.0% [56.0, 66.0]",
        "Valid/n": "109/112",
        "Excl.": "1",
        "Sets": "2",
        "Least n": "12",
        "Chance": "50.0%",
        "Best non-reading": "59.0% majority",  # the oracle reads the reference, so it is none
        "Difference": "-2.8% [-10.0, 4.0]",
        "Verdict": "not distinguishable",
    }
    assert rows[1]["Value"] == "0.250 [0.200, 0.300]"
    assert rows[1]["Metric"] == "rmse_scaled ↓"
    assert rows[1]["Best non-reading"] == "0.400 random"


def test_a_null_shows_a_dash_and_its_reason(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s")])
    cell = table(view, "tasks").rows[2][2]
    assert cell.plain == DASH
    assert cell.notes == ("missing data sets: 39",)
    number = cell.marks[0]
    assert table(view, "tasks").footnotes[number - 1] == "missing data sets: 39"
    assert "missing data sets: 39" in report([tmp_path / "s"])


def test_a_value_that_is_not_finite_is_a_null(tmp_path: Path) -> None:
    rows = [row("m", "DD", "", "accuracy", float("nan")), row("m", "", "", "u2", float("inf"))]
    write_scores(tmp_path / "s", "m", rows)
    found = json.loads(report([tmp_path / "s"], format="json"))
    assert found["tasks"]["DD"]["metrics"]["accuracy"] == {
        "value": None,
        "low": None,
        "high": None,
        "signature": "accuracy|protocol:strict|bench:toy@3|agg:macro",
        "why_null": "the value is not a finite number",
    }
    assert found["composites"] == {"u2": {"value": None, "low": None, "high": None}}


def test_totals_print_formula_weights_and_the_determinable_part(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s")])
    assert texts(view, "totals")[0] == {
        "Total": "u2",
        "All scenarios": "0.2253 [0.1753, 0.2753]",
        "Determinable": "0.2400 [0.1900, 0.2900]",
        "n": "152",
    }
    notes = table(view, "totals").notes
    assert "u2 = sum of w_t d_t, d = accuracy, 1 - RMSE, BLEU-4" in notes
    assert "weights published: DD 0.5, CVE 0.3, RG 0.2" in notes


def test_few_groups_are_marked(tmp_path: Path) -> None:
    one = table(view_scores([write_scores(tmp_path / "s")]), "datasets")
    marked = {cells[1].text: cells[3].notes for cells in one.rows}
    assert marked == {"03": (), "21": ("fewer than 20 groups: unreliable",), "27": ("one group: no interval",)}


def test_failures_left_out_items_and_abstention(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s")])
    assert texts(view, "failures") == [
        {"Reason": "ambiguous", "Replies": "2", "Share": "1.3%"},
        {"Reason": "empty", "Replies": "3", "Share": "2.0%"},
    ]
    assert {(one["What"], one["State"], one["Items"]) for one in texts(view, "left_out")} == {
        ("excluded", "absent", "2"),
        ("excluded", "error", "1"),
        ("request", "ok", "150"),
        ("request", "truncated", "2"),
    }
    assert [one["Items"] for one in texts(view, "abstention")] == ["3", "10"]


def test_baselines_and_published_rows_stand_apart(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s")])
    assert texts(view, "baselines") == [
        {"Model": "majority", "DD": "59.0%", "CVE ↓": DASH},
        {"Model": "oracle", "DD": "100.0%", "CVE ↓": "0.000"},
        {"Model": "random", "DD": "50.0%", "CVE ↓": "0.400"},
    ]
    assert "upper bound: no train split" in table(view, "baselines").footnotes
    published = table(view, "published")
    assert "not computed here" in published.title
    assert texts(view, "published")[1] == {"Model": "Known-2", "u2": "0.2000", "DD": "40.0%"}
    assert published.footnotes == ("data set 27 rests on one reply",)
    assert any("public leaderboard, 2025" in note for note in published.notes)
    assert "The scores above are partial: their totals are not comparable with these." in published.notes
    assert [one["Metric"] for one in texts(view, "published_metrics")] == ["macro_f1", "macro_f1"]


def test_notices_say_what_a_reader_must_know(tmp_path: Path) -> None:
    view = view_scores([write_scores(tmp_path / "s", notices=["Simulated, not clinical!", "One more thing."])])
    assert view.notices == (
        "Simulated, not clinical.",  # once, though benchmark and scorer say it too
        "Partial: --scenarios present.",
        "Missing: RG/39.",
        "One more thing.",
        "Licence of the data: CC BY-NC-ND 4.0.",
        "Intervals (95 %) speak of new patients from the same sources, not of other hospitals or devices.",
    )


def test_declared_parameters_are_printed(tmp_path: Path) -> None:
    write_scores(tmp_path / "s", parameters={"draws": 500, "seed": 7, "tolerance": 0.1, "weights": "published"})
    text = report([tmp_path / "s"])
    assert "intervals: 95 %, 500 draws, seed 7" in text
    assert "parameters: tolerance 0.1; weights published" in text


def test_models_side_by_side_best_total_first(tmp_path: Path) -> None:
    first = write_scores(tmp_path / "a", "a")
    second = write_scores(tmp_path / "b", "b", [*model_rows("b", 0.1), *beside()], counts={"failures": {}})
    view = view_scores([first, second])
    assert [one["Model"] for one in texts(view, "leaderboard")] == ["b", "a"]
    assert [(one["Task"], one["Model"]) for one in texts(view, "tasks")][:3] == [("DD", "a"), ("DD", "b"), ("CVE", "a")]
    assert "a: Partial: --scenarios present." in view.notices
    assert len(view.documents) == 2


def test_equal_names_are_told_apart(tmp_path: Path) -> None:
    folders = [write_scores(tmp_path / name / "s", "m") for name in ("x", "y")]
    labels = {one["Model"] for one in texts(view_scores(folders), "leaderboard")}
    assert labels == {f"m ({folder})" for folder in folders}
    other = write_scores(tmp_path / "t", "m")
    labels = {one["Model"] for one in texts(view_scores([folders[0], other]), "leaderboard")}
    assert labels == {"m (s)", "m (t)"}


def test_variants_of_a_run_are_all_shown(tmp_path: Path) -> None:
    rows = [one for variant in ("", "cot", "short") for one in model_rows("m", 0.0, variant=variant)]
    write_scores(tmp_path / "s", "m", rows)
    assert {one["Model"] for one in texts(view_scores([tmp_path / "s"]), "tasks")} == {"m", "m [cot]", "m [short]"}
    found = json.loads(report([tmp_path / "s"], format="json"))
    assert sorted(found["variants"]) == ["cot", "short"]
    assert found["variants"]["cot"]["tasks"] == found["tasks"]
    verdicts = [one["Verdict"] for one in texts(view_scores([tmp_path / "s"]), "tasks") if one["Task"] == "DD"]
    assert verdicts == ["not distinguishable", "", ""]  # a verdict is about the unvaried run


def test_models_trained_in_domain_have_a_block_of_their_own(tmp_path: Path) -> None:
    plain = write_scores(tmp_path / "a", "a")
    trained = write_scores(tmp_path / "r", "reference/features", model_rows("reference/features", 0.3))
    view = view_scores([plain, trained])
    assert "leaderboard" not in {one.key for one in view.tables}
    assert [one["Model"] for one in texts(view, "in_domain")] == ["reference/features"]
    assert any("reference/features was trained in-domain" in notice for notice in view.notices)
    alone = view_scores([trained])
    assert texts(alone, "tasks")
    assert any("trained in-domain" in notice for notice in alone.notices)


def test_slices_equal_to_the_whole_are_kept_in_csv_only(tmp_path: Path) -> None:
    extra = row("m", "DD", "", "accuracy", 0.5625, n=112, slice="determinable!=no")
    write_scores(tmp_path / "s", "m", [*model_rows("m"), extra])
    view = view_scores([tmp_path / "s"])
    assert [one["Slice"] for one in texts(view, "slices")] == ["determinable=yes"]
    assert "determinable!=no" not in report([tmp_path / "s"])
    assert "determinable!=no" in report([tmp_path / "s"], format="csv")


def test_other_protocol_is_shown_on_request(tmp_path: Path) -> None:
    rows = [*model_rows("m"), *(model_rows("m", 0.2, protocol="published"))]
    write_scores(tmp_path / "s", "m", rows)
    strict = json.loads(report([tmp_path / "s"], format="json"))
    published = json.loads(report([tmp_path / "s"], format="json", protocol="published"))
    assert strict["tasks"]["DD"]["metrics"]["accuracy"]["value"] == 0.5625
    assert published["tasks"]["DD"]["metrics"]["accuracy"]["value"] == pytest.approx(0.7625)
    assert (strict["failures"], published["failures"]) == ({"ambiguous": 2, "empty": 3, "refusal_policy": 0}, {})
    assert published["protocol"] == "published"


def test_scores_without_a_folder_look_the_same(tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "s", "m")
    written = view_scores([folder])
    manifest = Manifest(
        kind="scores",
        maker="test",
        name="toy",
        version="3",
        parameters={"model": "m", "protocols": ["strict"], "draws": 10000, "seed": 0, "scenario_set": "all"},
        counts=counts(),
    )
    held = view_rows(SPEC, manifest, [*model_rows("m"), *beside()])
    assert held.documents == written.documents
    assert [one.key for one in held.tables] == [one.key for one in written.tables]


def test_text_goes_to_a_file_whole(tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "s")
    text = report([folder], tmp_path / "deep" / "report.md")
    assert (tmp_path / "deep" / "report.md").read_text("utf-8") == text
    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["report.md"]


@pytest.mark.parametrize("format", ["md", "csv", "latex", "json"])
def test_same_scores_give_the_same_bytes(tmp_path: Path, format: str) -> None:
    first = report([write_scores(tmp_path / "x" / "s")], format=format)
    assert report([write_scores(tmp_path / "y" / "s")], format=format) == first


def test_bad_input_is_told_in_one_line(tmp_path: Path) -> None:
    good = write_scores(tmp_path / "good")
    newer = write_scores(tmp_path / "newer", spec=SPEC.model_copy(update={"version": "4"}))
    with pytest.raises(BadInput, match=r"newer: scores of toy 4, but those of .*good are of toy 3; report one"):
        report([good, newer])
    with pytest.raises(BadInput, match="no scores given"):
        report([])
    with pytest.raises(BadInput, match="given twice"):
        report([good, tmp_path / "." / "good"])
    with pytest.raises(BadInput, match="no such folder"):
        report([tmp_path / "none"])
    with pytest.raises(BadInput, match="known: csv, json, latex, md, page"):
        report([good], format="pdf")
    with pytest.raises(BadInput, match=r"'published' \(no public scorer exists\); scored: strict"):
        report([good], protocol="published")
    with pytest.raises(BadInput, match="is a folder"):
        report([good], tmp_path / "good")
    empty = write_scores(tmp_path / "empty", rows=[])
    with pytest.raises(BadInput, match="no computed metrics"):
        report([empty])
    with new_folder(tmp_path / "run") as folder:
        folder.table("replies")
        folder.finish(Manifest(kind="run", maker="test"))
    with pytest.raises(BadInput, match="a folder of run, not of scores"):
        report([tmp_path / "run"])


def test_differing_builds_sets_and_parameters_are_noticed(tmp_path: Path) -> None:
    first = write_scores(tmp_path / "a", "a")
    second = write_scores(
        tmp_path / "b", "b", model_rows("b", scenario_set="core"), bench_hash="c" * 64, parameters={"seed": 1}
    )
    notices = view_scores([first, second]).notices
    assert any("different builds" in one for one in notices)
    assert any("different scenario sets" in one for one in notices)
    assert any("different parameters: draws, protocols, scenario_set, seed" in one for one in notices)


def test_places_of_the_references_are_shown(tmp_path: Path) -> None:
    tasks = {**SPEC.model_dump()["tasks"], "LL": {"title": "place", "form": "place", "metrics": ["accuracy"]}}
    spec = type(SPEC).model_validate({**SPEC.model_dump(), "tasks": tasks})
    references = {"LL/23": {"upper left": 1, "center": 3}, "DD/03": {"benign": 5}}
    rows = [*model_rows("m"), row("m", "LL", "", "accuracy", 0.5)]
    write_scores(tmp_path / "s", "m", rows, spec, counts={"references": references})
    view = view_scores([tmp_path / "s"])
    assert texts(view, "place_references") == [
        {"Task": "LL", "Data set": "23", "Items with each reference": "center 3 (75%), upper left 1 (25%)"}
    ]
    assert table(view, "references").detail
    assert "benign 5 (100%)" in report([tmp_path / "s"], format="csv")


def test_the_total_of_the_weights_asked_for_comes_first(tmp_path: Path) -> None:
    made = SPEC.model_dump()
    made["weights"]["n_t"] = {"DD": 0.4, "CVE": 0.4, "RG": 0.2}
    made["composites"]["u2_n_t"] = {"title": "by rows", "weights": "n_t", "formula": "sum of w_t d_t"}
    spec = BenchmarkSpec.model_validate(made)
    rows = [*model_rows("m"), row("m", "", "", "u2_n_t", 0.3)]
    for weights, order in (("published", ["u2", "u2_skill", "u2_n_t"]), ("n_t", ["u2_n_t", "u2", "u2_skill"])):
        folder = write_scores(tmp_path / weights, "m", rows, spec, parameters={"model": "m", "weights": weights})
        assert [one["Total"] for one in texts(view_scores([folder]), "totals")] == order


def test_published_scores_show_no_best_baseline_and_no_share(tmp_path: Path) -> None:
    rows = model_rows("m", protocol="published")
    rows += [row("m", "DD", "40", "accuracy", n=0, valid=0, why_null="nothing counted", protocol="published")]
    rows += [row("baseline/random", "DD", "", "accuracy", 0.5, origin="baseline", protocol="published")]
    made = {**counts(), "failures": {"published": {"empty": 3}}}
    view = view_scores([write_scores(tmp_path / "s", "m", rows, counts=made)], "published")
    task = next(one for one in texts(view, "tasks") if one["Task"] == "DD")
    # a data set without a counted item is none of those averaged
    assert (task["Best non-reading"], task["Sets"], task["Least n"]) == ("", "2", "12")
    assert texts(view, "failures") == [{"Reason": "empty", "Replies": "3"}]
    assert [one["Model"] for one in texts(view, "baselines")] == ["random"]
