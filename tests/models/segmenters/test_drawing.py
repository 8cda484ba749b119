from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.segmenters.made_images import disc, grey_image, png
from tests.shared import shared_data

from sonogauge import import_cases
from sonogauge._errors import BadInput
from sonogauge.cases.geometry import encode_mask
from sonogauge.folders import Manifest, new_folder
from sonogauge.models.segmenters import SEGMENTERS, UnsupportedPrompt, load_segmenter
from sonogauge.models.segmenters.base import best, decode_pixels, make_instance
from sonogauge.models.segmenters.evaluate import Contender, evaluate_segmenters
from sonogauge.models.segmenters.words import find_category

pytestmark = pytest.mark.part("segmenters")


def make_cases(folder: Path, cases: dict[str, tuple[np.ndarray, list[tuple[str, np.ndarray]]]]) -> Path:
    with new_folder(folder) as writer:
        rows = []
        for name, (image, masks) in sorted(cases.items()):
            rows.append(
                {
                    "case_id": name,
                    "image": {"bytes": png(image), "path": f"{name}.png"},
                    "source": "made",
                    "group": f"made:{name}",
                    "masks": [
                        encode_mask(mask, f"{name}-{number}", category) for number, (category, mask) in enumerate(masks)
                    ],
                }
            )
        writer.table("cases").write(rows)
        writer.finish(Manifest(kind="cases", maker="test"))
    return folder


def iou(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / (one | other).sum())


def test_box_fill_takes_every_pixel_that_the_box_touches() -> None:
    image = np.zeros((5, 5), dtype=np.uint8)
    found = load_segmenter("box-fill").segment(image, boxes=[(0.4, 0.4, 1.6, 1.6), (7, 7, 9, 9), (4, 4, 2, 3)])
    assert [int(one.mask.sum()) for one in found] == [4, 2]
    assert found[0].box_xyxy == (0, 0, 2, 2)
    assert found[1].mask[3, 2] and found[1].mask[3, 3]


def test_the_inscribed_ellipse_covers_pi_quarters_of_its_box() -> None:
    image = np.zeros((400, 600), dtype=np.uint8)
    one = load_segmenter("ellipse").segment(image, boxes=[(100, 50, 500, 350)])[0]
    assert one.mask.sum() / (400 * 300) == pytest.approx(np.pi / 4, abs=1e-3)
    assert one.box_xyxy == (100, 50, 500, 350)


@pytest.mark.parametrize("name", ["otsu", "grabcut"])
def test_classical_methods_find_a_dark_disc_better_than_its_box(name: str) -> None:
    truth = disc((120, 160), 80, 60, 30)
    image = grey_image(truth, inside=40, outside=150, noise=12)
    drawn = load_segmenter(name).segment(image, boxes=[(50, 30, 110, 90)])[0].mask
    box = load_segmenter("box-fill").segment(image, boxes=[(50, 30, 110, 90)])[0].mask
    assert iou(drawn, truth) > 0.9 > iou(box, truth)
    again = load_segmenter(name).segment(image, boxes=[(50, 30, 110, 90)])[0].mask
    assert np.array_equal(drawn, again)


def test_otsu_follows_points_and_polarity() -> None:
    left, right = disc((60, 120), 30, 30, 12), disc((60, 120), 90, 30, 18)
    image = grey_image(left | right, inside=200, outside=50, noise=0)
    bright = load_segmenter("otsu?polarity=bright")
    assert np.array_equal(bright.segment(image, points=[(30.5, 30.5)])[0].mask, left)
    assert bright.segment(image, points=[(30.5, 30.5), (33.0, 30.0)], point_labels=[1, 0]) == []
    assert bright.segment(image, points=[(5.0, 5.0)]) == []
    with pytest.raises(UnsupportedPrompt):
        bright.segment(image, points=[(5.0, 5.0)], point_labels=[0])


def test_a_flat_image_and_a_box_outside_give_nothing() -> None:
    image = np.full((40, 40), 77, dtype=np.uint8)
    for name in ("otsu", "grabcut", "box-fill", "ellipse"):
        assert load_segmenter(name).segment(image, boxes=[(50, 50, 60, 60)]) == []
    assert load_segmenter("otsu").segment(image, boxes=[(5, 5, 30, 30)]) == []
    assert load_segmenter("grabcut").segment(image, boxes=[(0, 0, 40, 40)]) == []


