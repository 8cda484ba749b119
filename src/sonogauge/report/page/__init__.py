"""The page: one self-contained HTML file that opens from disk, for a leaderboard or for one run."""

from sonogauge.report.page.build import page_data, render_page
from sonogauge.report.page.gallery import Gallery

__all__ = ["Gallery", "page_data", "render_page"]
