"""Clips with traced contours in a table: EchoNet-Dynamic and EchoNet-Pediatric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.files import Table
from sonogauge.sources.readers.open import open_stack
from sonogauge.sources.readers.rows import Row, read_rows
from sonogauge.sources.readers.shapes import Shape, draw
from sonogauge.sources.readers.tree import Tree

Point = tuple[float, float]
# Fields that the paths of a table and a clip share, and the name of the clip without its ending.
Key = tuple[frozenset[tuple[str, str]], str]


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the traced frames of clips.

    Options: `tracings`, pattern of the table of contours (FileName, Frame and X1, Y1, X2, Y2 or X, Y); `category`.
    """
    tables = [Table(tree, rule, log) for rule in layout.tables]
    traced = _tracings(tree, str(layout.options.get("tracings", "VolumeTracings.csv")), log)
    shared = frozenset(field for fields, _ in traced for field in fields)
    category = str(layout.options.get("category", "region"))
    for path, fields in tree.match(*layout.find):
        log.used.add(path)
        log.count("clips")
        stem = path.rpartition("/")[2].rpartition(".")[0]
        facts = {**fields, "path": path, "file": path.rpartition("/")[2], "stem": stem}
        notes = [note for table in tables if (note := table.add(facts))]
        frames = traced.pop((frozenset(fields.items()) & shared, stem), None)
        try:
            stack = open_stack(tree, path)
            if frames is None:
                log.miss(path, "clip without tracings")
                frames = {number: [] for number in stack.choose(layout.frames)}
            for number, rows in sorted(frames.items()):
                if not 0 <= number < len(stack):
                    log.drop(path, "tracing of a frame that the clip has not")
                    continue
                finding = Finding(
                    path,
                    f"{path.rpartition('.')[0]}/{number:04d}",
                    {**facts, **stack.meta, "frame": str(number), "frames": str(len(stack))},
                    partial(stack.picture, number),
                    notes=list(notes),
                    cluster=path,
                    frame=number,
                )
                if rows:
                    shape = Shape(category, "polygon", tuple(contour(rows)))
                    finding.regions.append(partial(draw, [shape]))
                yield finding
        except MediaFault as fault:
            log.drop(path, str(fault))
    for table in tables:
        table.report()
    for _, stem in sorted(traced, key=lambda key: (sorted(key[0]), key[1])):
        log.miss(stem, "tracings without a clip")


def _tracings(tree: Tree, pattern: str, log: ReadLog) -> dict[Key, dict[int, list[Row]]]:
    found: dict[Key, dict[int, list[Row]]] = {}
    for path, fields in tree.match(pattern):
        log.used.add(path)
        for number, row in enumerate(read_rows(tree.read(path), path), 1):
            # This table names files with their ending, the list of files without.
            stem = row.get("FileName", "").rpartition(".")[0] or row.get("FileName", "")
            try:
                frame = int(float(row["Frame"]))
            except (KeyError, ValueError):
                # Pediatric lists mark clips that could not be traced with a word.
                log.miss(f"{path}, row {number}", "tracing without a frame number")
                continue
            found.setdefault((frozenset(fields.items()), stem), {}).setdefault(frame, []).append(row)
    return found


def contour(rows: list[Row]) -> list[Point]:
    """Return the outline that the rows of one frame describe.

    With X1, Y1, X2, Y2 the first row is the long axis from the apex, the others are discs from base to apex or back:
    apex, left points, right points reversed. With X, Y the rows are the outline itself.

    Raises:
        MediaFault: a coordinate that is no number.

    >>> disc = {"X1": "2", "Y1": "5", "X2": "6", "Y2": "5"}
    >>> contour([{"X1": "4", "Y1": "1", "X2": "4", "Y2": "9"}, disc, {**disc, "Y1": "8", "Y2": "8"}])
    [(4.0, 1.0), (2.0, 5.0), (2.0, 8.0), (6.0, 8.0), (6.0, 5.0)]
    """
    try:
        if "X1" not in rows[0]:
            return [_point(row["X"], row["Y"]) for row in rows]
        apex, *discs = rows
        left = [_point(row["X1"], row["Y1"]) for row in discs]
        right = [_point(row["X2"], row["Y2"]) for row in discs]
        return [_point(apex["X1"], apex["Y1"]), *left, *reversed(right)]
    except (KeyError, ValueError) as error:
        raise MediaFault("tracing that does not read") from error


def _point(x: str, y: str) -> Point:
    pair = (float(x), float(y))
    if not all(math.isfinite(value) for value in pair):
        raise ValueError(x)
    return pair
