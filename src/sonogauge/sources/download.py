"""Open sources over HTTP: resumed where a download broke off, hashes recorded, archives unpacked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from sonogauge._errors import BadInput
from sonogauge.folders import write_bytes
from sonogauge.sources.archives import is_archive, unpack
from sonogauge.sources.layout import SourceSpec
from sonogauge.sources.readers.tree import refuse_name

RECORD: Final = "download.json"
VERIFIED: Final = "verified"
UNVERIFIED: Final = "unverified: hash recorded at the first download"
_PART: Final = ".part"
_CHUNK: Final = 1 << 20
_TIMEOUT: Final = 60
# What arrives of a piece before a connection breaks is lost, so pieces are small.
_PIECE: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded file. state: verified against a hash of the catalogue, or unverified."""

    name: str
    url: str
    sha256: str
    bytes: int
    state: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def get_source(spec: SourceSpec, out: Path | str) -> list[Fetched]:
    """Download the files of an open source into a folder and unpack them.

    A second call checks what is there against the recorded hashes and downloads only what is missing.

    Raises:
        BadInput: not an open source, no answer, a hash that differs, a hostile archive.
    """
    if not spec.obtain.files:
        page = f" ({spec.obtain.page})" if spec.obtain.page else ""
        raise BadInput(f"'{spec.name}' cannot be downloaded by a program", fix=f"{spec.obtain.how}{page}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder)
    found: list[Fetched] = []
    for entry in spec.obtain.files:
        url, known = entry["url"], entry.get("sha256")
        name = entry.get("name") or unquote(urlsplit(url).path.rpartition("/")[2])
        refuse_name(name)
        if not name or name in (".", "..") or "/" in name or "\\" in name:
            raise BadInput("address without a usable file name", field=url)
        before = record.get(name)
        path = _fetch(url, name, folder, known or (before.sha256 if before else None))
        state = VERIFIED if known else UNVERIFIED
        fresh = Fetched(name, url, _sha256(path), path.stat().st_size, state)
        if is_archive(path) and (before is None or before.sha256 != fresh.sha256):
            unpack(path, folder / entry.get("folder", "."))
        record[name] = fresh
        _write_record(folder, spec, record)
        found.append(fresh)
    return found


def _fetch(url: str, name: str, folder: Path, sha256: str | None) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # its advice is for programmers; the command says what was fetched
    try:
        path = pooch.retrieve(
            url,
            known_hash=None if sha256 is None else f"sha256:{sha256}",
            fname=name,
            path=folder,
            downloader=_resuming(folder / f".{name}{_PART}"),
        )
    except ValueError as error:
        raise BadInput(
            "the hash of the download differs", file=name, fix="remove it and look at the source's page"
        ) from error
    except (requests.RequestException, OSError) as error:
        raise BadInput(f"no download ({error})", file=name, fix="run the command again, it goes on") from error
    Path(path).chmod(0o644)  # pooch's temporary files are for their maker alone
    return Path(path)


def _resuming(part: Path) -> Callable[[str, Any, Any], None]:
    """Return a downloader for pooch that keeps what arrived in `part` and asks only for the rest."""

    def download(url: str, output: Any, _pooch: Any, check_only: bool = False) -> None:
        import requests

        start = part.stat().st_size if part.exists() else 0
        tag = part.with_name(part.name + ".tag")
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if tag.exists():
                # A file that changed in between is sent whole.
                headers["If-Range"] = tag.read_text("ascii")
        with requests.get(url, stream=True, timeout=_TIMEOUT, headers=headers) as answer:
            if answer.status_code != requests.codes.range_not_satisfiable:
                answer.raise_for_status()
                going_on = answer.status_code == requests.codes.partial_content
                if validator := answer.headers.get("ETag") or answer.headers.get("Last-Modified"):
                    tag.write_text(validator, "ascii")
                whole = answer.headers.get("Content-Length")
                expected = None if whole is None else int(whole) + (start if going_on else 0)
                with part.open("ab" if going_on else "wb") as stream:
                    for chunk in answer.iter_content(_PIECE):
                        stream.write(chunk)
                if expected is not None and part.stat().st_size != expected:
                    raise OSError(f"{part.stat().st_size} of {expected} bytes")
        with part.open("rb") as stream:
            _pour(stream, output)
        part.unlink()
        tag.unlink(missing_ok=True)

    return download


def _pour(stream: Any, output: Any) -> None:
    if hasattr(output, "write"):
        while chunk := stream.read(_CHUNK):
            output.write(chunk)
        return
    with Path(output).open("wb") as target:
        while chunk := stream.read(_CHUNK):
            target.write(chunk)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_record(folder: Path) -> dict[str, Fetched]:
    file = folder / RECORD
    if not file.exists():
        return {}
    try:
        entries = json.loads(file.read_text("utf-8"))["files"]
        return {entry["name"]: Fetched(**entry) for entry in entries}
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput("broken record of downloads", file=file, fix="remove it") from error


def _write_record(folder: Path, spec: SourceSpec, record: dict[str, Fetched]) -> None:
    value = {
        "source": spec.name,
        "licence": spec.licence,
        "files": [record[name].as_dict() for name in sorted(record)],
    }
    write_bytes(folder / RECORD, json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8") + b"\n")
