import sys
from collections import OrderedDict
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from sonogauge import _registry
from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.answers import FORMS

pytestmark = pytest.mark.part("tables")


def test_a_thing_is_loaded_on_first_use_only() -> None:
    sys.modules.pop("colorsys", None)
    registry: Registry[Callable[..., Any]] = Registry("colour rule", {"hls": "colorsys:rgb_to_hls"})
    assert "hls" in registry
    assert list(registry) == ["hls"]
    assert "colorsys" not in sys.modules
    rule = registry.load("hls")
    assert rule(1.0, 1.0, 1.0)[1] == 1.0
    assert registry.load("hls") is rule


def test_an_unknown_name_is_bad_input_with_the_known_names() -> None:
    registry: Registry[type] = Registry("thing", {"b": "collections:OrderedDict", "a": "collections:Counter"})
    with pytest.raises(BadInput, match=r"^no thing 'c'; known: a, b$"):
        registry.load("c")


def test_other_packages_add_by_entry_point_but_cannot_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("foreign", "collections:OrderedDict", "sonogauge.things"),
        EntryPoint("own", "collections:Counter", "sonogauge.things"),
    ]
    monkeypatch.setattr(_registry, "entry_points", lambda *, group: EntryPoints(points).select(group=group))
    registry: Registry[type] = Registry("thing", {"own": "collections:deque"}, group="sonogauge.things")
    assert list(registry) == ["foreign", "own"]
    assert "foreign" in registry
    assert 3 not in registry
    assert registry.load("foreign") is OrderedDict
    assert registry.load("own").__name__ == "deque"


def test_every_registered_answer_form_loads_under_its_own_name() -> None:
    assert [FORMS.load(name).name for name in FORMS] == list(FORMS)
