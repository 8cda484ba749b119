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
from sklearn.metrics import cohen_kappa_score, f1_score, recall_score
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
        ("p.csv", b"a,b\n1,\xff\xfe\n", r"not UTF-8"),
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
