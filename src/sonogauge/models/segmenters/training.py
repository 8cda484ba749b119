"""Training the U-Net on the train split of a benchmark: seeded, stopped and resumed at any epoch. Extra `[segment]`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.folders import MANIFEST, Folder, Input, Manifest, write_bytes
from sonogauge.hashes import canonical_json
from sonogauge.models.segmenters.base import SegmenterFault, decode_pixels
from sonogauge.models.segmenters.unet import (
    CONFIG,
    INSTALL,
    KIND,
    WEIGHTS,
    UNetConfig,
    make_network,
    network_input,
    pick_device,
)
from sonogauge.models.segmenters.words import canonical

_CHECKPOINT: Final = "checkpoint.safetensors"
_PROGRESS: Final = "progress.json"
# A lesion covers a few percent of an image: without this weight the first thing learned is to draw nothing.
_POSITIVE_WEIGHT: Final = 3.0


@dataclass(frozen=True)
class TrainedCase:
    """A case of the train split as the network sees it; masks (categories, size, size), shares of pixels 0 to 1."""

    pixels: NDArray[np.float32]
    masks: NDArray[np.float32]


def train_segmenter(
    bench: Path | str,
    out: Path | str,
    *,
    epochs: int = 40,
    seed: int = 0,
    device: str = "auto",
    size: int = 128,
    batch_size: int = 8,
    learning_rate: float = 3e-3,
    channels: Sequence[int] = (16, 32, 64, 128),
    aliases: Mapping[str, Sequence[str]] | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int, float], None] | None = None,
) -> Manifest:
    """Train a U-Net, one channel for each category of the train split, and return its manifest.

    The same call again goes on where the last one stopped; after the last epoch it changes nothing. On one device and
    number of threads a resumed training ends with the same weights as one that was never stopped.

    Args:
        bench: a benchmark with masks, or a folder of cases with a split of its own; cases of other splits are not read.
        out: folder for the network.
        epochs: passes over the cases; the learning rate falls to 0 over all of them.
        seed: of weights, order and augmentation.
        device: "cpu", "cuda", …; "auto" = the best one there.
        size: side of the square that the network sees.
        batch_size: cases per step.
        learning_rate: the largest, after a tenth of the steps.
        channels: of each level.
        aliases: other words for a category.
        overwrite: start anew in a folder that holds another training.
        progress: called with (epochs done, epochs, loss) after each.

    Raises:
        BadInput: no train case with a mask, a folder of another training, the extra not installed, a bad number.
    """
    if epochs < 1 or batch_size < 1 or not 0 < learning_rate < 1:
        raise BadInput("training needs at least 1 epoch, 1 case per step and a learning rate between 0 and 1")
    try:
        import torch
        from safetensors.torch import save  # noqa: F401
    except ImportError as error:
        raise BadInput(f"training needs torch and safetensors ({error})", fix=INSTALL) from error
    source = Folder(bench)
    config, cases = _read_cases(source, size, tuple(channels), aliases or {})
    manifest = Manifest(
        kind=KIND,
        maker=f"sonogauge {__version__}",
        name="unet",
        inputs=[Input(role=source.manifest.kind, path=str(source.path.resolve()), hash=source.manifest.hash)],
        parameters={
            "config": config.model_dump(mode="json"),
            "epochs": epochs,
            "seed": seed,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
        },
        counts={"train_cases": len(cases)},
        licences=list(source.manifest.licences),
        notices=["trained on the train split of this benchmark: not a zero-shot segmenter"],
    )
    folder = _Place(Path(out), manifest, overwrite)
    if (done := folder.finished()) is not None:
        return done
    # Initial weights and all later draws come from the seed alone.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make_network(config).to(pick_device(device))
    trainer = _Trainer(network, cases, manifest)
    losses = folder.resume(trainer)
    for epoch in range(len(losses), epochs):
        losses.append(trainer.run(epoch))
        folder.keep(trainer, losses)
        if progress is not None:
            progress(epoch + 1, epochs, losses[-1])
    return folder.finish(network, config, losses)


def _read_cases(
    source: Folder, size: int, channels: tuple[int, ...], aliases: Mapping[str, Sequence[str]]
) -> tuple[UNetConfig, list[TrainedCase]]:
    """Read the cases of the train split; its categories are the channels, in sorted order."""
    in_train = _train_cases(source)
    found: list[tuple[NDArray[np.float32], list[dict[str, Any]]]] = []
    for case in source.rows("cases", ["case_id", "image", "masks", "split", "group"]):
        if not in_train(case) or not (case["image"] or {}).get("bytes"):
            continue
        try:
            image = decode_pixels(case["image"]["bytes"])
        except SegmenterFault:
            continue
        # Cases without a mask stay: that a thing can be absent must be learned too.
        found.append((network_input(image, size), case["masks"] or []))
    names = sorted({row["category"] for _, rows in found for row in rows})
    if not names:
        raise BadInput("no case of the train split has a mask", file=source.path, fix="name a benchmark with masks")
    config = UNetConfig(
        categories={name: tuple(aliases.get(name) or aliases.get(canonical(name)) or ()) for name in names},
        size=size,
        channels=channels,
    )
    return config, [TrainedCase(pixels, _stack(rows, names, size)) for pixels, rows in found]


def _train_cases(source: Folder) -> Callable[[Mapping[str, Any]], bool]:
    """Return which cases belong to the train split; a group with one test item belongs to the test split whole."""
    if not source.file("items").is_file():
        return lambda case: case["split"] == "train"
    train: set[str] = set()
    test: set[str] = set()
    for item in source.rows("items", ["group", "split"]):
        (train if item["split"] == "train" else test).add(item["group"])
    return lambda case: case["group"] in train and case["group"] not in test


def _stack(rows: Sequence[Mapping[str, Any]], names: Sequence[str], size: int) -> NDArray[np.float32]:
    import cv2

    masks = np.zeros((len(names), size, size), dtype=np.float32)
    for row in rows:
        small = cv2.resize(decode_mask(row).astype(np.float32), (size, size), interpolation=cv2.INTER_AREA)
        channel = names.index(row["category"])
        masks[channel] = np.maximum(masks[channel], small)
    return masks


class _Trainer:
    """Network, optimiser and the draws of each epoch, which depend on seed and epoch alone."""

    def __init__(self, network: Any, cases: Sequence[TrainedCase], manifest: Manifest) -> None:
        import torch

        parameters = manifest.parameters
        self.network = network
        self._pixels = torch.from_numpy(np.stack([case.pixels for case in cases])[:, None])
        self._masks = torch.from_numpy(np.stack([case.masks for case in cases]))
        self._seed, self._batch = int(parameters["seed"]), int(parameters["batch_size"])
        self._steps = -(-len(cases) // self._batch)
        self._total = self._steps * int(parameters["epochs"])
        self._rate = float(parameters["learning_rate"])
        self.optimiser = torch.optim.AdamW(network.parameters(), lr=self._rate, weight_decay=1e-4)

    def run(self, epoch: int) -> float:
        """Train one epoch and return its mean loss: soft Dice over the batch plus weighted cross entropy."""
        import torch
        from monai.losses import DiceLoss

        dice = DiceLoss(sigmoid=True, batch=True)
        device = next(self.network.parameters()).device
        weight = torch.tensor(_POSITIVE_WEIGHT, device=device)
        draws = np.random.default_rng([self._seed, epoch])
        order = draws.permutation(len(self._pixels))
        self.network.train()
        total = 0.0
        for step, chosen in enumerate(_parts(order, self._batch)):
            for group in self.optimiser.param_groups:
                group["lr"] = self._rate * _pace((epoch * self._steps + step) / self._total)
            pixels, masks = _vary(self._pixels[chosen], self._masks[chosen], draws)
            pixels, masks = pixels.to(device), masks.to(device)
            logits = self.network(pixels)
            loss = dice(logits, masks) + torch.nn.functional.binary_cross_entropy_with_logits(
                logits, masks, pos_weight=weight
            )
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            total += float(loss.detach()) * len(chosen)
        return total / len(order)

    def state(self) -> dict[str, Any]:
        """Return all tensors that go on from here."""
        state = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for number, held in self.optimiser.state_dict()["state"].items():
            state.update({f"optimiser.{number}.{name}": tensor for name, tensor in held.items()})
        return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the tensors of `state`."""
        network = {name.removeprefix("network."): one for name, one in state.items() if name.startswith("network.")}
        self.network.load_state_dict(network)
        whole = self.optimiser.state_dict()
        for name, tensor in state.items():
            if name.startswith("optimiser."):
                _, number, key = name.split(".")
                whole["state"].setdefault(int(number), {})[key] = tensor
        self.optimiser.load_state_dict(whole)


