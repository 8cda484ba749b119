"""A run as an Inspect log: the same scores from it, the same bytes each time, images only when asked for."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.inspect.bench import Script, built, items_of
from tests.run.server import Server
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.run import run
from sonogauge.score import score
from sonogauge.score.inputs import open_replies
from sonogauge.score.replies import Reply

pytestmark = [pytest.mark.part("inspect"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("inspect") / "bench")


@pytest.fixture(scope="module")
def answered(bench: Path) -> Path:
    """A run with failures of every kind, and with varied questions."""
    folder = bench.parent / "run"
    with Server(Script(bench)) as server:
        options = {"base_url": server.url, "api_key": "k"}
        run(bench, "openai-api/lab/m", folder, model_options=options, retries=0)
        run(bench, "openai-api/lab/m", folder, model_options=options, retries=0, tasks=["DD"], vary=["shuffle"])
    return folder


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_a_log_holds_what_the_run_holds(answered: Path, tmp_path: Path, suffix: str) -> None:
    require_extra("inspect", "inspect_ai")
    from sonogauge.inspect.export import write_log

    log = write_log(answered, tmp_path / f"log{suffix}", draws=100)
    of_log, of_run = open_replies(log, None, None)[0], open_replies(answered, None, None)[0]
    assert {one.variant for one in of_log.replies} > {""}
    # A log does not keep the size of the image as sent, which only boxes and points need.
    assert sorted(map(_bare, of_log.replies)) == sorted(map(_bare, of_run.replies))
    assert of_log.model == of_run.model
    theirs, ours = score(log, draws=200, baselines=False), score(answered, draws=200, baselines=False)
    assert theirs.metrics == ours.metrics
    assert theirs.manifest.counts == ours.manifest.counts


def _bare(reply: Reply) -> Reply:
    return reply._replace(size=None, text=reply.text or "")


def test_the_log_shows_our_scores(answered: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from inspect_ai.log import read_eval_log

    from sonogauge.inspect.export import write_log
    from sonogauge.inspect.judging import values_of

    log = read_eval_log(write_log(answered, tmp_path / "log.eval", draws=200))
    found = score(answered, draws=200, baselines=False)
    assert log.results is not None
    shown = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert shown == pytest.approx(values_of(found.spec, found.metrics), nan_ok=True, abs=0)
    assert log.samples is not None
    strict = [(one.scores or {})["strict"] for one in log.samples]
    assert {one.metadata["reason"] for one in strict if one.metadata} > {None, "error", "truncated"}
    assert all((one.answer is None) == ((one.metadata or {})["reason"] is not None) for one in strict)


def test_the_same_run_gives_the_same_bytes(answered: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from sonogauge.inspect.export import write_log

    one, two = (write_log(answered, tmp_path / f"{name}.json", draws=100).read_bytes() for name in "ab")
    assert one == two


def test_images_are_in_it_only_when_asked_for(answered: Path, bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from inspect_ai.log import read_eval_log

    from sonogauge.folders import Folder
    from sonogauge.inspect.export import write_log
    from sonogauge.run.images import CaseImages

    plain = write_log(answered, tmp_path / "plain.json", draws=100).read_text("utf-8")
    assert "data:image" not in plain
    shown = read_eval_log(
        write_log(answered, tmp_path / "shown.eval", draws=100, images=True), resolve_attachments=True
    )
    items, images = {item.item_id: item for item in items_of(bench)}, CaseImages(Folder(bench))
    assert shown.samples
    for sample in shown.samples:
        content = sample.messages[0].content
        assert isinstance(content, list)
        sent = [base64.b64decode(part.image.partition(",")[2]) for part in content if part.type == "image"]
        key = sample.metadata["reply_key"]
        wanted = [] if key["variant"] else [images.read(one.case_id) for one in items[key["item_id"]].images]
        assert sent == wanted
        assert content[-1].type == "text"
        assert content[-1].text == items[key["item_id"]].question


def test_bad_names(answered: Path, bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from sonogauge.inspect.export import write_log

    with pytest.raises(BadInput, match=r"end it in \.eval or \.json"):
        write_log(answered, tmp_path / "log.txt")
    with pytest.raises(BadInput, match="not a file in an existing folder"):
        write_log(answered, tmp_path / "none" / "log.eval")
    with pytest.raises(BadInput, match="a folder of benchmark, not of run"):
        write_log(bench, tmp_path / "log.eval")


def test_the_command_writes_without_opening(answered: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    program = [sys.executable, "-c", "from sonogauge.cli import main; main()"]
    out = tmp_path / "log.json"
    done = subprocess.run(
        [*program, "view", str(answered), "--no-open", "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, f"log: {out}\n")
    assert json.loads(out.read_text("utf-8"))["eval"]["task"] == "sonogauge/synthetic"
    done = subprocess.run([*program, "view", str(answered), "--no-open"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        done.stderr == "error: field 'out': nothing to write and nothing to show; give --out, or leave out --no-open\n"
    )


@pytest.mark.slow
def test_the_viewer_serves_the_log_until_interrupted(answered: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    from sonogauge.inspect.export import write_log

    log = write_log(answered, tmp_path / "log.eval", draws=100)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = (
        "import sys, urllib.request, pathlib\n"
        "from sonogauge.inspect.viewer import view\n"
        "def browse(address):\n"
        "    print('seen', urllib.request.urlopen(address + '/api/logs').read().decode(), flush=True)\n"
        "sys.exit(view(pathlib.Path(sys.argv[1]), port=int(sys.argv[2]), browse=browse))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(log), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        seen = next((line for line in process.stdout if line.startswith("seen ")), "")
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
    assert "log.eval" in seen
    assert process.returncode == 0
