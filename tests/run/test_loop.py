from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.run.server import DROP, Asked, Server, completion, error, free_port, reply_to
from tests.run.tiny import bench, case, item, picture

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.run import RunResult, run

pytestmark = pytest.mark.part("run")
FAST: dict[str, Any] = {"backoff": 0.01, "patience": 20.0}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return bench(tmp_path / "bench", [item(n) for n in range(40)])


def ask(server: Server, tiny: Path, out: Path, **options: Any) -> RunResult:
    return run(tiny, "openai/m", out, model_options={"base_url": server.url}, **{**FAST, **options})


def rows(out: Path) -> dict[str, dict[str, Any]]:
    return {row["item_id"]: row for row in Folder(out, "run").rows("replies")}


def test_all_is_asked_with_the_original_bytes(tiny: Path, tmp_path: Path) -> None:
    with Server() as server:
        result = ask(server, tiny, tmp_path / "run", generation={"max_tokens": 64, "top_k": 1})
    assert result.statuses == {"ok": 40, "truncated": 0, "error": 0}
    assert result.exit_code() == 0
    found = rows(tmp_path / "run")
    pictures = {picture(n) for n in range(40)}
    assert {one.images[0] for one in server.asked} == pictures
    assert all(one.urls[0].startswith("data:image/png;base64,") for one in server.asked)
    first = server.asked[0].body
    assert (first["temperature"], first["max_tokens"], first["top_k"]) == (0.0, 64, 1)
    assert first["model"] == "m"
    assert [part["type"] for part in first["messages"][0]["content"]] == ["image_url", "text"]
    assert {row["text"] for row in found.values()} == {reply_to(one) for one in server.asked}
    row = found["DD/01/0000"]
    assert (row["status"], row["attempts"], row["input_tokens"], row["output_tokens"]) == ("ok", 1, 100, 5)
    assert row["images_sent"][0] | {"hash": "", "bytes": 0} == {
        "width": 40,
        "height": 30,
        "bytes": 0,
        "hash": "",
        "policy": "original",
    }
    assert result.manifest.parameters["endpoint"] == server.url.removesuffix("/v1")
    assert result.manifest.counts["input_tokens"] == 4000


def trouble(asked: Asked, nth: int) -> Any:
    number = int(asked.text.split()[1].rstrip("?"))
    good = completion(reply_to(asked))
    match number:
        case 0:
            return error(429, "slow down", {"Retry-After": "0.1"}) if nth < 3 else good
        case 1:
            return error(500, "oops") if nth < 3 else good
        case 2:
            return error(500, "always broken")
        case 3:
            return web.Response(text='{"choices": [{"mess', content_type="application/json") if nth < 2 else good
        case 4:
            return {"choices": []}
        case 5:
            return completion("", "content_filter")
        case 6:
            return completion("A benign les", "length")
        case 7:
            return DROP if nth < 2 else good
        case 8:
            return DROP
        case 9:
            return completion(None, refusal="I'm sorry, I can't help with that.")
        case 10:
            return completion("")
        case 11:
            return error(413, "payload too large")
        case 12:
            return {"object": "chat.completion", "choices": [{"message": {"content": 7}}]}
        case 13:
            return completion("half a pair \ud800 here")
        case _:
            return good


def test_every_item_ends_as_a_reply_or_a_recorded_failure(tiny: Path, tmp_path: Path) -> None:
    with Server(trouble) as server:
        result = ask(server, tiny, tmp_path / "run", retries=3)
    found = {int(key[-4:]): row for key, row in rows(tmp_path / "run").items()}
    assert len(found) == 40
    ends = {n: (row["status"], (row["error"] or "").partition(":")[0], row["attempts"]) for n, row in found.items()}
    assert ends[0] == ("ok", "", 3)
    assert ends[1] == ("ok", "", 3)
    assert ends[2] == ("error", "server", 4)
    assert ends[3] == ("ok", "", 2)
    assert ends[4] == ("error", "empty_choice", 4)
    assert ends[5] == ("error", "content_filter", 1)
    assert ends[6] == ("truncated", "", 1)
    assert found[6]["text"] == "A benign les"
    assert ends[7] == ("ok", "", 2)
    assert ends[8] == ("error", "dropped", 4)
    assert ends[9] == ("ok", "", 1)
    assert found[9]["text"] == "I'm sorry, I can't help with that."
    assert ends[10] == ("ok", "", 1)
    assert found[10]["text"] == ""
    assert ends[11] == ("error", "too_large", 1)
    assert "--image-policy" in found[11]["error"]
    assert ends[12] == ("error", "bad_answer", 4)
    assert ends[13] == ("ok", "", 1)
    assert found[13]["text"] == "half a pair ? here"
    assert all(ends[n] == ("ok", "", 1) for n in range(14, 40))
    assert all(row["text"] is None for row in found.values() if row["status"] == "error")
    assert result.statuses == {"ok": 33, "truncated": 1, "error": 6}
    assert result.failures == {
        "server": 1,
        "empty_choice": 1,
        "content_filter": 1,
        "dropped": 1,
        "too_large": 1,
        "bad_answer": 1,
    }
    assert result.failed_share == pytest.approx(6 / 40)
    assert result.exit_code() == 1
    assert result.exit_code(max_failures=0.2) == 0


