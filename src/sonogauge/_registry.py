"""A typed, lazy registry: names map to "package.module:object", imported when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from sonogauge._errors import BadInput

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of thing, each loaded on first use; other packages add theirs by entry point.

    Args:
        kind: what the things are, for messages ("answer form").
        targets: name to "package.module:object".
        group: entry point group that other packages may add to, for example "sonogauge.models".
    """

    def __init__(self, kind: str, targets: Mapping[str, str], group: str | None = None) -> None:
        self._kind = kind
        self._targets = dict(targets)
        self._group = group
        self._loaded: dict[str, T] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._targets or (isinstance(name, str) and name in self._foreign())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._targets, *self._foreign()}))

    def _foreign(self) -> dict[str, str]:
        if self._group is None:
            return {}
        return {point.name: point.value for point in entry_points(group=self._group)}

    def target(self, name: str) -> str | None:
        """Return "package.module:object" of a name without loading it; None if there is none."""
        return self._targets.get(name) or self._foreign().get(name)

    def load(self, name: str) -> T:
        """Return the thing called `name`; raise BadInput with the known names if there is none."""
        if name not in self._loaded:
            target = self.target(name)
            if target is None:
                raise BadInput(f"no {self._kind} '{name}'", fix="known: " + ", ".join(self))
            module, _, attribute = target.partition(":")
            self._loaded[name] = cast(T, getattr(import_module(module), attribute))
        return self._loaded[name]
