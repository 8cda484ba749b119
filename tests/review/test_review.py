from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.review.made_reviews import bench_of, by_hand, write_export
from tests.score.made_judges import made, text_item
from tests.score.small import u2_item, value_of, write_bench
from typer.testing import CliRunner

from sonogauge import score
from sonogauge._errors import BadInput
from sonogauge.analyses.errors import cause_votes, read_votes
from sonogauge.answers import FORMS as ANSWER_FORMS
from sonogauge.answers import AnswerSpec
from sonogauge.cli import app
from sonogauge.folders import Folder
from sonogauge.review import clean, decide, export_review, import_review
from sonogauge.review.forms import FORMS
from sonogauge.review.labelstudio import CONFIG, TASKS
from sonogauge.review.tell import read_agreements

pytestmark = [pytest.mark.part("review"), pytest.mark.lookalike]


EXPERT_OK = {"label": ["ok"], "image": ["ok"], "unit": ["ok"], "terms": ["ok"]}


def reviewed(tmp_path: Path, form: str, reviewers: list[int], answer: Any, **options: Any) -> Path:
    """Export a form of the benchmark, have it answered, import it; return the votes."""
    name = options.pop("name", form)
    export_review(tmp_path / "bench", tmp_path / f"export-{name}", form, **options)
    file = write_export(tmp_path / f"{name}.json", by_hand(tmp_path / f"export-{name}", reviewers, answer))
    import_review(file, tmp_path / f"export-{name}", tmp_path / f"votes-{name}")
    return tmp_path / f"votes-{name}"


def test_export_holds_config_tasks_and_images(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 3)
    done = export_review(bench, tmp_path / "e", "expert", views=3)
    tasks = json.loads((tmp_path / "e" / TASKS).read_text())
    assert done.tasks == len(tasks) == 3
    data = tasks[0]["data"]
    assert data["item_id"] == "DD/23/0000" and data["reference"] == "benign"
    assert data["choices"] == [{"value": one} for one in data["options"].split("\n")]
    image = tmp_path / "e" / data["image"].removeprefix("/data/local-files/?d=")
    assert image.read_bytes() == b"case-0000" and "case" not in image.name
    config = (tmp_path / "e" / CONFIG).read_text()
    assert 'name="correction"' in config and 'value="$choices"' in config
    # The same inputs give the same bytes.
    export_review(bench, tmp_path / "f", "expert", views=3)
    for name in (TASKS, CONFIG, "manifest.json"):
        assert (tmp_path / "f" / name).read_bytes() == (tmp_path / "e" / name).read_bytes()


def test_a_sample_is_drawn_by_seed_and_answers_show_no_reference(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 40)
    drawn = [
        export_review(bench, tmp_path / f"s{n}", "answer", sample=10, seed=seed).manifest
        for n, seed in enumerate((1, 1, 2))
    ]
    first, again, other = (one.parameters["items"] for one in drawn)
    assert first == again != other and len(first) == 10 and first == sorted(first)
    data = json.loads((tmp_path / "s0" / TASKS).read_text())[0]["data"]
    assert not {"reference", "facts", "reply"} & set(data)


def test_three_reviewers_agree_as_other_libraries_say(tmp_path: Path) -> None:
    """Planted disagreement: the coefficients are those of scikit-learn and krippendorff."""
    bench_of(tmp_path, 60)
    rng = np.random.default_rng(3)
    planted = {
        role: (rng.random((60, 3)) < share).astype(int)
        for role, share in (("engineer", 0.1), ("expert", 0.3), ("clinician", 0.5))
    }
    folders = []
    for role, faults in planted.items():
        first = FORMS[role].questions[0].name

        def answer(item_id: str, reviewer: int, faults: Any = faults, first: str = first) -> dict[str, list[str]]:
            return {first: ["fault" if faults[int(item_id[-4:]), reviewer - 1] else "ok"]}

        folders.append(reviewed(tmp_path, role, [1, 2, 3], answer, views=3))
    found = {one.role: one.agreement for one in read_agreements(folders)}
    assert set(found) == set(planted)
    for role, faults in planted.items():
        own = found[role].estimates
        pairs = [(0, 1), (0, 2), (1, 2)]
        kappa = np.mean([cohen_kappa_score(faults[:, a], faults[:, b]) for a, b in pairs])
        alpha = krippendorff.alpha(faults.T, level_of_measurement="nominal")
        percent = np.mean([(faults[:, a] == faults[:, b]).mean() for a, b in pairs])
        assert own["kappa"].value == pytest.approx(kappa, abs=1e-12)
        assert own["alpha"].value == pytest.approx(alpha, abs=1e-12)
        assert own["percent"].value == pytest.approx(percent, abs=1e-12)
        assert own["kappa"].low is not None and own["kappa"].low < kappa < own["kappa"].high
    result = CliRunner().invoke(app, ["review", "agreement", *map(str, folders), "--json"])
    assert result.exit_code == 0 and {one["role"] for one in json.loads(result.stdout)} == set(planted)


