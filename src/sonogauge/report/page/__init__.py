"""The page: one self-contained HTML file that opens from disk, for a leaderboard or for one run."""

from sonogauge.report.page.build import page, page_data, render_page
from sonogauge.report.page.comparison import is_comparison
from sonogauge.report.page.gallery import DEFAULT_CASES, Gallery

__all__ = ["DEFAULT_CASES", "Gallery", "is_comparison", "page", "page_data", "render_page"]
