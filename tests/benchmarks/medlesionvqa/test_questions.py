"""The questions file: what is read, written and refused; building from annotations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.medlesionvqa.made import annotation, picture, question, write

from sonogauge import BadInput
from sonogauge.benchmarks.medlesionvqa.annotations import read_annotations
from sonogauge.benchmarks.medlesionvqa.build import build_medlesionvqa
from sonogauge.benchmarks.medlesionvqa.candidates import Rules, distractors
from sonogauge.benchmarks.medlesionvqa.checks import check_questions
from sonogauge.benchmarks.medlesionvqa.questions import TARGET_SHARES, VAL_SHARE, build_questions, quotas
from sonogauge.benchmarks.medlesionvqa.schema import ABILITIES, read_questions, write_questions
from sonogauge.benchmarks.medlesionvqa.vocabulary import load_vocabularies, read_vocabulary

pytestmark = pytest.mark.part("medlesionvqa")
WORDS = load_vocabularies()


def load(file: Path) -> None:
    check_questions(read_questions(file), file, file.parent)


def test_sums_and_share_of_the_specification() -> None:
    assert 1499 + 18344 == 19843
    assert round(100 * VAL_SHARE, 2) == 7.55
    assert sum(TARGET_SHARES[name] for name in ("LR", "LO", "AR")) == pytest.approx(0.61)
    assert sum(TARGET_SHARES.values()) == pytest.approx(1.0)


def test_a_file_reads_and_writes_back(tmp_path: Path) -> None:
    file = write(tmp_path / "q.jsonl", [question(tmp_path, 1), question(tmp_path, 2, type="single_choice", gold=["B"])])
    questions = read_questions(file)
    check_questions(questions, file, tmp_path)
    write_questions(tmp_path / "again.jsonl", questions)
    assert read_questions(tmp_path / "again.jsonl") == questions
    assert json.loads((tmp_path / "again.jsonl").read_text("utf-8").splitlines()[0])["gold"] == ["A", "C"]


OPEN = {"options": []}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"type": "short_answer", "gold": ["a papule"]}, "answer form contradicts type: short_answer with options"),
    ({"options": []}, "answer form contradicts type: multi_choice with 0 options"),
    ({**OPEN, "type": "judgement", "gold": ["perhaps"]}, "answer form contradicts type: judgement"),
    ({"gold": ["A", "E"]}, "right letter 'E' is not offered"),
    ({"type": "single_choice"}, "single_choice with 2 right letters"),
    ({"gold": ["A", "A"]}, "right letter stands there twice"),
    (
        {"options": [{"letter": "A", "text": "macule"}, {"letter": "B", "text": " Macule"}], "gold": ["A"]},
        "an option or a letter stands there twice",
    ),
    ({"options": [{"letter": "A", "text": "macule"}, {"letter": "B", "text": " "}], "gold": ["A"]}, "an empty option"),
    ({**OPEN, "type": "short_answer", "ability": "DD", "gold": ["Yes"]}, "disease slot filled with yes or no"),
    ({"disease": {"lists": [{"rater_id": "a", "ranked": ["no"]}]}}, "disease slot filled with yes or no"),
    ({"question": "What is {this}?"}, "q2: prompt medlesionvqa/multi_choice@1"),
    ({"question_id": "q\n2"}, "not a name"),
    (
        {"options": [{"letter": "AA", "text": "macule"}, {"letter": "B", "text": "ulcer"}], "gold": ["B"]},
        "not one letter or digit",
    ),
    (
        {"options": [{"letter": "A", "text": "macule"}, {"letter": "a", "text": "ulcer"}], "gold": ["A"]},
        "a letter stands there twice",
    ),
    ({"attribute_asked": "color"}, "an attribute asked under the ability LR"),
    (
        {
            "raters": [
                {"rater_id": "dr-1", "role": "annotator"},
                {"rater_id": "dr-1", "role": "test_senior", "level": "senior"},
            ]
        },
        "rater 'dr-1' is annotator and test_senior",
    ),
]


@pytest.mark.parametrize(("changes", "what"), FAULTS)
def test_a_fault_is_named_when_the_file_is_loaded(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    file = write(tmp_path / "q.jsonl", [question(tmp_path, 1), question(tmp_path, 2, **changes)])
    if "{this}" not in changes.get("question", ""):
        with pytest.raises(BadInput, match=what) as error:
            load(file)
        assert "q.jsonl" in str(error.value)
    with pytest.raises(BadInput, match=what):
        build_medlesionvqa(file, tmp_path / "bench")


def test_raters_on_both_sides_are_found_across_questions(tmp_path: Path) -> None:
    one = question(tmp_path, 1, raters=[{"rater_id": "x", "role": "reviewer"}])
    other = question(tmp_path, 2, raters=[{"rater_id": "x", "role": "test_primary"}])
    with pytest.raises(BadInput, match="'x' is reviewer and test_primary"):
        load(write(tmp_path / "q.jsonl", [one, other]))


def test_one_image_in_both_splits(tmp_path: Path) -> None:
    one = question(tmp_path, 1)
    file = write(tmp_path / "q.jsonl", [one, {**one, "question_id": "q2", "split": "val"}])
    with pytest.raises(BadInput, match=r"both splits: q1 .test. and q2 .val."):
        load(file)
    # The same file under another name and id.
    copy = {**picture(tmp_path, "copy", 1), "image_id": "other"}
    with pytest.raises(BadInput, match="both splits"):
        load(write(file, [one, {**one, "question_id": "q2", "split": "val", "images": [copy]}]))
    # The same pixels in another file format, found when the pictures are read.
    from PIL import Image

    Image.new("RGB", (8, 6), (1, 40, 80)).save(tmp_path / "same.bmp")
    same = {"image_id": "third", "path": "same.bmp"}
    with pytest.raises(BadInput, match="the same image in both splits"):
        build_medlesionvqa(
            write(file, [one, {**one, "question_id": "q2", "split": "val", "images": [same]}]), tmp_path / "bench"
        )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON"),
        ('{"question_id": "x"}', "Field required"),
        ('{"question_id": 3}', "valid string"),
        ("[]", "valid dictionary"),
    ],
)
def test_broken_lines_are_named_with_their_row(tmp_path: Path, line: str, what: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(json.dumps(question(tmp_path)) + "\n" + line + "\n", "utf-8")
    with pytest.raises(BadInput, match=rf"row 2.*{what}"):
        load(file)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"path": "absent.png"}, "missing image absent.png"),
        ({"sha256": "0" * 64}, "another image than the file says"),
        ({"width": 9}, "8 x 6, not 9 x 6"),
        ({"path": "../outside.png", "sha256": ""}, "outside the folder"),
    ],
)
def test_images_are_what_the_file_says(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    folder = tmp_path / "data"
    picture(tmp_path, "outside", 9)
    one = question(folder, 1)
    one["images"] = [{**one["images"][0], **change}]
    with pytest.raises(BadInput, match=what):
        build_medlesionvqa(write(folder / "q.jsonl", [one]), tmp_path / "bench")


def test_a_picture_that_is_none(tmp_path: Path) -> None:
    one = question(tmp_path, 1)
    (tmp_path / "image1.png").write_bytes(b"no picture")
    one["images"][0]["sha256"] = ""
    with pytest.raises(BadInput, match="cannot be read"):
        build_medlesionvqa(write(tmp_path / "q.jsonl", [one]), tmp_path / "bench")


def made(tmp_path: Path, count: int = 8, **changes: Any) -> list[Any]:
    rows = [annotation(tmp_path, number, **changes) for number in range(count)]
    return read_annotations(write(tmp_path / "annotations.jsonl", rows), WORDS)


def test_questions_of_every_ability(tmp_path: Path) -> None:
    questions, available = build_questions(made(tmp_path), WORDS, Rules())
    assert set(ABILITIES) == {one.ability for one in questions} and sum(available.values()) == len(questions)
    assert {one.type for one in questions} == {
        "single_choice",
        "multi_choice",
        "judgement",
        "fill_in_blank",
        "short_answer",
        "ranking",
    }
    by = {(one.ability, one.type): one for one in questions}
    names = {option.letter: option.text for option in by["LR", "multi_choice"].options}
    assert {names[letter] for letter in by["LR", "multi_choice"].reference} == {"papule", "crust"}
    place = by["LO", "single_choice"]
    assert {option.text for option in place.options if option.letter in place.reference} == {"hand"}
    # [eczema, psoriasis] and [psoriasis, eczema]: a tie, so both are right together.
    choice = by["DD", "multi_choice"]
    texts = {option.letter: option.text for option in choice.options}
    assert {texts[letter] for letter in choice.reference} == {"eczema", "psoriasis"}
    assert [one.rank for one in choice.disease.fused] == [1, 1]
    check_questions(questions, tmp_path / "annotations.jsonl", tmp_path)


def test_no_patient_is_in_both_splits_and_the_seed_decides(tmp_path: Path) -> None:
    annotations = made(tmp_path, 12)
    first, _ = build_questions(annotations, WORDS, Rules(), val_share=0.4)
    splits: dict[str, set[str]] = {}
    for one in first:
        splits.setdefault(one.patient_id, set()).add(one.split)
    assert all(len(found) == 1 for found in splits.values())
    assert Counter(next(iter(found)) for found in splits.values()) == {"val": 2, "test": 4}
    assert build_questions(annotations, WORDS, Rules(), val_share=0.4)[0] == first
    assert build_questions(annotations, WORDS, Rules(seed=1), val_share=0.4)[0] != first


def test_target_shares_are_met_where_they_can_be(tmp_path: Path) -> None:
    shares = {"LR": 0.5, "AR": 0.25, "DD": 0.25}
    questions, _ = build_questions(made(tmp_path, 24), WORDS, Rules(), shares=shares, total=40, val_share=0.0)
    assert Counter(one.ability for one in questions) == {"LR": 20, "AR": 10, "DD": 10}
    assert quotas({"LR": 3, "AR": 100, "DD": 100}, shares, 40) == {"LR": 3, "AR": 19, "DD": 18}
    assert sum(quotas(dict.fromkeys(ABILITIES, 5), TARGET_SHARES, 1000).values()) == 35
    with pytest.raises(BadInput, match="target shares"):
        quotas({"LR": 1}, {"XX": 1.0}, 1)


@pytest.mark.parametrize("rule", ["mimics", "siblings", "random"])
def test_distractors_are_never_right(rule: str) -> None:
    from random import Random

    for right in (["melanoma"], ["nevus", "eczema"]):
        found = distractors(WORDS.diseases, right, 6, rule, Random(3), banned=["lentigo"])
        assert len(found) == 6 == len(set(found))
        assert not set(found) & {*right, "lentigo", "pigmented", "inflammatory"}
    by_rule = distractors(WORDS.diseases, ["melanoma"], 2, rule, Random(3))
    if rule == "mimics":
        assert by_rule == ["nevus", "seborrheic-keratosis"]
    if rule == "siblings":
        assert all(WORDS.diseases.distance("melanoma", name) == 2 for name in by_rule)
    with pytest.raises(BadInput, match="no distractor rule"):
        distractors(WORDS.diseases, ["melanoma"], 2, "nearest", Random(3))


def test_words_become_ids_and_unknown_ones_are_named(tmp_path: Path) -> None:
    found = made(tmp_path, 1)[0]
    assert found.lesions[1].name == "crust" and found.body_part == "hand-palm"
    assert found.differentials[1].ranked == ["psoriasis", "eczema"]
    with pytest.raises(BadInput, match=r"row 1.*image0.*'gout' is not in the vocabulary diseases"):
        made(tmp_path, 1, differentials=[{"rater_id": "a1", "ranked": ["gout"]}])
    with pytest.raises(BadInput, match="stands in row 1 too"):
        rows = [annotation(tmp_path, 1), annotation(tmp_path, 1)]
        read_annotations(write(tmp_path / "annotations.jsonl", rows), WORDS)
    with pytest.raises(BadInput, match="two lesions have one id"):
        made(tmp_path, 1, lesions=[{"id": "l", "name": "papule"}] * 2)


@pytest.mark.parametrize(
    ("terms", "what"),
    [
        ("[{id: a, name: one}, {id: a, name: two}]", "'a' stands there twice"),
        ("[{id: a, name: one}, {id: b, name: One}]", "'one' stands for 'a' and for 'b'"),
        ("[{id: a, name: one, parent: z}]", "unknown parent 'z'"),
        ("[{id: a, name: one, parent: b}, {id: b, name: two, parent: a}]", "lies above itself"),
        ("[{id: a, name: one, mimics: [q]}]", "unknown mimic 'q'"),
        ("[]", "not a vocabulary"),
        ("[{id: a}]", "not a vocabulary"),
    ],
)
def test_vocabularies_are_checked(tmp_path: Path, terms: str, what: str) -> None:
    file = tmp_path / "diseases.yaml"
    file.write_text(f"version: x\nterms: {terms}\n", "utf-8")
    with pytest.raises(BadInput, match=what):
        read_vocabulary(file, "diseases")


def test_a_deep_tree_is_refused_and_attributes_need_one_of_the_six(tmp_path: Path) -> None:
    file = tmp_path / "v.yaml"
    chain = "".join(f"  - {{id: t{n}, name: t{n}, parent: '{f't{n - 1}' if n else ''}'}}\n" for n in range(5))
    file.write_text(f"version: x\nterms:\n{chain}", "utf-8")
    with pytest.raises(BadInput, match="level 5; 4 at most"):
        read_vocabulary(file, "body_parts")
    file.write_text("version: x\nterms: [{id: a, name: hot, parent: temperature}]\n", "utf-8")
    with pytest.raises(BadInput, match="belongs to no attribute"):
        read_vocabulary(file, "attributes")


def test_demonstration_vocabulary_is_wide_enough() -> None:
    values = Counter(one.parent for one in WORDS.attributes)
    assert len(values) == 6 and min(values.values()) >= 7
    assert sum(one.parent == "hand" for one in WORDS.body_parts) >= 4
    assert WORDS.body_parts.path("hand-palm") == ("upper-limb", "hand", "hand-palm")


def test_one_id_for_two_pictures(tmp_path: Path) -> None:
    one, other = question(tmp_path, 1), question(tmp_path, 2)
    other["images"][0]["image_id"] = "image1"
    with pytest.raises(BadInput, match="'image1' stands for two pictures"):
        load(write(tmp_path / "q.jsonl", [one, other]))


@pytest.mark.parametrize(
    ("ranked", "what"), [(["eczema", "atopic dermatitis"], "twice"), ([["eczema", "psoriasis"]], "share a rank")]
)
def test_a_differential_that_cannot_be_fused_is_named_with_its_image(tmp_path: Path, ranked: list, what: str) -> None:
    annotations = made(tmp_path, 1, differentials=[{"rater_id": "a1", "ranked": ranked}])
    with pytest.raises(BadInput, match=f"image0.*{what}"):
        build_questions(annotations, WORDS, Rules())
    if what == "share a rank":
        questions, _ = build_questions(annotations, WORDS, Rules(tied_ranks="average", normalise="sum"))
        fused = next(one for one in questions if one.type == "ranking").disease.fused
        assert [(entry.rank, entry.score) for entry in fused] == [(1, 0.5), (1, 0.5)]


def test_demographics_cannot_replace_what_a_question_tests(tmp_path: Path) -> None:
    from sonogauge.folders import Folder

    rows = [question(tmp_path, 1, demographics={"ability": "ZZ", "sex": "f"})]
    build_medlesionvqa(write(tmp_path / "q.jsonl", rows), tmp_path / "bench")
    (row,) = Folder(tmp_path / "bench", "benchmark").rows("items")
    facts = {one["name"]: one["value"] for one in row["meta"]}
    assert facts["ability"] == "LR" and facts["sex"] == "f"
