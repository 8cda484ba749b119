"""Replies that refuse, and messages of failed requests stored in place of a reply: the cues and how they are found."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from sonogauge.answers.cues import Table, words

_CANNOT: Final = (
    r"(?:cannot|can not|can't|could not|couldn't|unable to|not able to|not possible to|impossible to|difficult to)"
)
_GAP: Final = r"(?:[\w'-]{1,20} ){0,3}?"
REFUSALS: Final[dict[str, Table]] = {
    "refusal_policy": {
        "en": (
            rf"{_CANNOT} {_GAP}(?:provide|offer|give|make|render) {_GAP}(?:medical|diagnos\w*|clinical|health|advice)",
            rf"{_CANNOT} {_GAP}(?:help|assist|comply|fulfil|fulfill|diagnose|interpret medical|analy[sz]e medical)\b",
            r"not (?:a |an )?(?:doctor|physician|radiologist|(?:licensed |qualified )?medical professional)",
            r"(?:please |should |must )(?:consult|see|seek|contact) "
            r"(?:[\w'-]{1,20} ){0,3}?(?:doctor|physician|radiologist|professional|provider|specialist)",
            r"(?:do not|don't) (?:provide|offer|give) (?:medical|diagnos\w*|clinical)",
            r"not qualified to",
        ),
        "zh": (
            r"(?:无法|不能|不可以|不会)(?:为您|向您|给您|给出|做出)?(?:提供|给出)?(?:任何)?(?:医疗|医学|诊断|专业|临床)(?:建议|意见|诊断)?",
            r"(?:无法|不能)(?:协助|帮助|帮您)",
            r"(?:咨询|请教|联系)(?:专业)?(?:的)?(?:医生|医师|医疗)",
            r"不是(?:一名)?(?:医生|医师)",
        ),
        "es": (r"no puedo (?:dar|ofrecer|proporcionar) (?:\w{1,20} ){0,2}?(?:médic\w+|diagnóstico)",),
        "fr": (r"ne peux pas (?:donner|fournir) (?:\w{1,20} ){0,2}?(?:médica\w+|diagnostic)",),
        "de": (r"kann kein\w* (?:medizinisch\w*|diagnose)",),
    },
    "refusal_insufficient": {
        "en": (
            rf"{_CANNOT} {_GAP}(?:determine|determined|identify|identified|tell|assess|assessed|classify|classified|say"
            r"|decide|ascertain|conclude|evaluate|distinguish|differentiate|see|view|recogni[sz]e|interpret|judge"
            r"|measure|estimate|answer|locate|access|process|draw|reliably|confidently)\b",
            rf"{_CANNOT} (?:be )?(?:[\w'-]{{1,20}} )?(?:determined|identified|assessed|classified|evaluated|seen)\b",
            r"(?:insufficient|not enough|not sufficient|inadequate) (?:image |visual |clinical )?"
            r"(?:information|data|detail|quality|evidence|context)",
            r"(?:image|picture|quality|scan) (?:quality )?(?:is|appears|seems) (?:too |very )??"
            r"(?:poor|unclear|blurry|blurred|too low|too dark|insufficient|inadequate|not clear|not sufficient)",
            r"no image (?:was |is |has been )?(?:provided|attached|visible|available|uploaded)",
            r"(?:do not|don't|did not|didn't) (?:see|have|receive|have access to) (?:an|any|the|this) image",
            r"(?:need|require) (?:more|additional|further) (?:information|images|views|context|imaging)",
            r"insufficient",
        ),
        "zh": (
            r"(?:无法|不能|难以|不好)[^,.;!?\n]{0,8}?(?:判断|确定|识别|辨认|看清|评估|得出|区分|测量|鉴别|做出|给出|回答)",
            r"(?:信息|证据|资料|图像|图片|质量)[^,.;!?\n]{0,4}?(?:不足|不够|不清|模糊|太差)",
            r"不足以|看不清|未提供图像|没有(?:提供)?(?:图像|图片)",
        ),
        "es": (r"no (?:puedo|se puede|es posible) (?:determinar|identificar|evaluar)",),
        "fr": (r"(?:ne peux pas|impossible de|ne peut pas) (?:déterminer|identifier|évaluer)",),
        "de": (r"(?:kann|lässt sich) (?:\w{1,20} ){0,4}?nicht (?:bestimmen|erkennen|beurteilen|feststellen)",),
    },
}
# Every refusal holds one of these; a cheap look before the expressions.
REFUSAL_STEMS: Final = (
    *("not ", "n't ", "unable to", "possible to", "difficult to", "please ", "should ", "must ", "sufficient"),
    *("inadequate", "no image", "poor", "unclear", "blur", "too low", "too dark", "need ", "require "),
    *("no puedo", "no se puede", "no es posible", "ne peu", "impossible de", "kann ", "nicht "),
    *("无法", "不", "难以", "咨询", "请教", "联系", "信息", "证据", "资料", "图像", "图片", "质量"),
)
_ASCII_STEMS: Final = tuple(stem for stem in REFUSAL_STEMS if stem.isascii())
# Every refusal begins with one of these: the expressions are tried there and nowhere else.
REFUSAL_OPENINGS: Final = (
    *("cannot ", "can not ", "can't ", "could not ", "couldn't ", "unable to ", "not able to ", "not possible to "),
    *("impossible to ", "difficult to ", "not a ", "not an ", "not doctor", "not physician", "not radiologist"),
    *("not licensed ", "not qualified ", "not medical ", "please ", "should ", "must ", "do not ", "don't "),
    *("did not ", "didn't ", "insufficient", "not enough ", "not sufficient ", "inadequate ", "image ", "picture "),
    *("quality ", "scan ", "no image ", "need ", "require ", "no puedo ", "no se puede ", "no es posible "),
    *("ne peux pas ", "ne peut pas ", "impossible de ", "kann ", "lässt sich "),
    *("无法", "不能", "不可以", "不会", "咨询", "请教", "联系", "不是", "难以", "不好", "信息", "证据", "资料", "图像"),
    *("图片", "质量", "不足以", "看不清", "未提供", "没有"),
)
_ASCII_OPENINGS: Final = tuple(opening for opening in REFUSAL_OPENINGS if opening.isascii())
# An error that a client stored as if it were a reply; matched at its beginning.
API_ERRORS: Final = (
    r"(?:api |http |server |request |connection |network |timeout |openai |azure )?error(?: code)?\s*[:=(\-]+\s*\S",
    r"\W{0,4}error\W{1,6}(?:message|code|type|status|\{)",
    r"(?:error|exception|failed)\W{0,3}$",
    r"(?:api|http|server|connection|network|timeout|request|internal server) error\b",
    r"(?:http(?:/\d(?:\.\d)?)? ?|status(?: code)?\W{1,3}|code\W{1,3})?(?:400|401|403|404|408|409|413|422|429|500|502"
    r"|503|504|529)\W{1,3}(?:bad request|unauthori[sz]ed|forbidden|not found|request timeout|conflict|payload too large"
    r"|unprocessable|too many requests|internal server error|bad gateway|service unavailable|gateway timeout"
    r"|client error|server error)",
    r"(?:rate limit|quota|context length|maximum context)[\w ]{0,20}(?:exceeded|reached|error)",
    r"(?:request|connection|read|operation) (?:timed out|timeout|failed|aborted|refused|reset)",
    r"(?:too many requests|bad gateway|service unavailable|gateway time-?out|overloaded_error|internal server error)\b",
    r"traceback \(most recent call last\)",
    r"(?:[a-z_]{1,40}\.){0,4}[a-z_]{1,40}(?:error|exception)\s*[:(]",
    r"failed to (?:obtain|get|call|fetch|connect)\b[\w ]{0,30}(?:api|answer|response|server|endpoint|model)?",
    r"error (?:in|while|during|calling|occurred)\b",
)


class Span(NamedTuple):
    """A refusal cue in a text: its reason and where it stands."""

    start: int
    end: int
    reason: str


@lru_cache(maxsize=1)
def _refusals() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((reason, re.compile("|".join(words(table)))) for reason, table in REFUSALS.items())


def _refusal_starts(low: str) -> list[int]:
    """Return where the openings of refusals stand, sorted."""
    starts = set()
    for opening in _ASCII_OPENINGS if low.isascii() else REFUSAL_OPENINGS:
        if opening in low:
            at = low.find(opening)
            while at >= 0:
                starts.add(at)
                at = low.find(opening, at + 1)
    return sorted(starts)


@lru_cache(maxsize=1)
def _api_errors() -> re.Pattern[str]:
    return re.compile("|".join(API_ERRORS))


def refusals(low: str) -> list[Span]:
    """Return the refusal cues of a cleaned, lower-cased text in the order in which they stand.

    >>> [span.reason for span in refusals("i cannot determine the plane from this image.")]
    ['refusal_insufficient']
    """
    for stem in _ASCII_STEMS if low.isascii() else REFUSAL_STEMS:
        if stem in low:
            break
    else:
        return []
    starts = _refusal_starts(low)
    spans = []
    for reason, pattern in _refusals():
        end = 0
        for start in starts:
            match = pattern.match(low, start) if start >= end else None
            if match is not None:
                end = match.end()
                spans.append(Span(start, end, reason))
    # Of cues at the same place the policy one is the more specific.
    return sorted(spans, key=lambda span: (span.start, span.reason != "refusal_policy"))


def is_api_error(low: str) -> bool:
    """Whether a text is the message of a failed request, stored in place of a reply.

    >>> is_api_error("error code: 429 - {'error': {'message': 'rate limit reached'}}"), is_api_error("no error here")
    (True, False)
    """
    return _api_errors().match(low.lstrip("[({<\"' \n")) is not None
