"""What each kind of reviewer is asked: the fields of a form, whatever tool shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sonogauge._errors import BadInput
from sonogauge.analyses.errors import CAUSES, QUESTION, SECOND

OK: Final = "ok"
FAULT: Final = "fault"
SIGNED: Final = "signed off"
NOT_SIGNED: Final = "not signed off"
CORRECTION: Final = "correction"
ADJUDICATOR: Final = "adjudicator:"
# Fields that describe a vote; they are no question of their own.
CAUSE, COMMENT, SIGN_OFF = "cause", "comment", "sign_off"


@dataclass(frozen=True)
class FormField:
    """One field: "choice" of `choices`, "options" = those of the item, or free "text"."""

    name: str
    title: str
    kind: Literal["choice", "options", "text"] = "choice"
    choices: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True)
class ReviewForm:
    """What one role is asked about one item.

    role: stored with each vote. questions: fields whose answers are votes. about: further fields. needs_replies: the
    form shows a model's reply. shows: facts shown beside image and question ("reference", "facts").
    """

    name: str
    role: str
    questions: tuple[FormField, ...]
    about: tuple[FormField, ...] = ()
    needs_replies: bool = False
    shows: tuple[str, ...] = ("reference", "facts")

    @property
    def fields(self) -> tuple[FormField, ...]:
        """All fields in their order."""
        return (*self.questions, *self.about)


def _check(name: str, title: str) -> FormField:
    return FormField(name, title, choices=(OK, FAULT))


def _faults(*causes: str) -> tuple[FormField, ...]:
    return (
        FormField(CAUSE, "Cause of the fault", choices=(*causes, "other"), required=False),
        FormField(COMMENT, "Comment", "text", required=False),
    )


_CORRECTION: Final = FormField(CORRECTION, "Right answer, if the one given is wrong", "options", required=False)

FORMS: Final[dict[str, ReviewForm]] = {
    form.name: form
    for form in (
        ReviewForm(
            "engineer",
            "engineer",
            (
                _check("files", "Does the file open, whole and right way up?"),
                _check("metadata", "Are the facts right?"),
            ),
            _faults("broken file", "wrong size or spacing", "wrong metadata", "duplicate", "text burnt in"),
        ),
        ReviewForm(
            "expert",
            "expert",
            (
                _check("label", "Is the answer right?"),
                _check("image", "Is the image fit for the question?"),
                _check("unit", "Are unit and range right?"),
                _check("terms", "Are the terms right?"),
                _CORRECTION,
            ),
            _faults("wrong label", "image unfit", "wrong unit", "wrong term", "several right answers"),
        ),
        ReviewForm(
            "clinician",
            "clinician",
            (
                _check("diagnosis", "Is the diagnosis right?"),
                _check("prompt", "Is the question clear and answerable from the image?"),
                _CORRECTION,
            ),
            (
                FormField(SIGN_OFF, "Sign-off", choices=(SIGNED, NOT_SIGNED), required=False),
                *_faults("wrong diagnosis", "not answerable from the image", "unclear question", "harmful advice"),
            ),
        ),
        ReviewForm(
            "cause",
            "reader",
            (
                FormField(QUESTION, "Why is the answer wrong?", choices=tuple(CAUSES)),
                FormField(SECOND, "Second cause", choices=tuple(CAUSES), required=False),
            ),
            (FormField(COMMENT, "Comment", "text", required=False),),
            needs_replies=True,
            shows=("reference",),
        ),
        ReviewForm(
            "verdict",
            "physician",
            (FormField("verdict", "Is the answer right?", choices=("0", "0.5", "1")),),
            (FormField(COMMENT, "Why", "text", required=False),),
            needs_replies=True,
            shows=("reference",),
        ),
        ReviewForm(
            "answer",
            "physician",
            (
                FormField("answer", "Your answer", "options", required=False),
                FormField("answer_text", "Your answer in words or a number", "text", required=False),
            ),
            shows=(),
        ),
    )
}
# Between several words of one vote.
JOINED: Final = " + "
# Forms of answers whose options a reviewer clicks; any other answer is written.
CLICKED: Final = ("choice", "multi_choice", "place")
QUALITY: Final = ("engineer", "expert", "clinician")


def load_form(name: str) -> ReviewForm:
    """Return a form by name; raise BadInput for an unknown one."""
    if name not in FORMS:
        raise BadInput(f"no form '{name}'", field="for", fix="known: " + ", ".join(FORMS))
    return FORMS[name]
