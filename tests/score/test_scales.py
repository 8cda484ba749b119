"""Ordinal scales, diagnostic classes, tolerances and probabilities counted by the score pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score
from tests.metrics.test_bertscore import encoder
from tests.score.small import u2_item, value_of, write_bench, write_replies
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.score import score
from sonogauge.score.scales import tolerances

pytestmark = pytest.mark.part("score strict")
DRAWS = 300


def test_ordinal_scale_without_the_prosthesis(tmp_path: Path) -> None:
    labels = ["No OA", "Mild OA", "Severe OA", "Total joint replacement", "Moderate OA"]
    replies = ["No OA", "Severe OA", "Total joint replacement", "No OA", "?"]
    items = [u2_item("DD", "28", number, {"choices": (label,)}) for number, label in enumerate(labels, start=1)]
    texts = {item.item_id: reply for item, reply in zip(items, replies, strict=True)}
    bench = write_bench(tmp_path / "bench", items)
    rows = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS).metrics
    row = value_of(rows, "grade_error", "DD", "28")
    # 0, 2 grades, a prosthesis is no grade: farthest from Severe (4), a failure farthest from Moderate (3).
    assert (row["value"], row["n"]) == (pytest.approx((0 + 2 + 4 + 3) / 4), 4)
    assert "failures:farthest grade" in row["signature"]
    assert value_of(rows, "kappa_quadratic", "DD", "28")["n"] == 4
    assert value_of(rows, "grade_error", "DD")["datasets"] == ["28"]
    assert not any(row["metric"] == "sensitivity" for row in rows)


def test_diagnostic_metrics_count_failures_as_the_wrong_class(tmp_path: Path) -> None:
    cases = [
        ("malignant", "malignant"),
        ("malignant", "benign"),
        ("malignant", ""),
        ("benign", "benign"),
        ("benign", ""),
    ]
    items = [u2_item("DD", "21", number, {"choices": (label,)}) for number, (label, _) in enumerate(cases * 4)]
    texts = {item.item_id: cases[number % 5][1] for number, item in enumerate(items)}
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", texts)
    rows = score(file, bench=bench, scenarios="present", draws=DRAWS, prevalence=0.01).metrics
    expected = {
        "sensitivity": (1 / 3, 12, 8),
        "specificity": (1 / 2, 8, 4),
        "sensitivity_answered": (1 / 2, 8, 8),
        "specificity_answered": (1.0, 4, 4),
        "lr_positive": ((1 / 3) / (1 / 2), 20, 12),
        "ppv": (0.01 / 3 / (0.01 / 3 + 0.99 / 2), 20, 12),
    }
    for name, (value, n, valid) in expected.items():
        row = value_of(rows, name, "DD", "21")
        assert (row["value"], row["n"], row["valid"]) == (pytest.approx(value), n, valid), name
    assert value_of(rows, "specificity_answered", "DD", "21")["groups"] == 4
    assert "prevalence:0.01" in value_of(rows, "ppv", "DD", "21")["signature"]


def test_probabilities_equal_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items, lines, labels, scores_of = [], [], [], []
    for number in range(40):
        ill = bool(rng.random() < 0.5)
        item = u2_item("DD", "21", number, {"choices": ("malignant" if ill else "benign",)})
        items.append(item)
        p = float(np.clip(0.5 * ill + 0.6 * rng.random(), 0, 1))
        line = {"item_id": item.item_id, "text": "malignant" if p > 0.5 else "benign"}
        if number:
            line["option_probabilities"] = {"malignant": p, "benign": 1 - p}
            labels.append(ill)
            scores_of.append(p)
        lines.append(line)
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", lines)
    rows = score(file, bench=bench, scenarios="present", draws=DRAWS, baselines=False).metrics
    oracle = {
        "auroc": roc_auc_score(labels, scores_of),
        "average_precision": average_precision_score(labels, scores_of),
        "brier": brier_score_loss(labels, scores_of),
    }
    for name, value in oracle.items():
        row = value_of(rows, name, "DD", "21")
        assert (row["value"], row["n"]) == (pytest.approx(value, abs=1e-9), 39)
        assert row["low"] < row["value"] < row["high"]
    assert 0 <= value_of(rows, "ece", "DD", "21")["value"] <= 1
    lines[1]["option_probabilities"] = {"cyst": 1.0}
    with pytest.raises(BadInput, match="a probability for 'cyst', which is no option"):
        score(write_replies(tmp_path / "r.jsonl", lines), bench=bench, scenarios="present", draws=DRAWS)
    for wrong in ([0.5], {"benign": -1}, {"benign": "x"}, {}):
        lines[1]["option_probabilities"] = wrong
        with pytest.raises(BadInput, match=r"row 2, field 'option_probabilities'"):
            score(write_replies(tmp_path / "r.jsonl", lines), bench=bench, scenarios="present", draws=DRAWS)


def test_agreement_and_clinical_tolerance_of_numbers(tmp_path: Path) -> None:
    truths, replies = [200.0, 250.0, 300.0, 340.0], ["209.8 mm", "263", "", "300"]
    items = [u2_item("CVE", "31", number, {"number": truth}) for number, truth in enumerate(truths)]
    texts = {item.item_id: reply for item, reply in zip(items, replies, strict=True)}
    bench = write_bench(tmp_path / "bench", items)
    rows = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS).metrics
    differences = np.array([9.8, 13.0, -40.0])
    bias = value_of(rows, "bias", "CVE", "31")
    assert (bias["value"], bias["n"]) == (pytest.approx(differences.mean()), 3)
    assert value_of(rows, "loa_low", "CVE", "31")["value"] == pytest.approx(
        differences.mean() - 1.959963984540054 * differences.std(ddof=1)
    )
    # 4.9 % of 200 is exactly 9.8; the failed reply is outside; its error is the worst in range, 200 mm.
    within = value_of(rows, "within_clinical", "CVE", "31")
    assert (within["value"], within["n"]) == (0.25, 4)
    assert "tolerance:head circumference 4.9 %" in within["signature"]
    assert value_of(rows, "mae", "CVE", "31")["value"] == pytest.approx((9.8 + 13 + 200 + 40) / 4)
    assert value_of(rows, "median_error", "CVE", "31")["value"] == pytest.approx((13 + 40) / 2)


def test_natural_units_are_never_averaged_over_different_ones(tmp_path: Path) -> None:
    items = [u2_item("CVE", "18", number, {"number": 50.0}) for number in range(3)]
    items += [u2_item("CVE", "31", number, {"number": 200.0}) for number in range(3)]
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(
        tmp_path / "r.jsonl", {item.item_id: "60" if "/18/" in item.item_id else "210" for item in items}
    )
    rows = score(file, bench=bench, scenarios="present", draws=DRAWS).metrics
    row = value_of(rows, "mae", "CVE")
    assert (row["value"], row["why_null"]) == (None, "the data sets differ in unit: %, mm")
    assert value_of(rows, "mae", "CVE", "31")["value"] == pytest.approx(10.0)


def test_every_tolerance_names_its_source() -> None:
    for measure, tolerance in tolerances().items():
        assert "doi:10." in tolerance.source, measure
        assert "memory" in tolerance.checked or "abstract" in tolerance.checked, measure
        assert (tolerance.absolute is None) != (tolerance.relative is None)
        assert json.dumps(tolerance.facts)


@pytest.mark.filterwarnings("ignore")
def test_bertscore_names_its_model_and_layer(tmp_path: Path) -> None:
    require_extra("bertscore", "bert_score")
    folder = encoder()
    items = [u2_item("CG", "10", number, {"texts": ("the liver is normal",)}) for number in range(4)]
    bench = write_bench(tmp_path / "bench", items)
    texts = dict(zip([one.item_id for one in items], ["the liver is normal", "a cyst", None, ""], strict=True))
    file = write_replies(tmp_path / "r.jsonl", texts)
    scores = score(file, bench=bench, scenarios="present", draws=DRAWS, bertscore=folder, bertscore_layer=6)
    row = value_of(scores.metrics, "bertscore", "CG", "10")
    assert 0.25 < row["value"] < 0.5
    assert f"model:{folder.name},layer:6" in row["signature"]
    assert row["n"] == 4
