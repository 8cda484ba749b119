"""What may leave this machine, and what the licences of the images say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.models.addresses import is_loopback
from sonogauge.run.images import CaseFacts

_TERMS: Final = (
    (re.compile(r"(?<![a-z])(nd|no[- ]?deriv)", re.I), "allows no derivatives: do not pass changed images on"),
    (re.compile(r"(?<![a-z])(nc|non[- ]?commercial)", re.I), "allows no commercial use"),
)


def check_privacy(
    cases: Mapping[str, CaseFacts], sent: Iterable[str], endpoint: str, *, allow_upload: bool
) -> list[str]:
    """Refuse to send private images off this machine; return notices about licences.

    sent: ids of the cases whose images would be sent. endpoint: where to, empty = they stay in this process.

    Raises:
        BadInput: a private image would leave for another machine and `allow_upload` is not set.
    """
    used = [cases[case_id] for case_id in sorted(set(sent)) if case_id in cases]
    leaves = bool(endpoint) and not is_loopback(endpoint)
    private = sorted({case.source for case in used if case.private})
    if leaves and private and not allow_upload:
        count = sum(case.private for case in used)
        raise BadInput(
            f"{count} private images (source {', '.join(private)}) would leave for {endpoint}",
            fix="use a model on this machine, or pass --allow-upload if you may send them",
        )
    notices = []
    if leaves:
        for licence in sorted({case.licence for case in used if case.licence}):
            terms = [text for pattern, text in _TERMS if pattern.search(licence)]
            if terms:
                notices.append(f"images under {licence} are sent to {endpoint}; the licence {' and '.join(terms)}")
        if private:
            notices.append(f"private images (source {', '.join(private)}) are sent to {endpoint}, as allowed")
    return notices
