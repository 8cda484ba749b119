"""Image files in folders, with masks beside them and tables that tell more."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.sources.findings import Finding, ReadLog, Regions
from sonogauge.sources.layout import Layout, MaskRule, TableRule
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.dicom import NoImage, is_dicom
from sonogauge.sources.readers.label_images import binary, classes, colours, fill_outline
from sonogauge.sources.readers.open import load_mask, open_stack, open_still, stack_kind
from sonogauge.sources.readers.pictures import PLAIN, VIDEOS, ending
from sonogauge.sources.readers.rows import read_rows
from sonogauge.sources.readers.shapes import polygon_mask
from sonogauge.sources.readers.stacks import Stack, spread
from sonogauge.sources.readers.tree import Template, Tree, compile_pattern

_JOIN: Final = "\x1f"
MAX_POLYGON_BYTES: Final = 16 * 1024 * 1024


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield a finding for each image file, or for each frame of a stack."""
    tables = [Table(tree, rule, log) for rule in layout.tables]
    masks = [Masks(tree, rule, log) for rule in layout.masks]
    skipped = [compile_pattern(pattern) for pattern in layout.skip]
    for path, fields in tree.match(*layout.find):
        if any(regex.fullmatch(path) for regex in skipped):
            continue
        if stack_kind(path) == "dicom" and ending(path) not in ("dcm", "dicom") and not is_dicom(tree.file(path)):
            log.count("files that are no images")
            continue
        log.used.add(path)
        log.count("image files")
        facts = {**fields, "path": path, "file": path.rpartition("/")[2], "stem": fields.get("stem", _stem(path))}
        notes = [note for table in tables if (note := table.add(facts))]
        rows = [row for table in tables for row in table.each(facts)]
        for finding in _of_file(tree, path, facts, rows, layout, masks, log):
            finding.notes.extend(notes)
            yield finding
    for table in tables:
        table.report()
    for mask in masks:
        mask.report()


def _stem(path: str) -> str:
    """Return a file's name without its ending; names of DICOM files often have none, or are UIDs such as 1.2.840.1."""
    name = path.rpartition("/")[2]
    if name.lower().endswith(".nii.gz"):
        return name[:-7]
    stem, dot, last = name.rpartition(".")
    return stem if dot and not last.isdecimal() else name


def _of_file(
    tree: Tree,
    path: str,
    facts: dict[str, str],
    rows: list[dict[str, str]],
    layout: Layout,
    masks: list[Masks],
    log: ReadLog,
) -> Iterator[Finding]:
    name = path[: -len(path.rpartition("/")[2])] + _stem(path)
    kind = stack_kind(path)
    if kind is None:
        finding = Finding(path, name, facts, partial(open_still, tree, path, layout.rotate), rows=rows)
        for mask in masks:
            mask.attach(finding)
        yield finding
        return
    try:
        stack = open_stack(tree, path, layout.rotate)
        chosen = _chosen(stack, tree, facts, layout, masks)
    except NoImage as fault:
        log.miss(path, str(fault))
        return
    except MediaFault as fault:
        log.drop(path, str(fault))
        return
    single = len(stack) == 1
    if rows and not single:
        raise BadInput(
            "rows of a clip do not say their frame", file=path, field="rows", fix="leave out `rows: each` for clips"
        )
    for number in chosen:
        finding = Finding(
            path,
            name if single else f"{name}/{number:04d}",
            {**facts, **stack.meta, "frame": str(number), "frames": str(len(stack))},
            partial(stack.picture, number),
            rows=rows,
            cluster=None if single else path,
            frame=None if single else number,
            frames=1,
        )
        for mask in masks:
            mask.attach(finding)
        yield finding


def _chosen(stack: Stack, tree: Tree, facts: dict[str, str], layout: Layout, masks: list[Masks]) -> list[int]:
    rule = layout.frames
    if rule.keep != "annotated" or len(stack) == 1:
        return stack.choose(rule)
    marked: set[int] = set()
    for mask in masks:
        for path in mask.paths(facts):
            if stack_kind(path) is not None:
                marked |= open_stack(tree, path, mask.rule.rotate).non_empty()
    rest = [number for number in range(len(stack)) if number not in marked]
    return sorted({*marked, *(rest[place] for place in spread(len(rest), rule.empty))} & set(range(len(stack))))


def _read_mask(
    tree: Tree, path: str, rule: MaskRule, category: str, frame: int | None, width: int, height: int
) -> Regions:
    name = path.rpartition("/")[2]
    if rule.kind == "polygon":
        drawn = polygon_mask(_points(tree, path), width, height)
        return Regions(fan=drawn) if rule.fan else Regions([(category, drawn)])
    pixels = load_mask(tree, path, rule.rotate, frame, numbers=rule.kind == "classes")
    if pixels.shape[:2] != (height, width):
        raise MediaFault(f"mask of another size than the image ({name})")
    if rule.kind in ("binary", "outline"):
        mask = binary(pixels, rule.threshold)
        if rule.fan:
            return Regions(fan=mask)
        return Regions([(category, fill_outline(mask) if rule.kind == "outline" else mask)])
    if rule.kind == "classes":
        found = classes(pixels, rule.classes, rule.ignored)
    else:
        found = colours(pixels, rule.colours, rule.background)
    notes = []
    if rule.larger is not None and rule.larger in found.masks:
        largest = max(found.masks, key=lambda one: int(found.masks[one].sum()))
        if largest != rule.larger:
            notes.append(f"'{largest}' is larger than '{rule.larger}': classes swapped?")
    return Regions(list(found.masks.items()), far=found.far, notes=notes)


