"""Our own words for the free strings of foreign rows, so that no `nan`, diagnosis or junk reaches a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario

_MISSING: Final = frozenset({"", "nan", "none", "null", "n/a", "na", "unknown"})
_GENERIC_POINT: Final = frozenset(
    {"keypoint", "keypoints", "key point", "key points", "point", "points", "landmark", "target", "structure"}
)
_LONGEST: Final = 80

# Words that give an answer away when they stand where a body part or a structure is named.
DIAGNOSIS: Final = re.compile(
    r"malignan|benign|cancer|carcinom|tumou?r|lesion|nodule|cyst|infect|abnormal|\bnormal|steato|fatty|arthrit|\bOA\b|patholog",
    re.IGNORECASE,
)


def is_missing(value: object) -> bool:
    """Tell whether a value says nothing: None, nan, an empty text or one of the words for it.

    >>> is_missing(" NaN "), is_missing(float("nan")), is_missing("breast")
    (True, True, False)
    """
    return value is None or str(value).strip().casefold() in _MISSING


def map_anatomy(raw: str | None, scenario: Scenario, spec: BenchmarkSpec) -> str:
    """Return the word of the vocabulary `parameters.anatomies` that a row's anatomy stands for.

    The whole words of the raw string decide, the longest phrase first; a string that names no word or several gets the
    anatomy of the scenario, as do all rows of a scenario marked `anatomy_fixed` (its prompt speaks of one body part).
    The result is a word of the vocabulary or, for a scenario without an anatomy of its own, "".

    >>> from sonogauge.benchmarks.spec import load_spec
    >>> spec = load_spec("u2bench")
    >>> scenario = spec.scenario("LL", "64")
    >>> [map_anatomy(raw, scenario, spec) for raw in ("nan", "malignant breast cancer", "thyroid_left")]
    ['breast', 'breast', 'thyroid']
    """
    if scenario.extra.get("anatomy_fixed") or is_missing(raw):
        return scenario.anatomy
    vocabulary: Mapping[str, Sequence[str]] = spec.parameters.get("anatomies", {})
    words, pattern = _phrases(tuple((word, tuple(aliases)) for word, aliases in vocabulary.items()))
    named = {words[hit] for hit in pattern.findall(_plain(str(raw)))}
    return named.pop() if len(named) == 1 else scenario.anatomy


def map_structure(raw: str | None, scenario: Scenario) -> str:
    """Return the words for the key of a box: those of the scenario's `keys`, else the key itself where it can be read.

    A missing, unreadable or telling key gets the structure of the scenario.

    >>> from sonogauge.benchmarks.spec import load_spec
    >>> scenario = load_spec("u2bench").scenario("OD", "31")
    >>> [map_structure(raw, scenario) for raw in ("head_circumference", "nan", "skull_base", "[malignant")]
    ['fetal head', 'fetal head', 'skull base', 'fetal head']
    """
    return _known(raw, scenario) or _readable(raw) or scenario.structure


def map_keypoint(raw: str | None, scenario: Scenario) -> str | None:
    """Return the words for the name of a key point, or None: without a name there is no question to ask.

    >>> from sonogauge.benchmarks.spec import load_spec
    >>> scenario = load_spec("u2bench").scenario("KD", "48")
    >>> [map_keypoint(raw, scenario) for raw in ("anterior mitral hinge", "keypoint", "nan")]
    ['hinge point of the anterior mitral leaflet', None, None]
    """
    words = _known(raw, scenario) or _readable(raw)
    return None if words is None or words.casefold() in _GENERIC_POINT else words


@lru_cache(maxsize=16)
def _phrases(vocabulary: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return phrase -> word and a pattern of all phrases, the longest first; no phrases = a pattern without a match."""
    words = {_plain(phrase): word for word, aliases in vocabulary for phrase in (word, *aliases)}
    phrases = "|".join(re.escape(phrase) for phrase in sorted(words, key=lambda one: (-len(one), one)))
    return words, re.compile(rf"\b(?:{phrases})\b" if phrases else r"(?!)")


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.casefold()).split())


def _known(raw: str | None, scenario: Scenario) -> str | None:
    keys = scenario.extra.get("keys")
    if raw is None or not isinstance(keys, Mapping):
        return None
    return next((str(words) for key, words in keys.items() if _plain(str(key)) == _plain(raw)), None)


def _readable(raw: str | None) -> str | None:
    if raw is None or is_missing(raw):
        return None
    words = " ".join(raw.replace("_", " ").split())
    if len(words) > _LONGEST or DIAGNOSIS.search(words) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9 ()'-]*", words):
        return None
    return None if is_missing(words) else words
