"""Every row of the shared parsing cases, and the replies that the issue names: one test each."""

# ruff: noqa: RUF001
from __future__ import annotations

from typing import Any

import pytest

from sonogauge.answers import FORMS, NULL, AnswerSpec

pytestmark = pytest.mark.part("answers")

PLANES = AnswerSpec(
    "choice", options=("Fetal abdomen", "Fetal brain", "Fetal femur", "Fetal thorax"), letters=("A", "B", "C", "D")
)
SEVERAL = AnswerSpec("multi_choice", options=PLANES.options, letters=PLANES.letters)
ABDOMEN, BRAIN, FEMUR, THORAX = PLANES.options
TUMOUR = AnswerSpec("choice", options=("benign", "malignant"))
TUMOUR_LETTERS = AnswerSpec("choice", options=("benign", "malignant"), letters=("A", "B"))
OVARY = AnswerSpec("choice", options=("infected", "noninfected"))
BIRADS = AnswerSpec("choice", options=("2", "3", "4A", "4B", "4C", "5"))
LUNG = AnswerSpec("choice", options=("0", "1", "2", "3"))
VIEWS = AnswerSpec("choice", options=("None", "OnlyFetalHead", "OnlySymphysisPubis", "SymphysisPubis+FetalHead"))
PLANE_QUALITY = AnswerSpec("choice", options=("none", "optimal", "suboptimal"))
VISIBLE = AnswerSpec("choice", options=("Not-visible", "Visible"))
KNEE = AnswerSpec(
    "choice",
    options=("Mild OA", "Moderate OA", "No OA", "Questionable OA", "Severe OA", "Total joint replacement"),
)
ANATOMY = AnswerSpec(
    "choice",
    options=tuple(["fetal", "thyroid", "heart", "lung", "liver", "carotid", "kidney", "prostate", "breast", "other"]),
)
ANATOMY_LETTERS = AnswerSpec("choice", options=ANATOMY.options, letters=tuple("ABCDEFGHIJ"))
CHINESE = AnswerSpec("choice", options=("良性", "恶性"))
PLACE = AnswerSpec("place")
MM = AnswerSpec("number", low=100.0, high=400.0, unit="mm")
THICKNESS = AnswerSpec("number", options=(NULL,), low=0.3, high=1.5, unit="mm")
EJECTION = AnswerSpec("number", low=10.0, high=75.0, unit="%")

# (reply, item, value, reason): the binding rows of parsing-cases.md
BINDING: list[tuple[str, AnswerSpec, Any, str | None]] = [
    ("b", PLANES, BRAIN, None),
    ("**B**", PLANES, BRAIN, None),
    ("D) Fetal thorax", PLANES, THORAX, None),
    ("The correct answer is B. Option A shows the stomach bubble, which is absent.", PLANES, BRAIN, None),
    ("This is not A; it is D.", PLANES, THORAX, None),
    ("It could be A or B.", PLANES, None, "ambiguous"),
    ("I cannot determine the plane from this image.", PLANES, None, "refusal_insufficient"),
    ("fetal brain, transthalamic plane", PLANES, BRAIN, None),
    ("\\boxed{C}", PLANES, FEMUR, None),
    ("<think>maybe A</think><answer>C</answer>", PLANES, FEMUR, None),
    ("ANSWER: C\n\nNote: A and B lack the diaphysis.", PLANES, FEMUR, None),
    ("", PLANES, None, "empty"),
    ("Error code: 429 - {'error': {'message': 'Rate limit reached for A'}}", PLANES, None, "error"),
    ("E", PLANES, None, "none"),
    ("A hyperechoic bone is seen. The answer is C", PLANES, FEMUR, None),
    ("ANSWER: A, B, and C", SEVERAL, (ABDOMEN, BRAIN, FEMUR), None),
]

ISSUE: list[tuple[str, AnswerSpec, Any, str | None]] = [
    ("not malignant", TUMOUR, None, "negated"),
    ("Benign or malignant", TUMOUR, None, "ambiguous"),
    ("lower center", PLACE, "lower center", None),
    ("noninfected", OVARY, "noninfected", None),
    ("The answer is: 4A.", BIRADS, "4A", None),
    ("B) malignant", TUMOUR, "malignant", None),
    ("B) malignant", TUMOUR_LETTERS, "malignant", None),
    ("12.5 cm", MM, 125.0, None),
    ("10-20", MM, None, "range"),
    ("-3", MM, -3.0, None),
    ("12,5", MM, None, "format"),
    ("", TUMOUR, None, "empty"),
    ("", MM, None, "empty"),
    ("", PLACE, None, "empty"),
    ("The image quality is insufficient to tell.", TUMOUR, None, "refusal_insufficient"),
    ("I'm sorry, but I can't provide medical advice.", TUMOUR, None, "refusal_policy"),
    ("无法判断这是良性还是恶性。", CHINESE, None, "refusal_insufficient"),
    ("抱歉，我无法提供医疗建议，请咨询专业医生。", CHINESE, None, "refusal_policy"),
    ("答案：恶性。", CHINESE, "恶性", None),
    ("这不是恶性，而是良性。", CHINESE, "良性", None),
    ("答案是Ｂ。", PLANES, BRAIN, None),
]

