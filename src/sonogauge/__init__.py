"""Build, run, score and compare ultrasound benchmarks for vision-language models.

The public functions are loaded on first use: `import_cases`, `build`, `run`, `score`, `compare`, `analyse`,
`report`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sonogauge._errors import BadInput
    from sonogauge.analyses import analyse
    from sonogauge.build import build
    from sonogauge.compare import compare
    from sonogauge.report import report
    from sonogauge.run import run
    from sonogauge.score import score
    from sonogauge.sources.importer import import_cases

_PUBLIC = {
    "BadInput": "sonogauge._errors",
    "analyse": "sonogauge.analyses",
    "build": "sonogauge.build",
    "compare": "sonogauge.compare",
    "import_cases": "sonogauge.sources.importer",
    "report": "sonogauge.report",
    "run": "sonogauge.run",
    "score": "sonogauge.score",
}

__all__ = ["BadInput", "__version__", "analyse", "build", "compare", "import_cases", "report", "run", "score"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'sonogauge' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
