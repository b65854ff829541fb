"""How OPRO's authors compare a reply's normal form with the expected answer.

The behaviour is that of google-deepmind/opro (`opro/evaluation/eval_utils.py`, Apache-2.0), quirks
included; the code is ours. Its quirks, each kept on purpose:

- punctuation doesn't count, so -5 equals 5;
- where the answer isn't a number, it is right already when the reply's normal form holds it
  anywhere: `valid` is in `invalid`, the letter `b` in `because`.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from opro.judges.upstream_text import BOOLEANS, unpunctuated
from opro.types import Task

LETTERS = string.ascii_uppercase
_LETTERS = string.ascii_lowercase
_SPLIT = re.compile(r"\([A-Z]\)|A:")


@dataclass(frozen=True)
class Choices:
    """The texts of a question's choices, in lower case, by place: the first is A's."""

    texts: tuple[str, ...]
    count: int

    @classmethod
    def of(cls, question: str) -> Choices:
        """Read the choices from a question that names them as `(A) … (B) …`."""
        pieces = [piece.strip().lower() for piece in _SPLIT.split(question)][1:]
        named = 0
        while named < len(_LETTERS) and f"({_LETTERS[named].upper()})" in question:
            named += 1
        return cls(tuple(piece.partition("\n")[0] for piece in pieces), named)

    def knows(self, answer: str) -> bool:
        """Return whether the answer is a letter with a text here."""
        letter = _unbracketed(answer.lower())
        return letter in set(_LETTERS) and _LETTERS.index(letter) < len(self.texts)


def choices_of(task: Task) -> Choices | None:
    """Return a task's choices, or None when it has none.

    They are read from the task's text, `(A) … (B) …`, as the authors read them from their prompt;
    where the text names none, they are `task.extra["choices"]`.
    """
    text = task.text()
    given = task.extra.get("choices") or ()
    if "(A)" not in text:
        text += "".join(
            f"\n({letter}) {choice}" for letter, choice in zip(LETTERS, given, strict=False)
        )
    return Choices.of(text) if "(A)" in text else None


def matches(answer: str, reply: str, *, choices: Choices | None, included: bool) -> bool:
    """Return whether a reply's normal form is right.

    Args:
        answer: the expected answer.
        reply: the normal form.
        choices: those of a multiple-choice question, None otherwise.
        included: whether an answer that the reply holds anywhere is right.
    """
    answer, reply = answer.lower(), reply.lower()
    if choices is not None and not choices.knows(answer):
        return False
    if included and answer in reply:
        return True
    true, given = _unbracketed(answer), _unbracketed(reply)
    if given == true or unpunctuated(given).strip() == unpunctuated(true).strip():
        return True
    if choices is not None and _text_matches(choices, _LETTERS.index(true), given):
        return True
    return _means_the_same(true, given)


def _unbracketed(text: str) -> str:
    is_letter = len(text) == 3 and text[0] == "(" and text[2] == ")" and text[1] in _LETTERS
    return text[1] if is_letter else text


def _text_matches(choices: Choices, right: int, given: str) -> bool:
    """Return whether the reply is the right choice's text, or holds it and no other's."""
    text = choices.texts[right]
    bare = unpunctuated(given).strip()
    if text == given or (text == bare and not set("!?.") & set(given)):
        return True
    if text not in given:
        return False
    others = [choices.texts[place] for place in range(choices.count) if place != right]
    rest = given if any(text in other for other in others) else given.replace(text, "")
    return not any(other in rest for other in others)


def _means_the_same(true: str, given: str) -> bool:
    """Return whether the reply says the Boolean answer as true, false, 1 or 0."""
    for pair in BOOLEANS:
        if true in pair:
            meant = ("false", "true")[pair.index(true)]
            return given.strip() == meant or given == ("0", "1")[pair.index(true)]
    return False
