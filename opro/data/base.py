"""What a data set promises."""

from __future__ import annotations

from abc import ABC, abstractmethod

from opro.types import Dataset


class Data(ABC):
    """Loads tasks; called once, before any model call.

    Attributes:
        step_size: tasks per step; None is the training split's size. OPRO scores on all of
            them, so a smaller value is refused by its setup.
    """

    step_size: int | None = None

    @abstractmethod
    def load(self) -> Dataset:
        """Read, check and split. Raises ConfigError naming file and line."""

    def outline(self) -> Dataset | None:
        """Return a stand-in of the published sizes, to count calls with; None where not known.

        For `plan=true` without files: its tasks have invented texts and must never be run.
        """
        return None
