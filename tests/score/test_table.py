"""Any prediction file: readers, VLMEvalKit, two files by id, oracles from scikit-learn, and every kind of bad input."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sacrebleu
from openpyxl import Workbook
from scipy import stats
from sklearn.metrics import cohen_kappa_score, f1_score, precision_recall_fscore_support, recall_score
from tests.shared import shared_data
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.score.table import TableScores, score_table
from sonogauge.score.table_text import table_lines

pytestmark = pytest.mark.part("score table")
DRAWS = 200
ROWS: list[dict[str, Any]] = [
    {"case": f"c{number}", "patient": f"p{number // 2}", "label": label, "reply": reply, "sex": "fm"[number % 2]}
    for number, (label, reply) in enumerate(
        [
            ("benign", "benign"),
            ("benign", "The answer is benign."),
            ("benign", "malignant"),
            ("malignant", "Malignant"),
            ("malignant", "I cannot determine this from the image."),
            ("malignant", "malignant"),
            ("malignant", ""),
            ("benign", "benign"),
        ]
        * 6
    )
]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    names = list(rows[0])
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows)), "utf-8")
    elif path.suffix == ".xlsx":
        book = Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.append(names)
        for row in rows:
            sheet.append([row[name] for name in names])
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, names, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def score(path: Path, **options: Any) -> TableScores:
    options = {"truth": "label", "prediction": "reply", "answer": "choice", "draws": DRAWS} | options
    return score_table(path, **options)


def value(scores: TableScores, name: str) -> float:
    found = scores.values[name].estimate.value
    assert found is not None, scores.values[name].estimate.why_null
    return found


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx"])
def test_every_format_gives_the_same_scores(tmp_path: Path, suffix: str) -> None:
    scores = score(write(tmp_path / f"p.{suffix}", ROWS), group="patient", id="case", by=["sex"])
    assert (scores.n, scores.valid, scores.groups) == (48, 36 + (6 if suffix == "none" else 0), 24)
    assert value(scores, "accuracy") == pytest.approx(30 / 48)
    # An empty cell of a workbook is no value at all.
    empty = "missing" if suffix == "xlsx" else "empty"
    assert scores.failures == dict(sorted({empty: 6, "refusal_insufficient": 6}.items()))
    estimate = scores.values["accuracy"].estimate
    assert estimate.low is not None and estimate.high is not None and estimate.low < 30 / 48 < estimate.high
    assert list(scores.parts) == ["sex=f", "sex=m"]


def test_values_equal_scikit_learn(tmp_path: Path) -> None:
    scores = score(
        write(tmp_path / "p.csv", ROWS), group="patient", positive=["malignant"], ordinal=["benign", "malignant"]
    )
    truth = [row["label"] for row in ROWS]
    said = [{"": "failed", "I": "failed"}.get(row["reply"][:1], row["reply"].lower()) for row in ROWS]
    said = ["benign" if "answer" in one else one for one in said]
    labels = ["benign", "malignant"]
    assert value(scores, "macro_f1") == pytest.approx(f1_score(truth, said, labels=labels, average="macro"), abs=1e-9)
    assert value(scores, "kappa") == pytest.approx(cohen_kappa_score(truth, said), abs=1e-9)
    assert value(scores, "sensitivity") == pytest.approx(
        recall_score(truth, said, labels=["malignant"], average="micro")
    )
    answered = [(a, b) for a, b in zip(truth, said, strict=True) if b != "failed"]
    oracle = recall_score(*zip(*answered, strict=True), labels=["malignant"], average="micro")
    assert value(scores, "sensitivity_answered") == pytest.approx(oracle)
    assert scores.values["sensitivity"].n == 24 and scores.values["sensitivity_answered"].n == 12
    # Two grades: a failure is as far off as the other grade, a false alarm too.
    assert value(scores, "grade_error") == pytest.approx(18 / 48)
    assert scores.baselines == {"majority": 0.5}


def test_numbers_with_and_without_a_range(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(50, 10, size=30)
    said = truth + rng.normal(1, 4, size=30)
    pairs = zip(truth.tolist(), said.tolist(), strict=True)
    rows = [{"y": repr(a), "p": f"{b!r} mm" if at % 2 else repr(b)} for at, (a, b) in enumerate(pairs)]
    rows.append({"y": "50", "p": "about right"})
    path = write(tmp_path / "n.csv", rows)
    given = {"truth": "y", "prediction": "p", "answer": "number", "unit": "mm"}
    open_range = score(path, **given)
    assert value(open_range, "mae") == pytest.approx(np.abs(truth - said).mean(), abs=1e-9)
    assert value(open_range, "pearson") == pytest.approx(stats.pearsonr(truth, said).statistic, abs=1e-9)
    assert value(open_range, "spearman") == pytest.approx(stats.spearmanr(truth, said).statistic, abs=1e-9)
    differences = said - truth
    assert value(open_range, "loa_high") == pytest.approx(
        differences.mean() + 1.959963984540054 * differences.std(ddof=1), abs=1e-9
    )
    assert open_range.values["mae"].n == 30 and open_range.n == 31
    assert any("left out" in notice for notice in open_range.notices)
    ranged = score(path, **given, low=0.0, high=100.0)
    # The failure counts max(.5, .5) of the range.
    assert value(ranged, "mae") == pytest.approx((np.abs(truth - said).sum() + 50) / 31, abs=1e-9)
    assert value(ranged, "mae_scaled") == pytest.approx(value(ranged, "mae") / 100, abs=1e-9)


def test_texts_and_sets_of_options(tmp_path: Path) -> None:
    texts = [{"y": "The liver is normal in size.", "p": "The liver is normal."}, {"y": "A cyst is seen.", "p": ""}]
    scores = score(write(tmp_path / "t.jsonl", texts), truth="y", prediction="p", answer="text")
    oracle = sacrebleu.BLEU().corpus_score([one["p"] for one in texts], [[one["y"] for one in texts]]).score / 100
    assert value(scores, "bleu_sacre") == pytest.approx(oracle, abs=1e-9)
    sets = [
        {"y": ["cyst", "mass"], "p": "cyst, mass"},
        {"y": ["cyst"], "p": "cyst and mass"},
        {"y": ["duct"], "p": ["duct"]},
    ]
    scores = score(write(tmp_path / "m.jsonl", sets), truth="y", prediction="p", answer="multi_choice")
    assert value(scores, "accuracy") == pytest.approx(2 / 3)
    joined = [{"y": "cyst; mass", "p": "cyst, mass"}, {"y": '["duct"]', "p": "duct"}]
    scores = score(write(tmp_path / "m.csv", joined), truth="y", prediction="p", answer="multi_choice")
    assert value(scores, "accuracy") == 1.0


VLMEVALKIT = [
    {"index": 1, "question": "?", "answer": "B", "prediction": "B", "A": "liver", "B": "spleen", "C": "", "split": "x"},
    {
        "index": 2,
        "question": "?",
        "answer": "A",
        "prediction": "It is the heart.",
        "A": "heart",
        "B": "lung",
        "C": "eye",
    },
    {"index": 3, "question": "?", "answer": "C", "prediction": "Answer: A", "A": "one", "B": "two", "C": "three"},
    {"index": 4, "question": "?", "answer": "A", "prediction": "C", "A": "yes", "B": "no", "C": ""},
]


@pytest.mark.lookalike
@pytest.mark.parametrize("suffix", ["xlsx", "tsv"])
def test_result_files_of_vlmevalkit_need_no_option(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"model_DATA.{suffix}", [{"split": "x"} | row for row in VLMEVALKIT])
    scores = score_table(path, draws=DRAWS)
    assert (value(scores, "accuracy"), scores.n, scores.valid) == (0.5, 4, 3)
    assert list(scores.values) == ["accuracy"]
    assert scores.values["accuracy"].chance == pytest.approx((1 / 2 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    assert "VLMEvalKit" in scores.notices[0]
    wrong = [{"split": "x"} | row | {"answer": "D"} for row in VLMEVALKIT]
    with pytest.raises(BadInput, match=r"row 1, field 'answer': the truth 'D' is none of the options of its row"):
        score_table(write(tmp_path / f"wrong.{suffix}", wrong), draws=DRAWS)


@pytest.mark.real
def test_published_predictions_of_mmmu() -> None:
    scores = score_table(
        shared_data("mmmu_outputs", "llava1.5_13b_val.json"),
        truth_file=shared_data("mmmu_outputs", "answer_dict_val.json"),
        truth="ground_truth",
        answer="choice",
        where=["question_type=multiple-choice"],
        draws=DRAWS,
    )
    assert scores.n == 847
    assert round(value(scores, "accuracy") * 847, 6) == 328


def test_two_files_are_joined_by_id(tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text('{"a": "yes", "c": "no"}', "utf-8")
    (tmp_path / "key.json").write_text('{"c": {"y": "yes"}, "b": {"y": "no"}, "a": {"y": "yes"}}', "utf-8")
    given = {"truth_file": tmp_path / "key.json", "truth": "y", "prediction": None}
    scores = score(tmp_path / "said.json", **given)
    assert (scores.n, scores.valid, scores.failures) == (3, 2, {"missing": 1})
    assert value(scores, "accuracy") == pytest.approx(1 / 3)
    (tmp_path / "said.json").write_text('{"a": "yes", "d": "no"}', "utf-8")
    with pytest.raises(BadInput, match=r"said.json, field 'id': a prediction for 'd', which has no truth"):
        score(tmp_path / "said.json", **given)
    (tmp_path / "said.json").write_text('{"a": "yes", "a": "no"}', "utf-8")
    with pytest.raises(BadInput, match="'a' stands in it twice"):
        score(tmp_path / "said.json", **given)
    write(tmp_path / "said.csv", [{"x": "a", "reply": "yes"}])
    with pytest.raises(BadInput, match=r"joined by id; name the column with --id"):
        score(tmp_path / "said.csv", **given)


def changed(number: int, **cells: Any) -> list[dict[str, Any]]:
    return [row | cells if at == number - 1 else row for at, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (changed(3, case=""), {"id": "case"}, r"p\.csv, row 3, field 'case': no id"),
        (changed(3, case="c0"), {"id": "case"}, r"row 3, field 'case': the id 'c0' stands twice"),
        (
            changed(5, label="cyst"),
            {"options": ["benign", "malignant"]},
            r"row 5, field 'label': the truth 'cyst' is none",
        ),
        (changed(5, label=""), {}, r"row 5, field 'label': no truth"),
        (changed(5, label="NaN"), {"answer": "number"}, r"row 1, field 'label': not a number: 'benign'"),
        ([row | {"label": "nan"} for row in ROWS], {"answer": "number"}, r"row 1, field 'label': not a number: 'nan'"),
        ([row | {"label": "1_0"} for row in ROWS], {"answer": "number"}, r"row 1, field 'label': not a number: '1_0'"),
        (changed(2, patient=" "), {"group": "patient"}, r"row 2, field 'patient': no value"),
        (ROWS, {"truth": "gold"}, r"p\.csv, field 'truth': no column 'gold'; it has case, patient, label, reply, sex"),
        (ROWS, {"by": ["age"]}, r"field 'by': no column 'age'"),
        (ROWS, {"answer": "box"}, r"field 'answer': no answer form 'box' for tables; use choice"),
        (ROWS, {"answer": None}, r"--answer is missing"),
        (ROWS, {"where": ["sex"]}, r"not a condition: 'sex'; write COLUMN=VALUE"),
        (ROWS, {"where": ["sex=x"]}, r"no rows to score; check --where|no column"),
        (ROWS, {"options": ["benign", "benign"]}, r"the option 'benign' stands twice"),
        (ROWS, {"positive": ["cyst"]}, r"field 'positive': 'cyst' is no option"),
        (ROWS, {"positive": ["benign", "malignant"]}, r"every option is positive"),
        (ROWS, {"ordinal": ["benign", "malignant", "benign"]}, r"field 'ordinal': no scale: benign, malignant, benign"),
        (ROWS, {"ordinal": ["benign"]}, r"field 'ordinal': no scale: benign; name two or more"),
        (ROWS, {"positive": ["malignant"], "prevalence": 1.5}, r"not a prevalence: 1.5"),
        (ROWS, {"answer": "text", "positive": ["x"]}, r"a text answer has no options"),
        (ROWS, {"answer": "number", "low": 3.0, "high": 1.0}, r"no range from 3.0 to 1.0"),
        ([row | {"label": "1"} for row in ROWS], {"answer": "number", "tolerance": -0.1}, r"no tolerance: -0.1"),
        ([row | {"label": "1"} for row in ROWS], {"answer": "number", "tolerance": float("nan")}, r"no tolerance: nan"),
        (ROWS, {"draws": 5}, r"5 draws are too few"),
        (
            [row | {"sex": str(number)} for number, row in enumerate(ROWS * 6)],
            {"by": ["sex"]},
            r"'sex' has more than 200 different values; slice by a column with fewer",
        ),
    ],
)
def test_bad_input_names_file_row_field_and_fix(
    tmp_path: Path, rows: list[dict[str, Any]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        score(write(tmp_path / "p.csv", rows), **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", b"a,b\n1\n", r"row 1: 1 fields where the header has 2"),
        ("p.csv", b"a,b\n1,2\n\n3,4\n", r"row 2: an empty line"),
        ("p.csv", b'a,b\n1,"2\n', r"not a table"),
        (
            "p.csv",
            b"a,b\n1,2\n3,\xff\xfe\n",
            r"p.csv: not UTF-8 \(line 3, byte 3: invalid start byte\); save it as UTF-8",
        ),
        ("p.csv", "a,b\n1,2\n".encode("utf-16"), r"not UTF-8 \(it begins as UTF-16\)"),
        ("p.csv", b"", r"no columns"),
        ("p.csv", b"a,a\n1,2\n", r"field 'a': two columns of this name"),
        ("p.txt", b"a", r"cannot read '.txt' files"),
        ("p.json", b"{", r"not JSON"),
        ("p.json", b"3", r"neither \{id: value\} nor a list of objects"),
        ("p.json", b"[" * 100_000, r"not JSON"),
        ("p.jsonl", b'{"a": 1, "b": 2}\n[1]\n', r"row 2: not a JSON object"),
        ("p.parquet", b"PAR1", r"not Parquet"),
        ("p.xlsx", b"PK", r"not an Excel workbook"),
    ],
)
def test_broken_files_are_bad_input(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        score_table(path, truth="a", prediction="b", answer="text", draws=DRAWS)
    with pytest.raises(BadInput, match="no such file"):
        score_table(tmp_path / "gone.csv", truth="a", prediction="b", answer="text")


@pytest.mark.parametrize(
    ("truth", "options", "message"),
    [
        ("1e300", {}, r"row 1, field 'label': a number beyond 1e\+50: '1e300'"),
        ("1", {"low": 0.0, "high": math.inf}, r"no range from 0.0 to inf"),
        ("1", {"low": 0.0, "high": 1e300}, r"no range from 0.0 to 1e\+300"),
        ("1", {"low": 2.0}, r"no range from 2.0 to None"),
        ("1", {"measure": "head size"}, r"field 'measure': no tolerance for the measure 'head size'; known: head circ"),
        ("1", {"measure": "ejection fraction", "unit": "mm"}, r"field 'unit': the tolerance .* is in '%', .* in 'mm'"),
        ("1", {"options": ["1", "2"]}, r"field 'options': a number answer has no options"),
        ("1", {"clinical": True}, r"field 'clinical': a number answer has no clinical facts"),
        ("1", {"prevalence": 0.1}, r"field 'prevalence': a number answer has no options"),
        ("1", {"answer": "choice", "prevalence": 0.1}, r"field 'prevalence': a prevalence of what\?"),
        ("1", {"answer": "choice", "unit": "mm"}, r"field 'unit': a choice answer has no unit"),
        ("1", {"answer": "text", "low": 0.0}, r"field 'low': a text answer has no low"),
        ("1", {"processes": 0}, r"field 'processes': 0 is too few"),
        ("1", {"min_n": 0}, r"field 'min_n': 0 is too few"),
    ],
)
def test_numbers_and_options_that_cannot_be(tmp_path: Path, truth: str, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "p.csv", [{"label": truth, "reply": "1"}, {"label": "1", "reply": "2"}])
    with pytest.raises(BadInput, match=message):
        score(path, **({"answer": "number"} | options))


def test_absurd_predictions_are_failures_and_nothing_is_infinite(tmp_path: Path) -> None:
    rows = [
        {"label": str(at), "reply": reply} for at, reply in enumerate(["0", "1e308", "-1e308", "1e400", "5", "1e99"])
    ]
    for range_ in ({}, {"low": -10.0, "high": 10.0}):
        scores = score(write(tmp_path / "p.jsonl", rows), answer="number", **range_)
        assert scores.failures == {"format": 3}
        json.dumps(scores.to_json(), allow_nan=False)
        assert not any("inf" in line or "nan" in line for line in table_lines(scores))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_of_another_country_is_read(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "p.csv"
    lines = [separator.join(row) for row in (("label", "reply"), ("cyst", "cyst, surely"), ("mass", "cyst"))]
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", "utf-8")
    assert value(score(path), "accuracy") == 0.5


def test_empty_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,reply\r\ncyst,cyst\r\nmass,cyst\r\n\r\n\r\n", "utf-8", newline="")
    assert score(tmp_path / "p.csv").n == 2


def test_a_column_named_twice_slices_once(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", ROWS), by=["sex", "sex"])
    assert [scores.parts[part]["accuracy"].n for part in ("sex=f", "sex=m")] == [24, 24]


def test_draws_that_are_all_alike_give_no_interval_of_width_zero(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", [{"label": one, "reply": one} for one in ("cyst", "mass")]))
    estimate = scores.values["balanced_accuracy"].estimate
    assert (estimate.value, estimate.low, estimate.why_null) == (1.0, None, "no variation between groups")


def test_precision_recall_and_f1_of_each_class_equal_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth, said = rng.choice(["a", "b", "c"], 90), rng.choice(["a", "b", "c", "?"], 90)
    rows = [
        {"label": one, "reply": other, "g": str(at // 3)}
        for at, (one, other) in enumerate(zip(truth, said, strict=True))
    ]
    rows.append({"label": "d", "reply": "a", "g": "0"})
    path = write(tmp_path / "p.csv", rows)
    scores = score(path, group="g", options=["a", "b", "c", "d", "e"])
    # An option without a reference is no class; one that was never predicted counts 0 and says so.
    assert list(scores.classes) == ["a", "b", "c", "d"]
    expected = precision_recall_fscore_support(
        [*truth, "d"], [*said, "a"], labels=["a", "b", "c", "d"], zero_division=0
    )
    for place, name in enumerate(scores.classes):
        for kind, values in zip(("precision", "recall", "f1"), expected, strict=False):
            estimate = scores.classes[name][kind].estimate
            assert estimate.value == pytest.approx(values[place], abs=1e-12)
            if name != "d":
                assert estimate.low is not None and estimate.high is not None
                assert estimate.low < estimate.value < estimate.high
    assert scores.classes["d"]["precision"].estimate.why_null == "never predicted: counted as 0"
    # The recall of a class is the accuracy on its own items, interval included.
    alone = score(path, group="g", options=["a", "b", "c", "d", "e"], where=["label=b"]).values["accuracy"].estimate
    found = scores.classes["b"]["recall"].estimate
    assert (found.value, found.groups) == (alone.value, alone.groups)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=0.03)  # other draws of other groups
    told = scores.to_json()["tasks"]["table"]["classes"]
    assert "class:b" in told["b"]["recall"]["signature"] and "class:a" in told["a"]["f1"]["signature"]
    shown = "\n".join(table_lines(scores))
    assert len([line for line in shown.splitlines() if line.startswith("d ") and "never predicted" in line]) == 1
    few = score(write(tmp_path / "q.csv", rows[:12]), group="g")
    after = "\n".join(table_lines(few)).split("by class")[1]
    assert "fewer than 20 groups" in after
    assert "by class" in shown and "expected by chance: accuracy 0.2000" in shown
    assert f"accuracy of baselines: majority {max(np.unique(truth, return_counts=True)[1]) / 91:.4f}" in shown


REPORT = (
    "The left breast is of homogeneous echotexture. A hypoechoic mass measuring 12 x 9 mm is seen in the upper outer "
    "quadrant of the left breast. No calcification is seen in the lesion. The skin and the nipple are normal. "
    "The ducts are not dilated. Impression: BI-RADS 4A, suspicious for malignancy."
)
ALTERED = {
    "negation_error_rate": ("No calcification is", "A calcification is", "negation error"),
    "side_error_rate": ("quadrant of the left", "quadrant of the right", "side error"),
    "size_error_rate": ("12 x 9 mm", "12 x 9 cm", "size error"),
    "hallucinated_per_report": ("Impression:", "A cyst is seen in the right breast. Impression:", "hallucinated"),
}


@pytest.mark.part("clinical content")
@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_report_loses_exactly_there_and_the_table_shows_it(tmp_path: Path, name: str) -> None:
    old, new, verdict = ALTERED[name]
    assert REPORT.count(old) == 1
    path = write(tmp_path / "p.jsonl", [{"label": REPORT, "reply": REPORT.replace(old, new)}])
    words = ["score-table", str(path), "--truth", "label", "--prediction", "reply", "--answer", "text", "--json"]
    found = CliRunner().invoke(app, [*words, "--facts", str(tmp_path / "facts.csv")])
    assert found.exit_code == 0
    metrics = json.loads(found.stdout)["tasks"]["table"]["metrics"]
    assert metrics["bleu4"]["value"] > 0.8
    # A finding denied by the reference and asserted by the reply is also one that it invents.
    hit = {name, "hallucinated_per_report"} if name == "negation_error_rate" else {name}
    for one in (*ALTERED, "missed_per_report", "missing_sections_per_report", "place_error_rate"):
        assert (metrics[one]["value"] > 0) == (one in hit)
    with (tmp_path / "facts.csv").open(encoding="utf-8") as stream:
        wrong = [row for row in csv.DictReader(stream) if row["correct"] == "False"]
    assert [(row["row"], row["verdict"]) for row in wrong] == [("1", verdict)]
    unchanged = score(write(tmp_path / "q.jsonl", [{"label": REPORT, "reply": REPORT}]), answer="text", clinical=True)
    assert (value(unchanged, "fact_f1"), value(unchanged, name)) == (1.0, 0.0)
    assert unchanged.values["grade_error_rate"].estimate.value == 0.0


def test_clinical_facts_without_any_say_why(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.jsonl", [{"label": "Hello.", "reply": "World."}]), answer="text", clinical=True)
    assert scores.values["side_error_rate"].estimate.why_null == "nothing to count here: side compared = 0"
    never_bare(scores.to_json())


def test_facts_are_written_as_csv_only(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [{"label": REPORT, "reply": REPORT}])
    for target in (tmp_path, tmp_path / "facts.txt"):
        with pytest.raises(BadInput, match="field 'facts': facts are written as CSV"):
            score(path, answer="text", facts=target)


def test_facts_never_replace_what_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", [{"label": REPORT, "reply": REPORT}])
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"p.csv, field 'facts': this file is read, facts would replace it"):
        score(path, answer="text", facts=tmp_path / "." / "p.csv")
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(BadInput, match=r"field 'facts': cannot be written"):
        score(path, answer="text", facts=tmp_path / "file" / "facts.csv")
    assert path.read_bytes() == before


def test_more_options_than_a_confusion_matrix_holds_are_told(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", [{"label": f"c{at}", "reply": f"c{at}"} for at in range(65)]))
    assert value(scores, "accuracy") == 1.0 and not scores.classes
    assert scores.values["kappa"].estimate.why_null == "not counted for more than 64 options"


def test_options_with_a_comma_are_given_as_json(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.csv", [{"label": "large, cystic", "reply": "solid"}, {"label": "solid", "reply": "solid"}]
    )
    words = ["score-table", str(path), "--truth", "label", "--prediction", "reply", "--answer", "choice", "--json"]
    found = CliRunner().invoke(app, [*words, "--options", '["large, cystic", "solid", "other"]'])
    task = json.loads(found.stdout)["tasks"]["table"]
    assert (task["metrics"]["accuracy"]["value"], task["metrics"]["accuracy"]["chance"]) == (0.5, 1 / 3)
    assert isinstance(CliRunner().invoke(app, [*words, "--options", "[solid"]).exception, BadInput)


def test_numbers_within_the_tolerance_of_readers(tmp_path: Path) -> None:
    rows = [{"label": "200", "reply": reply} for reply in ("209.8", "209.81", "190.2", "no idea")]
    scores = score(write(tmp_path / "p.csv", rows), answer="number", unit="mm", measure="head circumference")
    assert value(scores, "within_clinical") == 0.5
    assert "tolerance:head circumference 4.9 %" in scores.signatures["within_clinical"]


def test_a_few_patients_who_carry_the_error_are_told(tmp_path: Path) -> None:
    rows = [
        {"label": "50", "reply": str(95 if patient < 2 else 50 + (-1) ** image * (image + 1)), "g": str(patient)}
        for patient in range(24)
        for image in range(3)
    ]
    scores = score(write(tmp_path / "p.csv", rows), answer="number", low=0.0, high=100.0, group="g")
    told = "half of the error lies in 2 of 24 groups"
    assert scores.values["rmse_scaled"].estimate.doubt == scores.values["rmse"].estimate.doubt == told
    assert scores.to_json()["tasks"]["table"]["metrics"]["rmse"]["doubt"] == told
    assert any(line.startswith("rmse_scaled") and line.endswith(told) for line in table_lines(scores))
    even = score(write(tmp_path / "q.csv", rows[6:]), answer="number", low=0.0, high=100.0, group="g")
    assert not any(one.estimate.doubt for one in even.values.values())


def never_bare(found: Any) -> None:
    if isinstance(found, dict):
        if "value" in found and found["value"] is None:
            assert found["why_null"]
        for one in found.values():
            never_bare(one)
    elif isinstance(found, float):
        assert math.isfinite(found)


@pytest.mark.parametrize("answer", ["choice", "number", "text", "multi_choice"])
@pytest.mark.parametrize("truths", [["1"], ["1"] * 8, ["1", "2"] * 4], ids=["one", "equal", "two"])
@pytest.mark.parametrize("said", ["1", "", "?"])
@pytest.mark.parametrize("group", [None, "g"])
def test_no_value_without_a_reason(
    tmp_path: Path, answer: str, truths: list[str], said: str, group: str | None
) -> None:
    rows = [{"label": one, "reply": said, "g": "the same"} for one in truths]
    options = {"positive": ["1"], "ordinal": ["1", "2"], "options": ["1", "2"]} if answer == "choice" else {}
    scores = score(write(tmp_path / "p.jsonl", rows), answer=answer, group=group, by=["g"], min_n=1, **options)
    never_bare(scores.to_json())
    json.dumps(scores.to_json(), allow_nan=False)
    if group is not None or len(truths) == 1:
        assert scores.values[next(iter(scores.values))].estimate.low is None
    assert all(line == line.rstrip() for line in table_lines(scores))


def test_processes_give_the_same_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", ROWS)
    assert score(path, processes=2).to_json() == score(path).to_json()


def test_own_group_for_each_row_is_said(tmp_path: Path) -> None:
    scores = score(write(tmp_path / "p.csv", ROWS))
    assert scores.groups == 48
    assert any("lower bound" in notice for notice in scores.notices)
    assert not any("lower bound" in one for one in score(write(tmp_path / "p.csv", ROWS), group="patient").notices)


@pytest.mark.part("command line")
def test_command_prints_json_alone_and_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", ROWS)
    words = ["score-table", str(path), "--truth", "label", "--prediction", "reply", "--answer", "choice"]
    words += ["--group", "patient", "--by", "sex", "--positive", "malignant", "--draws", "200", "--min-n", "5"]
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0
    task = json.loads(found.stdout)["tasks"]["table"]
    assert task["metrics"]["accuracy"]["value"] == pytest.approx(30 / 48)
    assert set(task["gaps"]["sex"]) >= {"accuracy_gap", "sensitivity_gap"}
    shown = CliRunner().invoke(app, words)
    assert "gap between the parts of sex" in shown.stdout


@pytest.mark.parametrize("suffix", ["parquet", "xlsx"])
def test_a_damaged_file_is_bad_input_wherever_the_damage_is(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"p.{suffix}", ROWS)
    whole = path.read_bytes()
    refused = 0
    for at in range(10, len(whole) - 10, max(1, len(whole) // 40)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF, whole[at + 1] ^ 0x5A]) + whole[at + 2 :])
        try:
            score(path)
        except BadInput as error:
            assert str(error).startswith(str(path))
            refused += 1
    assert refused
