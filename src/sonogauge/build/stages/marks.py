"""What does not belong into a picture: names in its tags, writing burned into it, callipers drawn on it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

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
_BRIGHT: Final = 110
_WHITE: Final = 235
_LETTERS: Final = 5


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
    """Tell whether a row of letters stands on the dark ground around the scan.

    Letters: bright parts of 5 to 40 pixels of height on the ground, at least five of about one height in a line. Text
    inside the scan is not found.
    """
    import cv2

    grey = to_grey(pixels)
    ground = grey <= _DARK
    if ground.mean() < 0.02:
        return False
    # Letters are thin: a closing of the ground swallows them, and the scan stays out.
    closed = cv2.morphologyEx(ground.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    ink = (grey >= _BRIGHT) & (cv2.erode(closed, np.ones((3, 3), np.uint8)) > 0)
    if not ink.any():
        return False
    count, _, facts, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    boxes = facts[1:count]
    tall, wide, area = boxes[:, cv2.CC_STAT_HEIGHT], boxes[:, cv2.CC_STAT_WIDTH], boxes[:, cv2.CC_STAT_AREA]
    letters = boxes[(tall >= 5) & (tall <= 40) & (wide >= 1) & (wide <= 40) & (area >= 5)]
    return any(_in_line(letters, letter) >= _LETTERS for letter in letters)


def _in_line(letters: NDArray[Any], letter: NDArray[Any]) -> int:
    """Return how many letters stand in the line of one: feet or heads level, heights alike, near one another."""
    import cv2

    left, top, height = letter[cv2.CC_STAT_LEFT], letter[cv2.CC_STAT_TOP], letter[cv2.CC_STAT_HEIGHT]
    feet = letters[:, cv2.CC_STAT_TOP] + letters[:, cv2.CC_STAT_HEIGHT]
    level = (np.abs(feet - top - height) <= 2) | (np.abs(letters[:, cv2.CC_STAT_TOP] - top) <= 2)
    alike = np.abs(letters[:, cv2.CC_STAT_HEIGHT] - height) <= max(2, height // 2)
    near = np.abs(letters[:, cv2.CC_STAT_LEFT] - left) <= 12 * height
    return int((level & alike & near).sum())


def has_callipers(pixels: Pixels) -> bool:
    """Tell whether two or more crosses, upright or slanted, are drawn on the picture in white or in colour.

    A cross: a part of nearly white or coloured pixels, 7 to 31 wide and high, thin, full along both its lines.
    """
    import cv2

    ink = to_grey(pixels) >= _WHITE
    if pixels.ndim == 3:
        ink |= (pixels.max(axis=2).astype(np.int16) - pixels.min(axis=2)) >= 90
    if not ink.any():
        return False
    count, numbers, facts, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    boxes = facts[:count]
    tall, wide, area = boxes[:, cv2.CC_STAT_HEIGHT], boxes[:, cv2.CC_STAT_WIDTH], boxes[:, cv2.CC_STAT_AREA]
    likely = (tall >= 7) & (tall <= 31) & (wide >= 7) & (wide <= 31) & (np.abs(tall - wide) <= 3)
    likely &= area <= 0.55 * tall * wide
    crosses = 0
    for number in np.flatnonzero(likely):
        if number == 0:
            continue
        left, top, width, height = (int(value) for value in boxes[number, :4])
        crosses += _is_cross(numbers[top : top + height, left : left + width] == number)
        if crosses >= 2:
            return True
    return False


def _is_cross(part: NDArray[np.bool_]) -> bool:
    height, width = part.shape
    rows, columns = np.mgrid[0:height, 0:width]
    down, across = rows / (height - 1) - 0.5, columns / (width - 1) - 0.5
    thick = 0.18
    for lines in (
        (np.abs(down) <= thick, np.abs(across) <= thick),
        (np.abs(down - across) <= 1.5 * thick, np.abs(down + across) <= 1.5 * thick),
    ):
        inside = lines[0] | lines[1]
        # Each line has ink from end to end, and next to none lies beside the two.
        full = [_along(part & line, axis) for line, axis in zip(lines, (0, 1), strict=True)]
        if min(full) >= 0.9 and (part & ~inside).sum() <= 0.1 * part.sum():
            return True
    return False


def _along(ink: NDArray[np.bool_], axis: int) -> float:
    return float(ink.any(axis=axis).mean())
