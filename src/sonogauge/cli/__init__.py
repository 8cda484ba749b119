"""The command line: one command, one function; bad input ends with one line and exit code 2."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

from sonogauge._errors import BadInput

# Importing a module of commands registers them, in the order in which --help lists them.
from sonogauge.cli import answering, comparing, data, demonstration, results  # noqa: F401
from sonogauge.cli.base import app, say

BAD_INPUT: Final = 2


def main() -> NoReturn:
    """Run the command line; the console script."""
    try:
        app(standalone_mode=True)
    except BadInput as error:
        say(f"error: {error}")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        # The reader of a pipe went away; closing stderr keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(1)
    sys.exit(0)


__all__ = ["app", "main"]
