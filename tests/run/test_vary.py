from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.run.server import Asked, Server, completion, reply_to
from tests.run.tiny import bench, item, picture

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.answers.variants import answer_of, read_varied
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.run import run
from sonogauge.run.perturb import perturb
from sonogauge.run.vary import NEUTRAL_ANATOMY, check_variation, question_of, variants

pytestmark = pytest.mark.part("run")


def u2_item(number: int = 1, form: str = "choice") -> Item:
    if form == "place":
        return item(number, "place", prompt_id="u2bench/ll@1", variables={"anatomy": "thyroid"})
    spec = AnswerSpec("choice", ("benign", "malignant", "normal"), ("A", "B", "C"))
    return item(number, prompt_id="u2bench/dd-23@1", variables={"anatomy": "breast"}, answer=spec)


@pytest.mark.parametrize(
    "text",
    [
        *("", "blur", "repeat", "repeat=1", "repeat=x", "perturb=gain", "perturb=fog:1", "perturb=jpeg:0"),
        *("perturb=crop:nan", "anatomy=on", "prompt=", "shuffle=x", "answer=mask", "answer=box:inch"),
        *("circular=2", "no_image=1"),
    ],
)
def test_unknown_variations(text: str) -> None:
    with pytest.raises(BadInput):
        check_variation(text)


def test_rotations_hold_every_option_in_every_place() -> None:
    one = u2_item()
    turns = [variant for variant, _ in variants("circular", one)]
    assert turns == ["circular=1", "circular=2"]
    orders = [answer_of(one.answer, one.item_id, variant).options for variant in ("", *turns)]
    assert all(Counter(column) == Counter(one.answer.options) for column in zip(*orders, strict=True))
    assert list(variants("circular", item(form="number"))) == []


def test_shuffle_is_a_permutation_fixed_by_the_item() -> None:
    orders = Counter()
    for number in range(300):
        one = u2_item(number)
        options = answer_of(one.answer, one.item_id, "shuffle").options
        assert sorted(options) == sorted(one.answer.options)
        assert options == answer_of(one.answer, one.item_id, "shuffle").options
        orders[options] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 20


def test_a_letter_means_the_option_that_stood_there() -> None:
    one = u2_item()
    for variant in ("", "circular=1", "circular=2", "shuffle", "shuffle=7"):
        shown = answer_of(one.answer, one.item_id, variant).options
        for letter, option in zip("ABC", shown, strict=True):
            assert read_varied(letter, one.answer, one.item_id, variant).value == option
            assert read_varied(option, one.answer, one.item_id, variant).value == option


def test_questions() -> None:
    one = u2_item()
    assert question_of(one, "no_image") == one.question
    turned = question_of(one, "circular=1")
    lines = [line for line in turned.splitlines() if line.startswith(("A", "B", "C"))]
    assert [line.split()[-1] for line in lines[:3]] == ["malignant", "normal", "benign"]
    off = question_of(one, "anatomy=off")
    assert "breast" not in off.splitlines()[0]
    assert NEUTRAL_ANATOMY in question_of(u2_item(form="place"), "anatomy=off") or "thyroid" not in off
    assert "[x1, y1, x2, y2]" in question_of(u2_item(form="place"), "answer=box")
    assert "pixels of the image" in question_of(u2_item(form="place"), "answer=point:pixel")
    with pytest.raises(BadInput, match="no prompt 'dd-23' of version '99'"):
        question_of(one, "prompt=99")
    with pytest.raises(BadInput, match="names no prompt"):
        question_of(item(prompt_id="x"), "shuffle")


def test_another_prompt_version_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "dd.txt").write_text("Short: {anatomy}.\n{answer_format}\n")
    assert question_of(u2_item(), "prompt=7", tmp_path).startswith("Short: breast.\n")


@pytest.mark.parametrize(
    ("text", "variant", "size", "value", "reason"),
    [
        ("[0, 0, 400, 400]", "answer=box", None, "upper left", None),
        ("<|box_start|>(400,400),(600,600)<|box_end|>", "answer=box", None, "center", None),
        ('{"bbox_2d": [800, 800, 1000, 1000]}', "answer=box", None, "lower right", None),
        ("not visible", "answer=box", None, "not visible", None),
        ("10, 20, 30, 40", "answer=box:pixel", (100, 50), "lower left", None),
        ("[10, 20, 300, 40]", "answer=box:pixel", (100, 50), None, "range"),
        ("[0.9, 0.1]", "answer=point:unit", None, "upper right", None),
        ("[500, 300]", "answer=point:unit", None, None, "range"),
        ("[10, 20]", "answer=box", None, None, "format"),
        ("[400, 400, 100, 100]", "answer=box", None, None, "format"),
        ("[1, 2, 3, 4] or [5, 6, 7, 8]", "answer=box", None, None, "ambiguous"),
        ("upper left", "answer=box", None, None, "none"),
        ("", "answer=box", None, None, "empty"),
        ("I cannot determine this from the image.", "answer=box", None, None, "refusal_insufficient"),
        ("<think>[1, 2, 3, 4]</think>[0, 0, 100, 100]", "answer=box", None, "upper left", None),
    ],
)
def test_boxes_and_points_become_places(
    text: str, variant: str, size: tuple[int, int] | None, value: str | None, reason: str | None
) -> None:
    parsed = read_varied(text, u2_item(form="place").answer, "x", variant, size)
    assert (parsed.value, parsed.reason) == (value, reason)


