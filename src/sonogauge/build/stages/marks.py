"""What does not belong into a picture: names in its tags, writing burned into it, callipers drawn on it."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
_VIVID: Final = 90  # between the channels
_LINE: Final = 180
_FADE: Final = 40
_ARMS: Final = (3, 14)  # pixels from the centre of a cross
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


@dataclass(frozen=True, slots=True)
class _Cross:
    """Centre and length of the arms, in pixels; whole: no arm runs on and no quarter is filled."""

    x: int
    y: int
    arm: int
    whole: bool


def has_callipers(pixels: Pixels) -> bool:
    """Tell whether two or more upright crosses of one size are drawn on the picture, in white or in colour.

    A cross: four arms of one length, 3 to 14 pixels, whose quarters between them are darker. At one of the two a line
    may go on from an arm, and writing or bright tissue may fill a quarter, as where callipers are joined and numbered.
    """
    crosses = _crosses(_strength(pixels))
    return any(
        (one.whole or other.whole)
        and abs(one.arm - other.arm) <= 1
        and max(abs(one.x - other.x), abs(one.y - other.y)) > one.arm  # a thick cross has several centres
        for one, other in itertools.combinations(crosses, 2)
    )


def _strength(pixels: Pixels) -> NDArray[np.uint8]:
    """Return grey values, and for vivid colours the strongest channel."""
    import cv2

    grey = to_grey(pixels)
    if pixels.ndim == 2:
        return np.ascontiguousarray(grey)
    red, green, blue = cv2.split(pixels)
    top, bottom = cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue)
    return np.where(cv2.subtract(top, bottom) >= _VIVID, top, grey)


def _crosses(strength: NDArray[np.uint8]) -> list[_Cross]:
    import cv2

    shortest, longest = _ARMS
    across, along = (1, 2 * shortest + 1), (2 * shortest + 1, 1)
    beyond: dict[str, Any] = {"borderType": cv2.BORDER_CONSTANT, "borderValue": 0.0}
    weakest = np.minimum(*(cv2.erode(strength, np.ones(shape, np.uint8), **beyond) for shape in (across, along)))
    if int(weakest.max()) < _LINE:
        return []
    rows, columns = np.nonzero(weakest >= _LINE)
    levels = weakest[rows, columns].astype(np.int16) - _FADE
    edge = longest + 3
    padded = np.pad(strength, edge)
    corners = [
        padded[rows + edge + y, columns + edge + x] for y in (-shortest, shortest) for x in (-shortest, shortest)
    ]
    likely = (np.array(corners) < levels).sum(axis=0) >= 3
    found = []
    for row, column, level in zip(rows[likely], columns[likely], levels[likely], strict=True):
        cross = _cross(padded[row : row + 2 * edge + 1, column : column + 2 * edge + 1] < level, int(column), int(row))
        if cross is not None:
            found.append(cross)
    return found


def _cross(dark: NDArray[np.bool_], x: int, y: int) -> _Cross | None:
    """Judge the surroundings of a possible centre by which of their pixels are darker than the lines through it."""
    middle = len(dark) // 2
    rays = (
        dark[middle, middle + 1 :],
        dark[middle, :middle][::-1],
        dark[middle + 1 :, middle],
        dark[:middle, middle][::-1],
    )
    arms = sorted(int(ray.argmax()) if ray.any() else len(ray) for ray in rays)
    shortest, longest = _ARMS
    arm = arms[1]
    if arms[0] < shortest or arm > longest or arms[2] - arms[0] > 2:
        return None
    # Lines are up to three pixels wide.
    near, far = slice(middle - arm, middle - 1), slice(middle + 2, middle + arm + 1)
    quarters = sorted(float(dark[one, other].mean()) for one in (near, far) for other in (near, far))
    if quarters[1] < 0.8:
        return None
    return _Cross(x, y, arm, whole=arms[3] - arms[0] <= 2 and quarters[0] >= 0.5)
