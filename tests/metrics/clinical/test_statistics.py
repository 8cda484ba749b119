"""Altered reports lose exactly what was altered, and only there; counts checked by hand and as properties."""

# Chinese texts are part of what is tested.
# ruff: noqa: RUF001

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.shared import shared_data

from sonogauge.metrics.clinical import (
    COLUMNS,
    clinical_counts,
    clinical_item,
    clinical_statistics,
    extract,
    fact_table,
    match_facts,
    missing_sections,
    required_sections,
)
from sonogauge.metrics.text import bleu4, bleu_statistics

REPORT = (
    "The right breast is of homogeneous echotexture. The left breast is of homogeneous echotexture. "
    "A hypoechoic mass measuring 12 x 9 mm with irregular margin is seen in the "
    "upper outer quadrant of the left breast. "
    "There is posterior shadowing behind the mass. No calcification is seen in the lesion. "
    "The skin and the nipple are normal. The ducts are not dilated. "
    "No enlarged lymph node is seen in the left axilla. No enlarged lymph node is seen in the right axilla. "
    "Impression: BI-RADS 4A, suspicious for malignancy."
)
ERRORS = (
    "negation_errors",
    "side_errors",
    "place_errors",
    "size_errors",
    "grade_errors",
    "certainty_errors",
    "specificity_errors",
    "hallucinated",
    "missed",
    "sections_missing",
)
FACTS = len(extract(REPORT))

# name -> (old, new, errors, correct facts lost, verdict in the table)
ALTERATIONS: dict[str, tuple[str, str, dict[str, int], int, str]] = {
    "finding denied becomes present": (
        "No calcification is",
        "A calcification is",
        {"negation_errors": 1, "hallucinated": 1},
        1,
        "negation error",
    ),
    "finding present becomes denied": (
        "There is posterior",
        "There is no posterior",
        {"negation_errors": 1, "missed": 1},
        1,
        "negation error",
    ),
    "wrong side": ("quadrant of the left", "quadrant of the right", {"side_errors": 1}, 1, "side error"),
    "wrong unit": ("12 x 9 mm", "12 x 9 cm", {"size_errors": 1}, 1, "size error"),
    "wrong place": ("upper outer", "upper inner", {"place_errors": 1}, 1, "place error"),
    "wrong grade": ("4A", "2", {"grade_errors": 1}, 1, "grade error"),
    "invented finding": (
        "Impression:",
        "A cyst is seen in the right breast. Impression:",
        {"hallucinated": 1},
        0,
        "hallucinated",
    ),
    "left out": ("There is posterior shadowing behind the mass. ", "", {"missed": 1}, 1, "missed"),
    "surer than the reference": (
        "suspicious for malignancy",
        "with malignancy",
        {"certainty_errors": 1},
        1,
        "certainty error",
    ),
}


def errors(reference: str, reply: str) -> dict[str, float]:
    counts = clinical_counts(reference, reply)
    return {name: counts[name] for name in ERRORS if counts[name]}


def bleu(reference: str, reply: str) -> float:
    return float(bleu4(bleu_statistics([[reference]], [reply]).sum(axis=0)))


@pytest.mark.part("clinical content")
@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_alteration_loses_exactly_there_and_keeps_bleu(name: str) -> None:
    old, new, expected, lost, verdict = ALTERATIONS[name]
    assert REPORT.count(old) == 1
    reply = REPORT.replace(old, new)
    assert errors(REPORT, reply) == expected
    assert clinical_counts(REPORT, reply)["correct"] == FACTS - lost
    wrong = [row for row in fact_table(REPORT, reply) if not row["correct"]]
    assert [row["verdict"] for row in wrong] == [verdict]
    assert bleu(REPORT, reply) > 0.8


def test_all_alterations_at_once() -> None:
    reply = REPORT
    for name in ("finding denied becomes present", "wrong side", "wrong unit", "invented finding"):
        old, new, _, _, _ = ALTERATIONS[name]
        reply = reply.replace(old, new)
    assert errors(REPORT, reply) == {"negation_errors": 1, "side_errors": 1, "size_errors": 1, "hallucinated": 2}
    assert sorted(row["verdict"] for row in fact_table(REPORT, reply) if not row["correct"]) == [
        "hallucinated",
        "negation error",
        "side error; size error",
    ]
    assert bleu(REPORT, reply) > 0.8


