"""Which number of a text is its final one; the rule stands in `opro.judges.number`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from opro.judges.cues import ahead, behind
from opro.judges.number_words import leading_word
from opro.judges.numbers import NumberReader, plain

_BEHIND = 200
_AHEAD = 60
"""Characters behind and before a cue in which its number is looked for."""

_CUES = 100
"""How many cues are looked at, from the last one, and how many bold texts at most: more is a
model that repeats itself."""

_SHORT = 4
"""A text of so many words may be a number word alone, with its unit."""

_END = re.compile(r"\n|[.!?](?=\s|$)")
_CALCULATION = re.compile(r"[\d\s.,+\-−*/×÷·=()$€£%{}\\^x]*=")
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_LISTED = re.compile(r"\s?\d+\s?[.):]\s?")
_HEADING = re.compile(r"\d+\s?[.):]\s{1,3}[^\W\d]|[^\W\d]")


@dataclass(frozen=True)
class _Segment:
    """What a cue points at; `before` when the text stands before its cue."""

    at: int
    text: str
    before: bool


class FinalNumber:
    """Reads the final number of a text.

    Args:
        numbers: what a number looks like.
        nouns: what a text may call its answer (`answer`).
    """

    def __init__(self, numbers: NumberReader, nouns: Sequence[str]) -> None:
        self._numbers = numbers
        self._behind = re.compile(behind(nouns))
        self._ahead = re.compile(ahead(nouns))

    def read(self, text: str) -> Fraction | None:
        """Return the final number of `text`, or None when it holds none."""
        text = plain(text)
        segments = self._segments(text)
        for value in map(self._of_segment, segments):
            if value is not None:
                return value
        for value in (self._bold(text), self._last(text)):
            if value is not None:
                return value
        return _word(segments, text)

    def _segments(self, text: str) -> list[_Segment]:
        """Return what the cues point at, the last cue first."""
        found = [_after(text, match) for match in deque(self._behind.finditer(text), _CUES)]
        found += [_before(text, match) for match in deque(self._ahead.finditer(text), _CUES)]
        known = [segment for segment in found if segment is not None]
        return sorted(known, key=lambda segment: segment.at, reverse=True)

    def _of_segment(self, segment: _Segment) -> Fraction | None:
        if segment.before:
            return self._last(segment.text)
        sum_ = _CALCULATION.match(segment.text)
        start = sum_.end() if sum_ else 0
        return self._first(segment.text[start:])

    def _bold(self, text: str) -> Fraction | None:
        """Return the value of all bold numbers when there is exactly one value."""
        bold = list(islice(_BOLD.finditer(text), _CUES + 1))
        if len(bold) > _CUES:
            return None
        values = {self._alone(match[1]) for match in bold} - {None}
        return values.pop() if len(values) == 1 else None

    def _alone(self, text: str) -> Fraction | None:
        """Return the number that `text` begins with, when only a unit follows."""
        matches = list(self._numbers.find(text))
        if len(matches) != 1 or text[: matches[0].start()].strip() or _LISTED.fullmatch(text):
            return None
        unit = text[matches[0].end() :]
        return self._numbers.value(matches[0]) if len(unit.split()) <= _SHORT - 1 else None

    def _first(self, text: str) -> Fraction | None:
        match = next(iter(self._numbers.find(text)), None)
        return None if match is None else self._numbers.value(match)

    def _last(self, text: str) -> Fraction | None:
        matches = deque(self._numbers.find(text), maxlen=1)
        return self._numbers.value(matches[0]) if matches else None


def _after(text: str, match: re.Match[str]) -> _Segment | None:
    segment = text[match.end() : match.end() + _BEHIND].lstrip(" \t\r\n*_:`")
    stop = _END.search(segment)
    if match.group() == "####" and _HEADING.match(segment):
        return None
    segment = segment[: stop.start()] if stop else segment
    return _Segment(at=match.end(), text=segment, before=False)


def _before(text: str, match: re.Match[str]) -> _Segment:
    segment = text[max(0, match.start() - _AHEAD) : match.start()]
    return _Segment(at=match.end(), text=_END.split(segment)[-1], before=True)


def _word(segments: Iterable[_Segment], text: str) -> Fraction | None:
    texts = [segment.text for segment in segments]
    if len(text.split(maxsplit=_SHORT)) <= _SHORT:
        texts.append(text)
    for candidate in texts:
        value = leading_word(candidate)
        if value is not None:
            return Fraction(value)
    return None
