"""DICOM ultrasound: every frame as RGB or grey, spacing from the calibrated regions, no name of a person kept."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.extra import need
from sonogauge.sources.readers.stacks import Stack

MAX_FRAMES: Final = 20_000
# Facts that identify nobody.
_FACTS: Final = ("Manufacturer", "ManufacturerModelName", "BodyPartExamined", "PhotometricInterpretation", "Modality")
_PERSONAL: Final = ("PatientName", "PatientBirthDate", "PatientAddress", "OtherPatientIDs", "PatientTelephoneNumbers")
# What anonymisers write where an id was; it is the same for many patients.
_NO_ID: Final = frozenset({"", "anonymous", "anon", "anonymized", "anonymised", "unknown", "none", "0", "00000000"})
_CENTIMETRE: Final = 3  # Physical Units X/Y Direction, PS3.3 C.8.5.5.1.5
_TISSUE_2D: Final = 1  # Region Spatial Format, PS3.3 C.8.5.5.1.1


class NoImage(MediaFault):
    """A DICOM file that is meant to hold no image: a directory, a report, a plan."""


def is_dicom(path: Path) -> bool:
    """Whether a file has the DICOM mark after its preamble."""
    with path.open("rb") as stream:
        return stream.read(132)[128:] == b"DICM"


def open_dicom(path: Path) -> Stack:
    """Open a DICOM file as a stack of its frames.

    Its meta holds `patient_key` (a pseudonym made from the patient id), device facts and `ultrasound_regions`, a JSON
    list of {x0, y0, x1, y1, x_mm, y_mm, format, type}. The spacing is that of the largest calibrated 2-D region.

    Raises:
        NoImage: a DICOM file of another kind.
        MediaFault: no DICOM file, too large.
        BadInput: pydicom is missing.
    """
    header = _header(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydicom parses values when they are asked for, and warns of odd ones
            return _stack(path, header)
    except MediaFault:
        raise
    except Exception as error:  # or raises nearly anything
        raise MediaFault("not a readable DICOM file") from error


def _stack(path: Path, header: Any) -> Stack:
    rows, columns = int(header.get("Rows", 0) or 0), int(header.get("Columns", 0) or 0)
    frames = int(header.get("NumberOfFrames", 1) or 1)
    if rows < 1 or columns < 1:
        raise NoImage("no image in the DICOM file")
    if rows * columns > MAX_PIXELS or frames > MAX_FRAMES:
        raise MediaFault("image has too many pixels")
    regions = _regions(header)
    spacing, notes = _spacing(header, regions)
    if any(_says_something(str(header.get(name, "") or "")) for name in _PERSONAL):
        notes.append("the DICOM file names a person; its tags were dropped, burned-in text was not looked for")
    if str(header.get("BurnedInAnnotation", "")).upper() == "YES":
        notes.append("burned-in annotation declared")
    return Stack(
        max(frames, 1), lambda number: _frame(path, header, number), spacing, _meta(header, regions), tuple(notes)
    )


def _header(path: Path) -> Any:
    pydicom = need("pydicom", "DICOM files")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pydicom.dcmread(path, stop_before_pixels=True, force=not is_dicom(path))
    except Exception as error:  # pydicom raises nearly anything on hostile bytes
        raise MediaFault("not a readable DICOM file") from error


def _meta(header: Any, regions: list[dict[str, Any]]) -> dict[str, str]:
    meta = {name: str(header.get(name, "") or "").strip() for name in _FACTS}
    syntax = getattr(getattr(header, "file_meta", None), "TransferSyntaxUID", None)
    if syntax is not None:
        meta["TransferSyntax"] = str(syntax.name)
    patient = str(header.get("PatientID", "") or "").strip()
    if _says_something(patient):
        meta["patient_key"] = hashlib.sha256(f"patient:{patient}".encode()).hexdigest()[:16]
    if regions:
        meta["ultrasound_regions"] = json.dumps(regions, sort_keys=True)
    return {name: value for name, value in meta.items() if value}


def _says_something(text: str) -> bool:
    return text.strip().casefold() not in _NO_ID and any(one.isalnum() for one in text)


def _regions(header: Any) -> list[dict[str, Any]]:
    found = []
    for one in header.get("SequenceOfUltrasoundRegions", None) or ():
        region: dict[str, Any] = {
            "x0": int(one.get("RegionLocationMinX0", 0)),
            "y0": int(one.get("RegionLocationMinY0", 0)),
            "x1": int(one.get("RegionLocationMaxX1", 0)),
            "y1": int(one.get("RegionLocationMaxY1", 0)),
            "format": int(one.get("RegionSpatialFormat", 0)),
            "type": int(one.get("RegionDataType", 0)),
        }
        for axis in "XY":
            units = int(one.get(f"PhysicalUnits{axis}Direction", 0) or 0)
            delta = abs(float(one.get(f"PhysicalDelta{axis}", 0) or 0))
            region[f"{axis.lower()}_mm"] = 10 * delta if units == _CENTIMETRE and delta > 0 else None
        found.append(region)
    return found


def _spacing(header: Any, regions: list[dict[str, Any]]) -> tuple[tuple[float, float] | None, list[str]]:
    usable = [one for one in regions if one["format"] == _TISSUE_2D and one["x_mm"] and one["y_mm"]]
    if usable:
        largest = max(usable, key=lambda one: (one["x1"] - one["x0"]) * (one["y1"] - one["y0"]))
        pair = (float(largest["x_mm"]), float(largest["y_mm"]))
        if largest["x1"] > int(header.Columns) and largest["y1"] > int(header.Rows):
            # A picture that was only cropped keeps its pixels; one that was made smaller does not, and nothing tells.
            return None, ["its region is larger than the picture both ways: made smaller afterwards? no spacing"]
        differ = any(not np.allclose((one["x_mm"], one["y_mm"]), pair, rtol=1e-3) for one in usable)
        return pair, ["regions of different spacing: that of the largest stands"] if differ else []
    stated = header.get("PixelSpacing", None)
    if stated is not None and len(stated) == 2 and min(float(one) for one in stated) > 0:
        # Row spacing, the distance in y, comes first.
        return (float(stated[1]), float(stated[0])), []
    return None, []


def _frame(path: Path, header: Any, number: int) -> NDArray[Any]:
    pixels_of = need("pydicom.pixels", "DICOM files")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _shown(pixels_of.pixel_array(path, index=number), header, pixels_of)
    except Exception as error:  # decoders raise nearly anything on hostile bytes
        raise MediaFault(f"DICOM pixels do not decode ({type(error).__name__})") from error


def _shown(pixels: NDArray[Any], header: Any, pixels_of: Any) -> NDArray[Any]:
    kind = str(header.get("PhotometricInterpretation", ""))
    if kind == "PALETTE COLOR":
        coloured = pixels_of.apply_color_lut(pixels, header)
        # Tables of 16 bits hold 8-bit values in their upper byte; some files, and big-endian ones as pydicom reads
        # them, have them in the lower one.
        deep = coloured.dtype == np.uint16 and coloured.max() > 255
        return np.asarray(coloured >> 8 if deep else coloured, dtype=np.uint8)[..., :3]
    if pixels.ndim == 2:
        return _grey(pixels, header, pixels_of, inverted=kind == "MONOCHROME1")
    if pixels.dtype == np.uint16:
        return np.asarray(pixels >> max(0, int(header.get("BitsStored", 16)) - 8), dtype=np.uint8)
    return np.asarray(pixels)


def _grey(pixels: NDArray[Any], header: Any, pixels_of: Any, *, inverted: bool) -> NDArray[Any]:
    shown = pixels_of.apply_voi_lut(pixels_of.apply_modality_lut(pixels, header), header)
    if shown.dtype != np.uint8:
        low, high = float(shown.min()), float(shown.max())
        if low < 0 or high > 255:
            shown = (shown - low) / max(high - low, 1e-12) * 255
        shown = np.rint(shown).astype(np.uint8)
    return np.asarray(255 - shown if inverted else shown, dtype=np.uint8)