@pytest.mark.parametrize("text", [REPORT, "", "No facts at all here", "左侧乳腺可见低回声结节，大小12mm。"])
def test_the_oracle_is_perfect(text: str) -> None:
    counts = clinical_counts(text, text)
    assert counts["correct"] == counts["reference_facts"] == counts["reply_facts"]
    assert counts["details_right"] == counts["reference_details"]
    assert errors(text, text) == {}
    assert clinical_item([text], text)["fact_f1"] == 1.0


def test_an_empty_reply_misses_everything_and_invents_nothing() -> None:
    counts = clinical_counts(REPORT, "")
    assert counts["reply_facts"] == counts["correct"] == counts["hallucinated"] == counts["negation_errors"] == 0
    asserted = [fact for fact in extract(REPORT) if fact.polarity != "absent" and fact.finding != "bi-rads"]
    assert counts["missed"] == len(asserted)
    assert counts["sections_missing"] == counts["sections_required"] > 0


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        # "normal" against a finding, by the tree of findings
        ("The liver is normal.", "The liver has a cyst.", {"negation_errors": 1, "hallucinated": 1}),
        ("The liver has a cyst.", "The liver is normal.", {"negation_errors": 1, "missed": 1}),
        ("Liver: no focal lesion.", "Liver: a cyst.", {"negation_errors": 1, "hallucinated": 1}),
        ("The liver is normal in size.", "The liver is enlarged.", {"negation_errors": 1, "hallucinated": 1}),
        ("Breast, benign appearance.", "Breast, malignant appearance.", {"negation_errors": 1, "hallucinated": 1}),
        # one organ's normality denies nothing of another
        ("The liver is normal.", "The spleen has a cyst.", {"hallucinated": 1}),
        ("Breast: the nipple is normal.", "Breast: the nipple is normal. A cyst.", {"hallucinated": 1}),
        # healthy organs have vessels and echoes
        ("The liver is normal.", "The liver is normal. Isoechoic liver with blood flow.", {"hallucinated": 2}),
        # saying a thing and its opposite gains nothing
        ("Liver: a cyst.", "Liver: a cyst. No cyst.", {"negation_errors": 1}),
        ("Liver: no cyst.", "Liver: a cyst. No cyst.", {"negation_errors": 1, "hallucinated": 1}),
        # both sides: equal polarity first, then equal sides
        (
            "Left kidney: a stone. Right kidney: no stone.",
            "Left kidney: no stone. Right kidney: a stone.",
            {"side_errors": 2},
        ),
        # a cyst called a lesion is right, but less than what was seen
        ("A cyst of 20 mm in the liver.", "A lesion of 20 mm in the liver.", {"specificity_errors": 1}),
        # said again in vaguer words
        ("The liver has a hemangioma.", "A lesion in the liver. The lesion is a hemangioma. Impression: mass.", {}),
        # lesions of one kind are told apart by their details
        (
            "A lesion in the upper left. A lesion in the lower right.",
            "A lesion in the lower right. A lesion in the middle left.",
            {"place_errors": 1},
        ),
        # tolerances: 10 %, at least 0.5 mm
        ("A cyst of 20 mm.", "A cyst of 2.2 cm.", {}),
        ("A cyst of 20 mm.", "A cyst of 2.3 cm.", {"size_errors": 1}),
        ("A cyst of 2 mm.", "A cyst of 2.5 mm.", {}),
        ("A cyst of 20 x 10 mm.", "A cyst of 10 x 20 mm.", {}),
        ("A cyst of 20 x 10 mm.", "A cyst of 20 mm.", {}),
        # what is left out of a fact is no error of the fact
        ("A cyst of 20 mm in the left kidney.", "A cyst in the kidney.", {}),
        # padding with denials is no hallucination
        ("The liver has a cyst.", "The liver has a cyst. No stone.", {}),
        # measurements and grades are no findings
        ("The liver has a cyst.", "The liver has a cyst. The aorta measures 20 mm. BI-RADS 2.", {}),
        # languages meet in the same facts
        ("左肾可见结石，大小约5mm。", "A stone of 5 mm in the left kidney.", {}),
        ("左肾可见结石，大小约5mm。", "A stone of 5 cm in the right kidney.", {"side_errors": 1, "size_errors": 1}),
        ("肝脏未见囊肿。", "The liver has a cyst.", {"negation_errors": 1, "hallucinated": 1}),
    ],
)
def test_errors_counted_by_hand(reference: str, reply: str, expected: dict[str, int]) -> None:
    found = errors(reference, reply)
    found.pop("sections_missing", None)
    assert found == expected


