from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.run.server import Server, completion, free_port
from tests.run.tiny import bench, item

from sonogauge._errors import BadInput
from sonogauge.run import progress, run
from sonogauge.run.prices import read_prices
from sonogauge.run.progress import Shown

pytestmark = pytest.mark.part("run")


def entry(status: str = "ok", error: str | None = None, cost: float | None = 0.5) -> dict[str, Any]:
    return {"status": status, "error": error, "input_tokens": 1000, "output_tokens": 10, "cost": cost}


def test_plain_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Shown(10, 4, Console(file=stream)) as shown:
        shown.say("[licence] notice")
        for status, error in (("ok", None), ("error", "server: 500"), ("truncated", None), ("error", "server: 502")):
            now[0] += 10
            shown.ended(entry(status, error))
    lines = stream.getvalue().splitlines()
    assert lines == [
        "[licence] notice",
        "6/10, 0.1/s, replied 50.0 %, server 1, tokens 2,000 in 20 out, $1.0000, 40 s left",
        "8/10, 0.1/s, replied 50.0 %, server 2, tokens 4,000 in 40 out, $2.0000, 20 s left",
        "8/10, 0.1/s, replied 50.0 %, server 2, tokens 4,000 in 40 out, $2.0000, 20 s left",
    ]


def test_a_bar_on_a_terminal() -> None:
    stream = io.StringIO()
    with Shown(3, 0, Console(file=stream, force_terminal=True, width=120)) as shown:
        for _ in range(3):
            shown.ended(entry(cost=None))
    assert "3/3" in stream.getvalue()
    assert "replied 100.0 %" in stream.getvalue()


def test_a_server_that_is_not_there_is_told_at_once_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bench(tmp_path / "bench", [item(n) for n in range(3)])
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(BadInput, match="nothing answers"):
        run(made, "openai/m", tmp_path / "run", model_options={"base_url": url}, backoff=0.01, retries=3, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "nothing answers at http" in line and "trying again" in line]) == 1


def test_a_run_shows_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = bench(tmp_path / "bench", [item(n) for n in range(3)])
    with Server(lambda asked, nth: completion("benign")) as server:
        run(made, "openai/m", tmp_path / "run", model_options={"base_url": server.url}, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "3/3" in shown.err
    assert "tokens 300 in 15 out" in shown.err


@pytest.mark.parametrize("text", ["{", "[]", "m: {input: 1}", "m: {input: a, output: 1}", "m: 3"])
def test_broken_price_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "price").write_text(text)
    with pytest.raises(BadInput, match="not a price file"):
        read_prices(tmp_path / "price", "openai/m")


def test_price_files(tmp_path: Path) -> None:
    file = tmp_path / "price.yaml"
    file.write_text("openai/a: {input: 1, output: 2}\nb: {input: 3, output: 4}\n")
    assert read_prices(file, "openai/a") == pytest.approx((1e-6, 2e-6))
    assert read_prices(file, "openai/b") == pytest.approx((3e-6, 4e-6))
    assert read_prices(file, "openai/c") is None
    with pytest.raises(BadInput, match="no such price file"):
        read_prices(tmp_path / "none", "openai/a")
