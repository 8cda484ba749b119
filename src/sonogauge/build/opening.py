"""The image sets of a recipe: folders of cases as they are, other files imported first."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.build.engine import Engine
from sonogauge.build.recipe import Recipe, SourceEntry
from sonogauge.build.shards import WorkFolder
from sonogauge.build.stages.quality import Examine
from sonogauge.build.stages.vocabulary import Vocabulary, read_vocabulary
from sonogauge.folders import Folder, Input
from sonogauge.hashes import canonical_hash
from sonogauge.sources.importer import import_cases
from sonogauge.sources.rows import Look


@dataclass
class ImageSet:
    """One image set on its way: its cases, the shards of the first stage."""

    folder: Folder
    shards: list[Path]
    origin: Input


def open_vocabulary(recipe: Recipe, *folders: Path) -> Vocabulary | None:
    """Return the vocabulary of a recipe, looked for in the folders in turn; None where none is to be used.

    Raises:
        BadInput: the file is in none of the folders, or cannot be used.
    """
    rule = recipe.vocabulary
    if rule.file is None or not rule.use:
        return None
    found = next((folder / rule.file for folder in folders if (folder / rule.file).is_file()), None)
    if found is None:
        raise BadInput("no such file", file=folders[0] / rule.file, field="vocabulary.file")
    return read_vocabulary(found)


def open_set(entry: SourceEntry, base: Path, work: WorkFolder, engine: Engine, recipe: Recipe) -> ImageSet:
    """Return an image set, imported if need be, with the shards of the first stage.

    Raises:
        BadInput: no such folder, or its files cannot be used.
    """
    stage = Examine(recipe.quality)
    if entry.cases is not None:
        path = base / entry.cases
        folder = Folder.open(path, "cases")
    else:
        assert entry.import_ is not None
        path = base / entry.dir
        # A cluster looks at the images itself; here they are looked at while they are read, and decoded once.
        folder = _import(entry, path, base, work, recipe.max_dropped, stage if engine.name == "local" else None)
    origin = Input(role="cases", path=str(path), hash=folder.manifest.hash)
    return ImageSet(folder, work.run(engine, stage, folder), origin)


def _import(
    entry: SourceEntry, path: Path, base: Path, work: WorkFolder, max_dropped: float, stage: Examine | None
) -> Folder:
    """Import a source into the work folder, or find it there from a command that was killed later.

    stage: to be run on each case on the way.
    """
    assert entry.import_ is not None
    map_file = None if entry.map is None else base / entry.map
    if not path.is_dir():
        raise BadInput("no such folder", file=path, fix="pass --data DIR")
    mapped = "" if map_file is None or not map_file.is_file() else map_file.read_text("utf-8", "replace")
    name = canonical_hash([entry.model_dump(mode="json"), _state_of(path), mapped, max_dropped, __version__])
    out = work.path / f"cases-{name[:40]}"
    if out.is_dir():
        return Folder.open(out, "cases")
    look = None if stage is None else Look(stage.schema, stage.look, work.path / f"{name[:40]}.looked")
    import_cases(entry.import_, path, out, map_file=map_file, private=entry.private, max_dropped=max_dropped, look=look)
    folder = Folder.open(out, "cases")
    if stage is not None and look is not None:
        work.adopt(stage, folder, look.file)
    return folder


def _state_of(path: Path) -> str:
    """Return a SHA-256 over names, sizes and times of all files below a folder: it changes when one of them does."""
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            facts = os.lstat(file)
            line = f"{os.path.relpath(folder, path)}/{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