def test_recorded_failures_are_asked_again_only_on_request(tiny: Path, tmp_path: Path) -> None:
    broken = True

    def script(asked: Asked, nth: int) -> Any:
        return error(400, "odd") if broken and "Question 3?" in asked.text else completion("benign")

    with Server(script) as server:
        assert ask(server, tiny, tmp_path / "run").statuses["error"] == 1
        sent = len(server.asked)
        assert ask(server, tiny, tmp_path / "run").statuses["error"] == 1
        assert len(server.asked) == sent
        broken = False
        assert ask(server, tiny, tmp_path / "run", retry_errors=True).statuses == {"ok": 40, "truncated": 0, "error": 0}
        assert len(server.asked) == sent + 1
    assert rows(tmp_path / "run")["DD/01/0003"]["attempts"] == 2


def test_connections_are_bounded_and_shrink_on_a_rate_limit(tiny: Path, tmp_path: Path) -> None:
    with Server(delay=0.01) as server:
        ask(server, tiny, tmp_path / "run", max_connections=4)
    assert server.most_at_once == 4


def test_all_connections_wait_together(tiny: Path, tmp_path: Path) -> None:
    times: list[float] = []

    def script(asked: Asked, nth: int) -> Any:
        times.append(time.monotonic())
        return error(429, "wait", {"retry-after-ms": "400"}) if len(times) == 1 else completion("benign")

    with Server(script, delay=0.02) as server:
        result = ask(server, tiny, tmp_path / "run", max_connections=2)
    assert result.statuses["ok"] == 40
    # Only requests that were already under way arrive before the server's time is up.
    early = [one for one in times[1:] if one - times[0] < 0.35]
    assert len(early) <= 2


def test_a_server_that_goes_away_for_a_while(tiny: Path, tmp_path: Path) -> None:
    server = Server(delay=0.01, port=free_port())
    with server:
        done = threading.Event()

        def outage() -> None:
            while len(server.asked) < 10:
                time.sleep(0.002)
            server.stop()
            time.sleep(0.5)
            server.start()
            done.set()

        thread = threading.Thread(target=outage)
        thread.start()
        result = ask(server, tiny, tmp_path / "run", max_connections=2, backoff=0.1)
        thread.join()
    assert done.is_set()
    assert result.statuses == {"ok": 40, "truncated": 0, "error": 0}


def test_a_server_that_is_gone_for_good_stops_the_run(tiny: Path, tmp_path: Path) -> None:
    server = Server(delay=0.02, port=free_port())

    def stop() -> None:
        while len(server.asked) < 10:
            time.sleep(0.002)
        server.stop()

    with server:
        thread = threading.Thread(target=stop)
        thread.start()
        with pytest.raises(BadInput, match=r"nothing answers at http.*start the server"):
            ask(server, tiny, tmp_path / "run", max_connections=1, patience=0.3)
        thread.join()
        before = rows(tmp_path / "run")
        assert 0 < len(before) < 40
        assert {row["status"] for row in before.values()} == {"ok"}
        server.start()
        assert ask(server, tiny, tmp_path / "run").statuses["ok"] == 40
    assert max(server.counts.values()) <= 2


