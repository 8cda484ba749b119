"""The same scripted server through Inspect's model layer and through our own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.run.server import Asked, Server, completion, error, reply_to
from tests.run.tiny import bench, item
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.run import run

pytestmark = [pytest.mark.part("run"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return bench(tmp_path / "bench", [item(n) for n in range(12)])


def ask(model: str, server: Server, tiny: Path, out: Path, **options: Any) -> Any:
    keys = {"base_url": server.url, "api_key": "k"}
    return run(tiny, model, out, model_options=keys, backoff=0.01, retries=2, **options)


def rows(out: Path) -> list[tuple[Any, ...]]:
    columns = ("item_id", "status", "text", "input_tokens", "output_tokens")
    return [tuple(row[name] for name in columns) for row in Folder(out, "run").rows("replies")]


def test_the_same_replies_as_our_own_client(tiny: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")

    def script(asked: Asked, nth: int) -> Any:
        number = int(asked.text.split()[1].rstrip("?"))
        if number == 3:
            return completion("cut", "length")
        if number == 4:
            return error(429, "wait", {"Retry-After": "0"}) if nth == 1 else completion("after a while")
        if number == 5:
            return error(500, "oops") if nth == 1 else completion("up again")
        return completion(reply_to(asked))

    with Server(script) as server:
        ask("inspect/openai-api/lab/m", server, tiny, tmp_path / "inspect", generation={"max_tokens": 50})
        body = server.asked[0].body
        server.counts.clear()
        ask("openai-api/lab/m", server, tiny, tmp_path / "own", generation={"max_tokens": 50})
    assert rows(tmp_path / "inspect") == rows(tmp_path / "own")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.0, 50)


def test_failures_through_inspect(tiny: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    with Server(lambda asked, nth: error(401, "bad key")) as server, pytest.raises(BadInput, match=r"key: .*bad key"):
        ask("inspect/openai-api/lab/m", server, tiny, tmp_path / "a")

    with Server() as server, pytest.raises(BadInput, match=r"not there at .*: check the name, and the address"):
        options = {"base_url": server.url.removesuffix("/v1"), "api_key": "k"}
        run(tiny, "inspect/openai-api/lab/m", tmp_path / "c", model_options=options)

    def script(asked: Asked, nth: int) -> Any:
        return error(500, "always") if "Question 3?" in asked.text else completion("benign")

    with Server(script) as server:
        result = ask("inspect/openai-api/lab/m", server, tiny, tmp_path / "b")
    assert result.statuses == {"ok": 11, "truncated": 0, "error": 1}
    assert result.failures == {"server": 1}


def test_no_such_provider(tiny: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    with pytest.raises(BadInput, match="Inspect cannot open nobody/m"):
        run(tiny, "inspect/nobody/m", tmp_path / "run")


def test_a_missing_key_is_one_line(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra("inspect", "inspect_ai")
    monkeypatch.delenv("LAB_API_KEY", raising=False)
    with pytest.raises(BadInput, match="LAB_API_KEY") as caught:
        run(tiny, "inspect/openai-api/lab/m", tmp_path / "run", model_options={"base_url": "http://127.0.0.1:9/v1"})
    assert "\n" not in str(caught.value)
