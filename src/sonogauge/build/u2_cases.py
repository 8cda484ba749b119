"""The images of a U2-BENCH folder as cases: each once, with what all rows say about it.

Image bytes wait in one spool file while the rows stream by, so memory holds the facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final

from sonogauge.sources.media import Media
from sonogauge.tables import to_facts

ANATOMY: Final = "anatomy"
_ANNOTATIONS: Final = ("labels", "boxes", "points", "measurements", "texts")


@dataclass
class CaseDraft:
    """One image while rows are still coming in. patients: source number -> patient ids that rows give."""

    media: Media  # without its bytes
    offset: int
    size: int
    sources: set[str] = field(default_factory=set)
    patients: dict[str, set[str]] = field(default_factory=dict)
    scenarios: set[tuple[str, str, str]] = field(default_factory=set)  # (task, data set, anatomy)
    annotations: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    demographics: set[tuple[str, str]] = field(default_factory=set)
    spacings: set[float] = field(default_factory=set)
    issues: set[str] = field(default_factory=set)
    source: str = ""
    group: str = ""
    patient: str | None = None

    @property
    def case_id(self) -> str:
        """The id, made from the hash of the file's bytes."""
        return f"u2bench/{self.media.sha256[:20]}"

    def annotate(self, origin: str, facts: Mapping[str, list[dict[str, Any]]]) -> None:
        """Add the annotations of a row; the same one twice is kept once."""
        for column, entries in facts.items():
            known = self.annotations.setdefault(column, [])
            known.extend((origin, entry) for entry in entries if all(entry != other for _, other in known))


class CaseBook:
    """All cases of a build.

    Args:
        spool: a binary file open for reading and writing; image bytes are kept there.
    """

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._end = 0
        self._drafts: dict[str, CaseDraft] = {}

    def __len__(self) -> int:
        return len(self._drafts)

    def add(self, media: Media) -> CaseDraft:
        """Return the draft of an image, stored on first sight."""
        draft = self._drafts.get(media.sha256)
        if draft is None:
            self._spool.seek(self._end)
            self._spool.write(media.data)
            draft = CaseDraft(media.with_data(b""), self._end, len(media.data))
            self._end += draft.size
            self._drafts[media.sha256] = draft
        return draft

    def settle(self) -> None:
        """Give every case its source, group and patient, so that rows sharing an image or a patient share a draw."""
        drafts = [self._drafts[key] for key in sorted(self._drafts)]
        parents: dict[str, str] = {}
        for draft in drafts:
            image = f"image:{draft.media.sha256}"
            parents.setdefault(image, image)
            for number, names in sorted(draft.patients.items()):
                _join(parents, image, f"patient:{number}:{min(names)}")
        members: dict[str, list[CaseDraft]] = {}
        for draft in drafts:
            members.setdefault(_root(parents, f"image:{draft.media.sha256}"), []).append(draft)
        for together in members.values():
            _settle_group(together)

    def rows(self, licence: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the cases table, sorted by id; call `settle` before."""
        for key in sorted(self._drafts):
            draft = self._drafts[key]
            self._spool.seek(draft.offset)
            yield _case_row(draft, self._spool.read(draft.size), licence)

    @property
    def contradicting_patients(self) -> int:
        """Images for which rows give more than one patient id."""
        return sum(len(_patient_names(draft)) > 1 for draft in self._drafts.values())

    @property
    def across_tasks(self) -> int:
        """Images that rows of more than one task use."""
        return sum(len({task for task, _, _ in draft.scenarios}) > 1 for draft in self._drafts.values())


def _root(parents: dict[str, str], node: str) -> str:
    parents.setdefault(node, node)
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def _join(parents: dict[str, str], one: str, other: str) -> None:
    first, second = sorted((_root(parents, one), _root(parents, other)))
    parents[second] = first


def _order(source: str) -> tuple[bool, str]:
    return source == ANATOMY, source


def _patient_names(draft: CaseDraft) -> set[str]:
    return {name for names in draft.patients.values() for name in names}


def _settle_group(together: list[CaseDraft]) -> None:
    number = min((source for draft in together for source in draft.sources), key=_order)
    known = sorted(
        {(*_order(source), name) for draft in together for source, names in draft.patients.items() for name in names}
    )
    source = f"u2bench/{number}"
    name = known[0][-1] if known else f"image-{together[0].media.sha256[:20]}"
    for draft in together:
        draft.source, draft.group = source, f"{source}:{name}"
        own = sorted((*_order(origin), one) for origin, names in draft.patients.items() for one in names)
        draft.patient = str(own[0][-1]) if own else None
        if len(_patient_names(draft)) > 1:
            draft.issues.add("rows give different patient ids: " + ", ".join(sorted(_patient_names(draft))))


def _case_row(draft: CaseDraft, data: bytes, licence: str) -> dict[str, Any]:
    media = draft.media
    # Rows name the anatomy in their own order of trust: a numbered data set before the mixed set `anatomy`.
    named = sorted((*_order(dataset), task, anatomy) for task, dataset, anatomy in draft.scenarios if anatomy)
    spacing = min(draft.spacings) if draft.spacings else None
    return {
        "case_id": draft.case_id,
        "image": {"bytes": data, "path": f"{media.sha256[:20]}.{media.ending}"},
        "media_type": media.media_type,
        "sha256": media.sha256,
        "pixel_hash": media.pixel_hash,
        "width": media.width,
        "height": media.height,
        "frames": media.frames,
        "spacing": None if spacing is None else {"x": spacing, "y": spacing},
        "patient": draft.patient,
        "group": draft.group,
        "source": draft.source,
        "licence": licence,
        "redistributable": False,
        "private": False,
        "provenance": "unknown",
        "reference_standard": "unknown",
        "anatomy": named[0][-1] if named else None,
        "demographics": to_facts(dict(sorted(draft.demographics, reverse=True))),
        **{
            column: [entry for _, entry in sorted(draft.annotations.get(column, []), key=lambda one: one[0])]
            for column in _ANNOTATIONS
        },
        "known_issues": sorted(draft.issues),
    }
