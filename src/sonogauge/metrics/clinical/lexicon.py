"""The ultrasound lexicon: read from its data file, checked, and compiled into one tree of words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from sonogauge._errors import BadInput

ROOT: Final = "abnormality"
_KINDS: Final = ("lesion", "condition", "descriptor", "assessment")
_POLARITIES: Final = ("present", "absent")
_TOKEN: Final = re.compile(r"\n|[a-z]+|\d{1,6}(?:\.\d{1,4})?|\S")
# Same length, so that the spans of facts stay those of the text.
_FULL_WIDTH: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3002: ord("."),
    0x3000: ord(" "),
    0x2010: ord("-"),
    0x2011: ord("-"),
    0x2019: ord("'"),
    0x2715: ord("x"),
}
_INNER: Final = frozenset("-'")
_END: Final = ""

Token = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Term:
    """What a phrase means: a kind of mention, its name, and what it says besides.

    kind: organ, structure, finding, feature, qualifier, side, place, severity, grade, section, or a cue
    (deny, deny_next, deny_before, doubt, doubt_before, none, contrast).
    region: of a structure, that it says where rather than what.
    """

    kind: str
    name: str
    organ: str | None = None
    structure: str | None = None
    polarity: str = "present"
    region: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of the lexicon.

    ancestors: more general findings, nearest first; kind: lesion, condition or descriptor.
    section: the section of a report it belongs to; organ: the organ meant when the text names none.
    """

    name: str
    kind: str
    section: str
    ancestors: tuple[str, ...]
    organ: str | None


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A word that makes a feature among `about` normal (absent) or abnormal (present); `alone` without a feature."""

    polarity: str
    alone: str
    about: frozenset[str]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """A compiled lexicon; `version` and `digest` belong into the signature of every score made with it."""

    version: int
    digest: str
    findings: Mapping[str, Finding]
    features: Mapping[str, tuple[str, str]]
    qualifiers: Mapping[str, Qualifier]
    grade_values: Mapping[str, frozenset[str]]
    required_sections: Mapping[str, tuple[str, ...]]
    units: Mapping[str, float]
    words: Mapping[str, frozenset[str]]
    relative_tolerance: float
    absolute_tolerance_mm: float
    terms: int
    tree: dict[str, Any] = field(repr=False)

    def find(self, tokens: list[Token]) -> Iterator[tuple[Term, int, int]]:
        """Yield the longest phrases from left to right, without overlap: term, first token, token after the last."""
        tree, position, count = self.tree, 0, len(tokens)
        while position < count:
            node = tree.get(tokens[position][0])
            found: Term | None = None
            stop = ahead = position + 1
            while node is not None:
                if _END in node:
                    found, stop = node[_END], ahead
                if ahead == count:
                    break
                node = node.get(tokens[ahead][0])
                ahead += 1
            if found is not None:
                yield found, position, stop
            position = stop

    def related(self, general: str, specific: str) -> bool:
        """Return whether one finding is a more general name of the other."""
        return general in self.findings[specific].ancestors


def tokenize(text: str) -> list[Token]:
    r"""Return (word, start, end): lower-case words without their plural s, numbers, single Chinese characters, marks.

    A hyphen or apostrophe between two letters is dropped. Spans are those of the text as it was given.

    >>> tokenize("Well-defined cysts, 2.3cm")
    [('well', 0, 4), ('defined', 5, 12), ('cyst', 13, 18), (',', 18, 19), ('2.3', 20, 23), ('cm', 23, 25)]
    """
    folded = text.translate(_FULL_WIDTH).lower()
    if len(folded) != len(text):  # a few capitals have a longer lower case, which would shift the spans
        folded = "".join(one if len(one) == 1 else " " for one in map(str.lower, text.translate(_FULL_WIDTH)))
    result: list[Token] = []
    for match in _TOKEN.finditer(folded):
        word, start, end = match.group(), match.start(), match.end()
        if word in _INNER and folded[max(0, start - 1)].isalpha() and folded[end : end + 1].isalpha():
            continue
        result.append((_singular(word), start, end))
    return result


def _singular(word: str) -> str:
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "suin" and word.isascii():
        return word[:-2] if word.endswith(("sses", "xes")) else word[:-1]
    if len(word) > 4 and word.endswith("ns"):
        return word[:-1]
    return word


def _spellings(phrase: str) -> set[tuple[str, ...]]:
    """Return the token sequences of a lexicon phrase; a hyphen in it may be missing altogether."""
    variants = {phrase, phrase.replace("-", "")} if "-" in phrase else {phrase}
    return {tuple(word for word, _, _ in tokenize(variant)) for variant in variants}


class _Compiler:
    """Collects phrases and refuses a phrase with two meanings."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree: dict[str, Any] = {}
        self.count = 0

    def fail(self, what: str, where: str) -> BadInput:
        return BadInput(what, file=self.source, field=where, fix="mend the lexicon")

    def add(self, phrases: object, term: Term, where: str) -> None:
        if not isinstance(phrases, list) or not phrases or not all(isinstance(one, str) and one for one in phrases):
            raise self.fail("terms must be a list of words (quote words such as no and on)", where)
        for phrase in phrases:
            self.count += 1
            for words in _spellings(phrase):
                node = self.tree
                for word in words:
                    node = node.setdefault(word, {})
                if node.setdefault(_END, term) != term:
                    raise self.fail(f"'{phrase}' means both {node[_END].name} and {term.name}", where)


