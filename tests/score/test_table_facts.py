"""Clinical facts of a table of texts, counted and written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.score.made_tables import never_bare, score, value, write
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app

pytestmark = pytest.mark.part("score table")


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
