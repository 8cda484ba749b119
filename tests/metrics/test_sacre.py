"""BLEU as sacreBLEU computes it, against sacreBLEU; ROUGE-L with beta 1 against the harmonic mean."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.metrics.sacre import bleu_sacre, sacre_statistics
from sonogauge.metrics.text import rouge_l_scores

pytestmark = pytest.mark.part("metrics")

WORDS = ["The", "liver", "is", "normal", ".", "3.5", "mm,", "cyst", "(left)", "no", "a"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_corpus_bleu_equals_sacrebleu(pairs: list[tuple[str, str]]) -> None:
    references, hypotheses = [a for a, _ in pairs], [b for _, b in pairs]
    ours = float(bleu_sacre(sacre_statistics([[one] for one in references], hypotheses).sum(axis=0)))
    oracle = sacrebleu.BLEU().corpus_score(hypotheses, [references]).score / 100
    assert ours == pytest.approx(oracle, abs=1e-9)


def test_several_references_and_the_brevity_penalty() -> None:
    references = [["The liver is normal in size.", "Liver normal."], ["No focal lesion is seen here.", "no lesion"]]
    hypotheses = ["The liver is normal.", "No focal lesion is seen."]
    ours = float(bleu_sacre(sacre_statistics(references, hypotheses).sum(axis=0)))
    oracle = sacrebleu.BLEU().corpus_score(hypotheses, [list(one) for one in zip(*references, strict=True)]).score
    assert ours == pytest.approx(oracle / 100, abs=1e-9)


def test_nothing_in_common_is_zero() -> None:
    assert float(bleu_sacre(sacre_statistics([["a b c d e"]], ["v w x y z"]).sum(axis=0))) == 0.0
    assert float(bleu_sacre(np.zeros(10))) == 0.0


def test_rouge_beta_1_is_the_harmonic_mean() -> None:
    score = float(rouge_l_scores([["a b c d"]], ["a c"], beta=1.0)[0])
    assert score == pytest.approx(2 * 1.0 * 0.5 / 1.5, abs=1e-12)
