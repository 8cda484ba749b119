"""The reference of commands, made from the command line itself: a hook of mkdocs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

MARKER: Final = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference of all commands in the place of the marker."""
    return markdown.replace(MARKER, reference()) if MARKER in markdown else markdown


def reference() -> str:
    """Return a section for each command: what it does, an example, its arguments and options."""
    import typer

    from sonogauge.cli import app

    return "\n".join(
        line for name, command in every_command(typer.main.get_command(app)) for line in _section(name, command)
    )


def every_command(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group and of the groups in it, with their whole names ("review export")."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, f"{before}{name} ")
        else:
            yield before + name, command


def _section(name: str, command: Any) -> Iterator[str]:
    yield f"## sonogauge {name}\n"
    examples = []
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        if text.startswith("Example: "):
            examples.append(text.removeprefix("Example: "))
        elif text:
            yield f"{text}\n"
    if examples:
        yield "```sh\n" + "\n".join(examples) + "\n```\n"
    yield "| | | default |\n|---|---|---|"
    for one in command.params:
        if getattr(one, "hidden", False) or one.name == "help":
            continue
        yield f"| {_name(one)} | {_cell(one.help or '')} | {_default(one)} |"
    yield ""


def _name(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{(one.metavar or one.name).upper().strip('[]')}`"
    return " ".join(f"`{option}`" for option in (*one.opts, *one.secondary_opts))


def _default(one: Any) -> str:
    if one.required:
        return "needed"
    value = one.default
    if value is None or value is False or value == [] or callable(value):
        return ""
    return "on" if value is True else f"`{_cell(str(value))}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("[", "\\[")
