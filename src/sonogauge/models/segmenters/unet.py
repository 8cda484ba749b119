"""A U-Net of MONAI that was trained on the train split of a benchmark; never a zero-shot segmenter. Extra `[segment]`.

A folder of one holds `model.safetensors` (no pickle, so opening it runs no code), `config.json` and `manifest.json`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput
from sonogauge.models.segmenters.base import XYXY, Instance, Pixels, best, check_prompts, grey, make_instance
from sonogauge.models.segmenters.words import find_category

WEIGHTS: Final = "model.safetensors"
CONFIG: Final = "config.json"
KIND: Final = "segmenter"
INSTALL: Final = "pip install 'sonogauge[segment]'"


class UNetConfig(BaseModel):
    """What a network is: one output channel for each category.

    categories: name to aliases, in the order of the channels. size: side in pixels of the square it sees.
    channels: of each level, halved in size from one to the next. threshold: a pixel above this probability belongs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    architecture: str = "monai.UNet"
    categories: dict[str, tuple[str, ...]] = Field(min_length=1, max_length=500)
    size: int = Field(default=256, ge=16, le=2048)
    channels: tuple[int, ...] = Field(default=(16, 32, 64, 128), min_length=2, max_length=8)
    residual_units: int = Field(default=1, ge=0, le=8)
    threshold: float = Field(default=0.5, gt=0, lt=1)


def make_network(config: UNetConfig) -> Any:
    """Return the network of a configuration with random weights.

    Raises:
        BadInput: the extra is not installed, or the size does not suit the number of levels.
    """
    if config.size % 2 ** (len(config.channels) - 1):
        raise BadInput(f"a size of {config.size} cannot be halved {len(config.channels) - 1} times", field="size")
    try:
        from monai.networks.nets import UNet
    except ImportError as error:
        raise BadInput(f"the U-Net needs torch and monai ({error})", fix=INSTALL) from error
    return UNet(
        spatial_dims=2,
        in_channels=1,
        out_channels=len(config.categories),
        channels=config.channels,
        strides=(2,) * (len(config.channels) - 1),
        num_res_units=config.residual_units,
        norm="instance",
    )


def network_input(image: Pixels, size: int) -> NDArray[np.float32]:
    """Return an image as the network sees it: grey, square, mean 0 and standard deviation 1; shape (size, size)."""
    import cv2

    square = cv2.resize(grey(image), (size, size), interpolation=cv2.INTER_AREA).astype(np.float32)
    return np.asarray((square - square.mean()) / (square.std() + 1e-3), dtype=np.float32)


def pick_device(device: str) -> str:
    """Return the device that "auto" means; raise BadInput for one that is not there."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"no device '{device}' ({' '.join(str(error).split())[:120]})", field="device") from error
    return device


class UNetSegmenter:
    """Draws the category that a phrase names; an unknown phrase draws nothing.

    The score of a mask is the mean probability of its pixels. A channel is one region, so there is one candidate.

    Args:
        where: a folder that `train_segmenter` wrote.
        device: "cpu", "cuda", …; "auto" = the best one there.
    """

    version = "1"
    capabilities: frozenset[str] = frozenset({"text", "train"})
    endpoint = ""

    def __init__(self, where: str, *, device: str = "auto") -> None:
        folder = Path(where)
        self.config = read_config(folder)
        network = make_network(self.config)
        self.device = pick_device(device)
        data, weights = _read_weights(folder)
        try:
            network.load_state_dict(weights)
        except (RuntimeError, KeyError) as error:
            raise BadInput(f"weights of another network ({' '.join(str(error).split())[:160]})", file=folder) from error
        self._network = network.to(self.device).eval()
        self.name = "unet"
        self.weights_id = hashlib.sha256(data).hexdigest()[:16]
        self.licence = _licence(folder)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Names and aliases of what it can draw: the vocabulary of its train split."""
        return dict(self.config.categories)

    def segment(
        self,
        image: Pixels,
        text: str | None = None,
        boxes: Sequence[XYXY] | None = None,
        points: Sequence[tuple[float, float]] | None = None,
        point_labels: Sequence[int] | None = None,
        top_k: int | None = 1,
        score_threshold: float | None = None,
    ) -> list[Instance]:
        """Draw the category of the phrase; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        category = find_category(text or "", self.config.categories)
        if category is None:
            return []
        import cv2

        channel = list(self.config.categories).index(category)
        probability = self._probabilities(image)[channel]
        native = cv2.resize(probability, image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
        mask = np.asarray(native > self.config.threshold, dtype=np.bool_)
        score = float(native[mask].mean()) if mask.any() else None
        return best([make_instance(mask, score, f"text: {text}")], top_k, score_threshold)

    def _probabilities(self, image: Pixels) -> NDArray[np.float32]:
        import torch

        batch = torch.from_numpy(network_input(image, self.config.size))[None, None].to(self.device)
        with torch.inference_mode():
            return np.asarray(torch.sigmoid(self._network(batch))[0].float().cpu().numpy(), dtype=np.float32)


def read_config(folder: Path) -> UNetConfig:
    """Read the configuration of a trained network; raise BadInput where there is none or a broken one."""
    file = folder / CONFIG
    try:
        return UNetConfig.model_validate_json(file.read_bytes())
    except OSError as error:
        fix = "train one with sonogauge train-segmenter"
        raise BadInput("no trained segmenter here", file=folder, fix=fix) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(first["msg"], file=file, field=".".join(map(str, first["loc"])) or None) from error


def _read_weights(folder: Path) -> tuple[bytes, dict[str, Any]]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        data = (folder / WEIGHTS).read_bytes()
        return data, load(data)
    except OSError as error:
        fix = "the same train-segmenter command again goes on"
        raise BadInput("training has not finished here", file=folder, fix=fix) from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise BadInput(f"broken weights ({error})", file=folder / WEIGHTS, fix="train again") from error


def _licence(folder: Path) -> str:
    from sonogauge.folders import MANIFEST

    try:
        told = json.loads((folder / MANIFEST).read_bytes()).get("licences")
    except (OSError, ValueError, AttributeError):
        return "unknown"
    return "; ".join(map(str, told)) if isinstance(told, list) and told else "unknown"
