"""The data of the page against the scores folders, read and counted by other means."""

from __future__ import annotations

import collections

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import confusion_matrix
from tests.report.page.made import Made

from sonogauge.report.page import Gallery, page_data

pytestmark = [pytest.mark.part("page"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def data(made: Made) -> dict:
    return page_data(made.scores, gallery=Gallery(cases=0))


def _line(data: dict, label: str, kind: str = "model") -> int:
    return next(number for number, one in enumerate(data["lines"]) if (one["kind"], one["label"]) == (kind, label))


def test_every_row_of_the_metrics_table_is_there(made: Made, data: dict) -> None:
    names, facts = data["strings"], data["facts"]
    held = {}
    for row in range(len(facts["line"])):
        key = (facts["line"][row], *(names[facts[name][row]] for name in ("task", "dataset", "slice", "metric")))
        assert key not in held
        held[key] = tuple(facts[name][row] for name in ("value", "low", "high", "n", "valid", "groups"))
    for folder in made.scores:
        for row in pq.read_table(folder / "metrics.parquet").to_pylist():
            kind = {"computed": "model", "baseline": "baseline"}[row["origin"]]
            line = _line(data, row["model"].removeprefix("baseline/"), kind)
            found = held[line, row["task"], row["dataset"], row["slice"], row["metric"]]
            expected = tuple(row[name] for name in ("value", "low", "high", "n", "valid", "groups"))
            for one, other in zip(found, expected, strict=True):
                assert one == (None if other is None else pytest.approx(other, rel=1e-5, abs=1e-12))


def _pairs(made: Made, task: str, dataset: str, field: str) -> list[tuple]:
    items = {row["item_id"]: row for row in pq.read_table(made.bench / "items.parquet").to_pylist()}
    rows = pq.read_table(made.bad / "score_items.parquet").to_pylist()
    return [
        (items[row["item_id"]]["reference"][field], (row["prediction"] or {}).get(field), row)
        for row in rows
        if (row["task"], row["dataset"], row["protocol"]) == (task, dataset, "strict") and not row["excluded"]
    ]


@pytest.mark.parametrize(
    ("task", "dataset", "field"), [("DD", "fan", "choices"), ("VRA", "probe", "choices"), ("KD", "bone", "places")]
)
def test_confusions_equal_those_of_scikit_learn(made: Made, data: dict, task: str, dataset: str, field: str) -> None:
    cell = next(one for one in data["choices"] if (one["task"], one["dataset"]) == (task, dataset))
    none = "no valid answer"
    pairs = [
        (reference[0], predicted[0] if predicted else none)
        for reference, predicted, _ in _pairs(made, task, dataset, field)
    ]
    expected = confusion_matrix(*zip(*pairs, strict=True), labels=[*cell["options"], none])[:-1]
    assert cell["models"][str(_line(data, "vendor/<b>bad</b> & worse"))] == expected.tolist()
    right = np.trace(np.array(cell["models"][str(_line(data, "vendor/good-model"))])[:, :-1])
    assert right == cell["n"]


def test_numbers_keep_their_pairs_and_gaps(made: Made, data: dict) -> None:
    cell = next(one for one in data["numbers"] if one["dataset"] == "lesion")
    line = str(_line(data, "vendor/<b>bad</b> & worse"))
    expected = collections.Counter(
        (float(f"{reference:.6g}"), None if predicted is None else float(f"{predicted:.6g}"))
        for reference, predicted, _ in _pairs(made, "CVE", "lesion", "number")
    )
    assert collections.Counter(zip(cell["reference"], cell["models"][line], strict=True)) == expected
    assert None in cell["models"][line], "the hostile reply holds no number"


def test_anatomy_counts_the_right_answers(made: Made, data: dict) -> None:
    line = str(_line(data, "vendor/<b>bad</b> & worse"))
    rows = [
        row
        for row in pq.read_table(made.bad / "score_items.parquet").to_pylist()
        if row["task"] in ("DD", "VRA", "LL", "OD", "KD")
    ]
    right = sum(dict(row["values"]).get("correct", 0.0) == 1.0 for row in rows)
    total = [sum(cell[line][place] for cell in data["anatomy"].values() if line in cell) for place in (0, 1)]
    assert total == [right, len(rows)]


def test_single_answers_end_as_their_numbers_say(made: Made) -> None:
    # Errors are signed: a number far too low is as wrong as one far too high. A text is neither right nor wrong.
    items = {row["item_id"]: row for row in pq.read_table(made.bench / "items.parquet").to_pylist()}
    data = page_data([made.bad], gallery=Gallery(cases=10_000))
    rows = {
        row["item_id"]: row
        for row in pq.read_table(made.bad / "score_items.parquet").to_pylist()
        if row["protocol"] == "strict"
    }
    seen = collections.Counter()
    for one in data["gallery"]["cases"]:
        (answer,) = one["answers"].values()
        item, row = items[one["id"]], rows[one["id"]]
        if item["answer"]["form"] == "text" and not row["reason"]:
            assert answer["outcome"] == "graded"
        elif item["answer"]["form"] == "number" and not row["reason"]:
            span = item["answer"]["high"] - item["answer"]["low"]
            off = (row["prediction"]["number"] - item["reference"]["number"]) / span
            assert answer["outcome"] == ("right" if abs(off) <= 0.1 else "wrong")
            seen[answer["outcome"], off > 0] += 1
    assert seen["wrong", True] and seen["wrong", False]


def test_failures_and_verdicts_are_those_of_the_manifest(made: Made, data: dict) -> None:
    from sonogauge.folders import read_manifest

    for place, folder in enumerate(made.scores):
        counts = read_manifest(folder).counts
        assert data["failures"]["strict"][place] == counts["failures"]["strict"]
        line = str(_line(data, data["scores"][place]["label"]))
        assert set(data["verdicts"][line]) == set(counts["verdicts"])
        for code, verdict in data["verdicts"][line].items():
            assert verdict["word"] == counts["verdicts"][code]["verdict"]
            assert verdict["difference"] == pytest.approx(counts["verdicts"][code]["difference"], rel=1e-5, abs=1e-12)


def test_what_a_page_does_not_show_is_said(data: dict) -> None:
    titles = [one["title"] for one in data["limits"]]
    assert {"Coverage", "Few patients", "Simulated images", "No gallery", "Not a clinical evaluation"} <= set(titles)
    assert data["banners"][0]["title"] == "Simulated, not clinical"
