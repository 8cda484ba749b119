"""Short texts that are right word for word: what can be said of an open answer without a judge."""

from __future__ import annotations

from collections.abc import Iterable

from sonogauge.answers.normalise import fold
from sonogauge.metrics.base import Array, metric
from sonogauge.metrics.choice import hit_share, hits_gradient

_ARTICLES = ("a ", "an ", "the ")


def matches_any(text: str, references: Iterable[str]) -> bool:
    """Tell whether a text is one of the accepted ones: whole, whatever the case, edges and leading article.

    >>> matches_any("The nevus.", ["mole", "nevus"]), matches_any("not a nevus", ["nevus"])
    (True, False)
    """
    return _plain(text) in {_plain(one) for one in references}


def _plain(text: str) -> str:
    words = fold(text).strip(" .,;:!\"'")
    return next((words.removeprefix(article) for article in _ARTICLES if words.startswith(article)), words)


@metric(
    "text_match",
    statistic="matches",
    direction="up",
    identity=1.0,
    interval="proportion",
    gradient=hits_gradient,
    source="MedLesionVQA specification, section 6: normalised string or synonym match",
)
def text_match(sums: Array) -> Array:
    """Share of texts that are an accepted one word for word; a lower bound of what a judge would accept.

    sums: (..., 2) = [matches, n].
    """
    return hit_share(sums)
