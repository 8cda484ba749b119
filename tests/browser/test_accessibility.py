"""axe-core over every part of the page, light and dark: no serious and no critical violation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.shared import require_extra

pytestmark = [pytest.mark.part("page"), pytest.mark.browser, pytest.mark.lookalike]


def _violations(page: Any) -> list[str]:
    axe = require_extra("test", "axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:240]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["cases_page", "board_page"])
def test_no_serious_violation(open_tab: Any, request: pytest.FixtureRequest, scheme: str, which: str) -> None:
    path: Path = request.getfixturevalue(which)
    page = open_tab(path, color_scheme=scheme).page
    for key in ("board", "forest", "answers", "failures", "cases", "recipe"):
        page.click(f"#tab-{key}")
        assert _violations(page) == [], key
    page.click("#tab-board")
    page.locator("button.num").first.click()
    assert _violations(page) == []
    page.keyboard.press("Escape")
    page.click("#tab-cases")
    if page.locator(".card").count():
        page.locator(".card").first.click()
        assert _violations(page) == []


def test_no_serious_violation_on_a_phone(open_tab: Any, cases_page: Path) -> None:
    page = open_tab(cases_page, viewport={"width": 390, "height": 800}).page
    assert _violations(page) == []
    page.click("#tab-cases")
    assert _violations(page) == []
