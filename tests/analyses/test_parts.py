"""Domains, sources, paired runs, confusion, the data sheet: against counts made by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from tests.analyses.made import items_of, letter, reader, right, write_replies
from tests.benchmarks.fetal_gauge.made import case, write_cases
from typer.testing import CliRunner

from sonogauge import BadInput
from sonogauge.analyses import analyse, view_analysis
from sonogauge.analyses.sizes import SizeRule, make_rule
from sonogauge.cli import app
from sonogauge.items import Item
from sonogauge.report.formats import render

pytestmark = pytest.mark.part("analyses")


NAMES = (
    *("overall", "baselines", "sizes", "domains", "sources", "pairs", "confusion", "datasheet"),
    *("robustness", "contamination"),
)


def _is_phantom(item: Item) -> bool:
    return item.meta["is_phantom"] == "true"


def test_phantom_and_clinical_within_task(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)

    def answer(item: Item, variant: str, epoch: int) -> str:
        wrong = next(one for one in item.answer.options if one != right(item))
        return letter(item, wrong if _is_phantom(item) else right(item))

    replies = write_replies(tmp_path / "clinical-only.jsonl", items, answer)
    rows = {row["task"]: row for row in analyse(replies, "domains", bench=bench).table("domains")["rows"]}
    for task in ("PI", "VG"):
        row = rows[task]
        counts = Counter(_is_phantom(item) for item in items if item.task == task)
        assert (row["n_phantom"], row["n_clinical"]) == (counts[True], counts[False]) and row["other"] == 0
        assert (row["phantom"]["value"], row["clinical"]["value"], row["difference"]["value"]) == (0.0, 1.0, -1.0)
        chance = {
            flag: sum(1 / len(i.answer.options) for i in items if i.task == task and _is_phantom(i) is flag)
            / counts[flag]
            for flag in (True, False)
        }
        expected = (0 - chance[True]) / (1 - chance[True]) - 1
        assert row["corrected"]["value"] == pytest.approx(expected)
        # All right and none right have no spread between groups, but an interval all the same.
        assert row["difference"]["low"] <= -1.0 <= row["difference"]["high"] < -0.5
    # Orientation exists for phantoms only: an empty cell says so, and nothing is pooled over tasks.
    assert rows["FO"]["n_clinical"] == 0 and rows["FO"]["clinical"]["why_null"] == "n = 0"
    assert rows["FO"]["difference"]["why_null"] == "n = 0" and set(rows) == {"PI", "FO", "VG"}
    assert "n = 0" in render(view_analysis(analyse(replies, "domains", bench=bench).document), "md")


def test_sources_seen_and_held_out(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    replies = write_replies(
        tmp_path / "home.jsonl",
        items,
        lambda item, variant, epoch: letter(item, right(item)) if item.source != "abroad" else "E. no such",
    )
    found = analyse(replies, "sources", bench=bench)
    states = {(row["source"], row["state"]) for row in found.table("sources")["rows"]}
    assert states == {("abroad", "held out"), ("clinic", "seen in train"), ("phantom", "seen in train")}
    for row in found.table("sources")["rows"]:
        own = [item for item in items if item.task == row["task"] and item.source == row["source"]]
        assert row["n"] == len(own) and row["accuracy"]["value"] == (0.0 if row["source"] == "abroad" else 1.0)
    sums = {(row["state"], row["task"]): row for row in found.table("sources_state")["rows"]}
    assert sums["held out", "FO"]["accuracy"]["why_null"] == "n = 0" and sums["held out", "VG"]["n"] > 0


def test_an_unreadable_answer_is_wrong_or_left_out(bench: Path, tmp_path: Path) -> None:
    items = [item for item in items_of(bench) if item.task == "PI"]
    silent = {item.item_id for item in items[::3]}
    replies = write_replies(
        tmp_path / "silent.jsonl",
        items_of(bench),
        lambda item, variant, epoch: "" if item.item_id in silent else letter(item, right(item)),
    )
    row = next(
        one for one in analyse(replies, "overall", bench=bench).table("overall_tasks")["rows"] if one["task"] == "PI"
    )
    share = len(silent) / len(items)
    assert row["failed"] == pytest.approx(share) and row["accuracy"]["value"] == pytest.approx(1 - share)
    row = next(
        one
        for one in analyse(replies, "overall", bench=bench, on_no_answer="exclude").table("overall_tasks")["rows"]
        if one["task"] == "PI"
    )
    assert row["accuracy"]["value"] == 1.0 and row["n"] == len(items) - len(silent)
    with pytest.raises(BadInput, match="no rule 'maybe'"):
        analyse(replies, "overall", bench=bench, on_no_answer="maybe")


def _pair(bench: Path, folder: Path, change: Callable[[int], tuple[bool, bool]]) -> tuple[Path, Path]:
    items = items_of(bench)
    numbers = {item.item_id: number for number, item in enumerate(items)}

    def model(side: int) -> Callable[[Item, str, int], str]:
        def answer(item: Item, variant: str, epoch: int) -> str:
            good = change(numbers[item.item_id])[side]
            wrong = next(one for one in item.answer.options if one != right(item))
            return letter(item, right(item) if good else wrong)

        return answer

    return tuple(write_replies(folder / f"{name}.jsonl", items, model(side)) for side, name in enumerate("ab"))  # type: ignore[return-value]


def test_paired_runs_by_task_with_mcnemar_and_holm(bench: Path, tmp_path: Path) -> None:
    before, after = _pair(bench, tmp_path, lambda number: (number % 7 == 0, number % 3 != 0))
    found = analyse(after, "pairs", bench=bench, against=before, swaps=999)
    rows = found.table("pairs")["rows"]
    items = items_of(bench)
    for row in rows:
        own = [number for number, item in enumerate(items) if row["task"] in (item.task, "all (micro)")]
        b = sum(number % 7 == 0 and number % 3 == 0 for number in own)
        c = sum(number % 7 != 0 and number % 3 != 0 for number in own)
        assert (row["n"], row["b"], row["c"]) == (len(own), b, c)
        assert row["effect"]["value"] == pytest.approx((c - b) / len(own))
        assert row["p_exact"]["value"] == pytest.approx(binomtest(b, b + c).pvalue)
        assert row["effect"]["low"] <= row["effect"]["value"] <= row["effect"]["high"]
    tasks = [row for row in rows if row["task"] != "all (micro)"]
    for key in ("p", "p_exact"):
        raw = [row[key]["value"] for row in tasks]
        order = sorted(range(len(raw)), key=lambda place: raw[place])
        running = 0.0
        for rank, place in enumerate(order):
            running = max(running, min(1.0, raw[place] * (len(raw) - rank)))
            assert tasks[place][f"{key}_holm"]["value"] == pytest.approx(running)
    outside = found.table("pairs_held_out")["rows"]
    assert {row["task"] for row in outside} == {"PI", "VG", "all (micro)"}


def test_the_same_run_twice_changes_nothing(bench: Path, tmp_path: Path) -> None:
    before, _ = _pair(bench, tmp_path, lambda number: (number % 2 == 0, True))
    for row in analyse(before, "pairs", bench=bench, against=before).table("pairs")["rows"]:
        assert (row["b"], row["c"], row["effect"]["value"]) == (0, 0, 0.0)
        assert row["p"]["value"] == row["p_exact"]["value"] == 1.0


def test_a_question_that_only_one_run_has_is_an_error(bench: Path, tmp_path: Path) -> None:
    from sonogauge.analyses.pairs import match
    from sonogauge.analyses.study import read_study

    before, after = _pair(bench, tmp_path, lambda number: (True, False))
    one, other = (read_study(path, bench=bench, draws=100) for path in (before, after))
    with pytest.raises(BadInput, match="not the same questions"):
        match(one.of()[1:], other.of(), "a", "b")
    with pytest.raises(BadInput, match="no run to compare with"):
        analyse(after, "pairs", bench=bench)


def test_datasheet_counts_what_is_there(bench: Path) -> None:
    found = analyse(bench, "datasheet")
    rows = {(row["by"], row["value"]): row for row in found.table("datasheet")["rows"]}
    items = items_of(bench) + items_of(bench, "train")
    for task in ("PI", "FO", "VG"):
        assert rows["task", task]["questions"] == sum(item.task == task for item in items)
    # A picture with a box is the image it was drawn on: images of all tasks are those of the cases.
    assert rows["source", "phantom"]["images"] == 48 * 3
    assert rows["region", "unknown"]["questions"] == sum(
        row["questions"] for (by, _), row in rows.items() if by == "split"
    )
    assert rows["phantom", "phantom"]["images"] == 48 * 3
    overlap = {row["what"]: row for row in found.table("overlap")["rows"]}
    assert overlap["patients"]["train_test"] == overlap["images"]["train_test"] == overlap["groups"]["several"] == 0
    assert "not checkable" in found.table("overlap")["notes"][0]


def test_datasheet_shows_an_overlap(tmp_path: Path) -> None:
    from tests.score.small import u2_item, write_bench

    items = [
        u2_item("DD", "21", number, {"choices": ("benign",)}, patient=1, split=split)
        for number, split in ((1, "train"), (2, "test"))
    ]
    shared = write_bench(tmp_path / "b", items)
    rows = {row["what"]: row for row in analyse(shared, "datasheet").table("overlap")["rows"]}
    assert rows["groups"]["train_test"] == 1 and rows["images"]["train_test"] == 0


@pytest.mark.parametrize(
    ("rule", "box", "image", "size"),
    [
        ("relative", (10, 5), 1000, "medium"),
        ("relative", (7, 7), 1000, "small"),
        ("relative", (15, 10), 1000, "large"),
        ("pixel", (32, 32), 1e6, "medium"),
        ("pixel", (96, 96), 1e6, "large"),
        ("pixel", (31, 32), 1e6, "small"),
    ],
)
def test_size_rules_at_their_thresholds(rule: str, box: tuple[int, int], image: float, size: str) -> None:
    assert make_rule(rule, []).bin_of(*box, image) == size


def test_quantile_rule_gives_its_shares() -> None:
    from tests.score.small import u2_item

    items = [
        u2_item(
            "DD",
            "21",
            number,
            {"choices": ("benign",)},
            meta={"box_xywh": f"0,0,{number},1", "image_width": "1000", "image_height": "1"},
        )
        for number in range(1, 1001)
    ]
    rule = make_rule("quantile", items)
    sizes = Counter(rule.bin_of(number, 1, 1000) for number in range(1, 1001))
    assert sizes == {"small": 651, "medium": 159, "large": 190}
    assert isinstance(rule, SizeRule) and rule.thresholds == (0.651, 0.81)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size_rule": "huge"}, "no size rule"),
        ({"thresholds": (0.2, 0.1)}, "must rise"),
        ({"size_rule": "quantile", "shares": (0.1, 0.1, 0.1)}, "add up to 1"),
        ({"task": "FO"}, "no box in item"),
        ({"task": "XX"}, "no answered question of task"),
    ],
)
def test_wrong_sizes_are_bad_input(options: dict[str, Any], says: str, bench: Path, tmp_path: Path) -> None:
    replies = write_replies(tmp_path / "r.jsonl", items_of(bench), reader(0.5))
    with pytest.raises(BadInput, match=says):
        analyse(replies, "sizes", bench=bench, draws=100, **options)


def test_command_prints_every_analysis_in_every_format(bench: Path, tmp_path: Path) -> None:
    replies = write_replies(
        tmp_path / "r.jsonl", items_of(bench), reader(0.6), [("", 0), ("no_image", 0), ("shuffle", 0)]
    )
    for name in NAMES:
        words = ["analyse", str(replies), "--bench", str(bench), "--analysis", name, "--draws", "100"]
        words += ["--against", str(replies)] if name == "pairs" else []
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["analysis"] == name
        assert "Fetal-Gauge-style" in CliRunner().invoke(app, [*words, "--format", "md"]).stdout
    out = tmp_path / "t.md"
    assert CliRunner().invoke(app, [*words, "--out", str(out)]).exit_code == 0
    again = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert isinstance(again.exception, BadInput)


def test_bad_input_of_the_study(bench: Path, tmp_path: Path) -> None:
    replies = write_replies(tmp_path / "r.jsonl", items_of(bench), reader(0.6))
    with pytest.raises(BadInput, match="no analysis 'magic'"):
        analyse(replies, "magic", bench=bench)
    with pytest.raises(BadInput, match="needs its benchmark"):
        analyse(replies, "overall")
    with pytest.raises(BadInput, match="too few"):
        analyse(replies, "overall", bench=bench, draws=3)
    with pytest.raises(BadInput, match="no reply in any variant"):
        analyse(replies, "robustness", bench=bench, draws=100)
    rows = [case("s", str(number), boxes=[("head", 2, 2, 20, 20)]) for number in range(3)]
    write_cases(tmp_path / "cases", rows)
    from sonogauge.build.fetal_gauge.build import build_fetal_gauge

    build_fetal_gauge(tmp_path / "cases", tmp_path / "boxes")
    answers = tmp_path / "boxes.jsonl"
    answers.write_text('{"item_id": "s/0/VL/fetal head", "text": "[1, 2, 3, 4]"}', "utf-8")
    with pytest.raises(BadInput, match="no multiple-choice question"):
        analyse(answers, "overall", bench=tmp_path / "boxes")
