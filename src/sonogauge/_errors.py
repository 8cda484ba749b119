"""The one error a user can mend: bad input, told in one line."""

from __future__ import annotations

from pathlib import Path


class BadInput(Exception):
    """Input that cannot be used; the command line prints it as one line and exits with code 2.

    Args:
        what: what is wrong, without a final full stop.
        file: the file or folder concerned.
        row: row number from 1, header not counted.
        field: column or key concerned.
        fix: what the user can do about it.

    >>> str(BadInput("not a number: 'x'", file="a.csv", row=3, field="truth", fix="write a decimal number"))
    "a.csv, row 3, field 'truth': not a number: 'x'; write a decimal number"
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        row: int | None = None,
        field: str | None = None,
        fix: str | None = None,
    ) -> None:
        where = ", ".join(
            part
            for part in (
                str(file) if file is not None else "",
                f"row {row}" if row is not None else "",
                f"field '{field}'" if field is not None else "",
            )
            if part
        )
        line = f"{where}: {what}" if where else what
        if fix:
            line = f"{line}; {fix}"
        super().__init__(" ".join(line.split()))
