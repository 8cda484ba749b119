"""A comparison as tables of a report: the same view, so the same formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sonogauge.report.cells import Cell, Column, Table, Unit, View, count, text, unit_of

NO_LEVEL = "(none)"
CORRECTION_TITLES = {"holm": "p Holm", "bh": "p BH"}


def view_comparison(document: Mapping[str, Any]) -> View:
    """Return the view of a comparison from its document (`Comparison.document`, comparison.json)."""
    facts = [
        ("models", ", ".join(document["models"])),
        ("benchmark", f"{document['benchmark']} {document['version']}"),
        ("protocol", document["protocol"]),
        ("scenarios", document["scenarios"]),
        ("items", str(document["items"])),
    ]
    if document["variant"]:
        facts.append(("variant", document["variant"]))
    if "ablation" in document:
        ablation = document["ablation"]
        facts += [("ablation", ablation["name"]), ("definition", ablation["definition"])]
        tables = [declared_table(one) for one in ablation["tables"]]
    else:
        facts += [
            ("correction", document["correction"]),
            ("families", "; ".join(f"{name}: {one['tests']} tests" for name, one in document["families"].items())),
        ]
        tables = [
            _values(document),
            _levels(document),
            _differences(document, "tasks", "Differences by task"),
            _differences(document, "totals", "Differences of totals"),
            *(
                _differences(document, name, f"Differences {name}")
                for name in document["families"]
                if name[:3] == "by "
            ),
            _mcnemar(document),
            _ranks(document),
            _left_out(document),
        ]
    return View(
        title=f"Comparison on {document['title']}",
        facts=tuple(facts),
        notices=tuple(document["notices"]),
        tables=tuple(one for one in tables if one.rows or one.notes),
        documents=(document,),
    )


def _number(facts: Mapping[str, Any] | None, unit: Unit) -> Cell:
    """Return a value with its interval; a null shows its reason, a value without an interval too."""
    if facts is None:
        return Cell(unit=unit, notes=("not scored",))
    notes = []
    if facts.get("why_null") and (facts["value"] is None or (facts.get("low") is None and "low" in facts)):
        notes.append(str(facts["why_null"]))
    if facts.get("reliable") is False and facts["value"] is not None:
        notes.append("fewer than 20 groups: unreliable")
    return Cell(value=facts["value"], low=facts.get("low"), high=facts.get("high"), unit=unit, notes=tuple(notes))


def _plain(value: float | None, unit: Unit, why: str | None = None) -> Cell:
    return Cell(value=value, unit=unit, notes=(why,) if value is None and why else ())


def _values(document: Mapping[str, Any]) -> Table:
    labels = document["models"]
    columns = [Column("value"), Column("n", right=True), *(Column(label, right=True) for label in labels)]
    rows = []
    for name, own in document["totals"].items():
        rows.append([text(name), count(own[labels[0]]["n"]), *(_number(own[label], "total") for label in labels)])
    for task, one in document["tasks"].items():
        unit = unit_of(one["metric"], task)
        cells = [_number(one["models"].get(label), unit) for label in labels]
        rows.append([text(f"{task} {one['metric']}"), count(one["models"][labels[0]]["n"]), *cells])
    return Table.of("values", "Values", columns, rows)


def _levels(document: Mapping[str, Any]) -> Table:
    labels = document["models"]
    columns = [Column(document["by"] or "level"), Column("value"), Column("n", right=True)]
    columns += [Column(label, right=True) for label in labels]
    rows = []
    for one in document["levels"]:
        unit = unit_of(one["metric"], one["task"])
        cells = [_number(one["models"].get(label), unit) for label in labels]
        number = count(one["models"][labels[0]]["n"])
        rows.append([text(one["level"] or NO_LEVEL), text(f"{one['task']} {one['metric']}"), number, *cells])
    return Table.of("levels", f"Values by {document['by']}", columns, rows)


def _differences(document: Mapping[str, Any], family: str, title: str) -> Table:
    found = [one for one in document["differences"] if one["family"] == family]
    correction = document["correction"]
    by = family.startswith("by ")
    margin = document["margin"]
    columns = [Column("first"), Column("second")]
    columns += [Column("task" if family != "totals" else "total")]
    columns += [Column(family[3:])] if by else []
    columns += [
        Column("n", right=True),
        Column("patients", right=True, spare=2),
        Column("first value", right=True, spare=3),
        Column("second value", right=True, spare=3),
        Column("difference", right=True),
        Column("d", right=True, spare=1),
        Column("p", right=True),
        Column(CORRECTION_TITLES[correction], right=True),
        Column("detectable", right=True, spare=4),
    ]
    columns += [Column(f"margin {margin:g}")] if margin is not None else []
    rows = []
    for one in found:
        metric = one["metric"]
        unit: Unit = unit_of(metric, one["task"])
        notes = [one["why_null"]] if one["why_null"] else []
        if not one["reliable"] and one["low"] is not None:
            notes.append("fewer than 20 groups: unreliable")
        arrow = " ↓" if one["direction"] == "down" else ""
        row = [text(one["first"]), text(one["second"]), text((one["task"] and f"{one['task']} ") + metric + arrow)]
        row += [text(one["level"] or NO_LEVEL)] if by else []
        row += [
            count(one["n"]),
            count(one["groups"]),
            _plain(one["value_first"], unit),
            _plain(one["value_second"], unit),
            Cell(value=one["difference"], low=one["low"], high=one["high"], unit=unit, notes=tuple(notes)),
            Cell(value=one["d_difference"], low=one["d_low"], high=one["d_high"], unit="plain"),
            _plain(one["p"], "p", one["why_no_p"]),
            _plain(one[f"p_{correction}"], "p"),
            _plain(one["detectable"], unit),
        ]
        row += [text(one["standing"] or "")] if margin is not None else []
        rows.append(row)
    statement = document["families"].get(family)
    notes_below = []
    if rows and statement:
        notes_below = [
            "difference = first - second, 95 % interval under shared draws of patients; d: higher is better. "
            "p: results exchanged within patients, two-sided.",
            f"Family of the correction: {statement['tests']} tests, {statement['pairs']} pairs x "
            f"{', '.join(statement['members'])}.",
            "detectable: smallest true difference found with 80 % power at this paired spread.",
        ]
        if margin is not None:
            notes_below.append(f"Non-inferior: the interval of d lies above -{margin:g}.")
    return Table.of("differences_" + family.replace(" ", "_"), title, columns, rows, notes_below)


def _mcnemar(document: Mapping[str, Any]) -> Table:
    columns = [Column("first"), Column("second"), Column("task")]
    columns += [
        Column(title, right=True) for title in ("b", "c", "chi-square", "p", "chi-square corrected", "p corrected")
    ]
    columns += [Column(title, right=True) for title in ("p exact", "p mid")]
    rows = []
    for one in document["differences"]:
        found = one["mcnemar"]
        if one["family"] != "tasks" or found is None:
            continue
        rows.append(
            [
                text(one["first"]),
                text(one["second"]),
                text(one["task"]),
                count(found["b"]),
                count(found["c"]),
                _plain(found["statistic"], "plain"),
                _plain(found["p"], "p"),
                _plain(found["statistic_corrected"], "plain"),
                _plain(found["p_corrected"], "p"),
                _plain(found["p_exact"], "p"),
                _plain(found["p_mid"], "p"),
            ]
        )
    notes = [
        "Reproduction, items independent: too small where a patient has several items. b: right only in the first."
    ]
    return Table.of("mcnemar", "McNemar", columns, rows, notes if rows else [])


def _ranks(document: Mapping[str, Any]) -> Table:
    columns = [Column("value of"), Column("model")]
    columns += [Column(title, right=True) for title in ("d", "rank", "from", "to", "wins")]
    rows = []
    for one in document["ranks"]:
        why = one["why_null"]
        rows.append(
            [
                text(one["task"] or "all tasks"),
                text(one["label"]),
                _plain(one["value"], "plain"),
                text(f"{one['rank']:g}"),
                _plain(one["low"], "count", why),
                _plain(one["high"], "count", why),
                _plain(one["win"], "percent", why),
            ]
        )
    notes = [
        f"all tasks: weighted mean of d over the tasks that every model has ({document['ranking']['origin']}). "
        "from, to: ranks over the central 95 % of draws; wins: share of draws in which it is best, ties split."
    ]
    return Table.of("ranks", "Ranks", columns, rows, notes if rows else [])


def _left_out(document: Mapping[str, Any]) -> Table:
    labels: Sequence[str] = document["models"]
    whole = {one["label"]: one["rank"] for one in document["ranks"] if not one["task"]}
    columns = [Column("without"), *(Column(label, right=True) for label in labels)]
    moved = [one for one in document["left_out"] if any(one["ranks"][label] != whole.get(label) for label in labels)]
    rows = [
        [text(f"{one['task']}/{one['dataset']}"), *(text(f"{one['ranks'][label]:g}") for label in labels)]
        for one in moved
    ]
    tried = len(document["left_out"])
    notes = [f"Ranks on all tasks when one data set is left out: {len(moved)} of {tried} data sets change them."]
    return Table.of("left_out", "Ranks without one data set", columns, rows, notes if tried else [])


def declared_table(one: Mapping[str, Any]) -> Table:
    """Return a table of a report from a table as data (`ablations.base.table`)."""
    columns = [Column(facts["title"], right=bool(facts["unit"])) for facts in one["columns"]]
    rows = []
    for row in one["rows"]:
        cells = []
        for facts in one["columns"]:
            value, unit = row[facts["key"]], facts["unit"]
            if not unit:
                cells.append(text(str(value)))
                continue
            if unit == "metric":
                name = row.get("metric") or facts["key"]
                unit = unit_of(name.rpartition(" ")[2], row.get("task") or "task")
            kind = cast(Unit, unit)
            cells.append(_number(value, kind) if isinstance(value, Mapping) else Cell(value=value, unit=kind))
        rows.append(cells)
    return Table.of(one["key"], one["title"], columns, rows, list(one["notes"]))