def test_votes_hold_cause_comment_and_sign_off(tmp_path: Path) -> None:
    bench_of(tmp_path, 2)

    def answer(item_id: str, reviewer: int) -> dict[str, Any] | None:
        if reviewer == 3:
            return None
        wrong = item_id.endswith("1")
        words: dict[str, Any] = {"diagnosis": ["fault" if wrong else "ok"], "prompt": ["ok"]}
        return words | (
            {"cause": ["wrong diagnosis"], "comment": "histology says so"} if wrong else {"sign_off": ["signed off"]}
        )

    votes = reviewed(tmp_path, "clinician", [1, 2, 3], answer, views=3)
    rows = {(row["item_id"][-1], row["reviewer"], row["question"]): row for row in Folder(votes, "votes").rows("votes")}
    assert len(rows) == 8
    fault = rows["1", "reviewer-1", "diagnosis"]
    assert (fault["vote"], fault["cause"], fault["comment"]) == ("fault", "wrong diagnosis", "histology says so")
    assert (fault["role"], fault["signed_off"]) == ("clinician", False)
    assert rows["1", "reviewer-1", "prompt"]["cause"] is None
    assert rows["0", "reviewer-2", "diagnosis"]["signed_off"] is True
    counts = Folder(votes).manifest.counts
    assert (counts["short"], counts["cancelled"], counts["reviewers"]) == (2, 2, 2)


def test_disagreement_goes_to_an_adjudicator_and_the_benchmark_is_cleaned(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 6)
    before = {file.name: file.read_bytes() for file in bench.iterdir()}

    def expert(item_id: str, reviewer: int) -> dict[str, Any]:
        number = int(item_id[-1])
        if number == 1:  # both: wrong label, the right one is malignant
            return EXPERT_OK | {"label": ["fault"], "correction": ["malignant"], "cause": ["wrong label"]}
        if number == 2:  # both: unfit image
            return EXPERT_OK | {"image": ["fault"], "cause": ["image unfit"], "comment": "cut off"}
        if number == 3 and reviewer == 2:  # one of two
            return EXPERT_OK | {"label": ["fault"], "cause": ["wrong label"]}
        if number == 4 and reviewer == 1:
            return EXPERT_OK | {"terms": ["fault"]}
        return dict(EXPERT_OK)

    votes = reviewed(tmp_path, "expert", [1, 2], expert)
    pending = [one for one in decide(Folder(votes).rows("votes")) if one.how == "open"]
    assert [(one.item_id[-1], one.question) for one in pending] == [("3", "label"), ("4", "terms")]
    with pytest.raises(BadInput, match=r"2 questions are not decided, the first expert/label on DD/23/0003"):
        clean(bench, [votes], tmp_path / "no")

    def adjudicator(item_id: str, reviewer: int) -> dict[str, Any]:
        return EXPERT_OK | ({"terms": ["fault"], "comment": "old name"} if item_id.endswith("4") else {})

    settled = reviewed(tmp_path, "expert", [9], adjudicator, adjudicate=[votes], name="settled")
    tasks = json.loads((tmp_path / "export-settled" / TASKS).read_text())
    assert [task["data"]["item_id"][-1] for task in tasks] == ["3", "4"]
    assert tasks[0]["data"]["earlier"] == "label: 1 x fault, 1 x ok (wrong label)"
    assert {row["role"] for row in Folder(settled).rows("votes")} == {"adjudicator:expert"}

    done = clean(bench, [votes, settled], tmp_path / "cleaned")
    assert done.counts == {"kept": 3, "changed": 1, "removed": 2, "reviewed": 6}
    cleaned = Folder(tmp_path / "cleaned", "benchmark")
    assert cleaned.manifest.version == done.version == f"{Folder(bench).manifest.version}+reviewed.1"
    assert json.loads((tmp_path / "cleaned/benchmark.json").read_text())["version"] == done.version
    items = {row["item_id"][-1]: row for row in cleaned.rows("items")}
    assert sorted(items) == ["0", "1", "3", "5"]
    assert items["1"]["reference"]["choices"] == ["malignant"] and items["0"]["reference"]["choices"] == ["benign"]
    log = {one["item_id"][-1]: one for one in cleaned.manifest.model_dump()["changelog"]}
    assert set(log) == {"1", "2", "4"}
    assert (log["1"]["action"], log["1"]["before"], log["1"]["after"]) == ("changed", ["benign"], ["malignant"])
    assert log["2"]["decisions"][0]["votes"] == {"reviewer-1": "fault", "reviewer-2": "fault"}
    assert log["2"]["decisions"][0]["comments"] == ["cut off"]
    assert log["4"]["decisions"][0]["how"] == "adjudicated"
    roles = [one.role for one in cleaned.manifest.inputs]
    assert roles.count("votes") == 2 and "reviewed benchmark" in roles
    assert cleaned.manifest.hash != Folder(bench).manifest.hash
    assert cleaned.manifest.tables["cases"] == Folder(bench).manifest.tables["cases"]
    assert {file.name: file.read_bytes() for file in bench.iterdir()} == before
    with pytest.raises(BadInput, match="exists already"):
        clean(bench, [votes, settled], tmp_path / "cleaned")
    # What was reviewed again counts on, and replies to it can be scored.
    again = clean(bench, [votes], tmp_path / "removed", unresolved="remove")
    assert again.counts["removed"] == 3
    assert clean(bench, [votes], tmp_path / "kept", unresolved="keep").counts["removed"] == 1


