from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from tests.shared import require_extra

from sonogauge import _registry
from sonogauge._errors import BadInput
from sonogauge.models import MODELS, Reader, load_model
from sonogauge.models.addresses import is_loopback, reached_through

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


@pytest.mark.parametrize(
    ("environment", "url", "through"),
    [
        ({}, "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        (
            {"http_proxy": "http://me:secret@far.example.org:3128"},
            "http://127.0.0.1:8000",
            "http://far.example.org:3128",
        ),
        ({"all_proxy": "far.example.org:3128"}, "http://localhost:8000", "http://far.example.org:3128"),
        ({"https_proxy": "http://far.example.org"}, "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ({"http_proxy": "http://far.example.org", "no_proxy": "127.0.0.1"}, "http://127.0.0.1:8", "http://127.0.0.1:8"),
        ({"http_proxy": "http://far.example.org"}, "http://near.example.org", "http://near.example.org"),
        ({"http_proxy": "http://far.example.org"}, "the provider anthropic", "the provider anthropic"),
    ],
)
def test_a_proxy_is_where_a_request_to_this_machine_goes(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, through: str
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert reached_through(url) == through
    assert is_loopback(through) == is_loopback(url) or "far" in through


def test_a_local_server_behind_a_proxy_is_no_model_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra("inspect", "inspect_ai")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://far.example.org:3128")
    model = load_model("inspect/openai-api/lab/m", base_url="http://127.0.0.1:8000/v1", api_key="k")
    assert not isinstance(model, Reader) and not is_loopback(model.endpoint)
