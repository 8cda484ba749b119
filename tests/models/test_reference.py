"""The reference model reads images: better than the best constant answer, below perfect, blind to test references."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS
from sonogauge.benchmarks.synthetic.build import build_synthetic
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.candidates import decode, line_ends, spots
from sonogauge.models.reference import ReferenceModel, fit_reference, reference_replies

pytestmark = [pytest.mark.lookalike, pytest.mark.part("synthetic benchmark")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    out = tmp_path_factory.mktemp("reference") / "bench"
    build_synthetic(out, seed=1, patients=24)
    return Folder(out, "benchmark")


@pytest.fixture(scope="module")
def items(bench: Folder) -> list[Item]:
    return [Item.from_row(row) for row in bench.rows("items")]


@pytest.fixture(scope="module")
def model(bench: Folder) -> ReferenceModel:
    return fit_reference(bench, seed=3)


@pytest.fixture(scope="module")
def media(bench: Folder) -> dict[str, bytes]:
    return {row["case_id"]: row["image"]["bytes"] for row in bench.rows("cases")}


@pytest.fixture(scope="module")
def replies(model: ReferenceModel, items: list[Item], media: dict[str, bytes]) -> dict[str, str]:
    test = [item for item in items if item.split == "test"]
    found = model.replies(test, [media[item.images[0].case_id] for item in test])
    return {item.item_id: reply for item, reply in zip(test, found, strict=True)}


def test_every_reply_is_valid(items: list[Item], replies: dict[str, str]) -> None:
    test = [item for item in items if item.split == "test"]
    assert set(replies) == {item.item_id for item in test}
    for item in test:
        assert FORMS.load(item.answer.form).parse(replies[item.item_id], item.answer).valid


def test_it_beats_the_most_frequent_answer(items: list[Item], replies: dict[str, str]) -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    guessed: dict[str, list[bool]] = defaultdict(list)
    field = {"DD": "choices", "VRA": "choices", "LL": "places", "OD": "places", "KD": "places"}
    for task, name in field.items():
        train = Counter(item.reference[name][0] for item in items if item.task == task and item.split == "train")
        most = train.most_common(1)[0][0]
        for item in items:
            if item.task == task and item.split == "test":
                right[task].append(replies[item.item_id] == item.reference[name][0])
                guessed[task].append(item.reference[name][0] == most)
    for task in field:
        assert np.mean(right[task]) > np.mean(guessed[task]) + 0.15
    assert np.mean([np.mean(one) for one in right.values()]) < 0.98


def test_it_measures_better_than_a_constant(items: list[Item], replies: dict[str, str]) -> None:
    for dataset in ("lesion", "tube"):
        chosen = [item for item in items if (item.task, item.dataset) == ("CVE", dataset)]
        usual = float(np.median([item.reference["number"] for item in chosen if item.split == "train"]))
        test = [item for item in chosen if item.split == "test"]
        truth = np.array([item.reference["number"] for item in test])
        read = np.array([float(replies[item.item_id]) for item in test])
        assert np.sqrt(np.mean((read - truth) ** 2)) < 0.75 * np.sqrt(np.mean((usual - truth) ** 2))


def test_it_sees_no_reference_of_what_it_answers(
    bench: Folder, items: list[Item], replies: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second fit gives the same replies, and what the model is handed holds no reference."""
    test = [item for item in items if item.split == "test"][::9]
    handed: list[Item] = []
    original = ReferenceModel.replies

    def spy(self: ReferenceModel, asked: Sequence[Item], images: Sequence[bytes]) -> list[str]:
        handed.extend(asked)
        return original(self, asked, images)

    monkeypatch.setattr(ReferenceModel, "replies", spy)
    again = {item.item_id: reply for item, reply in reference_replies(bench, test, seed=3)}
    assert again == {item.item_id: replies[item.item_id] for item in test}
    assert len(handed) == len(test)
    assert all(not item.reference and not item.meta for item in handed)


def test_texts_are_texts_of_the_training_part(items: list[Item], replies: dict[str, str]) -> None:
    known = {item.reference["texts"][0] for item in items if "texts" in item.reference and item.split == "train"}
    for item in items:
        if item.split == "test" and item.answer.form == "text":
            assert replies[item.item_id] in known


def test_it_needs_a_training_part(bench: Folder, tmp_path: Path) -> None:
    build_synthetic(tmp_path / "tiny", seed=0, patients=2, images_per_patient=2)
    with pytest.raises(BadInput, match="too few training items"):
        fit_reference(Folder(tmp_path / "tiny", "benchmark"))


def test_what_it_cannot_answer_is_bad_input(model: ReferenceModel, items: list[Item], media: dict[str, bytes]) -> None:
    item = next(one for one in items if one.task == "CVE")
    image = [media[item.images[0].case_id]]
    with pytest.raises(BadInput, match="no pixel size"):
        model.replies([replace(item, variables={})], image)
    with pytest.raises(BadInput, match="knows no scenario QA/x"):
        model.replies([replace(item, task="QA", dataset="x")], image)
    assert model.replies([], []) == []


def test_images_without_anything_have_no_candidates() -> None:
    import cv2

    for grey in (0, 128):
        _, data = cv2.imencode(".png", np.full((64, 96), grey, dtype=np.uint8))
        picture = decode(data.tobytes())
        assert picture.native == (96, 64)
        assert len(spots(picture).boxes) == 0
        assert spots(picture).features.shape[1] == 50
    for data in (b"", b"not an image"):
        with pytest.raises(BadInput, match="not an image"):
            decode(data)
    _, blank = cv2.imencode(".png", np.zeros((20, 20), dtype=np.uint8))
    assert len(line_ends(decode(blank.tobytes())).boxes) == 0
