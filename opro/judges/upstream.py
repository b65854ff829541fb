"""What the three judges of OPRO's authors share."""

from __future__ import annotations

from abc import abstractmethod

from opro.judges.base import Ask, Judge
from opro.judges.targets import required
from opro.judges.upstream_text import Form, normalise
from opro.types import Rollout, Task, Verdict


class Upstream(Judge):
    r"""Compares a reply's normal form as the authors do; an empty normal form is unparsed.

    Args:
        form: what a reply is read as.
        boxed: take what the first `\boxed{…}` holds, unchanged, when there is one; the authors
            do so when they evaluate GPT scorers, not in the search.
    """

    def __init__(self, form: Form, boxed: bool) -> None:
        self._form = form
        self._boxed = boxed

    def check(self, task: Task) -> None:
        """Raise ConfigError for a missing or blank answer."""
        required(task, "upstream")

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Normalise the output and compare."""
        found = self._read(rollout.output, self._form_of(task))
        if not found:
            return self.verdict(task, None, 0.0)
        return self.verdict(task, found, float(self._matches(task, found)))

    @abstractmethod
    def _matches(self, task: Task, found: str) -> bool:
        """Return whether the normal form `found` is right."""

    def _form_of(self, task: Task) -> Form:
        """Return what a reply to `task` is read as."""
        return self._form

    def _read(self, reply: str, form: Form) -> str:
        boxed = _in_box(reply) if self._boxed else None
        text = normalise(reply, form) if boxed is None else boxed
        # What the authors cut from every parsed answer.
        return text.strip(":").strip().partition("\n")[0].partition("Q:")[0]


def _in_box(reply: str) -> str | None:
    mark = "\\boxed{"
    for line in reply.split("\n"):
        start = line.find(mark)
        end = line.find("}", start + len(mark))
        if 0 <= start < end:
            return line[start + len(mark) : end]
    return None
