from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from filelock import FileLock
from tests.run.server import Asked, Server, completion, error, reply_to
from tests.run.tiny import bench, case, item, picture
from tests.shared import ROOT

from sonogauge import append_log
from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.run import run

pytestmark = pytest.mark.part("run")
FAST: dict[str, Any] = {"backoff": 0.01, "retries": 2}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LAB_API_KEY", "LAB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return bench(tmp_path / "bench", [item(n) for n in range(30)])


def ask(url: str, tiny: Path, out: Path, model: str = "openai/m", **options: Any) -> Any:
    return run(tiny, model, out, model_options={"base_url": url}, **{**FAST, **options})


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("openai/m", {}, "no key for https://api.openai.com/v1; set OPENAI_API_KEY or pass --api-key"),
        ("openai-api/lab/m", {}, "no address for openai-api/lab/m; pass --base-url or set LAB_BASE_URL"),
        ("openai-api/lab/m", {"base_url": "https://lab.example/v1"}, "no key for .*set LAB_API_KEY"),
        ("openai-api/lab", {}, "write openai-api/NAME/MODEL"),
        ("openai/m", {"base_url": "ftp://x"}, "not a server address: 'ftp://x'"),
        ("openai/m", {"base_url": "http://x:port"}, "not a server address"),
        ("openai/m", {"colour": "red"}, "do not take these options"),
        ("nobody/m", {}, "no model provider 'nobody'"),
    ],
)
def test_names_keys_and_addresses(
    tiny: Path, tmp_path: Path, model: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run(tiny, model, tmp_path / "run", model_options=options)
    assert not (tmp_path / "run").exists()


def test_key_and_address_from_the_environment(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as server:
        monkeypatch.setenv("LAB_BASE_URL", server.url)
        monkeypatch.setenv("LAB_API_KEY", "secret-key")
        run(tiny, "openai-api/lab/org/m", tmp_path / "run", **FAST)
    assert server.asked[0].headers["Authorization"] == "Bearer secret-key"
    assert server.asked[0].body["model"] == "org/m"
    written = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir())
    assert b"secret-key" not in written


def stopped(url: str, tiny: Path, out: Path, **options: Any) -> str:
    with pytest.raises(BadInput) as caught:
        ask(url, tiny, out, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_address_names_the_right_one(tiny: Path, tmp_path: Path) -> None:
    with Server() as server:
        url = server.url
        line = stopped(url.replace("/v1", "/api/v2"), tiny, tmp_path / "run")
    assert f"no chat completions at {url.replace('/v1', '/api/v2')}; use {url}" in line
    assert not server.asked


def test_nothing_listens(tiny: Path, tmp_path: Path) -> None:
    line = stopped("http://127.0.0.1:9/v1", tiny, tmp_path / "run")
    assert "nothing answers at http://127.0.0.1:9/v1" in line


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: error(401, "bad key"), "refuses the key (401 bad key)"),
        (lambda: error(404, "The model `m` does not exist", code="model_not_found"), "no model 'm' at"),
        (lambda: error(400, "This model does not support image input"), "m takes no images"),
        (lambda: error(500, "image input is not supported - hint: mmproj"), "m takes no images"),
        (lambda: error(429, "You exceeded your quota", code="insufficient_quota"), "quota: You exceeded"),
        (lambda: error(402, "Insufficient credits"), "quota: Insufficient credits"),
        (lambda: web.Response(status=307, headers={"Location": "http://10.0.0.7/"}), "redirects to http://10.0.0.7/"),
        (lambda: web.Response(text="<html>hi</html>", content_type="text/html"), "an HTML page"),
    ],
)
def test_what_concerns_the_whole_run_stops_it(tiny: Path, tmp_path: Path, answer: Any, message: str) -> None:
    with Server(lambda asked, nth: answer(), models=("a", "b")) as server:
        line = stopped(server.url, tiny, tmp_path / "run", max_connections=4)
    assert message in line
    assert len(server.asked) <= 4
    assert list(Folder(tmp_path / "run").rows("replies")) == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda: error(403, "Your input was flagged by moderation"), "content_filter"),
        (lambda: error(400, "Image format not supported, use PNG or JPEG"), "request"),
        (lambda: error(400, "odd header: Bearer secret-of-the-lab"), "request"),
    ],
)
def test_what_concerns_one_question_stops_nothing(tiny: Path, tmp_path: Path, answer: Any, kind: str) -> None:
    def script(asked: Asked, nth: int) -> Any:
        return answer() if "Question 3?" in asked.text else completion("benign")

    with Server(script) as server:
        options = {"base_url": server.url, "api_key": "secret-of-the-lab"}
        result = run(tiny, "openai/m", tmp_path / "run", model_options=options, **FAST)
    assert (result.statuses["ok"], result.failures) == (29, {kind: 1})
    assert not any(b"secret-of-the-lab" in file.read_bytes() for file in (tmp_path / "run").iterdir())


