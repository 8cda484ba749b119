"""Commands that list what there is: metrics, models, analyses."""

from __future__ import annotations

from typing import Any, Final

from sonogauge.cli.base import Json, app, print_json

# (names of --model, who answers, what is needed)
_PROVIDERS: Final = {
    "openai": ("openai/NAME", "OpenAI", "OPENAI_API_KEY"),
    "openai-api": (
        "openai-api/LAB/NAME",
        "any server that speaks its protocol: vLLM, SGLang, llama.cpp, Ollama",
        "--base-url or LAB_BASE_URL; LAB_API_KEY if it is another machine",
    ),
    "local": ("local/DIR", "weights on this machine, by transformers", "pip install 'sonogauge[local]'"),
    "agent": (
        "agent/ultrag?planner=MODEL&segmenter=SEGMENTER",
        "a model that plans beside a segmenter that draws",
        "what the two need; see docs/segmenters.md",
    ),
    "inspect": (
        "inspect/PROVIDER/NAME",
        "any provider of Inspect",
        "pip install 'sonogauge[inspect]' and the vendor's own package",
    ),
}


@app.command("metrics")
def metrics_command(as_json: Json = False) -> None:
    """List the metrics: name, direction, unit, meaning.

    Example: sonogauge metrics
    """
    from sonogauge.metrics import METRICS

    found = []
    for name in METRICS:
        function = METRICS.load(name)
        metric = function.metric
        found.append(
            {"name": name, "better": metric.direction, "unit": metric.unit, "meaning": _meaning(function)}
            | {"source": metric.source}
        )
    if as_json:
        print_json(found)
        return
    print("↑ higher is better, ↓ lower is better; in brackets the unit")
    for one in found:
        print(f"{one['name']} {'↑' if one['better'] == 'up' else '↓'} [{one['unit']}]: {one['meaning']}")


@app.command("models")
def models_command(as_json: Json = False) -> None:
    """List who can answer, and who can draw masks.

    Example: sonogauge models
    """
    from sonogauge.models import MODELS
    from sonogauge.models.baselines import BASELINES
    from sonogauge.models.segmenters import SEGMENTERS

    providers: list[dict[str, str]] = []
    vendors, others = [], []
    for name in MODELS:
        if name in _PROVIDERS:
            model, who, needs = _PROVIDERS[name]
            providers.append({"model": model, "who": who, "needs": needs})
        elif MODELS.target(name) == MODELS.target("inspect"):
            vendors.append(name)
        elif name != "baseline":
            others.append({"model": f"{name}/NAME", "who": "a provider of another package", "needs": "see there"})
    baselines = [f"baseline/{name}" for name in BASELINES]
    segmenters = {name: _meaning(SEGMENTERS.load(name)) for name in SEGMENTERS}
    if as_json:
        print_json(
            {"providers": providers + others, "through_inspect": vendors}
            | {"baselines": baselines, "segmenters": segmenters}
        )
        return
    print("names for --model")
    print("  " + ", ".join(baselines) + ": need nothing; all but oracle answer without the image")
    for one in providers + others:
        print(f"  {one['model']}: {one['who']}; needs {one['needs']}")
    print(f"  PROVIDER/NAME through Inspect, PROVIDER being {', '.join(vendors)}")
    print("segmenters")
    for name, meaning in segmenters.items():
        print(f"  {name}: {meaning}")


@app.command("analyses")
def analyses_command(as_json: Json = False) -> None:
    """List the analyses, and what each of them reads.

    Example: sonogauge analyses
    """
    from sonogauge.analyses.api import ANALYSES, BENCH_ANALYSES, ENTITIES, PANEL_ANALYSES

    groups: dict[str, dict[str, str]] = {
        "a run or scores with multiple-choice questions": {one: _meaning(ANALYSES.load(one)) for one in ANALYSES},
        "scores of any answer form": {one: _meaning(PANEL_ANALYSES.load(one)) for one in PANEL_ANALYSES},
        "a benchmark folder": {one: _meaning(BENCH_ANALYSES.load(one)) for one in BENCH_ANALYSES},
        "a file of annotations and its re-check": {ENTITIES: "Agreement of annotations, entity by entity."},
    }
    if as_json:
        print_json(
            [{"name": name, "reads": of, "meaning": told} for of, all in groups.items() for name, told in all.items()]
        )
        return
    for of, names in groups.items():
        print(f"of {of}")
        for name, meaning in names.items():
            print(f"  {name}: {meaning}")


def _meaning(thing: Any) -> str:
    """Return the first sentence of what the code says of itself, without what only its caller needs."""
    first = " ".join((thing.__doc__ or "").split("\n\n")[0].split()).removeprefix("Return ")
    first = first.partition("; sums:")[0].partition("; see `")[0].rstrip(".") + "."
    return first[:1].upper() + first[1:]
