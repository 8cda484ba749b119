"""Parts of judging: leniency v1, shares, agreement with physicians, the corrected score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from tests.score.made_judges import ScriptedJudge, made, says, text_item
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.folders import Folder
from sonogauge.score.judge import judge
from sonogauge.score.judging.agreement import JudgeAgreement, judge_agreement
from sonogauge.score.judging.leniency import lenient_verdict, raised
from sonogauge.score.judging.prompt import as_data
from sonogauge.score.judging.shares import verdict_shares
from sonogauge.score.judging.verdict import FAULTS, LEVELS, read_verdict

pytestmark = [pytest.mark.part("judge"), pytest.mark.lookalike]


@pytest.mark.parametrize(
    ("attribute", "reference", "answer", "verdict"),
    [
        ("color", "skin tone", "pink", 0.5),
        ("color", "pink", "skin-colored", 0.5),
        ("color", "red", "The lesion is pink.", 0.5),
        ("color", "brown", "black", 0.5),
        ("color", "white", "flesh-coloured", 0.5),
        ("color", "erythematous", "red", 1.0),
        ("color", "grey", "gray", 1.0),
        ("color", "粉红色", "pink", 1.0),
        ("color", "red", "blue", None),
        ("color", "red", "not red", None),
        ("color", "red", "不是红色", None),
        ("color", "red", "red, blue, black or white", None),
        ("color", "red and white", "white with red", 1.0),
        ("color", "red and white", "red", None),
        ("color", "red", "infrared pinkerton", None),
        ("color", "", "red", None),
        ("size", "millimetre", "pinpoint", 0.5),
        ("size", "pinpoint", "punctate", 1.0),
        ("size", "millimeter-sized", "about 5 mm", 1.0),
        ("size", "millimetre", "0.5 cm", 1.0),
        ("size", "pinpoint", "3 x 4 mm", 0.5),
        ("size", "centimetre", "12 mm", 1.0),
        ("size", "centimetre", "pinpoint", None),
        ("size", "millimetre", "5 centimetres", None),
        ("size", "2 mm", "9 mm", None),
        ("size", "millimetre", "pinpoint, millimetre or centimetre", None),
        ("shape", "pink", "skin tone", None),
        ("", "pink", "skin tone", None),
    ],
)
def test_leniency_v1(attribute: str, reference: str, answer: str, verdict: float | None) -> None:
    assert lenient_verdict(attribute, [reference], answer) == verdict


def test_leniency_takes_the_best_reference_and_only_raises() -> None:
    assert lenient_verdict("color", ["blue", "skin tone", "pink"], "pink") == 1.0
    for verdict in LEVELS:
        assert raised(verdict, None) == verdict
        for lenient in LEVELS:
            assert raised(verdict, lenient) == max(verdict, lenient)


@given(st.text(max_size=200), st.text(max_size=200))
def test_leniency_is_symmetric_and_on_the_levels(one: str, other: str) -> None:
    for attribute in ("color", "size"):
        found = lenient_verdict(attribute, [one], other)
        assert found in (None, 0.5, 1.0)
        assert found == lenient_verdict(attribute, [other], one)


@given(st.text(max_size=300))
def test_a_verdict_is_read_from_anything_without_a_guess(text: str) -> None:
    read = read_verdict(text)
    assert (read.verdict is None) == (read.fault in FAULTS)
    assert "verdict" in text or read.verdict is None


@given(st.text(max_size=300), st.text(max_size=100))
def test_data_hold_one_object_whatever_the_answer(answer: str, question: str) -> None:
    data = as_data(question, ["r"], answer)
    found = json.loads(data)
    assert list(found) == ["question", "reference answers", "candidate answer"]
    assert len(data.splitlines()) == 5
    assert found["candidate answer"] == answer.encode("utf-8", "replace").decode("utf-8")


def _checked(
    tmp_path: Path, table: Any, answers: int = 0, fail: tuple[int, ...] = ()
) -> tuple[Path, list[dict[str, Any]]]:
    """Judge an answer per count of `table` (judge x physician), and more that nobody checked."""
    pairs = [(row, column) for row in range(3) for column in range(3) for _ in range(table[row][column])]
    judged = [row for row, _ in pairs] + [number % 3 for number in range(answers)]
    items = [text_item(number, "psoriasis", attribute="color" if number % 2 else "") for number in range(len(judged))]
    texts = {item.item_id: f"answer {number}" for number, item in enumerate(items)}
    replies, bench = made(tmp_path, texts, items)

    def script(data: dict[str, Any], nth: int) -> str:
        number = int(data["candidate answer"].split()[1])
        return "?" if number in fail else says(LEVELS[judged[number]])

    judge(replies, tmp_path / "v", [ScriptedJudge(script)], bench=bench)
    votes = [
        {
            "item_id": f"AR/{number:03d}",
            "reviewer": "A",
            "role": "physician",
            "question": "verdict",
            "vote": f"{LEVELS[p]:g}",
        }
        for number, (_, p) in enumerate(pairs)
    ]
    return tmp_path / "v", votes


def _vote(item_id: str, vote: str, reviewer: str = "A") -> dict[str, Any]:
    return {"item_id": item_id, "reviewer": reviewer, "role": "physician", "question": "verdict", "vote": vote}


def _whole(found: JudgeAgreement, **facts: str) -> Any:
    wanted = {"leniency": "none", "part": "all", "attribute": ""} | facts
    (one,) = [each for each in found.agreements if all(getattr(each, name) == word for name, word in wanted.items())]
    return one


def test_kappa_of_the_specification(tmp_path: Path) -> None:
    table = [[20, 5, 0], [5, 10, 5], [0, 5, 50]]
    verdicts, votes = _checked(tmp_path, table)
    one = _whole(judge_agreement(verdicts, votes, draws=300))
    assert one.confusion == table and one.items == 100
    assert round(one.kappa.value, 3) == 0.859 and one.raw_agreement.value == pytest.approx(0.80)
    assert round(_whole(judge_agreement(verdicts, votes, weights="linear", draws=300)).kappa.value, 3) == 0.770
    assert one.kappa.low < one.kappa.value < one.kappa.high
    assert one.difference.value == pytest.approx((10 * -0.5 + 10 * 0.5) / 100)
    assert one.false_lenient.value == pytest.approx(10 / (25 + 20))  # of the answers below 1
    assert one.ceiling is None
    numbers = [(row, column) for row in range(3) for column in range(3) for _ in range(table[row][column])]
    a, b = zip(*numbers, strict=True)
    assert one.kappa.value == pytest.approx(cohen_kappa_score(a, b, weights="quadratic"), abs=1e-12)


def test_parts_share_no_patient_and_attributes_add_up(tmp_path: Path) -> None:
    verdicts, votes = _checked(tmp_path, [[10, 5, 5], [5, 10, 5], [5, 5, 10]])
    found = judge_agreement(verdicts, votes, draws=100)
    sizes = {one.part: one.items for one in found.agreements if one.leniency == "none" and not one.attribute}
    assert sizes["development"] + sizes["test"] == sizes["all"] == 60
    assert 15 < sizes["test"] < 45
    colour = _whole(found, attribute="color")
    assert colour.items == 30
    assert {one.part for one in judge_agreement(verdicts, votes, draws=100, development=0.0).agreements} == {
        "all",
        "test",
    }


def test_leniency_is_compared_before_and_after(tmp_path: Path) -> None:
    items = [text_item(number, "skin tone", attribute="color") for number in range(20)]
    replies, bench = made(tmp_path, {item.item_id: f"pink {item.item_id}" for item in items}, items)
    judge(replies, tmp_path / "v", [ScriptedJudge(lambda data, nth: says(0))], bench=bench)
    votes = [
        {"item_id": item.item_id, "reviewer": who, "role": "physician", "question": "verdict", "vote": vote}
        for number, item in enumerate(items)
        for who, vote in (("A", "0.5"), ("B", "0.5" if number < 15 else "1"))
    ]
    found = judge_agreement(tmp_path / "v", votes, draws=100)
    before, after = _whole(found), _whole(found, leniency="v1")
    assert before.raw_agreement.value == 0.0 and after.raw_agreement.value == pytest.approx(35 / 40)
    assert before.difference.value == pytest.approx(-(35 * 0.5 + 5 * 1.0) / 40)
    assert before.ceiling.estimates["percent"].value == pytest.approx(15 / 20)
    assert before.ceiling.units == 20
    corrected = {one.leniency: one for one in found.corrected if one.part == "all"}
    truth = (15 * 0.5 + 5 * 0.75) / 20
    assert corrected["none"].judged == 0.0 and corrected["v1"].judged == 0.5
    # All answers are checked, so that either correction gives the physicians' mean.
    assert corrected["none"].estimate.value == pytest.approx(truth) == corrected["v1"].estimate.value


def test_the_corrected_score_by_hand(tmp_path: Path) -> None:
    table = [[6, 2, 2], [2, 6, 2], [0, 2, 8]]
    verdicts, votes = _checked(tmp_path, table, answers=60, fail=(29,))
    found = judge_agreement(verdicts, votes, draws=500)
    one = next(each for each in found.corrected if each.part == "all" and each.leniency == "none")
    judged = np.array([LEVELS[row] for row in range(3) for column in range(3) for _ in range(table[row][column])])
    physicians = np.array(
        [LEVELS[column] for row in range(3) for column in range(3) for _ in range(table[row][column])]
    )
    judged[29] = 0.0  # the judge failed on it, which counts as it is counted in the score
    every = np.concatenate([judged, [LEVELS[number % 3] for number in range(60)]])
    expected = every.mean() + (physicians - judged).mean()
    assert one.checked == 30 and one.judged == pytest.approx(every.mean())
    assert one.estimate.value == pytest.approx(expected, abs=1e-12)
    # Its variance, for one answer a patient: of the judged mean and the correction, which share the checked answers.
    n, big = 30, 90
    influence = (every - every.mean()) / big
    influence[:n] += (physicians - judged - (physicians - judged).mean()) / n
    error = np.sqrt((influence**2).sum())
    assert one.estimate.low == pytest.approx(expected - 2.0 * error, abs=0.35 * error)
    assert one.estimate.high == pytest.approx(expected + 2.0 * error, abs=0.35 * error)
    # A checked answer that a rule decided corrects nothing.
    assert _whole(found).items == 29


def test_the_interval_of_the_corrected_score_covers(tmp_path: Path) -> None:
    """Over simulated checks of a biased judge the interval holds the truth about 95 % of the time."""
    from sonogauge.score.judging.agreement import _Answer, _corrected

    rng = np.random.default_rng(0)
    hits = naive = 0
    for _ in range(150):
        truth = rng.choice(3, 120, p=[0.3, 0.2, 0.5])
        judged = np.minimum(truth + (rng.random(120) < 0.3), 2)
        checked = rng.random(120) < 0.5
        answers = [
            _Answer(
                text_item(number, "x"),
                False,
                {("j", "none"): LEVELS[judged[number]]},
                frozenset(),
                (("A", int(truth[number])),) if checked[number] else (),
                "test",
            )
            for number in range(120)
        ]
        found = _corrected("j", "none", "all", answers, 200, 0).estimate
        assert found.low is not None and found.high is not None
        mean = 0.2 * 0.5 + 0.5
        hits += found.low <= mean <= found.high
        naive += found.low <= np.mean([LEVELS[one] for one in judged]) <= found.high
    assert 0.89 <= hits / 150 <= 0.99
    assert naive < hits


def test_shares_of_verdicts(tmp_path: Path) -> None:
    verdicts, _ = _checked(tmp_path, [[4, 0, 0], [2, 0, 0], [2, 0, 0]])
    rows = {(one.attribute, one.leniency): one for one in verdict_shares(verdicts, tmp_path / "bench")}
    assert rows["", "none"].shares == {"0": 0.5, "0.5": 0.25, "1": 0.25} and rows["", "none"].n == 8
    assert rows["color", "none"].n == 4 and rows["", "none"].between == 0.0 and rows["", "none"].failed == 0


def test_a_failed_judge_is_in_no_share(tmp_path: Path) -> None:
    texts = {f"AR/{number:03d}": "rather red" if number else "rather blue" for number in range(4)}
    replies, bench = made(tmp_path, texts, [text_item(number, "red", attribute="color") for number in range(4)])
    scripted = ScriptedJudge(lambda data, nth: "?" if "blue" in data["candidate answer"] else says(1))
    judge(replies, tmp_path / "v", [scripted], bench=bench)
    rows = {(one.attribute, one.leniency): one for one in verdict_shares(tmp_path / "v", bench)}
    assert (rows["", "none"].n, rows["", "none"].failed) == (4, 1)
    assert rows["", "none"].shares == {"0": 0.0, "0.5": 0.0, "1": 1.0}


def test_votes_that_do_not_fit_are_named(tmp_path: Path) -> None:
    verdicts, votes = _checked(tmp_path, [[2, 0, 0], [0, 2, 0], [0, 0, 2]])
    with pytest.raises(BadInput, match="no vote on an answer that was judged"):
        judge_agreement(verdicts, [])
    with pytest.raises(BadInput, match="gave '2' to AR/000"):
        judge_agreement(verdicts, [{**votes[0], "vote": "2"}])
    with pytest.raises(BadInput, match="two verdicts of A"):
        judge_agreement(verdicts, [votes[0], votes[0]])
    with pytest.raises(BadInput, match="no share"):
        judge_agreement(verdicts, votes, development=1.0)


def test_from_review_to_the_printed_table(tmp_path: Path) -> None:
    from tests.review.made_reviews import by_hand, write_export

    from sonogauge.review import export_review, import_review

    verdicts, _ = _checked(tmp_path, [[5, 2, 0], [2, 5, 2], [0, 2, 5]])
    replies, bench = tmp_path / "model.jsonl", tmp_path / "bench"
    export_review(bench, tmp_path / "e", "verdict", run=replies, verdicts=verdicts, views=3)

    def physician(item_id: str, reviewer: int) -> dict[str, list[str]]:
        return {"verdict": [f"{LEVELS[(int(item_id[-3:]) * reviewer) % 3]:g}"]}

    file = write_export(tmp_path / "a.json", by_hand(tmp_path / "e", [1, 2, 3], physician))
    import_review(file, tmp_path / "e", tmp_path / "votes")
    arguments = ["judge-agreement", str(verdicts), "--votes", str(tmp_path / "votes"), "--draws", "200"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "test/judge, leniency v1, test, color" in result.stdout
    assert "ceiling, physicians among themselves: kappa" in result.stdout
    assert "weights:quadratic|pairs:pooled|development:0.5" in result.stdout
    result = CliRunner().invoke(app, [*arguments, "--json"])
    found = json.loads(result.stdout)
    assert found["agreement"][0]["items"] == 23 and sum(map(sum, found["agreement"][0]["confusion"])) == 69
    # Votes on the replies of another run are refused.
    replies.write_text(replies.read_text().replace("answer 1", "another 1"))
    export_review(bench, tmp_path / "e2", "verdict", run=replies)
    file = write_export(tmp_path / "b.json", by_hand(tmp_path / "e2", [1], physician))
    import_review(file, tmp_path / "e2", tmp_path / "votes2")
    with pytest.raises(BadInput, match="another run"):
        judge_agreement(verdicts, tmp_path / "votes2")


def test_a_panel_is_compared_where_its_median_is_a_level(tmp_path: Path) -> None:
    items = [text_item(number, "psoriasis") for number in range(30)]
    replies, bench = made(tmp_path, {item.item_id: f"answer {number}" for number, item in enumerate(items)}, items)
    judges = [
        ScriptedJudge(lambda data, nth: says(0), "test/a"),
        ScriptedJudge(lambda data, nth: says(0.5 if int(data["candidate answer"].split()[1]) < 10 else 0), "test/b"),
    ]
    judge(replies, tmp_path / "v", judges, bench=bench)
    votes = [
        {"item_id": item.item_id, "reviewer": "A", "role": "physician", "question": "verdict", "vote": "0"}
        for item in items
    ]
    found = judge_agreement(tmp_path / "v", votes, draws=100)
    panel = _whole(found, judge="median")
    assert (panel.items, panel.off_level) == (20, 10)
    assert _whole(found, judge="test/b").items == 30
    assert Folder(tmp_path / "v").manifest.counts["asked"] == 60