def test_limits_grow_a_run(tiny: Path, tmp_path: Path) -> None:
    with Server() as server:
        ask(server, tiny, tmp_path / "run", limit=5)
        ask(server, tiny, tmp_path / "run", limit=12)
        ask(server, tiny, tmp_path / "run", limit=3)
        assert len(server.asked) == 12
        result = ask(server, tiny, tmp_path / "run")
    assert len(server.asked) == 40
    assert result.manifest.counts["asked"]["limit"] is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"generation": {"temperature": 0.5}}, "generation"),
        ({"image_policy": "jpeg:80"}, "image_policy"),
        ({"model_options": {"base_url": "http://127.0.0.1:9/v1"}}, "endpoint"),
        ({"model_options": {"logprobs": True}}, "model_options"),
        ({"model_options": {"revision": "b"}}, "revision"),
    ],
)
def test_another_identity_is_refused(tiny: Path, tmp_path: Path, change: dict[str, Any], what: str) -> None:
    with Server() as server:
        ask(server, tiny, tmp_path / "run", limit=2)
        options = {"base_url": server.url, **change.pop("model_options", {})}
        with pytest.raises(BadInput, match=f"another {what}"):
            run(tiny, "openai/m", tmp_path / "run", model_options=options, limit=2, **FAST, **change)
        assert len(server.asked) == 2


def test_with_or_without_v1_is_the_same_run(tiny: Path, tmp_path: Path) -> None:
    with Server() as server:
        ask(server, tiny, tmp_path / "run", limit=2)
        base = server.url.removesuffix("/v1")
        for url in (base, f"{base}/", f"{base}/v1/", f"{base}/v1/chat/completions"):
            run(tiny, "openai/m", tmp_path / "run", model_options={"base_url": url}, limit=3, **FAST)
        assert len(server.asked) == 3


def test_a_server_without_v1(tiny: Path, tmp_path: Path) -> None:
    with Server(path="") as server:
        result = ask(server, tiny, tmp_path / "run")
    assert result.statuses["ok"] == 40


def test_a_case_that_holds_no_image_fails_alone(tmp_path: Path) -> None:
    cases = [case(f"case-{n:04d}", picture(n)) for n in range(4)]
    cases[1]["image"] = {"bytes": None, "path": None}
    cases[2]["image"] = {"bytes": b"not an image", "path": None}
    made = bench(tmp_path / "bench", [item(n) for n in range(4)], cases)
    with Server() as server:
        result = ask(server, made, tmp_path / "run", image_policy="png")
    assert result.failures == {"image": 2}
    assert "holds no image" in rows(tmp_path / "run")["DD/01/0001"]["error"]
    assert "does not decode" in rows(tmp_path / "run")["DD/01/0002"]["error"]
    assert len(server.asked) == 2


def test_option_probabilities(tmp_path: Path) -> None:
    made = bench(tmp_path / "bench", [item(1)])

    def script(asked: Asked, nth: int) -> Any:
        assert asked.body["logprobs"] is True
        answer = completion("malignant")
        top = [
            {"token": "mal", "logprob": -0.5},
            {"token": " Benign", "logprob": -1.0},
            {"token": "the", "logprob": -3},
        ]
        answer["choices"][0]["logprobs"] = {
            "content": [{"token": "\n", "logprob": 0.0, "top_logprobs": []}, {**top[0], "top_logprobs": top}]
        }
        return answer

    with Server(script) as server:
        run(made, "openai/m", tmp_path / "run", model_options={"base_url": server.url, "logprobs": True}, **FAST)
    row = rows(tmp_path / "run")["DD/01/0001"]
    found = {one["option"]: one["probability"] for one in row["option_probabilities"]}
    assert found == pytest.approx({"benign": 0.36788, "malignant": 0.60653}, abs=1e-5)


def test_cost_from_a_price_file(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "price.json").write_text('{"m": {"input": 2.5, "output": 10}}')
    with Server() as server:
        result = ask(server, tiny, tmp_path / "run", price=tmp_path / "price.json")
    assert result.manifest.counts["cost"] == pytest.approx(40 * (100 * 2.5 + 5 * 10) / 1e6)


def test_it_runs_where_a_loop_is_running(tiny: Path, tmp_path: Path) -> None:
    import asyncio

    async def notebook() -> RunResult:
        return ask(server, tiny, tmp_path / "run")

    with Server() as server:
        assert asyncio.run(notebook()).statuses["ok"] == 40
