"""The stages one by one: words, quality, splits, sampling, facts, options, drawing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.build.merge import merge_sorted
from sonogauge.build.recipe import PublishedSplit, SamplingRule, Sentence, SplitRule, TaskRecipe
from sonogauge.build.stages.facts import facts_of, write_text
from sonogauge.build.stages.questions import options_for
from sonogauge.build.stages.sampling import sample
from sonogauge.build.stages.splits import SplitCase, split_cases, units_of
from sonogauge.build.stages.vocabulary import filtered, map_words, read_vocabulary
from sonogauge.cases.render import draw_box
from sonogauge.items import Item, ItemImage
from tests.build.made_batches import batch_of
from tests.build.made_cases import case, disc, picture

pytestmark = pytest.mark.part("recipes")


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    file = tmp_path / "words.csv"
    file.write_text(
        "raw,canonical,source,field\n"
        "abdomcirc,abdominal circumference plane,,view\n"
        "Ca, malignant ,,pathology\n"
        "ca,carotid,vessels,\n"
        "tumor,lesion,,category\n",
        "utf-8",
    )
    return file


def test_words_become_canonical_and_the_raw_one_is_kept(vocabulary: Path) -> None:
    mask = disc(128, 0.5, 0.5, 0.1)
    row = case("a", picture(0), {"tumor": mask}, view="AbdomCirc", labels={"pathology": "CA", "grade": "3"})
    batch, done = map_words(batch_of(row), read_vocabulary(vocabulary))
    (out,) = batch.to_pylist()
    assert (out["view"], out["labels"][0]["value"]) == ("abdominal circumference plane", "malignant")
    assert out["masks"][0]["category"] == out["boxes"][0]["category"] == "lesion"
    assert {one["name"]: one["value"] for one in out["meta"]} == {
        "raw category": "tumor",
        "raw pathology": "CA",
        "raw view": "AbdomCirc",
    }
    assert done.changed == 4
    assert done.unmapped == Counter({("grade", "made", "3"): 1, ("anatomy", "made", "breast"): 1})
    assert out["image"] == batch_of(row).to_pylist()[0]["image"]


def test_a_word_of_other_signs_is_the_word_spelled_with_spaces(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("raw,canonical\nfetal brain,the brain\nfetal-brain x,exact\n", "utf-8")
    words = read_vocabulary(file)
    assert words.find("plane", "s", "Fetal-Brain") == words.find("plane", "s", " FETAL_brain.") == "the brain"
    assert words.find("plane", "s", "fetal-brain x") == "exact" and words.find("plane", "s", "fetal brain x") is None


def test_the_most_exact_row_of_the_vocabulary_counts(vocabulary: Path) -> None:
    words = read_vocabulary(vocabulary)
    assert words.find("pathology", "vessels", "ca") == "malignant"
    assert words.find("structure", "vessels", "ca") == "carotid"
    assert words.find("structure", "made", "ca") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raw,source\na,b\n", "field 'canonical': column missing"),
        ("raw,canonical,colour\na,b,c\n", "field 'colour': unknown column"),
        ("raw,canonical\na,b\nA,c\n", "row 2: 'A' has two meanings"),
        ("raw,canonical\na,\n", "row 1: a word is empty"),
    ],
)
def test_a_broken_vocabulary_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "words.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=message):
        read_vocabulary(file)


def test_the_class_filter_names_the_label() -> None:
    row = case("a", picture(0), labels={"plane": "other"}, view=None)
    assert filtered(row, {"plane": ("other",)}) == "plane=other"
    assert filtered(row, {"plane": ("brain",), "view": ("other",)}) is None


def split_case(name: str, group: str, own: str | None = None, pixels: str | None = None, label: str = "") -> SplitCase:
    return SplitCase(name, "s", f"s:{group}", pixels or name, own, label)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), min_size=5, max_size=80), st.integers(0, 3))
def test_no_group_and_no_image_is_in_two_parts(pairs: list[tuple[int, int]], seed: int) -> None:
    cases = [split_case(f"{number}", f"{group}", None, f"{pixels}") for number, (group, pixels) in enumerate(pairs)]
    result = split_cases(cases, SplitRule(small_source=0), seed)
    for value in ("group", "pixels"):
        parts: dict[str, set[str]] = {}
        for one in cases:
            parts.setdefault(getattr(one, value), set()).add(result.parts[one.case_id])
        assert all(len(found) == 1 for found in parts.values())
    assert result.parts == split_cases(cases[::-1], SplitRule(small_source=0), seed).parts


def test_the_test_part_is_as_large_as_declared_in_each_stratum() -> None:
    cases = [split_case(f"{n}", f"{n // 2}", label="ab"[n % 20 < 4]) for n in range(400)]
    result = split_cases(cases, SplitRule(small_source=0, test_fraction=0.3, stratify="x"), 1)
    for label in "ab":
        inside = [one for one in cases if one.label == label]
        share = sum(result.parts[one.case_id] == "test" for one in inside) / len(inside)
        assert share == pytest.approx(0.3, abs=0.02)


def test_copies_stay_together() -> None:
    cases = [split_case("1", "a"), split_case("2", "b"), split_case("3", "c")]
    assert units_of(cases, [("3", "2")]) == {"1": "s:a", "2": "s:b", "3": "s:b"}


def test_small_sources_are_tests_and_own_splits_are_kept() -> None:
    few = [split_case(f"{n}", f"{n}") for n in range(5)]
    assert set(split_cases(few, SplitRule(), 0).parts.values()) == {"test"}
    own = [split_case(f"{n}", f"{n}", ["Training", "validation", "TEST"][n % 3]) for n in range(6)]
    assert [split_cases(own, SplitRule(rule="official"), 0).parts[f"{n}"] for n in range(3)] == ["train", "val", "test"]
    with pytest.raises(BadInput, match="5 of 5 cases of 's' have no split"):
        split_cases(few, SplitRule(rule="official"), 0)
    with pytest.raises(BadInput, match="'fold 3' is no known part"):
        split_cases([split_case("1", "a", "fold 3")], SplitRule(), 0)


def test_a_published_split_is_that_of_scikit_learn() -> None:
    from sklearn.model_selection import train_test_split

    cases = [split_case(f"{n:02d}", f"{n // 4}", label="ab"[n % 2]) for n in range(60)]
    rule = SplitRule(rule="published", published={"s": PublishedSplit(stratify="x")})
    result = split_cases(cases, rule, 0)
    names = [one.case_id for one in cases]
    _, test = train_test_split(names, test_size=0.2, random_state=42, stratify=[one.label for one in cases])
    assert {name for name, part in result.parts.items() if part == "test"} == set(test)
    assert result.notices == ["s: split by image, so a patient can be on both sides"]
    by_group = SplitRule(rule="published", published={"s": PublishedSplit(by="group")})
    parts = split_cases(cases, by_group, 0).parts
    assert len({(one.group, parts[one.case_id]) for one in cases}) == 15


def item(number: int, group: int, answer: str = "a", split: str = "test") -> Item:
    return Item(
        item_id=f"DX/{number:04d}",
        task="DX",
        dataset="s",
        source="s",
        group=f"s:{group}",
        split=split,
        images=(ItemImage("c"),),
        question="?",
        prompt_id="p",
        answer=AnswerSpec("choice", options=("a", "b")),
        reference={"choices": (answer,)},
        reference_state="ok",
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 4), st.integers(1, 30), st.integers(0, 9))
def test_sampling_keeps_its_limits(groups: list[int], per_group: int, per_scenario: int, seed: int) -> None:
    items = [item(number, group) for number, group in enumerate(groups)]
    rule = SamplingRule(per_group=per_group, per_scenario=per_scenario)
    kept, counts = sample(items, lambda _: rule, seed)
    most = sum(min(per_group, number) for number in Counter(groups).values())
    assert len(kept) == min(per_scenario, most)
    assert max(Counter(one.group for one in kept).values()) <= per_group
    assert counts["DX/s/test"]["asked"] == len(items) == sum(counts["DX/s/test"].values()) - len(items)
    assert sample(items[::-1], lambda _: rule, seed)[0] == kept[::-1]


def test_a_declared_weight_makes_a_rare_answer_common() -> None:
    items = [item(number, number, "b" if number % 10 == 0 else "a") for number in range(1000)]
    plain = sample(items, lambda _: SamplingRule(per_scenario=100), 0)[0]
    weighted = sample(items, lambda _: SamplingRule(per_scenario=100, weights={"b": 9.0}), 0)[0]
    share = [sum(one.reference["choices"] == ("b",) for one in kept) for kept in (plain, weighted)]
    # Of 100 with the weights 1 and 9 at 900 and 100 items: about half, less what is used up.
    assert share[0] < 20 < 35 < share[1] < 60
    assert len({one.item_id for one in weighted}) == 100


def test_facts_of_a_case_and_a_text_of_them() -> None:
    row = case("a", picture(0), {"lesion": disc(128, 0.25, 0.75, 0.1)}, labels={"pathology": "benign"})
    facts = facts_of({**row, "shares": [{"category": "lesion", "share": 0.031}]})
    assert facts["lesion_place"] == "lower left"
    assert (facts["lesion_extent"], facts["lesion_percent"], facts["lesion_count"]) == ("small", "3.1", "1")
    assert facts["lesion_long_mm"] == f"{float(facts['lesion_long_px']) / 10:.1f}"
    text = write_text(
        [
            Sentence(text="A {lesion_extent} lesion lies {lesion_place}."),
            Sentence(text="It is {grade}."),
            Sentence(text="Normal.", when={"pathology": ("normal",)}),
            Sentence(text="Likely {pathology}.", when={"pathology": ("*",)}),
        ],
        facts,
    )
    assert text == "A small lesion lies lower left. Likely benign."


def task(**facts: Any) -> TaskRecipe:
    return TaskRecipe.model_validate(
        {"title": "t", "question": "choice", "label": "x", "template": "?\n{answer_format}", **facts}
    )


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True),
    st.integers(2, 6),
    st.sampled_from(["hash", "fixed"]),
    st.integers(0, 50),
)
def test_options_hold_the_answer_once_and_no_other_twice(
    pool: list[str], wanted: int, shuffle: str, number: int
) -> None:
    right = pool[0]
    options = options_for(
        task(n_options=wanted, shuffle=shuffle), sorted(pool), list("abcdefgh"), right, 0, f"{number}"
    )
    assert options.count(right) == 1
    assert len(set(options)) == len(options) == wanted
    assert options == options_for(
        task(n_options=wanted, shuffle=shuffle), sorted(pool), list("abcdefgh"), right, 0, f"{number}"
    )


def test_shuffled_answers_fall_on_every_letter() -> None:
    one = task(n_options=4, shuffle="hash")
    at = Counter(options_for(one, list("abcd"), [], "a", 0, f"{n}").index("a") for n in range(400))
    assert set(at) == {0, 1, 2, 3} and min(at.values()) > 70


def test_a_small_pool_gives_fewer_options_and_synonyms_are_no_distractors() -> None:
    assert options_for(task(n_options=4), ["a", "b"], ["a", "b"], "a", 0, "i") == ("a", "b")
    assert options_for(task(n_options=3), ["Cyst", "cyst", "node"], [], "cyst", 0, "i") == ("cyst", "node")
    declared = task(options=["x", "m", "a"])
    assert options_for(declared, ["a"], [], "m", 0, "i") == ("x", "m", "a")


def test_a_box_is_drawn_outside_of_what_it_shows() -> None:
    pixels = picture(0)
    box = {"x": 30.2, "y": 40.0, "w": 20.0, "h": 10.5}
    drawn = draw_box(pixels, box)
    red = (drawn == (255, 0, 0)).all(axis=2)
    assert not red[40:51, 30:51].any()
    assert red[38:40, 28:53].all() and red[38:53, 28:30].all()
    assert (drawn[~red] == pixels[~red][:, None]).all()
    inward = (draw_box(pixels, box, side="inward", line=1) == (255, 0, 0)).all(axis=2)
    assert inward[40, 30:51].all() and not inward[:40].any()
    corner = (draw_box(pixels, {"x": 0, "y": 0, "w": 128, "h": 128}) == (255, 0, 0)).all(axis=2)
    assert not corner.any()


@given(
    st.lists(st.lists(st.text("abc", min_size=1, max_size=4), max_size=12), min_size=1, max_size=4), st.integers(1, 5)
)
def test_sorted_streams_merge_sorted(streams: list[list[str]], rows: int) -> None:
    batches = [
        [pa.RecordBatch.from_pydict({"id": pa.array(part)}) for part in (sorted(one)[:5], sorted(one)[5:]) if part]
        for one in streams
    ]
    merged = [value for table in merge_sorted(batches, "id", rows) for value in table.column("id").to_pylist()]
    assert merged == sorted(value for one in streams for value in one)
