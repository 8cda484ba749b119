"""The judge by command: a server, costs, and texts that stay on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.run.server import Asked, Server, completion
from tests.score.made_judges import QUICK, ScriptedJudge, data_of, made, says, text_item
from typer.testing import CliRunner

from sonogauge._errors import BadInput
from sonogauge.cli import app
from sonogauge.folders import Folder
from sonogauge.models.base import Outcome
from sonogauge.score.judge import judge

pytestmark = [pytest.mark.part("judge"), pytest.mark.lookalike]


def test_cost_is_that_of_all_attempts(tmp_path: Path) -> None:
    replies, bench = made(tmp_path, {"AR/001": "a", "AR/002": "psoriasis"}, [text_item(n, "psoriasis") for n in (1, 2)])
    scripted = ScriptedJudge(lambda data, nth: "?" if nth == 1 else says(1))
    done = judge(replies, tmp_path / "v", [scripted], bench=bench, prices={"test/judge": (0.001, 0.01)})
    assert done.cost == pytest.approx(2 * (100 * 0.001 + 10 * 0.01))
    rows = list(Folder(tmp_path / "v").rows("verdicts"))
    assert sum(row["cost"] or 0 for row in rows) == pytest.approx(done.cost)
    assert judge(replies, tmp_path / "v", [scripted], bench=bench).cost == done.cost  # kept, not paid again


def test_the_command_asks_a_server_and_score_reads_its_verdicts(tmp_path: Path) -> None:
    def script(asked: Asked, nth: int) -> dict[str, Any]:
        assert asked.body["temperature"] == 0 and not asked.images
        answer = data_of(asked.text)["candidate answer"]
        return completion(says(1.0 if "plaque" in answer else 0.0))

    items = [text_item(number, "psoriasis") for number in range(1, 5)]
    replies, bench = made(tmp_path, {f"AR/{n:03d}": "plaque" if n < 3 else f"no {n}" for n in range(1, 5)}, items)
    (tmp_path / "prices.json").write_text('{"m": {"input": 1000, "output": 0}}')
    with Server(script) as server:
        arguments = ["judge", str(bench), "--replies", str(replies), "--judge", "openai-api/x/m", "--out"]
        arguments += [str(tmp_path / "v"), "--base-url", server.url, "--price", str(tmp_path / "prices.json"), "--json"]
        result = CliRunner().invoke(app, arguments)
        asked = len(server.asked)
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout)["counts"]
    assert json.loads(result.stdout)["shares"][0]["shares"] == {"0": 0.5, "0.5": 0.0, "1": 0.5}
    assert counts["statuses"] == {"ok": 4} and asked == counts["asked"] == 4
    assert counts["cost"] == pytest.approx(4 * 100 * 1000 / 1e6)
    result = CliRunner().invoke(
        app, ["score", str(bench), "--replies", str(replies), "--verdicts", str(tmp_path / "v"), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["tasks"]["AR"]["metrics"]["judge_score"]["value"] == 0.5
    result = CliRunner().invoke(
        app, ["score", str(bench), "--replies", str(replies), "--verdicts", str(tmp_path / "v"), "--no-baselines"]
    )
    assert "Free text, judged" in result.stdout and "By judge:openai-api/x/m,prompt:" in result.stdout


def test_a_cost_that_is_not_whole_says_so(tmp_path: Path) -> None:
    replies, bench = made(tmp_path, {"AR/001": "a"}, [text_item(1, "psoriasis")])
    judges = [ScriptedJudge(lambda data, nth: says(1), name=name) for name in ("priced", "unpriced")]
    done = judge(replies, tmp_path / "v", judges, bench=bench, prices={"priced": (0.001, 0.01)})
    assert done.cost == pytest.approx(100 * 0.001 + 10 * 0.01) and done.unpriced == ("unpriced",)
    failing = ScriptedJudge(lambda data, nth: Outcome("error", error="refused: no such model"), name="gone")
    done = judge(replies, tmp_path / "w", [failing], bench=bench, patience=QUICK)
    assert done.errors == {"gone": "refused: no such model"} and done.unpriced == ()


def test_what_rules_decide_costs_nothing(tmp_path: Path) -> None:
    replies, bench = made(tmp_path, {"AR/001": "psoriasis"}, [text_item(1, "psoriasis")])
    arguments = [
        "judge",
        str(bench),
        "--replies",
        str(replies),
        "--judge",
        "openai-api/x/m",
        "--out",
        str(tmp_path / "v"),
    ]
    result = CliRunner().invoke(app, [*arguments, "--base-url", "http://127.0.0.1:9", "--timeout", "1"])
    assert result.exit_code == 0, result.output
    assert "cost: none, rules decided all" in result.stdout


def test_private_texts_stay_on_this_machine(tmp_path: Path) -> None:
    replies, bench = made(tmp_path, {"AR/001": "a"}, [text_item(1, "psoriasis")])
    private = _make_private(bench, tmp_path / "private")
    away = ScriptedJudge(lambda data, nth: says(1), endpoint="https://api.example.org")
    with pytest.raises(BadInput, match="private images would go to"):
        judge(replies, tmp_path / "v", [away], bench=private)
    judge(replies, tmp_path / "v", [away], bench=private, allow_upload=True)
    near = ScriptedJudge(lambda data, nth: says(1), endpoint="http://127.0.0.1:1")
    judge(replies, tmp_path / "w", [near], bench=private)


def _make_private(bench: Path, out: Path) -> Path:
    from sonogauge.folders import new_folder

    old = Folder(bench)
    with new_folder(out) as folder:
        folder.table("cases").write({**row, "private": True} for row in old.rows("cases"))
        folder.table("items").write(old.rows("items"))
        (folder.path / "benchmark.json").write_text((bench / "benchmark.json").read_text())
        folder.finish(old.manifest)
    return out
