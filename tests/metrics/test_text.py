"""BLEU-4 and ROUGE-L against pycocoevalcap."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.rouge.rouge import Rouge

from sonogauge.metrics.text import bleu4, bleu_statistics, rouge_l, rouge_l_scores

pytestmark = pytest.mark.part("metrics")

WORD = st.sampled_from(["the", "The", "liver", "is", "normal", "normal.", "no", "stone", "8", "mm,", "肝"])
GAP = st.sampled_from([" ", " ", " ", "  ", "\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.tuples(WORD, GAP), max_size=14))
    return "".join(word + gap for word, gap in words)


CORPUS = st.lists(st.tuples(st.lists(texts(), min_size=1, max_size=3), texts()), min_size=1, max_size=8)


def peer_bleu(references: list[list[str]], hypotheses: list[str]) -> float:
    truth = dict(enumerate(references))
    replies = {index: [text] for index, text in enumerate(hypotheses)}
    with contextlib.redirect_stdout(io.StringIO()):
        value: float = Bleu(4).compute_score(truth, replies)[0][3]
    return value


@given(CORPUS)
@settings(max_examples=150, deadline=None)
def test_bleu_equals_pycocoevalcap(corpus: list[tuple[list[str], str]]) -> None:
    references, hypotheses = [pair[0] for pair in corpus], [pair[1] for pair in corpus]
    statistics = bleu_statistics(references, hypotheses)
    assert float(bleu4(statistics.sum(axis=0))) == pytest.approx(peer_bleu(references, hypotheses), abs=1e-9)
    for row, several, text in zip(statistics, references, hypotheses, strict=True):
        cooked = BleuScorer(text, several).ctest[0]
        assert row[:4].tolist() == cooked["correct"]
        assert row[4:8].tolist() == cooked["guess"]
        assert row[8] == cooked["testlen"]
        assert row[9] == min((abs(length - row[8]), length) for length in cooked["reflen"])[1]


@given(CORPUS)
@settings(max_examples=150, deadline=None)
def test_rouge_equals_pycocoevalcap(corpus: list[tuple[list[str], str]]) -> None:
    references, hypotheses = [pair[0] for pair in corpus], [pair[1] for pair in corpus]
    peer = [Rouge().calc_score([text], several) for several, text in corpus]
    assert rouge_l_scores(references, hypotheses) == pytest.approx(np.array(peer), abs=1e-9)


def test_blocks_and_items_give_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"w{index}" for index in range(30)])
    references = [[" ".join(rng.choice(words, size=12))] for _ in range(1100)]
    hypotheses = [" ".join(rng.choice(words, size=rng.integers(0, 15))) for _ in range(1100)]
    whole = bleu_statistics(references, hypotheses)
    for index in range(0, 1100, 137):
        assert (whole[index] == bleu_statistics([references[index]], [hypotheses[index]])[0]).all()


def test_perfect_text_is_one_to_1e_6_and_an_empty_reply_is_kept() -> None:
    references = [["the liver is normal in size"], ["no stone is seen"]]
    sums = bleu_statistics(references, [several[0] for several in references]).sum(axis=0)
    assert float(bleu4(sums)) == pytest.approx(1.0, abs=1e-6)
    half = bleu_statistics(references, [references[0][0], ""])
    assert half[1].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    assert rouge_l_scores(references, [references[0][0], ""]).tolist() == [1.0, 0.0]
    assert float(rouge_l(np.array([1.0, 2.0]))) == 0.5


def test_empty_corpus_and_missing_references() -> None:
    assert bleu_statistics([], []).shape == (0, 10)
    assert rouge_l_scores([], []).shape == (0,)
    for function in (bleu_statistics, rouge_l_scores):
        with pytest.raises(ValueError, match="no reference"):
            function([["a"], []], ["a", "b"])
        with pytest.raises(ValueError, match="1 reference lists for 2 hypotheses"):
            function([["a"]], ["a", "b"])


def test_rouge_beta_is_a_parameter() -> None:
    precision, recall = 1.0, 0.5
    expected = 2 * precision * recall / (precision + recall)
    assert rouge_l_scores([["a b c d"]], ["a c"], beta=1.0)[0] == pytest.approx(expected)
