"""Agents: a model that plans and writes, paired with a segmenter that draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.models.base import Model


def make_agent(name: str, *, asked: Path | None = None, **options: Any) -> Model:
    """Return an agent, or a planner alone as the plain model beside it.

    asked: the benchmark whose categories a planner may know, where the name says no other by `bench=`.

    `agent/ultrag?planner=MODEL&segmenter=BACKEND&…`: see `ultrag`. `agent/rule`: the planner without a model, alone.
    `agent/plain?planner=MODEL&vocab_source=…&bench=…`: a planner alone, given the same list of categories.
    `agent/refined?run=RUN&segmenter=BACKEND&coords=…`: a finished run, its boxes, points and phrases redrawn.

    Raises:
        BadInput: no such agent, or it refuses an option.
    """
    from sonogauge.models.agents.rules import RulePlanner
    from sonogauge.models.agents.ultrag import UltraGAgent, plain_model, refined_model

    kind = name.partition("/")[2].partition("?")[0]
    if kind == "ultrag":
        return UltraGAgent.from_name(name, asked=asked, **options)
    if kind == "plain":
        return plain_model(name, asked=asked, **options)
    if kind == "refined":
        return refined_model(name, **options)
    if kind == "rule" and not options and "?" not in name:
        return RulePlanner()
    raise BadInput(f"no agent '{name}'", fix="write agent/ultrag?planner=MODEL&segmenter=BACKEND or agent/rule")
