"""Models behind an OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama and most vendors.

`openai/MODEL` and `openai-api/NAME/MODEL`. The client's own retries are off: the run retries, so that every attempt is
logged and all connections slow down together.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import exp
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sonogauge._errors import BadInput
from sonogauge.models.addresses import is_loopback
from sonogauge.models.base import Outcome, Request, without_key

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

OPENAI_URL: Final = "https://api.openai.com/v1"
_NO_VISION: Final = re.compile(
    r"(does not|doesn't|not|no|cannot|without)[^.]{0,40}(image|vision|multi-?modal)"
    r"|image[^.]{0,40}(not|un)[^.]{0,8}support|only text|text-only|unknown (content )?(part )?type"
    r"|content.{0,20}(must be|valid) .{0,10}string",
    re.I,
)
# A complaint about one image, not about images.
_ODD_IMAGE: Final = re.compile(r"image[^.]{0,20}(format|type|file|data)|media.?type|mime|decode|corrupt|invalid", re.I)
_MODERATED: Final = re.compile(r"moderat|flagged|safety|content[ _](filter|policy|management policy)", re.I)
_TOO_LARGE: Final = re.compile(
    r"too (large|big|long|many (pixels|tokens))|exceed|context length|maximum (size|length|context)|size limit", re.I
)


class OpenAIModel:
    """A chat model behind an OpenAI-compatible server.

    Args:
        name: `openai/MODEL`, or `openai-api/NAME/MODEL` with key and address from `NAME_API_KEY` and `NAME_BASE_URL`.
        base_url: address of the server, with or without `/v1`; by default `OPENAI_BASE_URL` or `NAME_BASE_URL`.
        api_key: by default `OPENAI_API_KEY` or `NAME_API_KEY`; a server on this machine needs none.
        timeout: seconds until an attempt counts as failed.
        connections: most connections held open.
        logprobs: ask for the probabilities of the options.
        revision: of the weights, if known.

    Raises:
        BadInput: no address, a broken one, or no key.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 300.0,
        connections: int = 100,
        logprobs: bool = False,
        revision: str = "",
    ) -> None:
        provider, _, rest = name.partition("/")
        prefix, self._model = "OPENAI", rest
        if provider == "openai-api":
            service, slash, self._model = rest.partition("/")
            if not slash or not service or not self._model:
                raise BadInput(f"not a model name: '{name}'", fix="write openai-api/NAME/MODEL")
            prefix = re.sub(r"[^A-Za-z0-9]", "_", service).upper()
        default = OPENAI_URL if prefix == "OPENAI" else None
        url = base_url or os.environ.get(f"{prefix}_BASE_URL") or default
        if not url:
            raise BadInput(f"no address for {name}", fix=f"pass --base-url or set {prefix}_BASE_URL")
        self._url = _clean_url(url)
        self._key = api_key or os.environ.get(f"{prefix}_API_KEY") or ""
        if not self._key:
            if not is_loopback(self._url):
                raise BadInput(f"no key for {self._url}", fix=f"set {prefix}_API_KEY or pass --api-key")
            self._key = "none"
        self.name = name
        self.revision = revision
        self.endpoint = self._url.removesuffix("/v1")
        self.options: Mapping[str, Any] = {"logprobs": True} if logprobs else {}
        self._timeout, self._connections = timeout, connections
        self._client: AsyncOpenAI | None = None
        self._moved = False
        self._moving = asyncio.Lock()

    def _connect(self) -> AsyncOpenAI:
        if self._client is None:
            import openai

            # As many kept alive as open: with fewer, connections are opened anew all the time.
            limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
                max_connections=self._connections, max_keepalive_connections=self._connections
            )
            # No redirects: a server on this machine must not pass images on. No proxy for an address on this machine.
            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._url,
                max_retries=0,
                timeout=self._timeout,
                http_client=openai.DefaultAioHttpClient(
                    follow_redirects=False,
                    trust_env=not is_loopback(self._url),
                    limits=limits,
                ),
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def answer(self, request: Request) -> Outcome:
        """Send one chat completion."""
        url = self._url
        outcome = await self._send(request)
        # The first refusals may have shown that the server lies at the other address, with or without /v1.
        return outcome if self._url == url else await self._send(request)

    async def _send(self, request: Request) -> Outcome:
        import openai

        client, url = self._connect(), self._url
        start = time.perf_counter()
        try:
            # The client's plain call: its typed one spends a third of the time on checking what we know.
            answer = await client.post("/chat/completions", cast_to=str, body=self._body(request))
        except openai.APIConnectionError as error:
            return self._not_connected(error)
        except openai.APIStatusError as error:
            return without_key(await self._refused(error, request, url), self._key)
        return _read(answer, request, time.perf_counter() - start)

    def _body(self, request: Request) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"},
            }
            for image in request.images
        ]
        content: Any = [*parts, {"type": "text", "text": request.prompt}] if parts else request.prompt
        body = {"model": self._model, "messages": [{"role": "user", "content": content}], **request.generation}
        if self.options.get("logprobs") and request.options:
            body |= {"logprobs": True, "top_logprobs": 20}
        return body

    def _not_connected(self, error: Exception) -> Outcome:
        import aiohttp

        # The transport's own names mix up refused, lost and slow connections, so the first cause is what counts.
        causes: list[BaseException] = [error]
        while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 10:
            causes.append(cause)
        detail = _line(str(causes[-1])) or type(causes[-1]).__name__
        if any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes):
            return Outcome("error", error=f"connection: nothing answers at {self._url} ({detail})", retry=True)
        if any(isinstance(cause, TimeoutError) for cause in causes):
            return Outcome("error", error=f"timeout: no answer in {self._timeout:g} s", retry=True)
        return Outcome("error", error=f"dropped: the connection broke off ({detail})", retry=True)

    async def _refused(self, error: APIStatusError, request: Request, url: str) -> Outcome:
        code, said = error.status_code, _message(error)
        wait = _retry_after(error.response.headers)
        if code == 402 or (code == 429 and ("insufficient_quota" in said or "billing" in said)):
            return Outcome("error", error=f"quota: {said}", fatal=True)
        if code == 429:
            return Outcome("error", error=f"rate_limit: {said}", retry=True, retry_after=wait)
        if code in (408, 409, 425) or code >= 500:
            if re.search(r"image|vision|multi-?modal", said, re.I) and _takes_none(request, said):
                return Outcome("error", error=f"no_vision: {self._model} takes no images ({said})", fatal=True)
            return Outcome("error", error=f"server: {code} {said}", retry=True, retry_after=wait)
        if 300 <= code < 400:
            target = error.response.headers.get("location", "")
            return Outcome("error", error=f"url: {self._url} redirects to {target}; use that address", fatal=True)
        if (code == 403 and _MODERATED.search(said)) or "content_filter" in said or "content management policy" in said:
            return Outcome("error", error=f"content_filter: {said}", finish_reason="content_filter")
        if code in (401, 403):
            return Outcome("error", error=f"key: {self._url} refuses the key ({code} {said})", fatal=True)
        if code in (404, 405):
            return await self._not_found(said, url)
        if code == 413 or _TOO_LARGE.search(said):
            return Outcome("error", error=f"too_large: {said}; try --image-policy max:1024")
        if _takes_none(request, said):
            return Outcome("error", error=f"no_vision: {self._model} takes no images ({said})", fatal=True)
        return Outcome("error", error=f"request: {code} {said}")

    async def _not_found(self, said: str, url: str) -> Outcome:
        """Say what is not there, model or address; move to the same address with or without /v1 if that answers."""
        async with self._moving:
            if self._url != url:
                return Outcome("error", error=f"url: moved to {self._url}", retry=True)
            models = await self._models(url)
            if models is not None or "model" in said.lower():
                known = f"; the server has {', '.join(models[:8])}" if models else ""
                return Outcome("error", error=f"model: no model '{self._model}' at {url} ({said}){known}", fatal=True)
            parts = urlsplit(url)
            root = f"{parts.scheme}://{parts.netloc}"
            same = url.removesuffix("/v1") if url.endswith("/v1") else f"{url}/v1"
            for other in dict.fromkeys((same, f"{root}/v1", root)):
                if other != url and await self._models(other) is not None:
                    if other == same and not self._moved and self._client is not None:
                        self._moved, self._url = True, other
                        self._client.base_url = other
                        return Outcome("error", error=f"url: moved to {other}", retry=True)
                    return Outcome("error", error=f"url: no chat completions at {url}; use {other}", fatal=True)
            return Outcome("error", error=f"url: no chat completions at {url} ({said})", fatal=True)

    async def _models(self, url: str) -> list[str] | None:
        """Return the model ids that an address lists, None if it lists none."""
        import openai

        probe = self._connect().with_options(base_url=url)
        try:
            found = await probe.get("/models", cast_to=str)
            return [str(one["id"]) for one in json.loads(found)["data"]]
        except (openai.OpenAIError, ValueError, KeyError, TypeError):
            return None


