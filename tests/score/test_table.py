"""Any prediction file: readers, VLMEvalKit, two files by id, oracles from scikit-learn, and every kind of bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from scipy import stats
from sklearn.metrics import cohen_kappa_score, f1_score, precision_recall_fscore_support, recall_score
from tests.score.made_tables import ROWS, never_bare, score, value, write
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.score.table_text import table_lines

pytestmark = pytest.mark.part("score table")


def test_values_equal_scikit_learn(tmp_path: Path) -> None:
    scores = score(
        write(tmp_path / "p.csv", ROWS), group="patient", positive=["malignant"], ordinal=["benign", "malignant"]
    )
    truth = [row["label"] for row in ROWS]
    said = [{"": "failed", "I": "failed"}.get(row["reply"][:1], row["reply"].lower()) for row in ROWS]
    said = ["benign" if "answer" in one else one for one in said]
    labels = ["benign", "malignant"]
    assert value(scores, "macro_f1") == pytest.approx(f1_score(truth, said, labels=labels, average="macro"), abs=1e-9)
    assert value(scores, "kappa") == pytest.approx(cohen_kappa_score(truth, said), abs=1e-9)
    assert value(scores, "sensitivity") == pytest.approx(
        recall_score(truth, said, labels=["malignant"], average="micro")
    )
    answered = [(a, b) for a, b in zip(truth, said, strict=True) if b != "failed"]
    oracle = recall_score(*zip(*answered, strict=True), labels=["malignant"], average="micro")
    assert value(scores, "sensitivity_answered") == pytest.approx(oracle)
    assert scores.values["sensitivity"].n == 24 and scores.values["sensitivity_answered"].n == 12
    # Two grades: a failure is as far off as the other grade, a false alarm too.
    assert value(scores, "grade_error") == pytest.approx(18 / 48)
    assert scores.baselines == {"majority": 0.5}


def test_numbers_with_and_without_a_range(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(50, 10, size=30)
    said = truth + rng.normal(1, 4, size=30)
    pairs = zip(truth.tolist(), said.tolist(), strict=True)
    rows = [{"y": repr(a), "p": f"{b!r} mm" if at % 2 else repr(b)} for at, (a, b) in enumerate(pairs)]
    rows.append({"y": "50", "p": "about right"})
    path = write(tmp_path / "n.csv", rows)
    given = {"truth": "y", "prediction": "p", "answer": "number", "unit": "mm"}
    open_range = score(path, **given)
    assert value(open_range, "mae") == pytest.approx(np.abs(truth - said).mean(), abs=1e-9)
    assert value(open_range, "pearson") == pytest.approx(stats.pearsonr(truth, said).statistic, abs=1e-9)
    assert value(open_range, "spearman") == pytest.approx(stats.spearmanr(truth, said).statistic, abs=1e-9)
    differences = said - truth
    assert value(open_range, "loa_high") == pytest.approx(
        differences.mean() + 1.959963984540054 * differences.std(ddof=1), abs=1e-9
    )
    assert open_range.values["mae"].n == 30 and open_range.n == 31
    assert any("left out" in notice for notice in open_range.notices)
    ranged = score(path, **given, low=0.0, high=100.0)
    # The failure counts max(.5, .5) of the range.
    assert value(ranged, "mae") == pytest.approx((np.abs(truth - said).sum() + 50) / 31, abs=1e-9)
    assert value(ranged, "mae_scaled") == pytest.approx(value(ranged, "mae") / 100, abs=1e-9)


def test_texts_and_sets_of_options(tmp_path: Path) -> None:
    texts = [{"y": "The liver is normal in size.", "p": "The liver is normal."}, {"y": "A cyst is seen.", "p": ""}]
    scores = score(write(tmp_path / "t.jsonl", texts), truth="y", prediction="p", answer="text")
    oracle = sacrebleu.BLEU().corpus_score([one["p"] for one in texts], [[one["y"] for one in texts]]).score / 100
    assert value(scores, "bleu_sacre") == pytest.approx(oracle, abs=1e-9)
    sets = [
        {"y": ["cyst", "mass"], "p": "cyst, mass"},
        {"y": ["cyst"], "p": "cyst and mass"},
        {"y": ["duct"], "p": ["duct"]},
    ]
    scores = score(write(tmp_path / "m.jsonl", sets), truth="y", prediction="p", answer="multi_choice")
    assert value(scores, "accuracy") == pytest.approx(2 / 3)
    joined = [{"y": "cyst; mass", "p": "cyst, mass"}, {"y": '["duct"]', "p": "duct"}]
    scores = score(write(tmp_path / "m.csv", joined), truth="y", prediction="p", answer="multi_choice")
    assert value(scores, "accuracy") == 1.0


@pytest.mark.parametrize(
    ("truth", "options", "message"),
    [
        ("1e300", {}, r"row 1, field 'label': a number beyond 1e\+50: '1e300'"),
        ("1", {"low": 0.0, "high": math.inf}, r"no range from 0.0 to inf"),
        ("1", {"low": 0.0, "high": 1e300}, r"no range from 0.0 to 1e\+300"),
        ("1", {"low": 2.0}, r"no range from 2.0 to None"),
        ("1", {"measure": "head size"}, r"field 'measure': no tolerance for the measure 'head size'; known: head circ"),
        ("1", {"measure": "ejection fraction", "unit": "mm"}, r"field 'unit': the tolerance .* is in '%', .* in 'mm'"),
        ("1", {"options": ["1", "2"]}, r"field 'options': a number answer has no options"),
        ("1", {"clinical": True}, r"field 'clinical': a number answer has no clinical facts"),
        ("1", {"prevalence": 0.1}, r"field 'prevalence': a number answer has no options"),
        ("1", {"answer": "choice", "prevalence": 0.1}, r"field 'prevalence': a prevalence of what\?"),
        ("1", {"answer": "choice", "unit": "mm"}, r"field 'unit': a choice answer has no unit"),
        ("1", {"answer": "text", "low": 0.0}, r"field 'low': a text answer has no low"),
        ("1", {"processes": 0}, r"field 'processes': 0 is too few"),
        ("1", {"min_n": 0}, r"field 'min_n': 0 is too few"),
    ],
)
def test_numbers_and_options_that_cannot_be(tmp_path: Path, truth: str, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "p.csv", [{"label": truth, "reply": "1"}, {"label": "1", "reply": "2"}])
    with pytest.raises(BadInput, match=message):
        score(path, **({"answer": "number"} | options))


def test_absurd_predictions_are_failures_and_nothing_is_infinite(tmp_path: Path) -> None:
    rows = [
        {"label": str(at), "reply": reply} for at, reply in enumerate(["0", "1e308", "-1e308", "1e400", "5", "1e99"])
    ]
    for range_ in ({}, {"low": -10.0, "high": 10.0}):
        scores = score(write(tmp_path / "p.jsonl", rows), answer="number", **range_)
        assert scores.failures == {"format": 3}
        json.dumps(scores.to_json(), allow_nan=False)
        assert not any("inf" in line or "nan" in line for line in table_lines(scores))


def test_a_column_named_twice_slices_once(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", ROWS), by=["sex", "sex"])
    assert [scores.parts[part]["accuracy"].n for part in ("sex=f", "sex=m")] == [24, 24]


def test_draws_that_are_all_alike_give_no_interval_of_width_zero(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", [{"label": one, "reply": one} for one in ("cyst", "mass")]))
    estimate = scores.values["balanced_accuracy"].estimate
    assert (estimate.value, estimate.low, estimate.why_null) == (1.0, None, "no variation between groups")


def test_precision_recall_and_f1_of_each_class_equal_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth, said = rng.choice(["a", "b", "c"], 90), rng.choice(["a", "b", "c", "?"], 90)
    rows = [
        {"label": one, "reply": other, "g": str(at // 3)}
        for at, (one, other) in enumerate(zip(truth, said, strict=True))
    ]
    rows.append({"label": "d", "reply": "a", "g": "0"})
    path = write(tmp_path / "p.csv", rows)
    scores = score(path, group="g", options=["a", "b", "c", "d", "e"])
    # An option without a reference is no class; one that was never predicted counts 0 and says so.
    assert list(scores.classes) == ["a", "b", "c", "d"]
    expected = precision_recall_fscore_support(
        [*truth, "d"], [*said, "a"], labels=["a", "b", "c", "d"], zero_division=0
    )
    for place, name in enumerate(scores.classes):
        for kind, values in zip(("precision", "recall", "f1"), expected, strict=False):
            estimate = scores.classes[name][kind].estimate
            assert estimate.value == pytest.approx(values[place], abs=1e-12)
            if name != "d":
                assert estimate.low is not None and estimate.high is not None
                assert estimate.low < estimate.value < estimate.high
    assert scores.classes["d"]["precision"].estimate.why_null == "never predicted: counted as 0"
    # The recall of a class is the accuracy on its own items, interval included.
    alone = score(path, group="g", options=["a", "b", "c", "d", "e"], where=["label=b"]).values["accuracy"].estimate
    found = scores.classes["b"]["recall"].estimate
    assert (found.value, found.groups) == (alone.value, alone.groups)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=0.03)  # other draws of other groups
    told = scores.to_json()["tasks"]["table"]["classes"]
    assert "class:b" in told["b"]["recall"]["signature"] and "class:a" in told["a"]["f1"]["signature"]
    shown = "\n".join(table_lines(scores))
    assert len([line for line in shown.splitlines() if line.startswith("d ") and "never predicted" in line]) == 1
    few = score(write(tmp_path / "q.csv", rows[:12]), group="g")
    after = "\n".join(table_lines(few)).split("by class")[1]
    assert "fewer than 20 groups" in after
    assert "by class" in shown and "expected by chance: accuracy 0.2000" in shown
    assert f"accuracy of baselines: majority {max(np.unique(truth, return_counts=True)[1]) / 91:.4f}" in shown


def test_more_options_than_a_confusion_matrix_holds_are_told(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", [{"label": f"c{at}", "reply": f"c{at}"} for at in range(65)]))
    assert value(scores, "accuracy") == 1.0 and not scores.classes
    assert scores.values["kappa"].estimate.why_null == "not counted for more than 64 options"


def test_options_with_a_comma_are_given_as_json(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.csv", [{"label": "large, cystic", "reply": "solid"}, {"label": "solid", "reply": "solid"}]
    )
    words = ["score-table", str(path), "--truth", "label", "--prediction", "reply", "--answer", "choice", "--json"]
    found = CliRunner().invoke(app, [*words, "--options", '["large, cystic", "solid", "other"]'])
    task = json.loads(found.stdout)["tasks"]["table"]
    assert (task["metrics"]["accuracy"]["value"], task["metrics"]["accuracy"]["chance"]) == (0.5, 1 / 3)
    assert isinstance(CliRunner().invoke(app, [*words, "--options", "[solid"]).exception, BadInput)


def test_numbers_within_the_tolerance_of_readers(tmp_path: Path) -> None:
    rows = [{"label": "200", "reply": reply} for reply in ("209.8", "209.81", "190.2", "no idea")]
    scores = score(write(tmp_path / "p.csv", rows), answer="number", unit="mm", measure="head circumference")
    assert value(scores, "within_clinical") == 0.5
    assert "tolerance:head circumference 4.9 %" in scores.signatures["within_clinical"]


def test_a_few_patients_who_carry_the_error_are_told(tmp_path: Path) -> None:
    rows = [
        {"label": "50", "reply": str(95 if patient < 2 else 50 + (-1) ** image * (image + 1)), "g": str(patient)}
        for patient in range(24)
        for image in range(3)
    ]
    scores = score(write(tmp_path / "p.csv", rows), answer="number", low=0.0, high=100.0, group="g")
    told = "half of the error lies in 2 of 24 groups"
    assert scores.values["rmse_scaled"].estimate.doubt == scores.values["rmse"].estimate.doubt == told
    assert scores.to_json()["tasks"]["table"]["metrics"]["rmse"]["doubt"] == told
    assert any(line.startswith("rmse_scaled") and line.endswith(told) for line in table_lines(scores))
    even = score(write(tmp_path / "q.csv", rows[6:]), answer="number", low=0.0, high=100.0, group="g")
    assert not any(one.estimate.doubt for one in even.values.values())


@pytest.mark.parametrize("answer", ["choice", "number", "text", "multi_choice"])
@pytest.mark.parametrize("truths", [["1"], ["1"] * 8, ["1", "2"] * 4], ids=["one", "equal", "two"])
@pytest.mark.parametrize("said", ["1", "", "?"])
@pytest.mark.parametrize("group", [None, "g"])
def test_no_value_without_a_reason(
    tmp_path: Path, answer: str, truths: list[str], said: str, group: str | None
) -> None:
    rows = [{"label": one, "reply": said, "g": "the same"} for one in truths]
    options = {"positive": ["1"], "ordinal": ["1", "2"], "options": ["1", "2"]} if answer == "choice" else {}
    scores = score(write(tmp_path / "p.jsonl", rows), answer=answer, group=group, by=["g"], min_n=1, **options)
    never_bare(scores.to_json())
    json.dumps(scores.to_json(), allow_nan=False)
    if group is not None or len(truths) == 1:
        assert scores.values[next(iter(scores.values))].estimate.low is None
    assert all(line == line.rstrip() for line in table_lines(scores))


def test_processes_give_the_same_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", ROWS)
    assert score(path, processes=2).to_json() == score(path).to_json()


def test_own_group_for_each_row_is_said(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", ROWS))
    assert scores.groups == 48
    assert any("lower bound" in notice for notice in scores.notices)
    assert not any("lower bound" in one for one in score(write(tmp_path / "p.csv", ROWS), group="patient").notices)


@pytest.mark.part("command line")
def test_command_prints_json_alone_and_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", ROWS)
    words = ["score-table", str(path), "--truth", "label", "--prediction", "reply", "--answer", "choice"]
    words += ["--group", "patient", "--by", "sex", "--positive", "malignant", "--draws", "200", "--min-n", "5"]
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0
    task = json.loads(found.stdout)["tasks"]["table"]
    assert task["metrics"]["accuracy"]["value"] == pytest.approx(30 / 48)
    assert set(task["gaps"]["sex"]) >= {"accuracy_gap", "sensitivity_gap"}
    shown = CliRunner().invoke(app, words)
    assert "gap between the parts of sex" in shown.stdout
