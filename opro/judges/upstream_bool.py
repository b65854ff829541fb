"""Judge `upstream_bool`: the authors' rule for BBH's tasks of true/false, yes/no, valid/invalid."""

from __future__ import annotations

from opro.judges.upstream import Upstream
from opro.judges.upstream_match import matches
from opro.judges.upstream_text import Form
from opro.types import Task


class UpstreamBool(Upstream):
    """Gives 1 when the authors' normal form of the reply, a truth value, is or holds the answer."""

    def __init__(self, *, boxed: bool = False) -> None:
        super().__init__(Form(boolean=True), boxed)

    def _matches(self, task: Task, found: str) -> bool:
        return matches(self.expected(task), found, choices=None, included=True)
