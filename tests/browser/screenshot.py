"""Write docs/screenshot.png: the page of the demo, its leaderboard beside one case; simulated images only."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
SIZE: Final = {"width": 1280, "height": 1080}
COLOURS: Final = 224


def main(out: Path = ROOT / "docs" / "screenshot.png") -> int:
    """Run the demo, open its page in Chromium and write the picture."""
    from PIL import Image
    from playwright.sync_api import sync_playwright
    from tests.browser.chromium import launch

    from sonogauge.demo import PAGE, demo

    with tempfile.TemporaryDirectory() as scratch:
        demo(scratch)
        with sync_playwright() as playwright, launch(playwright) as browser:
            shots = [_board(browser, Path(scratch) / PAGE), _case(browser, Path(scratch) / PAGE)]
    pictures = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    whole = Image.new("RGB", (2 * SIZE["width"] + 20, SIZE["height"]), "#c9d1d4")
    for place, picture in enumerate(pictures):
        whole.paste(picture, (place * (SIZE["width"] + 20), 0))
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")
    return 0


def _opened(browser: Any, page: Path, scheme: str) -> Any:
    tab = browser.new_page(viewport=SIZE, color_scheme=scheme)
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    return tab


def _board(browser: Any, page: Path) -> bytes:
    shot: bytes = _opened(browser, page, "light").screenshot()
    return shot


def _case(browser: Any, page: Path) -> bytes:
    """Return a case that the model got wrong, with its place drawn."""
    tab = _opened(browser, page, "dark")
    tab.click("#tab-cases")
    tab.select_option("#panel-cases select >> nth=0", "LL")
    tab.select_option("#panel-cases select:has(option[value=wrong])", "wrong")
    tab.locator(".card").first.click()
    while not tab.locator("#case .sector.reference").count():
        tab.keyboard.press("ArrowRight")
    tab.select_option("#case .overlays select", label="reference/image-features")
    shot: bytes = tab.screenshot()
    return shot


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