def test_the_changelog_and_the_version_grow_with_a_second_review(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 4)

    def first(item_id: str, reviewer: int) -> dict[str, Any]:
        return {"files": ["fault" if item_id.endswith("0") else "ok"], "metadata": ["ok"]}

    votes = reviewed(tmp_path, "engineer", [1], first)
    clean(bench, [votes], tmp_path / "one")
    export_review(tmp_path / "one", tmp_path / "e2", "engineer")

    def second(item_id: str, reviewer: int) -> dict[str, Any]:
        return {"files": ["fault" if item_id.endswith("1") else "ok"], "metadata": ["ok"]}

    file = write_export(tmp_path / "two.json", by_hand(tmp_path / "e2", [1], second))
    import_review(file, tmp_path / "e2", tmp_path / "v2")
    done = clean(tmp_path / "one", [tmp_path / "v2"], tmp_path / "two")
    assert done.version.endswith("+reviewed.2") and done.version.count("reviewed") == 1
    log = Folder(tmp_path / "two").manifest.model_dump()["changelog"]
    assert [(one["item_id"][-1], one["version"][-1]) for one in log] == [("0", "1"), ("1", "2")]
    with pytest.raises(BadInput, match="votes on another benchmark"):
        clean(tmp_path / "two", [votes], tmp_path / "three")


def test_a_correction_of_the_few_changes_nothing(tmp_path: Path) -> None:
    """Three see the fault; one of them, then two, say what is right."""
    bench = bench_of(tmp_path, 2)

    def answer(item_id: str, reviewer: int) -> dict[str, Any]:
        corrected = reviewer == 1 or (reviewer == 2 and item_id.endswith("1"))
        return EXPERT_OK | {"label": ["fault"]} | ({"correction": ["malignant"]} if corrected else {})

    done = clean(bench, [reviewed(tmp_path, "expert", [1, 2, 3], answer)], tmp_path / "cleaned")
    assert {one["item_id"][-1]: one["action"] for one in done.changelog} == {"0": "removed", "1": "changed"}


def test_sign_off_can_be_required(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 3)

    def answer(item_id: str, reviewer: int) -> dict[str, Any]:
        words = {"diagnosis": ["ok"], "prompt": ["ok"]}
        return words | ({"sign_off": ["signed off"]} if item_id.endswith("0") else {})

    votes = reviewed(tmp_path, "clinician", [1], answer)
    done = clean(bench, [votes], tmp_path / "signed", require_sign_off=True)
    assert done.counts == {"kept": 1, "removed": 2, "reviewed": 3}
    assert {one["why"] for one in done.changelog} == {"no sign-off"}


