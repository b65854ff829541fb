"""The options of a multiple-choice task: their letters, their texts and the right one."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from opro.types import Task

_LISTED = re.compile(r"^\s*\(([A-Z])\)[ \t]*(.*)$", re.MULTILINE)
_LETTER = re.compile(r"[\s(\[（]*([A-Za-z])[\s)\]）.:]*")


@dataclass(frozen=True)
class Options:
    """What a task lets one choose from.

    Attributes:
        letters: `ABCD`.
        texts: one per letter, or empty when unknown.
    """

    letters: str
    texts: tuple[str, ...] = ()

    def letter_of(self, answer: str) -> str | None:
        """Return the letter that an answer names, or None.

        `B`, `(b)` and `B.` name the letter; else the text of a choice does; else the texts of
        choices in a row joined by a comma do (an option that its data set cut at commas, as
        BIG-Bench Hard did three times): the first of the row.
        """
        match = _LETTER.fullmatch(answer)
        if match is not None and match[1].upper() in self.letters:
            return match[1].upper()
        texts = [level(text) for text in self.texts]
        wanted = level(answer)
        for size in range(1, len(texts) + 1):
            for start in range(len(texts) - size + 1):
                if ", ".join(texts[start : start + size]) == wanted:
                    return self.letters[start]
        return None

    def named(self, letter: str) -> str:
        """Return a letter with its text, as a person would write it: `(B) east`."""
        index = self.letters.index(letter)
        return f"({letter}) {self.texts[index]}" if self.texts else f"({letter})"


def level(text: str) -> str:
    """Return `text` in one case, with every run of blanks as one blank."""
    return " ".join(text.split()).casefold()


def options_of(task: Task, letters: str | None) -> Options | None:
    """Return a task's options, or None when it shows none.

    They come from `task.extra["choices"]` (a list of texts), else from the lines `(A) …`, `(B) …`
    of the task's text, else from `letters` without texts.
    """
    choices = task.extra.get("choices")
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        texts = tuple(map(str, choices))[: len(string.ascii_uppercase)]
        return Options(letters=string.ascii_uppercase[: len(texts)], texts=texts)
    listed = _listed(task.text())
    if listed and (letters is None or len(listed) == len(letters)):
        return Options(letters=string.ascii_uppercase[: len(listed)], texts=listed)
    return None if letters is None else Options(letters=letters)


def _listed(text: str) -> tuple[str, ...]:
    """Return the texts of the lines (A), (B), … that begin at A and leave no letter out."""
    texts: list[str] = []
    for match in _LISTED.finditer(text):
        if match[1] == string.ascii_uppercase[len(texts) % 26] and len(texts) < 26:
            texts.append(match[2].strip())
    return tuple(texts) if len(texts) > 1 else ()
