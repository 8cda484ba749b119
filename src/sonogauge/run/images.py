"""The images of a run: read one at a time from the cases table, sent as they are unless a declared policy says else."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.models.base import EncodedImage

if TYPE_CHECKING:
    from PIL.Image import Image

_BATCH: Final = 8  # rows decoded at once
_GREY: Final = 128
_CACHE: Final = 4 * 1024 * 1024  # bytes of recently read batches
_FACTS: Final = ["case_id", "media_type", "sha256", "width", "height", "source", "licence", "private"]


class ImageFault(ValueError):
    """An image that cannot be sent; a fault of one item, never of the run."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What the run needs of a case besides its bytes; `row` is its row in the table."""

    row: int
    media_type: str
    sha256: str
    width: int
    height: int
    source: str
    licence: str
    private: bool


class CaseImages:
    """Random access to the media of a benchmark, in bounded memory whatever the size of its row groups.

    Safe to call from several threads. Cheapest when asked in the order of the table.
    """

    def __init__(self, bench: Folder) -> None:
        self._folder = bench.path
        self.facts: dict[str, CaseFacts] = {}
        for row, case in enumerate(bench.rows("cases", _FACTS)):
            self.facts[case["case_id"]] = CaseFacts(
                row,
                case["media_type"] or "",
                case["sha256"] or "",
                case["width"] or 0,
                case["height"] or 0,
                case["source"] or "",
                case["licence"] or "",
                bool(case["private"]),
            )
        # A buffer, because without one pyarrow loads a whole column chunk to read its first page.
        self._file = pq.ParquetFile(bench.file("cases"), buffer_size=1 << 20)
        counts = [self._file.metadata.row_group(group).num_rows for group in range(self._file.metadata.num_row_groups)]
        self._starts = [sum(counts[:group]) for group in range(len(counts))]
        self._lock = Lock()
        self._stream: Iterator[pa.RecordBatch] = iter(())
        self._at = (-1, 0)  # row group and row of the stream
        self._batches: OrderedDict[int, list[Any]] = OrderedDict()  # first row -> images
        self._sizes: dict[int, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, case_id: str) -> bytes:
        """Return the media bytes of a case.

        Raises:
            ImageFault: no such case, no media, a file that is gone.
        """
        facts = self.facts.get(case_id)
        if facts is None:
            raise ImageFault(f"no case '{case_id}' in the benchmark")
        with self._lock:
            image = self._image(facts.row)
        if image["bytes"] is not None:
            return bytes(image["bytes"])
        if not image["path"]:
            raise ImageFault(f"case '{case_id}' holds no image")
        file = (self._folder / str(image["path"])).resolve()
        if not file.is_relative_to(self._folder.resolve()):
            # A benchmark made elsewhere must not have other files of this machine sent out.
            raise ImageFault(f"the image of case '{case_id}' lies outside the benchmark folder")
        try:
            return file.read_bytes()
        except OSError as error:
            raise ImageFault(f"cannot read the image of case '{case_id}' ({error.strerror})") from error

    def _image(self, row: int) -> Mapping[str, Any]:
        group = bisect_right(self._starts, row) - 1
        offset = row - self._starts[group]
        first = row - offset % _BATCH
        if first not in self._batches:
            self._advance(group, offset)
        self._batches.move_to_end(first)
        image: Mapping[str, Any] = self._batches[first][row - first]
        return image

    def _advance(self, group: int, offset: int) -> None:
        if self._at[0] != group or self._at[1] > offset:
            self._stream = self._file.iter_batches(_BATCH, row_groups=[group], columns=["image"], use_threads=False)
            self._at = (group, 0)
        while self._at[1] <= offset:
            column = next(self._stream).column(0)
            start = self._at[1]
            self._at = (group, start + len(column))
            if start + len(column) > offset:
                # Copies, because a slice of an Arrow array keeps the whole decoded row group alive.
                self._batches[self._starts[group] + start] = column.to_pylist()
                self._sizes[self._starts[group] + start] = column.nbytes
        while sum(self._sizes.values()) > _CACHE and len(self._batches) > 1:
            del self._sizes[self._batches.popitem(last=False)[0]]


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """How images are encoded before they are sent.

    `original` sends the bytes of the file. `png` and `jpeg:QUALITY` encode anew, `max:PIXELS` scales an image down
    whose longer side is above (as PNG unless a format is named) and leaves the others as they are. Rules may be joined
    by commas: `max:1024,jpeg:90`.
    """

    name: str = "original"
    max_side: int | None = None
    kind: str | None = None
    quality: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a policy as the user wrote it; raise BadInput if there is none like it.

        >>> ImagePolicy.parse("max:1024,jpeg:90")
        ImagePolicy(name='max:1024,jpeg:90', max_side=1024, kind='jpeg', quality=90)
        """
        max_side = kind = quality = None
        for part in text.split(",") if text != "original" else ():
            word, _, value = part.partition(":")
            number = int(value) if value.isascii() and value.isdigit() else None
            if word == "png" and not value and kind is None:
                kind = "png"
            elif word == "jpeg" and number is not None and 1 <= number <= 100 and kind is None:
                kind, quality = "jpeg", number
            elif word == "max" and number is not None and number >= 1 and max_side is None:
                max_side = number
            else:
                raise BadInput(f"no image policy '{part}'", fix="use original, png, jpeg:QUALITY (1-100) or max:PIXELS")
        return cls(text, max_side, kind, quality)

    def encode(self, data: bytes, facts: CaseFacts, frame: int | None = None) -> EncodedImage:
        """Return an image as it is to be sent; a frame of a clip is always encoded anew, as PNG by default.

        Raises:
            ImageFault: the image does not decode.
        """
        fits = self.max_side is None or max(facts.width, facts.height) <= self.max_side
        if self.kind is None and frame is None and fits and facts.width and facts.height:
            digest = facts.sha256 or hashlib.sha256(data).hexdigest()
            return EncodedImage(data, facts.media_type or "image/png", facts.width, facts.height, digest)
        return self.encode_pixels(open_image(data, frame), self.name if frame is None else f"{self.name} frame {frame}")

    def encode_pixels(self, image: Image, name: str) -> EncodedImage:
        """Encode decoded pixels, scaled down where the policy says so."""
        if self.max_side is not None and max(image.size) > self.max_side:
            from PIL.Image import Resampling

            scale = self.max_side / max(image.size)
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
            image = image.resize(size, Resampling.LANCZOS)
        stream = io.BytesIO()
        if self.kind == "jpeg":
            image.convert("L" if image.mode in ("L", "1", "I;16", "LA") else "RGB").save(
                stream, "JPEG", quality=self.quality
            )
        else:
            image.save(stream, "PNG")
        data = stream.getvalue()
        kind = "image/jpeg" if self.kind == "jpeg" else "image/png"
        return EncodedImage(data, kind, image.width, image.height, hashlib.sha256(data).hexdigest(), name)


def open_image(data: bytes, frame: int | None = None) -> Image:
    """Decode an image, or one frame of a multi-frame image, to 8-bit grey or RGB.

    Raises:
        ImageFault: it does not decode, or has no such frame.
    """
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
            if frame is not None:
                image.seek(frame)
            return image.convert("L" if image.mode in ("1", "L") else "RGB")
    except EOFError as error:
        raise ImageFault(f"the image has no frame {frame}") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ImageFault(f"the image does not decode ({error})") from error


def blank(width: int, height: int) -> EncodedImage:
    """Return a mid-grey PNG of that size, which tells no more than that there is an image."""
    from PIL import Image

    return ImagePolicy(kind="png").encode_pixels(Image.new("L", (max(1, width), max(1, height)), _GREY), "blank")
