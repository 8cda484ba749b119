"""Corpus BLEU-4 and ROUGE-L against pycocoevalcap on report-like pairs, in one process.

Both sides use one thread; the times are CPU seconds, the best of three runs each, so a busy machine does not decide.

usage: python perf/text.py [--pairs 20000]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sonogauge.metrics.text import bleu4, bleu_statistics, rouge_l_scores

BLEU_GOAL, ROUGE_GOAL, TOLERANCE = 5.0, 20.0, 1e-9


def make_pairs(pairs: int, seed: int = 0) -> tuple[list[list[str]], list[str]]:
    """Return references and hypotheses of 20 to 80 words, Zipf-like vocabulary of 3,000, two thirds of words shared."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{index}" for index in range(3000)])
    chances = 1.0 / np.arange(1, 3001)
    chances /= chances.sum()
    references, hypotheses = [], []
    for length in rng.integers(20, 81, size=pairs):
        reference = rng.choice(words, size=length, p=chances)
        noise = rng.choice(words, size=length, p=chances)
        hypothesis = np.where(rng.random(length) < 2 / 3, reference, noise)[: max(1, length - int(rng.integers(0, 10)))]
        references.append([" ".join(reference)])
        hypotheses.append(" ".join(hypothesis))
    return references, hypotheses


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the shortest of `repeats` CPU times and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def main() -> int:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.rouge.rouge import Rouge

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    pairs = parser.parse_args().pairs
    references, hypotheses = make_pairs(pairs)
    truth = dict(enumerate(references))
    replies = {index: [text] for index, text in enumerate(hypotheses)}

    ours_seconds, ours = timed(lambda: float(bleu4(bleu_statistics(references, hypotheses).sum(axis=0))))
    with contextlib.redirect_stdout(io.StringIO()):
        peer_seconds, peer = timed(lambda: Bleu(4).compute_score(truth, replies)[0][3])
    bleu = peer_seconds / ours_seconds
    print(
        f"BLEU-4, {pairs} pairs: {ours_seconds:.2f} s, pycocoevalcap {peer_seconds:.2f} s: "
        f"{bleu:.1f}x (goal {BLEU_GOAL:g}x)"
    )
    bleu_gap = abs(ours - peer)

    # ROUGE of the peer grows with the pairs alone: a tenth of them is timed and scaled.
    some = max(1, pairs // 10)
    ours_seconds, ours = timed(lambda: rouge_l_scores(references, hypotheses))
    peer_seconds, peer = timed(
        lambda: Rouge().compute_score({i: truth[i] for i in range(some)}, {i: replies[i] for i in range(some)})[1]
    )
    peer_seconds *= pairs / some
    rouge = peer_seconds / ours_seconds
    print(
        f"ROUGE-L, {pairs} pairs: {ours_seconds:.2f} s, pycocoevalcap {peer_seconds:.1f} s "
        f"(extrapolated from {some}): {rouge:.1f}x (goal {ROUGE_GOAL:g}x)"
    )
    rouge_gap = float(np.abs(ours[:some] - peer).max())
    gap = max(bleu_gap, rouge_gap, 1e-300)
    print(f"largest difference: BLEU-4 {bleu_gap:.1e}, ROUGE-L {rouge_gap:.1e} (goal {TOLERANCE:g})")
    worst = min(bleu / BLEU_GOAL, rouge / ROUGE_GOAL, TOLERANCE / gap)
    print(f"ratio text: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
