"""MetaImage (.mha, .mhd): a text header and raw or zlib-compressed values.

Read here, because C parsers crash on broken headers and open any file that a header names.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MediaFault

_HEAD_BYTES: Final = 65_536
_TYPES: Final = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class MetaHeader:
    """What a header says. size and spacing in the order x, y, z; values: file and place of the first value."""

    size: tuple[int, ...]
    spacing: tuple[float, ...]
    channels: int
    dtype: str
    compressed: bool
    values: Path
    offset: int

    @property
    def bytes(self) -> int:
        """Length of the values, unpacked."""
        return math.prod(self.size) * self.channels * np.dtype(self.dtype).itemsize


def read_header(path: Path) -> MetaHeader:
    """Read the header of a MetaImage file; its values must lie in the same file or in the same folder.

    Raises:
        MediaFault: no such header, values elsewhere, an element type without numbers.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    fields: dict[str, str] = {}
    position = 0
    while "ElementDataFile" not in fields:
        end = head.find(b"\n", position)
        line = head[position:end] if end >= 0 else head[position:]
        key, equals, value = line.decode("ascii", "replace").partition("=")
        if not equals or not key.strip():
            raise MediaFault("volume does not decode")
        fields[key.strip()] = value.strip()
        position = end + 1
        if end < 0:
            break
    try:
        return _header(fields, path, position)
    except MediaFault:
        raise
    except (KeyError, ValueError, OverflowError) as error:
        raise MediaFault("volume does not decode") from error


def _header(fields: dict[str, str], path: Path, position: int) -> MetaHeader:
    size = tuple(int(one) for one in fields["DimSize"].split())
    stated = fields.get("ElementSpacing") or fields.get("ElementSize") or "1 " * len(size)
    spacing = tuple(float(one) for one in stated.split())
    channels = int(fields.get("ElementNumberOfChannels", 1))
    if len(size) != int(fields["NDims"]) or len(spacing) != len(size) or min((*size, channels)) < 1:
        raise ValueError("sizes")
    order = fields.get("BinaryDataByteOrderMSB") or fields.get("ElementByteOrderMSB") or "False"
    kind = (">" if order.lower() in _TRUE else "<") + _TYPES[fields["ElementType"].upper()]
    if fields.get("BinaryData", "True").lower() not in _TRUE:
        raise ValueError("values as text")
    name = fields["ElementDataFile"]
    values, offset = (path, position) if name.upper() == "LOCAL" else (_beside(path, name), 0)
    skipped = int(fields.get("HeaderSize", 0))
    if skipped < -1:
        raise ValueError("header size")
    compressed = fields.get("CompressedData", "False").lower() in _TRUE
    header = MetaHeader(size, spacing, channels, kind, compressed, values, offset + max(skipped, 0))
    if skipped == -1:
        return MetaHeader(size, spacing, channels, kind, compressed, values, values.stat().st_size - header.bytes)
    return header


def _beside(path: Path, name: str) -> Path:
    file = path.parent / name
    if not name or set(name) & set("/\\%:") or file.is_symlink() or not file.is_file():
        raise MediaFault("volume whose values lie in another folder")
    return file


def read_values(header: MetaHeader) -> NDArray[Any]:
    """Return the values of a MetaImage file as (z, y, x), with the channels last where there are several.

    Raises:
        MediaFault: fewer values than the header says, broken compression.
    """
    with header.values.open("rb") as stream:
        stream.seek(max(header.offset, 0))
        data = _inflate(stream.read(), header.bytes) if header.compressed else stream.read(header.bytes)
    if len(data) < header.bytes:
        raise MediaFault("volume holds fewer values than it says")
    values = np.frombuffer(data, dtype=header.dtype, count=header.bytes // np.dtype(header.dtype).itemsize)
    shape = header.size[::-1] + ((header.channels,) if header.channels > 1 else ())
    return values.reshape(shape).astype(values.dtype.newbyteorder("="), copy=False)


def _inflate(data: bytes, length: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, length)
    except zlib.error as error:
        raise MediaFault("volume does not decode") from error