def _points(tree: Tree, path: str) -> list[tuple[float, float]]:
    try:
        value = json.loads(tree.read(path, MAX_POLYGON_BYTES))
        points = [(float(x), float(y)) for x, y in value]
    except (ValueError, TypeError, RecursionError) as error:
        raise MediaFault("not a list of points") from error
    return points


def _numbers(templates: tuple[str, ...], facts: dict[str, str], what: str) -> tuple[list[float], list[str]]:
    """Return the numbers of cells and what is wrong with them; no numbers where all cells are empty."""
    cells = [Template(one).fill(facts) for one in templates]
    if all(cell is None for cell in cells):
        return [], []
    try:
        found = [float(cell or "") for cell in cells]
    except ValueError:
        return [], [f"{what} is not of numbers"]
    return (found, []) if all(map(math.isfinite, found)) else ([], [f"{what} is not of numbers"])


def _of_cells(rule: MaskRule, facts: dict[str, str], width: int, height: int) -> Regions:
    """Return the box or the point that the cells of a row give."""
    category = rule.category.of(facts) or "region"
    if rule.kind == "point":
        found, notes = _numbers(rule.point or (), facts, "point")
        return Regions(points=[(category, found[0], found[1])] if found else [], notes=notes)
    found, notes = _numbers(rule.box or rule.corners or (), facts, "box")
    if not found:
        return Regions(notes=notes)
    x, y, w, h = found
    return Regions(boxes=[(category, x, y, w, h) if rule.box else (category, x, y, w - x, h - y)])


def _boxes_of_cell(rule: MaskRule, facts: dict[str, str], width: int, height: int) -> Regions:
    cell = Template(rule.boxes or "").fill(facts)
    if not cell:
        return Regions()
    try:
        entries = json.loads(cell)
        if rule.box_labels is not None:
            entries = list(zip(json.loads(Template(rule.box_labels).fill(facts) or "[]"), entries, strict=True))
        found = []
        for category, corners in entries:
            x0, y0, x1, y1 = (float(one) for one in corners)
            found.append((str(category), x0, y0, x1 - x0, y1 - y0))
    except (ValueError, TypeError, RecursionError):
        return Regions(notes=["boxes are no list of categories and corners"])
    if not all(math.isfinite(number) for box in found for number in box[1:]):
        return Regions(notes=["box is not of numbers"])
    return Regions(boxes=found)


def _compared(name: str | None, rule: TableRule) -> str | None:
    if name is None:
        return None
    if rule.compare == "stem":
        return name.rpartition(".")[0] if ending(name) in PLAIN | VIDEOS else name
    if rule.compare == "number":
        stem = name.rpartition(".")[0] or name
        return str(int(stem)) if stem.isdecimal() else stem
    return name


class Table:
    """A table joined to images; counts what does not meet."""

    def __init__(self, tree: Tree, rule: TableRule, log: ReadLog) -> None:
        self._rule, self._log = rule, log
        self._rows: dict[str, list[dict[str, str]]] = {}
        self._met: set[str] = set()
        self._missed = 0
        files = list(tree.match(rule.file))
        if not files and rule.needed:
            raise BadInput(f"no table '{rule.file}'", file=tree.root, fix="look for the file the source comes with")
        key = Template(rule.key)
        for path, fields in files:
            log.used.add(path)
            self._add(tree, path, fields, key)
        self._files = len(files)

    def _add(self, tree: Tree, path: str, fields: dict[str, str], key: Template) -> None:
        rule = self._rule
        data = tree.read(path)
        rows = read_rows(data, path, kind=rule.kind, delimiter=rule.delimiter, columns=rule.columns, sheet=rule.sheet)
        for number, row in enumerate(rows, 1):
            if number == 1:
                absent = [name for name in key.fields if name not in row and name not in fields]
                if absent and rule.needed:
                    raise BadInput("column missing", file=path, field=absent[0], fix="it has: " + ", ".join(row))
                if absent:
                    self._log.miss(path, f"table without the column '{absent[0]}', left out")
                    return
            name = _compared(key.fill({**row, **fields}), rule)
            if name is None:
                self._log.miss(f"{path}, row {number}", "row without an id")
                continue
            entry = {rule.prefix + column: cell for column, cell in {**fields, **row}.items()}
            before = self._rows.setdefault(name, [])
            if before and entry in before:
                if rule.rows == "each":
                    self._log.miss(f"{path}, row {number}", "row for an image that stands there twice")
            elif not before or rule.rows == "each":
                before.append(entry)
            else:
                self._log.miss(f"{path}, row {number}", "two rows for one image that differ")

    def add(self, facts: dict[str, str]) -> str | None:
        """Add the row of an image to its facts, of several what they agree on; return a note where there is none."""
        if not self._rows:
            return None
        rows = self._of(facts)
        if not rows:
            self._log.miss(facts["path"], f"image without a row in {self._rule.file}")
            return f"no row in {self._rule.file}"
        for column, cell in rows[0].items():
            if all(row.get(column) == cell for row in rows[1:]):
                facts.setdefault(column, cell)
        return None

    def each(self, facts: dict[str, str]) -> list[dict[str, str]]:
        """Return the rows of an image, each with what it adds; none where an image has but one row."""
        if self._rule.rows == "one":
            return []
        rows = self._of(facts)
        self._log.count(f"rows read from {self._rule.file}", len(rows))
        return rows

    def _of(self, facts: dict[str, str]) -> list[dict[str, str]]:
        name = _compared(Template(self._rule.match).fill(facts), self._rule) or ""
        rows = self._rows.get(name, [])
        if rows:
            self._met.add(name)
        return rows

    def report(self) -> None:
        """Count the rows that no image has."""
        if left := sum(len(rows) for name, rows in self._rows.items() if name not in self._met):
            self._log.counts[f"rows without an image in {self._rule.file}"] += left