NASTY: list[tuple[str, AnswerSpec, Any, str | None]] = [
    # letters, articles, pronouns, words
    ("A hyperechoic bone is seen.", PLANES, None, "none"),
    ("THIS IS A BONE", PLANES, None, "none"),
    ("The answer is a fetal brain.", PLANES, BRAIN, None),
    ("The answer is a.", PLANES, ABDOMEN, None),
    ("I think it looks unclear", ANATOMY_LETTERS, None, "none"),
    ("Answer: I", ANATOMY_LETTERS, "breast", None),
    ("B lines and A lines are seen.", PLANES, None, "none"),
    ("B-mode image of good quality", PLANES, None, "none"),
    ("D'accord", PLANES, None, "none"),
    ("I'D SAY SO", PLANES, None, "none"),
    ("e.g. A.B. style", PLANES, None, "none"),
    ("(c)", PLANES, FEMUR, None),
    ("option c", PLANES, FEMUR, None),
    ("Fetal femur (C)", PLANES, FEMUR, None),
    ("B) Fetal femur", PLANES, None, "ambiguous"),
    ("A) malignant", TUMOUR_LETTERS, None, "ambiguous"),
    ("The answer is A. Malignant lesions have spiculated margins.", TUMOUR_LETTERS, "benign", None),
    ("The answer is E. Option A shows the stomach.", PLANES, None, "none"),
    # declarations
    ("The answer is B. Wait, no. The answer is C.", PLANES, FEMUR, None),
    ("The answer is A, B is wrong.", PLANES, ABDOMEN, None),
    ("Final answer: A or B", PLANES, None, "ambiguous"),
    ("I don't think the answer is B.", PLANES, None, "negated"),
    ("I do not think it is malignant", TUMOUR, None, "negated"),
    ("whether it is benign or malignant", TUMOUR, None, "none"),
    ('{"answer": "B", "confidence": 0.9}', PLANES, BRAIN, None),
    ("$\\boxed{\\text{Fetal femur}}$", PLANES, FEMUR, None),
    ("**Answer:** *D*", PLANES, THORAX, None),
    ("<|begin_of_box|>B<|end_of_box|>", PLANES, BRAIN, None),
    ("Respuesta: C", PLANES, FEMUR, None),
    ("La réponse est B.", PLANES, BRAIN, None),
    ("Die Antwort lautet D", PLANES, THORAX, None),
    ("It's most likely a malignant lesion.", TUMOUR, "malignant", None),
    # thinking
    ("<think>The answer is A", PLANES, None, "empty"),
    ("so it is A</think>B", PLANES, BRAIN, None),
    ("<think>a <think>b</think> c</think> D", PLANES, THORAX, None),
    ("[THINK]A[/THINK]B", PLANES, BRAIN, None),
    ("[Reasoning] No midline is seen.\n[Answer] C", PLANES, FEMUR, None),
    ("◁think▷A◁/think▷B", PLANES, BRAIN, None),
    ("The answer is B. <think>or is it A", PLANES, BRAIN, None),
    # negation
    ("Benign, not malignant.", TUMOUR, "benign", None),
    ("This is not malignant but benign.", TUMOUR, "benign", None),
    ("malignant rather than benign", TUMOUR, "malignant", None),
    ("neither benign nor malignant", TUMOUR, None, "negated"),
    ("non-malignant", TUMOUR, None, "negated"),
    ("Malignant is unlikely.", TUMOUR, None, "negated"),
    ("No doubt malignant.", TUMOUR, "malignant", None),
    ("No evidence of a benign lesion, malignant", TUMOUR, "malignant", None),
    ("This rules out malignant disease", TUMOUR, None, "negated"),
    ("not in any way at all malignant", TUMOUR, "malignant", None),  # five words off: beyond the rule of four
    ("There is no moderate OA", KNEE, None, "negated"),
    ("There is no OA", KNEE, "No OA", None),
    ("No OA rather than mild OA", KNEE, "No OA", None),
    ("The cyst is not clearly visible", VISIBLE, None, "negated"),
    ("not visible", VISIBLE, "Not-visible", None),
    # options within options
    ("non-infected", OVARY, "noninfected", None),
    ("The ovary is noninfected.", OVARY, "noninfected", None),
    ("premalignant", TUMOUR, None, "none"),
    ("pre-malignant", TUMOUR, None, "none"),
    ("4A-4B", BIRADS, None, "ambiguous"),
    ("BI-RADS 4B", BIRADS, "4B", None),
    ("suboptimal", PLANE_QUALITY, "suboptimal", None),
    # rule 5
    ("There are 2 masses", BIRADS, None, "none"),
    ("2.", LUNG, "2", None),
    ("Score: 2", LUNG, "2", None),
    ("Score: 2.5", LUNG, None, "none"),
    ("Score: -1", LUNG, None, "none"),
    ("-1", LUNG, None, "none"),
    ("Score: 2-3", LUNG, None, "ambiguous"),
    ("it is 2 cm wide", LUNG, None, "none"),
    ("２", LUNG, "2", None),
    ("None", VIEWS, "None", None),
    ("none of them", VIEWS, None, "none"),
    ("The answer is none.", PLANE_QUALITY, "none", None),
    ("none of the landmarks is seen", PLANE_QUALITY, None, "none"),
    ("the other side", ANATOMY, None, "none"),
    ("Answer: other", ANATOMY, "other", None),
    ("only fetal head", VIEWS, "OnlyFetalHead", None),
    # refusals
    ("I cannot determine if this is malignant.", TUMOUR, None, "refusal_insufficient"),
    ("I cannot be sure, but the most likely answer is malignant.", TUMOUR, "malignant", None),
    ("Benign. Please consult a doctor.", TUMOUR, "benign", None),
    ("无法判断是否为malignant", TUMOUR, None, "refusal_insufficient"),
    ("图像模糊，信息不足", TUMOUR, None, "refusal_insufficient"),
    ("openai.BadRequestError: benign", TUMOUR, None, "error"),
    ("503 Service Unavailable", BIRADS, None, "error"),
    # several
    ("A or C", SEVERAL, None, "ambiguous"),
    ("C, A", SEVERAL, (ABDOMEN, FEMUR), None),
    ("ABC", SEVERAL, None, "none"),
    ("The right ones are A and D.", SEVERAL, (ABDOMEN, THORAX), None),
    # places
    ("Top-left", PLACE, "upper left", None),
    ("left upper", PLACE, "upper left", None),
    ("upper_left", PLACE, "upper left", None),
    ("Fetal-brain", PLANES, BRAIN, None),
    ("C++", PLANES, None, "none"),
    ("Answer: C?", PLANES, FEMUR, None),
    ("Answer C is wrong, D", PLANES, THORAX, None),
    ("It is not A, B, or C. It is D.", PLANES, THORAX, None),
    ("If the answer is B, then the midline is seen", PLANES, None, "none"),
    ("不是A而是C", PLANES, FEMUR, None),
    ("A和B都有可能", PLANES, None, "ambiguous"),
    ("无法确定，可能是B", PLANES, None, "refusal_insufficient"),
    ("center left", PLACE, "middle left", None),
    ("in the middle center", PLACE, "center", None),
    ("Centre", PLACE, "center", None),
    ("bottom middle", PLACE, "lower center", None),
    ("The lesion is in the bottom right corner.", PLACE, "lower right", None),
    ("The lesion is not visible.", PLACE, "not visible", None),
    ("upper left or center", PLACE, None, "ambiguous"),
    ("left", PLACE, None, "none"),
    ("not upper left", PLACE, None, "negated"),
    ("slightly left of center", PLACE, None, "none"),
    ("upper left, below the center", PLACE, None, "ambiguous"),
    ("the right upper quadrant", PLACE, "upper right", None),
    ("upper left to center", PLACE, None, "ambiguous"),
    ("upper left is not shown; lower left", PLACE, "lower left", None),
    # said after a mention
    ("The malignant option is wrong.", TUMOUR, None, "negated"),
    ("A is wrong", PLANES, None, "negated"),
    ("B is incorrect. C is right.", PLANES, FEMUR, None),
    ("Fetal abdomen is not shown. Fetal femur.", PLANES, FEMUR, None),
    ("BI-RADS 3 to 4A", BIRADS, None, "ambiguous"),
    ("选B", PLANES, BRAIN, None),
    ("选项A显示胃泡，答案B", PLANES, BRAIN, None),
    ("这张B超图像不清楚", PLANES, None, "refusal_insufficient"),
    ("这张B超显示正常", PLANES, None, "none"),
    ("肺部可见B线", PLANES, None, "none"),
    ("不选B", PLANES, None, "negated"),
    ("The answer is benign. However, if it is malignant, biopsy is needed.", TUMOUR, "benign", None),
    ("Answer: not malignant, benign", TUMOUR, "benign", None),
    ("I choose B because A lacks the midline", PLANES, BRAIN, None),
]

