"""What people say about items and answers: exchange with annotation tools, votes, decisions, the cleaned benchmark."""

from sonogauge.review.clean import Cleaned, clean
from sonogauge.review.decide import Decision, decide
from sonogauge.review.incoming import Imported, import_review
from sonogauge.review.outgoing import Exported, export_review

__all__ = ["Cleaned", "Decision", "Exported", "Imported", "clean", "decide", "export_review", "import_review"]
