"""Answers that draw, by keyboard alone: the filter of errors, sentences linked to masks, the steps of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.browser.test_accessibility import _violations
from tests.report.page.made_drawn import HAND, HOSTILE, MadeDrawn, make_drawn

from sonogauge.report import report

pytestmark = [pytest.mark.part("page"), pytest.mark.browser, pytest.mark.lookalike]

CITED = "() => [...document.querySelectorAll('#case .shape.cited')].map((one) => one.getAttribute('class'))"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> MadeDrawn:
    return make_drawn(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module")
def drawn_page(drawn: MadeDrawn, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "page.html"
    report(drawn.scores, page, gallery=400)
    return page


def _cases(tab: Any) -> None:
    tab.tab_to("[role=tab]")
    tab.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")


def test_errors_are_filtered_by_kind(open_tab: Any, drawn_page: Path, drawn: MadeDrawn) -> None:
    tab = open_tab(drawn_page)
    _cases(tab)
    everything = tab.page.locator(".card").count()
    tab.tab_to("select:has(option[value=wrong_right_pixels])")
    tab.page.keyboard.type("wrong answer on")
    assert [one.get_attribute("data-case") for one in tab.page.locator(".card").all()] == [
        drawn.kinds["wrong_right_pixels"]
    ]
    box = tab.page.locator("select:has(option[value=wrong_right_pixels])")
    assert box.locator("option:checked").inner_text() == "wrong answer on right pixels: 1 (1 here)"
    for kind, item in drawn.kinds.items():
        box.select_option(kind)
        assert 0 < tab.page.locator(".card").count() < everything
        assert tab.page.locator(f".card[data-case='{item}']").count() == 1
    assert _violations(tab.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sentences_mark_their_masks_and_steps_open(
    open_tab: Any, drawn_page: Path, drawn: MadeDrawn, scheme: str
) -> None:
    tab = open_tab(drawn_page, color_scheme=scheme)
    _cases(tab)
    tab.tab_to(f".card[data-case='{drawn.report}']", most=200)
    tab.press("Enter")
    assert tab.page.evaluate(CITED) == []
    tab.tab_to("#case .cite")
    assert tab.page.evaluate(CITED) == ["shape reference mask cited"]
    # A mask of the report itself: the image shows the model whose sentence it is.
    tab.tab_to(f"#case ol[aria-label*='{HAND}'] .cite")
    assert tab.page.evaluate("() => document.activeElement.innerText").startswith(HOSTILE)
    assert tab.page.evaluate(CITED) == ["shape prediction mask cited"]
    assert tab.page.locator("#case .iou").inner_text() == f"IoU of all masks 1.000 {HAND}"
    tab.press("Enter")
    assert tab.page.evaluate("() => document.activeElement.getAttribute('aria-pressed')") == "true"
    assert _violations(tab.page) == []
    # What was pressed stays marked when the focus is elsewhere, until it is pressed again.
    tab.page.locator("#case button[value=close]").focus()
    assert tab.page.evaluate(CITED) == ["shape prediction mask cited"]
    tab.page.locator("#case .cite[aria-pressed=true]").focus()
    tab.press("Enter")
    tab.page.locator("#case button[value=close]").focus()
    assert tab.page.evaluate(CITED) == []
    assert not tab.page.locator("#case .trace .target").first.is_visible()
    tab.tab_to("#case .trace > summary")
    tab.press("Enter")
    steps = tab.page.locator("#case .trace").first
    assert steps.locator(".target").first.is_visible()
    for part in ("Planner", "rule", "Phrase", "Score", "kept", "No faults", "Retries: 0"):
        assert part in steps.inner_text()
    tab.tab_to("#case .trace .cite")
    assert tab.page.evaluate(CITED) == ["shape candidate cited"]
    assert _violations(tab.page) == []
    tab.press("Escape")
    assert not tab.page.locator("#case").is_visible()
    assert tab.page.locator("img[src=x]").count() == 0


def test_a_drawn_case_fits_a_phone(open_tab: Any, drawn_page: Path, drawn: MadeDrawn) -> None:
    page = open_tab(drawn_page, viewport={"width": 390, "height": 800}).page
    page.click("#tab-cases")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.locator(f".card[data-case='{drawn.report}']").click()
    page.locator("#case .trace > summary").click()
    assert page.locator("#case").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_hovering_marks_only_while_it_lasts(open_tab: Any, drawn_page: Path, drawn: MadeDrawn) -> None:
    page = open_tab(drawn_page).page
    page.click("#tab-cases")
    page.locator(f".card[data-case='{drawn.report}']").click()
    page.locator("#case .cite").first.hover()
    assert page.evaluate(CITED) == ["shape reference mask cited"]
    page.locator("#case-title").hover()
    assert page.evaluate(CITED) == []
