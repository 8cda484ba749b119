"""Drawing: the images of questions about a box, each a case of its own beside the one it was made from."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from sonogauge.build.fingerprint import Pixels, decode
from sonogauge.build.recipe import BoxStyle
from sonogauge.build.stages.questions import Drawing
from sonogauge.cases.render import draw_box
from sonogauge.tables import CASES, from_facts, to_facts

VERSION: Final = 1
DRAWN: Final = "a box was drawn on the image"
# What a drawn image keeps of its parent: where it comes from and what it is, none of the annotations.
_KEPT: Final = (
    *("width", "height", "spacing", "patient", "group", "source", "licence", "redistributable", "private"),
    *("provenance", "reference_standard", "device", "view", "anatomy", "demographics", "split", "frame"),
)


@dataclass(frozen=True)
class Draw:
    """The stage; jobs: parent case id -> its drawings with the style of each."""

    jobs: Mapping[str, Sequence[tuple[Drawing, BoxStyle]]]

    schema = CASES
    columns = tuple(CASES.names)

    @property
    def key(self) -> Mapping[str, Any]:
        """Version and jobs."""
        jobs = sorted(
            [one.case_id, dict(one.box), style.model_dump(mode="json")]
            for jobs in self.jobs.values()
            for one, style in jobs
        )
        return {"stage": "draw", "version": VERSION, "jobs": jobs}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the drawn cases of a batch, sorted by their id; a row without jobs gives none."""
        wanted = [case_id in self.jobs for case_id in batch.column("case_id").to_pylist()]
        rows = batch.filter(pa.array(wanted, type=pa.bool_())).to_pylist()
        drawn = [_draw(row, one, style) for row in rows for one, style in self.jobs[row["case_id"]]]
        return pa.RecordBatch.from_pylist(drawn, schema=CASES)


def _draw(row: Mapping[str, Any], job: Drawing, style: BoxStyle) -> dict[str, Any]:
    pixels = decode(row["image"]["bytes"])
    assert pixels is not None  # the quality stage has read it
    picture = draw_box(pixels, job.box, colour=style.colour, line=style.line, side=style.side, pad=style.pad)
    data = _png(picture)
    digest = hashlib.sha256(f"RGB:{row['width']}x{row['height']}:".encode())
    digest.update(picture.tobytes())
    return {
        **{name: row[name] for name in _KEPT},
        "case_id": job.case_id,
        "image": {"bytes": data, "path": f"{job.case_id.replace('/', '_')}.png"},
        "media_type": "image/png",
        "sha256": hashlib.sha256(data).hexdigest(),
        "pixel_hash": digest.hexdigest(),
        "frames": 1,
        "labels": [],
        "masks": [],
        "boxes": [dict(job.box)],
        "points": [],
        "measurements": [],
        "texts": [],
        "meta": to_facts({**from_facts(row["meta"]), "drawn_on": job.parent}),
        "known_issues": sorted({*(row["known_issues"] or ()), DRAWN}),
    }


def _png(picture: Pixels) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "PNG", compress_level=4)
    return stream.getvalue()
