"""The clinical facts of each text of a table, those of the reference beside those of the reply, as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.folders import write_bytes
from sonogauge.score.table_parse import parse_rows
from sonogauge.score.table_rows import TableColumns, read_rows

FACT_COLUMNS: Final = ("row", "fact", "in_reference", "in_reply", "verdict", "correct")


def fact_rows(columns: TableColumns, spec: AnswerSpec) -> Iterator[dict[str, Any]]:
    """Yield the facts of each row of a table, in order; `row` counts from 1 among the rows that are scored."""
    from sonogauge.metrics.clinical import fact_table

    for number, (row, parsed) in enumerate(parse_rows(read_rows(columns, spec), spec), start=1):
        reply = str(parsed.value) if parsed.valid else ""
        for fact in fact_table(row.truth[0], reply):
            yield {"row": number, **{name: fact[name] for name in FACT_COLUMNS[1:]}}


def check_target(columns: TableColumns, out: Path) -> None:
    """Refuse a file that facts cannot be written to, before anything is counted.

    Raises:
        BadInput: a folder, no CSV file, or one of the files that are read.
    """
    if out.is_dir() or out.suffix.lower() != ".csv":
        raise BadInput("facts are written as CSV", file=out, field="facts", fix="name a file that ends in .csv")
    read = [columns.table.path, *([columns.truths.path] if columns.truths is not None else [])]
    if out.resolve() in [one.resolve() for one in read]:
        raise BadInput("this file is read, facts would replace it", file=out, field="facts", fix="name another file")


def write_facts(columns: TableColumns, spec: AnswerSpec, out: Path) -> None:
    """Write the facts as CSV, whole or not at all.

    Raises:
        BadInput: the file cannot be written.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, FACT_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for fact in fact_rows(columns, spec):
        writer.writerow({name: "" if value is None else value for name, value in fact.items()})
    try:
        write_bytes(out, stream.getvalue().encode("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", file=out, field="facts") from error
