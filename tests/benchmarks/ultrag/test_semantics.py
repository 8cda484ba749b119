"""What texts say, by hand: the unit values of the specification, both protocols, three reports for SemAcc."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.benchmarks.ultrag import text_scores
from sonogauge.benchmarks.ultrag.semantics import (
    Text,
    answer_right,
    cells,
    first_count,
    flags,
    is_spatial,
    labels,
    polarity,
    presence,
    region_cells,
    same_extent,
    same_size,
    size_pair,
)
from sonogauge.benchmarks.ultrag.vocabulary import AnyCategory, load_categories, load_category

pytestmark = pytest.mark.part("ultrag")
BREAST, THYROID = load_category("Breast"), load_category("Thyroid")


def right(kind: str, reference: str, predicted: str) -> tuple[bool, bool]:
    """Return (published, strict)."""
    one, two = (answer_right(kind, reference, predicted, THYROID, strict=strict) for strict in (False, True))
    return one, two


@pytest.mark.parametrize(
    ("kind", "reference", "predicted", "published", "strict"),
    [
        ("yes_no", "No target", "Nodule present", True, False),
        ("yes_no", "Yes.", "Yes, a nodule is seen.", True, True),
        ("yes_no", "No.", "no", True, True),
        ("yes_no", "Unclear", "Perhaps", True, False),
        # Both words: the first token decides, and published always reads yes.
        ("yes_no", "No.", "No, although yes would be possible", False, True),
        ("yes_no", "Yes.", "I would not say no or yes", True, False),
        ("location", "upper-left", "In the upper left part", True, True),
        ("location", "upper-left", "upper-left and lower-right", False, False),
        ("location", "No target is visible.", "No target is visible.", False, True),
        ("location", "No target is visible.", "upper-left", False, False),
        ("classification", "benign", "benign and malignant", True, False),
        ("classification", "benign", "It is benign", True, True),
        ("classification", "malignant", "not malignant", True, False),
        ("classification", "malignant", "shows malignancy", False, True),
        ("category", "thyroid nodule", "A nodule of the thyroid gland", True, False),
        ("category", "thyroid nodule", "nodule", True, True),
        ("count", "2", "two", False, True),
        ("count", "2 nodules", "3 nodules", True, False),
        ("count", "no number", "none", False, False),
        ("size", "200 x 100 pixels", "100 by 200", True, True),
        ("size", "200 x 100 pixels", "241 x 100 pixels", True, False),
        ("size", "20 % of the image", "23 percent", False, True),
        ("size", "large", "large one", True, True),
        ("open", "a hypoechoic oval mass", "an oval hypoechoic mass", True, True),
        ("open", "a hypoechoic oval mass", "nothing of the kind", False, False),
    ],
)
def test_answers_by_type(kind: str, reference: str, predicted: str, published: bool, strict: bool) -> None:
    assert right(kind, reference, predicted) == (published, strict)


def test_sizes_and_extents_include_their_limits() -> None:
    assert same_size((200, 100), (100, 200)) and same_size((200, 100), (240, 120))
    assert not same_size((200, 100), (241, 100)) and not same_size((200, 100), None)
    assert same_size((2, 3), (3, 4)) and not same_size((2, 3), (3.1, 3.1))
    assert same_extent(4.0, 5.0) and not same_extent(4.0, 5.01) and not same_extent(4.0, None)
    assert size_pair("12 × 8 px", strict=True) == (12.0, 8.0)  # noqa: RUF001
    assert size_pair("12 × 8 px", strict=False) is None  # noqa: RUF001
    assert size_pair("12.5 px by 8", strict=False) == (12.5, 8.0)


def test_words() -> None:
    assert polarity("yes", strict=True) is True and polarity("nothing", strict=True) is None
    assert polarity("nothing", strict=False) is False
    assert cells("upper left left") == {"upper-left"} and cells("left upper") == frozenset()
    assert first_count("twenty") == 20 and first_count("12b") is None
    assert labels("no evidence of malignant change") == frozenset()
    assert labels("no evidence of any malignant change") == {"malignant"}
    assert is_spatial("thyroid_nodule_presence_location") and not is_spatial("supplied_benign_nodule_label")
    assert not is_spatial("size_not_applicable") and is_spatial("largest_target_extent")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("The breast appears normal.", False),
        ("No discrete focal visible solid round dark grey mass is seen.", False),
        ("No solid round dark grey big mass is seen.", True),
        ("The target is not visible.", False),
        ("Lesion absent.", False),
        ("A structure is outlined.", True),
        ("The breast is shown.", True),
        ("Good image quality.", None),
    ],
)
def test_presence_as_published(text: str, state: bool | None) -> None:
    assert presence(text, BREAST) is state


REFERENCE = Text(
    (
        ("A thyroid nodule is visible in the upper-left part of the image.", "thyroid_nodule_presence_location"),
        ("The largest target, a thyroid nodule, measures 40 x 20 pixels.", "largest_target_extent"),
        ("Covers 3.0 % of the image.", "organ_extent"),
    )
)


def test_three_reports_by_hand() -> None:
    """A perfect one; one in the wrong place with an extra region; one that denies everything."""
    assert flags(REFERENCE, REFERENCE, THYROID, strict=True, extent=True) == dict.fromkeys(
        ("presence", "category", "location", "size", "extent"), True
    )
    second = Text(
        (
            ("A thyroid nodule lies in the lower right part of the thyroid.", "thyroid_nodule_presence_location"),
            ("It measures 46 by 22 pixels, the gland 400 x 300.", "largest_target_extent"),
        )
    )
    published = flags(REFERENCE, second, THYROID, strict=False)
    assert published == {"presence": True, "category": True, "location": False, "size": True}
    strict = flags(REFERENCE, second, THYROID, strict=True)
    # The gland is named too, so that the sets of regions differ.
    assert strict == {"presence": True, "category": False, "location": False, "size": True}
    third = Text((("No thyroid nodule is visible.", "absence"),))
    assert flags(REFERENCE, third, THYROID, strict=False) == {
        "presence": False,
        "category": True,
        "location": False,
        "size": False,
    }
    assert flags(REFERENCE, third, THYROID, strict=True)["presence"] is False
    # A reference without a target: only its presence applies.
    none = Text((("No target is visible in this image.", "absence"),))
    assert flags(none, none, THYROID, strict=True) == {"presence": True}
    assert flags(none, REFERENCE, THYROID, strict=True) == {"presence": False}
    assert flags(none, third, THYROID, strict=True) == {"presence": True}


def test_the_size_of_the_matching_finding_comes_first_in_strict() -> None:
    swapped = Text((("The image has 400 x 300 pixels.", "scope"), ("The nodule is 40 x 20.", "largest_target_extent")))
    assert flags(REFERENCE, swapped, THYROID, strict=True)["size"] is True
    assert flags(REFERENCE, swapped, THYROID, strict=False)["size"] is False


def test_cells_belong_to_regions() -> None:
    text = "The thyroid nodule is upper left. The thyroid lies middle central, the nodule lower-right."
    assert region_cells(text, THYROID) == {
        ("thyroid nodule", "upper-left"),
        ("thyroid", "middle-central"),
        ("thyroid nodule", "lower-right"),
    }
    assert region_cells("Upper left.", THYROID) == {("", "upper-left")}
    assert region_cells("In the upper left part a nodule.", THYROID) == {("thyroid nodule", "upper-left")}


def test_text_scores() -> None:
    assert text_scores.rouge_l("the nodule is upper left", "nodule upper left") == 0.75
    assert text_scores.rouge_l("", "a") == text_scores.rouge_l("a", "") == text_scores.rouge_l("", "") == 0.0
    assert text_scores.bleu("a b c d e", "a b c d e") == [1.0, 1.0, 1.0, 1.0]
    # One word of two right: (1 + 1)/(2 + 1), then (0 + 1)/(1 + 1); shorter by three: exp(1 - 5/2).
    import math

    assert text_scores.bleu("a b c d e", "a x")[:2] == pytest.approx(
        [math.exp(-1.5) * 2 / 3, math.exp(-1.5) * math.sqrt(2 / 3 / 2)]
    )
    # Two matches in two chunks: P = 2/3, R = 2/2.
    mean = 10 * (2 / 3) * 1 / (1 + 9 * 2 / 3)
    assert text_scores.meteor("a b", "a x b") == pytest.approx(mean * (1 - 0.5 * (2 / 2) ** 3))
    assert text_scores.meteor("a", "b") == 0.0


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "c"]), max_size=8))
def test_rouge_equals_the_textbook_recursion(one: list[str], two: list[str]) -> None:
    table = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i, x in enumerate(one, 1):
        for j, y in enumerate(two, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if x == y else max(table[i - 1][j], table[i][j - 1])
    lcs = table[-1][-1]
    expected = 2 * lcs / (len(one) + len(two)) if lcs else 0.0
    assert text_scores.rouge_l(" ".join(one), " ".join(two)) == pytest.approx(expected)


def test_thirteen_categories_of_forty_sources() -> None:
    found = load_categories()
    assert len(found) == 13 and sum(len(one.sources) for one in found.values()) == 40
    assert {name: len(one.sources) for name, one in found.items()} == {
        **dict.fromkeys(("Abdomen", "Nerve", "Lung", "Carotid_artery", "Liver"), 1),
        **{"Breast": 8, "Cardiac": 6, "Fetal": 6, "Kidney": 2, "Muscle": 3, "Ovarian": 2, "Prostate": 2, "Thyroid": 6},
    }
    for one in found.values():
        for name, target in one.targets.items():
            assert one.canonical(name) == name
            assert all(one.canonical(alias) == name for alias in target.aliases), name


def test_known_faults_are_mended() -> None:
    assert THYROID.canonical("nodule", "TG3K") == "thyroid" and THYROID.canonical("nodule", "TN3K") == "thyroid nodule"
    fetal, lung = load_category("Fetal"), load_category("Lung")
    assert (fetal.canonical("1", "fh_ps"), fetal.canonical("2", "fh_ps")) == ("pubic symphysis", "fetal head")
    assert [lung.canonical(str(value), "LUSS") for value in range(1, 6)] == list(lung.targets)


def test_names_of_all_categories_at_once() -> None:
    assert AnyCategory().named("a fetal head and a B-line") == {"fetal head", "B-line"}
