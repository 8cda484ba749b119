"""An image set that is read and looked at in one pass gives what the stage gives over the finished cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sonogauge.build.engine import LocalEngine
from sonogauge.build.opening import open_set
from sonogauge.build.recipe import QualityRule, Recipe, SourceEntry
from sonogauge.build.shards import WorkFolder, read_arrow
from sonogauge.build.stages.quality import Examine
from tests.build.test_recipe import DX

pytestmark = pytest.mark.part("recipes")
MAP = """\
name: mixed
find: "images/{name}.{end}"
id: "{name}"
masks:
  - {files: "masks/{name}.png", category: lesion, optional: true}
"""
RECIPE = {"name": "mixed", "version": "1", "title": "Mixed", "tasks": {"DX": DX}}


def write_images(folder: Path, count: int) -> None:
    """Write images of every mode that files have, more than one row group of cases, some with masks."""
    random = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    (folder / "masks").mkdir()
    grey = random.integers(0, 255, (count, 40, 48), dtype=np.uint8)
    for number in range(count):
        plain = Image.fromarray(grey[number])
        kind = number % 7
        name = folder / "images" / f"i{number:03d}"
        if kind == 0:
            plain.save(f"{name}.png")
        elif kind == 1:
            plain.convert("RGB").save(f"{name}.png")
        elif kind == 2:
            Image.fromarray(random.integers(0, 255, (40, 48, 3), dtype=np.uint8)).save(f"{name}.jpg")
        elif kind == 3:
            plain.convert("RGBA").save(f"{name}.png")
        elif kind == 4:
            Image.fromarray(grey[number].astype(np.uint16) * 257).save(f"{name}.png")
        elif kind == 5:
            plain.convert("P").save(f"{name}.gif")
        else:
            plain.convert("1").save(f"{name}.bmp")
        if number % 3 == 0:
            mask = np.zeros((40, 48), dtype=np.uint8)
            mask[10:20, 5:30] = 255
            Image.fromarray(mask).save(folder / "masks" / f"i{number:03d}.png")


def test_one_pass_gives_what_the_stage_gives(tmp_path: Path) -> None:
    write_images(tmp_path / "files", 150)
    (tmp_path / "map.yaml").write_text(MAP, "utf-8")
    entry = SourceEntry.model_validate({"import": "folder", "dir": "files", "map": "map.yaml"})
    recipe = Recipe.model_validate({**RECIPE, "sources": [entry]})
    engine = LocalEngine(2)
    with WorkFolder(tmp_path / "bench") as work, WorkFolder(tmp_path / "again") as other:
        found = open_set(entry, tmp_path, work, engine, recipe)
        assert not list(work.path.glob("*.looked"))
        stage = Examine(QualityRule())
        expected = other.run(engine, stage, found.folder)
        assert [one.name for one in found.shards] == [one.name for one in expected]
        left, right = ([row for file in files for batch in read_arrow(file) for row in batch.to_pylist()]
                       for files in (found.shards, expected))  # fmt: skip
        assert len(left) == 150 and left == right
        assert sum(row["pixels"] is not None for row in left) == 150
    engine.close()
