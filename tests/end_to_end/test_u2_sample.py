"""The main job on real images: a folder in the U2-BENCH layout in, an honest score out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.score.small import value_of, write_replies
from tests.shared import shared_data

from sonogauge import build, report, run, score
from sonogauge.folders import Folder

pytestmark = [pytest.mark.real, pytest.mark.part("score strict"), pytest.mark.part("u2bench import")]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sample")
    build("u2bench", shared_data("u2_sample"), root / "bench", progress=False)
    return root


@pytest.fixture(scope="module")
def oracle(sample: Path) -> dict:
    run(sample / "bench", "baseline/oracle", sample / "oracle")
    score(sample / "oracle", out=sample / "scores", scenarios="present")
    return json.loads(report([sample / "scores"], format="json"))


def test_the_import_finds_what_the_readme_says(sample: Path) -> None:
    items = list(Folder(sample / "bench").rows("items"))
    states = {}
    for item in items:
        key = (item["task"], item["dataset"])
        states.setdefault(key, []).append(item["reference_state"])
    assert {key: len(found) for key, found in states.items()} == {
        ("DD", "23"): 15,
        ("LL", "23"): 15,
        ("OD", "31"): 12,
        ("KD", "48"): 12,
        ("CVE", "31"): 12,
        ("CG", "10"): 8,
        ("RG", "39"): 7,
        ("VRA", "anatomy"): 14,
    }
    assert states["KD", "48"].count("error") == 1
    assert states["CVE", "31"].count("null") == 1
    labels = [item["reference"]["choices"][0] for item in items if item["task"] == "DD"]
    assert sorted(labels) == ["benign"] * 6 + ["malignant"] * 5 + ["normal"] * 4
    places = [item["reference"]["places"] for item in items if item["task"] == "LL"]
    assert sum(one == ["not visible"] for one in places) == 4
    boxes = [len(item["reference"]["boxes"] or ()) for item in items if item["task"] == "LL"]
    assert sum(count > 1 for count in boxes) == 4


def test_oracle_reaches_the_best_value_everywhere(oracle: dict) -> None:
    tasks = oracle["tasks"]
    for code, n in {"DD": 15, "VRA": 14, "LL": 15, "OD": 12, "KD": 11}.items():
        assert tasks[code]["metrics"]["accuracy"]["value"] == 1.0
        assert tasks[code]["n"] == n
    assert tasks["CVE"]["metrics"]["rmse_scaled"]["value"] == 0.0
    for code in ("RG", "CG"):
        assert tasks[code]["metrics"]["bleu4"]["value"] == pytest.approx(1.0, abs=1e-6)
        assert tasks[code]["metrics"]["rouge_l"]["value"] == pytest.approx(1.0, abs=1e-6)
    assert (tasks["KD"]["excluded"], tasks["CVE"]["excluded"]) == (1, 1)
    assert oracle["partial"] is True
    assert oracle["composites"]["u2"]["value"] == pytest.approx(1.0, abs=1e-6)


def test_a_model_that_never_looks_is_not_above_the_baselines(sample: Path) -> None:
    run(sample / "bench", "baseline/not-visible", sample / "blind")
    scores = score(sample / "blind", scenarios="present", draws=1000)
    assert {one.verdict for one in scores.verdicts} <= {"below", "not distinguishable", None}
    accuracy = value_of(scores.metrics, "accuracy", "LL")
    assert accuracy["value"] == pytest.approx(4 / 15)
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]


def test_the_default_set_gives_no_total_on_a_sample(sample: Path) -> None:
    run(sample / "bench", "baseline/oracle", sample / "again")
    scores = score(sample / "again", draws=200)
    row = value_of(scores.metrics, "u2", "")
    assert row["value"] is None
    assert row["why_null"].startswith("missing tasks: DD, VRA, LL")
    assert len(scores.manifest.counts["missing"]) == 50 - 8


def test_replies_made_elsewhere_score_as_the_run_does(sample: Path, oracle: dict) -> None:
    texts = {row["item_id"]: row["text"] for row in Folder(sample / "oracle").rows("replies")}
    file = write_replies(sample / "replies.jsonl", texts)
    score(file, bench=sample / "bench", out=sample / "elsewhere", scenarios="present", model="baseline/oracle")
    found = json.loads(report([sample / "elsewhere"], format="json"))
    assert found["tasks"] == oracle["tasks"]


def test_head_circumferences_are_never_scored_by_the_published_protocol(sample: Path, oracle: dict) -> None:
    found = json.loads(report([sample / "scores"], format="json", protocol="published"))
    assert found["tasks"]["CVE"]["metrics"]["rmse_scaled"]["value"] is None
    # An unparsable key point counts as "not visible" there.
    assert found["tasks"]["KD"]["metrics"]["accuracy"]["value"] == pytest.approx(11 / 12)
