"""Named ablations: the specification's table, hand-counted replies, ratios with their interval."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from scipy.stats import t as student
from tests.compare.made import answer, made_bench, made_run, small_items, small_spec
from tests.score.small import u2_item, write_bench, write_replies

from sonogauge import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.compare import compare, view_comparison
from sonogauge.compare.ablations.image import fieller
from sonogauge.compare.ablations.instruction import KINDS, is_exact
from sonogauge.compare.ablations.scale import read_sizes
from sonogauge.items import Item
from sonogauge.report.formats import render
from sonogauge.stats.intervals import Estimate
from sonogauge.tables import REASONS

pytestmark = pytest.mark.part("comparison")


def tables(runs: list[Path], bench: Path, ablation: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of an ablation by table; every format must be able to show them."""
    document = compare(runs, bench=bench, ablation=ablation, draws=300, swaps=199, **options).document
    json.dumps(document, allow_nan=False)
    for format in ("md", "csv", "latex", "json"):
        assert render(view_comparison(document), format)
    return {one["key"]: one["rows"] for one in document["ablation"]["tables"]}


def variants_run(path: Path, items: list[Item], name: str, told: dict[str, dict[str, str]]) -> Path:
    """Write replies of model `name`: variant (or "variant#epoch") to item id to text."""
    rows = []
    for variant, texts in told.items():
        kind, _, epoch = variant.partition("#")
        rows += [
            {"item_id": item_id, "variant": kind, "epoch": int(epoch or 0), "model": name, "text": text}
            for item_id, text in texts.items()
        ]
    return write_replies(path / f"{name.replace('/', '_')}.jsonl", rows)


