"""What is known of models beside their answers: access, size, family, what they were adapted from.

A packaged models.yaml holds the models of published tables; a file of the user adds to it or overrides single facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput

FILE: Final = "models.yaml"
# Facts that models can be grouped by.
GROUPINGS: Final = ("domain", "access", "family", "ultrasound")
UNKNOWN: Final = "unknown"


class ModelCard(BaseModel):
    """Facts of one model; None = not known.

    aliases: other names of it. access: open = weights can be downloaded. size_b: billions of parameters.
    base_model: name of the model it was adapted from. ultrasound: whether ultrasound is stated to be in its training
    data. date: month of the first release. independence: its relation to the makers of a benchmark. contamination:
    reasons to think that it has seen a benchmark's data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    aliases: tuple[str, ...] = ()
    access: Literal["open", "closed"] | None = None
    family: str | None = None
    size_b: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    base_model: str | None = None
    domain: Literal["general", "medical", "ultrasound"] | None = None
    ultrasound: Literal["yes", "no"] | None = None
    date: Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))] = Field(
        default=None, pattern=r"^\d{4}(-\d{2}){0,2}$"
    )
    independence: str | None = None
    contamination: tuple[str, ...] = ()


class Cards(Mapping[str, ModelCard]):
    """Cards by name; a name is found however it is spelled ("qwen/Qwen2.5-VL-7B-Instruct").

    Letters and digits alone count, and what stands before the last slash (the provider) does not; nothing is guessed.
    """

    def __init__(self, cards: Mapping[str, ModelCard]) -> None:
        self._cards = dict(cards)
        self._names: dict[str, str] = {}
        for name, card in cards.items():
            for one in (name, *card.aliases):
                owner = self._names.setdefault(folded(one), name)
                if owner != name:
                    raise BadInput(f"'{one}' names both '{owner}' and '{name}'", field="aliases")

    def __getitem__(self, name: str) -> ModelCard:
        return self._cards[self._names[folded(name)]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)

    def of(self, name: str) -> ModelCard:
        """Return the card of a model; an empty one where nothing is known."""
        return self[name] if folded(name) in self._names else ModelCard()

    def same(self, one: str, other: str) -> bool:
        """Return whether two names mean the same model."""
        return self._names.get(folded(one), folded(one)) == self._names.get(folded(other), folded(other))


def folded(name: str) -> str:
    """Return the key of a model's name: letters and digits of its last part, in lower case.

    >>> folded("openai-api/Qwen/Qwen2.5-VL-7B-Instruct") == folded("Qwen-2.5-VL-7B-Instruct")
    True
    """
    return re.sub(r"[\W_]+", "", name.rstrip("/").rpartition("/")[2].casefold())


def load_cards(file: Path | str | None = None) -> Cards:
    """Load the packaged cards, with those of a user's file over them, fact by fact.

    Raises:
        BadInput: no such file, not YAML, an unknown field or value; the message names model and field.
    """
    packaged = yaml.safe_load((files("sonogauge.models") / FILE).read_text("utf-8"))["models"]
    raw: dict[str, dict[str, Any]] = {name: dict(facts) for name, facts in packaged.items()}
    if file is not None:
        names = {folded(one): name for name, facts in raw.items() for one in (name, *facts.get("aliases", ()))}
        for name, facts in _read(Path(file)).items():
            known = names.get(folded(name), name)
            raw[known] = {**raw.get(known, {}), **facts}
    cards = {}
    for name, facts in raw.items():
        try:
            cards[name] = ModelCard.model_validate(facts)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            fix = "known fields: " + ", ".join(ModelCard.model_fields)
            raise BadInput(f"model '{name}': {first['msg']}", file=file, field=field, fix=fix) from error
    return Cards(cards)


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", file=file) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"not YAML ({error})", file=file) from error
    models = found.get("models") if isinstance(found, dict) else None
    if not isinstance(models, dict) or not all(isinstance(facts, dict) for facts in models.values()):
        raise BadInput("no models in it", file=file, field="models", fix="write models: {NAME: {family: …, size_b: …}}")
    return {str(name): facts for name, facts in models.items()}


def base_pairs(names: Iterable[str], cards: Cards) -> list[tuple[str, str]]:
    """Return (adapted, base) for each adapted model among `names` whose base is among them too.

    >>> base_pairs(["Lingshu-7B", "Qwen-2.5-VL-7B-Instruct", "GPT-4o"], load_cards())
    [('Lingshu-7B', 'Qwen-2.5-VL-7B-Instruct')]
    """
    present = list(names)
    pairs = []
    for name in present:
        base = cards.of(name).base_model
        found = [one for one in present if base is not None and one != name and cards.same(one, base)]
        pairs += [(name, one) for one in found]
    return pairs


def group_of(name: str, grouping: str, cards: Cards) -> str:
    """Return the group of a model by one of GROUPINGS; "unknown" where the fact is not known.

    Raises:
        BadInput: another grouping.
    """
    if grouping not in GROUPINGS:
        raise BadInput(f"models cannot be grouped by '{grouping}'", fix="use " + ", ".join(GROUPINGS))
    return getattr(cards.of(name), grouping) or UNKNOWN
