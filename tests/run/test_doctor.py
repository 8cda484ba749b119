from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.run.server import Server, completion, error
from tests.run.tiny import picture

from sonogauge._errors import BadInput
from sonogauge.run import Diagnosis, doctor

pytestmark = pytest.mark.part("run")


def examine(script: Any, **options: Any) -> Diagnosis:
    with Server(script) as server:
        return doctor("openai/m", model_options={"base_url": server.url}, **options)


@pytest.mark.parametrize(
    ("answer", "fit", "message"),
    [
        (completion("Blue."), True, "it sees images"),
        (completion("Red."), True, "may not see images"),
        (completion("red, green or blue"), True, "may not see images"),
        (completion(""), False, "the reply is empty"),
        (completion("Bl", "length"), False, "raise max_tokens"),
    ],
)
def test_replies(answer: dict[str, Any], fit: bool, message: str) -> None:
    found = examine(lambda asked, nth: answer)
    assert found.fit is fit
    assert any(message in line for line in found.lines)


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (401, "bad key", "correct the key"),
        (404, "no such model", "correct the name"),
        (400, "images are not supported by this model", "choose a model that reads images"),
        (413, "too big", "--image-policy max:1024"),
        (400, "unknown field temperature", "--generation NAME=null"),
        (429, "slow down", "wait"),
    ],
)
def test_failures(status: int, said: str, advice: str) -> None:
    found = examine(lambda asked, nth: error(status, said))
    assert not found.fit
    assert advice in found.lines[-1]
    assert said in " ".join(found.lines)


def test_nothing_listens() -> None:
    found = doctor("openai/m", model_options={"base_url": "http://127.0.0.1:9"})
    assert not found.fit
    assert "start the server" in found.lines[-1]


def test_size_and_file(tmp_path: Path) -> None:
    found = examine(lambda asked, nth: completion("Blue"), size=2000)
    assert "2000 x 2000 pixels" in found.lines[1]
    (tmp_path / "a.png").write_bytes(picture(7))
    found = examine(lambda asked, nth: completion("grey"), image=tmp_path / "a.png")
    assert "image/png, 40 x 30 pixels" in found.lines[1]
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(BadInput, match="does not decode"):
        doctor("openai/m", model_options={"base_url": "http://127.0.0.1:9"}, image=tmp_path / "b.png")


def test_a_baseline_needs_no_doctor() -> None:
    assert doctor("baseline/random").fit
