"""Video clips: frames decoded in one pass forward, numbered from 0 in the order of display."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.extra import need
from sonogauge.sources.readers.stacks import Stack

MAX_FRAMES: Final = 200_000
_KEPT: Final = 8  # frames kept behind the last one, for readers that ask out of order


def open_video(path: Path) -> Stack:
    """Open a clip as a stack of its frames, RGB of (rows, columns, 3).

    Raises:
        MediaFault: unreadable, no picture in it, too large.
        BadInput: PyAV is missing.
    """
    frames, rate = _facts(path, path.stat().st_mtime_ns)
    meta = {"frame_rate": f"{rate:g}"} if rate else {}
    return Stack(frames, partial(_frame, path), meta=meta)


def _open(path: Path) -> tuple[Any, Any]:
    av = need("av", "video")
    try:
        container = av.open(str(path), mode="r")
    except Exception as error:  # PyAV's errors are of many kinds
        raise MediaFault("video does not open") from error
    if not container.streams.video:
        container.close()
        raise MediaFault("no picture in the video")
    stream = container.streams.video[0]
    if (stream.width or 0) * (stream.height or 0) > MAX_PIXELS:
        container.close()
        raise MediaFault("image has too many pixels")
    stream.thread_type = "NONE"
    return container, stream


@lru_cache(maxsize=256)
def _facts(path: Path, _changed: int) -> tuple[int, float]:
    container, stream = _open(path)
    with container:
        rate = float(stream.average_rate or 0)
        # Containers state a number that need not be true; packets are counted, which decodes nothing.
        try:
            frames = sum(1 for packet in container.demux(stream) if packet.size)
        except Exception as error:  # see _open
            raise MediaFault("video does not decode") from error
    if not 0 < frames <= MAX_FRAMES:
        raise MediaFault("video of no or too many frames")
    return frames, rate


class _Decoder:
    """Frames of one clip; going forward is cheap, going back starts again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._kept: dict[int, NDArray[Any]] = {}
        self._position = 0
        self._frames: Iterator[NDArray[Any]] | None = None

    def _decode(self) -> Iterator[NDArray[Any]]:
        container, stream = _open(self._path)
        with container:
            try:
                for frame in container.decode(stream):
                    yield np.asarray(frame.to_ndarray(format="rgb24"))
            except Exception as error:  # see _open
                raise MediaFault("video does not decode") from error

    def frame(self, number: int) -> NDArray[Any]:
        with self._lock:
            if number in self._kept:
                return self._kept[number]
            if self._frames is None or number < self._position:
                self._frames, self._position, self._kept = self._decode(), 0, {}
            for pixels in self._frames:
                self._kept[self._position] = pixels
                self._kept.pop(self._position - _KEPT, None)
                self._position += 1
                if self._position > number:
                    return pixels
            self._frames = None
            raise MediaFault("video has no such frame")


@lru_cache(maxsize=4)
def _decoder(path: Path, _changed: int) -> _Decoder:
    return _Decoder(path)


def _frame(path: Path, number: int) -> NDArray[Any]:
    return _decoder(path, path.stat().st_mtime_ns).frame(number)
