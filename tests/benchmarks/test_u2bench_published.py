"""The published protocol of U2-BENCH: each fault where the specification puts it, metrics against other code."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.answers.base import AnswerSpec
from sonogauge.benchmarks.spec import load_spec
from sonogauge.benchmarks.u2bench.published import (
    PublishedCell,
    parse_choice_published,
    parse_number_published,
    parse_place_published,
    score_cell,
)
from sonogauge.items import Item

SPEC = load_spec("u2bench")
_FORMS = {"choices": "choice", "places": "place", "number": "number", "texts": "text"}


def _item(reference: dict[str, Any], state: str = "ok") -> Item:
    return Item(
        item_id="x",
        task="DD",
        dataset="21",
        source="21",
        group="g",
        split="test",
        images=(),
        question="",
        prompt_id="",
        answer=AnswerSpec(_FORMS[next(iter(reference), "choices")]),
        reference=reference,
        reference_state=state,
    )


def _score(task: str, dataset: str, pairs: list[tuple[Item, str, str | None]], **options: bool) -> PublishedCell:
    scenario = SPEC.scenario(task, dataset)
    assert scenario is not None
    return score_cell(SPEC.tasks[task], scenario, pairs, **options)


def _choices(pairs: list[tuple[str, str | None]]) -> list[tuple[Item, str, str | None]]:
    return [(_item({"choices": (label,)}), "ok", reply) for label, reply in pairs]


@pytest.mark.parametrize(
    ("reply", "value"),
    [(" Benign\n", "benign"), ("'Benign'", "benign"), ('"benign"', "benign"), ("Benign.", "benign."), ("", "")],
)
def test_class_reply(reply: str, value: str) -> None:
    assert parse_choice_published(reply) == (value, None)


@pytest.mark.parametrize(
    ("reply", "value"), [(" 2 ", "2"), ("+2", "2"), ("02", "2"), ("2.", None), ("two", None), ("", None), ("2.0", None)]
)
def test_integer_reply(reply: str, value: str | None) -> None:
    assert parse_choice_published(reply, integer=True) == (value, None if value else "format")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("12.5", 12.5),
        (" -3 ", -3.0),
        ("1e2", 100.0),
        ("about -12.5 cm", 12.5),  # sign and unit ignored in the fallback
        ("55%", 55.0),
        ("10-20", 10.0),
        ("3 beats, 12.5 mm", 12.5),  # a decimal number anywhere comes before the first integer
        ("12,5", 12.0),
        (".5 mm", 5.0),
        ("null", None),
        (" NULL ", None),
        ("", None),
        ("none", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("9" * 400, None),
    ],
)
def test_number_reply(reply: str, value: float | None) -> None:
    found, reason = parse_number_published(reply)
    assert found == value
    assert (reason is None) == (value is not None)


def test_place_reply_is_not_trimmed() -> None:
    assert parse_place_published(" Upper Left") == (" upper left", None)
    assert parse_place_published(" Upper Left", trim=True) == ("upper left", None)


def test_a_hand_computed_cell_with_garbage() -> None:
    # 10 rows, 6 benign and 4 malignant; 3 of 10 are garbage: a sentence, a failed request, no reply.
    pairs = _choices(
        [("benign", "benign")] * 3
        + [("benign", "malignant"), ("benign", "I think it is benign")]
        + [("malignant", "Malignant")] * 2
        + [("malignant", "benign")]
    )
    pairs += [
        (_item({"choices": ("benign",)}), "error", "benign"),
        (_item({"choices": ("malignant",)}), "missing", None),
    ]
    cell = _score("DD", "21", pairs)
    assert (cell.n, cell.valid, cell.excluded) == (10, 8, 0)
    assert cell.metrics["accuracy"] == pytest.approx(5 / 8)
    # union of three strings: benign P 3/4 R 3/5, malignant P 2/3 R 2/3, the sentence 0
    assert cell.metrics["macro_precision"] == pytest.approx((3 / 4 + 2 / 3 + 0) / 3)
    assert cell.metrics["macro_recall"] == pytest.approx((3 / 5 + 2 / 3 + 0) / 3)
    assert cell.metrics["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert [item.reason for item in cell.items[-2:]] == ["error", "missing"]
    assert [item.counted for item in cell.items] == [True] * 8 + [False] * 2
    assert cell.items[4].prediction == "i think it is benign"
    assert cell.items[4].values == {"accuracy": 0.0}


def test_integer_labels_leave_the_denominator() -> None:
    cell = _score("DD", "57", _choices([("1", "1"), ("0", "1"), ("0", "no fat"), ("1.0", " 1")]))
    assert (cell.n, cell.valid) == (4, 3)
    assert cell.metrics["accuracy"] == pytest.approx(2 / 3)
    assert cell.items[2].reason == "format"
    # Other data sets compare strings, so the same reply is wrong there and counts.
    other = _score("DD", "21", _choices([("benign", "no fat")]))
    assert (other.valid, other.metrics["accuracy"]) == (1, 0.0)


def test_places_use_the_first_box_and_call_an_unparsable_reference_not_visible() -> None:
    two = _item({"places": ("upper left", "center")})
    broken = _item({}, "error")
    absent = _item({}, "absent")
    pairs = [
        (two, "ok", "Upper Left"),
        (two, "ok", "center"),
        (two, "ok", "upper left\n"),
        (broken, "ok", "not visible"),
        (absent, "ok", "center"),
    ]
    cell = _score("LL", "23", list(pairs))
    assert [item.values.get("accuracy") for item in cell.items] == [1.0, 0.0, 0.0, 1.0, None]
    assert (cell.n, cell.valid, cell.excluded) == (4, 4, 1)
    assert cell.metrics["accuracy"] == pytest.approx(0.5)
    assert _score("LL", "23", list(pairs), trim=True).metrics["accuracy"] == pytest.approx(0.75)


def test_numbers_are_scaled_and_not_clipped() -> None:
    # range 10-75 %: width 65
    pairs = [
        (_item({"number": 55.0}), "ok", "55"),
        (_item({"number": 55.0}), "ok", "EF about 61.5 %"),
        (_item({"number": 55.0}), "truncated", "250"),
        (_item({"number": 55.0}), "ok", "null"),
        (_item({"number": 55.0}), "error", "55"),
        (_item({}, "null"), "ok", "55"),
    ]
    cell = _score("CVE", "18", list(pairs))
    errors = np.array([0.0, -6.5 / 65, -195 / 65])
    assert (cell.n, cell.valid, cell.excluded) == (5, 3, 1)
    assert cell.metrics["rmse_scaled"] == pytest.approx(math.sqrt((errors**2).mean()))
    assert cell.metrics["mae_scaled"] == pytest.approx(np.abs(errors).mean())
    assert cell.metrics["std_scaled"] == pytest.approx(errors.std())
    assert cell.metrics["within_tolerance"] == pytest.approx(2 / 3)
    assert "median_error" not in cell.metrics


def test_head_circumferences_are_never_scored() -> None:
    cell = _score("CVE", "31", [(_item({"number": 200.0}), "ok", "200")])
    assert (cell.n, cell.valid, cell.excluded) == (0, 0, 1)
    assert set(cell.metrics.values()) == {None}
    assert not cell.items[0].counted


def test_a_huge_reply_keeps_the_metrics_finite() -> None:
    cell = _score("CVE", "18", [(_item({"number": 55.0}), "ok", "1e300")])
    assert all(value is not None and math.isfinite(value) for value in cell.metrics.values())


def test_nothing_counted_gives_no_value() -> None:
    for task, dataset, reference in (
        ("DD", "21", {"choices": ("benign",)}),
        ("LL", "23", {"places": ("center",)}),
        ("CVE", "18", {"number": 1.0}),
        ("RG", "39", {"texts": ("liver",)}),
    ):
        cell = _score(task, dataset, [(_item(reference), "error", None)])
        assert (cell.n, cell.valid) == (1, 0)
        assert cell.metrics
        assert set(cell.metrics.values()) == {None}


def test_texts_equal_pycocoevalcap() -> None:
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer
    from pycocoevalcap.rouge.rouge import Rouge

    texts = [
        ("the liver is normal in size and shape", "the liver is normal in shape"),
        ("a hypoechoic nodule in the left lobe of the thyroid", "hypoechoic nodule of the left lobe"),
        ("no abnormality is seen in the breast", "no abnormality is seen in the breast today"),
    ]
    pairs: list[tuple[Item, str, str | None]] = [(_item({"texts": (one,)}), "ok", two) for one, two in texts]
    pairs.append((_item({"texts": ("left out",)}), "error", "left out"))
    cell = _score("RG", "39", pairs)
    scorer = BleuScorer(n=4)
    for reference, hypothesis in texts:
        scorer += (hypothesis, [reference])
    bleu, _ = scorer.compute_score(option="closest", verbose=0)
    assert cell.metrics["bleu4"] == pytest.approx(bleu[3], abs=1e-9)
    rouge = [Rouge().calc_score([hypothesis], [reference]) for reference, hypothesis in texts]
    assert cell.metrics["rouge_l"] == pytest.approx(np.mean(rouge), abs=1e-9)
    assert [item.values["rouge_l"] for item in cell.items[:3]] == pytest.approx(rouge)
    assert (cell.n, cell.valid) == (4, 3)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["a", "b", "c", "d", "x y", "A"])), min_size=1, max_size=30
    )
)
@settings(max_examples=60, deadline=None)
def test_macro_values_equal_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    cell = _score("VRA", "18", _choices(list(pairs)))
    truth, said = [one for one, _ in pairs], [two.lower() for _, two in pairs]
    precision, recall, f1, _ = precision_recall_fscore_support(truth, said, average="macro", zero_division=0)
    assert cell.metrics["accuracy"] == pytest.approx(accuracy_score(truth, said))
    assert cell.metrics["macro_precision"] == pytest.approx(precision)
    assert cell.metrics["macro_recall"] == pytest.approx(recall)
    assert cell.metrics["macro_f1"] == pytest.approx(f1)


def test_the_order_of_replies_does_not_matter() -> None:
    pairs = _choices([("benign", "benign"), ("malignant", "x"), ("benign", "malignant"), ("malignant", "malignant")])
    shuffled = list(pairs)
    random.Random(3).shuffle(shuffled)
    assert _score("DD", "21", pairs).metrics == pytest.approx(_score("DD", "21", shuffled).metrics)
