"""The rule audit of records: what is wrong with an image's facts, questions and report, and how badly.

Score of a record = max(0, 100 - sum of penalties). `data_quality_pass`: no critical and no major issue;
`clinical_report_pass`: the same among the issues of the report.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonogauge.benchmarks.ultrag.audit_rules import PENALTIES, Issue, issues_of
from sonogauge.benchmarks.ultrag.vocabulary import Category, all_categories, category_of_source, load_category
from sonogauge.folders import write_bytes


@dataclass(frozen=True, slots=True)
class Audited:
    """One record with its issues."""

    category: str
    sample_id: str
    issues: tuple[Issue, ...]

    @property
    def score(self) -> int:
        """100 less the penalties, at least 0."""
        return score_of(issue.severity for issue in self.issues)

    @property
    def data_quality_pass(self) -> bool:
        """No critical and no major issue."""
        return _passes(self.issues)

    @property
    def clinical_report_pass(self) -> bool:
        """No critical and no major issue of the report."""
        return _passes(issue for issue in self.issues if issue.scope == "report")


def score_of(severities: Iterable[str]) -> int:
    """Return the score of a record with these issues.

    >>> score_of(["critical", "minor"]), score_of(["critical"] * 4 + ["major"])
    (72, 0)
    """
    return max(0, 100 - sum(PENALTIES[one] for one in severities))


def _passes(issues: Iterable[Issue]) -> bool:
    return not any(issue.severity in ("critical", "major") for issue in issues)


@dataclass(frozen=True)
class Audit:
    """All records with their issues."""

    records: tuple[Audited, ...]

    @property
    def summary(self) -> dict[str, Any]:
        """Records, mean score, passes, and issues by severity."""
        n = len(self.records)
        severities = Counter(issue.severity for one in self.records for issue in one.issues)
        return {
            "records": n,
            "mean score": round(sum(one.score for one in self.records) / n, 2) if n else 0.0,
            "data quality pass": sum(one.data_quality_pass for one in self.records),
            "clinical report pass": sum(one.clinical_report_pass for one in self.records),
            **{severity: severities[severity] for severity in PENALTIES},
        }

    @property
    def rules(self) -> Counter[tuple[str, str]]:
        """Issues by (severity, rule)."""
        return Counter((issue.severity, issue.rule) for one in self.records for issue in one.issues)


def audit_records(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Audit:
    """Audit records by category name."""
    return Audit(
        tuple(
            Audited(name, str(record.get("sample_id", "")), tuple(issues_of(record, load_category(name))))
            for name, own in sorted(records.items())
            for record in own
        )
    )


def audit_files(files: Iterable[Path]) -> Audit:
    """Audit official JSONL files; a line that does not read is an issue of its own.

    A file has the name of its category; where it has another, each record's source tells the category.
    """
    return Audit(tuple(audited for file in files for audited in _audit_file(file)))


def _audit_file(file: Path) -> Iterator[Audited]:
    category: Category | None = all_categories().get(file.stem)
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                yield Audited(file.stem, f"line {number}", (Issue("critical", "unreadable line", "", "record"),))
                continue
            known = category_of_source(str(record.get("dataset", "")).removesuffix("_coco"))
            table = category or (known[0] if known else None)
            if table is None:
                yield Audited(file.stem, f"line {number}", (Issue("critical", "unknown category", "", "record"),))
            else:
                yield Audited(table.name, str(record.get("sample_id", "")), tuple(issues_of(record, table)))


def write_audit(audit: Audit, folder: Path) -> None:
    """Write records.csv, issues.csv, summary.md and summary.json into a folder."""
    records = [
        (one.category, one.sample_id, one.score, one.data_quality_pass, one.clinical_report_pass, len(one.issues))
        for one in audit.records
    ]
    issues = [
        (one.category, one.sample_id, issue.severity, issue.rule, issue.scope, issue.detail)
        for one in audit.records
        for issue in one.issues
    ]
    columns = ("category", "sample_id", "score", "data_quality_pass", "clinical_report_pass", "issues")
    write_bytes(folder / "records.csv", _csv(columns, records))
    write_bytes(folder / "issues.csv", _csv(("category", "sample_id", "severity", "rule", "scope", "detail"), issues))
    rules = sorted(audit.rules.items(), key=lambda entry: (-entry[1], entry[0]))
    summary = {
        **audit.summary,
        "rules": [{"severity": severity, "rule": rule, "issues": n} for (severity, rule), n in rules],
    }
    write_bytes(folder / "summary.json", (json.dumps(summary, indent=1) + "\n").encode())
    lines = ["# Rule audit", "", *(f"- {name}: {value}" for name, value in audit.summary.items())]
    lines += ["", "| severity | rule | issues |", "|---|---|---|"]
    lines += [f"| {severity} | {rule} | {n} |" for (severity, rule), n in rules]
    write_bytes(folder / "summary.md", ("\n".join(lines) + "\n").encode())


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
