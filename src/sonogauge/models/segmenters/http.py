"""A segmenter behind an address, for models that need an environment of their own (UltraSAM3, UltraSam); see `server`.

The protocol, version 1: `GET /info` gives the facts of the segmenter, `POST /segment` takes
`{"image": base64 of a PNG, "text", "boxes", "points", "point_labels", "top_k", "score_threshold"}` and gives
`{"instances": [{"rle": {"size": [h, w], "counts": "…"}, "score": 0.9, "box_xyxy": […], "prompt": "…"}]}` or
`{"error": {"kind": "unsupported" | "failed" | …, "detail": "…"}}`.
"""

from __future__ import annotations

import base64
import io
import json
import math
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.models.segmenters.base import (
    CAPABILITIES,
    XYXY,
    Instance,
    Pixels,
    SegmenterFault,
    UnsupportedPrompt,
    check_prompts,
    make_instance,
)

PROTOCOL: Final = 1
MAX_REPLY: Final = 64 * 1024 * 1024
MAX_INSTANCES: Final = 10_000
_CHUNK: Final = 1 << 16


class HttpSegmenter:
    """Asks a server.

    Args:
        where: its address, for example http://127.0.0.1:8765.
        timeout: seconds for one call.

    Raises:
        BadInput: nobody there, or somebody who speaks another protocol.
    """

    def __init__(self, where: str, *, timeout: float = 120.0) -> None:
        parts = urlsplit(where)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise BadInput(f"not an address: '{where}'", field="segmenter", fix="write http:http://127.0.0.1:8765")
        if not timeout > 0:
            raise BadInput(f"a timeout of {timeout} s is none", field="segmenter")
        self.endpoint = where.rstrip("/")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path, self._timeout = parts.path.rstrip("/"), timeout
        try:
            facts = self._exchange("GET", "/info", None)
        except SegmenterFault as fault:
            raise BadInput(f"no segmenter answers there ({fault})", file=where, fix="start the server first") from fault
        if facts.get("protocol") != PROTOCOL:
            raise BadInput(f"speaks protocol {facts.get('protocol')!r}, not {PROTOCOL}", file=where)
        told = facts.get("capabilities")
        self.capabilities = frozenset(one for one in CAPABILITIES if isinstance(told, list) and one in told)
        self.name, self.version, self.weights_id, self.licence, self.device = (
            str(facts.get(key) or "")[:300] for key in ("name", "version", "weights_id", "licence", "device")
        )
        if not self.capabilities or not self.name:
            raise BadInput("does not say its name and what prompts it takes", file=where)

    def segment(
        self,
        image: Pixels,
        text: str | None = None,
        boxes: Sequence[XYXY] | None = None,
        points: Sequence[tuple[float, float]] | None = None,
        point_labels: Sequence[int] | None = None,
        top_k: int | None = 1,
        score_threshold: float | None = None,
    ) -> list[Instance]:
        """Send image and prompts; see `Segmenter.segment`."""
        check_prompts(self, text, boxes, points, point_labels)
        body = {
            "image": base64.b64encode(_png(image)).decode("ascii"),
            "text": text,
            "boxes": None if boxes is None else [list(map(float, box)) for box in boxes],
            "points": None if points is None else [list(map(float, point)) for point in points],
            "point_labels": None if point_labels is None else [int(label) for label in point_labels],
            "top_k": top_k,
            "score_threshold": score_threshold,
        }
        reply = self._exchange("POST", "/segment", body)
        rows = reply.get("instances")
        if not isinstance(rows, list) or len(rows) > MAX_INSTANCES:
            raise SegmenterFault("reply", "the server sent no list of instances")
        return [one for row in rows if (one := _instance(row, image.shape)) is not None]

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        deadline = time.monotonic() + self._timeout
        make = HTTPSConnection if self._secure else HTTPConnection
        connection = make(self._host, self._port, timeout=self._timeout)
        data = bytearray()
        try:
            sent = None if body is None else json.dumps(body, allow_nan=False).encode("utf-8")
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request(method, self._path + path, body=sent, headers=headers)
            response = connection.getresponse()
            # In pieces: a server that drips for ever or sends without end must not hold the run.
            while chunk := response.read1(_CHUNK):
                data += chunk
                if len(data) > MAX_REPLY:
                    raise SegmenterFault("reply", f"the server sent more than {MAX_REPLY} bytes")
                if time.monotonic() > deadline:
                    raise TimeoutError
            status = response.status
        except TimeoutError:
            raise SegmenterFault("timeout", f"the server did not answer within {self._timeout:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            raise SegmenterFault("server", f"{type(error).__name__} {error}") from error
        finally:
            connection.close()
        try:
            found = json.loads(bytes(data))
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and isinstance(found.get("error"), dict):
            kind, detail = str(found["error"].get("kind")), str(found["error"].get("detail"))
            if kind == "unsupported":
                raise UnsupportedPrompt(detail[:300])
            raise SegmenterFault("server", f"{kind}: {detail}")
        if status != 200 or not isinstance(found, dict):
            raise SegmenterFault("server", f"status {status} without a readable answer")
        return found


def _png(image: Pixels) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def _instance(row: Any, shape: tuple[int, ...]) -> Instance | None:
    if not isinstance(row, dict) or not isinstance(row.get("rle"), dict):
        raise SegmenterFault("reply", "an instance without its mask")
    size, counts = row["rle"].get("size"), row["rle"].get("counts")
    if not isinstance(counts, str) or not isinstance(size, list) or list(size) != [shape[0], shape[1]]:
        # Checked before anything of that size is made.
        raise SegmenterFault("size", f"a mask of size {str(size)[:60]} for an image of {list(shape[:2])}")
    try:
        mask = decode_mask({"size": size, "counts": counts})
    except (BadInput, ValueError) as error:
        raise SegmenterFault("reply", str(error)) from error
    score = row.get("score")
    if score is not None:
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise SegmenterFault("score", f"the server sent the score {str(score)[:60]}")
        score = float(score)
    return make_instance(mask, score, str(row.get("prompt") or "")[:300])