NUMBERS: list[tuple[str, AnswerSpec, Any, str | None]] = [
    ("between 110 and 120", MM, None, "range"),
    ("110 to 120 mm", MM, None, "range"),
    ("110 ± 5", MM, None, "range"),
    ("110–120", MM, None, "range"),
    ("> 110", MM, None, "range"),
    ("at least 110 mm", MM, None, "range"),
    ("-10--5", MM, None, "range"),
    ("250 or 260", MM, None, "ambiguous"),
    ("250 mm, 260 mm", MM, None, "ambiguous"),
    ("250 mm (25 cm)", MM, 250.0, None),
    ("25 厘米", MM, 250.0, None),
    ("答案是250毫米。", MM, 250.0, None),
    ("0.25 m", MM, 250.0, None),
    ("800 µm", THICKNESS, 0.8, None),
    ("800 μm", THICKNESS, 0.8, None),
    ("250 kg", MM, None, "unit"),
    ("25 cm2", MM, None, "unit"),
    ("25 cm²", MM, None, "unit"),
    ("55 mm", EJECTION, None, "unit"),
    ("EF = 55%", EJECTION, 55.0, None),
    ("LVEF≈55 percent", EJECTION, 55.0, None),
    ("百分之55", EJECTION, 55.0, None),
    ("0.55", EJECTION, None, "format"),
    ("120 ml and 54 ml. EF = 55%", EJECTION, 55.0, None),
    ("The normal range is 100-400. Answer: 250", MM, 250.0, None),
    ("Answer: 250\nFinal answer: 255", MM, 255.0, None),
    ("The answer is between 110 and 120", MM, None, "range"),
    ("1,234.5", MM, 1234.5, None),
    ("1,234", MM, None, "format"),
    ("1.234,5", MM, None, "format"),
    ("1/2", MM, None, "format"),
    ("10²", MM, None, "format"),
    ("½", MM, None, "format"),
    ("12.5.3", MM, None, "format"),
    ("--3", MM, None, "format"),
    ("+-3", MM, None, "format"),
    ("- 3", MM, None, "format"),
    ("10mm-20mm", MM, None, "range"),
    ("12.5 mm x 3 mm", MM, None, "ambiguous"),
    ("EF: >55%", EJECTION, None, "range"),
    ("55 out of 100", EJECTION, None, "ambiguous"),
    ("大约55％左右", EJECTION, 55.0, None),
    ("I cannot determine it, but approximately 250 mm", MM, 250.0, None),
    ("NaN", MM, None, "format"),
    ("-inf", MM, None, "format"),
    ("Answer: NaN", MM, None, "format"),
    ("1e400", MM, None, "format"),
    ("2.5e2", MM, 250.0, None),
    ("900", MM, 900.0, None),  # outside the limits: clipped by scoring, not refused
    ("-3 mm", MM, -3.0, None),
    ("−3", MM, -3.0, None),
    ("a 2D image, 250 mm", MM, 250.0, None),
    ("$\\boxed{250}$", MM, 250.0, None),
    ("null", THICKNESS, NULL, None),
    ("Null.", THICKNESS, NULL, None),
    ("not measurable", THICKNESS, NULL, None),
    ("无法测量", THICKNESS, NULL, None),
    ("The picture is 512 wide. Answer: null", THICKNESS, NULL, None),
    ("null", MM, None, "none"),
    ("no idea", MM, None, "none"),
    ("I cannot determine the circumference.", MM, None, "refusal_insufficient"),
    ("I can't provide a medical diagnosis.", MM, None, "refusal_policy"),
    ("无法提供医疗建议", MM, None, "refusal_policy"),
    ("Error code: 500", MM, None, "error"),
]


