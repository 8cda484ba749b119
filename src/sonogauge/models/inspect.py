"""Every provider that Inspect knows (Anthropic, Google, Bedrock, …), through its model layer; extra `[inspect]`.

`anthropic/MODEL` and the like, or `inspect/PROVIDER/MODEL` for any provider, also one of another package. Inspect's own
retries and cache are off: the run retries, and the run folder is the only cache.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sonogauge._errors import BadInput
from sonogauge.models.addresses import reached_through
from sonogauge.models.base import Outcome, Request, without_key

if TYPE_CHECKING:
    from inspect_ai.model import ModelOutput

# Providers that load the weights into this process.
_IN_PROCESS: Final = frozenset({"hf", "transformer_lens", "nnterp", "mockllm"})
_NAMES: Final = {"stop": "stop_seqs", "max_completion_tokens": "max_tokens"}
_FATAL: Final = {401: "key", 403: "key", 404: "model"}


class InspectModel:
    """A model behind Inspect's `get_model`.

    Args:
        name: PROVIDER/MODEL, or inspect/PROVIDER/MODEL.
        base_url: address of the provider, by default its own.
        api_key: by default from the provider's own environment variable.
        connections: most connections held open.
        model_args: further arguments of the provider.
        revision: of the weights, if known.

    Raises:
        BadInput: the extra is not installed, or the provider refuses (no key, no such provider).
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        connections: int = 100,
        model_args: Mapping[str, Any] | None = None,
        revision: str = "",
    ) -> None:
        try:
            from inspect_ai.model import GenerateConfig, get_model
        except ImportError as error:
            raise BadInput(
                f"{name} needs Inspect, which is not installed", fix="pip install 'sonogauge[inspect]'"
            ) from error
        inner = name.removeprefix("inspect/")
        provider = inner.partition("/")[0]
        try:
            self._model = get_model(
                inner,
                config=GenerateConfig(max_retries=0, max_connections=connections),
                base_url=base_url,
                api_key=api_key,
                memoize=False,
                **(model_args or {}),
            )
        except Exception as error:
            # Each provider has its own errors for a missing key, package or name; all are the user's to mend.
            raise BadInput(f"Inspect cannot open {inner}: {_line(error)}", field="model") from error
        self.name = name
        self.revision = revision
        address = base_url or getattr(self._model.api, "base_url", None) or f"the provider {provider}"
        where = str(address).rstrip("/").removesuffix("/v1")
        # The clients of its providers obey a proxy even for an address on this machine.
        self.endpoint = "" if provider in _IN_PROCESS else reached_through(where)
        self.options: Mapping[str, Any] = dict(model_args or {})

    async def close(self) -> None:
        """Close the connections."""
        await self._model.api.aclose()

    async def answer(self, request: Request) -> Outcome:
        """Put one question through Inspect."""
        from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig

        content: list[ContentImage | ContentText] = [
            ContentImage(image=f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}")
            for image in request.images
        ]
        message = ChatMessageUser(content=[*content, ContentText(text=request.prompt)] if content else request.prompt)
        try:
            named = {_NAMES.get(key, key): value for key, value in request.generation.items()}
            known = {key: value for key, value in named.items() if key in GenerateConfig.model_fields}
            extra = {key: value for key, value in named.items() if key not in known}
            config = GenerateConfig(**known, extra_body=extra or None)
            output = await self._model.generate([message], config=config, cache=False)
        except Exception as error:
            # Every provider raises its own kinds; Inspect knows which of them may pass.
            return without_key(self._failed(error), self._model.api.api_key)
        return _read(output)

    def _failed(self, error: Exception) -> Outcome:
        cause: BaseException | None = error
        while cause is not None and not isinstance(getattr(cause, "status_code", None), int):
            cause = cause.__cause__ or cause.__context__
        code = getattr(cause, "status_code", None)
        said = _line(cause or error)
        if code in _FATAL:
            hint = f"; not there at {self.endpoint}: check the name, and the address down to /v1" if code == 404 else ""
            return Outcome("error", error=f"{_FATAL[code]}: {self.name}: {said}{hint}", fatal=True)
        original = cause if isinstance(cause, Exception) else error
        retry = bool(self._model.api.should_retry(original))
        if code == 429:
            return Outcome("error", error=f"rate_limit: {said}", retry=True, retry_after=_retry_after(cause))
        if code == 413:
            return Outcome("error", error=f"too_large: {said}; try --image-policy max:1024")
        if "Connection" in type(original).__name__:
            return Outcome("error", error=f"dropped: {said}", retry=True)
        kind = "request" if isinstance(code, int) and 400 <= code < 500 else "server"
        return Outcome("error", error=f"{kind}: {said}", retry=retry)


def _retry_after(error: BaseException | None) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, TypeError, ValueError):
        return None


def _line(error: BaseException) -> str:
    # Some of Inspect's messages are written for its own coloured console.
    text = re.sub(r"\[/?(bold|red|blue|yellow|green|dim)[^\]]*\]", "", str(error))
    return " ".join(f"{type(error).__name__} {text}".split())[:300]


def _read(output: ModelOutput) -> Outcome:
    if output.error:
        return Outcome("error", error=f"server: {output.error[:300]}", retry=True)
    if not output.choices:
        return Outcome("error", error="empty_choice: no choice in the answer", retry=True)
    usage = output.usage
    reason = output.choices[0].stop_reason
    tokens = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    if reason == "content_filter":
        return Outcome(
            "error",
            error="content_filter: the provider withheld the answer",
            finish_reason=reason,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
        )
    content = output.choices[0].message.content
    parts = content if isinstance(content, list) else []
    reasoning = [part.reasoning for part in parts if part.type == "reasoning" and part.reasoning]
    return Outcome(
        "truncated" if reason in ("max_tokens", "model_length") else "ok",
        text=output.choices[0].message.text,
        finish_reason=reason,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost=usage.total_cost if usage else None,
        trace=json.dumps({"reasoning": "\n".join(reasoning)}, ensure_ascii=False) if reasoning else None,
    )
