"""Where the tests find what may be absent: the shared real files and the optional extras."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
# The summary at the end of a test run counts skips by these prefixes (see conftest).
ABSENT_DATA: Final = "shared data absent"
ABSENT_EXTRA: Final = "extra missing"


def shared_data(*parts: str) -> Path:
    """Return a path below the `data` folder of the shared files; call it inside a test or a fixture.

    The shared folder is `$SONOGAUGE_SHARED`, by default `../shared` seen from the repository. Not set and absent: the
    test is skipped and counted. Set, but missing: the test fails.
    """
    named = os.environ.get("SONOGAUGE_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    path = folder.joinpath("data", *parts)
    if path.exists():
        return path
    if named:
        pytest.fail(f"SONOGAUGE_SHARED is {named}, but {path} is missing", pytrace=False)
    if (folder / "data").is_dir():
        pytest.fail(f"{folder} is there, but {path} is missing", pytrace=False)
    pytest.skip(f"{ABSENT_DATA}: {path} (set SONOGAUGE_SHARED to the folder that holds data/)")


def require_extra(extra: str, module: str) -> ModuleType:
    """Import a module of an optional extra, or skip; in CI such a skip fails the whole run."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise
        pytest.skip(f"{ABSENT_EXTRA}: [{extra}] ({module})")
