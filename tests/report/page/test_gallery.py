from __future__ import annotations

import base64
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.report.made_scores import write_scores
from tests.report.page.made import LONG, Made

from sonogauge._errors import BadInput
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.report import report
from sonogauge.report.load import load_scores
from sonogauge.report.page import Gallery, page_data
from sonogauge.report.page.answers import read_answers
from sonogauge.report.page.gallery import choose

pytestmark = [pytest.mark.part("page"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def gallery(made: Made) -> dict:
    return page_data(made.scores, gallery=Gallery(cases=40))["gallery"]


def test_cases_are_spread_over_tasks(gallery: dict) -> None:
    found = Counter(one["task"] for one in gallery["cases"])
    assert len(gallery["cases"]) == 40
    assert set(found) == {"DD", "VRA", "LL", "OD", "KD", "CVE", "RG", "CG"}
    assert any(one["disagree"] for one in gallery["cases"])
    assert {answer["outcome"] for one in gallery["cases"] for answer in one["answers"].values()} >= {
        "right",
        "wrong",
        "failed",
    }


def test_the_choice_is_the_same_each_time_and_a_larger_one_holds_the_smaller(made: Made) -> None:
    answers = read_answers(load_scores(made.scores, "strict"))
    small, large = ({item.item_id for item in choose(answers, most)} for most in (10, 30))
    assert small < large and len(small) == 10
    assert small == {item.item_id for item in choose(answers, 10)}
    everything = choose(answers, 10_000)
    assert len(everything) == len({one for found in answers.by_scores.values() for one in found})


def test_thumbnails_show_the_image_of_the_case(made: Made, gallery: dict) -> None:
    cases = {row["case_id"]: row["image"]["bytes"] for row in Folder(made.bench).rows("cases", ["case_id", "image"])}
    for case_id, picture in list(gallery["pictures"].items())[:5]:
        kind, _, code = picture["src"].partition(",")
        assert kind == "data:image/webp;base64"
        small = Image.open(io.BytesIO(base64.b64decode(code))).convert("L")
        original = Image.open(io.BytesIO(cases[case_id])).convert("L").resize(small.size)
        gaps = [abs(one - other) for one, other in zip(small.tobytes(), original.tobytes(), strict=True)]
        assert sum(gaps) / len(gaps) < 8


def test_thumbnails_stay_within_their_budget(made: Made) -> None:
    pictures = page_data(made.scores, gallery=Gallery(cases=40, budget=60_000))["gallery"]["pictures"]
    assert 0 < sum(len(one.get("src", "")) for one in pictures.values()) < 60_000
    none = page_data(made.scores, gallery=Gallery(cases=40, budget=500))["gallery"]["pictures"]
    assert all("budget" in one["why"] for one in none.values())


def test_a_long_reply_is_shortened_and_says_by_how_much(made: Made) -> None:
    cases = page_data(made.scores, gallery=Gallery(cases=10_000))["gallery"]["cases"]
    (case,) = [one for one in cases if one["id"] == made.hostile[4]]
    (cut,) = [answer for answer in case["answers"].values() if "cut" in answer]
    assert len(cut["reply"]) + cut["cut"] == len(LONG)
    assert LONG.startswith(cut["reply"])


def test_no_gallery_on_request(made: Made) -> None:
    shown = page_data(made.scores, gallery=Gallery(cases=0))["gallery"]
    assert (shown["cases"], shown["pictures"], shown["asked"]) == ([], {}, 0)
    with pytest.raises(BadInput, match="gallery"):
        report(made.scores, made.root / "never.html", gallery=-1)


def test_a_missing_benchmark_is_said_in_one_sentence(tmp_path: Path) -> None:
    shown = page_data([write_scores(tmp_path / "s")])["gallery"]
    assert shown["cases"] == []
    assert "benchmark folder 'BENCH' was not found" in shown["missing"]


def _moved(made: Made, root: Path) -> list[Path]:
    for name in ("bench", "scores-good", "scores-bad", "good.jsonl", "bad.jsonl"):
        source = made.root / name
        if source.is_dir():
            shutil.copytree(source, root / name)
        else:
            shutil.copy(source, root / name)
    for scores in ("scores-good", "scores-bad"):
        file = root / scores / "manifest.json"
        raw = json.loads(file.read_text("utf-8"))
        for one in raw["inputs"]:
            one["path"] = "old/place/" + Path(one["path"]).name
        file.write_text(json.dumps(raw), "utf-8")
    return [root / "scores-good", root / "scores-bad"]


def test_folders_that_moved_together_are_found(made: Made, tmp_path: Path) -> None:
    shown = page_data(_moved(made, tmp_path))["gallery"]
    assert shown["cases"] and not shown["notices"]


def test_replies_that_changed_or_went_are_not_shown(made: Made, tmp_path: Path) -> None:
    scores = _moved(made, tmp_path)
    with (tmp_path / "good.jsonl").open("a") as stream:
        stream.write("\n")
    (tmp_path / "bad.jsonl").unlink()
    shown = page_data(scores)["gallery"]
    assert [notice.partition(": ")[2].split(";")[0] for notice in shown["notices"]] == [
        "its replies have changed since scoring",
        "its replies were not found when this page was made",
    ]
    assert not any("reply" in answer for one in shown["cases"] for answer in one["answers"].values())


def test_another_benchmark_than_was_scored_is_refused(made: Made, tmp_path: Path) -> None:
    with new_folder(tmp_path / "other") as folder:
        folder.table("items")
        folder.table("cases")
        folder.finish(Manifest(kind="benchmark", maker="test", name="synthetic", version="1"))
    with pytest.raises(BadInput, match="another benchmark than was scored"):
        report(made.scores, tmp_path / "page.html", bench=tmp_path / "other")


def _with_cases(made: Made, root: Path, **changes: object) -> list[Path]:
    """Copy everything and change columns of all cases; the content hash in the manifest is left as it was."""
    scores = _moved(made, root)
    file = root / "bench" / "cases.parquet"
    table = pq.read_table(file)
    for name, value in changes.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(
            place, table.schema.field(name), pa.array([value] * table.num_rows, table.schema.field(name).type)
        )
    pq.write_table(table, file)
    return scores


@pytest.mark.parametrize("changes", [{"redistributable": False}, {"redistributable": None}, {"private": True}])
def test_restricted_images_are_shown_on_request_only(made: Made, tmp_path: Path, changes: dict) -> None:
    scores = _with_cases(made, tmp_path, **changes)
    hidden = report(scores, tmp_path / "page.html")
    assert "data:image/webp" not in hidden and "data:image/png" not in hidden
    assert "--show-restricted-images" in hidden
    assert "data:image/webp" in report(scores, tmp_path / "page.html", show_restricted_images=True)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ({"bytes": b"not an image", "path": None}, "does not decode"),
        ({"bytes": None, "path": None}, "holds no image"),
        ({"bytes": None, "path": "gone.png"}, "cannot read"),
        ({"bytes": None, "path": "../../../etc/passwd"}, "outside the benchmark folder"),
    ],
)
def test_a_broken_image_becomes_a_placeholder_that_says_so(made: Made, tmp_path: Path, image: dict, why: str) -> None:
    pictures = page_data(_with_cases(made, tmp_path, image=image))["gallery"]["pictures"]
    assert pictures and all(why in one["why"] and "src" not in one for one in pictures.values())


def test_the_page_is_one_file_that_fetches_nothing(made: Made, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = report(made.scores, page)
    assert page.read_text("utf-8") == text
    head = text.partition('<script type="application/json"')[0]
    assert "default-src 'none'" in head and "unsafe" not in head
    markup = re.sub(r"<style>.*?</style>", "", head, flags=re.DOTALL)
    assert not re.search(
        r"(src|href|srcset|action|data)\s*=\s*[\"']?(?!#|data:)[\w/.:]", markup.replace("data:,", "data:")
    )
    assert "url(" not in text.partition("<style>")[2].partition("</style>")[0]
    assert str(made.root) not in text, "paths of this machine do not belong into a page"


def test_same_scores_same_bytes(made: Made, tmp_path: Path) -> None:
    assert report(made.scores, tmp_path / "a.html") == report(made.scores, tmp_path / "b.html")
