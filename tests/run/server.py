"""A scripted OpenAI-compatible server in a thread of the test process."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

Answer = web.StreamResponse | dict[str, Any]


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }


class Asked:
    """One request as the server saw it."""

    def __init__(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.body, self.headers = body, headers
        content = body["messages"][0]["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        self.text = next(part["text"] for part in parts if part["type"] == "text")
        self.urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        self.images = [base64.b64decode(url.partition(",")[2]) for url in self.urls]


class Server:
    """Answers chat completions with `script(asked, nth)`, nth = how often this text was asked, from 1.

    The script returns a completion, or a response of aiohttp; the default echoes a digest of text and images.
    """

    def __init__(
        self,
        script: Callable[[Asked, int], Any] | None = None,
        path: str = "/v1",
        port: int = 0,
        delay: float = 0.0,
        models: tuple[str, ...] = ("m",),
    ) -> None:
        self._script = script or (lambda asked, nth: completion(reply_to(asked)))
        self._path, self._port, self._delay, self._models = path, port, delay, models
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        self.most_at_once = 0
        self._at_once = 0
        self._loop = asyncio.new_event_loop()
        self._runner: web.AppRunner | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self._path}"

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(await request.json(), dict(request.headers))
        self.asked.append(asked)
        self.counts[asked.text] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self._delay:
                await asyncio.sleep(self._delay)
            answer = self._script(asked, self.counts[asked.text])
            if asyncio.iscoroutine(answer):
                answer = await answer
        finally:
            self._at_once -= 1
        if answer is DROP:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": one, "object": "model"} for one in self._models]})

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(f"{self._path}/chat/completions", self._chat)
        app.router.add_get(f"{self._path}/models", self._list)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def start(self) -> None:
        if not self._thread.is_alive():
            self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


DROP = object()


def reply_to(asked: Asked) -> str:
    digest = hashlib.sha256(b"".join([asked.text.encode(), *asked.images])).hexdigest()[:8]
    return f"{asked.text} {digest}"


def error(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> web.Response:
    return web.json_response({"error": {"message": message, **more}}, status=status, headers=headers)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def parsed(line: str) -> dict[str, Any]:
    return dict(json.loads(line))
