"""What an answer cost, from a price file."""

from __future__ import annotations

from pathlib import Path

from sonogauge._errors import BadInput


def read_prices(path: Path | str, model: str) -> tuple[float, float] | None:
    """Return dollars per input and output token of a model from a price file, None if it is not listed.

    The file is JSON or YAML: `{"MODEL": {"input": 2.5, "output": 10}}`, dollars per million tokens; MODEL is the whole
    name or the part after the provider.

    Raises:
        BadInput: no such file, or not of this form.
    """
    import yaml

    file = Path(path)
    if not file.is_file():
        raise BadInput("no such price file", file=file)
    try:
        table = yaml.safe_load(file.read_text("utf-8"))
        found = table.get(model) or table.get(model.partition("/")[2])
        return None if found is None else (float(found["input"]) / 1e6, float(found["output"]) / 1e6)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise BadInput(
            "not a price file", file=file, fix='write {"MODEL": {"input": 2.5, "output": 10}}, dollars per million'
        ) from error
