"""From the raw text of a reply to plain text: thinking, markup and odd characters removed, letter case kept.

Lower-casing the result keeps its length, so positions found in one hold in the other.
"""

# ruff: noqa: RUF001, RUF002
from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

_THINK_TAG: Final = re.compile(
    r"(?:<\|?|◁)\s?(?P<close>/|end_of_|end_)?\s?(?:begin_of_)?"
    r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)\s?(?:\|?>|▷)"
    # In square brackets only the exact tag of one vendor: "[Reasoning]" is a heading.
    r"|(?-i:\[(?P<bracket>/)?THINK\])",
    re.IGNORECASE,
)
# Typographic characters that NFKC leaves alone, and the two letters whose lower case is longer than they are.
_PLAIN: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′＇`´", "'"),
        **dict.fromkeys("“”„‟″«»「」『』《》", '"'),
        **dict.fromkeys("‐‑‒–−﹣", "-"),
        **dict.fromkeys("—―", " - "),
        **dict.fromkeys("。｡", "."),
        **dict.fromkeys("、", ","),
        **dict.fromkeys("【〔〖", "("),
        **dict.fromkeys("】〕〗", ")"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f", ""),
        **dict.fromkeys("\u2028\u2029\x85", "\n"),
        "İ": "I",
        "ẞ": "ss",
        "ß": "ss",
        "μ": "µ",
        "•": "-",
    }
)
_ODD: Final = re.compile(r"[*_`#$\\{}<>\[\]|~&\x00-\x08\x0b-\x1f\x7f\t]")
_LATEX_WRAP: Final = re.compile(r"\\(?:text|math|operator)[a-z]{0,12}\s{0,2}\{([^{}]{0,2000})\}")
_ANSWER_OPEN: Final = re.compile(r"<\s?(?:final[_ ]?)?answer\s?>|\\f?boxed\s{0,2}\{?|<\|begin_of_box\|>", re.IGNORECASE)
_ANSWER_CLOSE: Final = re.compile(r"</\s?(?:final[_ ]?)?answer\s?>|<\|end_of_box\|>", re.IGNORECASE)
_BREAK_TAG: Final = re.compile(
    r"</?(?:br|p|div|li|ul|ol|tr|h[1-6]|pre|table)\b[^<>]{0,200}>|<\|[^|<>]{0,40}\|>", re.IGNORECASE
)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_COMMENT: Final = re.compile(r"<!--.{0,500}?-->", re.DOTALL)
_LINK: Final = re.compile(r"\[([^\[\]\n]{0,500})\]\([^()\s]{0,500}\)")
_FENCE: Final = re.compile(r"```[a-z]{0,12}", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"(?<!\d)\*+|\*+(?!\d)|`+|~~+|(?<!\w)_+|_+(?!\w)|(?m:^[^\S\n]*#+)|\$+")
_ESCAPE: Final = re.compile(r"\\[()\[\],;!]|\\(?=[^a-zA-Z\s])|\\(?:quad|qquad|displaystyle)\b")
_SPACE: Final = re.compile(r"[^\S\n]+")
_LINE_EDGE: Final = re.compile(r" *\n *")
_TO_SPACE: Final = str.maketrans(
    {**dict.fromkeys("{}|", " "), **{chr(code): " " for code in (*range(9), 11, 12, *range(14, 32), 127)}}
)
_FENCED: Final = re.compile(r"\A```[\w-]{0,20}[^\S\n]*\n(.*?)\n?```\s*\Z", re.DOTALL)


def without_thinking(text: str) -> str:
    """Drop thinking blocks, also one that never ends or whose beginning was in the prompt.

    >>> without_thinking("<think>maybe A</think>C"), without_thinking("hm A</think>C"), without_thinking("<think>A")
    ('C', 'C', '')
    """
    kept: list[str] = []
    thinking = False
    last = 0
    for tag in _THINK_TAG.finditer(text):
        if tag["close"] or tag["bracket"]:
            if not thinking:
                kept.clear()
            thinking = False
        else:
            if not thinking:
                kept.append(text[last : tag.start()])
            thinking = True
        last = tag.end()
    if not thinking:
        kept.append(text[last:])
    return " ".join(part for part in kept if part)


def _without_markup(text: str) -> str:
    if "&" in text and ";" in text:
        text = html.unescape(text).translate(_PLAIN)
    if "\\" in text:
        for _ in range(3):
            text = _LATEX_WRAP.sub(r"\1", text)
        text = text.replace("\\%", "%")
    if "<" in text or "\\" in text:
        text = _ANSWER_OPEN.sub("\nanswer: ", text)
        text = _ANSWER_CLOSE.sub("\n", text)
    if "<" in text:
        text = _BREAK_TAG.sub("\n", text)
        text = _TAG.sub(" ", text)
        if "-->" in text:
            text = _COMMENT.sub(" ", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "`" in text:
        text = _FENCE.sub(" ", text)
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    text = _EMPHASIS.sub("", text).translate(_TO_SPACE)
    return _LINE_EDGE.sub("\n", _SPACE.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")))


def clean(text: str) -> str:
    """Return a reply as plain text with its letter case: NFKC, no thinking, no markup, single spaces.

    >>> clean("**B**"), clean("＂Ｂ＂"), clean("<think>A?</think> <answer>C</answer>")
    ('B', '"B"', 'answer: C')
    """
    if not text.isascii():
        text = _SPACE.sub(" ", unicodedata.normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN))
    if "<" in text or "[" in text or "◁" in text:
        text = without_thinking(text)
    if _ODD.search(text) or "  " in text or "\n " in text or " \n" in text:
        text = _without_markup(text)
    return text.strip()


def fold(text: str) -> str:
    """Return the key under which two spellings of an answer are the same.

    >>> fold(" “Fetal  Brain”. ") == fold("fetal brain")
    True
    """
    return strip_edges(clean(text).lower())


def strip_edges(low: str) -> str:
    """Strip quotes, brackets and final punctuation; a sign before a digit stays."""
    low = low.strip(" \n\"'.,;:!?()[]")
    return low[2:].lstrip() if low.startswith("- ") else low


def as_text(text: str) -> str:
    r"""Return a free-text reply: thinking removed, one surrounding code fence and outer white space trimmed.

    >>> as_text("<think>hm</think>\n```text\nLiver normal.\n```")
    'Liver normal.'
    """
    text = without_thinking(text).strip()
    fenced = _FENCED.match(text)
    return fenced[1].strip() if fenced else text
