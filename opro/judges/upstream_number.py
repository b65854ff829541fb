"""Judge `upstream_number`: the authors' rule for GSM8K, MultiArith and BBH's counting tasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from opro.judges.upstream import Upstream
from opro.judges.upstream_match import matches
from opro.judges.upstream_text import Form
from opro.types import Task


class UpstreamNumber(Upstream):
    """Gives 1 when the authors' normal form of the reply, a number, equals the answer."""

    def __init__(
        self, *, num_decimals: Annotated[int, Field(ge=0, le=15)] = 0, boxed: bool = False
    ) -> None:
        super().__init__(Form(number=True, decimals=num_decimals), boxed)

    def _matches(self, task: Task, found: str) -> bool:
        return matches(self.expected(task), found, choices=None, included=False)
