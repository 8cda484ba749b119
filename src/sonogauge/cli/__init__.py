"""The command line: one command, one function; bad input ends with one line and exit code 2."""
# ruff: noqa: I001 - importing a module registers its commands, in the order in which --help lists them

from __future__ import annotations

import sys
from typing import Final, NoReturn

from sonogauge._errors import BadInput
from sonogauge.cli.base import app, say
from sonogauge.cli import data as data
from sonogauge.cli import listing as listing
from sonogauge.cli import building as building
from sonogauge.cli import answering as answering
from sonogauge.cli import segmenting as segmenting
from sonogauge.cli import results as results
from sonogauge.cli import comparing as comparing
from sonogauge.cli import analysing as analysing
from sonogauge.cli import reviewing as reviewing
from sonogauge.cli import demonstration as demonstration

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
