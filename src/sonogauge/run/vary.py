"""Varied questions: the same items asked another way, under a `variant` of their own.

A variant's name says all there is to know, so a reply can be read again from its key alone
(`sonogauge.answers.variants`).

| `--vary`                 | variant          | what changes                                                      |
|--------------------------|------------------|-------------------------------------------------------------------|
| `no_image`               | `no_image`       | the question goes without its images                              |
| `blank_image`            | `blank_image`    | mid-grey images of the same size                                  |
| `no_image=N`             | `no_image`       | the same in N epochs; `blank_image=N` too                         |
| `no_image+circular`      | `no_image+…`     | without images and rotated; `blank_image+circular` too            |
| `prompt=VERSION`         | `prompt=VERSION` | another version of the prompts                                    |
| `anatomy=off`            | `anatomy=off`    | a neutral role line; the anatomy becomes "examined region"        |
| `shuffle`, `shuffle=SEED`| the same         | the options in another order                                      |
| `circular`               | `circular=1`, …  | all rotations of the options; the unvaried question is rotation 0 |
| `repeat=N`               | `repeat`         | N epochs                                                          |
| `perturb=NAME:LEVEL`     | the same         | see `perturb`                                                     |
| `--answer box`, `point`  | `answer=box`, …  | places asked as a box or point; `box:pixel` etc. set the unit     |
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS
from sonogauge.answers.variants import BLIND, LISTED, answer_of, exists, without_blind
from sonogauge.benchmarks.prompts import ANSWER_FORMAT, load_prompt, render
from sonogauge.items import Item
from sonogauge.run.perturb import check_level

NEUTRAL_ROLE: Final = "You are a clinician reading a medical image."
NEUTRAL_ANATOMY: Final = "examined region"
UNITS: Final = ("mille", "unit", "pixel")
_PLAIN: Final = ("no_image", "blank_image", "circular", "shuffle")
_KINDS: Final = (
    "no_image, blank_image (also =N or +circular), prompt=VERSION, anatomy=off, shuffle, circular, repeat=N, "
    "perturb=gain|speckle|crop|downscale|jpeg:LEVEL, answer=box|point"
)


def check_variation(text: str) -> str:
    """Return a `--vary` kind in its one spelling; raise BadInput if there is none like it.

    >>> check_variation("shuffle=0"), check_variation("answer=box"), check_variation("perturb=gain:6.0")
    ('shuffle', 'answer=box', 'perturb=gain:6')
    """
    kind, equals, value = text.partition("=")
    if text in _PLAIN or text == "anatomy=off" or (kind == "prompt" and value):
        return text
    if kind in BLIND and value.isascii() and value.isdigit() and int(value) >= 2:
        return f"{kind}={int(value)}"
    if without_blind(text) == "circular":
        return text
    if kind == "shuffle" and value.isascii() and value.isdigit():
        return f"shuffle={int(value)}" if int(value) else "shuffle"
    if kind == "repeat" and value.isascii() and value.isdigit() and int(value) >= 2:
        return f"repeat={int(value)}"
    if kind == "perturb" and equals:
        name, level = check_level(value)
        return f"perturb={name}:{level:g}"
    if kind == "answer":
        form, _, unit = value.partition(":")
        if form in ("box", "point") and unit in ("", *UNITS):
            return f"answer={form}:{unit}" if unit not in ("", "mille") else f"answer={form}"
    raise BadInput(f"no variation '{text}'", fix=f"use one of {_KINDS}")


def variants(variation: str, item: Item) -> Iterator[tuple[str, int]]:
    """Yield the (variant, epoch) pairs of an item under a variation; none where it changes nothing of the item.

    variation: as `check_variation` returns it, or empty for the unvaried question.
    """
    kind, _, value = variation.partition("=")
    listed = item.answer.form in LISTED and len(item.answer.options) > 1
    if without_blind(variation) == "circular" and variation != "circular":
        turns = range(1, len(item.answer.options)) if listed and item.images else ()
        yield from ((f"{variation}={turn}", 0) for turn in turns)
    elif kind in BLIND and value:
        yield from ((kind, epoch) for epoch in range(int(value)) if item.images)
    elif kind == "repeat":
        yield from (("repeat", epoch) for epoch in range(int(value)))
    elif kind == "circular":
        yield from ((f"circular={turn}", 0) for turn in range(1, len(item.answer.options)) if listed)
    elif exists(item.answer, variation) and (item.images or kind not in ("no_image", "blank_image", "perturb")):
        yield variation, 0


def question_of(item: Item, variant: str, prompts: Path | str | None = None) -> str:
    """Return the question of a variant; the item's own where the variant does not touch the text.

    prompts: folder of prompt versions, in place of the one that ships with the benchmark.

    Raises:
        BadInput: the prompt, or that version of it, is not there.
    """
    kind, _, value = without_blind(variant).partition("=")
    if kind not in ("prompt", "anatomy", "shuffle", "circular", "answer"):
        return item.question
    bench, slash, rest = item.prompt_id.partition("/")
    name, at, version = rest.rpartition("@")
    if not (slash and at):
        raise BadInput(f"item {item.item_id} names no prompt, so it cannot be asked as '{variant}'", field="prompt_id")
    template = load_prompt(bench, name, value if kind == "prompt" else version, prompts)
    variables = dict(item.variables)
    if kind == "anatomy":
        # The role line names the anatomy by specification, so it goes as a whole.
        template = "\n".join([NEUTRAL_ROLE, *template.split("\n")[1:]])
        variables["anatomy"] = NEUTRAL_ANATOMY
    answer = answer_of(item.answer, item.item_id, variant)
    return render(template, {**variables, ANSWER_FORMAT: FORMS.load(answer.form).ask(answer)})
