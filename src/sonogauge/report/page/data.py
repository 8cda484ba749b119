"""What the page shows besides single answers: models, values, verdicts, failures, recipes, as compact data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.models.groups import load_cards
from sonogauge.report.board import Board
from sonogauge.report.cells import IN_DOMAIN, Fact, unit_of
from sonogauge.report.document import task_order
from sonogauge.report.load import Scores
from sonogauge.report.page.pack import Strings, columns, short
from sonogauge.report.published import published_rows

PROTOCOLS: Final = ("strict", "published")
_COLUMNS: Final = (
    "line",
    "protocol",
    "task",
    "dataset",
    "slice",
    "metric",
    "value",
    "low",
    "high",
    "n",
    "valid",
    "excluded",
    "groups",
    "reliable",
    "chance",
    "down",
    "signature",
    "why",
    "doubt",
    "source",
)


class Lines:
    """The models, baselines and published rows of a page, numbered in order of appearance."""

    def __init__(self, spec: BenchmarkSpec) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self.rows: list[dict[str, Any]] = []
        self._cards = load_cards()
        self._published = {row["model"]: row["model_group"] for row in published_rows(spec.name)}

    def number(self, kind: str, label: str, model: str = "", scores: int | None = None, variant: str = "") -> int:
        """Return the number of a line; kind: model, in_domain, baseline or published."""
        key = (kind, label)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(
                {
                    "kind": kind,
                    "label": label,
                    "scores": scores,
                    "variant": variant,
                    "group": self._group(kind, model),
                    **self._independence(kind, model),
                }
            )
        return self._numbers[key]

    def find(self, label: str) -> int | None:
        """Return the number of a model's own line, None if there is none."""
        return next(
            (self._numbers[kind, label] for kind in ("model", "in_domain") if (kind, label) in self._numbers), None
        )

    def _group(self, kind: str, model: str) -> str:
        if kind == "published":
            return str(self._published.get(model, "") or "")
        card = self._cards.of(model)
        return card.domain if card.domain == "medical" else card.access or ""

    def _independence(self, kind: str, model: str) -> dict[str, Any]:
        card = self._cards.of(model)
        notes = [*([card.independence] if card.independence else []), *card.contamination]
        return {"remarks": notes} if notes and kind != "baseline" else {}


def board_data(boards: Mapping[str, Board], lines: Lines) -> dict[str, Any]:
    """Return models, facts, verdicts and recipes of the boards of all protocols.

    boards: protocol to the board of the same scores folders; the first is the one with most to say.
    """
    first = next(iter(boards.values()))
    strings = Strings()
    rows = [row for protocol, board in boards.items() for row in _facts(board, protocol, lines, strings)]
    rows += _published(first, lines, strings)
    return {
        "benchmark": _benchmark(first),
        "protocols": _protocols(boards, first.spec),
        "tasks": _tasks(boards.values(), first.spec),
        "composites": _composites(boards.values(), first.spec),
        "lines": lines.rows,
        "scores": [_recipe(one) for one in first.scores],
        "failures": {protocol: [one.failures for one in board.scores] for protocol, board in boards.items()},
        "verdicts": _verdicts(boards, lines),
        "metrics": _metrics(rows, strings),
        "facts": columns(rows, _COLUMNS),
        "strings": strings.all,
    }


def _benchmark(board: Board) -> dict[str, Any]:
    spec, manifest = board.spec, board.scores[0].manifest
    return {
        "name": spec.name,
        "version": spec.version,
        "title": spec.title,
        "licence": spec.licence or "; ".join(manifest.licences),
        "citation": spec.citation,
        "simulated": spec.simulated,
    }


def _protocols(boards: Mapping[str, Board], spec: BenchmarkSpec) -> list[dict[str, Any]]:
    why = spec.no_published or "not scored in these folders"
    return [{"name": name, "available": name in boards, "why": "" if name in boards else why} for name in PROTOCOLS]


def _tasks(boards: Iterable[Board], spec: BenchmarkSpec) -> list[dict[str, Any]]:
    held: dict[str, str] = {}
    for board in boards:
        for code, name in board.headlines():
            held.setdefault(code, name)
    known = [code for code in task_order(spec) if code in held]
    result = []
    for code in [*known, *sorted(set(held) - set(known))]:
        task = spec.tasks.get(code)
        result.append(
            {
                "code": code,
                "title": task.title if task else code,
                "form": task.form if task else "",
                "headline": held[code],
            }
        )
    return result