def _clean_url(url: str) -> str:
    """Return an address without query, final slash and the path of the call itself; `/v1` if it has no path."""
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        secret = parts.username is not None
    except ValueError:
        valid = secret = False
    if secret:
        # The address is recorded with the run.
        raise BadInput("the server address holds a user name or password", fix="pass the secret as --api-key")
    if not valid:
        raise BadInput(f"not a server address: '{url}'", fix="write http://HOST:PORT/v1")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _takes_none(request: Request, said: str) -> bool:
    """Whether a server refuses images as such; a format that it does not read is a fault of one image."""
    return bool(request.images) and bool(_NO_VISION.search(said)) and not _ODD_IMAGE.search(said)


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _message(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            words = [str(inner[key]) for key in ("message", "detail", "code") if inner.get(key)]
            if words:
                return _line(" ".join(words))
        return _line(json.dumps(body))
    text = error.response.text
    return _line("an HTML page" if text.lstrip()[:1] == "<" else text or error.message)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from either header, as number or date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _read(body: str, request: Request, latency: float) -> Outcome:
    """Read the body of a chat completion; anything odd is an error, never a text."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip()[:1] == "<"
        detail = "an HTML page, so this is no API address" if page else f"not JSON, {len(body)} characters"
        return Outcome("error", error=f"bad_answer: {detail}", latency=latency, retry=not page, fatal=page)
    if isinstance(answer, dict) and answer.get("error"):
        return Outcome("error", error=f"server: {_line(json.dumps(answer['error']))}", latency=latency, retry=True)
    try:
        usage = answer.get("usage") or {}
        tokens_in, tokens_out = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
        choices = answer.get("choices")
        if not choices:
            return Outcome("error", error="empty_choice: no choice in the answer", latency=latency, retry=True)
        choice = choices[0]
        message = choice.get("message") or {}
        finish = str(choice.get("finish_reason") or "")
        text = _text(message.get("content"))
        # A refusal field is what the model said, so the parser sees it as such.
        text = text or _text(message.get("refusal"))
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        probabilities = _option_probabilities(choice.get("logprobs"), request)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
        return Outcome("error", error="bad_answer: not a chat completion", latency=latency, retry=True)
    if finish == "content_filter":
        return Outcome(
            "error",
            error="content_filter: the server withheld the answer",
            finish_reason=finish,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            latency=latency,
        )
    return Outcome(
        "truncated" if finish in ("length", "max_tokens") else "ok",
        text=text,
        finish_reason=finish or None,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        latency=latency,
        option_probabilities=probabilities,
        trace=json.dumps({"reasoning": str(reasoning)}, ensure_ascii=False) if reasoning else None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if part.get("type") in ("text", "output_text"))
    if content is not None and not isinstance(content, str):
        raise TypeError("content is neither text nor parts")
    return content or ""


def _option_probabilities(logprobs: Any, request: Request) -> dict[str, float] | None:
    """Return the probability of each option from the first token that holds a letter or digit.

    A token counts for an option if it is the option's letter, or if it begins the text of this option alone.
    """
    tokens = (logprobs or {}).get("content") or []
    first = next((token for token in tokens if re.search(r"\w", token["token"])), None)
    if first is None or not request.options:
        return None
    sums = dict.fromkeys(request.options, 0.0)
    alternatives = first.get("top_logprobs") or [first]
    for alternative in alternatives:
        option = _option_of(alternative["token"], request)
        if option is not None:
            sums[option] += exp(float(alternative["logprob"]))
    return {option: min(1.0, value) for option, value in sums.items()} if any(sums.values()) else None


def _option_of(token: str, request: Request) -> str | None:
    word = re.sub(r"^\W+|\W+$", "", token).casefold()
    if not word:
        return None
    if request.letters:
        named = [o for o, letter in zip(request.options, request.letters, strict=True) if letter.casefold() == word]
        return named[0] if named else None
    exact = [option for option in request.options if option.casefold() == word]
    begun = exact or [option for option in request.options if option.casefold().startswith(word)]
    return begun[0] if len(begun) == 1 else None
