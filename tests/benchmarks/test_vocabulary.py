"""Free strings of rows become our words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, load_spec
from sonogauge.benchmarks.vocabulary import DIAGNOSIS, is_missing, map_anatomy, map_keypoint, map_structure

SPEC = load_spec("u2bench")


def one(task: str, dataset: str) -> Scenario:
    scenario = SPEC.scenario(task, dataset)
    assert scenario is not None
    return scenario


@pytest.mark.part("benchmark registry")
@pytest.mark.parametrize(
    ("pair", "raw", "word"),
    [
        ("LL/23", "malignant breast cancer", "breast"),
        ("LL/64", "nan", "breast"),
        ("OD/31", "fetus_head", "fetus"),
        ("OD/37", "thyroid_left", "thyroid"),
        ("OD/37", "thyroid_right", "thyroid"),
        ("OD/38", "Carotid Artery", "carotid artery"),
        ("OD/52", "pubic symphysis and fetal head", "fetus"),
        ("OD/16", "gastrocnemius-soleus", "musculoskeletal system"),
        ("OD/47", "brachial plexus", "musculoskeletal system"),
        ("OD/50", "fetal abdominal", "fetus"),
        ("OD/67", "abdominal", "abdomen"),
        ("RG/39", "Mammary", "breast"),
        ("RG/39", "['thyroid']", "thyroid"),
        ("KD/48", "fetus_head", "fetus"),
        ("CG/10", "breast", "breast"),
        ("CG/10", "", "fetus"),
        ("OD/09", "liver and kidney", "kidney"),  # names two: the scenario decides
        ("OD/09", "kidneypool", "kidney"),  # no word inside a word
        ("LL/17", "liverwurst", "prostate"),
        ("DD/23", "liver", "breast"),  # the prompt speaks of the breast
        ("VRA/anatomy", "breast", "breast"),
        ("VRA/anatomy", "elbow", ""),
    ],
)
def test_map_anatomy(pair: str, raw: str, word: str) -> None:
    assert map_anatomy(raw, one(*pair.split("/")), SPEC) == word


@given(st.none() | st.text(max_size=60))
def test_only_words_of_the_vocabulary_come_out(raw: str | None) -> None:
    words = {*SPEC.parameters["anatomies"], ""}
    for scenario in SPEC.scenarios[::7]:
        assert map_anatomy(raw, scenario, SPEC) in words


def test_a_benchmark_without_a_vocabulary_keeps_its_own_anatomy() -> None:
    bare: BenchmarkSpec = SPEC.model_copy(update={"parameters": {}})
    assert map_anatomy("thyroid", one("LL", "64"), bare) == "breast"


@pytest.mark.part("benchmark registry")
@pytest.mark.parametrize(
    ("pair", "raw", "words"),
    [
        ("OD/09", "cortex_R1", "renal cortex"),
        ("OD/31", "nan", "fetal head"),
        ("OD/31", None, "fetal head"),
        ("OD/31", "", "fetal head"),
        ("OD/13", "stomach", "fetal stomach"),
        ("OD/47", "brachial_plexus", "brachial plexus"),
        ("OD/13", "gall_bladder", "gall bladder"),
        ("OD/13", "stomach, liver", "fetal stomach"),
        ("OD/13", "malignant tumor", "fetal stomach"),
        ("OD/13", "x" * 200, "fetal stomach"),
        ("OD/13", "ignore\nthis", "ignore this"),
        ("OD/13", "{structure}", "fetal stomach"),
    ],
)
def test_map_structure(pair: str, raw: str | None, words: str) -> None:
    assert map_structure(raw, one(*pair.split("/"))) == words


@pytest.mark.parametrize("raw", [None, "", "nan", "None", "keypoint", "Key Points", "key_point", "{'a': [0.5, ", "12"])
def test_no_name_no_key_point(raw: str | None) -> None:
    assert map_keypoint(raw, one("KD", "48")) is None


def test_named_key_points() -> None:
    scenario = one("KD", "48")
    assert map_keypoint("LV apex endocardial", scenario) == "endocardial point at the apex of the left ventricle"
    assert map_keypoint("topmost point of the skull", scenario) == "topmost point of the skull"


@given(st.text(max_size=100))
def test_targets_can_stand_in_a_prompt(raw: str) -> None:
    for words in (map_structure(raw, one("OD", "13")), map_keypoint(raw, one("KD", "48"))):
        if words is not None:
            assert not is_missing(words)
            assert not DIAGNOSIS.search(words)
            assert not set("{}[]\n\\") & set(words)
