"""From a question of the plan to what a model gets: text, images, options, and never the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sonogauge.answers.variants import answer_of
from sonogauge.items import ItemImage
from sonogauge.models.base import EncodedImage, Request
from sonogauge.run.images import CaseImages, ImageFault, ImagePolicy, blank, open_image
from sonogauge.run.perturb import check_level, perturb
from sonogauge.run.plan import Job
from sonogauge.run.vary import question_of


class Requests:
    """Makes requests, one at a time and from any thread.

    prompts: folder of prompt versions in place of the benchmark's own.
    """

    def __init__(
        self, images: CaseImages, policy: ImagePolicy, generation: Mapping[str, Any], prompts: Path | str | None = None
    ) -> None:
        self._images, self._policy, self._generation, self._prompts = images, policy, generation, prompts

    def check(self, jobs: Iterable[Job]) -> None:
        """Render one question of each prompt and variant, so that a missing prompt is told before anything is sent."""
        seen = set()
        for job in jobs:
            if job.variant and (job.item.prompt_id, job.variant) not in seen:
                seen.add((job.item.prompt_id, job.variant))
                question_of(job.item, job.variant, self._prompts)

    def request(self, job: Job) -> Request:
        """Return the request of a job.

        Raises:
            ImageFault: an image of it cannot be read or encoded.
        """
        item = job.item
        answer = answer_of(item.answer, item.item_id, job.variant)
        blind = job.variant.partition("+")[0] == "no_image"
        images = () if blind else tuple(self._image(job.variant, image) for image in item.images)
        return Request(
            item.item_id,
            job.variant,
            job.epoch,
            question_of(item, job.variant, self._prompts),
            images,
            answer.options,
            answer.letters,
            self._generation,
        )

    def _image(self, variant: str, image: ItemImage) -> EncodedImage:
        facts = self._images.facts.get(image.case_id)
        if facts is None:
            raise ImageFault(f"no case '{image.case_id}' in the benchmark")
        empty = variant.partition("+")[0] == "blank_image"
        if empty and facts.width and facts.height:
            return blank(facts.width, facts.height)
        data = self._images.read(image.case_id)
        if empty:
            return blank(*open_image(data, image.frame).size)
        kind, _, change = variant.partition("=")
        if kind != "perturb":
            return self._policy.encode(data, facts, image.frame)
        name, level = check_level(change)
        # The noise of an image is the same in every question about it.
        seed = int((facts.sha256 or "0")[:8], 16)
        changed = perturb(open_image(data, image.frame), name, level, seed)
        return self._policy.encode_pixels(changed, variant)
