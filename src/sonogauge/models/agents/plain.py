"""A plain model that gets the same list of categories as the agent: equal information, no segmenter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sonogauge.models.agents.tasks import read_task
from sonogauge.models.agents.vocabulary import Vocabulary
from sonogauge.models.base import Model, Outcome, Request


class WithVocabulary:
    """A model whose every question ends with the categories that may occur."""

    def __init__(self, name: str, model: Model, vocabulary: Vocabulary) -> None:
        self.name, self._model, self._vocabulary = name, model, vocabulary
        self.revision, self.endpoint = model.revision, model.endpoint
        self.options: Mapping[str, Any] = {
            "planner": model.name,
            "planner_options": dict(model.options),
            "vocab_source": vocabulary.source,
            "vocabulary": vocabulary.told(),
        }

    async def answer(self, request: Request) -> Outcome:
        """Answer with the list in view."""
        listed = self._vocabulary.listed(read_task(request).organ)
        if listed:
            names = json.dumps([one["category"] for one in listed], ensure_ascii=False)
            request = replace(request, prompt=f"{request.prompt}\nCategories that may occur: {names}")
        return await self._model.answer(request)

    async def close(self) -> None:
        """Free the model."""
        await self._model.close()
