"""Questions without their image, repeated and rotated: what is asked, sent and read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.benchmarks.medlesionvqa.made import annotation, write

from sonogauge import BadInput, build, run, score
from sonogauge.analyses import analyse
from sonogauge.answers import AnswerSpec
from sonogauge.answers.variants import read_varied
from sonogauge.models.base import Outcome, Request
from sonogauge.run.vary import check_variation

pytestmark = pytest.mark.part("text-only ablation")


class Text:
    """A model that looks for a word among the options and says the letter that stands beside it."""

    revision, endpoint = "", ""
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, name: str, word: str) -> None:
        self.name, self._word = name, word
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Outcome:
        self.requests.append(request)
        letters = dict(zip(request.options, request.letters, strict=False))
        said = letters.get(self._word, "A") if request.letters else "yes"
        return Outcome("ok", text=said)

    async def close(self) -> None:
        """Nothing to free."""


def test_names() -> None:
    assert check_variation("no_image=05") == "no_image=5"
    assert check_variation("blank_image+circular") == "blank_image+circular"
    for wrong in ("no_image=1", "no_image=x", "no_image+shuffle", "speckle+circular", "no_image+", "+circular"):
        with pytest.raises(BadInput, match="no variation"):
            check_variation(wrong)


def test_a_letter_means_the_option_that_stood_there() -> None:
    spec = AnswerSpec("choice", ("cyst", "mass", "duct"), ("A", "B", "C"))
    assert read_varied("A", spec, "x", "no_image").value == "cyst"
    assert read_varied("A", spec, "x", "no_image+circular=2").value == "duct"
    assert read_varied("A", spec, "x", "blank_image+circular=1").value == "mass"


def test_runs_and_their_table(tmp_path: Path) -> None:
    rows = [annotation(tmp_path / "data", number) for number in range(12)]
    write(tmp_path / "data" / "annotations.jsonl", rows)
    build("medlesionvqa", tmp_path / "data", tmp_path / "bench", parameters={"val_share": 0.0})
    scores = []
    for name in ("test/a", "test/b", "test/c"):
        # "hand" is right wherever the place is asked: the question gives itself away.
        model = Text(name, "hand")
        out = tmp_path / name.replace("/", "-")
        run(tmp_path / "bench", model, out / "run", vary=["no_image=3", "no_image+circular"], tasks=["single_choice"])
        kinds = Counter(request.variant.partition("=")[0] for request in model.requests)
        plain = kinds[""]
        assert kinds["no_image"] == 3 * plain and kinds["no_image+circular"] == 3 * plain + _more_than_four(model)
        assert all(bool(request.images) == (not request.variant) for request in model.requests)
        score(out / "run", out=out / "scores", draws=200, baselines=False, scenarios="present")
        scores.append(out / "scores")
    found = analyse(scores[0], "text_only", beside=scores[1:], draws=200)
    losses = {row["ability"]: row for row in found.table("text_only_test")["rows"]}
    assert losses["LO"]["with"]["value"] == losses["LO"]["without"]["value"] == 1.0
    assert losses["LO"]["loss"]["value"] == 0.0 and losses["LO"]["kept"]["value"] == 1.0
    (row, *_) = found.table("text_solvable")["rows"]
    # All questions about the place, and no other.
    assert row["flagged"] == losses["LO"]["n"]


def _more_than_four(model: Text) -> int:
    """Rotations beyond three, of questions with more than four options."""
    return sum(len(request.options) - 4 for request in model.requests if not request.variant)
