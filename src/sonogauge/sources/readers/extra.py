"""What only the extra `[medical]` installs, asked for at the point of use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sonogauge._errors import BadInput


def need(module: str, what: str) -> Any:
    """Import a module of the extra `[medical]`.

    Raises:
        BadInput: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise BadInput(f"reading {what} needs {module}", fix="pip install 'sonogauge[medical]'") from error
