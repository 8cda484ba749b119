"""The page in a real Chromium: what a reader sees, by mouse and by keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.report.made_scores import row, write_scores
from tests.report.page.made import CONTROL, IMG, RIGHT_TO_LEFT, SCRIPT, Made

from sonogauge.report import report

pytestmark = [pytest.mark.part("page"), pytest.mark.browser, pytest.mark.lookalike]

BAD = "vendor/<b>bad</b> & worse"
TABS = ("board", "forest", "answers", "failures", "cases", "recipe")


def _models(page: Any, kind: str = "model") -> list[str]:
    return [one.inner_text() for one in page.locator(f"#leaderboard tbody.{kind} .name").all()]


def test_every_part_opens_and_fits_a_phone(open_tab: Any, cases_page: Path) -> None:
    for width in (1280, 390):
        page = open_tab(cases_page, viewport={"width": width, "height": 800}).page
        for key in TABS:
            page.click(f"#tab-{key}")
            assert page.locator(f"#panel-{key}").inner_text().strip()
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), (key, width)


def test_charts_are_drawn_to_the_room_beside_the_bar_at_the_side(open_tab: Any, cases_page: Path) -> None:
    page = open_tab(cases_page, viewport={"width": 1000, "height": 800}).page
    # Browsers of tests hide the bar, so its place is what can be asked for.
    assert page.evaluate("() => getComputedStyle(document.documentElement).overflowY") == "scroll"
    chart = "() => [...document.querySelectorAll('.scroll')].filter((one) => one.querySelector('svg.chart')"
    assert page.evaluate(f"{chart}).length") > 0
    assert page.evaluate(f"{chart} && one.scrollWidth > one.clientWidth).length") == 0


def test_sorting_by_keyboard(open_tab: Any, board_page: Path) -> None:
    tab = open_tab(board_page)
    assert _models(tab.page) == ["vendor/model-2", "vendor/model-0", "vendor/model-1"]
    tab.tab_to("[data-key='DD/accuracy']")
    tab.press("Enter")
    header = tab.page.locator("th:has([data-key='DD/accuracy'])")
    assert header.get_attribute("aria-sort") == "descending"
    assert _models(tab.page)[0] == "vendor/model-2"
    tab.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert _models(tab.page)[0] == "vendor/model-1"
    # Lower is better here: best first is ascending.
    tab.tab_to("[data-key='CVE/rmse_scaled']")
    tab.press("Enter")
    assert tab.page.locator("th:has([data-key='CVE/rmse_scaled'])").get_attribute("aria-sort") == "ascending"
    assert _models(tab.page)[0] == "vendor/model-2"
    # A sort never mixes what was computed with what was published.
    assert _models(tab.page, "published") == ["Known-1", "Known-2"]
    tab.page.click("[data-key='model']")
    assert _models(tab.page) == ["vendor/model-0", "vendor/model-1", "vendor/model-2"]


def test_filters(open_tab: Any, board_page: Path) -> None:
    tab = open_tab(board_page)
    tab.tab_to("#find")
    tab.page.keyboard.type("MODEL-1")
    assert _models(tab.page) == ["vendor/model-1"] and _models(tab.page, "published") == []
    tab.page.fill("#find", "no such model")
    assert "No row fits" in tab.page.locator("#leaderboard").inner_text()
    tab.page.fill("#find", "")
    tab.tab_to(".filters input[value=published]")
    tab.press("Space")
    assert _models(tab.page, "published") == [] and len(_models(tab.page)) == 3
    tab.page.check(".filters input[value=published]")
    assert _models(tab.page, "published") == ["Known-1", "Known-2"]


def test_the_protocol_switch_by_keyboard(open_tab: Any, board_page: Path) -> None:
    tab = open_tab(board_page)
    cell = "#leaderboard tbody.model tr:has-text('vendor/model-0') td:nth-child(2) .value"
    assert tab.page.locator(cell).inner_text() == "0.2253"
    tab.tab_to("#protocol input")
    tab.press("ArrowRight")
    assert tab.page.locator(cell).inner_text() == "0.1253"
    assert "published protocol" in tab.page.locator("#board-count").inner_text()
    tab.page.click("#tab-failures")
    assert "names no option" in tab.page.locator("#panel-failures").inner_text()
    tab.page.check("#protocol input[value=strict]")
    assert "empty reply" in tab.page.locator("#panel-failures").inner_text()


def test_published_rows_are_marked_without_interval_with_their_doubt(open_tab: Any, board_page: Path) -> None:
    page = open_tab(board_page).page
    body = page.locator("#leaderboard tbody.published")
    assert "not computed here" in body.inner_text().lower()
    assert body.locator(".reach").count() == 0 and body.locator(".dot.open").count() > 0
    assert "data set 27 rests on one reply" in page.locator("#leaderboard .notes").inner_text()
    body.locator("button.num").first.click()
    assert "public leaderboard, 2025" in page.locator("#details").inner_text()


def test_totals_and_their_formula(open_tab: Any, board_page: Path) -> None:
    page = open_tab(board_page).page
    panel = page.locator("#panel-board")
    assert "sum of w_t d_t, d = accuracy, 1 - RMSE, BLEU-4" in panel.inner_text()
    # The determinable part has fewer items than the whole, so it is told beside it.
    cells = panel.locator("tr:has(th:has-text('u2 determinable')) button .value").all_inner_texts()
    assert cells == ["0.2400", "0.0400", "0.3400"]
    heat = panel.locator("tr:has(th:has-text('DD diagnosis')) button .value").all_inner_texts()
    assert heat == ["56.3", "36.3", "66.3", "59.0", "100.0", "50.0"]


def test_what_stands_behind_a_number_by_keyboard(open_tab: Any, board_page: Path) -> None:
    tab = open_tab(board_page)
    tab.tab_to("#leaderboard button.num")
    tab.press("ArrowDown", "ArrowRight", "ArrowLeft")
    where = tab.focused()
    assert where.startswith("U2 of vendor/model-0: 0.2253")
    tab.press("Enter")
    shown = tab.page.locator("#details").inner_text()
    for part in ("0.2253", "0.1753 to 0.2753", "152", "toy@3", "b" * 64, "Scores folder"):
        assert part in shown
    tab.press("Escape")
    assert not tab.page.locator("#details").is_visible()
    assert tab.focused() == where


def test_tabs_move_by_arrow_keys(open_tab: Any, cases_page: Path) -> None:
    tab = open_tab(cases_page)
    tab.tab_to("[role=tab]")
    tab.press("ArrowRight")
    assert tab.page.locator("#panel-forest").is_visible() and not tab.page.locator("#panel-board").is_visible()
    tab.press("End")
    assert tab.page.locator("#panel-recipe").is_visible()
    tab.press("ArrowRight")
    assert tab.page.locator("#tab-board").get_attribute("aria-selected") == "true"
    assert tab.page.locator("[role=tab][tabindex='0']").count() == 1


def test_a_case_opens_and_turns_pages_by_keyboard(open_tab: Any, cases_page: Path) -> None:
    tab = open_tab(cases_page)
    tab.tab_to("[role=tab]")
    tab.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    tab.tab_to("#grid .card")
    first = tab.page.evaluate("() => document.activeElement.dataset.case")
    tab.press("Enter")
    title = tab.page.locator("#case-title")
    assert title.inner_text() == first
    tab.press("ArrowRight")
    second = title.inner_text()
    assert second != first
    tab.press("ArrowLeft")
    assert title.inner_text() == first
    tab.press("ArrowRight", "Escape")
    assert not tab.page.locator("#case").is_visible()
    assert tab.page.evaluate("() => document.activeElement.dataset.case") == second


def test_cases_are_filtered(open_tab: Any, cases_page: Path, made: Made) -> None:
    page = open_tab(cases_page).page
    page.click("#tab-cases")
    rows = pq.read_table(made.bad / "score_items.parquet").to_pylist()
    page.select_option("#panel-cases select >> nth=0", "DD")
    page.select_option("#panel-cases select >> nth=1", label=BAD)
    page.select_option("#panel-cases select >> nth=2", "right")
    right = sum(row["task"] == "DD" and dict(row["values"]).get("correct") == 1 for row in rows)
    assert 0 < right == page.locator(".card").count()
    page.select_option("#panel-cases select >> nth=2", "")
    page.select_option("#panel-cases select >> nth=0", "")
    failed = sum(row["reason"] == "none" for row in rows)
    page.select_option("#panel-cases select:has(option[value=none])", "none")
    assert 0 < failed == page.locator(".card").count()


def _open(page: Any, item: str) -> Any:
    page.click("#tab-cases")
    page.locator(f".card[data-case='{item}']").click()
    return page.locator("#case .answer", has_text=BAD)


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        (0, [IMG]),
        (1, [SCRIPT]),
        (2, ["⟨U+202E⟩abc", "\u05e9\u05dc\u05d5\u05dd", "{{ config }}"]),
        (3, ["nul␀ bell␇ escape␛[31m", " half "]),
    ],
)
def test_hostile_replies_stay_text(open_tab: Any, cases_page: Path, made: Made, place: int, parts: list[str]) -> None:
    assert "\u202e" in RIGHT_TO_LEFT and "\x00" in CONTROL
    page = open_tab(cases_page).page
    answer = _open(page, made.hostile[place])
    reply = answer.locator("pre.reply")
    for part in parts:
        assert part in reply.inner_text()
    assert reply.locator("*").count() == 0
    assert "<b>bad</b>" in answer.locator("h3").inner_text() and answer.locator("h3 b").count() == 0
    assert page.locator("img[src=x]").count() == 0


def test_a_reply_of_100_kb_scrolls_within_itself(open_tab: Any, cases_page: Path, made: Made) -> None:
    page = open_tab(cases_page).page
    answer = _open(page, made.hostile[4])
    assert "more characters stand in the run folder" in answer.inner_text()
    height = answer.locator("pre.reply").evaluate("one => [one.clientHeight, one.scrollHeight]")
    assert height[0] < 320 < height[1]


def test_places_are_drawn_where_the_bands_are(open_tab: Any, cases_page: Path, made: Made) -> None:
    page = open_tab(cases_page).page
    page.click("#tab-cases")
    items = {row["item_id"]: row for row in pq.read_table(made.bench / "items.parquet").to_pylist()}
    corners = {
        "upper left": (0, 0, 0.45, 0.45),
        "lower right": (0.55, 0.55, 0.45, 0.45),
        "center": (0.45, 0.45, 0.1, 0.1),
    }
    checked = 0
    for card in page.locator(".card").all():
        item = items[card.get_attribute("data-case")]
        found = (item["reference"]["places"] or [None])[0]
        if item["answer"]["form"] != "place" or found not in corners:
            continue
        card.click()
        box = page.locator("#case .sector.reference").first
        drawn = [float(box.get_attribute(name) or "nan") for name in ("x", "y", "width", "height")]
        assert np.allclose(drawn, corners[found])
        assert page.locator("#case .band").count() == 4
        page.keyboard.press("Escape")
        checked += 1
        if checked == 4:
            break
    assert checked


def test_limits_of_agreement(open_tab: Any, cases_page: Path, made: Made) -> None:
    page = open_tab(cases_page).page
    page.click("#tab-answers")
    page.select_option("#panel-answers select >> nth=0", label=BAD)
    items = {
        row["item_id"]: row["reference"]["number"] for row in pq.read_table(made.bench / "items.parquet").to_pylist()
    }
    rows = [
        row
        for row in pq.read_table(made.bad / "score_items.parquet").to_pylist()
        if (row["task"], row["dataset"]) == ("CVE", "lesion")
    ]
    gaps = np.array(
        [
            row["prediction"]["number"] - items[row["item_id"]]
            for row in rows
            if row["prediction"] and row["prediction"]["number"] is not None
        ]
    )
    low, high = gaps.mean() - 1.96 * gaps.std(ddof=1), gaps.mean() + 1.96 * gaps.std(ddof=1)
    shown = page.locator("#panel-answers .stats").inner_text().replace("\u2212", "-")
    for value in (gaps.mean(), low, high):
        assert f"{value:.3g}" in shown
    assert page.locator("#panel-answers circle.point").count() == len(gaps)


def test_differences_are_drawn_beside_the_numbers(open_tab: Any, cases_page: Path, made: Made) -> None:
    page = open_tab(cases_page).page
    page.click("#tab-answers")
    page.select_option("#panel-answers select >> nth=0", label=BAD)
    points = page.locator("#panel-answers circle.point").count()
    assert page.locator("#panel-answers circle.gap").count() == points > 3
    names = page.locator("#panel-answers .pair svg >> nth=1").locator("text.tick").all_text_contents()
    assert {"bias", "lower limit", "upper limit"} <= set(names)


def test_recall_and_precision_of_a_confusion(open_tab: Any, cases_page: Path, made: Made) -> None:
    from sklearn.metrics import precision_score, recall_score

    page = open_tab(cases_page).page
    page.click("#tab-answers")
    page.select_option("#panel-answers select >> nth=0", label=BAD)
    items = {row["item_id"]: row["reference"] for row in pq.read_table(made.bench / "items.parquet").to_pylist()}
    pairs = [
        (items[row["item_id"]]["choices"][0], ((row["prediction"] or {}).get("choices") or ["none"])[0])
        for row in pq.read_table(made.bad / "score_items.parquet").to_pylist()
        if (row["task"], row["dataset"], row["protocol"]) == ("DD", "fan", "strict")
    ]
    options = page.locator(".confusion tbody tr:not(.foot) th").all_inner_texts()
    truth, told = zip(*pairs, strict=True)
    recall = recall_score(truth, told, labels=options, average=None, zero_division=0)
    shown = page.locator(".confusion tbody tr:not(.foot) td:last-child").all_inner_texts()
    assert shown == [f"{100 * one:.1f} %" for one in recall]
    precision = precision_score(truth, told, labels=options, average=None, zero_division=np.nan)
    cells = page.locator(".confusion tr.foot:last-child td").all_inner_texts()[: len(options)]
    assert cells == ["\u2013" if np.isnan(one) else f"{100 * one:.1f} %" for one in precision]


def test_at_a_glance_shows_every_row_and_follows_the_choice(open_tab: Any, board_page: Path) -> None:
    tab = open_tab(board_page)
    glance = tab.page.locator("#glance")
    assert [one.inner_text() for one in glance.locator(".tile h3").all()] == [f"vendor/model-{n}" for n in range(3)]
    assert "0.2253" in glance.locator(".tile").first.inner_text()
    labels = glance.locator("svg.chart text.label").all_text_contents()
    assert sum("vendor/model" in one for one in labels) == 3 and sum("Known" in one for one in labels) == 2
    # What others published is an open dot without interval.
    assert glance.locator("circle.dot.open").count() == 2 and glance.locator("line.reach.open").count() == 0
    tab.tab_to("#glance select")
    tab.page.select_option("#glance select", "CVE/rmse_scaled")
    assert "scaled RMSE" in (glance.locator("svg.chart").get_attribute("aria-label") or "")
    assert tab.page.evaluate("() => document.activeElement.matches('#glance select')")


def test_a_broken_thumbnail_becomes_a_placeholder(open_tab: Any, cases_page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    text = cases_page.read_text("utf-8")
    broken.write_text(text.replace("data:image/webp;base64,", "data:image/webp;base64,AAAA"), "utf-8")
    page = open_tab(broken).page
    page.click("#tab-cases")
    page.wait_for_function("() => document.querySelector('.card .nopicture')")
    assert "cannot be shown" in page.locator(".card .nopicture").first.inner_text()
    page.locator(".card").first.click()
    page.wait_for_function("() => document.querySelector('#case .nopicture')")
    assert "cannot be shown" in page.locator("#case .nopicture").first.inner_text()


def test_without_the_benchmark_the_page_says_what_it_cannot_show(open_tab: Any, board_page: Path) -> None:
    page = open_tab(board_page).page
    for key in ("answers", "cases"):
        page.click(f"#tab-{key}")
        assert "benchmark folder 'BENCH' was not found" in page.locator(f"#panel-{key}").inner_text()


def test_an_empty_run_opens_and_says_so(open_tab: Any, tmp_path: Path) -> None:
    rows = [row("vendor/m", "DD", "", "accuracy", None, n=0, valid=0, why_null="no items")]
    none = {"scored": 0, "valid": 0, "failures": {"strict": {}}, "verdicts": {}}
    scores = write_scores(tmp_path / "s", "vendor/m", rows, counts=none)
    report([scores], tmp_path / "page.html")
    page = open_tab(tmp_path / "page.html").page
    assert "Nothing to show" in page.locator("main").inner_text()
    for key in TABS:
        page.click(f"#tab-{key}")


def test_the_theme_button_beats_the_system(open_tab: Any, cases_page: Path) -> None:
    page = open_tab(cases_page, color_scheme="dark").page
    colour = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.click("#theme")
    light = page.evaluate(colour)
    assert light != dark
    page.click("#theme")
    assert page.evaluate(colour) == dark


def test_print_holds_every_part(open_tab: Any, cases_page: Path) -> None:
    page = open_tab(cases_page).page
    page.emulate_media(media="print")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    for key in TABS:
        assert page.locator(f"#panel-{key}").is_visible() and page.locator(f"#panel-{key}").inner_text().strip()
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert not page.locator("#panel-recipe").is_visible()
