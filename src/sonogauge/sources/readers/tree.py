"""A folder given by a user: its files listed once, names checked, nothing read that lies outside."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.sources.media import MAX_BYTES, MediaFault

MAX_FILES: Final = 5_000_000
_FIELD: Final = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[\d,]+\})+))?\}")
# Control, line and paragraph separators, half characters, and the marks that turn the direction of text.
_REFUSED: Final = ("Cc", "Zl", "Zp", "Cs", "Cf")


class Tree:
    """The files of a folder by their path relative to it, with `/` between the parts.

    Folders repeated in a path (`X/X/a.png`) stand in `paths` as they lie on disk; patterns see them once.

    Raises:
        BadInput: no such folder, a link that leads out, a name with control characters.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise BadInput("no such folder", file=self.root, fix="name the folder that holds the files")
        self._real = self.root.resolve()
        self._inside = os.path.join(self._real, "")
        self._digests: dict[str, str] = {}
        self.paths: tuple[str, ...] = tuple(sorted(self._walk()))

    def _walk(self) -> Iterator[str]:
        count = 0
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            inner = Path(folder).relative_to(self.root).as_posix()
            start = "" if inner == "." else f"{inner}/"
            for name in (*folders, *names):
                refuse_name(name, start + name)
                if os.path.islink(os.path.join(folder, name)):
                    self._refuse_link(Path(folder, name))
            for name in names:
                if not name.startswith("."):
                    count += 1
                    if count > MAX_FILES:
                        raise BadInput(f"more than {MAX_FILES} files", file=self.root)
                    yield start + name

    def _refuse_link(self, path: Path) -> None:
        try:
            inside = path.resolve(strict=True).is_relative_to(self._real)
        except (OSError, RuntimeError):
            inside = False
        if not inside:
            name = path.relative_to(self.root)
            raise BadInput("a link that leads out of the folder", file=name, fix="copy the file itself")

    @cached_property
    def _collapsed(self) -> tuple[tuple[str, str], ...]:
        return tuple((path, _collapse(path)) for path in self.paths)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.paths:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def match(self, *patterns: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the paths that fit one of the patterns, with the fields of the first that fits."""
        compiled = [compile_pattern(pattern) for pattern in patterns]
        for path, plain in self._collapsed:
            for regex in compiled:
                if found := regex.fullmatch(plain):
                    yield path, {name: value or "" for name, value in found.groupdict().items() if name != "_before"}
                    break

    def named(self, name: str) -> list[str]:
        """Return the paths of files of that name or relative path, wherever they lie."""
        last = name.rpartition("/")[2]
        return [path for path in self._by_name.get(last, ()) if path == name or path.endswith("/" + name)]

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return (self.root / path).stat().st_size

    def read(self, path: str, limit: int = MAX_BYTES) -> bytes:
        """Return the bytes of a file.

        Raises:
            MediaFault: not a plain file inside the folder, over `limit` bytes, unreadable.
        """
        try:
            with open(self.file(path), "rb") as stream:
                if os.fstat(stream.fileno()).st_size > limit:
                    raise MediaFault("file is too large")
                data = stream.read()
        except OSError as error:
            raise MediaFault("file cannot be read") from error
        self._digests[path] = hashlib.sha256(data).hexdigest()
        return data

    def file(self, path: str) -> Path:
        """Return the real path of a file, for readers that open files themselves."""
        try:
            file = os.path.realpath(os.path.join(self.root, path), strict=True)
            plain = stat.S_ISREG(os.stat(file).st_mode)
        except (OSError, RuntimeError, ValueError) as error:
            raise MediaFault("no such file") from error
        if not file.startswith(self._inside):
            raise MediaFault("path leaves the folder")
        if not plain:
            raise MediaFault("not a plain file")
        return Path(file)

    def hash(self, paths: Iterable[str]) -> str:
        """Return a SHA-256 over the names and contents of files; those read before are not read again."""
        digest = hashlib.sha256()
        for path in sorted(paths):
            known = self._digests.get(path)
            if known is None:
                with self.file(path).open("rb") as stream:
                    known = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{path}\0{known}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def refuse_name(name: str, shown: str | None = None) -> None:
    """Raise BadInput for a file name that no honest data set has: line breaks, control and direction marks.

    >>> refuse_name("Größe (1).png")
    """
    for character in name:
        if unicodedata.category(character) in _REFUSED:
            plain = (shown or name).encode("ascii", "backslashreplace").decode("ascii")
            plain = "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in plain)
            raise BadInput("file name with a control character", file=plain, fix="rename or remove the file")


def _collapse(path: str) -> str:
    parts = path.split("/")
    kept = [part for place, part in enumerate(parts[:-1]) if place == 0 or part != parts[place - 1]]
    return path if len(kept) == len(parts) - 1 else "/".join((*kept, parts[-1]))


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression of a path pattern.

    `{name}` stands for part of a file or folder name, `{name:regex}` for what the regex says, `*` for anything but `/`.
    Folders may stand before the pattern. Upper and lower case are the same in the ending only.

    >>> compile_pattern("{class}/{stem}_mask.png").fullmatch("data/benign/b (1)_mask.PNG").groupdict()["stem"]
    'b (1)'
    """
    parts: list[str] = []
    position = 0
    known: set[str] = set()
    for field in _FIELD.finditer(pattern):
        parts.append(_literal(pattern[position : field.start()]))
        name, regex = field.group(1), field.group(2)
        if name in known:
            parts.append(f"(?P={name})")
        else:
            parts.append(f"(?P<{name}>{regex or '[^/]+?'})")
            known.add(name)
        position = field.end()
    rest = pattern[position:]
    stem, dot, ending = rest.rpartition(".")
    tail = f"{_literal(stem)}\\.(?i:{_literal(ending)})" if dot and "/" not in ending else _literal(rest)
    return re.compile(f"(?P<_before>.*/)??{''.join(parts)}{tail}", re.DOTALL)


def _literal(text: str) -> str:
    return "[^/]*".join(re.escape(part) for part in text.split("*"))


_SLOT: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """Text with `{field}` slots, filled from the facts of a case.

    >>> Template("{class} ({n})").fill({"class": "benign", "n": "4"})
    'benign (4)'
    >>> Template("{age}").fill({}) is None
    True
    """

    text: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the slots."""
        return tuple(_SLOT.findall(self.text))

    def fill(self, facts: Mapping[str, str], *, empty: bool = False) -> str | None:
        """Return the text, None if a slot has no value; with `empty` an empty value is one too."""
        if any(name not in facts or not (empty or facts[name].strip()) for name in self.fields):
            return None
        return _SLOT.sub(lambda slot: facts[slot.group(1)].strip(), self.text)