def test_a_key_that_the_server_repeats_is_not_shown(tiny: Path, tmp_path: Path) -> None:
    with Server(lambda asked, nth: error(401, "no such key: secret-of-the-lab")) as server:
        options = {"base_url": server.url, "api_key": "secret-of-the-lab"}
        with pytest.raises(BadInput, match=r"\(401 no such key: \[key\]\)"):
            run(tiny, "openai/m", tmp_path / "run", model_options=options)


def test_a_missing_model_lists_those_there(tiny: Path, tmp_path: Path) -> None:
    with Server(lambda asked, nth: error(404, "not found"), models=("llava", "qwen")) as server:
        assert "the server has llava, qwen" in stopped(server.url, tiny, tmp_path / "run")


def test_images_over_the_limit_of_the_server(tiny: Path, tmp_path: Path) -> None:
    with Server(lambda asked, nth: error(413, "Request Entity Too Large")) as server:
        line = stopped(server.url, tiny, tmp_path / "run", max_connections=1)
    assert "the first 20 questions all failed" in line
    assert "try --image-policy max:1024" in line
    assert len(server.asked) == 20


def test_a_key_that_expires_loses_nothing(tiny: Path, tmp_path: Path) -> None:
    with Server(
        lambda asked, nth: completion("benign") if len(server.asked) <= 10 else error(401, "expired")
    ) as server:
        stopped(server.url, tiny, tmp_path / "run", max_connections=1)
        assert len(list(Folder(tmp_path / "run").rows("replies"))) == 10


def test_a_slow_server_times_out(tiny: Path, tmp_path: Path) -> None:
    with Server(delay=0.5) as server:
        result = run(
            tiny,
            "openai/m",
            tmp_path / "run",
            limit=2,
            model_options={"base_url": server.url, "timeout": 0.1},
            **FAST,
        )
    assert result.failures == {"timeout": 2}


