"""The stages one by one: words, quality, splits, sampling, facts, options, drawing."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.build.fingerprint import ORIENTATIONS, decode, orient, sign
from sonogauge.build.merge import merge_sorted
from sonogauge.build.recipe import PublishedSplit, QualityRule, SamplingRule, Sentence, SplitRule, TaskRecipe
from sonogauge.build.stages.facts import facts_of, write_text
from sonogauge.build.stages.marks import has_callipers, has_text, tags_of
from sonogauge.build.stages.quality import EXAMINED, Examine, check_labels
from sonogauge.build.stages.questions import options_for
from sonogauge.build.stages.sampling import sample
from sonogauge.build.stages.splits import SplitCase, split_cases, units_of
from sonogauge.build.stages.vocabulary import filtered, map_words, read_vocabulary
from sonogauge.cases.render import draw_box
from sonogauge.items import Item, ItemImage
from sonogauge.tables import CASES
from tests.build.made_cases import breast_cases, case, disc, picture, png
from tests.shared import require_extra, shared_data

pytestmark = pytest.mark.part("recipes")


def batch_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=CASES)


# vocabulary


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


# quality


def findings_of(row: dict[str, Any], rule: QualityRule | None = None) -> list[str]:
    (out,) = Examine(rule or QualityRule())(batch_of(row)).to_pylist()
    return list(out["findings"])


def test_a_good_case_has_no_finding_and_all_numbers() -> None:
    mask = disc(128, 0.5, 0.5, 0.2)
    batch = Examine(QualityRule())(batch_of(case("a", picture(0), {"lesion": mask})))
    (out,) = batch.to_pylist()
    assert batch.schema == EXAMINED
    assert out["findings"] == []
    assert out["shares"] == [{"category": "lesion", "share": mask.mean()}]
    assert out["spread"] == pytest.approx(float(picture(0).std()), abs=1e-3)
    assert out["pixels"] == sign(picture(0)).pixels


def test_faults_of_pictures_are_found() -> None:
    grey = np.full((128, 128), 90, np.uint8)
    assert findings_of(case("a", b"no image")) == ["unreadable"]
    assert findings_of(case("a", png(picture(0))[:300])) == ["unreadable"]
    assert findings_of(case("a", grey)) == ["blank"]
    assert "tiny" in findings_of(case("a", picture(0, 24)))
    assert "blurred" in findings_of(case("a", cv2.GaussianBlur(picture(0), (0, 0), 9)))
    assert "dark" in findings_of(case("a", (picture(0) // 16).astype(np.uint8)))
    assert "overexposed" in findings_of(case("a", (200 + picture(0) // 5).astype(np.uint8)))


def test_faults_of_annotations_are_found() -> None:
    pixels = picture(0)
    wrong = {**case("a", pixels, {"lesion": disc(100, 0.5, 0.5, 0.2)})}
    assert "size of a mask" in findings_of(wrong)
    broken = case("a", pixels, {"lesion": disc(128, 0.5, 0.5, 0.2)})
    broken["masks"][0]["counts"] = "zzz"
    assert "broken mask" in findings_of(broken)
    for box in ({"x": 120, "w": 20}, {"y": -5}, {"w": 0}, {"h": float("nan")}):
        row = case("a", pixels)
        row["boxes"] = [{"category": "lesion", "x": 1.0, "y": 1.0, "w": 5.0, "h": 5.0} | box]
        assert "box outside" in findings_of(row), box


def test_a_check_that_is_off_finds_nothing() -> None:
    row = case("a", picture(0), meta={"PatientName": "x"})
    assert findings_of(row) == ["identifying tag: PatientName"]
    assert findings_of(row, QualityRule(checks={"identifying tag": "off"})) == []


def test_labels_missing_twofold_and_against_the_annotation() -> None:
    rule = QualityRule.model_validate(
        {"needs": ["pathology"], "contradictions": [{"label": {"pathology": "normal"}, "category": "lesion"}]}
    )
    lesion = {"lesion": disc(128, 0.5, 0.5, 0.2)}
    assert check_labels(case("a", picture(0)), rule) == ["missing label: pathology"]
    twice = case("a", picture(0))
    twice["labels"] = [{"name": "pathology", "value": value} for value in ("benign", "malignant")]
    assert check_labels(twice, rule) == ["contradicting labels: pathology"]
    against = case("a", picture(0), lesion, labels={"pathology": "normal"})
    assert check_labels(against, rule) == ["contradicting labels: pathology normal with lesion"]
    assert check_labels(case("a", picture(0), lesion, labels={"pathology": "benign"}), rule) == []


def test_tags_that_name_someone_are_found() -> None:
    image = Image.fromarray(picture(0))
    plain, named, texts = io.BytesIO(), io.BytesIO(), io.BytesIO()
    exif = Image.Exif()
    exif[0x0131] = "some software"
    image.save(plain, "JPEG", exif=exif)
    exif[0x013B] = "Dr Who"
    exif.get_ifd(0x8769)[0xA431] = "serial"
    exif.get_ifd(0x8825)[1] = "N"
    image.save(named, "JPEG", exif=exif)
    info = PngInfo()
    info.add_text("Author", "someone")
    info.add_text("Software", "scanner")
    image.save(texts, "PNG", pnginfo=info)
    behind, late = io.BytesIO(), PngInfo()
    late.add(b"tEXt", b"Patient\0someone", after_idat=True)
    image.save(behind, "PNG", pnginfo=late)
    assert tags_of(behind.getvalue()) == ["Patient"]
    assert tags_of(behind.getvalue()[:60]) == []
    assert tags_of(plain.getvalue()) == []
    assert tags_of(named.getvalue()) == ["Artist", "BodySerialNumber", "GPSInfo"]
    assert tags_of(texts.getvalue()) == ["Author"]
    assert tags_of(png(picture(0)), [{"name": "patient_birth_date", "value": "1950"}]) == ["PatientBirthDate"]


@pytest.mark.real
def test_tags_of_a_dicom_file() -> None:
    require_extra("medical", "pydicom")
    files = sorted(shared_data("dicom_us").rglob("*.dcm"))
    found = {file.name: tags_of(file.read_bytes()) for file in files}
    assert {"PatientID", "PatientName"} <= set(found["examples_palette.dcm"])
    # The one file whose makers took the names out.
    assert found["US-YBR_FULL_422-EVRLE.dcm"] == []


@pytest.mark.real
def test_writing_and_callipers_in_real_pictures() -> None:
    # Looked at by eye: five of these fifteen pictures carry words, two of them callipers.
    with_words = {"benign (195)", "benign (4)", "benign (52)", "malignant (10)", "malignant (53)"}
    with_callipers = {"malignant (10)", "malignant (53)"}
    pictures = {file.stem: decode(file.read_bytes()) for file in shared_data("busi", "data").glob("*/images/*.png")}
    assert len(pictures) == 15
    assert {name for name, pixels in pictures.items() if pixels is not None and has_text(pixels)} == with_words
    assert {name for name, pixels in pictures.items() if pixels is not None and has_callipers(pixels)} == with_callipers


def test_writing_on_the_dark_ground_and_drawn_crosses() -> None:
    pixels = picture(3, 300)
    pixels[:60] = 0
    assert not has_text(pixels)
    cv2.putText(pixels, "GAIN 45 DR 60", (20, 40), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 160, 2)
    assert has_text(pixels)
    plain = np.minimum(picture(4, 300), 150)
    assert not has_callipers(plain)
    for x, y in ((80, 120), (200, 180)):
        cv2.drawMarker(plain, (x, y), 255, cv2.MARKER_CROSS, 15, 1)
    assert has_callipers(plain)


# the fingerprint


def test_the_way_of_storing_leaves_the_pixel_hash() -> None:
    pixels = picture(0)
    coloured = np.repeat(pixels[:, :, None], 3, axis=2)
    stream = io.BytesIO()
    Image.fromarray(coloured).save(stream, "BMP")
    found = [decode(data) for data in (png(pixels), png(coloured), stream.getvalue())]
    assert {sign(one).pixels for one in found if one is not None} == {sign(pixels).pixels}
    assert sign(np.ascontiguousarray(pixels[:, ::-1])).pixels != sign(pixels).pixels


def test_codes_of_an_orientation_are_those_of_the_turned_picture() -> None:
    pixels = picture(5)
    codes = sign(pixels).codes[0]
    for orientation in range(ORIENTATIONS):
        turned = sign(orient(pixels, orientation)).codes[0, 0]
        assert int(np.bitwise_count(turned ^ codes[orientation])) <= 2, orientation


# splits


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


# sampling


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


# questions


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


# streams


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


def test_examining_does_not_depend_on_the_batches() -> None:
    rows = breast_cases(6)
    whole = Examine(QualityRule())(batch_of(*rows)).to_pylist()
    assert whole == [row for one in rows for row in Examine(QualityRule())(batch_of(one)).to_pylist()]
