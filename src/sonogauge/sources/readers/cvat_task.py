"""Task folders of CVAT's own backup: annotations.json beside task.json and the clip or images they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.open import open_stack, open_still
from sonogauge.sources.readers.pictures import PLAIN, VIDEOS, ending
from sonogauge.sources.readers.shapes import Shape, draw, ellipse_points
from sonogauge.sources.readers.stacks import spread
from sonogauge.sources.readers.tree import Tree

_STEP: Final = re.compile(r"step\s*=\s*(\d+)")
_KINDS: Final = {"polygon": "polygon", "rectangle": "box", "points": "points", "polyline": "line", "mask": "mask"}


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the annotated frames of CVAT tasks; a task without its clip is reported and left out.

    Options: `labels`, label name under which the labels of shapes are listed; `regions`, the labels whose shapes are
    kept as masks and boxes (all by default). Tracks count at the frames where they were drawn, nothing is interpolated.
    """
    for path, fields in tree.match(*layout.find):
        folder = path.rpartition("/")[0]
        try:
            shapes, tags = read_task(tree.read(path))
            media = _media(tree, folder)
            if media is None:
                log.miss(path, "annotations without a clip")
                continue
            log.used.update((path, *media))
            start, step = _frames(tree, folder, log)
            yield from _task(tree, layout, folder, {**fields, "task": folder}, media, shapes, tags, start, step)
        except MediaFault as fault:
            log.drop(path, str(fault))


def _task(
    tree: Tree,
    layout: Layout,
    folder: str,
    fields: dict[str, str],
    media: list[str],
    shapes: dict[int, list[Shape]],
    tags: dict[int, list[str]],
    start: int,
    step: int,
) -> Iterator[Finding]:
    stack = open_stack(tree, media[0]) if ending(media[0]) in VIDEOS else None
    total = len(stack) if stack is not None else len(media)
    # Numbers in the file count the frames of the task; those of the clip are what a case keeps.
    drawn: dict[int, tuple[list[Shape], list[str]]] = {
        start + number * step: (found, tags.get(number, [])) for number, found in shapes.items()
    }
    drawn |= {start + number * step: ([], found) for number, found in tags.items() if number not in shapes}
    rest = [number for number in range(total) if number not in drawn]
    extra: dict[int, tuple[list[Shape], list[str]]] = {
        rest[place]: ([], []) for place in spread(len(rest), layout.frames.empty)
    }
    for number, (found, marks) in sorted({**drawn, **extra}.items()):
        if not 0 <= number < total:
            raise MediaFault(f"annotation of frame {number}, the clip has {total}")
        path = media[0] if stack is not None else media[number]
        finding = Finding(
            path,
            f"{folder}/{number:04d}",
            {**fields, "path": path, "file": path.rpartition("/")[2], "frame": str(number), "frames": str(total)},
            partial(stack.picture, number) if stack is not None else partial(open_still, tree, path),
            cluster=folder,
            frame=number,
        )
        kept = layout.options.get("regions")
        finding.regions.append(partial(draw, [one for one in found if kept is None or one.category in kept]))
        if label := layout.options.get("labels"):
            finding.labels += [(str(label), one) for one in sorted({*(one.category for one in found), *marks})]
        yield finding


def _media(tree: Tree, folder: str) -> list[str] | None:
    inside = [path for path in tree.paths if path.startswith(f"{folder}/")]
    clips = [path for path in inside if ending(path) in VIDEOS]
    if len(clips) > 1:
        raise MediaFault("several clips beside one annotation file")
    if clips:
        return clips
    images = [path for path in inside if ending(path) in PLAIN]
    listed = next((path for path in inside if path.endswith("/manifest.jsonl")), None)
    if images and listed is not None:
        names = [str(one["name"]) + str(one.get("extension", "")) for one in _lines(tree.read(listed)) if "name" in one]
        by_name = {str(PurePosixPath(path).relative_to(PurePosixPath(listed).parent)): path for path in images}
        if names and all(name in by_name for name in names):
            return [by_name[name] for name in names]
    return images or None


def _lines(data: bytes) -> Iterator[Mapping[str, Any]]:
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MediaFault("manifest that does not read") from error
        if isinstance(value, dict):
            yield value


def _frames(tree: Tree, folder: str, log: ReadLog) -> tuple[int, int]:
    """Return the first frame of the clip that the task has, and the step between its frames."""
    path = f"{folder}/task.json"
    if path not in tree.paths:
        return 0, 1
    log.used.add(path)
    try:
        data = json.loads(tree.read(path))["data"]
        step = _STEP.search(str(data.get("frame_filter", "")))
        return int(data.get("start_frame", 0)), int(step.group(1)) if step else 1
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MediaFault("task.json that does not read") from error


def read_task(data: bytes) -> tuple[dict[int, list[Shape]], dict[int, list[str]]]:
    """Return the shapes and the tags of an annotations.json by frame of the task.

    Raises:
        MediaFault: no such file.
    """
    shapes: dict[int, list[Shape]] = {}
    tags: dict[int, list[str]] = {}
    try:
        for part in json.loads(data):
            for one in part.get("shapes", ()):
                shapes.setdefault(int(one["frame"]), []).append(_shape(one, str(one["label"])))
            for track in part.get("tracks", ()):
                for one in track["shapes"]:
                    if not one.get("outside"):
                        shapes.setdefault(int(one["frame"]), []).append(_shape(one, str(track["label"])))
            for tag in part.get("tags", ()):
                tags.setdefault(int(tag["frame"]), []).append(str(tag["label"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MediaFault("annotations that do not read") from error
    return shapes, tags


def _shape(one: Mapping[str, Any], label: str) -> Shape:
    flat = [float(value) for value in one["points"]]
    kind = str(one["type"])
    if kind == "ellipse":
        cx, cy, right, top = flat
        turn = float(one.get("rotation", 0))
        return Shape(label, "polygon", tuple(ellipse_points(cx, cy, right - cx, cy - top, turn)))
    points = () if kind == "mask" else tuple(zip(flat[::2], flat[1::2], strict=True))
    return Shape(label, _KINDS.get(kind, kind), points)
