"""The known sources: one declarative file each, in `known/`; and the plain kinds for a user's own files."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml

from sonogauge._errors import BadInput
from sonogauge.sources.layout import SourceSpec, make_spec, read_spec

# Kinds of files that can be read without a known layout -> the layout used where no map is given.
KINDS: Final[dict[str, dict[str, Any]]] = {
    "folder": {"reader": "files", "find": ["*.png", "*.jpg", "*.jpeg", "*.bmp", "*.tif", "*.tiff", "*.webp"]},
    "volume": {"reader": "files", "find": ["*.nii", "*.nii.gz", "*.mha", "*.mhd"], "frames": {"keep": "uniform"}},
    "video": {"reader": "files", "find": ["*.mp4", "*.avi", "*.mov", "*.mkv", "*.webm"], "frames": {"keep": "uniform"}},
    "dicom": {
        "reader": "files",
        # Often there is no ending, or the name is a UID, alone or after the two letters of its modality.
        "find": ["*.dcm", "*.dicom", r"{name:[^.]+|(?:[A-Z]{2}\.)?[\d.]+}"],
        "patient": "{patient_key}",
        "device": "{Manufacturer} {ManufacturerModelName}",
        "meta": {
            "ultrasound_regions": "{ultrasound_regions}",
            "photometric_interpretation": "{PhotometricInterpretation}",
            "transfer_syntax": "{TransferSyntax}",
        },
    },
    "coco": {"reader": "coco", "find": ["*.json"]},
    "cvat": {"reader": "cvat_xml", "find": ["*.xml"]},
    "cvat-task": {"reader": "cvat_task", "find": ["annotations.json"]},
    "via": {"reader": "via", "find": ["*.csv"]},
    "hdf5": {"reader": "arrays", "find": ["*.h5", "*.hdf5"]},
    "mat": {"reader": "arrays", "find": ["*.mat"]},
    "npy": {"reader": "files", "find": ["*.npy"]},
    "records": {"reader": "records", "find": ["*.parquet", "*.jsonl"]},
    "vlmevalkit": {"reader": "records", "find": ["*.tsv"]},
}


@lru_cache(maxsize=1)
def known_sources() -> tuple[str, ...]:
    """Return the names of the known sources, sorted."""
    folder = resources.files("sonogauge.sources") / "known"
    return tuple(sorted(file.name[: -len(".yaml")] for file in folder.iterdir() if file.name.endswith(".yaml")))


@lru_cache(maxsize=64)
def known_source(name: str) -> SourceSpec:
    """Return a known source by its name or an alias, in any spelling.

    Raises:
        BadInput: there is none; the message lists the known names.

    >>> known_source("BUS_BRA").name, known_source("BrEaST").name
    ('bus-bra', 'breast-lesions-usg')
    """
    if name not in known_sources():
        plain = _spelling(name)
        other = plain if plain in known_sources() else _aliases().get(plain)
        if other is None:
            raise BadInput(f"no source '{name}'", fix="known: " + ", ".join((*known_sources(), *KINDS)))
        return known_source(other)
    file = resources.files("sonogauge.sources") / "known" / f"{name}.yaml"
    return make_spec(yaml.safe_load(file.read_text("utf-8")), f"{name}.yaml")


def _spelling(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=1)
def _aliases() -> dict[str, str]:
    return {_spelling(alias): name for name in known_sources() for alias in known_source(name).aliases}


def find_source(name: str, map_file: Path | str | None = None) -> SourceSpec:
    """Return the source of a name: a known one, or a kind of files with or without a map.

    Args:
        name: see `known_sources` and KINDS.
        map_file: YAML with the keys of a known source, or those of one layout only; for a kind, or in place of a known
            source's own layout.

    Raises:
        BadInput: unknown name, unusable map.
    """
    if name not in KINDS:
        spec = known_source(name)
        return spec if map_file is None else read_map(Path(map_file), **spec.model_dump(exclude={"layouts"}))
    defaults = {"name": name, "title": f"{name} files", "organ": "unknown", "licence": "not stated"}
    if map_file is None:
        return make_spec({**defaults, "layouts": [KINDS[name]]}, name)
    return read_map(Path(map_file), KINDS[name], **defaults)


def read_map(path: Path, layout: dict[str, Any] | None = None, **defaults: Any) -> SourceSpec:
    """Read a user's map; a map without `layouts` is one layout, its other keys describe the source.

    Raises:
        BadInput: a file that cannot be read, or that is no map.
    """
    try:
        given = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput("not YAML", file=path) from error
    if not isinstance(given, dict):
        raise BadInput("not a mapping", file=path, fix="write keys such as `find:`")
    about = {key: value for key, value in given.items() if key in SourceSpec.model_fields}
    own = {key: value for key, value in given.items() if key not in SourceSpec.model_fields}
    if "layouts" not in about:
        about["layouts"] = [{**(layout or {}), **own}]
    elif own:
        raise BadInput("unknown key beside `layouts`", file=path, field=min(own))
    return make_spec({**defaults, **about}, path)


__all__ = ["KINDS", "find_source", "known_source", "known_sources", "read_map", "read_spec"]
