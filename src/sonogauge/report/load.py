"""Reading the scores folders of a report and checking that they belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec, read_spec
from sonogauge.folders import Folder, Manifest
from sonogauge.report.cells import IN_DOMAIN, Fact
from sonogauge.report.published import published_rows

REFERENCE_PREFIX = "reference/"
BASELINE_PREFIX = "baseline/"


@dataclass(frozen=True, eq=False)
class Scores:
    """One scores folder under one protocol.

    label: the model's name, made unique within a report.
    own: rows of the model itself; baselines, published: rows beside it.
    """

    path: Path
    manifest: Manifest
    spec: BenchmarkSpec
    protocol: str
    scenario_set: str
    label: str
    own: tuple[Fact, ...]
    baselines: tuple[Fact, ...]
    published: tuple[Fact, ...]

    @cached_property
    def in_domain(self) -> bool:
        """Whether the model was trained on the benchmark's own train part."""
        return any(fact.model.startswith(REFERENCE_PREFIX) or IN_DOMAIN in fact.doubt for fact in self.own)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the model's variants, the unvaried one first."""
        return tuple(dict.fromkeys(fact.label for fact in sorted(self.own, key=lambda fact: fact.variant)))

    @property
    def counts(self) -> Mapping[str, Any]:
        """Counts of the manifest."""
        return self.manifest.counts

    @property
    def failures(self) -> dict[str, int]:
        """Failed replies of the shown protocol, by reason."""
        return dict(self.manifest.counts.get("failures", {}).get(self.protocol, {}))


def load_scores(paths: Sequence[Path | str], protocol: str) -> list[Scores]:
    """Read scores folders for one report.

    Raises:
        BadInput: none given, one given twice, not a scores folder, no rows, another benchmark or version than the
            first one's, or a protocol that was not scored.
    """
    if not paths:
        raise BadInput("no scores given", fix="name at least one scores folder")
    folders = [Folder(path, "scores") for path in paths]
    seen: set[Path] = set()
    for folder in folders:
        if folder.path.resolve() in seen:
            raise BadInput("given twice", file=folder.path, fix="name each scores folder once")
        seen.add(folder.path.resolve())
    first = folders[0].manifest
    for folder in folders[1:]:
        manifest = folder.manifest
        if (manifest.name, manifest.version) != (first.name, first.version):
            raise BadInput(
                f"scores of {manifest.name} {manifest.version}, but those of {folders[0].path} are of "
                f"{first.name} {first.version}",
                file=folder.path,
                fix="report one benchmark and version at a time",
            )
    rows = [list(folder.rows("metrics")) for folder in folders]
    names = [_model_name(folder, one) for folder, one in zip(folders, rows, strict=True)]
    often = Counter(names)
    labels = [
        name if often[name] == 1 else f"{name} ({folder.path.resolve().name})"
        for name, folder in zip(names, folders, strict=True)
    ]
    if len(set(labels)) < len(labels):
        labels = [
            name if often[name] == 1 else f"{name} ({folder.path})" for name, folder in zip(names, folders, strict=True)
        ]
    return [
        make_scores(folder.path, folder.manifest, read_spec(folder.path), one, protocol, label)
        for folder, one, label in zip(folders, rows, labels, strict=True)
    ]


def _model_name(folder: Folder, rows: list[dict[str, Any]]) -> str:
    own = [row["model"] for row in rows if row["origin"] == "computed"]
    if not own:
        raise BadInput("no computed metrics in it", file=folder.file("metrics"), fix="score the run again")
    return str(own[0])


def make_scores(
    path: Path, manifest: Manifest, spec: BenchmarkSpec, rows: Sequence[Mapping[str, Any]], protocol: str, label: str
) -> Scores:
    """Sort rows of the metrics table by origin, for one protocol; without published rows, the package's own are taken.

    Raises:
        BadInput: a protocol that was not scored.
    """
    protocols = sorted({row["protocol"] for row in rows if row["origin"] == "computed"})
    if protocol not in protocols:
        why = f" ({spec.no_published})" if protocol == "published" and spec.no_published else ""
        raise BadInput(f"not scored under protocol '{protocol}'{why}", file=path, fix="scored: " + ", ".join(protocols))
    facts = [Fact.from_row(row, _label(row, label)) for row in rows]
    published = [fact for fact in facts if fact.origin == "published"] or [
        Fact.from_row(row, _label(row, label)) for row in published_rows(spec.name)
    ]
    return Scores(
        path=path,
        manifest=manifest,
        spec=spec,
        protocol=protocol,
        scenario_set=next(row["scenario_set"] for row in rows if row["origin"] == "computed"),
        label=label,
        own=tuple(fact for fact in facts if fact.origin == "computed" and fact.protocol == protocol),
        baselines=tuple(fact for fact in facts if fact.origin == "baseline" and fact.protocol == protocol),
        published=tuple(published),
    )


def _label(row: Mapping[str, Any], label: str) -> str:
    if row["origin"] == "baseline":
        return str(row["model"]).removeprefix(BASELINE_PREFIX)
    name = label if row["origin"] == "computed" else str(row["model"])
    return f"{name} [{row['variant']}]" if row["variant"] else name
