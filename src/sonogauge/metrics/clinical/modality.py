"""Which images a metric may speak of: a chest-X-ray metric refuses ultrasound, ours refuse anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sonogauge._errors import BadInput

ULTRASOUND: Final = "ultrasound"
CHEST_XRAY: Final = "chest_xray"
_NAMES: Final = {
    "us": ULTRASOUND,
    "ultrasound": ULTRASOUND,
    "sonography": ULTRASOUND,
    "cxr": CHEST_XRAY,
    "chest x-ray": CHEST_XRAY,
    "chest_xray": CHEST_XRAY,
    "chest_x_ray": CHEST_XRAY,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The modalities a metric was made for, why only these, and what to use elsewhere; `built_in` if we compute it."""

    modalities: tuple[str, ...]
    reason: str
    instead: str
    built_in: bool = False


# The metrics of facts that are computed here.
CLINICAL: Final = (
    "fact_f1",
    "fact_precision",
    "fact_recall",
    "detail_recall",
    "negation_error_rate",
    "side_error_rate",
    "place_error_rate",
    "size_error_rate",
    "grade_error_rate",
    "hallucinated_per_report",
    "missed_per_report",
    "missing_sections_per_report",
)
_INSTEAD: Final = "use fact_precision, fact_recall and fact_f1 with negation_error_rate and side_error_rate"
_LABELS: Final = "its labeller knows the 14 CheXpert findings of chest radiographs only"
_GRAPH: Final = "its extraction model was trained on chest X-ray reports (MIMIC-CXR, CheXpert) only"
SCOPES: Final[dict[str, Scope]] = {
    "chexbert_f1": Scope((CHEST_XRAY,), _LABELS, _INSTEAD),
    "chexbert_similarity": Scope((CHEST_XRAY,), _LABELS, _INSTEAD),
    "chexpert_f1": Scope((CHEST_XRAY,), _LABELS, _INSTEAD),
    "radgraph_f1": Scope((CHEST_XRAY,), _GRAPH, _INSTEAD),
    "radcliq": Scope((CHEST_XRAY,), "it combines CheXbert and RadGraph, both made for chest X-ray reports", _INSTEAD),
    "green": Scope((CHEST_XRAY,), "its judge was trained on errors in chest X-ray reports", _INSTEAD),
    **{
        name: Scope(
            (ULTRASOUND,),
            "its lexicon holds the words of ultrasound reports only",
            "use bleu4 and rouge_l, or a metric made for that modality",
            built_in=True,
        )
        for name in CLINICAL
    },
}


def refuse_modality(metric: str, modality: str = ULTRASOUND) -> None:
    """Raise BadInput if a metric was not made for a modality, or is one that is known but not computed here.

    Metrics without an entry in `SCOPES` speak of any modality.

    >>> refuse_modality("fact_f1"), refuse_modality("bleu4", "mri")
    (None, None)
    >>> refuse_modality("chexbert_f1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sonogauge._errors.BadInput: metric 'chexbert_f1' is not defined for ultrasound: its labeller knows the 14 ...
    """
    scope = SCOPES.get(metric.strip().lower())
    if scope is None:
        return
    asked = _NAMES.get(modality.strip().lower(), modality.strip().lower())
    if asked not in scope.modalities:
        raise BadInput(f"metric '{metric}' is not defined for {asked}: {scope.reason}", fix=scope.instead)
    if not scope.built_in:
        raise BadInput(f"metric '{metric}' is not computed by this toolkit", fix="score it with its own package")
