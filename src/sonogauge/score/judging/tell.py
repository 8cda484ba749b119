"""Agreement of judges and physicians in lines and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sonogauge.score.judging.agreement import Corrected, JudgeAgreement, PartAgreement
from sonogauge.stats.intervals import Estimate


def agreement_lines(found: JudgeAgreement) -> Iterator[str]:
    """Yield lines: one block for each judge, leniency, part and attribute, then the corrected scores."""
    for one in found.agreements:
        about = one.attribute or "all attributes"
        yield f"{one.judge}, leniency {one.leniency}, {one.part}, {about}: {one.items} answers"
        yield f"  kappa {_text(one.kappa)}   raw agreement {_text(one.raw_agreement)}"
        yield f"  judge minus physician {_text(one.difference)}   falsely lenient {_text(one.false_lenient)}"
        yield f"  judge 0, 0.5, 1 by physician 0, 0.5, 1: {one.confusion}"
        if one.ceiling is None:
            yield "  ceiling: not known, no answer was checked by two physicians"
        else:
            kappa, percent = one.ceiling.estimates["kappa"], one.ceiling.estimates["percent"]
            yield f"  ceiling, physicians among themselves: kappa {_text(kappa)}   raw agreement {_text(percent)}"
    for corrected in found.corrected:
        yield (
            f"{corrected.judge}, leniency {corrected.leniency}: score {corrected.judged:.3f}, corrected by "
            f"{corrected.checked} checked answers ({corrected.part}) {_text(corrected.estimate)}"
        )
    yield found.signature


def agreement_json(found: JudgeAgreement) -> dict[str, Any]:
    """Return everything as one JSON value."""
    return {
        "agreement": [_part(one) for one in found.agreements],
        "corrected": [_corrected(one) for one in found.corrected],
        "signature": found.signature,
    }


def _part(one: PartAgreement) -> dict[str, Any]:
    ceiling = None
    if one.ceiling is not None:
        ceiling = {name: _json(estimate) for name, estimate in sorted(one.ceiling.estimates.items())}
        ceiling["units"] = one.ceiling.units
    return {
        "judge": one.judge,
        "leniency": one.leniency,
        "part": one.part,
        "attribute": one.attribute,
        "items": one.items,
        "off_level": one.off_level,
        "confusion": one.confusion,
        "raw_agreement": _json(one.raw_agreement),
        "kappa": _json(one.kappa),
        "difference": _json(one.difference),
        "false_lenient": _json(one.false_lenient),
        "ceiling": ceiling,
    }


def _corrected(one: Corrected) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "leniency": one.leniency,
        "part": one.part,
        "judged": one.judged,
        "checked": one.checked,
        **_json(one.estimate),
    }


def _json(estimate: Estimate) -> Any:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "groups": estimate.groups,
        "reliable": estimate.reliable,
        "why_null": estimate.why_null,
    }


def _text(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"- ({estimate.why_null})"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f} (no interval: {estimate.why_null})"
    doubt = "" if estimate.reliable else " *"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]{doubt}"
