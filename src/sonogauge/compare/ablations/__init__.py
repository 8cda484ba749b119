"""Named ablations: what one change to question or model does, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sonogauge._registry import Registry
from sonogauge.compare.ablations.base import Ablation

ABLATIONS: Final[Registry[Callable[[Ablation], dict[str, Any]]]] = Registry(
    "ablation",
    {
        "anatomy": "sonogauge.compare.ablations.anatomy:anatomy_ablation",
        "groups": "sonogauge.compare.ablations.groups:groups_ablation",
        "image": "sonogauge.compare.ablations.image:image_ablation",
        "instruction": "sonogauge.compare.ablations.instruction:instruction_rates",
        "repeats": "sonogauge.compare.ablations.change:repeats_ablation",
        "rotations": "sonogauge.compare.ablations.change:rotations_ablation",
        "scale": "sonogauge.compare.ablations.scale:scale_ablation",
    },
    group="sonogauge.ablations",
)

__all__ = ["ABLATIONS", "Ablation"]