def _check(reply: str, spec: AnswerSpec, value: Any, reason: str | None) -> None:
    assert tuple(FORMS.load(spec.form).parse(reply, spec)) == (value, reason)


@pytest.mark.parametrize(("reply", "spec", "value", "reason"), BINDING, ids=lambda one: repr(one)[:50])
def test_binding_row(reply: str, spec: AnswerSpec, value: Any, reason: str | None) -> None:
    _check(reply, spec, value, reason)


@pytest.mark.parametrize(("reply", "spec", "value", "reason"), ISSUE, ids=lambda one: repr(one)[:50])
def test_reply_of_the_issue(reply: str, spec: AnswerSpec, value: Any, reason: str | None) -> None:
    _check(reply, spec, value, reason)


@pytest.mark.parametrize(("reply", "spec", "value", "reason"), NASTY, ids=lambda one: repr(one)[:50])
def test_nasty_reply(reply: str, spec: AnswerSpec, value: Any, reason: str | None) -> None:
    _check(reply, spec, value, reason)


@pytest.mark.parametrize(("reply", "spec", "value", "reason"), NUMBERS, ids=lambda one: repr(one)[:50])
def test_number_reply(reply: str, spec: AnswerSpec, value: Any, reason: str | None) -> None:
    _check(reply, spec, value, reason)
