"""The formats of a report: small functions from one view to a text, safe against hostile names."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable
from typing import Final

from rich.cells import cell_len

from sonogauge._registry import Registry
from sonogauge.report.cells import DASH, SUPERSCRIPTS, Cell, Table, View

FORMATS: Final[Registry[Callable[[View], str]]] = Registry(
    "report format",
    {
        "md": "sonogauge.report.formats:markdown",
        "csv": "sonogauge.report.formats:csv_lines",
        "latex": "sonogauge.report.formats:latex",
        "json": "sonogauge.report.formats:json_text",
        "page": "sonogauge.report.page:page",
    },
    group="sonogauge.report_formats",
)


def render(view: View, format: str) -> str:
    """Return a view as text; raise BadInput with the known formats for an unknown one."""
    return FORMATS.load(format)(view)


def one_line(value: str) -> str:
    r"""Return a text without line breaks, control and invisible formatting characters.

    >>> one_line("a\nb\u202ec")
    'a bc'
    """
    spaced = " ".join(value.split())
    return "".join(character for character in spaced if unicodedata.category(character) not in ("Cc", "Cf", "Cs"))


def markdown(view: View) -> str:
    """Return GitHub-flavoured Markdown with aligned pipes; only the tables a person reads."""
    parts = [f"# {_md(view.title)}"]
    parts.append("  \n".join(f"{_md(name)}: {_md(value)}" for name, value in view.facts))
    if view.notices:
        parts.append("\n".join(f"> - {_md_line(notice)}" for notice in view.notices))
    for table in view.short:
        parts.append(f"## {_md(table.title)}")
        parts.append(_md_table(table))
        if table.lines:
            parts.append("\n".join(f"- {_md_line(line)}" for line in table.lines))
    return "\n\n".join(parts) + "\n"


def _md_table(table: Table) -> str:
    head = [_md(column.title) for column in table.columns]
    body = [[_md(value) for value in row] for row in table.texts]
    widths = [max(3, *(cell_len(row[index]) for row in [head, *body])) for index in range(len(head))]

    def line(values: list[str]) -> str:
        padded = []
        for value, width, column in zip(values, widths, table.columns, strict=True):
            space = " " * (width - cell_len(value))
            padded.append(space + value if column.right else value + space)
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * (width - 1) + ":" if c.right else "-" * width for width, c in zip(widths, table.columns, strict=True)]
    return "\n".join([line(head), "| " + " | ".join(rule) + " |", *(line(row) for row in body)])


def _md(value: str) -> str:
    text = one_line(value)
    shown = []
    for index, character in enumerate(text):
        if character == "_":
            # An underscore inside a word is no emphasis in Markdown: metric names stay readable.
            inner = text[index - 1 : index].isalnum() and text[index + 1 : index + 2].isalnum()
            shown.append("_" if inner else "\\_")
        elif character in "\\`*|~$" or (character in "[]" and not _is_interval(text)):
            shown.append("\\" + character)
        else:
            shown.append({"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(character, character))
    return "".join(shown)


def _md_line(value: str) -> str:
    # At the start of a line these would make a heading or another list.
    escaped = _md(value)
    return "\\" + escaped if escaped[:1] in ("#", "=", "+", "-") else escaped


def _is_interval(text: str) -> bool:
    # A bracket is harmless unless it makes a link: "](", "][", "]:" or a definition.
    return not any(pair in text for pair in ("](", "][", "]:", "[^", "[ ]", "[x]", "[X]")) and "!" not in text


def csv_lines(view: View) -> str:
    """Return one long table: a row for each number of the report, fractions in full precision.

    Text that a spreadsheet could take for a formula gets a leading apostrophe; numbers stay numbers.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, value in view.facts:
        writer.writerow(_csv_row("facts", {"row": name, "note": value}))
    for notice in view.notices:
        writer.writerow(_csv_row("notices", {"note": notice}))
    for table in view.tables:
        # The text columns before the first number name the row.
        lead = next((index for index, column in enumerate(table.columns) if column.right), len(table.columns))
        for row in table.rows:
            name = " | ".join(cell.text for cell in row[:lead] if cell.text)
            with_fact = any(cell.fact for cell in row)
            for column, cell in zip(table.columns[lead:], row[lead:], strict=True):
                if cell.unit is not None and not (cell.aside and with_fact):
                    writer.writerow(_csv_row(table.key, {"row": name, "column": column.title, **_cell_facts(cell)}))
                elif cell.text and not column.right:
                    writer.writerow(_csv_row(table.key, {"row": name, "column": column.title, "note": cell.text}))
            if lead == len(row):
                writer.writerow(_csv_row(table.key, {"row": name}))
        for line in table.notes:
            writer.writerow(_csv_row(table.key, {"note": line}))
    return stream.getvalue()