def test_anatomy_table_of_the_specification(tmp_path: Path) -> None:
    # 521 breast and thyroid cases: 209 right both times, 64 only with, 26 only without, 222 never.
    kinds = ["both"] * 209 + ["with"] * 64 + ["without"] * 26 + ["never"] * 222
    random.Random(3).shuffle(kinds)
    items, with_name, without = [], {}, {}
    for number, kind in enumerate(kinds):
        dataset = ("21", "32")[number % 2]
        item = u2_item("DD", dataset, number + 1, {"choices": ("benign",)}, patient=number // 3)
        items.append(replace(item, anatomy=("breast", "thyroid")[number % 2]))
        with_name[item.item_id] = "benign" if kind in ("both", "with") else "malignant"
        without[item.item_id] = "benign" if kind in ("both", "without") else "malignant"
    bench = write_bench(tmp_path / "bench", items, small_spec())
    run = variants_run(tmp_path, items, "m", {"": with_name, "anatomy=off": without})
    rows = {one["organ"]: one for one in tables([run], bench, "anatomy")["anatomy"]}
    assert set(rows) == {"breast", "thyroid", "all"}
    whole = rows["all"]
    assert (whole["n"], whole["b"], whole["c"]) == (521, 64, 26)
    assert (whole["with"]["value"], whole["without"]["value"]) == pytest.approx((273 / 521, 235 / 521), abs=1e-12)
    assert whole["difference"]["value"] == pytest.approx(38 / 521, abs=1e-12)
    assert whole["chi2"] == pytest.approx(16.04, abs=5e-3)
    assert whole["p_mcnemar"]["value"] == pytest.approx(6.2e-5, abs=5e-7)
    assert rows["breast"]["n"] + rows["thyroid"]["n"] == 521
    assert rows["breast"]["b"] + rows["thyroid"]["b"] == 64
    assert whole["p"]["value"] == pytest.approx(1 / 200)


def test_anatomy_needs_the_variant_and_names_the_runs_without_it(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path)
    plain = made_run(tmp_path, items, 0.5, 1)
    with pytest.raises(BadInput, match="run with --vary anatomy=off into the same folder"):
        compare([plain], bench=bench, ablation="anatomy")
    varied = made_run(tmp_path, items, 0.5, 2, variants=[("", 0, 0.0), ("anatomy=off", 0, -0.2)])
    document = compare([plain, varied], bench=bench, ablation="anatomy", draws=100, swaps=99).document
    assert "made/1 has no replies to 'anatomy=off'." in document["ablation"]["tables"][0]["notes"]
    with pytest.raises(BadInput, match="no task 'CVE' for this ablation"):
        compare([varied], bench=bench, ablation="anatomy", tasks=["CVE"])


def test_share_kept_without_the_image(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=24, frames=2)
    run = made_run(tmp_path, items, 0.9, 1, variants=[("", 0, 0.0), ("no_image", 0, -0.25), ("blank_image", 0, -0.3)])
    rows = {(one["variant"], one["task"]): one for one in tables([run], bench, "image")["image"]}
    assert set(rows) == {(v, t) for v in ("no_image", "blank_image") for t in ("DD", "LL", "CVE")}
    one = rows["no_image", "DD"]
    assert one["chance"]["value"] == pytest.approx(0.5)
    kept = (one["without"]["value"] - 0.5) / (one["with"]["value"] - 0.5)
    assert one["kept"]["value"] == pytest.approx(kept, abs=1e-12)
    assert one["kept"]["low"] < kept < one["kept"]["high"]
    assert rows["no_image", "CVE"]["kept"] == {"value": None, "low": None, "high": None, "why_null": "no chance level"}


def test_no_share_is_kept_of_a_score_that_is_not_above_chance(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path)
    run = made_run(tmp_path, items, 0.45, 1, variants=[("", 0, 0.0), ("no_image", 0, 0.0)])
    (one,) = (row for row in tables([run], bench, "image")["image"] if row["task"] == "DD")
    assert one["kept"]["value"] is None and one["kept"]["why_null"] == "with the image not above chance"


def test_fieller_ends_are_where_the_t_statistic_is_critical() -> None:
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal([0.6, 0.8], [[0.002, 0.001], [0.001, 0.003]], size=5_000)
    parts = [
        Estimate(value, 0.0, 1.0, 30, 29.0, True, None, draws[:, number]) for number, value in enumerate((0.6, 0.8))
    ]
    found = fieller(parts[0], parts[1], 0.25)
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(0.35 / 0.55)
    for end in (found.low, found.high):
        gap = 0.35 - end * 0.55
        assert abs(gap) / np.std(draws[:, 0] - end * draws[:, 1]) == pytest.approx(student.ppf(0.975, 29), rel=1e-9)
    assert fieller(parts[0], replace(parts[1], value=0.3), 0.25) is None


def test_scale_slopes_neighbours_and_spearman(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=12)
    runs = [made_run(tmp_path, items, skill, seed) for seed, skill in ((1, 0.3), (2, 0.5), (3, 0.9))]
    found = tables(runs, bench, "scale", sizes={"made/1": 3, "made/2": 7, "made/3": 72})
    values = {row["model"]: row for row in found["scale"]}
    x = np.log2([3, 7, 72])
    for row in found["slopes"]:
        y = np.array([values[f"made/{number}"][row["measure"]]["value"] for number in (1, 2, 3)])
        if "rmse" in row["measure"]:
            y = 1 - y
        assert row["slope"]["value"] == pytest.approx(np.polyfit(x, y, 1)[0], abs=1e-12)
        assert row["spearman"]["value"] == pytest.approx(spearmanr(x, y).statistic)
        assert row["p"] == {"value": None, "low": None, "high": None, "why_null": "fewer than 6 models"}
    assert {row["measure"] for row in found["slopes"]} == {"DD accuracy", "LL accuracy", "CVE rmse_scaled", "total"}
    pairs = {(row["larger"], row["smaller"]) for row in found["neighbours"]}
    assert pairs == {("made/2", "made/1"), ("made/3", "made/2")}
    assert len(found["neighbours"]) == 8
    assert all(row["p_holm"]["value"] >= row["p"]["value"] for row in found["neighbours"])


def test_scale_takes_sizes_and_families_from_a_file_of_models(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    runs = [made_run(tmp_path, items, 0.5, seed) for seed in (1, 2, 3)]
    cards = tmp_path / "models.yaml"
    cards.write_text("models: {made/1: {family: a, size_b: 3}, made/2: {family: a, size_b: 6}}", "utf-8")
    document = compare(runs, bench=bench, ablation="scale", models_file=cards, draws=100, swaps=99).document
    scale = document["ablation"]["tables"][0]
    assert [(row["family"], row["size"]) for row in scale["rows"]] == [("a", 3.0), ("a", 6.0)]
    assert scale["notes"] == ["No size known, left out: made/3."]
    with pytest.raises(BadInput, match="no family of models with two sizes"):
        compare(runs, bench=bench, ablation="scale")
    with pytest.raises(BadInput, match="no model 'other' among the runs"):
        compare(runs, bench=bench, ablation="scale", sizes={"other": 3})


@pytest.mark.parametrize("text", ["7", "a=", "=7", "a=x", "a=-1", "a=nan"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match="not a size"):
        read_sizes([text])
    with pytest.raises(BadInput, match="not a size"):
        read_sizes(["a=7", "a=8"])


def test_instruction_following_by_hand(tmp_path: Path) -> None:
    items = [item for item in small_items(patients=4, frames=2) if item.task == "DD"]
    said = {
        "21": [
            "benign",
            "**Malignant.**",
            "The answer is benign.",
            "",
            "benign or malignant",
            "I cannot tell from this image.",
            "malignant",
            "Benign",
        ],
        "32": ["benign"] * 8,
    }
    texts = {item.item_id: said[item.dataset][int(item.item_id[-4:]) - 1] for item in items}
    bench = write_bench(tmp_path / "bench", items, small_spec())
    run = variants_run(tmp_path, items, "m", {"": texts})
    rows = {one["dataset"]: one for one in tables([run], bench, "instruction")["instruction"]}
    first = rows["DD/21"]
    assert (first["n"], first["exact"]["value"], first["extractable"]["value"]) == (8, 4 / 8, 5 / 8)
    assert (first["empty"], first["ambiguous"], first["refusal"], first["error"]) == (1 / 8, 1 / 8, 1 / 8, 0.0)
    assert rows["macro over data sets"]["exact"]["value"] == pytest.approx((4 / 8 + 1) / 2)
    assert rows["all cases"]["exact"]["value"] == pytest.approx(12 / 16)
    assert rows["all cases"]["empty"] == pytest.approx(1 / 16)
    # Four patients: the interval is there, and marked in the table as everywhere else.
    assert first["exact"]["low"] is not None and first["exact"]["reliable"] is False
    view = view_comparison(compare([run], bench=bench, ablation="instruction", draws=200).document)
    assert "fewer than 20 groups: unreliable" in render(view, "md")


def test_every_reason_of_a_failed_parse_has_its_kind() -> None:
    assert sorted(reason for own in KINDS.values() for reason in own) == sorted(REASONS)


def test_exact_replies_with_letters() -> None:
    item = replace(
        u2_item("DD", "21", 1, {"choices": ("benign",)}), answer=AnswerSpec("choice", ("cyst", "mass"), ("A", "B"))
    )
    assert is_exact("(A)", item) and is_exact("B. mass", item) and is_exact("“Cyst”", item)
    assert not is_exact("A. mass", item) and not is_exact("It is A", item) and not is_exact("", item)


def test_repeats_by_hand(tmp_path: Path) -> None:
    items = [item for item in small_items(patients=4, frames=1) if item.dataset == "21"]
    right = {item.item_id: item.reference["choices"][0] for item in items}
    wrong = {key: "benign" if one == "malignant" else "malignant" for key, one in right.items()}
    ids = sorted(right)
    # Item 1 right thrice, item 2 once, item 3 never but twice unreadable, item 4 wrong thrice.
    told = {
        "": right,
        "repeat#0": {ids[0]: right[ids[0]], ids[1]: right[ids[1]], ids[2]: "", ids[3]: wrong[ids[3]]},
        "repeat#1": {ids[0]: right[ids[0]], ids[1]: wrong[ids[1]], ids[2]: "hm", ids[3]: wrong[ids[3]]},
        "repeat#2": {ids[0]: right[ids[0]], ids[1]: wrong[ids[1]], ids[2]: wrong[ids[2]], ids[3]: wrong[ids[3]]},
    }
    bench = write_bench(tmp_path / "bench", items, small_spec())
    (row,) = tables([variants_run(tmp_path, items, "m", told)], bench, "repeats")["repeats"]
    assert (row["n"], row["replies"]) == (4, "3")
    shares = {name: row[name]["value"] for name in ("changed", "agreement", "right", "always", "ever")}
    expected = {
        "changed": 2 / 4,
        "agreement": (1 + 1 / 3 + 1 / 3 + 1) / 4,
        "right": 4 / 12,
        "always": 1 / 4,
        "ever": 2 / 4,
    }
    assert shares == pytest.approx(expected)


def test_rotations_follow_the_option_and_not_its_place(tmp_path: Path) -> None:
    items = [
        replace(item, answer=replace(item.answer, letters=("A", "B")))
        for item in small_items(patients=4, frames=1)
        if item.dataset == "21"
    ]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    steady = {item.item_id: "AB"[item.answer.options.index(item.reference["choices"][0])] for item in items}
    turned = {item_id: "BA"["AB".index(letter)] for item_id, letter in steady.items()}
    always_a = dict.fromkeys(steady, "A")
    runs = [
        variants_run(tmp_path, items, "steady", {"": steady, "circular=1": turned}),
        variants_run(tmp_path, items, "place", {"": always_a, "circular=1": always_a}),
    ]
    rows = {one["model"]: one for one in tables(runs, bench, "rotations")["rotations"]}
    assert (rows["steady"]["changed"]["value"], rows["steady"]["always"]["value"]) == (0.0, 1.0)
    assert (rows["place"]["changed"]["value"], rows["place"]["always"]["value"]) == (1.0, 0.0)
    assert rows["place"]["right"]["value"] == 0.5


def test_repeats_and_rotations_need_their_variants(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    run = made_run(tmp_path, items, 0.5, 1)
    for name in ("repeats", "rotations", "image"):
        with pytest.raises(BadInput, match="no reply in a variant"):
            compare([run], bench=bench, ablation=name)
    once = made_run(tmp_path, items, 0.5, 2, variants=[("", 0, 0.0), ("repeat", 0, 0.0)])
    with pytest.raises(BadInput, match="no item with two replies"):
        compare([once], bench=bench, ablation="repeats")


def test_answers_of_the_made_models_are_read(tmp_path: Path) -> None:
    # The other tests count on it: a model of skill 1 is right everywhere.
    bench, items = made_bench(tmp_path)
    texts = {item.item_id: answer(item, True, random.Random(0)) for item in items}
    best = variants_run(tmp_path, items, "best", {"": texts})
    worst = made_run(tmp_path, items, 0.0, 1)
    found = compare([best, worst], bench=bench, draws=100, swaps=99).document["totals"]["total"]
    assert found["best"]["value"] == pytest.approx(1.0, abs=1e-3)
    assert found["made/1"]["value"] < 0.25