def test_a_varied_run(tmp_path: Path) -> None:
    items = [*(u2_item(n) for n in range(4)), *(u2_item(n, "place") for n in range(4)), item(1, "number")]
    made = bench(tmp_path / "bench", items)
    kinds = ["no_image", "blank_image", "shuffle", "circular", "repeat=3", "perturb=gain:10", "anatomy=off"]
    with Server() as server:
        out = tmp_path / "run"
        options: dict[str, Any] = {"model_options": {"base_url": server.url}}
        # A number without a prompt of a benchmark cannot be asked with another anatomy.
        with pytest.raises(BadInput, match=r"no benchmark|no prompt|names no prompt"):
            run(made, "openai/m", out, vary=kinds, **options)
        assert not server.asked
        run(made, "openai/m", out, tasks=["DD", "LL"], **options)
        result = run(made, "openai/m", out, tasks=["DD", "LL"], vary=kinds, answer="box", **options)
        assert len(server.asked) == result.planned
    rows = list(Folder(out).rows("replies"))
    counts = Counter((row["variant"], row["item_id"][:2]) for row in rows)
    assert counts == {
        **{(variant, task): 4 for variant in ("", "no_image", "blank_image", "anatomy=off") for task in ("DD", "LL")},
        **{("perturb=gain:10", task): 4 for task in ("DD", "LL")},
        **{("repeat", task): 12 for task in ("DD", "LL")},
        **{(variant, "DD"): 4 for variant in ("shuffle", "circular=1", "circular=2")},
        ("answer=box", "LL"): 4,
    }
    by_key = {(row["variant"], row["epoch"], row["item_id"]): row for row in rows}
    assert {row["epoch"] for row in rows if row["variant"] == "repeat"} == {0, 1, 2}
    plain, blind = by_key["", 0, "DD/01/0001"], by_key["no_image", 0, "DD/01/0001"]
    assert blind["images_sent"] == []
    assert plain["text"].split()[:2] == blind["text"].split()[:2]
    blank = by_key["blank_image", 0, "DD/01/0001"]["images_sent"][0]
    assert (blank["width"], blank["height"], blank["policy"]) == (40, 30, "blank")
    sent = by_key["perturb=gain:10", 0, "DD/01/0001"]["images_sent"][0]
    assert sent["policy"] == "perturb=gain:10"
    assert sent["hash"] != plain["images_sent"][0]["hash"]
    assert any("temperature" in notice for notice in result.notices)
    assert result.manifest.counts["variants"] == sorted({row["variant"] for row in rows})


def test_only_varied(tmp_path: Path) -> None:
    made = bench(tmp_path / "bench", [u2_item(n) for n in range(3)])
    result = run(made, "baseline/oracle", tmp_path / "run", vary=["no_image"], only_varied=True)
    assert {row["variant"] for row in Folder(result.path).rows("replies")} == {"no_image"}
    with pytest.raises(BadInput, match="no variation named"):
        run(made, "baseline/oracle", tmp_path / "other", only_varied=True)


def test_baselines_answer_variants(tmp_path: Path) -> None:
    made = bench(tmp_path / "bench", [u2_item(n) for n in range(3)])
    result = run(made, "baseline/oracle", tmp_path / "run", vary=["circular", "shuffle", "repeat=2"])
    rows = list(Folder(result.path).rows("replies"))
    assert len(rows) == 3 * (1 + 2 + 1 + 2)
    assert {row["text"] for row in rows} == {"benign"}


def pixels(shade: int = 100) -> Image.Image:
    return Image.open(io.BytesIO(picture(shade, 64, 48)))


def test_perturbations() -> None:
    image = pixels()
    assert np.unique(np.asarray(perturb(image, "gain", 12.0, 0))).tolist() == [151]
    assert np.unique(np.asarray(perturb(image, "gain", -60.0, 0))).tolist() == [0]
    noisy = np.asarray(perturb(image, "speckle", 0.2, 1)).astype(float)
    assert noisy.std() == pytest.approx(20, rel=0.1)
    assert np.array_equal(noisy, np.asarray(perturb(image, "speckle", 0.2, 1)))
    assert perturb(image, "crop", 0.25, 0).size == (32, 24)
    assert perturb(image, "downscale", 4, 0).size == (64, 48)
    assert perturb(image.convert("RGB"), "speckle", 0.2, 1).mode == "RGB"
    gradient = Image.fromarray(np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1)))
    low, high = (np.asarray(perturb(gradient, "jpeg", level, 0)).astype(int) for level in (5, 95))
    error = [np.abs(one - np.asarray(gradient)).mean() for one in (low, high)]
    assert error[0] > error[1]


def test_the_reply_is_to_the_shuffled_question(tmp_path: Path) -> None:
    """A model that always says A is right in the chance share of rotations, read through the order shown."""
    made = bench(tmp_path / "bench", [u2_item(1)])

    def script(asked: Asked, nth: int) -> Any:
        assert reply_to(asked)
        return completion("A")

    with Server(script) as server:
        run(made, "openai/m", tmp_path / "run", vary=["circular"], model_options={"base_url": server.url})
    one = u2_item(1)
    values = [
        read_varied(row["text"], one.answer, one.item_id, row["variant"]).value
        for row in Folder(tmp_path / "run").rows("replies")
    ]
    assert sorted(values) == ["benign", "malignant", "normal"]
