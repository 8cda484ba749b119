"""Croissant: the Parquet export with a machine-readable description of its files and columns."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final

from sonogauge.export import hf
from sonogauge.export.content import Content
from sonogauge.folders import FolderWriter, write_bytes

FILE: Final = "croissant.json"
# The context that version 1.0 of the format prescribes, word for word.
_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_COLUMNS: Final = {
    "item_id": "id of the item",
    "task": "code of the task",
    "dataset": "data set within the task",
    "source": "where the images come from",
    "group": "patient, video or file: the unit of resampling",
    "split": "train, val or test",
    "question": "question as it is asked",
    "prompt_id": "which prompt, of which version",
    "reference_state": "ok: there is a reference",
    "anatomy": "body region",
    "item_hash": "hash of the item and its images",
}


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write the Parquet export and croissant.json; return the rows of each file."""
    files = hf.write(content, folder)
    parts = sorted(name for name in files if name.startswith("data/"))
    document = describe(content, folder.path, parts)
    write_bytes(folder.path / FILE, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))
    return {**files, FILE: len(parts)}


def describe(content: Content, folder: Path, parts: list[str]) -> dict[str, Any]:
    """Return the description of the files `parts` of a folder."""
    spec = content.spec
    licences = sorted({content.cases[one]["licence"] or "not stated" for one in content.open_cases})
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": re.sub(r"[^A-Za-z0-9_-]", "-", spec.name),
        "description": f"{spec.title}. {content.canary}",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "version": _semantic(spec.version),
        "license": licences,
        "citeAs": spec.citation,
        "url": f"urn:sha256:{content.folder.manifest.hash}",
        "keywords": ["ultrasound", "benchmark", "visual question answering"],
        "distribution": [_file(folder, name) for name in parts],
        "recordSet": [_records(name) for name in parts],
    }


def _semantic(version: str) -> str:
    """Return a version of three numbers.

    >>> _semantic("1"), _semantic("2.3.1")
    ('1.0.0', '2.3.1')
    """
    numbers = [*re.findall(r"\d+", version), "0", "0", "0"][:3]
    return ".".join(str(int(number)) for number in numbers)


def _file(folder: Path, name: str) -> dict[str, Any]:
    digest = hashlib.sha256()
    with (folder / name).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": "application/x-parquet",
        "contentSize": f"{(folder / name).stat().st_size} B",
        "sha256": digest.hexdigest(),
    }


def _records(name: str) -> dict[str, Any]:
    part = Path(name).stem
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{part}/{column}",
            "name": column,
            "description": about,
            "dataType": "sc:Text",
            "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
        }
        for column, about in _COLUMNS.items()
    ]
    image = {
        "@type": "cr:Field",
        "@id": f"{part}/image",
        "name": "image",
        "description": "first image of the item",
        "dataType": "sc:ImageObject",
        "source": {
            "fileObject": {"@id": name},
            "extract": {"column": "image"},
            "transform": {"jsonPath": "bytes"},
        },
    }
    return {
        "@type": "cr:RecordSet",
        "@id": part,
        "name": part,
        "description": f"items of the {part} part",
        "key": {"@id": f"{part}/item_id"},
        "field": [*fields, image],
    }