@given(
    box=st.tuples(*[st.floats(-50, 90, allow_nan=False)] * 4),
    name=st.sampled_from(["box-fill", "ellipse", "otsu", "grabcut"]),
    seed=st.integers(0, 3),
)
def test_masks_have_the_size_of_the_image_and_stay_in_the_box(
    box: tuple[float, float, float, float], name: str, seed: int
) -> None:
    image = np.random.default_rng(seed).integers(0, 255, (30, 41), dtype=np.uint8)
    filled = load_segmenter("box-fill").segment(image, boxes=[box])
    for one in load_segmenter(name).segment(image, boxes=[box]):
        assert one.mask.shape == (30, 41) and one.mask.dtype == np.bool_ and one.mask.any()
        assert not (one.mask & ~filled[0].mask).any()


@pytest.mark.parametrize("name", ["box-fill", "otsu", "grabcut"])
def test_prompts_of_another_kind_are_refused(name: str) -> None:
    segmenter = load_segmenter(name)
    image = np.zeros((4, 4), dtype=np.uint8)
    for prompts in ({"text": "lesion"}, {}, {"boxes": [(0, 0, float("nan"), 2)]}, {"boxes": [(0, 0, 1)]}):
        with pytest.raises(UnsupportedPrompt):
            segmenter.segment(image, **prompts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "otsu?polarity=grey",
        "otsu?speed=3",
        "otsu:somewhere",
        "otsu?polarity",
        "oracle",
        "oracle:/no?erode=much",
        "grabcut?iterations=1.5",
        "grabcut?core=high",
        "http:http://127.0.0.1:9?timeout=soon",
        "sam3",
        "unet:/no",
    ],
)
def test_wrong_names_are_told_in_one_line(text: str) -> None:
    with pytest.raises(BadInput) as told:
        load_segmenter(text)
    assert "\n" not in str(told.value)


def test_every_segmenter_can_be_loaded_by_name() -> None:
    assert [callable(SEGMENTERS.load(name)) for name in SEGMENTERS] == [True] * 11


def test_the_best_candidates_come_first_and_those_without_a_score_stay() -> None:
    mask = np.ones((2, 2), dtype=np.bool_)
    made = [make_instance(mask, score, str(score)) for score in (0.2, None, 0.9, 0.5)]
    assert [one.score for one in best(made, None, 0.5)] == [None, 0.9, 0.5]
    assert [one.score for one in best([made[0], made[2]], 1, None)] == [0.9]
    assert make_instance(np.zeros((2, 2), dtype=np.bool_), 0.9, "") is None


def test_phrases_name_categories_by_the_longest_alias() -> None:
    categories = {"thyroid": ["gland"], "thyroid nodule": ["nodule"]}
    said = ["Thyroid_Nodules", "the gland", "a nodule", "thyroid", "bone", "", "gland or nodule"]
    named = [find_category(phrase, categories) for phrase in said]
    assert named == ["thyroid nodule", "thyroid", "thyroid nodule", "thyroid", None, None, "thyroid nodule"]