def test_a_full_disk_keeps_what_was_written(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    room = [5]

    def full(handle: int, data: bytes) -> int:
        if b'"item_id"' not in data[:20]:
            return write(handle, data)
        room[0] -= 1
        if room[0] < 0:
            write(handle, data[:10])
            raise OSError(28, "No space left on device")
        return write(handle, data)

    with Server() as server:
        monkeypatch.setattr(append_log.os, "write", full)
        line = stopped(server.url, tiny, tmp_path / "run")
        assert "replies.jsonl: cannot write (No space left on device); make room" in line
        monkeypatch.undo()
        lines = (tmp_path / "run" / "replies.jsonl").read_bytes().splitlines(keepends=True)
        assert len(lines) == 5
        assert all(json.loads(line)["status"] == "ok" for line in lines)
        assert ask(server.url, tiny, tmp_path / "run").statuses["ok"] == 30


HOLD = """
import sys
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_on_one_folder(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(tiny, "baseline/random", out, limit=3)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    command = [sys.executable, "-c", HOLD, str(out / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(BadInput, match="another process works in this folder"):
            run(tiny, "baseline/random", out)
        other.stdin.close()
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert run(tiny, "baseline/random", out).statuses["ok"] == 30


def test_the_lock_is_free_after_a_failure(tiny: Path, tmp_path: Path) -> None:
    stopped("http://127.0.0.1:9/v1", tiny, tmp_path / "run")
    with FileLock(tmp_path / "run" / ".lock", blocking=False):
        assert (tmp_path / "run" / "manifest.json").is_file()


RUN = """
import sys
from sonogauge.run import run
run(sys.argv[1], "openai/m", sys.argv[2], model_options={"base_url": sys.argv[3]}, max_connections=3, backoff=0.01)
"""


def test_kill_9_and_again(tmp_path: Path) -> None:
    made = bench(tmp_path / "bench", [item(n) for n in range(60)])

    def script(asked: Asked, nth: int) -> Any:
        number = int(asked.text.split()[1].rstrip("?"))
        if number % 10 == 3:
            return error(400, "odd")
        if number % 10 == 4 and nth == 1:
            return error(500, "again please")
        return completion(reply_to(asked), "length" if number % 10 == 5 else "stop")

    def rows(out: Path) -> list[tuple[Any, ...]]:
        return [(row["item_id"], row["status"], row["text"]) for row in Folder(out, "run").rows("replies")]

    out = tmp_path / "killed"
    with Server(script, delay=0.02) as server:
        command = [sys.executable, "-c", RUN, str(made), str(out), server.url]
        for kill_at in (12, 30):
            with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
                deadline = time.monotonic() + 60
                while len(server.asked) < kill_at and time.monotonic() < deadline and process.poll() is None:
                    time.sleep(0.002)
                assert process.poll() is None
                process.send_signal(signal.SIGKILL)
        assert not (out / "replies.parquet").exists()
        log_before = (out / "replies.jsonl").read_bytes()
        result = ask(server.url, made, out, max_connections=3, retries=5)
        assert (out / "replies.jsonl").read_bytes().startswith(log_before.rpartition(b"\n")[0])
        # Number 4, 14, … are answered at the second try, so that a first try lost to a kill costs one more.
        extra = sum(
            count - (2 if int(text.split()[1].rstrip("?")) % 10 == 4 else 1) for text, count in server.counts.items()
        )
        assert 0 <= extra <= 2 * 3
    with Server(script) as calm:
        undisturbed = ask(calm.url, made, tmp_path / "calm", max_connections=3, retries=5)
    assert result.statuses == undisturbed.statuses == {"ok": 48, "truncated": 6, "error": 6}
    assert rows(out) == rows(tmp_path / "calm")


def private_bench(folder: Path, **facts: Any) -> Path:
    cases = [case(f"case-{n:04d}", picture(n), **facts) for n in range(3)]
    return bench(folder, [item(n) for n in range(3)], cases)


def test_private_images_stay_on_this_machine(tmp_path: Path) -> None:
    made = private_bench(tmp_path / "bench", private=True, source="ward")
    options = {"base_url": "http://192.0.2.7/v1", "api_key": "k"}
    with pytest.raises(BadInput, match=r"3 private images \(source ward\) would leave for http://192.0.2.7"):
        run(made, "openai/m", tmp_path / "run", model_options=options)
    assert not (tmp_path / "run").exists()
    with Server() as server:
        assert ask(server.url, made, tmp_path / "local").statuses["ok"] == 3


def test_private_images_leave_only_when_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonogauge.run.privacy.is_loopback", lambda url: False)
    made = private_bench(tmp_path / "bench", private=True, source="ward", licence="CC BY-NC-ND 4.0")
    with Server() as server:
        with pytest.raises(BadInput, match="--allow-upload"):
            ask(server.url, made, tmp_path / "run")
        result = ask(server.url, made, tmp_path / "run", allow_upload=True)
        blind = ask(server.url, made, tmp_path / "blind", vary=["no_image"], only_varied=True)
    assert result.manifest.parameters["endpoint"] == server.url.removesuffix("/v1")
    assert any("private images (source ward) are sent" in line for line in result.manifest.notices)
    assert any("no derivatives" in line and "no commercial use" in line for line in result.notices)
    assert blind.statuses["ok"] == 3


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"choices": ' + "[" * 100_000, "bad_answer"),
        ('{"choices": [{"message": {"content": "benign"}}], "usage": {"prompt_tokens": 1e999}}', ""),
        ('{"choices": [{"message": {"content": "benign"}}], "usage": {"prompt_tokens": 99999999999999999999}}', ""),
        ('{"choices": [{"message": {"content": "benign"}}], "usage": {"prompt_tokens": "many"}}', ""),
        ('{"choices": [{"message": null, "finish_reason": null}]}', ""),
        ('{"choices": "abc"}', "bad_answer"),
        ('{"choices": {"a": 1}}', "bad_answer"),
        ('{"error": {"message": "overloaded"}}', "server"),
        ("[]", "bad_answer"),
        ("null", "bad_answer"),
        ("", "bad_answer"),
    ],
)
def test_hostile_answers(tmp_path: Path, body: str, kind: str) -> None:
    made = bench(tmp_path / "bench", [item(1)])
    with Server(lambda asked, nth: web.Response(text=body, content_type="application/json")) as server:
        result = ask(server.url, made, tmp_path / "run", retries=0)
    assert result.failures == ({kind: 1} if kind else {})


def test_a_pause_of_hours_stops_the_run(tiny: Path, tmp_path: Path) -> None:
    with Server(lambda asked, nth: error(429, "come back tomorrow", {"Retry-After": "86400"})) as server:
        assert "asks to wait 86400 s" in stopped(server.url, tiny, tmp_path / "run", max_connections=2)


def test_an_address_with_a_password_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds a user name or password"):
        ask("http://me:secret@127.0.0.1:9/v1", tiny, tmp_path / "run")


class Clumsy:
    """A model of another package that raises instead of answering."""

    name = "clumsy/one"
    revision = endpoint = ""
    options: dict[str, Any] = {}  # noqa: RUF012

    async def answer(self, request: Any) -> Any:
        assert not hasattr(request, "reference")
        if request.item_id.endswith("3"):
            raise TypeError("no idea")
        from sonogauge.models import Outcome

        return Outcome("ok", text="benign")

    async def close(self) -> None:
        return None


def test_a_model_object_that_raises(tiny: Path, tmp_path: Path) -> None:
    result = run(tiny, Clumsy(), tmp_path / "run", **FAST)
    assert result.statuses == {"ok": 27, "truncated": 0, "error": 3}
    assert result.failures == {"model": 3}
    assert "TypeError no idea" in next(
        row["error"] for row in Folder(tmp_path / "run").rows("replies") if row["status"] == "error"
    )


def test_a_file_in_place_of_the_folder(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="not a folder"):
        run(tiny, "baseline/random", tmp_path / "file")
    with pytest.raises(BadInput, match="cannot write there"):
        run(tiny, "baseline/random", tmp_path / "file" / "run")
