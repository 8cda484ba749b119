"""A real tiny LLaVA: in this process, and behind the real server of transformers."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.run.server import free_port
from tests.run.tiny import bench, case, item, picture
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.run import run

pytestmark = [pytest.mark.part("run"), pytest.mark.filterwarnings("ignore")]
GREEDY: dict[str, Any] = {"generation": {"max_tokens": 12}}


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_extra("local", "torch")
    require_extra("local", "transformers")
    from tests.models.tiny_llava import make

    return make(tmp_path_factory.mktemp("llava") / "tiny")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    items = [item(n, question=f"Is lesion {'very ' * (n % 3)}number {n} benign?") for n in range(10)]
    cases = [case(f"case-{n:04d}", picture(25 * n, 64, 64)) for n in range(10)]
    return bench(tmp_path_factory.mktemp("bench") / "bench", items, cases)


def texts(out: Path) -> list[tuple[str, str, str]]:
    return [(row["item_id"], row["status"], row["text"]) for row in Folder(out, "run").rows("replies")]


def test_a_batch_gives_the_replies_of_single_questions(llava: Path, tiny: Path, tmp_path: Path) -> None:
    for size in (1, 4):
        options = {"device": "cpu", "dtype": "float32", "batch_size": size}
        run(tiny, f"local/{llava}", tmp_path / str(size), model_options=options, **GREEDY)
    assert texts(tmp_path / "1") == texts(tmp_path / "4")
    assert len({text for _, _, text in texts(tmp_path / "1")}) > 1
    row = next(Folder(tmp_path / "1").rows("replies"))
    assert row["input_tokens"] > 16
    assert Folder(tmp_path / "1").manifest.parameters["endpoint"] == ""
    assert Folder(tmp_path / "1").manifest.parameters["revision"]


def test_images_matter_and_may_be_left_out(llava: Path, tiny: Path, tmp_path: Path) -> None:
    result = run(tiny, f"local/{llava}", tmp_path / "run", vary=["no_image"], model_options={"device": "cpu"}, **GREEDY)
    assert result.statuses["error"] == 0
    rows = list(Folder(tmp_path / "run").rows("replies"))
    seen = {row["item_id"]: row["text"] for row in rows if not row["variant"]}
    unseen = {row["item_id"]: row["text"] for row in rows if row["variant"]}
    assert seen != unseen


def test_an_adapter_changes_the_replies(llava: Path, tiny: Path, tmp_path: Path) -> None:
    peft = require_extra("local", "peft")
    import torch
    from transformers import AutoModelForImageTextToText

    torch.manual_seed(1)
    model = AutoModelForImageTextToText.from_pretrained(llava)
    tuned = peft.get_peft_model(
        model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )
    tuned.save_pretrained(tmp_path / "adapter")
    run(tiny, f"local/{llava}", tmp_path / "plain", model_options={"device": "cpu"}, **GREEDY)
    adapter = {"device": "cpu", "adapter": str(tmp_path / "adapter")}
    run(tiny, f"local/{llava}", tmp_path / "tuned", model_options=adapter, **GREEDY)
    assert texts(tmp_path / "plain") != texts(tmp_path / "tuned")
    with pytest.raises(BadInput, match="another model_options"):
        run(tiny, f"local/{llava}", tmp_path / "plain", model_options=adapter, **GREEDY)


def test_weights_that_do_not_open(tiny: Path, tmp_path: Path) -> None:
    require_extra("local", "transformers")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="cannot open local/") as caught:
        run(tiny, f"local/{tmp_path / 'empty'}", tmp_path / "run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", ["not/a/folder", "nowhere-at-all"])
def test_weights_that_are_not_there_are_one_line(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], where: str
) -> None:
    require_extra("local", "transformers")
    import huggingface_hub

    def unreachable(name: str, **options: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    with pytest.raises(BadInput, match=f"no folder {where}, and no such model in reach"):
        run(tiny, f"local/{where}", tmp_path / "run")
    assert capfd.readouterr().err == ""


@pytest.fixture(scope="module")
def served(llava: Path) -> Iterator[str]:
    require_extra("local", "uvicorn")
    port = free_port()
    command = [str(Path(sys.executable).parent / "transformers"), "serve", str(llava)]
    command += ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None, "the server ended"
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(30)


def test_a_real_server_and_the_same_weights_in_this_process(
    llava: Path, served: str, tiny: Path, tmp_path: Path
) -> None:
    options = {"base_url": served, "api_key": "none"}
    result = run(
        tiny, f"openai-api/tiny/{llava}", tmp_path / "served", model_options=options, max_connections=2, **GREEDY
    )
    assert result.failures == {}
    run(tiny, f"local/{llava}", tmp_path / "local", model_options={"device": "cpu"}, **GREEDY)
    served_texts = [(name, text.strip()) for name, _, text in texts(tmp_path / "served")]
    assert served_texts == [(name, text) for name, _, text in texts(tmp_path / "local")]
