"""FPUS23's own facts on look-alike XML at full size: doubled tags, sums of poses and boxes, groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.fetal_gauge.made import facts_of, rows_of

import sonogauge
from sonogauge.build.fetal_gauge.build import build_fetal_gauge

pytestmark = [pytest.mark.part("fetal-gauge build"), pytest.mark.lookalike]

IMAGES, DOUBLED, SWEEPS = 15_113, 615, 39
# Tags by pose before doubled ones are taken away, and boxes by label. Source: specification, section 8.
POSES = {"huvf": 4756, "huvb": 3980, "hdvb": 3757, "hdvf": 3235}
BOXES = {"abdomen": 6435, "arm": 4853, "legs": 4572, "head": 4370}


def test_the_sums_of_the_specification() -> None:
    assert IMAGES + DOUBLED == sum(POSES.values()) == 15_728 and sum(BOXES.values()) == 20_230


def _write(root: Path, scale: int) -> tuple[int, int, dict[str, int]]:
    """Write 39 sweeps of 1/scale of the images; return images, doubled tags and boxes by label."""
    from PIL import Image

    images, doubled = IMAGES // scale, DOUBLED // scale
    tags = [pose for pose, number in POSES.items() for _ in range(-(-number // scale))]
    wanted = {label: number // scale for label, number in BOXES.items()}
    left = dict(wanted)
    rng = np.random.default_rng(0)
    for sweep in range(SWEEPS):
        own = range(sweep * images // SWEEPS, (sweep + 1) * images // SWEEPS)
        # A sweep has one pose, as its folder says.
        pose = tags[sweep * len(tags) // SWEEPS]
        elements = []
        for number in own:
            name = f"frame_{number:05d}.png"
            folder = root / "Dataset" / "four_poses" / pose / f"sweep{sweep:02d}"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (20, 36), dtype=np.uint8)).save(folder / name, compress_level=0)
            boxes = ""
            for label in left:
                if left[label] and number * wanted[label] // images != (number + 1) * wanted[label] // images:
                    left[label] -= 1
                    boxes += f'<box label="{label}" xtl="3" ytl="4" xbr="23" ybr="15" z_order="0"></box>'
            tag = f'<tag label="{pose}" source="manual"></tag>'
            twice = tag if number * doubled // images != (number + 1) * doubled // images else ""
            elements.append(f'<image id="{number}" name="{name}" width="36" height="20">{boxes}{tag}{twice}</image>')
        file = root / "boxes" / "annotation" / f"sweep{sweep:02d}.xml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"<annotations><version>1.1</version>{''.join(elements)}</annotations>", "utf-8")
    return images, doubled, {label: wanted[label] - left[label] for label in wanted}


def _build(folder: Path, scale: int, tasks: list[str]) -> None:
    images, doubled, boxes = _write(folder / "FPUS23", scale)
    imported = sonogauge.import_cases("fpus23", folder / "FPUS23", folder / "cases")
    assert imported.counts["doubled tags"] == doubled and imported.counts["cases"] == images
    build_fetal_gauge(folder / "cases", folder / "bench", parameters={"tasks": tasks})
    rows = rows_of(folder / "bench", columns=["item_id", "task", "group", "split", "images", "reference", "meta"])
    orientation = [row for row in rows if row["task"] == "FO"]
    # A tag that an image carries twice asks one question, not two.
    assert len(orientation) == len({row["images"][0]["case_id"] for row in orientation}) == images
    assert len({row["group"] for row in rows}) == SWEEPS
    found = dict.fromkeys(boxes, 0)
    for row in rows:
        if row["task"] == "VG":
            found[facts_of(row)["raw_label"]] += 1
        assert facts_of(row)["is_phantom"] == "true"
    assert "VG" not in tasks or found == boxes
    parts: dict[str, set[str]] = {}
    for row in rows:
        parts.setdefault(row["group"], set()).add(row["split"])
    assert all(len(one) == 1 for one in parts.values()) and {"train", "test"} <= set.union(*parts.values())


def test_a_tenth_of_the_sweeps(tmp_path: Path) -> None:
    _build(tmp_path, 10, ["FO", "VG"])


@pytest.mark.slow
def test_615_doubled_tags_ask_no_question_twice(tmp_path: Path) -> None:
    _build(tmp_path, 1, ["FO"])
