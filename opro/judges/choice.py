r"""Judge `choice`: the option that the reply ends up with is the right one.

The options are `task.extra["choices"]` (texts; A is the first), else the lines `(A) …`, `(B) …`
of the task's text, else `letters`. The expected answer may be `B`, `(b)`, `B.` or a choice's text.

Rule for reading a reply, first match wins:
1. The last letter right behind or before a cue (`the answer is B`, `Answer: **(b)**`,
   `\boxed{B}`, `<answer>b</answer>`, `B is correct`; see `opro.judges.cues`). A lower-case letter
   counts in brackets, or when the sentence ends there or goes on with `because`: `the answer is
   a car` names no option. `A or B` names none either.
2. The last choice's text right behind a cue (`the answer is east`).
3. The letter that is essentially the whole reply: `b`, `B.`, `**(B)**`, `Option B`.
4. The only letter marked as an option's: in brackets anywhere, or at a line's start as `B.`, `B)`
   or alone. With several letters so marked, the one that makes the last line, alone or with its
   own text.
5. The choice's text that is the whole reply.
Otherwise the output is unparsed. A bare letter inside a sentence never counts.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from opro.errors import ConfigError
from opro.judges.base import Ask, Judge
from opro.judges.choice_reader import reader
from opro.judges.options import options_of
from opro.judges.targets import required
from opro.types import Rollout, Task, Verdict


class Choice(Judge):
    """Gives 1 to an output that names the right option, else 0."""

    def __init__(
        self,
        *,
        letters: Annotated[str, Field(pattern="^[A-Z]{2,26}$")] | None = None,
        cues: Annotated[list[str], Field(min_length=1)] | None = None,
    ) -> None:
        if letters is not None and not "ABCDEFGHIJKLMNOPQRSTUVWXYZ".startswith(letters):
            raise ConfigError(f"judge.letters={letters}: must run from A without a gap, e.g. ABCD")
        self._letters = letters
        default = ("answer", *(f"{rank} {noun}" for rank in _RANKS for noun in _NOUNS))
        self._cues = tuple(cues) if cues else default

    def check(self, task: Task) -> None:
        """Raise ConfigError when the task shows no options or its answer is none of them."""
        answer = required(task, "choice")
        options = options_of(task, self._letters)
        if options is None:
            raise ConfigError(
                f"task {task.id!r}: no options: judge=choice needs extra['choices'], lines "
                "(A) …, (B) … in the task's text, or judge.letters"
            )
        if options.letter_of(answer) is None:
            raise ConfigError(
                f"task {task.id!r}: answer={answer!r} is none of the letters {options.letters} "
                "nor a choice's text"
            )

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Read the option that the output names."""
        options = options_of(task, self._letters)
        if options is None:
            return self.verdict(task, None, 0.0)
        found = reader(options.letters, self._cues).read(rollout.output, options)
        right = found is not None and found == options.letter_of(super().expected(task))
        return self.verdict(task, found, float(right))

    def expected(self, task: Task) -> str:
        """Return the right letter with its text: `(B) east`."""
        answer = super().expected(task)
        options = options_of(task, self._letters)
        letter = options.letter_of(answer) if options else None
        return options.named(letter) if options and letter else answer


_RANKS = ("correct", "right", "best", "final")
_NOUNS = ("option", "choice", "letter")
