"""Who answers: baselines, models behind a server, local models; found by the prefix of their name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.models.base import EncodedImage, Model, Outcome, Reader, Request

# Reached through Inspect; `inspect/PROVIDER/MODEL` reaches any other of its providers.
_INSPECT: Final = (
    *("inspect", "anthropic", "google", "bedrock", "azureai", "mistral", "grok", "groq", "together", "fireworks"),
    *("sambanova", "cloudflare", "perplexity", "deepseek", "openrouter", "moonshot", "meta", "sagemaker"),
    *("litellm-proxy", "hf-inference-providers", "hf", "ollama", "vllm", "sglang", "llama-cpp-python"),
)
# A maker takes the whole name ("openai/gpt-x") and keyword options and returns the model.
MODELS: Final[Registry[Callable[..., Model | Reader]]] = Registry(
    "model provider",
    {
        **dict.fromkeys(_INSPECT, "sonogauge.models.inspect:InspectModel"),
        "baseline": "sonogauge.models.baselines:Baseline",
        "openai": "sonogauge.models.openai:OpenAIModel",
        "openai-api": "sonogauge.models.openai:OpenAIModel",
        "local": "sonogauge.models.local:LocalModel",
        "agent": "sonogauge.models.agents:make_agent",
    },
    group="sonogauge.models",
)


def load_model(name: str, *, asked: Path | None = None, **options: Any) -> Model | Reader:
    """Return the model called PROVIDER/NAME.

    Options that are None are left out, so that each provider keeps its own defaults. asked: the benchmark that it will
    be asked, for a provider that declares an option `asked` (an agent takes its vocabulary from the train part).

    Raises:
        BadInput: no such provider, or the provider refuses the name or an option.
    """
    provider, slash, rest = name.partition("/")
    if not slash or not rest:
        raise BadInput(f"not a model name: '{name}'", fix="write PROVIDER/NAME, for example baseline/random")
    maker = MODELS.load(provider)
    given = {key: value for key, value in options.items() if value is not None}
    if asked is not None and "asked" in signature(maker).parameters:
        given["asked"] = asked
    try:
        signature(maker).bind(name, **given)
    except TypeError as error:
        raise BadInput(f"{provider} models do not take these options ({error})", field="model") from None
    return maker(name, **given)


__all__ = ["MODELS", "EncodedImage", "Model", "Outcome", "Reader", "Request", "load_model"]
