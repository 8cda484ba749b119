"""Agents: a model that plans and writes, paired with a segmenter that draws."""

from __future__ import annotations

from typing import Any

from sonogauge._errors import BadInput
from sonogauge.models.base import Model


def make_agent(name: str, **options: Any) -> Model:
    """Return `agent/ultrag?planner=MODEL&segmenter=BACKEND&…` or `agent/rule`, the planner without a model alone.

    Raises:
        BadInput: no such agent, or it refuses an option.
    """
    from sonogauge.models.agents.rules import RulePlanner
    from sonogauge.models.agents.ultrag import UltraGAgent

    kind = name.partition("/")[2].partition("?")[0]
    if kind == "ultrag":
        return UltraGAgent.from_name(name, **options)
    if kind == "rule" and not options and "?" not in name:
        return RulePlanner()
    raise BadInput(f"no agent '{name}'", fix="write agent/ultrag?planner=MODEL&segmenter=BACKEND or agent/rule")
