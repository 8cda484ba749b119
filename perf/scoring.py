"""A million choice replies, most of them distinct and some 100 characters long, parsed and scored with intervals.

usage: python perf/scoring.py [--replies 1000000]

A table of replies is written as Parquet, then `score_table` reads, parses, counts and estimates: two processes in all,
this one and one that parses. Time and memory are shown at a hundredth, a tenth and all of the replies; the memory
that grows is that of the groups, not of the replies. Peaks are measured in a process of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _memory import Watch, peak_memory

GOAL_SECONDS, GOAL_DISTINCT, GOAL_LENGTH = 30.0, 0.5, 100
# Peak memory may grow by this factor from a tenth of the replies to all of them, groups being equal.
GOAL_GROWTH = 1.5
GROUPS = 5_000
OPTIONS = ("benign", "malignant", "normal", "indeterminate")
_WAYS = (
    "The lesion shows {words}. The answer is {option}.",
    "{words}, which fits best with {option}.",
    "Final answer: {option}. Reason: {words}.",
    "I see {words}; it is not {other}, it is {option}.",
    "Given {words}, my diagnosis would be {option}",
)
_WORDS = (
    *("irregular", "smooth", "hypoechoic", "hyperechoic", "margins", "shadowing", "lobulated", "oval", "border"),
    *("echo", "texture", "vascular", "thin", "thick", "septum", "calcification", "cystic", "solid", "posterior"),
    *("enhancement", "parallel", "taller", "wide", "focal", "diffuse", "mild", "marked"),
)


def write_replies(path: Path, replies: int, seed: int = 0) -> tuple[float, float]:
    """Write a table of replies; return the share of distinct ones and the mean length."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    texts, truths = [], []
    for number in range(replies):
        picks = rng.integers(0, 1_000_000, size=14)
        words = " ".join(_WORDS[one % len(_WORDS)] for one in picks[5:])
        option = OPTIONS[picks[0] % 4]
        other = OPTIONS[(picks[0] + 1 + picks[1] % 3) % 4]
        text = _WAYS[picks[2] % len(_WAYS)].format(words=f"{words} {number % 700_001}x", option=option, other=other)
        texts.append(option.capitalize() if picks[3] % 10 == 0 else text)
        truths.append(option if picks[4] % 10 < 6 else other)
    patients = [f"p{one}" for one in rng.integers(0, GROUPS, size=replies)]
    table = pa.table({"truth": truths, "reply": texts, "patient": patients})
    pq.write_table(table, path, row_group_size=65_536)
    return len(set(texts)) / replies, sum(map(len, texts)) / replies


def measure(path: Path) -> None:
    """Score the table and print seconds, peak megabytes and the accuracy as JSON."""
    from sonogauge.score.table import score_table

    start = time.perf_counter()
    with Watch() as workers:
        scores = score_table(
            path,
            truth="truth",
            prediction="reply",
            answer="choice",
            options=OPTIONS,
            group="patient",
            processes=2,
        )
    seconds = time.perf_counter() - start
    busy = sum(os.times()[:4])
    peaks = [peak_memory(), workers.largest]
    value = scores.values["accuracy"].estimate
    assert value.low is not None
    facts = {
        "seconds": seconds,
        "busy": busy,
        "peaks": peaks,
        "valid": scores.valid / scores.n,
        "accuracy": value.value,
    }
    print(json.dumps(facts))


def alone(*words: str) -> Any:
    """Run this file with these words and return the JSON it prints."""
    return json.loads(
        subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        print(json.dumps(write_replies(arguments.write, arguments.replies)))
        return 0
    if arguments.measure is not None:
        measure(arguments.measure)
        return 0
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for replies in (arguments.replies // 100, arguments.replies // 10, arguments.replies):
            path = Path(folder) / f"{replies}.parquet"
            distinct, length = alone("--write", str(path), "--replies", str(replies))
            facts = alone("--measure", str(path))
            found.append(facts)
            own, child = facts["peaks"]
            print(
                f"{replies} replies ({distinct:.0%} distinct, mean length {length:.0f}): {facts['seconds']:.1f} s, "
                f"{facts['busy']:.1f} s of processors, peak {own:.0f} MB and {child:.0f} MB in a parser, "
                f"{facts['valid']:.1%} readable"
            )
    per_million = found[-1]["seconds"] * 1e6 / arguments.replies
    growth = sum(found[-1]["peaks"]) / sum(found[-2]["peaks"])
    print(f"a million replies: {per_million:.1f} s (goal {GOAL_SECONDS:g} s)")
    print(f"memory from a tenth to all: {growth:.2f}x (goal {GOAL_GROWTH:g}x, {GROUPS} groups)")
    worst = min(GOAL_SECONDS / per_million, GOAL_GROWTH / growth, distinct / GOAL_DISTINCT, length / GOAL_LENGTH)
    print(f"ratio scoring: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
