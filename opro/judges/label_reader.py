"""Which label of a set a reply names; the rule stands in `opro.judges.label`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal

from opro.judges.cues import GAP, ahead, behind, last
from opro.judges.words import any_of, fold

Several = Literal["first", "last", "none"]


@dataclass(frozen=True)
class LabelReader:
    """The compiled patterns of one set of labels."""

    cued: tuple[re.Pattern[str], ...]
    plain: re.Pattern[str]
    names: dict[str, str]

    def read(self, text: str, several: Several = "none") -> str | None:
        """Return the label that `text` names, or None.

        Args:
            text: a reply.
            several: what counts when several labels occur and no cue decides.
        """
        cued = last(self.cued, text)
        name = cued and self._name(cued)
        if name:
            return name
        places: dict[str, int] = {}
        for match in self.plain.finditer(text):
            name = self._name(match)
            if name and (several == "last" or name not in places):
                places[name] = match.start()
        if len(places) <= 1 or several == "none":
            return next(iter(places)) if len(places) == 1 else None
        pick = max if several == "last" else min
        return pick(places, key=lambda name: places[name])

    def _name(self, match: re.Match[str]) -> str | None:
        # None for the rare letter that `re` takes for another and casefold doesn't (dotted I).
        return self.names.get(fold(match["label"]))


@functools.lru_cache(maxsize=64)
def reader(labels: tuple[str, ...], cues: tuple[str, ...]) -> LabelReader:
    """Return the reader for a set of labels, compiled once."""
    label = rf"(?P<label>(?i:{any_of(labels)}))"
    return LabelReader(
        cued=(re.compile(behind(cues) + GAP + label), re.compile(label + ahead(cues))),
        plain=re.compile(rf"(?<!not\s)(?<!Not\s)(?<!NOT\s)(?<!n't\s)(?<!n’t\s){label}"),
        names={fold(name): name for name in labels},
    )
