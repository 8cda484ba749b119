"""ROUGE-L, BLEU with one added on every order, and METEOR with exact matches, of normalised tokens of one pair."""

from __future__ import annotations

import math
from collections import Counter

from sonogauge.benchmarks.ultrag.semantics import tokens


def rouge_l(reference: str, predicted: str) -> float:
    """Return the F1 of the longest common subsequence; either side empty gives 0.

    >>> rouge_l("the nodule is upper left", "nodule upper left")
    0.75
    """
    from rapidfuzz.distance import LCSseq

    theirs, ours = tokens(reference), tokens(predicted)
    shared = LCSseq.similarity(theirs, ours)
    return 2 * shared / (len(theirs) + len(ours)) if shared else 0.0


def bleu(reference: str, predicted: str) -> list[float]:
    """Return cumulative BLEU-1 to BLEU-4: one added to matches and possible n-grams of every order.

    The brevity penalty is exp(1 - reference/prediction length) unless the prediction is longer; an empty one gives 0.

    >>> [round(one, 3) for one in bleu("a b c d", "a b c d")]
    [1.0, 1.0, 1.0, 1.0]
    """
    theirs, ours = tokens(reference), tokens(predicted)
    if not ours or not theirs:
        return [0.0] * 4
    penalty = 1.0 if len(ours) > len(theirs) else math.exp(1 - len(theirs) / len(ours))
    logs, found = 0.0, []
    for order in range(1, 5):
        mine, yours = _grams(ours, order), _grams(theirs, order)
        logs += math.log((sum((mine & yours).values()) + 1) / (sum(mine.values()) + 1))
        found.append(penalty * math.exp(logs / order))
    return found


def _grams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


def meteor(reference: str, predicted: str) -> float:
    """Return F (1 - 0.5 (chunks/matches)^3) with F = 10PR/(R + 9P), over exact matches.

    Each predicted word is matched to the first free equal word of the reference, preferring the one that continues
    the chunk before it.

    >>> round(meteor("a b c d", "a b c d"), 4)
    0.9922
    """
    theirs, ours = tokens(reference), tokens(predicted)
    free: dict[str, list[int]] = {}
    for place, word in enumerate(theirs):
        free.setdefault(word, []).append(place)
    matches = chunks = 0
    last: tuple[int, int] | None = None
    for place, word in enumerate(ours):
        places = free.get(word)
        if not places:
            continue
        goes_on = last is not None and last[0] == place - 1 and last[1] + 1 in places
        chosen = last[1] + 1 if goes_on and last is not None else places[0]
        places.remove(chosen)
        matches += 1
        chunks += not goes_on
        last = (place, chosen)
    if not matches:
        return 0.0
    precision, recall = matches / len(ours), matches / len(theirs)
    mean = 10 * precision * recall / (recall + 9 * precision)
    return mean * (1 - 0.5 * (chunks / matches) ** 3)
