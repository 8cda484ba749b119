from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.segmenters.made_images import disc, grey_image, png

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import encode_mask
from sonogauge.models.segmenters import Instance, SegmenterFault, UnsupportedPrompt, load_segmenter
from sonogauge.models.segmenters.guard import segment_safely
from sonogauge.models.segmenters.server import SegmenterServer

pytestmark = pytest.mark.part("segmenters")
IMAGE = grey_image(disc((60, 80), 40, 30, 15), inside=30, outside=160, noise=10)


class Foreign:
    """A segmenter of somebody else that returns what the test tells it to."""

    name, version, weights_id, licence, device, endpoint = "foreign", "1", "", "MIT", "cpu", ""
    capabilities: frozenset[str] = frozenset({"text", "box"})

    def __init__(self, result: Any) -> None:
        self.result = result

    def segment(self, *arguments: Any, **named: Any) -> Any:
        if callable(self.result):
            return self.result()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def instance(mask: np.ndarray, score: float | None = 0.5) -> Instance:
    return Instance(mask, score, (0.0, 0.0, 1.0, 1.0), "text: x")


ENDINGS: list[tuple[str, Any]] = [
    ("size", [instance(np.ones((80, 60), dtype=np.bool_))]),
    ("reply", [instance(np.ones((60, 80), dtype=np.uint8))]),
    ("reply", "a mask"),
    ("reply", [None]),
    ("score", [instance(np.ones((60, 80), dtype=np.bool_), float("nan"))]),
    ("failed", RuntimeError("out of luck\nsecond line")),
    ("memory", MemoryError("too big")),
    ("timeout", lambda: time.sleep(5)),
]


@pytest.mark.parametrize(("kind", "result"), ENDINGS)
def test_every_bad_ending_has_a_kind(kind: str, result: Any) -> None:
    with pytest.raises(SegmenterFault) as told:
        segment_safely(Foreign(result), IMAGE, text="x", timeout=0.2 if kind == "timeout" else 60)
    assert told.value.kind == kind
    assert "\n" not in str(told.value)


def test_nothing_and_masks_without_pixels_are_valid_answers() -> None:
    assert segment_safely(Foreign([]), IMAGE, text="x") == []
    empty = instance(np.zeros((60, 80), dtype=np.bool_))
    assert segment_safely(Foreign([empty]), IMAGE, text="x", timeout=60) == []
    with pytest.raises(UnsupportedPrompt):
        segment_safely(Foreign(UnsupportedPrompt("no")), IMAGE, text="x", timeout=60)


@pytest.fixture
def server() -> Iterator[SegmenterServer]:
    with SegmenterServer(load_segmenter("otsu")) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


def test_a_segmenter_behind_http_draws_the_same_pixels(server: SegmenterServer) -> None:
    far, near = load_segmenter(f"http:{server.address}"), load_segmenter("otsu")
    assert (far.name, far.capabilities, far.endpoint) == ("otsu", near.capabilities, server.address)
    for image in (IMAGE, np.repeat(IMAGE[..., None], 3, axis=2)):
        boxes = [(20.5, 10.0, 60.0, 50.0), (30.0, 20.0, 50.0, 40.0)]
        for one, other in zip(far.segment(image, boxes=boxes), near.segment(image, boxes=boxes), strict=True):
            assert np.array_equal(one.mask, other.mask) and one.box_xyxy == other.box_xyxy
    assert far.segment(np.zeros_like(IMAGE), boxes=[(1, 1, 9, 9)]) == []
    with pytest.raises(UnsupportedPrompt):
        far.segment(IMAGE, text="lesion")
    with pytest.raises(UnsupportedPrompt, match="must lie on the object"):
        far.segment(IMAGE, points=[(3, 3)], point_labels=[0])


