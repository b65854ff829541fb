"""Judge `bbh`: reads a reply in the form in which its task is answered.

For data whose tasks are answered in several forms, as BIG-Bench Hard's are. The form follows from
the expected answer and the task's options, first match wins:
1. An option of the task's `(A) …`, `(B) …`: read as `judge=choice` reads it.
2. Yes or no, true or false, valid or invalid: the one word of its pair, as `judge=label` reads it.
3. A number: as `judge=number` reads it.
4. Any other text (closing brackets, sorted words): what stands behind the last cue (`the answer is
   …`) in its line, else the last line, or the whole reply, equal but for case, blanks, commas,
   quotes and a full stop at the end. Such a reply is never unparsed.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from opro.judges import choice_reader, label_reader
from opro.judges.base import Ask, Judge
from opro.judges.cues import behind
from opro.judges.final_number import FinalNumber
from opro.judges.numbers import NumberReader, spell
from opro.judges.options import options_of
from opro.judges.targets import required
from opro.judges.words import fold
from opro.types import Rollout, Task, Verdict

PAIRS = (("yes", "no"), ("true", "false"), ("valid", "invalid"))
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
_DECOR = " \t\r\n*_`\"'“”‘’:."


class Bbh(Judge):
    """Gives 1 to a right answer in its task's own form, else 0."""

    def __init__(self, *, cues: Annotated[list[str], Field(min_length=1)] | None = None) -> None:
        self._cues = tuple(cues or ("answer", "correct option", "correct choice"))
        self._behind = re.compile(behind(self._cues))
        self._numbers = FinalNumber(NumberReader("."), list(self._cues))

    def check(self, task: Task) -> None:
        """Raise ConfigError for a missing or blank answer."""
        required(task, "bbh")

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Read the output in the task's form."""
        answer, output = str(task.answer), rollout.output
        options = options_of(task, None)
        letter = options.letter_of(answer) if options else None
        if options is not None and letter is not None:
            found = choice_reader.reader(options.letters, self._cues).read(output, options)
            return self.verdict(task, found, float(found == letter))
        pair = next((pair for pair in PAIRS if fold(answer) in pair), None)
        if pair is not None:
            found = label_reader.reader(pair, self._cues).read(output)
            return self.verdict(task, found, float(found == fold(answer)))
        if _NUMBER.fullmatch(answer):
            number = self._numbers.read(output)
            shown = None if number is None else spell(number)
            return self.verdict(task, shown, float(number == self._numbers.read(answer)))
        return self._text(task, output)

    def expected(self, task: Task) -> str:
        """Return the right letter with its text, or the answer as it stands."""
        options = options_of(task, None)
        letter = options.letter_of(str(task.answer)) if options else None
        return options.named(letter) if options and letter else super().expected(task)

    def _text(self, task: Task, output: str) -> Verdict:
        found = self._last(output)
        wanted = _plain(str(task.answer))
        return self.verdict(task, found, float(wanted in (_plain(found), _plain(output))))

    def _last(self, output: str) -> str:
        """Return what is behind the last cue in its line, else the last line that isn't blank."""
        end = max((cue.end() for cue in self._behind.finditer(output)), default=0)
        line = output[end:].strip().partition("\n")[0] if end else ""
        return (line or output.strip().rpartition("\n")[2]).strip(_DECOR)


def _plain(text: str) -> str:
    return " ".join(text.replace(",", " ").split()).casefold().strip(_DECOR)
