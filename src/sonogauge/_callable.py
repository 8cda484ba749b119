"""Packages that share their name with a public function.

`sonogauge.run` is a function to the user and a package to the import system, which binds the package to the name as
soon as anything below it is imported. A package that can be called like its function is right in both cases.
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    @property
    def _function(self) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Signature:
        return signature(self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def make_callable(package: str) -> None:
    """Let a loaded package be called as the function of the same name inside it."""
    sys.modules[package].__class__ = _CallableModule
