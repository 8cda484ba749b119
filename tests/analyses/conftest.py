from __future__ import annotations

from pathlib import Path

import pytest
from tests.analyses.made import made_bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_bench(tmp_path_factory.mktemp("fetal_analyses"))
