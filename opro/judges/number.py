r"""Judge `number`: the number that the reply ends up with equals the expected one.

One reader for both sides (`opro.judges.numbers` says what a number looks like): the expected answer
may be `1000`, `1,000`, `$1,000.00`, 1000.0 or a whole solution ending in `#### 1,000`.

Rule for reading a text, first match wins:
1. A cue (`#### 18`, `\boxed{18}`, `the answer is 18`, `18 is the answer`; see `opro.judges.cues`):
   the first number in the rest of the line or sentence, or the one behind the last `=` when that
   begins with a calculation (`the answer is 5 + 3 = 8`). Of several cues the last one with a
   number counts. `#### 2. Next step` and `#### Step 2` are headings, not cues.
2. A bold number (`**42**`, `**42 apples**`), when all bold numbers of the text are equal.
3. The last number of the text.
4. A number word (`ten`, `minus twenty-five`; zero to ninety-nine) behind a cue, or at the start of
   a text of at most four words.
Otherwise the output is unparsed.

Percent rule: a percent sign is a unit like any other and is dropped, on both sides: `60%` is 60. So
60% is right for 60 and for 60%, and wrong for 0.6.

Equal means exactly equal in value (29 = 29.00, 0.75 = 3/4) or apart by at most `tolerance`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from opro.errors import ConfigError
from opro.judges.base import Ask, Judge
from opro.judges.final_number import FinalNumber
from opro.judges.numbers import DecimalMark, NumberReader, spell
from opro.judges.targets import required
from opro.types import Rollout, Task, Verdict


class Number(Judge):
    """Gives 1 to an output whose final number equals the expected one, else 0."""

    def __init__(
        self,
        *,
        tolerance: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0,
        decimal_mark: DecimalMark = ".",
        cues: Annotated[list[str], Field(min_length=1)] | None = None,
    ) -> None:
        self._tolerance = Fraction(str(tolerance))
        self._final = FinalNumber(NumberReader(decimal_mark), cues or ["answer"])

    def check(self, task: Task) -> None:
        """Raise ConfigError when the answer holds no number."""
        answer = required(task, "number")
        if self._final.read(answer) is None:
            raise ConfigError(f"task {task.id!r}: answer={answer!r}: judge=number needs a number")

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Compare the final number of the output."""
        found = self._final.read(rollout.output)
        if found is None:
            return self.verdict(task, None, 0.0)
        target = self._final.read(super().expected(task))
        right = target is not None and abs(found - target) <= self._tolerance
        return self.verdict(task, spell(found), float(right))

    def expected(self, task: Task) -> str:
        """Return a short answer as the data states it, and a solution's number alone."""
        answer = super().expected(task).strip()
        if len(answer) <= 20 and "#" not in answer:
            return answer
        value = self._final.read(answer)
        return answer if value is None else spell(value)