class TestOracle:
    @pytest.fixture
    def cases(self, tmp_path: Path) -> Path:
        self.first, self.second = disc((80, 100), 30, 30, 15), disc((80, 100), 70, 50, 10)
        self.image = grey_image(self.first, inside=20, outside=90, noise=9)
        masks = [("lesion", self.first), ("lesion", self.second), ("tube", disc((80, 100), 30, 30, 4))]
        other = grey_image(self.second, inside=20, outside=90, noise=5)
        return make_cases(tmp_path / "cases", {"a": (self.image, masks), "b": (other, [])})

    def test_every_prompt_finds_the_reference(self, cases: Path) -> None:
        oracle = load_segmenter(f"oracle:{cases}")
        assert np.array_equal(
            np.logical_or.reduce([one.mask for one in oracle.segment(self.image, text="the lesions")]),
            self.first | self.second,
        )
        assert np.array_equal(oracle.segment(self.image, boxes=[(60, 40, 80, 60)])[0].mask, self.second)
        assert oracle.segment(self.image, points=[(30.0, 30.0)])[0].mask.sum() == disc((80, 100), 30, 30, 4).sum()
        assert oracle.segment(self.image, text="bone") == []
        rgb = np.repeat(self.image[..., None], 3, axis=2)
        assert np.array_equal(oracle.segment(rgb, boxes=[(60, 40, 80, 60)])[0].mask, self.second)

    def test_errors_are_of_the_size_asked_for(self, cases: Path) -> None:
        area = {
            change: int(load_segmenter(f"oracle:{cases}?{change}").segment(self.image, text="tube")[0].mask.sum())
            for change in ("erode=1", "erode=0", "dilate=2")
        }
        assert area["erode=1"] < area["erode=0"] < area["dilate=2"]
        assert load_segmenter(f"oracle:{cases}?drop=1").segment(self.image, text="lesion") == []
        dropped = [
            len(load_segmenter(f"oracle:{cases}?drop=0.5,seed={seed}").segment(self.image, text="lesion"))
            for seed in range(12)
        ]
        assert set(dropped) > {1} and max(dropped) <= 2
        with pytest.raises(BadInput):
            load_segmenter(f"oracle:{cases}?erode=1,dilate=1")

    def test_an_unknown_image_is_a_fault_and_never_an_empty_answer(self, cases: Path) -> None:
        from sonogauge.models.segmenters import SegmenterFault

        with pytest.raises(SegmenterFault, match="no case with these pixels"):
            load_segmenter(f"oracle:{cases}").segment(np.zeros((80, 100), dtype=np.uint8), text="lesion")

    def test_iou_and_dice_of_the_oracle_are_one(self, cases: Path) -> None:
        rows = evaluate_segmenters(
            cases, [Contender(load_segmenter(f"oracle:{cases}?parts=true"), "reference")], draws=200
        )
        assert {row.metric: row.value.value for row in rows} == {"iou": 1.0, "dice": 1.0}
        text = evaluate_segmenters(
            cases, [Contender(load_segmenter(f"oracle:{cases}"), "text")], each="category", draws=200
        )
        assert {row.metric: row.value.value for row in text} == {"iou": 1.0, "dice": 1.0}


@pytest.mark.real
@pytest.mark.parametrize("source", ["busi", "hc18"])
def test_segmenters_on_real_boxes(source: str, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    import_cases(source, shared_data(source), cases)
    names = ["box-fill", "ellipse", "otsu", "grabcut", f"oracle:{cases}?parts=true"]
    rows = evaluate_segmenters(cases, [Contender(load_segmenter(name), "reference") for name in names], draws=500)
    value = {(row.label.split()[0], row.metric): row for row in rows}
    for metric in ("iou", "dice"):
        assert value["oracle?parts=1", metric].value.value == 1.0
        fill = value["box-fill", metric]
        assert fill.less_first is None and fill.value.low is not None
        for name in ("ellipse", "otsu", "grabcut"):
            gap = value[name, metric].less_first
            assert gap is not None and gap.low is not None
            assert gap.value == pytest.approx(value[name, metric].value.value - fill.value.value)
    ellipse, grabcut = value["ellipse", "iou"].less_first, value["grabcut", "iou"].less_first
    assert ellipse is not None and ellipse.low is not None and ellipse.low > 0
    if source == "busi":
        assert grabcut is not None and grabcut.low is not None and grabcut.low > 0


@pytest.mark.real
def test_the_box_of_the_fan_is_no_reference_box(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    import_cases("busi", shared_data("busi"), cases)
    pair = [Contender(load_segmenter("box-fill"), prompt) for prompt in ("reference", "fan")]
    rows = {(row.label, row.metric): row for row in evaluate_segmenters(cases, pair, each="category", draws=200)}
    gap = rows["box-fill (fan)", "iou"].less_first
    assert gap is not None and gap.high is not None and gap.high < 0


def test_pixels_that_do_not_decode_are_a_fault() -> None:
    from sonogauge.models.segmenters import SegmenterFault

    for data in (b"", b"\x89PNG\r\n\x1a\nrest", png(np.zeros((3, 3), dtype=np.uint8))[:40]):
        with pytest.raises(SegmenterFault):
            decode_pixels(data)
