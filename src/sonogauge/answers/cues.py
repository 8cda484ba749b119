"""The words that carry meaning around an answer, in one table: language -> phrases, for each kind of cue.

Everything is written as it looks after `normalise.clean` and lower-casing. Phrases of `REFUSALS` and `API_ERRORS` are
regular expressions with bounded gaps; all other entries are plain text. A change here can move a score: bump
`VERSION` and with it the parsers that use the table.
"""

from __future__ import annotations

import re
from typing import Final

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
