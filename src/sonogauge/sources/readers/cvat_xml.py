"""CVAT for images 1.1: one XML file, image elements with boxes, polygons, points and tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sonogauge.sources.findings import Finding, ReadLog, Regions
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.locate import locate
from sonogauge.sources.readers.open import open_still
from sonogauge.sources.readers.shapes import Shape, draw, ellipse_points
from sonogauge.sources.readers.tree import Tree
from sonogauge.sources.readers.xml import parse_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass
class Annotated:
    """An image element. tags: label, attribute ("" for the tag itself) and value, each once."""

    name: str
    width: int
    height: int
    shapes: list[Shape] = field(default_factory=list)
    tags: list[tuple[str, str, str]] = field(default_factory=list)
    doubled: int = 0  # tags that repeat another one of the same image


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of CVAT files that lie in the folder.

    Options: `tags`, tag label -> label name ("tag" by default); `images`, folder of the image files; `labels`, label
    name under which the labels of shapes are listed; `cluster`: "file" where one XML file is one sweep.
    """
    named = layout.options.get("tags") or {}
    shapes_label = layout.options.get("labels")
    for path, fields in tree.match(*layout.find):
        try:
            images = read_cvat(tree.read(path))
        except MediaFault as fault:
            log.drop(path, str(fault))
            continue
        if images is None:
            log.count("XML files that are not of CVAT")
            continue
        log.used.add(path)
        xml = path.rpartition("/")[2].rpartition(".")[0]
        for image in images:
            log.count("doubled tags", image.doubled)
            found = locate(tree, image.name, path, layout.options.get("images"), hint=xml)
            if found is None:
                log.miss(image.name, "annotated image is not in the folder")
                continue
            log.used.add(found)
            facts = {**fields, "xml": xml, "path": found, "file": found.rpartition("/")[2], "name": image.name}
            facts["stem"] = facts["file"].rpartition(".")[0]
            finding = Finding(found, found.rpartition(".")[0], facts, partial(open_still, tree, found))
            if layout.options.get("cluster") == "file":
                finding.cluster = path
            finding.regions.append(partial(_regions, image))
            for label, attribute, value in image.tags:
                name = named.get(label, "tag") if not attribute else f"{label} {attribute}"
                finding.labels.append((str(name), value))
            if shapes_label:
                finding.labels += [(str(shapes_label), one) for one in sorted({s.category for s in image.shapes})]
            yield finding


def _regions(image: Annotated, width: int, height: int) -> Regions:
    if (image.width, image.height) != (width, height):
        raise MediaFault(f"annotated at {image.width} x {image.height}, the image has {width} x {height}")
    return draw(image.shapes, width, height)


def read_cvat(data: bytes) -> list[Annotated] | None:
    """Return the image elements of a CVAT XML file, None for another kind of XML.

    A tag that an image carries twice counts once.

    Raises:
        MediaFault: entities, no XML, numbers that are none.
    """
    root = parse_xml(data)
    if root.tag != "annotations":
        return None
    try:
        return [_image(one) for one in root.iter("image")]
    except (KeyError, ValueError, TypeError) as error:
        raise MediaFault(f"annotation that does not read ({error})") from error


def _image(element: Element) -> Annotated:
    image = Annotated(element.attrib["name"], int(element.attrib["width"]), int(element.attrib["height"]))
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for child in element:
        label = child.attrib.get("label", "")
        if child.tag == "tag":
            values = tuple((one.attrib["name"], (one.text or "").strip()) for one in child.iter("attribute"))
            if (label, values) in seen:
                image.doubled += 1
                continue
            seen.add((label, values))
            image.tags += [(label, "", label), *((label, name, value) for name, value in values)]
        elif (shape := _shape(child, label)) is not None:
            image.shapes.append(shape)
    return image


def _shape(element: Element, label: str) -> Shape | None:
    given = element.attrib
    if element.tag == "box":
        corners = ((float(given["xtl"]), float(given["ytl"])), (float(given["xbr"]), float(given["ybr"])))
        return Shape(label, "box", corners)
    if element.tag == "ellipse":
        cx, cy, rx, ry = (float(given[name]) for name in ("cx", "cy", "rx", "ry"))
        return Shape(label, "polygon", tuple(ellipse_points(cx, cy, rx, ry, float(given.get("rotation", 0)))))
    if element.tag in ("polygon", "polyline", "points"):
        pairs = [one.split(",") for one in given["points"].split(";") if one]
        points = tuple((float(x), float(y)) for x, y in pairs)
        return Shape(label, {"polyline": "line"}.get(element.tag, element.tag), points)
    if element.tag in ("mask", "cuboid", "skeleton"):
        return Shape(label, element.tag, ())
    return None