def _parts(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _pace(done: float) -> float:
    """Return the share of the learning rate: up over the first tenth, then down along half a cosine."""
    return done / 0.1 + 0.02 if done < 0.1 else 0.5 * (1 + float(np.cos(np.pi * (done - 0.1) / 0.9)))


def _vary(pixels: Any, masks: Any, draws: np.random.Generator) -> tuple[Any, Any]:
    """Return a batch mirrored or not, with another contrast and brightness."""
    if draws.random() < 0.5:
        pixels, masks = pixels.flip(-1), masks.flip(-1)
    return pixels * float(draws.uniform(0.8, 1.2)) + float(draws.uniform(-0.2, 0.2)), masks


class _Place:
    """The folder of a training: a checkpoint while it runs, weights, configuration and manifest when it is done."""

    def __init__(self, path: Path, manifest: Manifest, overwrite: bool) -> None:
        self.path, self._manifest = path, manifest
        if path.exists() and not path.is_dir():
            raise BadInput("is a file", file=path, fix="choose another --out")
        if path.is_dir() and any(path.iterdir()):
            same = self._identity() == self._found()
            if not same and not (overwrite and self._found() is not None):
                ours = self._found() is not None
                fix = "choose another --out" + (" or pass --overwrite" if ours else "")
                raise BadInput("holds something else than this training", file=path, fix=fix)
            if overwrite:
                shutil.rmtree(path)

    def _identity(self) -> str:
        return self._manifest.hash

    def _found(self) -> str | None:
        """Return the identity of the training that lies here, None if it is none."""
        try:
            return str(json.loads((self.path / _PROGRESS).read_bytes())["identity"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def finished(self) -> Manifest | None:
        """Return the manifest of a finished training."""
        return Folder(self.path, KIND).manifest if (self.path / MANIFEST).is_file() else None

    def resume(self, trainer: _Trainer) -> list[float]:
        """Restore the last checkpoint and return the losses so far."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            progress = json.loads((self.path / _PROGRESS).read_bytes())
            state = load((self.path / _CHECKPOINT).read_bytes())
            # Weights and losses are two files: only a pair of one epoch goes on.
            if progress["epochs"] != int(state.pop("epochs")):
                return []
            trainer.restore(state)
            return [float(loss) for loss in progress["losses"]]
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
            return []

    def keep(self, trainer: _Trainer, losses: Sequence[float]) -> None:
        """Write a checkpoint."""
        import torch
        from safetensors.torch import save

        self._write(_CHECKPOINT, save({**trainer.state(), "epochs": torch.tensor(len(losses))}))
        self._tell(losses)

    def finish(self, network: Any, config: UNetConfig, losses: Sequence[float]) -> Manifest:
        """Write what a segmenter needs; the manifest comes last and says that all is there."""
        from safetensors.torch import save

        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
        self._write(WEIGHTS, save(weights))
        self._write(CONFIG, config.model_dump_json(indent=2).encode() + b"\n")
        counts = {**self._manifest.counts, "first_loss": round(losses[0], 6), "last_loss": round(losses[-1], 6)}
        complete = self._manifest.model_copy(update={"counts": counts})
        text = json.dumps(complete.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True)
        self._write(MANIFEST, text.encode() + b"\n")
        (self.path / _CHECKPOINT).unlink(missing_ok=True)
        return complete

    def _tell(self, losses: Sequence[float]) -> None:
        told = {"identity": self._identity(), "epochs": len(losses), "losses": list(losses)}
        self._write(_PROGRESS, canonical_json(told).encode() + b"\n")

    def _write(self, name: str, data: bytes) -> None:
        try:
            write_bytes(self.path / name, data)
        except OSError as error:
            raise BadInput(f"cannot be written ({error.strerror})", file=self.path / name) from error
