"""50,000 Fetal-Gauge-style questions built and scored, with the memory of a quarter of them.

usage: python perf/fetal.py [--questions 50000]

Cases of 320x240 pixels, three questions each (plane and two red boxes), are made first and not counted. Then, each in a
process of its own, the benchmark is built, a file of replies is scored, and the tables of size bins are made. Time and
peak memory are shown at a quarter and at all of the questions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _memory import peak_memory

GOAL_SECONDS = 600.0
# Peak memory may grow by this factor from a quarter of the questions to all of them.
GOAL_GROWTH = 1.5
EACH = 3
FRAMES = 10
PLANES = ("Fetal abdomen", "Fetal brain", "Fetal femur", "Fetal thorax", "Maternal cervix")
STRUCTURES = ("head", "abdomen", "arm", "legs")


def cases(number: int) -> Iterator[dict[str, Any]]:
    """Yield cases of ten frames a patient; no two pictures are the same."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(0)
    textures = [cv2.GaussianBlur(rng.integers(0, 255, (480, 640), dtype=np.uint8), (0, 0), 3) for _ in range(16)]
    for case in range(number):
        top, left = case // 16 % 240, case // (16 * 240) * 8 % 320
        pixels = np.ascontiguousarray(textures[case % 16][top : top + 240, left : left + 320])
        data = cv2.imencode(".png", pixels)[1].tobytes()
        patient = f"p{case // FRAMES:05d}"
        first, second = STRUCTURES[case % 4], STRUCTURES[(case + 1 + case % 3) % 4]
        boxes = [
            {"category": first, "x": 20.0, "y": 30.0, "w": 20.0 + case % 100, "h": 40.0 + case % 60},
            {"category": second, "x": 150.0, "y": 60.0, "w": 15.0 + case % 90, "h": 25.0 + case % 70},
        ]
        yield {
            "case_id": f"perf/{case:06d}",
            "image": {"bytes": data, "path": f"{case}.png"},
            "media_type": "image/png",
            "sha256": hashlib.sha256(data).hexdigest(),
            "pixel_hash": hashlib.sha256(pixels.tobytes()).hexdigest(),
            "width": 320,
            "height": 240,
            "frames": 1,
            "patient": patient,
            "group": f"perf:{patient}",
            "source": "perf",
            "licence": "made here",
            "redistributable": True,
            "private": False,
            "provenance": "phantom" if case % 2 else "clinical",
            "labels": [{"name": "plane", "value": PLANES[case % 5]}],
            "boxes": boxes,
        }


def make(folder: Path, number: int) -> dict[str, Any]:
    """Write the cases."""
    from sonogauge.folders import Manifest, new_folder

    with new_folder(folder / "cases") as writer:
        writer.table("cases", 64).write(cases(number))
        writer.finish(Manifest(kind="cases", maker="perf", name="perf"))
    return {}


def build(folder: Path) -> dict[str, Any]:
    """Build the benchmark; return the number of questions."""
    from sonogauge.build.fetal_gauge.build import build_fetal_gauge

    parameters = {"tasks": ["PI", "VG"], "test_fraction": 0.99}
    manifest = build_fetal_gauge(folder / "cases", folder / "bench", parameters=parameters)
    return {"questions": manifest.tables["items"].rows}


def reply(folder: Path) -> dict[str, Any]:
    """Write replies to all test questions, right two times of three."""
    from sonogauge.folders import Folder

    with (folder / "replies.jsonl").open("w", encoding="utf-8") as stream:
        rows = Folder(folder / "bench", "benchmark").rows("items", ["item_id", "split", "answer", "reference"])
        for number, row in enumerate(row for row in rows if row["split"] == "test"):
            options = row["answer"]["options"]
            place = options.index(row["reference"]["choices"][0])
            place = (place + (number % 3 == 0)) % len(options)
            stream.write(json.dumps({"item_id": row["item_id"], "text": row["answer"]["letters"][place]}) + "\n")
    return {}


def score(folder: Path) -> dict[str, Any]:
    """Score the replies."""
    import sonogauge

    found = sonogauge.score(folder / "replies.jsonl", bench=folder / "bench", out=folder / "scores", overwrite=True)
    own = {row["metric"]: row["value"] for row in found.metrics if not row["task"] and row["origin"] == "computed"}
    return {"micro": own["overall_micro"]}


def bins(folder: Path) -> dict[str, Any]:
    """Make the tables of size bins from the scores."""
    from sonogauge.analyses import analyse

    rows = analyse(folder / "scores", "sizes").table("sizes")["rows"]
    return {"questions": rows[-1]["n"]}


STEPS = {"build": build, "reply": reply, "score": score, "bins": bins}


def alone(step: str, folder: Path, number: int = 0) -> dict[str, Any]:
    """Run a step in a process of its own; return its facts with seconds and peak megabytes."""
    words = [sys.executable, __file__, "--step", step, "--folder", str(folder), "--questions", str(number)]
    done: dict[str, Any] = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return done


def _told(step: str, facts: dict[str, Any]) -> str:
    return f"{step} {facts['seconds']:.1f} s ({facts['busy']:.1f} s busy), peak {facts['peak']:.0f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=50_000)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step is not None:
        start = time.perf_counter()
        facts = (
            make(arguments.folder, arguments.questions)
            if arguments.step == "make"
            else STEPS[arguments.step](arguments.folder)
        )
        facts |= {
            "seconds": time.perf_counter() - start,
            "busy": time.process_time(),
            "peak": peak_memory(),
        }
        print(json.dumps(facts))
        return 0
    peaks: dict[str, list[float]] = {}
    seconds = 0.0
    for questions in (arguments.questions // 4, arguments.questions):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            alone("make", folder, -(-questions // EACH))
            found = {step: alone(step, folder) for step in STEPS}
        assert found["build"]["questions"] >= questions and found["bins"]["questions"] > questions // 2
        for step in ("build", "score", "bins"):
            peaks.setdefault(step, []).append(found[step]["peak"])
        seconds = found["build"]["seconds"] + found["score"]["seconds"]
        told = ", ".join(_told(step, found[step]) for step in peaks)
        print(f"{found['build']['questions']} questions: {told}; micro {found['score']['micro']:.3f}", flush=True)
    growth = {step: after / before for step, (before, after) in peaks.items()}
    worst = max(growth.values())
    print(f"build and score {arguments.questions}: {seconds:.1f} s (goal {GOAL_SECONDS:g} s)")
    told = ", ".join(f"{step} {value:.2f}x" for step, value in growth.items())
    print(f"memory from a quarter to all: {told} (goal {GOAL_GROWTH:g}x)")
    ratio = min(GOAL_SECONDS * arguments.questions / 50_000 / seconds, GOAL_GROWTH / worst)
    print(f"ratio fetal: {ratio:.2f}")
    return 0 if ratio >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
