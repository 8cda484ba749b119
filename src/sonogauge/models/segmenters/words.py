"""From a phrase to a category: the same words, however written, by name or alias."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def canonical(text: str) -> str:
    """Return lower-case words joined by single spaces.

    >>> canonical("Fetal_Head ")
    'fetal head'
    """
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def find_category(phrase: str, categories: Mapping[str, Sequence[str]]) -> str | None:
    """Return the category a phrase names: exactly by name or alias, else by the longest of them inside the phrase.

    categories: name to its aliases. A plural s at the end of a word is the same word. None for an unknown phrase and
    where two categories fit equally well.

    >>> find_category("the two dark lesions", {"lesion": ["mass"], "tube": []}), find_category("bone", {"tube": []})
    ('lesion', None)
    """
    words = _singular(canonical(phrase))
    found: dict[str, int] = {}
    for name, aliases in categories.items():
        for alias in (name, *aliases):
            form = _singular(canonical(alias))
            if not form:
                continue
            if form == words:
                return name
            if f" {form} " in f" {words} ":
                found[name] = max(found.get(name, 0), len(form))
    longest = [name for name, length in found.items() if length == max(found.values())]
    return longest[0] if len(longest) == 1 else None


def _singular(text: str) -> str:
    return " ".join(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in text.split()
    )
