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
# Parts and signs of organs that no mask of the benchmark shows by itself.
SUBSTRUCTURE: Final = re.compile(
    r"\b(?:lobes?|lobules?|isthmus|capsules?|cortex|medulla|hilum|hilar|septa|septums?|septations?|halos?|pedicles?|"
    r"(?:micro)?calcifications?|calyx|calyces|parenchyma|papilla\w*|leaflets?|intima|media|ducts?|ductal)\b"
)


def aliases_used(text: str, category: Category) -> list[str]:
    """Return the other names that a text uses for a region in place of its canonical one; a plural is none.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> aliases_used("A mass beside two breast lesions.", load_category("Breast"))
    ['mass']
    """
    plain = normalise(text)
    found = [(plain[start:end], normalise(name)) for start, end, name in category.mentions(plain)]
    return sorted({said for said, name in found if said not in (name, f"{name}s")})


def substructures(text: str, category: Category) -> list[str]:
    """Return the parts of an organ that a text speaks of and that are no region of its category.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> substructures("The thyroid lobe and its isthmus.", load_category("Thyroid"))
    ['isthmus']
    """
    plain = normalise(text)
    regions = category.mentions(plain)
    hits = list(SUBSTRUCTURE.finditer(plain))
    return sorted(
        {hit[0] for hit in hits if all(hit.end() <= start or hit.start() >= end for start, end, _ in regions)}
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
