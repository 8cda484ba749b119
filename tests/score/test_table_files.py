"""Prediction files of every format, of other tools, joined, broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.score.made_tables import DRAWS, ROWS, score, value, write
from tests.shared import shared_data

from sonogauge._errors import BadInput
from sonogauge.score.table import score_table

pytestmark = pytest.mark.part("score table")


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


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_of_another_country_is_read(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "p.csv"
    lines = [separator.join(row) for row in (("label", "reply"), ("cyst", "cyst, surely"), ("mass", "cyst"))]
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", "utf-8")
    assert value(score(path), "accuracy") == 0.5


def test_empty_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,reply\r\ncyst,cyst\r\nmass,cyst\r\n\r\n\r\n", "utf-8", newline="")
    assert score(tmp_path / "p.csv").n == 2


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