@cache
def load_lexicon(path: Path | None = None) -> Lexicon:
    """Read and compile a lexicon; without a path the one that ships with the toolkit.

    Raises:
        BadInput: not readable, a part missing, an unknown finding, organ or kind, or a phrase with two meanings.
    """
    source = str(path) if path is not None else "lexicon.yaml"
    try:
        data = path.read_bytes() if path is not None else files(__package__).joinpath("lexicon.yaml").read_bytes()
        content = yaml.safe_load(data)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"no lexicon can be read: {error}", file=source) from error
    if not isinstance(content, dict):
        raise BadInput("a lexicon is a mapping", file=source)
    try:
        return _compile(content, hashlib.sha256(data).hexdigest(), source)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"not a lexicon: {type(error).__name__} {error}", file=source) from error


def _compile(content: dict[str, Any], digest: str, source: str) -> Lexicon:
    compiler = _Compiler(source)
    findings = _findings(content, compiler)
    for name, terms in content["organs"].items():
        compiler.add(terms, Term("organ", name), f"organs.{name}")
    for name, entry in content["structures"].items():
        _known(entry.get("organ"), content["organs"], compiler, f"structures.{name}")
        term = Term("structure", name, entry.get("organ"), region=bool(entry.get("region", False)))
        compiler.add(entry["terms"], term, f"structures.{name}")
    for name, entry in content["findings"].items():
        compiler.add(entry["terms"], Term("finding", name), f"findings.{name}")
    for number, entry in enumerate(content["phrases"], start=1):
        where = f"phrases[{number}]"
        _known(entry["finding"], findings, compiler, where)
        _known(entry.get("organ"), content["organs"], compiler, where)
        _known(entry.get("structure"), content["structures"], compiler, where)
        polarity = entry.get("polarity", "present")
        _known(polarity, _POLARITIES, compiler, where)
        term = Term("finding", entry["finding"], entry.get("organ"), entry.get("structure"), polarity)
        compiler.add(entry["terms"], term, where)
    features, qualifiers = {}, {}
    for name, entry in content["features"].items():
        _known(entry["finding"], findings, compiler, f"features.{name}")
        features[name] = (str(entry["finding"]), str(entry["section"]))
        compiler.add(entry["terms"], Term("feature", name), f"features.{name}")
    for name, entry in content["qualifiers"].items():
        _known(entry["polarity"], _POLARITIES, compiler, f"qualifiers.{name}")
        _known(entry["alone"], findings, compiler, f"qualifiers.{name}")
        for feature in entry["about"]:
            _known(feature, features, compiler, f"qualifiers.{name}")
        qualifiers[name] = Qualifier(entry["polarity"], entry["alone"], frozenset(entry["about"]))
        compiler.add(entry["terms"], Term("qualifier", name), f"qualifiers.{name}")
    for part, kind in (
        ("sides", "side"),
        ("places", "place"),
        ("severities", "severity"),
        ("section_terms", "section"),
    ):
        for name, terms in content[part].items():
            compiler.add(terms, Term(kind, name), f"{part}.{name}")
    for name, entry in content["grades"].items():
        compiler.add(entry["terms"], Term("grade", name), f"grades.{name}")
    for kind, terms in content["cues"].items():
        compiler.add(terms, Term(kind, kind), f"cues.{kind}")
    grammar = dict(content["grammar"])
    compiler.add(grammar.pop("contrast"), Term("contrast", "contrast"), "grammar.contrast")
    units = {_singular(unit): float(factor) for unit, factor in grammar.pop("units").items()}
    return Lexicon(
        version=int(content["version"]),
        digest=digest,
        findings=findings,
        features=features,
        qualifiers=qualifiers,
        grade_values={name: frozenset(map(str, entry["values"])) for name, entry in content["grades"].items()},
        required_sections={organ: tuple(sections) for organ, sections in content["required_sections"].items()},
        units=units,
        words={name: frozenset(_singular(str(word)) for word in several) for name, several in grammar.items()},
        relative_tolerance=float(content["size_tolerance"]["relative"]),
        absolute_tolerance_mm=float(content["size_tolerance"]["absolute_mm"]),
        terms=compiler.count,
        tree=compiler.tree,
    )


def _known(name: object, among: Iterable[object], compiler: _Compiler, where: str) -> None:
    if name is not None and name not in among:
        raise compiler.fail(f"'{name}' is not known", where)


def _findings(content: dict[str, Any], compiler: _Compiler) -> dict[str, Finding]:
    entries = content["findings"]
    result: dict[str, Finding] = {}
    for name, entry in entries.items():
        where = f"findings.{name}"
        _known(entry["kind"], _KINDS, compiler, where)
        _known(entry.get("organ"), content["organs"], compiler, where)
        ancestors: list[str] = []
        parent = entry.get("is")
        while parent is not None:
            if parent in ancestors or parent == name:
                raise compiler.fail("is its own ancestor", where)
            _known(parent, entries, compiler, where)
            ancestors.append(parent)
            parent = entries[parent].get("is")
        result[name] = Finding(name, entry["kind"], entry["section"], tuple(ancestors), entry.get("organ"))
    # A size that nothing else explains is a fact of its own: "the common bile duct measures 6 mm".
    result["measurement"] = Finding("measurement", "measurement", "size", (), None)
    for name in content["grades"]:
        result[name] = Finding(name, "grade", "impression", (), None)
    return result
