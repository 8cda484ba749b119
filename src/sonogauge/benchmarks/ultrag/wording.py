"""What a question or report must not say, as patterns on normalised text: shared by the filter and the audit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from sonogauge.benchmarks.ultrag.semantics import labels
from sonogauge.benchmarks.ultrag.vocabulary import Category, normalise

DIAGNOSIS: Final = re.compile(
    r"\b(?:diagnos\w*|biops\w*|carcinoma\w*|adenoma\w*|fibroadenoma\w*|cancer\w*|metasta\w*|stage|staging|staged|"
    r"tnm|bi ?rads|ti ?rads|o ?rads|risk (?:score|category|stratification)|treatment|therapy|surgery|surgical|"
    r"follow up|recommend\w*|management|histolog\w*|subtype\w*)\b"
)
UNITS: Final = re.compile(
    r"\b\d+(?: \d+)? ?(?:mm|cm|ml|millimet\w*|centimet\w*|millilit\w*)\b|\b(?:millimet|centimet)\w*\b"
)
LATERALITY: Final = re.compile(
    r"\b(?:left|right) (?:breast|lobe|kidney|ovary|ovarian|thyroid|lung|side of the (?:patient|body)|sided)\b|"
    r"\b(?:bilateral|ipsilateral|contralateral|unilateral)\b"
)
METADATA: Final = re.compile(
    r"\b(?:annotat\w*|data ?sets?|file ?names?|files?|mask ids?|metadata|(?:train|test|training) (?:set|split)|splits?|"
    r"cases?)\b"
)
WHOLE_EXAM: Final = re.compile(
    r"\b(?:entire|whole|complete|full) (?:exam\w*|study|organ)\b.{0,40}\b(?:normal|unremarkable)\b"
)


def unsupported(text: str, masks: Iterable[dict[str, Any]], category: Category) -> list[str]:
    """Return the regions and labels that a text names and its cited masks do not carry.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> unsupported("A malignant nodule.", [], load_category("Thyroid"))
    ['malignant', 'thyroid nodule']
    """
    cited = list(masks)
    regions = {str(one["category"]) for one in cited}
    carried = {str(one["pathology_label"]) for one in cited}
    said = labels(text) - carried
    return sorted((set(category.named(text)) - regions) | said)


def forbidden(text: str) -> list[str]:
    """Return which of the forbidden kinds of claim a text makes, in a fixed order.

    >>> forbidden("A 3 mm nodule in the left lobe")
    ['physical measurement', 'laterality']
    """
    plain = normalise(text)
    kinds = (
        ("diagnostic claim", DIAGNOSIS),
        ("physical measurement", UNITS),
        ("laterality", LATERALITY),
        ("metadata", METADATA),
    )
    return [name for name, pattern in kinds if pattern.search(plain)]
