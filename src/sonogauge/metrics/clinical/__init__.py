"""Clinical content of ultrasound reports and captions: facts, their comparison, metrics, and who may be measured so."""

from __future__ import annotations

from sonogauge.metrics.clinical.extraction import extract
from sonogauge.metrics.clinical.facts import Fact
from sonogauge.metrics.clinical.lexicon import Lexicon, load_lexicon
from sonogauge.metrics.clinical.matching import Match, match_facts
from sonogauge.metrics.clinical.modality import refuse_modality
from sonogauge.metrics.clinical.statistics import (
    COLUMNS,
    best_reference,
    clinical_counts,
    clinical_item,
    clinical_statistics,
    fact_table,
    item_values,
    missing_sections,
    required_sections,
)

__all__ = [
    "COLUMNS",
    "Fact",
    "Lexicon",
    "Match",
    "best_reference",
    "clinical_counts",
    "clinical_item",
    "clinical_statistics",
    "extract",
    "fact_table",
    "item_values",
    "load_lexicon",
    "match_facts",
    "missing_sections",
    "refuse_modality",
    "required_sections",
]