def post(
    server: SegmenterServer, body: bytes, headers: dict[str, str] | None = None, path: str = "/segment"
) -> tuple[int, Any]:
    connection = HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
    try:
        connection.putrequest("POST", path)
        for key, value in (headers if headers is not None else {"Content-Length": str(len(body))}).items():
            connection.putheader(key, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def picture(data: bytes) -> str:
    return base64.b64encode(data).decode()


HUGE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (100_000).to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
GOOD: dict[str, Any] = {"image": picture(png(IMAGE)), "boxes": [[1, 1, 30, 30]]}
HOSTILE: list[tuple[int, bytes]] = [
    (400, b"not json"),
    (400, b"[" * 100_000),
    (400, b"[1]"),
    (400, json.dumps({**GOOD, "image": 7}).encode()),
    (400, json.dumps({**GOOD, "image": "%%%"}).encode()),
    (400, json.dumps({**GOOD, "image": picture(b"GIF89a" + b"x" * 60)}).encode()),
    (400, json.dumps({**GOOD, "image": picture(png(IMAGE)[:60])}).encode()),
    (413, json.dumps({**GOOD, "image": picture(HUGE)}).encode()),
    (400, json.dumps({**GOOD, "boxes": [[1, 2, 3]]}).encode()),
    (400, json.dumps({**GOOD, "boxes": [[1, 2, 3, 1e300]]}).encode()),
    (400, json.dumps({**GOOD, "boxes": [[1, 2, 3, float("nan")]]}).encode()),
    (400, json.dumps({**GOOD, "boxes": [[1, 2, 3, 4]] * 2000}).encode()),
    (400, json.dumps({**GOOD, "text": "x" * 2000}).encode()),
    (400, json.dumps({**GOOD, "top_k": True}).encode()),
    (400, json.dumps({**GOOD, "score_threshold": "high"}).encode()),
    (400, json.dumps({**GOOD, "point_labels": [2]}).encode()),
    (422, json.dumps({"image": GOOD["image"]}).encode()),
]


def test_the_server_refuses_hostile_requests_and_goes_on(server: SegmenterServer) -> None:
    for status, body in HOSTILE:
        found, reply = post(server, body)
        assert found == status, body[:80]
        assert set(reply) == {"error"}
    assert post(server, b"", {})[0] == 411
    assert post(server, b"", {"Content-Length": "999999999999999"})[0] == 413
    assert post(server, b"", {"Content-Length": "-1"})[0] == 411
    assert post(server, b"{}", path="/etc/passwd")[0] == 404
    assert post(server, json.dumps(GOOD).encode())[0] == 200


class Liar(BaseHTTPRequestHandler):
    reply: bytes = b""
    delay = 0.0

    def do_GET(self) -> None:
        self._send(json.dumps({"protocol": 1, "name": "liar", "capabilities": ["text", "box", 7]}).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(type(self).delay)
        self._send(type(self).reply)

    def _send(self, body: bytes) -> None:
        with suppress(BrokenPipeError):  # the client of the timeout has gone
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def liar() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as made:
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


EMPTY = encode_mask(np.zeros((60, 80), dtype=np.bool_), "", "")["counts"]


def one_mask(**changed: Any) -> bytes:
    return json.dumps({"instances": [{"rle": {"size": [60, 80], "counts": EMPTY}, "score": 0.5, **changed}]}).encode()


def test_nothing_that_a_server_sends_breaks_the_client(liar: str) -> None:
    client = load_segmenter(f"http:{liar}")
    replies = [
        ("server", b"oops"),
        ("server", b"[]"),
        ("reply", b"{}"),
        ("reply", b'{"instances": [7]}'),
        ("size", one_mask(rle={"size": [10**9, 10**9], "counts": "0"})),
        ("size", one_mask(rle={"size": [60, 80], "counts": ["0"]})),
        ("reply", one_mask(rle={"size": [60, 80], "counts": "zzzzzzzz"})),
        ("reply", one_mask(rle={"size": [60, 80], "counts": "ü"})),
        ("score", one_mask(score=True)),
        ("score", one_mask(score=float("nan"))),
        ("server", b'{"error": {"kind": "memory", "detail": "none left"}}'),
    ]
    for kind, reply in replies:
        Liar.reply, Liar.delay = reply, 0.0
        with pytest.raises(SegmenterFault) as told:
            client.segment(IMAGE, text="x")
        assert told.value.kind == kind, reply[:60]
    Liar.reply = one_mask()
    assert client.segment(IMAGE, text="x") == []


def test_a_server_that_hangs_is_a_timeout(liar: str) -> None:
    client = load_segmenter(f"http:{liar}?timeout=0.3")
    Liar.reply, Liar.delay = one_mask(), 2.0
    with pytest.raises(SegmenterFault) as told:
        client.segment(IMAGE, text="x")
    assert told.value.kind == "timeout"


def test_addresses_without_a_segmenter_are_bad_input() -> None:
    for where in ("", "ftp://x", "http://", "http://127.0.0.1:99999", "http://127.0.0.1:1"):
        with pytest.raises(BadInput):
            load_segmenter(f"http:{where}", timeout=5)


@given(st.binary(max_size=200))
def test_a_mask_code_from_a_server_never_escapes_the_size(code: bytes) -> None:
    from sonogauge.models.segmenters.http import _instance

    row = {"rle": {"size": [6, 8], "counts": code.decode("latin-1")}, "score": None}
    try:
        found = _instance(row, (6, 8))
    except SegmenterFault:
        return
    assert found is None or found.mask.shape == (6, 8)