_FACT_COLUMNS: Final = (
    "model",
    "protocol",
    "variant",
    "task",
    "dataset",
    "slice",
    "metric",
    "n",
    "valid",
    "excluded",
    "groups",
    "reliable",
    "chance",
    "direction",
    "origin",
    "source",
    "signature",
)
CSV_COLUMNS: Final = ("table", "row", "column", "value", "low", "high", "why_null", "note", *_FACT_COLUMNS)


def _cell_facts(cell: Cell) -> dict[str, object]:
    facts: dict[str, object] = {"value": cell.value, "low": cell.low, "high": cell.high}
    fact = cell.fact
    if fact is not None:
        facts |= {name: getattr(fact, name) for name in _FACT_COLUMNS}
        facts |= {"low": fact.low, "high": fact.high}
    why = (fact.why_null if fact else "") or (cell.notes[0] if cell.value is None and cell.notes else "")
    notes = "; ".join(note for note in cell.notes if note != why)
    return {**facts, "why_null": why, "note": notes}


def _csv_row(table: str, facts: dict[str, object]) -> list[str]:
    return [_csv(value) for value in (table, *(facts.get(column) for column in CSV_COLUMNS[1:]))]


def _csv(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case _:
            text = one_line(str(value))
            return "'" + text if text.startswith(("=", "+", "-", "@", "|", "%")) else text


def latex(view: View) -> str:
    """Return LaTeX tables (packages booktabs and adjustbox) with their notes; only what a person reads."""
    parts = [f"% {one_line(view.title)}", "% needs \\usepackage{booktabs,adjustbox}"]
    parts += [f"% {one_line(name)}: {one_line(value)}" for name, value in view.facts]
    for table in view.short:
        align = "".join("r" if column.right else "l" for column in table.columns)
        parts += [
            "",
            "\\begin{table}[tp]",
            f"\\caption{{{_tex(table.title)} ({_tex(view.title)})}}",
            "\\begin{adjustbox}{max width=\\linewidth}",
            f"\\begin{{tabular}}{{{align}}}",
            "\\toprule",
            " & ".join(_tex(column.title) for column in table.columns) + " \\\\",
            "\\midrule",
            *(" & ".join(_tex(value) for value in row) + " \\\\" for row in table.texts),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{adjustbox}",
        ]
        if table.lines:
            parts.append("\\par\\footnotesize\\raggedright")
            parts.append(" \\\\\n".join(_tex(line) for line in table.lines))
        parts.append("\\end{table}")
    if view.notices:
        items = [f"\\item {_tex(notice)}" for notice in view.notices]
        parts += ["", "\\begin{itemize}", *items, "\\end{itemize}"]
    return "\n".join(parts) + "\n"


_TEX: Final = {
    "\\": "\\textbackslash{}",
    "{": "\\{",
    "}": "\\}",
    "$": "\\$",
    "&": "\\&",
    "#": "\\#",
    "_": "\\_",
    "%": "\\%",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "\\textquotedbl{}",
    "`": "\\textasciigrave{}",
    # A row that starts with a bracket would be read as the optional argument of the line break before it.
    "[": "{[}",
    "]": "{]}",
    DASH: "--",
    "↓": "$\\downarrow$",
    **{mark: f"\\textsuperscript{{{digit}}}" for digit, mark in enumerate(SUPERSCRIPTS)},
}


def _tex(value: str) -> str:
    return "".join(_TEX.get(character, character) for character in one_line(value))


def json_text(view: View) -> str:
    """Return the object of `score --json`; a list of such objects for several folders."""
    value = view.documents[0] if len(view.documents) == 1 else list(view.documents)
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