def test_answers_of_physicians_become_replies(tmp_path: Path) -> None:
    words = {number: "malignant" if number % 2 else "benign" for number in range(12)}
    bench = write_bench(
        tmp_path / "bench", [u2_item("DD", "23", number, {"choices": (word,)}) for number, word in words.items()]
    )
    export_review(bench, tmp_path / "e", "answer", level="primary")

    def answer(item_id: str, reviewer: int) -> dict[str, Any]:
        return {"answer": ["benign" if reviewer == 1 else words[int(item_id[-4:])]]}

    file = write_export(tmp_path / "a.json", by_hand(tmp_path / "e", [1, 2], answer))
    reviewers = {"2": {"name": "Dr B", "level": "senior"}}
    import_review(file, tmp_path / "e", tmp_path / "physicians.jsonl", reviewers=reviewers)
    rows = [json.loads(line) for line in (tmp_path / "physicians.jsonl").read_text().splitlines()]
    assert [(row["item_id"][-1], row["rater_id"], row["level"], row["text"]) for row in rows[:4]] == [
        ("0", "Dr B", "senior", "benign"),
        ("0", "reviewer-1", "primary", "benign"),
        ("1", "Dr B", "senior", "malignant"),
        ("1", "reviewer-1", "primary", "benign"),
    ]
    assert len(rows) == 24
    found = score(tmp_path / "physicians.jsonl", bench=bench, scenarios="present", draws=200, baselines=False)
    assert value_of(found.metrics, "accuracy", "DD")["value"] == 0.75
    with pytest.raises(BadInput, match=r"ends in \.jsonl"):
        import_review(file, tmp_path / "e", tmp_path / "physicians")
    with pytest.raises(BadInput, match="exists already"):
        import_review(file, tmp_path / "e", tmp_path / "physicians.jsonl")


@pytest.mark.parametrize("letters", [(), ("A", "B", "C")])
def test_several_clicked_options_read_back_as_that_set(tmp_path: Path, letters: tuple[str, ...]) -> None:
    from dataclasses import replace

    spec = AnswerSpec("multi_choice", ("cyst", "mass", "no finding"), letters)
    item = replace(
        u2_item("DD", "23", 1, {"choices": ("benign",)}), answer=spec, reference={"choices": ("cyst", "mass")}
    )
    bench = write_bench(tmp_path / "bench", [item])
    export_review(bench, tmp_path / "e", "answer")
    file = write_export(
        tmp_path / "a.json", by_hand(tmp_path / "e", [1], lambda item_id, reviewer: {"answer": ["mass", "cyst"]})
    )
    import_review(file, tmp_path / "e", tmp_path / "a.jsonl")
    text = json.loads((tmp_path / "a.jsonl").read_text())["text"]
    assert set(ANSWER_FORMS.load("multi_choice").parse(text, spec).value) == {"cyst", "mass"}


def test_causes_and_verdicts_show_the_replies(tmp_path: Path) -> None:
    items = [text_item(number, "psoriasis") for number in (1, 2, 3)]
    replies, bench = made(tmp_path, {"AR/001": "eczema", "AR/002": "", "AR/003": None}, items)
    with pytest.raises(BadInput, match="--run"):
        export_review(bench, tmp_path / "e", "verdict")
    export_review(bench, tmp_path / "e", "cause", run=replies)
    (task,) = json.loads((tmp_path / "e" / TASKS).read_text())
    assert (task["data"]["reply"], task["data"]["reference"]) == ("eczema", "psoriasis")
    answers = {"cause": ["knowledge"], "second_cause": ["reasoning"], "comment": "mixes them up"}
    file = write_export(tmp_path / "c.json", by_hand(tmp_path / "e", [5], lambda item_id, reviewer: answers))
    import_review(file, tmp_path / "e", tmp_path / "v")
    rows = list(Folder(tmp_path / "v").rows("votes"))
    assert [(row["question"], row["vote"], row["cause"]) for row in rows] == [
        ("cause", "knowledge", None),
        ("second_cause", "reasoning", None),
    ]
    assert [row["vote"] for row in cause_votes(read_votes(tmp_path / "v"))] == ["knowledge"]
    assert Folder(tmp_path / "v").manifest.input("replies") is not None


def test_commands_from_export_to_cleaned_benchmark(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, 3)

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["review", *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return result.stdout

    export = tmp_path / "e"
    assert "tasks: 3, each for 2 reviewers" in run("export", bench, "--for", "engineer", "--views", 2, "--out", export)

    def answer(item_id: str, reviewer: int) -> dict[str, list[str]]:
        return {"files": ["fault" if item_id.endswith("2") else "ok"], "metadata": ["ok"]}

    file = write_export(tmp_path / "a.json", by_hand(export, [1, 2], answer))
    people = tmp_path / "people.yaml"
    people.write_text("1: {name: A}\n2: {name: B}\n")
    out = run("import", file, "--export", export, "--out", tmp_path / "v", "--reviewers", people)
    assert "read: 12 of 2 reviewers on 3 items" in out
    assert {row["reviewer"] for row in Folder(tmp_path / "v").rows("votes")} == {"A", "B"}
    assert "engineer, files: 3 items" in run("agreement", tmp_path / "v")
    assert "2 kept, 1 removed" in run("clean", bench, "--votes", tmp_path / "v", "--out", tmp_path / "cleaned")
