"""Downloads from a server that breaks off, changes its files and lies."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sonogauge._errors import BadInput
from sonogauge.sources.download import RECORD, UNVERIFIED, VERIFIED, get_source
from sonogauge.sources.layout import SourceSpec, make_spec

pytestmark = [pytest.mark.lookalike, pytest.mark.part("download")]


class Server:
    """Serves `files`; breaks off after `cut` bytes of an answer; keeps the ranges that were asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: int | None = None
        self.ranges: list[str | None] = []
        self.takes_ranges = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                data = outer.files.get(self.path.lstrip("/"))
                if data is None:
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range")
                outer.ranges.append(wanted)
                tag = '"' + hashlib.md5(data).hexdigest() + '"'
                fresh = self.headers.get("If-Range") in (None, tag)
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and fresh and outer.takes_ranges else 0
                if start >= len(data) and start:
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                self.wfile.write(data[start:][: outer.cut])

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def _spec(*files: dict[str, str]) -> SourceSpec:
    about = {"name": "made", "title": "Made", "organ": "none", "licence": "CC0"}
    return make_spec({**about, "obtain": {"how": "get", "files": files}, "layouts": [{"find": "*.png"}]}, "made.yaml")


def _packed(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


DATA = bytes(range(256)) * 4000


def test_a_first_download_records_its_hash_as_unverified(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"] = DATA
    (fetched,) = get_source(_spec({"url": f"{server.url}/a.bin"}), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert fetched.sha256 == hashlib.sha256(DATA).hexdigest() and fetched.state == UNVERIFIED
    record = json.loads((tmp_path / RECORD).read_text())
    assert record["files"] == [fetched.as_dict()] and record["licence"] == "CC0"


def test_a_download_prints_nothing_of_its_own(
    tmp_path: Path, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    server.files["a.bin"] = DATA
    get_source(_spec({"url": f"{server.url}/a.bin"}), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_known_hash_verifies_or_refuses(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"] = DATA
    good = {"url": f"{server.url}/a.bin", "sha256": hashlib.sha256(DATA).hexdigest()}
    (fetched,) = get_source(_spec(good), tmp_path / "good")
    assert fetched.state == VERIFIED
    with pytest.raises(BadInput, match=r"a\.bin: the hash of the download differs"):
        get_source(_spec({**good, "sha256": "0" * 64}), tmp_path / "bad")
    assert not (tmp_path / "bad" / "a.bin").exists()


def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"], server.cut = DATA, 300_000
    spec = _spec({"url": f"{server.url}/a.bin"})
    for _ in range(4):
        with pytest.raises(BadInput, match=r"no download .*; run the command again, it goes on"):
            get_source(spec, tmp_path)
        assert not (tmp_path / "a.bin").exists()
        server.cut = server.cut - 65_000
    server.cut = None
    get_source(spec, tmp_path)
    starts = [int(one.removeprefix("bytes=").rstrip("-")) for one in server.ranges[1:] if one is not None]
    expected = [300_000, 535_000, 705_000, 810_000]
    assert len(server.ranges) == 5 and all(0 <= e - s < 80_000 for e, s in zip(expected, starts, strict=True))
    assert starts == sorted(set(starts))
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.bin", RECORD]


def test_a_file_that_changed_in_between_is_taken_whole(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"], server.cut = DATA, 300_000
    spec = _spec({"url": f"{server.url}/a.bin"})
    with pytest.raises(BadInput):
        get_source(spec, tmp_path)
    server.files["a.bin"], server.cut = DATA[::-1], None
    get_source(spec, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == DATA[::-1]


def test_a_server_without_ranges_sends_all_of_it_again(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"], server.cut, server.takes_ranges = DATA, 300_000, False
    spec = _spec({"url": f"{server.url}/a.bin"})
    with pytest.raises(BadInput):
        get_source(spec, tmp_path)
    server.cut = None
    get_source(spec, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_second_call_downloads_nothing_and_a_spoiled_file_again(tmp_path: Path, server: Server) -> None:
    server.files["a.bin"] = DATA
    spec = _spec({"url": f"{server.url}/a.bin"})
    first = get_source(spec, tmp_path)
    assert get_source(spec, tmp_path) == first and len(server.ranges) == 1
    (tmp_path / "a.bin").write_bytes(b"spoiled")
    assert get_source(spec, tmp_path) == first and len(server.ranges) == 2
    server.files["a.bin"] = DATA[1:]
    (tmp_path / "a.bin").write_bytes(b"spoiled")
    with pytest.raises(BadInput, match="the hash of the download differs"):
        get_source(spec, tmp_path)


def test_archives_are_unpacked_and_hostile_ones_refused(tmp_path: Path, server: Server) -> None:
    server.files["set.zip"] = _packed(**{"x/1.png": b"1", "x/2.png": b"2"})
    spec = _spec({"url": f"{server.url}/set.zip", "folder": "raw"})
    get_source(spec, tmp_path / "good")
    assert (tmp_path / "good/raw/x/2.png").read_bytes() == b"2"
    server.files["set.zip"] = _packed(**{"../evil.png": b"1"})
    with pytest.raises(BadInput, match="would leave the folder"):
        get_source(spec, tmp_path / "bad")
    assert not list(tmp_path.rglob("evil.png"))


def test_files_that_are_not_there_and_sources_that_are_closed(tmp_path: Path, server: Server) -> None:
    with pytest.raises(BadInput, match="404"):
        get_source(_spec({"url": f"{server.url}/none.bin"}), tmp_path)
    with pytest.raises(BadInput, match="cannot be downloaded by a program; get"):
        get_source(_spec(), tmp_path)
    for url in (f"{server.url}/", f"{server.url}/..", f"{server.url}/%2e%2e%2fx", f"{server.url}/a%0Ab"):
        with pytest.raises(BadInput, match="file name"):
            get_source(_spec({"url": url}), tmp_path)
