"""Segment-anything models through transformers, from a folder or a name of the hub. Extra `[segment]`.

`sam3` finds all instances of a phrase (or of what exemplar boxes show); `sam3-tracker`, `sam2` and `sam` draw one
object for each box or set of points. Weights have licences of their own (SAM 3: the SAM licence, gated).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.models.local import fingerprint
from sonogauge.models.segmenters.base import (
    XYXY,
    Instance,
    Pixels,
    best,
    check_prompts,
    colour,
    make_instance,
)
from sonogauge.models.segmenters.classical import split_points
from sonogauge.models.segmenters.unet import INSTALL, pick_device

_TEXT_PLACES: Final = 32


class _Transformers:
    """Opens processor and network of one kind.

    Args:
        where: folder or name of the hub.
        device: "cpu", "cuda", …; "auto" = the best one there.
        dtype: "float32", "bfloat16", "float16" or "auto" (as stored).
        revision: of the weights on the hub.
        licence: of the weights, where it is another than the usual one.
    """

    kind: ClassVar[str]
    classes: ClassVar[tuple[str, str]]
    usual_licence: ClassVar[str]
    capabilities: frozenset[str] = frozenset({"box", "point"})
    endpoint = ""

    def __init__(
        self,
        where: str,
        *,
        device: str = "auto",
        dtype: str = "float32",
        revision: str | None = None,
        licence: str | None = None,
    ) -> None:
        if not where:
            raise BadInput(f"{self.kind} needs weights", field="segmenter", fix=f"write {self.kind}:FOLDER_OR_NAME")
        try:
            import torch
            import transformers
        except ImportError as error:
            raise BadInput(f"{self.kind} needs torch and transformers ({error})", fix=INSTALL) from error
        self.device = pick_device(device)
        model_class, processor_class = self.classes
        try:
            self._processor = getattr(transformers, processor_class).from_pretrained(where, revision=revision)
            network = getattr(transformers, model_class).from_pretrained(where, revision=revision, dtype=dtype)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
            detail = " ".join(str(error).split())[:300]
            fix = "name a folder or a model of the hub"
            raise BadInput(f"cannot open {self.kind}:{where} ({detail})", fix=fix) from error
        self._torch, self._network = torch, network.to(self.device).eval()
        self.name = f"{self.kind}:{Path(where).name}"
        self.version = f"transformers {transformers.__version__}"
        self.weights_id = revision or fingerprint(Path(where)) or where
        self.licence = licence or self.usual_licence

    def _ask(self, image: Pixels, inputs: dict[str, Any], **options: Any) -> tuple[Any, Any]:
        """Return the processed inputs and what the network makes of them."""
        from PIL import Image

        # As a Pillow image, because the axes of an array of three rows could be taken for channels.
        found = self._processor(images=Image.fromarray(colour(image)), return_tensors="pt", **inputs)
        batch = {
            key: value.to(self.device, self._network.dtype if value.is_floating_point() else None)
            for key, value in found.items()
            if key not in ("original_sizes", "reshaped_input_sizes")
        }
        with self._torch.inference_mode():
            return found, self._network(**batch, **options)


class Sam3(_Transformers):
    """SAM 3 asked with a phrase, with boxes around examples, or both: all instances, best first."""

    kind = "sam3"
    classes = ("Sam3Model", "Sam3Processor")
    usual_licence = "SAM licence"
    capabilities: frozenset[str] = frozenset({"text", "box"})

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
        """Find the instances; boxes are examples, not places. See `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        inputs: dict[str, Any] = {} if text is None else {"text": self._short(text)}
        if boxes is not None:
            if not boxes:
                return []
            inputs |= {"input_boxes": [[list(box) for box in boxes]], "input_boxes_labels": [[1] * len(boxes)]}
        _, outputs = self._ask(image, inputs)
        scores = outputs.pred_logits.float().sigmoid()[0]
        if outputs.presence_logits is not None:
            scores = scores * outputs.presence_logits.float().sigmoid()[0]
        order = [int(number) for number in self._torch.argsort(scores, descending=True, stable=True)]
        if score_threshold is not None:
            order = [number for number in order if float(scores[number]) >= score_threshold]
        order = order if top_k is None else order[:top_k]
        if not order:
            return []
        # Only the chosen ones are drawn at native size: 200 queries of a large image would be gigabytes.
        chosen = SimpleNamespace(
            pred_logits=outputs.pred_logits[:, order].float(),
            pred_boxes=outputs.pred_boxes[:, order].float(),
            pred_masks=outputs.pred_masks[:, order].float(),
            presence_logits=None,
        )
        drawn = self._processor.post_process_instance_segmentation(
            chosen, threshold=-1.0, mask_threshold=0.5, target_sizes=[image.shape[:2]]
        )[0]["masks"]
        prompt = f"text: {text}" if text is not None else f"exemplars: {[list(box) for box in boxes or ()]}"
        masks = np.asarray(drawn.cpu().numpy(), dtype=np.bool_)
        return best(
            (make_instance(mask, float(scores[number]), prompt) for mask, number in zip(masks, order, strict=True)),
            top_k,
            None,
        )

    def _short(self, text: str) -> str:
        """Return a phrase that fits the 32 places of the text encoder, cut at the end."""
        while len(self._processor.tokenizer(text)["input_ids"]) > _TEXT_PLACES:
            text = text[: len(text) * 9 // 10]
        return text


class Sam3Tracker(_Transformers):
    """SAM 3 asked with a box or points: one object each, the best of its candidates first."""

    kind = "sam3-tracker"
    classes = ("Sam3TrackerModel", "Sam3TrackerProcessor")
    usual_licence = "SAM licence"

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
        """Draw one object for each box, or one for the points; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        found: list[Instance] = []
        for inputs, prompt in _objects(boxes, points, point_labels):
            processed, outputs = self._ask(image, inputs, multimask_output=top_k is None or top_k > 1)
            masks = self._native(processed, outputs)
            scores = outputs.iou_scores.float().reshape(-1).cpu().tolist()
            drawn = (make_instance(mask, score, prompt) for mask, score in zip(masks, scores, strict=True))
            found += best(drawn, top_k, score_threshold)
        return found

    def _native(self, processed: Any, outputs: Any) -> Any:
        draw: Callable[..., Any] = self._processor.post_process_masks
        sizes = [processed["original_sizes"]]
        if "reshaped_input_sizes" in processed:
            sizes.append(processed["reshaped_input_sizes"])
        drawn = draw(outputs.pred_masks.float().cpu(), *sizes)[0]
        return np.asarray(drawn.numpy(), dtype=np.bool_).reshape(-1, *drawn.shape[-2:])


class Sam2(Sam3Tracker):
    """SAM 2 asked with a box or points."""

    kind = "sam2"
    classes = ("Sam2Model", "Sam2Processor")
    usual_licence = "Apache-2.0"


class Sam(Sam3Tracker):
    """The first Segment Anything model asked with a box or points."""

    kind = "sam"
    classes = ("SamModel", "SamProcessor")
    usual_licence = "Apache-2.0"


def _objects(
    boxes: Sequence[XYXY] | None,
    points: Sequence[tuple[float, float]] | None,
    labels: Sequence[int] | None,
) -> list[tuple[dict[str, Any], str]]:
    """Return the inputs of each object to draw; points refine the box if there is one of each."""
    pointed: dict[str, Any] = {}
    if points is not None:
        split_points(points, labels)  # refuses points that are all off the object
        marks = [1] * len(points) if labels is None else [int(label) for label in labels]
        pointed = {"input_points": [[[list(map(float, point)) for point in points]]], "input_labels": [[marks]]}
    if boxes is None:
        return [(pointed, f"point: {[list(point) for point in points or ()]}")]
    return [({"input_boxes": [[list(map(float, box))]], **pointed}, f"box: {list(box)}") for box in boxes]
