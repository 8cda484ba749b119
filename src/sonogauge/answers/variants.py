"""What a variant of a question accepts, from its name alone, so that a stored reply can be read again.

Names: `shuffle`, `shuffle=SEED`, `circular=TURN`, `answer=box`, `answer=point` (with `:unit` or `:pixel` for another
unit than thousandths). Every other name leaves the answer as it is; `no_image+` or `blank_image+` before one of them
takes the image away as well.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from sonogauge.answers import FORMS
from sonogauge.answers.base import AnswerSpec, Parsed

BLIND: Final = ("no_image", "blank_image")
# Forms whose options stand in an order.
LISTED: Final = ("choice", "multi_choice", "ranking")


def without_blind(variant: str) -> str:
    """Return what a variant changes beside the image.

    >>> without_blind("no_image+circular=1"), without_blind("shuffle"), without_blind("no_image")
    ('circular=1', 'shuffle', 'no_image')
    """
    first, _, rest = variant.partition("+")
    return rest if rest and first in BLIND else variant


def exists(spec: AnswerSpec, variant: str) -> bool:
    """Tell whether a question can be asked in a variant: one with two options has one rotation besides its own.

    >>> spec = AnswerSpec("choice", ("cyst", "mass"))
    >>> exists(spec, "circular=1"), exists(spec, "circular=2"), exists(spec, "no_image"), exists(spec, "answer=box")
    (True, False, True, False)
    """
    kind, _, value = without_blind(variant).partition("=")
    options = len(spec.options) if spec.form in LISTED else 0
    if kind == "circular" and value.isdecimal():
        return int(value) < options
    if kind == "shuffle":
        return options > 1
    return kind != "answer" or spec.form == "place"


def answer_of(spec: AnswerSpec, item_id: str, variant: str) -> AnswerSpec:
    """Return what a variant of an item accepts: the options in the order shown, or another form.

    >>> answer_of(AnswerSpec("choice", ("a", "b", "c")), "x", "circular=1").options
    ('b', 'c', 'a')
    """
    kind, _, value = without_blind(variant).partition("=")
    if kind == "answer":
        form, _, unit = value.partition(":")
        return AnswerSpec(form, unit=unit or "mille")
    if kind == "circular":
        turn = int(value) % max(1, len(spec.options))
        return replace(spec, options=spec.options[turn:] + spec.options[:turn])
    if kind == "shuffle":
        options = list(spec.options)
        Random(f"{value or 0}/{item_id}").shuffle(options)
        return replace(spec, options=tuple(options))
    return spec


def read_varied(text: str, spec: AnswerSpec, item_id: str, variant: str, size: tuple[int, int] | None = None) -> Parsed:
    """Parse a reply to a variant strictly, as a value of the item's own form.

    A letter means the option that stood there; a box or point becomes its place.

    spec: of the item. size: (width, height) of the image as sent, needed for boxes and points in pixels.

    >>> spec = AnswerSpec("choice", ("cyst", "mass"), ("A", "B"))
    >>> read_varied("A", spec, "x", ""), read_varied("A", spec, "x", "circular=1")
    (Parsed(value='cyst', reason=None), Parsed(value='mass', reason=None))
    >>> read_varied("[0, 0, 100, 100]", AnswerSpec("place"), "x", "answer=box").value
    'upper left'
    """
    answer = answer_of(spec, item_id, variant)
    parsed = FORMS.load(answer.form).parse(text, answer)
    if answer.form not in ("box", "point") or not parsed.valid:
        return parsed
    from sonogauge.answers.box import place_of_value

    place = place_of_value(parsed.value, answer.unit, size)
    return Parsed(None, "range") if place is None else Parsed(place)
