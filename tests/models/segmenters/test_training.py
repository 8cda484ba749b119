from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.segmenters.made_images import disc, grey_image, png
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.models.segmenters import load_segmenter
from sonogauge.models.segmenters.evaluate import Contender, evaluate_segmenters, in_test_part
from sonogauge.models.segmenters.training import train_segmenter

pytestmark = [pytest.mark.part("segmenters"), pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture
def torch() -> Iterator[object]:
    module = require_extra("segment", "torch")
    for name in ("monai", "safetensors"):
        require_extra("segment", name)
    # One thread: the same sums in the same order, and no fight for the cores of a busy machine.
    before = module.get_num_threads()
    module.set_num_threads(1)
    yield module
    module.set_num_threads(before)


def made_bench(folder: Path, cases: int = 8) -> Path:
    from sonogauge.cases.geometry import encode_mask

    draws = np.random.default_rng(3)
    with new_folder(folder) as writer:
        rows = []
        for number in range(cases):
            mask = disc((48, 64), *draws.uniform(15, 33, 2), draws.uniform(6, 12))
            name = f"c{number:02d}"
            rows.append(
                {
                    "case_id": name,
                    "image": {"bytes": png(grey_image(mask, 30, 150, 10)), "path": f"{name}.png"},
                    "source": "made",
                    "group": name,
                    "split": "test" if number % 4 == 3 else "train",
                    "masks": [encode_mask(mask, name, "dark_disc")] if number else [],
                }
            )
        writer.table("cases").write(rows)
        writer.finish(Manifest(kind="cases", maker="test", licences=["CC0"]))
    return folder


SETTINGS: dict[str, Any] = {"epochs": 4, "size": 32, "batch_size": 4, "channels": (4, 8), "device": "cpu", "seed": 5}


def test_a_stopped_training_goes_on_to_the_same_weights(torch: object, tmp_path: Path) -> None:
    bench = made_bench(tmp_path / "cases")
    whole = train_segmenter(bench, tmp_path / "whole", **SETTINGS)

    class Stopped(Exception):
        pass

    def stop(done: int, of: int, loss: float) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        train_segmenter(bench, tmp_path / "resumed", **SETTINGS, progress=stop)
    with pytest.raises(BadInput, match="no trained segmenter"):
        load_segmenter(f"unet:{tmp_path / 'resumed'}")
    seen: list[int] = []
    resumed = train_segmenter(bench, tmp_path / "resumed", **SETTINGS, progress=lambda done, *_: seen.append(done))
    assert seen == [3, 4]
    assert resumed.counts == whole.counts and whole.counts["train_cases"] == 6
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "resumed")]
    assert weights[0] == weights[1]
    assert train_segmenter(bench, tmp_path / "whole", **SETTINGS, progress=_never).counts == whole.counts
    segmenter = load_segmenter(f"unet:{tmp_path / 'whole'}?device=cpu")
    assert segmenter.licence == "CC0" and segmenter.capabilities == {"text", "train"}
    image = grey_image(disc((48, 64), 30, 20, 9), 30, 150, 10)
    assert segmenter.segment(image, text="bone") == []
    assert all(one.mask.shape == (48, 64) for one in segmenter.segment(image, text="the dark discs"))


def _never(done: int, of: int, loss: float) -> None:
    raise AssertionError("a finished training was trained again")


def test_wrong_trainings_are_told(torch: object, tmp_path: Path) -> None:
    bench = made_bench(tmp_path / "cases")
    train_segmenter(bench, tmp_path / "one", **{**SETTINGS, "epochs": 1})
    with pytest.raises(BadInput, match="something else"):
        train_segmenter(bench, tmp_path / "one", **{**SETTINGS, "epochs": 2})
    train_segmenter(bench, tmp_path / "one", **{**SETTINGS, "epochs": 2}, overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all my work")
    with pytest.raises(BadInput):
        train_segmenter(bench, tmp_path / "mine", **SETTINGS, overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").is_file()
    for wrong in ({"epochs": 0}, {"size": 33}, {"device": "warp"}, {"learning_rate": 7.0}):
        with pytest.raises(BadInput):
            train_segmenter(bench, tmp_path / "wrong", **{**SETTINGS, **wrong})
    weights = tmp_path / "one" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(BadInput, match="broken weights"):
        load_segmenter(f"unet:{tmp_path / 'one'}")
    (tmp_path / "one" / "config.json").write_text('{"categories": {}}')
    with pytest.raises(BadInput):
        load_segmenter(f"unet:{tmp_path / 'one'}")


@pytest.mark.slow
@pytest.mark.lookalike
@pytest.mark.timeout(1800)
@pytest.mark.part("agents")
def test_the_u_net_and_its_agent_beat_box_fill_and_otsu_on_the_synthetic_test_part(
    torch: object, tmp_path: Path
) -> None:
    from sonogauge.benchmarks.synthetic.build import build_synthetic
    from sonogauge.benchmarks.ultrag.build import build_ultrag
    from sonogauge.compare.agent_grid import agent_grid

    build_synthetic(tmp_path / "synthetic", seed=0)
    bench = tmp_path / "bench"
    build_ultrag(tmp_path / "synthetic", bench)
    network = tmp_path / "unet"
    train_segmenter(
        bench, network, epochs=25, size=96, batch_size=8, learning_rate=4e-3, channels=(16, 32, 64, 96), device="cpu"
    )
    assert Folder(network, "segmenter").manifest.counts["last_loss"] < 0.7
    unet = f"unet:{network}?device=cpu"
    asked = [(unet, "text"), ("box-fill", "fan"), ("otsu", "fan"), ("box-fill", "reference"), ("otsu", "reference")]
    rows = evaluate_segmenters(
        bench,
        [Contender(load_segmenter(name), prompt) for name, prompt in asked],
        each="category",
        keep=in_test_part(bench),
        draws=500,
    )
    for row in rows:
        if "(fan)" in row.label:
            assert row.less_first is not None and row.less_first.high is not None and row.less_first.high < 0
    grid = agent_grid(
        bench,
        tmp_path / "grid",
        planners=["rule"],
        segmenters=[unet, "box-fill", "otsu"],
        switches={"box": "fan"},
        tasks=["VQA"],
        limit=120,
        draws=500,
    ).document
    rows_of = [row for row in grid["rows"] if row["metric"] == "g_acc"]
    value = {(row["segmenter"].partition(":")[0], row["role"]): row["value"] for row in rows_of}
    for style in ("neutral", "template"):
        assert value["unet", f"predicted+{style}"] > value["box-fill", f"predicted+{style}"]
        assert value["unet", f"predicted+{style}"] > value["otsu", f"predicted+{style}"]
