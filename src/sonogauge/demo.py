"""The embedded default: build the synthetic benchmark, answer it, score it, show it; no download, no key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.baselines import BASELINES

if TYPE_CHECKING:
    from rich.console import Console

REFERENCE_MODEL: Final = "reference/image-features"
PAGE: Final = "report.html"


class _ReferenceReader:
    """The reference model as the run sees it: a function of the benchmark, like a baseline, but it reads images."""

    name = REFERENCE_MODEL

    def __init__(self, bench: Folder) -> None:
        self._bench = bench

    def replies(self, items: Sequence[Item], train: Sequence[Item], seed: int) -> list[str | None]:
        """Return the replies in the order of `items`."""
        from sonogauge.models.reference import reference_replies

        return [text for _, text in reference_replies(self._bench, items, seed)]


def demo(out: Path | str, *, seed: int = 0, patients: int | None = None, console: Console | None = None) -> list[Path]:
    """Run the whole chain on simulated images and return the scores folders, the reference model's first.

    Runs all baselines and an image-reading reference model trained on the benchmark's own train part; scores the
    reference model, with the non-reading baselines beside it, and the oracle, which must reach every best value.

    Args:
        out: folder for the benchmark, the runs, the scores and the report; folders of an earlier demo are replaced.
        seed: of the simulation, the baselines, the model and the bootstrap.
        patients: number of simulated patients, half of them for training; None = the benchmark's default.
        console: where to show progress and tables; None shows nothing.

    Raises:
        BadInput: a folder in the way that sonogauge did not make.
    """
    from sonogauge.build import build
    from sonogauge.report import report, view_scores
    from sonogauge.report.console import show
    from sonogauge.run import run
    from sonogauge.score import score

    root = Path(out)
    bench = root / "bench"
    _say(console, "building the synthetic benchmark (simulated images, not clinical)")
    options = {} if patients is None else {"patients": patients}
    build("synthetic", None, bench, seed=seed, overwrite=True, **options)
    runs = root / "runs"
    _forget_runs(runs)
    for name in BASELINES:
        _say(console, f"running baseline/{name}")
        run(bench, f"baseline/{name}", runs / name, seed=seed)
    _say(console, f"fitting and running {REFERENCE_MODEL}")
    run(bench, _ReferenceReader(Folder(bench, "benchmark")), runs / "reference", seed=seed)
    scores = []
    for name in ("reference", "oracle"):
        _say(console, f"scoring {name}")
        folder = root / "scores" / name
        score(runs / name, bench=bench, out=folder, seed=seed, overwrite=True)
        scores.append(folder)
    report(scores, root / "report.md")
    report(scores, root / PAGE)
    if console is not None:
        show(view_scores(scores), console)
        console.print(
            f"benchmark {bench}  replies {runs}  scores {root / 'scores'}  report {root / 'report.md'} and {PAGE}"
        )
    return scores


def _forget_runs(runs: Path) -> None:
    # A rebuilt benchmark has another identity, and a run refuses to go on under another one.
    import shutil

    for manifest in sorted(runs.glob("*/manifest.json")):
        Folder(manifest.parent, "run")
        shutil.rmtree(manifest.parent)


def _say(console: Console | None, line: str) -> None:
    if console is not None:
        console.print(line, style="dim")