# Two ways to say the same, written by hand.
PARAPHRASES = [
    (
        "The gallbladder wall is not thickened and contains no stones.",
        "No gallstones. No gallbladder wall thickening.",
    ),
    (
        "A 12 mm hypoechoic nodule with irregular margins in the left thyroid lobe.",
        "A nodule in the left lobe of the thyroid. It is hypoechoic with an irregular border and measures 1.2 cm.",
    ),
    (
        "No focal lesion in the liver.",
        "The liver is free of focal lesions.",
    ),
    (
        "The liver is normal in size with homogeneous echotexture. No focal lesion.",
        "Liver size is within normal limits. The liver has a uniform echo. No space-occupying lesion in the liver.",
    ),
    (
        "Right kidney: 5 mm stone in the lower pole with posterior shadowing.",
        "In the lower pole of the right kidney there is a calculus, about 0.5 cm, casting an acoustic shadow.",
    ),
    (
        "The left breast shows an anechoic cyst at 3 o'clock with posterior enhancement.",
        "Anechoic cyst with posterior acoustic enhancement, left breast, 3 o'clock.",
    ),
    (
        "Mild left hydronephrosis.",
        "The left kidney shows mild dilatation of the renal pelvis.",
    ),
    (
        "Moderate hepatic steatosis.",
        "Moderate fatty liver.",
    ),
    (
        "Multiple B-lines are seen in both lungs, without pleural effusion.",
        "B-lines are present bilaterally. No pleural effusion.",
    ),
    (
        "The common bile duct measures 6 mm.",
        "CBD diameter 0.6 cm.",
    ),
    (
        "Thyroid nodule, TI-RADS 4.",
        "TI-RADS category 4 nodule of the thyroid.",
    ),
    (
        "Impression: benign breast lesion.",
        "Impression: the breast lesion is benign.",
    ),
    (
        "肝脏大小正常，回声均匀，未见占位。",
        "The liver is normal in size with homogeneous echo and no focal lesion.",
    ),
    (
        "There is no ascites.",
        "No free fluid in the abdomen.",
    ),
    (
        "Focal lesion in the upper right part of the image, malignant.",
        "In the upper right of the image there is a lesion of malignant appearance.",
    ),
]


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_the_same_in_other_words_scores_one(one: str, other: str) -> None:
    assert clinical_item([one], other)["fact_f1"] == 1.0
    assert clinical_item([other], one)["fact_f1"] == 1.0


def test_details_left_out_lower_detail_recall() -> None:
    counts = clinical_counts("A cyst of 20 mm in the left kidney.", "A cyst in the kidney.")
    assert (counts["reference_details"], counts["details_right"], counts["side_compared"]) == (2, 0, 0)


def test_sections() -> None:
    full = (
        "The liver is normal in size and shape with smooth border and homogeneous echotexture. No focal lesion. "
        "Impression: normal liver."
    )
    assert missing_sections(full) == []
    assert missing_sections("A mass.", organ="breast") == ["echotexture", "impression"]
    assert required_sections("The liver is normal in size. No mass.") == {"size", "lesion"}
    counts = clinical_counts(full, "The liver is normal in size. No focal lesion.")
    assert (counts["sections_required"], counts["sections_missing"]) == (6, 4)


def test_the_best_reference_counts() -> None:
    several = ["The liver has a cyst.", "The liver has a stone."]
    rows = clinical_statistics([several, several[:1]], ["The liver has a stone.", ""])["clinical"]
    assert rows.shape == (2, len(COLUMNS))
    assert rows[0, COLUMNS.index("correct")] == 1
    assert rows[0, COLUMNS.index("hallucinated")] == 0
    assert clinical_statistics([], [])["clinical"].shape == (0, len(COLUMNS))
    with pytest.raises(ValueError, match="1 reference lists for 2 texts"):
        clinical_statistics([several], ["", ""])
    with pytest.raises(ValueError, match="without a reference"):
        clinical_statistics([[]], [""])


