"""Agreement of reviewers, read from folders of votes, in lines and in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.review.forms import ADJUDICATOR, CORRECTION
from sonogauge.stats.agreement import COEFFICIENTS, RoleAgreement, votes_agreement


def read_agreements(votes: Sequence[Path | str], *, draws: int = 2000, seed: int = 0) -> list[RoleAgreement]:
    """Return the agreement of every role and question of folders of votes; patients are the unit of resampling.

    Adjudicators' votes and corrections are no independent views and are left out.

    Raises:
        BadInput: folders of different benchmarks, or a reviewer who voted twice.
    """
    rows: list[dict[str, Any]] = []
    groups: dict[str, str] = {}
    hashes = set()
    for one in votes:
        folder = Folder(one, "votes")
        given = folder.manifest.input("benchmark")
        if given is not None:
            hashes.add(given.hash)
            if not groups and Path(given.path).is_dir():
                found = Folder(given.path, "benchmark").rows("items", ["item_id", "source", "group"])
                groups = {row["item_id"]: f"{row['source']}|{row['group']}" for row in found}
        rows += (
            row
            for row in folder.rows("votes")
            if not row["role"].startswith(ADJUDICATOR) and row["question"] != CORRECTION
        )
    if len(hashes) > 1:
        raise BadInput("votes on different benchmarks", fix="give the folders of one benchmark")
    return votes_agreement(rows, groups=groups, draws=draws, seed=seed)


def agreements_lines(found: Sequence[RoleAgreement]) -> Iterator[str]:
    """Yield one block for each role and question."""
    for one in found:
        own = one.agreement
        shares = ", ".join(f"{word} {share:.2f}" for word, share in own.prevalence.items())
        yield f"{one.role}, {one.question}: {own.units} items with two or more of {own.raters} reviewers; {shares}"
        for name in COEFFICIENTS:
            estimate = own.estimates[name]
            if estimate.value is None:
                yield f"  {name:8} - ({estimate.why_null})"
            elif estimate.low is None or estimate.high is None:
                yield f"  {name:8} {estimate.value:.3f} (no interval: {estimate.why_null})"
            else:
                yield f"  {name:8} {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def agreements_json(found: Sequence[RoleAgreement]) -> list[dict[str, Any]]:
    """Return one JSON object for each role and question."""
    return [
        {
            "role": one.role,
            "question": one.question,
            "units": one.agreement.units,
            "raters": one.agreement.raters,
            "prevalence": dict(one.agreement.prevalence),
            **{
                name: {
                    "value": one.agreement.estimates[name].value,
                    "low": one.agreement.estimates[name].low,
                    "high": one.agreement.estimates[name].high,
                    "why_null": one.agreement.estimates[name].why_null,
                    "signature": one.agreement.signature(name),
                }
                for name in COEFFICIENTS
            },
        }
        for one in found
    ]
