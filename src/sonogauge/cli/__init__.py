"""The command line: one command, one function; bad input ends with one line and exit code 2."""
# ruff: noqa: I001 - importing a module registers its commands, in the order in which --help lists them

from __future__ import annotations

import errno
import io
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
# The machine refuses: told in one line, as bad input is, but with exit code 1.
_MACHINE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG}
)


def main() -> NoReturn:
    """Run the command line; the console script."""
    _write_any_character()
    try:
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()
    except BadInput as error:
        say(f"error: {error}")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        # The reader of a pipe went away; closing stderr keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _MACHINE:
            raise
        say(f"error: {error}; nothing is wrong with the input: make room or ask for the right to write")
        sys.stderr.close()
        sys.exit(1)
    sys.exit(0)


def _write_any_character() -> None:
    # What goes into a file or pipe is UTF-8 like every file we write; a terminal of another kind gets escapes.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower().replace("-", "") != "utf8":
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


__all__ = ["app", "main"]
