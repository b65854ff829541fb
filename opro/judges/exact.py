"""Judge `exact`: the whole output equals the expected answer.

Rule: output and answer are compared as text, composed alike (Unicode NFC), with blanks at both
ends dropped unless `strip: false`; `ignore_case` and `squeeze` (every run of blanks and line breaks
counts as one blank) loosen it. Any non-blank output is an answer, so nothing is ever unparsed.
"""

from __future__ import annotations

import unicodedata

from opro.judges.base import Ask, Judge
from opro.judges.targets import required
from opro.types import Rollout, Task, Verdict


class Exact(Judge):
    """Gives 1 to an output equal to the expected answer, else 0."""

    def __init__(
        self, *, strip: bool = True, ignore_case: bool = False, squeeze: bool = False
    ) -> None:
        self._strip = strip
        self._ignore_case = ignore_case
        self._squeeze = squeeze

    def check(self, task: Task) -> None:
        """Raise ConfigError for a missing or blank answer."""
        required(task, "exact")

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Compare the whole output."""
        same = self._plain(rollout.output) == self._plain(self.expected(task))
        answer = rollout.output.strip() if self._strip else rollout.output
        return self.verdict(task, answer, float(same))

    def _plain(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        if self._squeeze:
            text = " ".join(text.split())
        if self._strip:
            text = text.strip()
        return text.casefold() if self._ignore_case else text
