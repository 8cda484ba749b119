"""The registry of U2-BENCH against the numbers of its description."""

from __future__ import annotations

from collections import Counter

import pytest

from sonogauge._errors import BadInput
from sonogauge.answers.place import PLACES
from sonogauge.benchmarks.prompts import answer_for
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.benchmarks.u2bench import U2_TASKS

pytestmark = pytest.mark.part("benchmark registry")


@pytest.fixture(scope="module")
def spec() -> BenchmarkSpec:
    return load_spec("u2bench")


def one(spec: BenchmarkSpec, task: str, dataset: str) -> Scenario:
    scenario = spec.scenario(task, dataset)
    assert scenario is not None
    return scenario


def rows(scenarios: tuple[Scenario, ...]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for scenario in scenarios:
        assert scenario.rows is not None
        total[scenario.task] += scenario.rows
    return dict(total)


def test_pairs_and_rows_per_task(spec: BenchmarkSpec) -> None:
    assert tuple(spec.tasks) == U2_TASKS
    pairs = Counter(scenario.task for scenario in spec.scenarios)
    assert pairs == {"DD": 13, "VRA": 10, "LL": 5, "OD": 13, "KD": 1, "CVE": 5, "RG": 1, "CG": 3}
    assert len({scenario.key for scenario in spec.scenarios}) == 51
    expected = {"DD": 1411, "VRA": 1588, "LL": 503, "OD": 1918, "KD": 500, "CVE": 521, "RG": 600}
    assert rows(spec.scenario_set("all")) == expected | {"CG": 422}
    assert rows(spec.scenario_set("core")) == expected | {"CG": 200}


def test_sets(spec: BenchmarkSpec) -> None:
    assert spec.default_set == "fifty"
    assert {name: len(spec.scenario_set(name)) for name in spec.sets} == {
        "fifty": 50,
        "all": 51,
        "core": 49,
        "published_sets": 33,
    }
    assert sum(rows(spec.scenario_set("core")).values()) == 7241
    pairs = {scenario.key for scenario in spec.scenarios}
    for rule in spec.sets.values():
        assert {tuple(pair.split("/")) for pair in (*rule.only, *rule.without)} <= pairs
    # The other reading of 7,241: all three CG sets, without the knee views and the body regions.
    other = [s.rows or 0 for s in spec.scenarios if s.key not in {("VRA", "28_class"), ("VRA", "anatomy")}]
    assert sum(other) == 7241
    with pytest.raises(BadInput, match="known: fifty, all, core, published_sets, present"):
        spec.scenario_set("half")


def test_weights_by_rows_are_exact_and_equal_the_table(spec: BenchmarkSpec) -> None:
    assert spec.weights["n_t"] == {task: n / 7241 for task, n in rows(spec.scenario_set("core")).items()}
    table = (0.1949, 0.2193, 0.0695, 0.2649, 0.0691, 0.0720, 0.0829, 0.0276)
    assert tuple(round(spec.weights["n_t"][task], 4) for task in U2_TASKS) == table
    assert tuple(spec.weights["published"][task] for task in U2_TASKS) == (0.2, 0.2, 0.07, 0.27, 0.07, 0.07, 0.08, 0.04)
    for weights in spec.weights.values():
        assert sum(weights.values()) == pytest.approx(1.0, abs=1e-12)
    assert {c.weights for c in spec.composites.values()} <= set(spec.weights)
    assert {name: (c.weights, c.level, c.skill) for name, c in spec.composites.items()} == {
        "u2": ("published", "macro", False),
        "u2_n_t": ("n_t", "macro", False),
        "u2_cases": ("n_t", "cases", False),
        "u2_skill": ("published", "macro", True),
    }


def test_labels_that_yaml_could_bend_are_strings(spec: BenchmarkSpec) -> None:
    assert one(spec, "DD", "40").options == ("2", "3", "4A", "4B", "4C", "5")
    assert one(spec, "DD", "44").options == ("0", "1", "2", "3")
    assert one(spec, "VRA", "53").options[0] == "None"
    assert one(spec, "VRA", "50").options == ("none", "optimal", "suboptimal")
    assert {s.dataset for s in spec.scenarios if s.task == "OD"} >= {"09", "13"}
    assert one(spec, "VRA", "69").determinable == "no"


def test_options_and_ranges_fit_the_form(spec: BenchmarkSpec) -> None:
    for scenario in spec.scenarios:
        form = spec.tasks[scenario.task].form
        assert len(set(scenario.options)) == len(scenario.options)
        assert bool(scenario.options) == (form in ("choice", "place"))
        assert (scenario.low is not None and scenario.high is not None) == (form == "number")
        assert set(scenario.positive) | set(scenario.ordinal) <= set(scenario.options)
        assert (scenario.determinable == "yes") == (scenario.determinable_reason == "")
        assert bool(scenario.structure) == (scenario.task == "OD")
    places = {scenario.options for scenario in spec.scenarios if spec.tasks[scenario.task].form == "place"}
    assert places == {PLACES}
    knee = one(spec, "VRA", "28_class").options
    assert len(knee) == 14
    assert {option.split(" ", 1)[1] for option in knee[:7]} == {option.split(" ", 1)[1] for option in knee[7:]}


def test_what_one_image_can_tell(spec: BenchmarkSpec) -> None:
    marked = {"no": set(), "partly": set(), "yes": set()}
    for scenario in spec.scenarios:
        marked[scenario.determinable].add("/".join(scenario.key))
    assert marked["no"] == {"CVE/18", "CVE/50", "VRA/69"}
    assert marked["partly"] == {"CVE/27", "CVE/57", "DD/57", "VRA/28_class", "VRA/37", "DD/40", "DD/44", "VRA/10"}


def test_shared_numbers_are_one_source(spec: BenchmarkSpec) -> None:
    assert one(spec, "DD", "28").source == one(spec, "VRA", "28_class").source == "28"
    assert one(spec, "DD", "74is_normal").source == one(spec, "VRA", "74is_visible").source == "74"
    assert one(spec, "VRA", "anatomy").source == "anatomy"
    assert len({scenario.source for scenario in spec.scenarios} - {"anatomy"}) == 36


def test_anatomy_words(spec: BenchmarkSpec) -> None:
    vocabulary = spec.parameters["anatomies"]
    assert len(vocabulary) == 15
    assert {scenario.anatomy for scenario in spec.scenarios} - {""} == set(vocabulary)


def test_answers(spec: BenchmarkSpec) -> None:
    imt = answer_for(spec, one(spec, "CVE", "27"))
    assert (imt.form, imt.options, imt.low, imt.high, imt.unit, imt.tolerance) == (
        "number",
        ("null",),
        0.3,
        1.5,
        "mm",
        0.1,
    )
    assert answer_for(spec, one(spec, "CVE", "31")).options == ()
    assert answer_for(spec, one(spec, "LL", "04")).tolerance is None
    stray = one(spec, "LL", "04").model_copy(update={"task": "ZZ"})
    with pytest.raises(BadInput, match="no task 'ZZ' in u2bench"):
        answer_for(spec, stray)


def test_round_trip_through_the_built_copy(spec: BenchmarkSpec) -> None:
    assert BenchmarkSpec.model_validate_json(dump_spec(spec)) == spec
