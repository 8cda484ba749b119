"""The words that carry meaning around an answer, in one table: language -> phrases, for each kind of cue.

Everything is written as it looks after `normalise.clean` and lower-casing. Phrases of `REFUSALS` and `API_ERRORS` are
regular expressions with bounded gaps; all other entries are plain text. A change here can move a score: bump
`VERSION` and with it the parsers that use the table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

VERSION: Final = 1

Table = dict[str, tuple[str, ...]]


def _table(texts: dict[str, str]) -> Table:
    return {language: tuple(part.strip() for part in text.split("|")) for language, text in texts.items()}


# Words that announce an answer; the option follows at once or after filler words.
DECLARE: Final = _table(
    {
        "en": (
            "answer | choose | i chose | i select | i pick | go with | score | grade | category | bi-rads | "
            "birads | best choice | correct choice | my choice | best option | correct option | right option | "
            "option: | choice: | final:"
        ),
        "zh": "答案 | 选择 | 我选 | 应选 | 选 | 正确选项 | 诊断为 | 判断为 | 评分 | 分级 | 分类为",
        "es": "respuesta | elijo | opción correcta",
        "fr": "réponse | je choisis | bonne option",
        "de": "antwort | ich wähle | richtige option",
        "pt": "resposta | escolho | opção correta",
        "it": "risposta | scelgo | opzione corretta",
        "ru": "ответ | выбираю",
        "ja": "答え | 回答 | 正解 | 解答",
        "ko": "정답 | 답은 | 답:",
        "vi": "đáp án | câu trả lời",
    }
)
# Nouns that announce an answer only with ":", "=" or a form of "is" directly behind them.
DECLARE_NOUN: Final = _table(
    {
        "en": "diagnosis | conclusion | classification | prediction | verdict | label | choice | impression",
        "zh": "诊断 | 结论 | 结果 | 分类",
        "es": "diagnóstico | conclusión",
        "fr": "diagnostic | conclusion",
        "de": "diagnose | fazit",
    }
)
# Clause openers that state a fact and at the same time end the clause before them.
DECLARE_WEAK: Final = _table(
    {
        "en": "it is | it's",
        "zh": "而是 | 应该是 | 应为",
        "de": "es ist",
    }
)
# Quantities that announce a number, with ":", "=" or a form of "is" directly behind them.
DECLARE_NUMBER: Final = _table(
    {
        "en": (
            "result | estimate | estimated value | value | measurement | ef | ejection fraction | lvef | imt | "
            "intima-media thickness | head circumference | hc | abdominal circumference | ac | fat value | "
            "circumference | thickness"
        ),
        "zh": "结果 | 估计值 | 测量值 | 射血分数 | 厚度 | 头围 | 腹围 | 数值",
    }
)
CONNECTORS: Final = _table(
    {
        "en": "is | was | are | would be | should be | must be | of | equals | will be",
        "zh": "是 | 为 | 应为 | 应是 | 应该是",
        "es": "es | sería",
        "fr": "est",
        "de": "ist | lautet",
        "pt": "é",
        "it": "è",
        "ja": "は",
        "ko": "은 | 는",
        "vi": "là",
    }
)
FILLERS: Final = _table(
    {
        "en": (
            "the | a | an | most | more | likely | probably | clearly | definitely | therefore | thus | that | "
            "this | option | choice | letter | number | category | class | grade | score | best | correct | be | "
            "would | should | must | final | here | as | to | one | lesion | mass | answer | in | at | about | "
            "simply | as follows | consistent with | indeed | bi-rads | birads | approximately | around | roughly"
        ),
        "zh": "选项 | 最可能 | 可能 | 第 | 类 | 级 | 约 | 大约 | 在 | 的",
        "es": "la | el | correcta | final | opción",
        "fr": "la | le | bonne | correcte | finale | option",
        "de": "die | der | richtige | korrekte | option",
        "pt": "a | o | correta | opção",
        "it": "la | il | corretta | opzione",
        "ja": "選択肢",
        "vi": "đúng",
    }
)
JOIN_OR: Final = _table(
    {
        "en": "or | either | versus | vs | to",
        "zh": "或者 | 或 | 还是 | 到 | 至",
        "es": "o",
        "fr": "ou",
        "de": "oder",
    }
)
JOIN_AND: Final = _table(
    {
        "en": "and | as well as",
        "zh": "和 | 与 | 及",
        "es": "y",
        "fr": "et",
        "de": "und",
    }
)
# Negations count up to four words before a mention, in the same clause.
NEGATE: Final = _table(
    {
        "en": (
            "not | no | without | unlikely | excludes | exclude | excluded | excluding | never | cannot | nor | "
            "neither | non | lacks | lack | rather than | rules out | rule out | ruled out | ruling out | instead "
            "of | less likely | negative for | free of | absence of | other than | except"
        ),
        "es": "sin | excluye | descarta | nunca",
        "fr": "pas | sans | exclut",
        "de": "nicht | kein | keine | ohne | schließt",
        "pt": "não | sem",
        "it": "non | senza | esclude",
        "ru": "не | нет | без",
    }
)
# Languages without word spaces: the cue counts in the last few characters before a mention.
NEGATE_CLOSE: Final = _table(
    {
        "zh": "不是 | 并非 | 不 | 非 | 没有 | 无 | 排除 | 未见",
        "ja": "ではなく",
    }
)
# What looks like a negation and is none.
NEGATE_NOT: Final = _table(
    {
        "en": "no doubt | without a doubt | without doubt | without question | not only | no question",
        "zh": "非常 | 不仅 | 无疑 | 不但",
    }
)
# Said after a mention, in the same clause: it takes the mention back.
NEGATE_AFTER: Final = _table(
    {
        "en": (
            "unlikely | less likely | not likely | excluded | ruled out | incorrect | wrong | not correct | not "
            "right | not the answer | not the correct | not the best | not supported | not present | not seen | "
            "not shown | not depicted | not demonstrated | "
            "absent | improbable | not possible | impossible | not favored | not favoured"
        ),
    }
)
NEGATE_SUFFIX: Final = _table(
    {
        "en": "-free | -negative",
    }
)
BREAKS: Final = _table(
    {
        "en": "but | however | it is | it's | although | though | nevertheless | yet | instead",
        "zh": "但是 | 但 | 然而 | 不过 | 而是",
        "de": "aber | sondern",
        "es": "pero | sino",
        "fr": "mais",
    }
)
# Directly before a declaration these make it a supposition; the second table takes it back.
SUPPOSE: Final = _table(
    {
        "en": "if | whether | unless | in case | assuming",
        "zh": "是否 | 如果 | 若",
    }
)
DOUBT: Final = _table(
    {
        "en": "think | believe | say | feel | conclude | sure | certain | clear | likely | true | confirm | that",
    }
)
# "B lines", "B mode": a letter before these words names no option.
LETTER_COMPOUND: Final = _table(
    {
        "en": "line | lines | mode | scan | wave | waves | profile | pattern | flow | ring",
        "zh": "超 | 线 | 型 | 模式",
    }
)
# "A" before these words cannot be an article.
AFTER_LETTER: Final = _table(
    {
        "en": (
            "or | and | nor | is | was | are | because | since | as | but | vs | versus | not | shows | rather | "
            "than | seems | appears | fits | would | can | cannot | could | has | lacks | however"
        ),
    }
)
LETTER_WORD: Final = _table(
    {
        "en": "option | choice | letter | answer",
        "zh": "选项",
    }
)
NULL_WORDS: Final = _table(
    {
        "en": "null | not measurable | unmeasurable | cannot be measured | can not be measured | can't be measured",
        "zh": "无法测量 | 不可测量 | 不能测量",
    }
)
NOT_FINITE: Final = _table(
    {
        "en": "nan | inf | infinity | infinite",
        "": "∞",
    }
)
BOUNDS: Final = _table(
    {
        "en": (
            "more than | less than | greater than | at least | at most | up to | above | below | over | under | "
            "larger than | smaller than | higher than | lower than | no more than"
        ),
        "zh": "大于 | 小于 | 超过 | 不超过 | 至少 | 低于 | 高于",
    }
)

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


def words(*tables: Table) -> tuple[str, ...]:
    """Return the phrases of tables over all languages, longest first, each once.

    >>> words({"en": ("a", "bcd"), "de": ("a",)})
    ('bcd', 'a')
    """
    found = {phrase for table in tables for phrases in table.values() for phrase in phrases}
    return tuple(sorted(found, key=lambda phrase: (-len(phrase), phrase)))


def is_word(char: str) -> bool:
    """Whether a character continues a word; letters of scripts without word spaces do not.

    >>> is_word("b"), is_word("7"), is_word("是"), is_word("-")
    (True, True, False, False)
    """
    return (char.isalnum() and char < "\u2e80") or char == "_"


def any_of(phrases: tuple[str, ...]) -> str:
    """Return an expression for whole phrases; phrases of scripts without word spaces match anywhere."""
    return "|".join(
        (r"(?<!\w)" if phrase[0] < "\u2e80" else "")
        + re.escape(phrase)
        + (r"(?![^\W\u2e80-\uffff])" if is_word(phrase[-1]) else "")
        for phrase in phrases
    )


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
