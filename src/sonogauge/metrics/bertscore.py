"""BERTScore with an encoder that lies on this disk; nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.metrics.base import Array, metric, ratio
from sonogauge.metrics.choice import hits_gradient


@lru_cache(maxsize=2)
def _scorer(folder: str, layer: int) -> Any:
    try:
        from bert_score import BERTScorer
    except ImportError as error:
        raise BadInput("BERTScore needs the extra [bertscore]", fix="pip install 'sonogauge[bertscore]'") from error
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise BadInput("no encoder in it (config.json)", file=path, fix="give the folder of a downloaded encoder")
    return BERTScorer(model_type=str(path), num_layers=layer, idf=False, rescale_with_baseline=False, device="cpu")


def bertscore_scores(
    references: Sequence[Sequence[str]], hypotheses: Sequence[str], folder: Path | str, layer: int
) -> Array:
    """Return F1 of BERTScore of each pair, shape (n,): the best over its references, an empty hypothesis 0.

    folder: a local encoder in the format of transformers. layer: whose output is compared, from 1.
    No idf weights, no baseline rescaling.

    Raises:
        BadInput: the extra is missing, or the folder holds no encoder.
    """
    scores = np.zeros(len(hypotheses))
    said = [position for position, text in enumerate(hypotheses) if text.strip()]
    if not said:
        return scores
    owners = [position for position in said for _ in references[position]]
    _, _, found = _scorer(str(folder), layer).score(
        [hypotheses[position] for position in owners],
        [text for position in said for text in references[position]],
    )
    np.maximum.at(scores, np.array(owners, dtype=np.int64), np.clip(found.numpy().astype(np.float64), 0.0, 1.0))
    return scores


@metric(
    "bertscore",
    statistic="bertscore",
    direction="up",
    identity=1.0,
    interval="studentised",
    gradient=hits_gradient,
    source="Zhang et al. 2020, arXiv:1904.09675",
    facts="failures:0,idf:no,rescale:no",
)
def bertscore(sums: Array) -> Array:
    """Mean F1 of BERTScore over items; sums: (..., 2) = [sum of scores, n].

    >>> float(bertscore(np.array([1.5, 2.0])))
    0.75
    """
    sums = np.asarray(sums, dtype=np.float64)
    return ratio(sums[..., 0], sums[..., 1])
