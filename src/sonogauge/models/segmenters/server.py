"""A small server of the protocol in `http`: any segmenter of this environment for the tools of another.

Copy it as it is into the environment of a foreign model: it needs the standard library, numpy, Pillow and pycocotools
through this package, and an object with the attributes and the one method of `base.Segmenter`.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import encode_mask
from sonogauge.models.segmenters.base import Segmenter, SegmenterFault, UnsupportedPrompt, decode_pixels, describe
from sonogauge.models.segmenters.guard import segment_safely
from sonogauge.models.segmenters.http import PROTOCOL

MAX_BODY: Final = 64 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000
MAX_PROMPTS: Final = 1_000
_SOCKET_SECONDS: Final = 30.0
_BODY_SECONDS: Final = 120.0
_CHUNK: Final = 1 << 16
# No more requests than this are read at a time; what waits holds its image in memory.
_AT_ONCE: Final = 4


class _Refused(ValueError):
    """A request that cannot be answered: its status, kind and reason."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind = status, kind


class SegmenterServer(ThreadingHTTPServer):
    """Serves one segmenter; one call at a time reaches it."""

    daemon_threads = True

    def __init__(self, segmenter: Segmenter, host: str = "127.0.0.1", port: int = 0, timeout: float = 600.0) -> None:
        self.segmenter, self.call_timeout = segmenter, timeout
        self.turn = threading.Lock()
        self.places = threading.BoundedSemaphore(_AT_ONCE)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise BadInput(f"cannot listen on {host}:{port} ({error})", fix="choose another --port") from error

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: SegmenterServer
    timeout = _SOCKET_SECONDS
    server_version = "sonogauge-segmenter"

    def do_GET(self) -> None:
        self._answer(self._info, "/info")

    def do_POST(self) -> None:
        self._answer(self._segment, "/segment")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet: a log of requests is the business of a proxy."""

    def _answer(self, work: Callable[[], dict[str, Any]], path: str) -> None:
        status, reply = 200, {}
        try:
            if self.path != path:
                raise _Refused(404, "path", "only GET /info and POST /segment are here")
            with self.server.places:
                reply = work()
        except _Refused as refused:
            status, reply = refused.status, _error(refused.kind, str(refused))
        except UnsupportedPrompt as error:
            status, reply = 422, _error("unsupported", str(error))
        except SegmenterFault as fault:
            status, reply = 500, _error(fault.kind, str(fault))
        except TimeoutError:
            status, reply = 408, _error("timeout", "the request did not arrive in time")
        body = json.dumps(reply, allow_nan=False).encode("utf-8")
        self.close_connection = True
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            return  # the client has gone; there is nobody left to tell

    def _info(self) -> dict[str, Any]:
        return {"protocol": PROTOCOL, **describe(self.server.segmenter)}

    def _segment(self) -> dict[str, Any]:
        request = self._body()
        image = _image(request.get("image"))
        text = request.get("text")
        if text is not None and (not isinstance(text, str) or len(text) > 1000):
            raise _Refused(400, "request", "text must be a phrase of at most 1000 characters")
        boxes = _numbers(request, "boxes", 4)
        points = _numbers(request, "points", 2)
        labels = request.get("point_labels")
        if labels is not None and not (isinstance(labels, list) and all(label in (0, 1) for label in labels)):
            raise _Refused(400, "request", "point_labels must be a list of 0 and 1")
        top_k, threshold = request.get("top_k"), request.get("score_threshold")
        if top_k is not None and (type(top_k) is not int or not 1 <= top_k <= MAX_PROMPTS):
            raise _Refused(400, "request", f"top_k must be a number from 1 to {MAX_PROMPTS} or null")
        if threshold is not None and not _is_number(threshold):
            raise _Refused(400, "request", "score_threshold must be a number or null")
        with self.server.turn:
            found = segment_safely(
                self.server.segmenter,
                image,
                text=text,
                boxes=None if boxes is None else [(box[0], box[1], box[2], box[3]) for box in boxes],
                points=None if points is None else [(point[0], point[1]) for point in points],
                point_labels=labels,
                top_k=top_k,
                score_threshold=threshold,
                timeout=self.server.call_timeout,
            )
        rows = []
        for one in found:
            code = encode_mask(one.mask, "", "")
            rle = {"size": code["size"], "counts": code["counts"]}
            rows.append({"rle": rle, "score": one.score, "box_xyxy": list(one.box_xyxy), "prompt": one.prompt})
        return {"instances": rows}

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _Refused(411, "request", "the length of the body must be given")
        if len(length) > 12 or int(length) > MAX_BODY:
            raise _Refused(413, "request", f"the body must not exceed {MAX_BODY} bytes")
        data = bytearray()
        deadline = time.monotonic() + _BODY_SECONDS
        while len(data) < int(length):
            # In pieces with one deadline: a byte a second must not hold a place for hours.
            chunk = self.rfile.read1(min(_CHUNK, int(length) - len(data)))
            if not chunk:
                raise _Refused(400, "request", "the body ends too early")
            data += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
        try:
            request = json.loads(bytes(data))
        except (ValueError, RecursionError):
            raise _Refused(400, "request", "the body is no JSON") from None
        if not isinstance(request, dict):
            raise _Refused(400, "request", "the body is no JSON object")
        return request


def _error(kind: str, detail: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "detail": " ".join(detail.split())[:300]}}


def _is_number(value: Any) -> bool:
    # Huge whole numbers would overflow later; no image has coordinates like that.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _numbers(request: dict[str, Any], key: str, count: int) -> list[list[float]] | None:
    rows = request.get(key)
    if rows is None:
        return None
    fits = isinstance(rows, list) and len(rows) <= MAX_PROMPTS
    if not fits or not all(isinstance(row, list) and len(row) == count and all(map(_is_number, row)) for row in rows):
        raise _Refused(400, "request", f"{key} must be a list of at most {MAX_PROMPTS} lists of {count} numbers")
    return [[float(value) for value in row] for row in rows]


def _image(text: Any) -> Any:
    from PIL import Image

    if not isinstance(text, str):
        raise _Refused(400, "image", "the image must be base64 of a PNG")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _Refused(400, "image", "the image is no base64") from None
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        # One decoder is open to the network, not thirty.
        raise _Refused(400, "image", "the image is no PNG")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if width * height > min(MAX_PIXELS, Image.MAX_IMAGE_PIXELS or MAX_PIXELS):
        raise _Refused(413, "image", f"the image must not exceed {MAX_PIXELS} pixels")
    try:
        return decode_pixels(data)
    except SegmenterFault as fault:
        raise _Refused(400, "image", str(fault)) from fault


def serve(segmenter: Segmenter, host: str = "127.0.0.1", port: int = 8765) -> None:
    """Serve a segmenter until interrupted."""
    with SegmenterServer(segmenter, host, port) as server:
        print(f"{segmenter.name} at {server.address}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
