from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import find_or_install, launch
from tests.report.made_scores import beside, counts, model_rows, write_scores
from tests.report.page.made import Made, make
from tests.shared import ABSENT_EXTRA, require_extra

from sonogauge.report import report


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium; stopped after each module, since its event loop keeps others of the thread from running."""
    playwright = require_extra("test", "playwright.sync_api")
    try:
        find_or_install()
    except subprocess.SubprocessError as error:
        pytest.skip(f"{ABSENT_EXTRA}: [test] (no Chromium is installed and none can be had: {error})")
    with playwright.sync_playwright() as started, launch(started) as running:
        yield running


@pytest.fixture(scope="session")
def cases_page(made: Made) -> Path:
    """A page of two models with a gallery, one of them hostile."""
    page = made.root / "page.html"
    report(made.scores, page, gallery=400)
    return page


@pytest.fixture(scope="session")
def board_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leaderboard of three models under both protocols, with published rows, without its benchmark."""
    root = tmp_path_factory.mktemp("board")
    folders = []
    for number, shift in enumerate((0.0, -0.2, 0.1)):
        model = f"vendor/model-{number}"
        strict = model_rows(model, shift)
        published = [
            {**row, "protocol": "published", "low": None, "high": None} for row in model_rows(model, shift - 0.1)
        ]
        rows = [*strict, *published, *beside()]
        both = {**counts(), "failures": {"strict": {"empty": 3}, "published": {"none": 7}}}
        folders.append(write_scores(root / f"s{number}", model, rows, counts=both))
    page = root / "page.html"
    report(folders, page)
    return page


class Tab:
    """A tab that opened one page, with all that it logged and asked for."""

    def __init__(self, browser: Any, page: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.faults.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.goto(page.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def focused(self) -> str:
        """Return the text or label of what has the focus."""
        shown = self.page.evaluate(
            "() => document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
        )
        return str(shown)

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Go on with the Tab key until an element that fits has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("one => document.activeElement.matches(one)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached by Tab")


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Any]:
    """Open pages; each must have logged nothing and asked for nothing but itself when the test ends."""
    tabs = []

    def opened(page: Path, **context: Any) -> Tab:
        tabs.append(Tab(browser, page, **context))
        return tabs[-1]

    yield opened
    for tab in tabs:
        asked = [url for url in tab.requests if not url.startswith("data:")]
        faults = list(tab.faults)
        tab.context.close()
        assert len(asked) == 1 and asked[0].startswith("file://")
        assert faults == []
