"""Case files in XML whose marks are JSON lists of points, as DDTI has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.open import open_still
from sonogauge.sources.readers.shapes import Shape, draw
from sonogauge.sources.readers.tree import Tree
from sonogauge.sources.readers.xml import parse_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of XML cases: `<case>` with facts, and a `<mark>` with `<image>` and `<svg>` for each image.

    Options: `image`, name of the image file of a mark, with {number} and {image} (`{number}_{image}.jpg`);
    `category`.
    """
    pattern = str(layout.options.get("image", "{number}_{image}.jpg"))
    category = str(layout.options.get("category", "region"))
    for path, fields in tree.match(*layout.find):
        try:
            root = parse_xml(tree.read(path))
            marks = [_mark(one) for one in root.iter("mark")]
        except MediaFault as fault:
            log.drop(path, str(fault))
            continue
        log.used.add(path)
        facts = {child.tag: (child.text or "").strip() for child in root if child.tag != "mark"}
        number = facts.get("number") or path.rpartition("/")[2].rpartition(".")[0]
        for image, shapes in marks:
            name = pattern.replace("{number}", number).replace("{image}", image)
            beside = f"{path.rpartition('/')[0]}/{name}".lstrip("/")
            if beside not in tree.paths:
                log.miss(name, "marked image is not in the folder")
                continue
            log.used.add(beside)
            finding = Finding(
                beside,
                beside.rpartition(".")[0],
                {**fields, **facts, "number": number, "image": image, "path": beside, "file": name},
                partial(open_still, tree, beside),
                cluster=path,
            )
            finding.regions.append(partial(draw, [Shape(category, "polygon", points) for points in shapes]))
            yield finding


def _mark(element: Element) -> tuple[str, list[tuple[tuple[float, float], ...]]]:
    image, svg = (element.findtext("image") or "").strip(), (element.findtext("svg") or "").strip()
    if not svg:
        return image, []
    try:
        drawn: list[Any] = json.loads(svg)
        return image, [tuple((float(one["x"]), float(one["y"])) for one in shape["points"]) for shape in drawn]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MediaFault("marks that do not read") from error