def _composites(boards: Iterable[Board], spec: BenchmarkSpec) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for board in boards for name in board.composites()))
    result = []
    for name in names:
        declared = spec.composites.get(name)
        weights = spec.weights.get(declared.weights, {}) if declared else {}
        result.append(
            {
                "name": name,
                "title": declared.title if declared else name,
                "formula": declared.formula if declared else "",
                "skill": bool(declared and declared.skill),
                "weights": [[code, short(weights[code])] for code in task_order(spec) if code in weights],
            }
        )
    return result


def _facts(board: Board, protocol: str, lines: Lines, strings: Strings) -> Iterable[dict[str, Any]]:
    numbers = {id(one): index for index, one in enumerate(board.scores)}
    for kind, own in (("model", board.lines), ("in_domain", board.reference_lines)):
        for line in own:
            held = list(line.facts.values())
            where = "in_domain" if line.scores.in_domain else kind
            number = lines.number(where, line.label, held[0].model, numbers[id(line.scores)], held[0].variant)
            yield from (_fact(fact, number, protocol, strings) for fact in held)
    for label, facts in board.baseline_facts().items():
        number = lines.number("baseline", label, label)
        yield from (_fact(fact, number, protocol, strings) for fact in facts.values())


def _published(board: Board, lines: Lines, strings: Strings) -> Iterable[dict[str, Any]]:
    """Return the published rows, which are the same whichever protocol is shown."""
    seen = set()
    for one in board.scores:
        for fact in one.published:
            if (fact.label, fact.place) not in seen:
                seen.add((fact.label, fact.place))
                number = lines.number("published", fact.label, fact.model, None, fact.variant)
                yield _fact(fact, number, "", strings)


def _fact(fact: Fact, line: int, protocol: str, strings: Strings) -> dict[str, Any]:
    return {
        "line": line,
        "protocol": PROTOCOLS.index(protocol) if protocol else -1,
        **{name: strings(getattr(fact, name)) for name in ("task", "dataset", "slice", "metric")},
        **{name: short(getattr(fact, name)) for name in ("value", "low", "high", "chance")},
        **{name: getattr(fact, name) for name in ("n", "valid", "excluded", "groups")},
        "reliable": None if fact.reliable is None else int(fact.reliable),
        "down": int(fact.direction == "down"),
        # The metric stands in front of every signature; without it, many rows share one.
        "signature": strings(fact.signature.removeprefix(f"{fact.metric}|")),
        "why": strings(fact.why_null),
        "doubt": strings("" if fact.doubt == IN_DOMAIN else fact.doubt),
        "source": strings(fact.source),
    }


def _metrics(rows: Sequence[Mapping[str, Any]], strings: Strings) -> dict[str, str]:
    """Return how each metric is shown; totals are told apart by their empty task."""
    names = strings.all
    return {names[row["metric"]]: unit_of(names[row["metric"]], "x") for row in rows if row["task"]}


def _verdicts(boards: Mapping[str, Board], lines: Lines) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    board = boards.get("strict")
    if board is None:
        return found
    for line in (*board.lines, *board.reference_lines):
        number = lines.find(line.label)
        for code in board.codes():
            if number is not None and (verdict := board.verdict(line, code)):
                found.setdefault(str(number), {})[code] = {
                    "word": verdict.get("verdict"),
                    "why": verdict.get("why_null"),
                    "baseline": verdict.get("baseline"),
                    **{name: short(verdict.get(name)) for name in ("difference", "low", "high")},
                }
    return found


def _recipe(one: Scores) -> dict[str, Any]:
    """Return what made a scores folder; of a path only its last part, which tells nothing of the machine."""
    manifest = one.manifest
    return {
        "label": one.label,
        "hash": manifest.hash,
        "maker": manifest.maker,
        "scenarios": one.scenario_set,
        "in_domain": one.in_domain,
        "inputs": [
            {
                "role": source.role,
                "name": source.path.replace("\\", "/").rstrip("/").rpartition("/")[2],
                "hash": source.hash,
            }
            for source in manifest.inputs
        ],
        "parameters": {name: value for name, value in sorted(manifest.parameters.items()) if value is not None},
        "tables": {name: facts.hash for name, facts in sorted(manifest.tables.items())},
        **{
            name: manifest.counts.get(name)
            for name in ("scored", "valid", "statuses", "excluded", "abstention", "partial", "missing")
        },
    }
