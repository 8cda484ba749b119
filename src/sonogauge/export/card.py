"""The data card: what the files are, in Markdown with the header that data hubs read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import yaml

from sonogauge.build.leakage import AUDIT_FILE
from sonogauge.export.content import WITHHELD, Content

_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def size_of(rows: int) -> str:
    """Return the size category of a data hub.

    >>> size_of(999), size_of(1_000)
    ('n<1K', '1K<n<10K')
    """
    return next((name for limit, name in _SIZES if rows < limit), "n>1M")


def write_card(content: Content, configs: Sequence[dict[str, Any]]) -> str:
    """Return README.md; configs: the `configs` of the header, empty for files that no hub opens."""
    spec, manifest = content.spec, content.folder.manifest
    licences = sorted({content.cases[one]["licence"] or "not stated" for one in content.open_cases})
    header: dict[str, Any] = {
        "pretty_name": spec.title,
        "license": "other",
        "license_name": "; ".join(map(_plain, licences)) or "none",
        "language": ["en"],
        "task_categories": ["visual-question-answering"],
        "tags": ["medical", "ultrasound", "benchmark"],
        "size_categories": [size_of(content.open_items)],
    }
    if configs:
        header["configs"] = list(configs)
    rows: Counter[tuple[str, str, str]] = Counter()
    for item in content.items():
        rows[item["task"], item["dataset"], item["split"]] += 1
    tasks = [
        f"| {task} | {_plain(spec.tasks[task].title)} | {spec.tasks[task].form} | "
        f"{_plain(dataset)} | {split} | {number} |"
        for (task, dataset, split), number in sorted(rows.items())
    ]
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=1000)}---\n",
        f"# {spec.title}\n",
        f"Benchmark `{spec.name}`, version {spec.version}, {content.open_items} items.\n",
        f"Do not train on these files. {content.canary}\n",
        "## Tasks\n",
        "| task | title | answer | data set | part | items |\n|---|---|---|---|---|---|\n" + "\n".join(tasks) + "\n",
        "## Sources\n",
        _sources(content),
        "## How it was made\n",
        f"Made by {manifest.maker}. Content hash of the benchmark: `{manifest.hash}`.\n",
        _leakage(manifest.counts.get("leakage")),
    ]
    notices = [*dict.fromkeys([*spec.notices, *manifest.notices])]
    if notices:
        parts += ["## Limits\n", "".join(f"- {notice}\n" for notice in notices)]
    if content.counts["withheld"]:
        parts.append(
            f"{content.counts['withheld']} items use images that may not be passed on. `{WITHHELD}` names their "
            "source, their ids and hashes, so that the benchmark can be made again from an own copy.\n"
        )
    if spec.citation:
        parts += ["## Citation\n", f"{spec.citation}\n"]
    return "\n".join(part for part in parts if part)


def _sources(content: Content) -> str:
    facts: dict[str, dict[str, set[str]]] = {}
    groups: dict[str, set[str]] = {}
    images: Counter[str] = Counter()
    for case_id in content.open_cases:
        case = content.cases[case_id]
        images[case["source"]] += 1
        groups.setdefault(case["source"], set()).add(case["group"])
        about = facts.setdefault(case["source"], {"licence": set(), "provenance": set(), "issues": set()})
        about["licence"].add(case["licence"] or "not stated")
        about["provenance"].add(case["provenance"] or "unknown")
        about["issues"].update(case["known_issues"] or ())
    lines = ["| source | images | groups | provenance | licence | known issues |", "|---|---|---|---|---|---|"]
    for source, about in sorted(facts.items()):
        cells = [
            source,
            str(images[source]),
            str(len(groups[source])),
            ", ".join(sorted(about["provenance"])),
            "; ".join(sorted(about["licence"])),
            "; ".join(sorted(about["issues"])[:8]),
        ]
        lines.append(f"| {' | '.join(map(_plain, cells))} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    r"""Return a foreign text as one cell of a table.

    >>> _plain("CC0 |\n---")
    'CC0 / ---'
    """
    return " ".join(text.replace("|", "/").split())


def _leakage(counts: Any) -> str:
    if not isinstance(counts, dict) or "states" not in counts:
        return ""
    states = ", ".join(f"{check}: {state}" for check, state in counts["states"].items())
    return f"Leakage audit between the parts ({AUDIT_FILE} of the benchmark): {states}; {counts['leaks']} leaks.\n"