def test_the_table_points_into_the_texts() -> None:
    reply = REPORT.replace("12 x 9 mm", "12 x 9 cm")
    row = next(row for row in fact_table(REPORT, reply) if row["verdict"] == "size error")
    assert row["in_reference"] == "breast: mass, left, upper outer quadrant, 12 x 9 mm"
    assert row["in_reply"] == "breast: mass, left, upper outer quadrant, 120 x 90 mm"
    assert REPORT[slice(*row["reference_span"])] == reply[slice(*row["reply_span"])] == "mass"


# Each names its organ, so that no sentence leans on the one before.
SENTENCES = st.sampled_from(
    [
        "The liver is normal in size.",
        "The liver is enlarged.",
        "No mass or cyst is seen in the liver.",
        "A cyst of 12 mm is seen in the liver.",
        "A cyst of 4 cm is seen in the upper left of the liver.",
        "The left kidney has a stone of 5 mm.",
        "The right kidney has no stone.",
        "Possible hydronephrosis of the left kidney.",
        "A hypoechoic mass with irregular margin in the right breast.",
        "Right breast: BI-RADS 4A.",
        "The spleen is normal.",
        "The gallbladder is not visible today.",
    ]
)
TEXTS = st.lists(SENTENCES, max_size=8)


@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_sentences_does_not_matter(ours: list[str], theirs: list[str], random: object) -> None:
    expected = clinical_counts(" ".join(ours), " ".join(theirs))
    for sentences in (ours, theirs):
        random.shuffle(sentences)  # type: ignore[attr-defined]
    assert clinical_counts(" ".join(ours), " ".join(theirs)) == expected


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_saying_it_twice_changes_nothing(ours: list[str], theirs: list[str]) -> None:
    reference, reply = " ".join(ours), " ".join(theirs)
    expected = clinical_counts(reference, reply)
    assert clinical_counts(reference, f"{reply} {reply}") == expected
    assert clinical_counts(f"{reference} {reference}", reply) == expected


@given(TEXTS, TEXTS)
@settings(max_examples=150, deadline=None)
def test_counts_hold_together(ours: list[str], theirs: list[str]) -> None:
    reference, reply = " ".join(ours), " ".join(theirs)
    counts = clinical_counts(reference, reply)
    assert counts["correct"] <= min(counts["reference_facts"], counts["reply_facts"])
    assert counts["negation_errors"] <= counts["polarity_compared"]
    assert counts["details_right"] <= counts["reference_details"]
    for name in ("side", "place", "size", "grade"):
        assert counts[f"{name}_errors"] <= counts[f"{name}_compared"]
    matches = match_facts(extract(reference), extract(reply))
    assert sum(match.reference is not None for match in matches) == counts["reference_facts"]
    assert sum(match.reply is not None for match in matches) == counts["reply_facts"]
    # Seen from the other side, what was missed is invented.
    back = clinical_counts(reply, reference)
    assert back["correct"] == counts["correct"]


def _column(path: Path, name: str) -> list[str]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file, delimiter="\t") if row["dataset_name"][0].isdigit()]


@pytest.mark.real
@pytest.mark.part("clinical content")
@pytest.mark.parametrize(
    ("folder", "file", "column", "number"),
    [("report_generation", "39.tsv", "report", 7), ("caption_generation", "10.tsv", "caption", 8)],
)
def test_reports_and_captions_of_the_sample(folder: str, file: str, column: str, number: int) -> None:
    texts = _column(shared_data("u2_sample", folder, file), column)
    assert len(texts) == number
    normal = [text for text in texts if "normal" in text]
    lesions = [text for text in texts if "normal" not in text]
    assert len(normal) == 2
    for text in texts:
        counts = clinical_counts(text, text)
        assert counts["reference_facts"] >= 2
        assert counts["correct"] == counts["reference_facts"] == counts["reply_facts"]
        assert errors(text, text) == {}
    for text in lesions:
        invented = clinical_counts(text, normal[0])
        assert invented["negation_errors"] >= 1
        assert invented["missed"] >= 1
        assert invented["hallucinated"] == 0
        overlooked = clinical_counts(normal[0], text)
        assert overlooked["negation_errors"] >= 1
        assert overlooked["hallucinated"] >= 1
    rows = clinical_statistics([[text] for text in texts], texts)["clinical"]
    assert np.array_equal(rows[:, COLUMNS.index("correct")], rows[:, COLUMNS.index("reference_facts")])
