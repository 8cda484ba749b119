"""Inspect logs as replies: how each ending is read, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.inspect.bench import built, items_of
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.score import score
from sonogauge.score.inputs import open_replies
from sonogauge.score.replies import Reply

pytestmark = [pytest.mark.part("inspect"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("inspect") / "bench")


def sample(item_id: str, text: str | None = "x", reason: Any = "stop", epoch: int = 1, **more: Any) -> Any:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelOutput

    output = ModelOutput() if text is None else ModelOutput.from_content("m", text, stop_reason=reason)
    return EvalSample(id=item_id, epoch=epoch, input="q", target="t", output=output, **more)


def written(path: Path, samples: Sequence[Any], asked: Sequence[str] | None, epochs: int = 1, **facts: Any) -> Path:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log

    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="t",
        model="lab/m",
        dataset=EvalDataset(name="d", sample_ids=list(asked) if asked is not None else None),
        config=EvalConfig(epochs=epochs),
        metadata=facts or None,
    )
    write_eval_log(EvalLog(eval=spec, samples=list(samples), status="success"), path)
    return path


def facts_of(bench: Path) -> dict[str, str]:
    return {"bench": str(bench), "benchmark_hash": Folder(bench).manifest.hash, "split": "test"}


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_each_ending_is_a_state_of_its_own(bench: Path, tmp_path: Path, suffix: str) -> None:
    require_extra("inspect", "inspect_ai")
    from inspect_ai.log import EvalError, EvalSampleLimit

    ids = [item.item_id for item in items_of(bench)]
    broken = EvalError(message="no", traceback="", traceback_ansi="")
    samples = [
        sample(ids[0], "left \u202e <b>"),
        sample(ids[1], "cut", "max_tokens"),
        sample(ids[2], "cut", "model_length"),
        sample(ids[3], "", "content_filter"),
        sample(ids[4], None),
        sample(ids[5], "said before it broke", error=broken),
        sample(ids[6], "so far", limit=EvalSampleLimit(type="time", limit=3)),
        sample(ids[7], ""),
        sample(ids[8], "I cannot help with that.", "unknown"),
    ]
    log = written(tmp_path / f"log{suffix}", samples, ids[:10], **facts_of(bench))
    source, folder = open_replies(log, None, None)
    assert folder.path == bench
    assert source.model == "lab/m"
    assert source.asked == frozenset(ids[:10])
    expected = [
        ("ok", "left \u202e <b>"),
        ("truncated", "cut"),
        ("truncated", "cut"),
        ("error", None),
        ("error", None),
        ("error", None),
        ("truncated", "so far"),
        ("ok", ""),
        ("ok", "I cannot help with that."),
        ("missing", None),
    ]
    assert list(source.replies) == [
        Reply(item_id, "", 0, "", status, text) for item_id, (status, text) in zip(ids, expected, strict=False)
    ]
    found = score(log, draws=100, scenarios="present", baselines=False)
    reasons = found.manifest.counts["failures"]["strict"]
    assert (reasons["truncated"], reasons["error"], reasons["missing"]) == (3, 3, 1)


def test_an_epoch_that_never_ran_is_missing(bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    ids = [item.item_id for item in items_of(bench)]
    log = written(tmp_path / "log.eval", [sample(ids[0]), sample(ids[1], epoch=2)], ids, epochs=2, **facts_of(bench))
    source, _ = open_replies(log, None, "a name")
    assert source.model == "a name"
    assert source.asked is None, "all items of the split were asked"
    states = {(one.item_id, one.epoch): one.status for one in source.replies}
    assert len(states) == 2 * len(ids)
    assert [key for key, status in states.items() if status != "missing"] == [(ids[0], 0), (ids[1], 1)]


def test_a_task_of_somebody_else_needs_the_benchmark_named(bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    ids = [item.item_id for item in items_of(bench)]
    log = written(tmp_path / "log.eval", [sample(ids[0])], None)
    with pytest.raises(BadInput, match=r"log\.eval: a log that names no benchmark folder; name it: --bench DIR"):
        open_replies(log, None, None)
    source, _ = open_replies(log, bench, None)
    assert [one.status for one in source.replies] == ["ok"]
    foreign = written(tmp_path / "foreign.eval", [sample("nobody")], None)
    with pytest.raises(BadInput, match="none of its 1 item ids is in the benchmark"):
        score(foreign, bench=bench)


def test_refusals(bench: Path, tmp_path: Path) -> None:
    require_extra("inspect", "inspect_ai")
    ids = [item.item_id for item in items_of(bench)]
    other = written(tmp_path / "other.eval", [sample(ids[0])], ids, **{**facts_of(bench), "benchmark_hash": "0" * 64})
    with pytest.raises(BadInput, match=r"other\.eval: a log of another benchmark than .*0000"):
        score(other)
    from inspect_ai.log import read_eval_log, write_eval_log

    unfinished = read_eval_log(written(tmp_path / "half.eval", [sample(ids[0])], ids, **facts_of(bench)))
    unfinished.status = "started"
    write_eval_log(unfinished, tmp_path / "half.eval")
    with pytest.raises(BadInput, match=r"half\.eval: a log that was never finished"):
        score(tmp_path / "half.eval")
    empty = written(tmp_path / "empty.eval", [], [], **facts_of(bench))
    with pytest.raises(BadInput, match="no sample in it"):
        score(empty)
    with pytest.raises(BadInput, match=r"nowhere\.eval: no such file"):
        score(tmp_path / "nowhere.eval")
    for name, content in (("zip.eval", b"PK\x03\x04 torn"), ("text.json", b"[1, 2"), ("none.eval", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match="not an Inspect log that can be read") as caught:
            score(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_json_lines_keep_their_meaning_whatever_their_suffix(bench: Path, tmp_path: Path) -> None:
    ids = [item.item_id for item in items_of(bench)]
    (tmp_path / "replies.json").write_text('{"item_id": "%s", "text": "center"}\n' % ids[0], "utf-8")  # noqa: UP031
    source, _ = open_replies(tmp_path / "replies.json", bench, None)
    assert [(one.item_id, one.text) for one in source.replies] == [(ids[0], "center")]


def test_without_the_extra_the_fix_is_named(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "log.eval").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(BadInput, match=r"pip install 'sonogauge\[inspect\]'"):
        score(tmp_path / "log.eval")