class Masks:
    """The mask files of one rule by what joins them to images."""

    def __init__(self, tree: Tree, rule: MaskRule, log: ReadLog) -> None:
        self.rule, self._tree, self._log = rule, tree, log
        self._fields: dict[str, dict[str, str]] = {}
        self._by_key: dict[str, list[str]] = {}
        self._shared: tuple[str, ...] | None = None
        self._used: set[str] = set()
        if rule.files:
            self._fields = {path: {**fields, "mask_stem": _stem(path)} for path, fields in tree.match(*rule.files)}

    def attach(self, finding: Finding) -> None:
        """Give a finding the regions of its masks."""
        rule = self.rule
        if rule.kind in ("box", "boxes", "point"):
            load = _boxes_of_cell if rule.kind == "boxes" else _of_cells
            for row in self._rows_of(finding):
                finding.regions.append(partial(load, rule, {**row, **finding.fields}))
            return
        paths = self.paths(finding.fields)
        for path in paths:
            self._log.used.add(path)
            self._log.count("mask files")
            category = rule.category.of({**finding.fields, **self._fields.get(path, {})}) or "region"
            finding.regions.append(partial(_read_mask, self._tree, path, rule, category, finding.frame))
        if not paths and not rule.optional:
            self._log.miss(finding.path, "no mask")
            finding.notes.append("no mask")

    def _rows_of(self, finding: Finding) -> list[dict[str, str]]:
        """Return the rows of the tables with several for one image that have a column of this rule."""
        texts = (*(self.rule.box or self.rule.corners or self.rule.point or ()), self.rule.boxes or "")
        used = {name for text in texts for name in Template(text).fields}
        return [row for row in finding.rows if not used.isdisjoint(row)] or [{}]

    def paths(self, facts: dict[str, str]) -> list[str]:
        """Return the mask files of an image by its facts."""
        rule = self.rule
        if rule.names is not None:
            return self._named(Template(rule.names).fill(facts), facts.get("folder"))
        if not self._fields:
            return []
        if self._shared is None:
            self._index(facts)
        if rule.key is not None:
            wanted = Template(rule.match or rule.key).fill(facts)
        else:
            wanted = _JOIN.join(facts.get(name, "") for name in self._shared or ())
        found = self._by_key.get(wanted or "", [])
        self._used.update(found)
        return found

    def _named(self, cell: str | None, folder: str | None) -> list[str]:
        found: list[str] = []
        for name in (one.strip() for one in (cell or "").split(self.rule.separator)):
            if name:
                paths = self._tree.named(name)
                if len(paths) > 1 and folder is not None:
                    paths = [path for path in paths if path == f"{folder}/{name}".lstrip("/")]
                if len(paths) != 1:
                    self._log.miss(name, "mask named in a table is missing" if not paths else "mask name not unique")
                    continue
                found.extend(paths)
        return found

    def _index(self, facts: dict[str, str]) -> None:
        first = next(iter(self._fields.values()))
        self._shared = tuple(sorted(set(first) & set(facts)))
        if not self._shared and self.rule.key is None:
            raise BadInput("masks and images share no field", field=self.rule.files[0], fix="give `key` and `match`")
        for path, fields in self._fields.items():
            if self.rule.key is not None:
                key = Template(self.rule.key).fill(fields)
            else:
                key = _JOIN.join(fields[name] for name in self._shared)
            if key is not None:
                self._by_key.setdefault(key, []).append(path)

    def report(self) -> None:
        """Report the masks that no image has."""
        for path in sorted(set(self._fields) - self._used):
            self._log.miss(path, "mask without an image")
