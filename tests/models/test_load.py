from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from sonogauge import _registry
from sonogauge._errors import BadInput
from sonogauge.models import MODELS, Reader, load_model
from sonogauge.models.addresses import is_loopback

pytestmark = pytest.mark.part("run")


class Echo:
    """A reader of another package."""

    def __init__(self, name: str, *, loud: bool = False) -> None:
        self.name, self.loud = name, loud

    def replies(self, items: Any, train: Any, seed: int) -> list[str | None]:
        return ["echo" for _ in items]


def test_a_model_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("echo", "tests.models.test_load:Echo", "sonogauge.models")
    monkeypatch.setattr(_registry, "entry_points", lambda group: [point] if group == "sonogauge.models" else [])
    assert "echo" in MODELS
    model: Any = load_model("echo/one", loud=True, quiet=None)
    assert isinstance(model, Reader)
    assert (model.name, model.loud) == ("echo/one", True)
    with pytest.raises(BadInput, match="do not take these options"):
        load_model("echo/one", colour="red")


def test_unknown_providers_are_listed() -> None:
    with pytest.raises(BadInput, match=r"known: .*anthropic, .*baseline, .*local, .*openai"):
        load_model("nobody/x")


@pytest.mark.parametrize("url", ["http://127.0.0.2", "https://[::1]:1/v1", "http://localhost:8000/v1"])
def test_addresses_on_this_machine(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1.example.org", "http://127.0.0.1@example.org/", "http://example.org/127.0.0.1"),
        *("", "the provider anthropic", "http://localhost.example.org", "http://2130706433", "http://0.0.0.0"),
    ],
)
def test_addresses_elsewhere(url: str) -> None:
    assert not is_loopback(url)
