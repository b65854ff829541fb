"""Every exception that opro raises on purpose.

OproError                 anything below; its text is one line for a person
├── ConfigError           a setting, file or data that can't work (exit code 2)
├── RunError              a run that can't go on (exit code 1)
│   ├── FatalEndpointError    the endpoint refuses us for good: key, quota, model
│   └── ScoreError            a judge broke its contract, or a user's scorer raised
├── BudgetExceeded        a budget is spent: the run ends cleanly
├── Interrupted           a signal asked the run to stop
└── CallFailed            one call got no usable answer, after its retries
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OproError(Exception):
    """The base of all; `str(error)` is one line for a person."""


class ConfigError(OproError):
    """A setting, file or data set that can't work, found before anything is spent."""


class RunError(OproError):
    """The run can't go on; what is finished is kept."""


class FatalEndpointError(RunError):
    """The endpoint refuses every call of ours: a bad key, no quota, no such model."""


class ScoreError(RunError):
    """A score outside [0, 1] or not finite, or a scorer that raised."""


class BudgetExceeded(OproError):
    """A budget is spent; no further request is sent."""


class Interrupted(OproError):
    """A signal asked the run to stop; no further request is sent."""


class CallFailed(OproError):
    """One model call got no usable answer, retries included.

    Args:
        kind: the fault's name in the table of `opro.llms.faults`.
        message: what happened, one line.
        attempts: requests that were sent for it.
    """

    def __init__(self, kind: str, message: str, attempts: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts

    def __reduce__(self) -> tuple[type[CallFailed], tuple[str, str, int]]:
        return type(self), (self.kind, str(self), self.attempts)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the known name closest to `name`, or ''."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""
