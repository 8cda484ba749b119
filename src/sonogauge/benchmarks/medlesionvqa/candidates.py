"""From one annotation to the questions that can be asked of it, by ability, with declared distractor rules.

Every question says which template and which rule made it. A distractor is never right, never a synonym of a right
option and never above or below one in the tree; of diseases, nothing that any physician named may be a distractor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.annotations import Annotation, attribute_terms
from sonogauge.benchmarks.medlesionvqa.fusion import Fused, Normalise, TiedRanks, TieRule, fuse
from sonogauge.benchmarks.medlesionvqa.schema import (
    ATTRIBUTES,
    Disease,
    FusedDisease,
    Option,
    Question,
)
from sonogauge.benchmarks.medlesionvqa.vocabulary import Vocabularies, Vocabulary

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DISTRACTOR_RULES: Final = ("mimics", "siblings", "random")
RELATIONS: Final = ("left of", "right of", "above", "below", "inside", "around")


@dataclass(frozen=True)
class Rules:
    """The declared choices behind the questions.

    options: how many a choice question offers, more if more are right. distractors: rule by ability.
    body_level: level of the tree at which places are asked. tie_rule to keep_top: of `fusion.fuse`.
    """

    options: int = 4
    distractors: tuple[tuple[str, str], ...] = (
        ("LR", "mimics"),
        ("LO", "siblings"),
        ("AR", "random"),
        ("SR", "random"),
        ("LE", "random"),
        ("DD", "mimics"),
    )
    body_level: int = 2
    tie_rule: TieRule = "shared"
    normalise: Normalise = "none"
    tied_ranks: TiedRanks = "error"
    keep_top: int | None = None
    seed: int = 0

    def rule(self, ability: str) -> str:
        """Return the distractor rule of an ability."""
        return dict(self.distractors).get(ability, "random")


def distractors(
    vocabulary: Vocabulary,
    right: Sequence[str],
    count: int,
    rule: str,
    draw: Random,
    banned: Sequence[str] = (),
    among: Sequence[str] | None = None,
) -> list[str]:
    """Return up to `count` wrong terms, chosen by a rule.

    "mimics": first the declared mimics of the right ones, then siblings; "siblings": the nearest in the tree first;
    "random": any. What the rule leaves open is drawn.

    Raises:
        BadInput: no such rule.
    """
    if rule not in DISTRACTOR_RULES:
        raise BadInput(f"no distractor rule '{rule}'", fix="known: " + ", ".join(DISTRACTOR_RULES))
    parents = {one.parent for one in vocabulary}
    pool = [
        one.id
        for one in vocabulary
        if (among is None or one.id in among)
        and one.id not in banned
        and not any(vocabulary.related(one.id, name) for name in right)
        and (among is not None or one.id not in parents)
    ]
    draw.shuffle(pool)
    if rule != "random":
        pool.sort(key=lambda name: min(vocabulary.distance(name, one) for one in right))
    if rule == "mimics":
        declared = [mimic for name in right for mimic in vocabulary.term(name).mimics]
        pool.sort(key=lambda name: declared.index(name) if name in declared else len(declared))
    return pool[:count]


def fused_of(one: Annotation, rules: Rules) -> Fused | None:
    """Return the fused differential of an annotation, None without lists. The senior is the rater of that level.

    Raises:
        BadInput: lists that cannot be fused, with the image.
    """
    if not one.differentials:
        return None
    levels = {rater.rater_id: rater.level for rater in one.raters}
    senior = next((i for i, found in enumerate(one.differentials) if levels.get(found.rater_id) == "senior"), None)
    try:
        return fuse(
            [found.ranked for found in one.differentials],
            tie_rule=rules.tie_rule,
            senior=senior,
            decided=_flat(one.decision.ranked) if one.decision is not None else None,
            normalise=rules.normalise,
            tied_ranks=rules.tied_ranks,
            keep_top=rules.keep_top,
        )
    except BadInput as error:
        raise BadInput(f"{one.image.image_id}: {error}") from error


def check_fusion(annotations: Sequence[Annotation], rules: Rules, file: Path) -> None:
    """Refuse differentials that cannot be fused, with the row of their annotation."""
    for row, one in enumerate(annotations, start=1):
        try:
            fused_of(one, rules)
        except BadInput as error:
            raise BadInput(str(error), file=file, row=row) from error


def _flat(ranked: Sequence[str | list[str]]) -> list[str]:
    return [name for entry in ranked for name in ([entry] if isinstance(entry, str) else entry)]


class Asker:
    """Makes the questions of one annotation."""

    def __init__(self, one: Annotation, words: Vocabularies, rules: Rules, split: str) -> None:
        self._one = one
        self._words = words
        self._rules = rules
        self._split = split
        self._fused = fused_of(one, rules)
        self._count = 0

    def questions(self) -> Iterator[Question]:
        """Yield all questions that the annotation can answer, in the order of the abilities."""
        makers: tuple[Callable[[], Iterator[Question]], ...] = (
            self._lesions,
            self._place,
            self._attributes,
            self._relations,
            self._inferences,
            self._diagnosis,
            self._advice,
        )
        for make in makers:
            yield from make()

    def _question(
        self, ability: str, kind: str, template: str, text: str, reference: Sequence[str], **more: Any
    ) -> Question:
        one = self._one
        self._count += 1
        placed = self._fused.placed if self._fused is not None else ()
        fields: dict[str, Any] = {
            "question_id": f"{one.source}/{one.image.image_id}/{ability}-{self._count:02d}",
            "split": self._split,
            "language": one.language,
            "images": [one.image],
            "case_id": one.case_id,
            "patient_id": one.patient_id,
            "provenance": one.provenance,
            "question": text,
            "type": kind,
            "ability": ability,
            "reference": list(reference),
            "body_part_path": list(self._words.body_parts.path(one.body_part)) if one.body_part else [],
            "lesion": one.lesions,
            "disease": Disease(
                fused=[FusedDisease(id=entry.id, score=entry.score, rank=entry.rank) for entry in placed],
                lists=one.differentials,
                tie_rule=self._rules.tie_rule,
                decided=one.decision,
            ),
            "raters": one.raters,
            "template_id": template,
            "demographics": one.demographics,
            "source": one.source,
            "licence": one.licence,
            "redistributable": one.redistributable,
            "private": one.private,
        }
        return Question.model_validate({**fields, **more})

    def _choice(
        self,
        ability: str,
        template: str,
        text: str,
        right: Sequence[str],
        wrong: Sequence[str],
        names: Callable[[str], str],
        kind: str = "",
        **more: Any,
    ) -> Iterator[Question]:
        """Yield a choice question with shuffled options; nothing where no wrong option exists."""
        if not wrong:
            return
        draw = self._draw(template, "order")
        offered = [*right, *wrong]
        draw.shuffle(offered)
        letters = dict(zip(offered, LETTERS, strict=False))
        reference = [letters[name] for name in right]
        yield self._question(
            ability,
            kind or ("single_choice" if len(right) == 1 else "multi_choice"),
            template,
            text,
            reference if kind == "ranking" else sorted(reference),
            options=[Option(letter=letters[name], text=names(name)) for name in offered],
            distractor_rule=self._rules.rule(ability),
            random_state=self._rules.seed,
            **more,
        )

    def _draw(self, template: str, purpose: str) -> Random:
        return Random(f"{self._rules.seed}/{self._one.image.image_id}/{template}/{purpose}")

    def _wrong(
        self, vocabulary: Vocabulary, ability: str, template: str, right: Sequence[str], **limits: Any
    ) -> list[str]:
        # One wrong option at least, however many are right.
        count = max(self._rules.options - len(right), 1)
        return distractors(
            vocabulary, right, count, self._rules.rule(ability), self._draw(template, "distractors"), **limits
        )

    def _lesions(self) -> Iterator[Question]:
        right = list(dict.fromkeys(lesion.name for lesion in self._one.lesions))
        if not right:
            return
        words = self._words.lesions
        text = "Which kind of lesion does the image show?" if len(right) == 1 else "Which lesions does the image show?"
        wrong = self._wrong(words, "LR", "lr-kind", right)
        yield from self._choice("LR", "lr-kind", text, right, wrong, lambda name: words.term(name).name)

    def _place(self) -> Iterator[Question]:
        words = self._words.body_parts
        if not self._one.body_part or len(words.path(self._one.body_part)) < self._rules.body_level:
            return
        right = words.at_level(self._one.body_part, self._rules.body_level)
        level = [one.id for one in words if len(words.path(one.id)) == self._rules.body_level]
        wrong = self._wrong(words, "LO", "lo-part", [right], among=level)
        text = "Which part of the body does the image show?"
        yield from self._choice("LO", "lo-part", text, [right], wrong, lambda name: words.term(name).name)

    def _attributes(self) -> Iterator[Question]:
        words = self._words.attributes
        primary = next((lesion for lesion in self._one.lesions if lesion.role == "primary"), None)
        for attribute in ATTRIBUTES if primary is not None else ():
            values = primary.attributes.get(attribute) if primary is not None else None
            if not values:
                continue
            template = f"ar-{attribute}"
            wrong = self._wrong(words, "AR", template, values, among=attribute_terms(words, attribute))
            text = f"Which of these words describe the {attribute} of the lesion?"
            yield from self._choice(
                "AR",
                template,
                text,
                values,
                wrong,
                lambda name: words.term(name).name,
                "multi_choice",
                attribute_asked=attribute,
            )
            if len(values) == 1:
                term = words.term(values[0])
                yield self._question(
                    "AR",
                    "fill_in_blank",
                    f"{template}-blank",
                    f"Fill in the blank with one or a few words: the {attribute} of the lesion is ____.",
                    [term.name, *term.synonyms],
                    attribute_asked=attribute,
                )

    def _relations(self) -> Iterator[Question]:
        for place, one in enumerate(self._one.relations, start=1):
            template = f"sr-{place}"
            others = [name for name in RELATIONS if name != one.relation]
            wrong = self._draw(template, "distractors").sample(others, max(self._rules.options - 1, 1))
            text = f"Where does the {one.subject} lie, seen from the {one.object}?"
            yield from self._choice("SR", template, text, [one.relation], wrong, str)

    def _inferences(self) -> Iterator[Question]:
        for place, one in enumerate(self._one.inferences, start=1):
            template = f"le-{place}"
            if one.fails and len(one.holds) + len(one.fails) > 2:
                yield from self._choice("LE", template, one.question, one.holds, one.fails, str, "multi_choice")
            statements = [(one.holds[0], "yes"), *((text, "no") for text in one.fails[:1])]
            statement, answer = self._draw(template, "statement").choice(statements)
            text = f"Judge from the signs of the lesion whether this is true: {statement}"
            yield self._question("LE", "judgement", f"{template}-judgement", text, [answer])

    def _diagnosis(self) -> Iterator[Question]:
        if self._fused is None:
            return
        words, fused = self._words.diseases, self._fused
        named = [entry.id for entry in fused.placed]
        if fused.scored:
            right = list(fused.first)
            wrong = self._wrong(words, "DD", "dd-choice", right, banned=named)
            text = "Which disease does the image show?" if len(right) == 1 else "Which diseases come first in question?"
            yield from self._choice("DD", "dd-choice", text, right, wrong, lambda name: words.term(name).name)
            first = [words.term(name) for name in right]
            yield self._question(
                "DD",
                "short_answer",
                "dd-open",
                "Which disease does the image show? Name the most likely one in a few words.",
                [word for term in first for word in (term.name, *term.synonyms)],
            )
        wrong = self._wrong(words, "DD", "dd-ranking", named)
        text = "Which diseases come into question? Rank them."
        yield from self._choice("DD", "dd-ranking", text, named, wrong, lambda name: words.term(name).name, "ranking")

    def _advice(self) -> Iterator[Question]:
        texts = [text for one in self._one.advice for text in (one.text, *one.accepted)]
        if texts:
            text = "What would you advise this patient to do next? Answer in one or two sentences."
            yield self._question("ST", "short_answer", "st-advice", text, list(dict.fromkeys(texts)))
