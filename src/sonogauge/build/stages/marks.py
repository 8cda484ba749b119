"""What does not belong into a picture: names in its tags, writing burned into it, callipers drawn on it."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.build.fingerprint import Pixels, to_grey

# EXIF and TIFF tags whose text may name a person, a place or the very device.
_TAGS: Final = {
    0x010E: "ImageDescription",
    0x013B: "Artist",
    0x013C: "HostComputer",
    0x8298: "Copyright",
    0x8825: "GPSInfo",
    0x9286: "UserComment",
    0x9C9B: "XPTitle",
    0x9C9C: "XPComment",
    0x9C9D: "XPAuthor",
    0x9C9E: "XPKeywords",
    0x9C9F: "XPSubject",
    0xA430: "CameraOwnerName",
    0xA431: "BodySerialNumber",
}
_EXIF_FOLDER: Final = 0x8769
# Text chunks of PNG and the like that say nothing of people.
_HARMLESS: Final = frozenset({"software", "raw profile type icc", "icc_profile", "gamma", "srgb"})
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_TAGS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf"})  # the chunks that hold any
# Attributes of the basic confidentiality profile of DICOM (PS3.15, table E.1-1) that occur with ultrasound.
DICOM_NAMES: Final = (
    *("PatientName", "PatientID", "PatientBirthDate", "PatientBirthTime", "PatientAddress", "PatientTelephoneNumbers"),
    *("PatientMotherBirthName", "OtherPatientIDs", "OtherPatientNames", "MedicalRecordLocator", "AccessionNumber"),
    *("InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "StationName", "DeviceSerialNumber"),
    *("ReferringPhysicianName", "PerformingPhysicianName", "NameOfPhysiciansReadingStudy", "OperatorsName"),
    *("RequestingPhysician", "PhysiciansOfRecord", "PatientComments", "ImageComments", "StudyID"),
)
_FOLDED: Final = {name.casefold(): name for name in DICOM_NAMES}

_DARK: Final = 8
_INK: Final = 200
_GREY_INK: Final = 110
_ALIKE: Final = 8  # grey values
_LETTERS_ON_SCAN: Final = 3
_LETTERS_ON_GROUND: Final = 5


def tags_of(data: bytes, meta: Iterable[Mapping[str, str]] | None = None) -> list[str]:
    """Return the names of the tags of an image file, and of the facts read from its header, that may identify someone.

    A DICOM file is read without its pixels where `pydicom` is there, else its tags count as unknown.
    """
    found = {
        _FOLDED[name]
        for row in meta or ()
        if (name := row["name"].replace("_", "").casefold()) in _FOLDED and row["value"]
    }
    if data[128:132] == b"DICM":
        return sorted(found | _dicom_tags(data))
    # Pillow decodes a whole PNG to look for tags behind its pixels.
    if data.startswith(_PNG) and _PNG_TAGS.isdisjoint(_png_chunks(data)):
        return sorted(found)
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            exif = image.getexif()
            values = {**exif, **exif.get_ifd(_EXIF_FOLDER)}
            found |= {name for tag, name in _TAGS.items() if _says_something(values.get(tag))}
            found |= {
                str(key)
                for key, value in image.info.items()
                if isinstance(value, str)
                and _says_something(value)
                and str(key).casefold() not in _HARMLESS
                and "date" not in str(key).casefold()
            }
            if _says_something(image.info.get("comment")):
                found.add("comment")
    except Exception:  # an unreadable image is the concern of another check
        return sorted(found)
    return sorted(found)


def _png_chunks(data: bytes) -> Iterator[bytes]:
    """Yield the names of the chunks of a PNG file. Source: PNG specification, section 5.3, "Chunk layout"."""
    at = len(_PNG)
    while at + 8 <= len(data):
        yield data[at + 4 : at + 8]
        at += 12 + int.from_bytes(data[at : at + 4], "big")  # length, name and checksum are four bytes each


def _says_something(value: object) -> bool:
    if isinstance(value, bytes):
        # A user comment starts with the name of its character set.
        value = value.removeprefix(b"ASCII\x00\x00\x00").removeprefix(b"UNICODE\x00").strip(b"\x00 ")
    return bool(value.strip() if isinstance(value, str) else value)


def _dicom_tags(data: bytes) -> set[str]:
    try:
        from pydicom import dcmread
    except ModuleNotFoundError:
        return {"DICOM header (not checked: install sonogauge[medical])"}
    try:
        header = dcmread(io.BytesIO(data), stop_before_pixels=True)
    except Exception:  # a broken header cannot be cleared of names
        return {"DICOM header (broken)"}
    return {name for name in DICOM_NAMES if str(header.get(name, "")).strip()}


def has_text(pixels: Pixels) -> bool:
    """Tell whether a row of letters stands in the picture, bright on the scan or grey on the dark ground around it.

    Letters: parts of one height and one brightness whose feet are level, close to one another; three in the scan, five
    on the ground, where ticks and scales are many.
    """
    grey = to_grey(pixels)
    if _has_line(_parts(grey >= _INK, grey), _LETTERS_ON_SCAN):
        return True
    return _has_line(_parts(_on_ground(grey), grey), _LETTERS_ON_GROUND)


def _on_ground(grey: Pixels) -> NDArray[np.bool_]:
    import cv2

    ground = grey <= _DARK
    if ground.mean() < 0.02:
        return np.zeros_like(ground)
    # Letters are thin: a closing of the ground swallows them, and the scan stays out.
    closed = cv2.morphologyEx(ground.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    return np.asarray((grey >= _GREY_INK) & (cv2.erode(closed, np.ones((3, 3), np.uint8)) > 0))


def _parts(ink: NDArray[np.bool_], grey: Pixels) -> NDArray[np.int64]:
    """Return left, top, width, height and median grey value of the parts that have the size of a letter."""
    import cv2

    if not ink.any():
        return np.empty((0, 5), dtype=np.int64)
    count, numbers, facts, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    boxes = facts[:, :4].astype(np.int64)
    area = facts[:, cv2.CC_STAT_AREA]
    fits = (boxes[:, 3] >= 7) & (boxes[:, 3] <= 40) & (boxes[:, 2] >= 2) & (boxes[:, 2] <= 40) & (area >= 10)
    fits[0] = False
    rows = []
    for number in np.flatnonzero(fits[:count]):
        left, top, width, height = (int(value) for value in boxes[number])
        inside = numbers[top : top + height, left : left + width] == number
        rows.append((left, top, width, height, int(np.median(grey[top : top + height, left : left + width][inside]))))
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _has_line(parts: NDArray[np.int64], letters: int) -> bool:
    left, top, width, height, value = parts.T
    feet = top + height
    for one in range(len(parts)):
        alike = (
            (np.abs(feet - feet[one]) <= 1)
            & (np.abs(height - height[one]) <= 1)
            & (np.abs(value - value[one]) <= _ALIKE)
            & (left >= left[one])
        )
        order = np.flatnonzero(alike)[np.argsort(left[alike], kind="stable")]
        gaps = left[order][1:] - (left[order] + width[order])[:-1]
        run = 1
        for gap in gaps:
            # Words stand apart by less than two letters.
            if not -2 <= gap <= 1.5 * height[one]:
                break
            run += 1
        if run >= letters:
            return True
    return False


def has_callipers(pixels: Pixels) -> bool:
    """Tell whether two or more upright crosses of one size are drawn on the picture, in white or in colour.

    A cross: a part of bright or coloured pixels, 7 to 31 wide and high, whose two lines reach from end to end and
    leave little ink beside them.
    """
    import cv2

    ink = to_grey(pixels) >= _INK
    if pixels.ndim == 3:
        ink |= (pixels.max(axis=2).astype(np.int16) - pixels.min(axis=2)) >= 90
    if not ink.any():
        return False
    count, numbers, facts, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    tall, wide, area = facts[:, cv2.CC_STAT_HEIGHT], facts[:, cv2.CC_STAT_WIDTH], facts[:, cv2.CC_STAT_AREA]
    likely = (tall >= 7) & (tall <= 31) & (wide >= 7) & (wide <= 31) & (np.abs(tall - wide) <= 6)
    likely &= area <= 0.55 * tall * wide
    likely[0] = False
    sizes = []
    for number in np.flatnonzero(likely[:count]):
        left, top, width, height = (int(value) for value in facts[number, :4])
        if _is_cross(numbers[top : top + height, left : left + width] == number):
            sizes.append((width, height))
    return any(
        abs(one[0] - other[0]) <= 3 and abs(one[1] - other[1]) <= 3 for one, other in itertools.combinations(sizes, 2)
    )


def _is_cross(part: NDArray[np.bool_]) -> bool:
    height, width = part.shape
    row, column = int(part.sum(axis=1).argmax()), int(part.sum(axis=0).argmax())
    middle = abs(row - height // 2) <= height // 5 and abs(column - width // 2) <= width // 5
    thick = max(1, round(0.12 * min(height, width)))
    lines = np.zeros_like(part)
    lines[max(0, row - thick) : row + thick + 1] = True
    lines[:, max(0, column - thick) : column + thick + 1] = True
    beside = float((part & ~lines).sum()) / float(part.sum())
    full = part[row].mean() >= 0.8 and part[:, column].mean() >= 0.8
    return bool(middle and full and beside <= 0.2)
