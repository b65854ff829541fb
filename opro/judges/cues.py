r"""Where a reply says its final answer: the cues that several judges share.

A cue is `####`, `\boxed{`, a tag such as `<answer>`, or a noun (`answer`, …) with a link after it:
`is`, `would be`, `seems to be`, `:`, `=`, an arrow or the end of the line. `wrong answer` and
`incorrect answer` are none, and `the answer is not B` says nothing of B. Behind an answer, `is the
answer` and its like are cues too. Of several cued answers the last one counts: a reply that
thinks aloud ends with what it means.

Every repetition in these patterns is bounded, so a megabyte of text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_RANK = r"(?:correct|right|final|best|true|actual)"
_LINK = (
    r"(?:\s?\([^()\n]{0,40}\)|\s{1,3}(?:to|for|of)\b[^.:\n]{0,40}?)?[*_`\"')\]]{0,4}"
    r"(?:\s{1,3}(?:is|are|was|will\sbe|would\sbe|should\sbe|must\sbe|has\sto\sbe|could\sbe"
    r"|(?:seems|appears)(?:\sto\sbe)?)\b|\s{0,3}(?:[:=：]|->|→|⇒|\n))"
)
_FILLER = (
    r"(?:the|that|thus|therefore|just|simply|only|exactly|clearly|definitely|indeed|probably"
    r"|likely|most\slikely|option|choice|letter|label|category|class|text|textbf|mathrm|mathbf"
    r"|boxed)\b"
)
GAP = rf"(?:[\s*_`\"'“”‘’«$\\(\[{{<（【:=：]|(?i:{_FILLER})){{0,16}}"
"""What may stand between a cue and its answer: blanks, decoration, a few words."""


def behind(nouns: Sequence[str]) -> str:
    """Return a pattern for the cues that an answer follows.

    Args:
        nouns: what a reply may call its answer, in any case.
    """
    named = _names(nouns)
    said = rf"(?<![^\W_])(?<!wrong\s)(?<!incorrect\s){named}(?![^\W_]){_LINK}"
    return rf"(?:\#{{4}}|\\boxed\s?\{{|(?i:<{named}>|{said}))"


def ahead(nouns: Sequence[str]) -> str:
    """Return a pattern for the cues that follow an answer: `is the correct answer`."""
    return (
        r"[*_`\"'”’)\]}）.$]{0,4}\s{1,3}(?i:(?:is|was|would\sbe|must\sbe)\s"
        rf"(?:(?:the|my)\s(?:{_RANK}\s){{0,2}}{_names(nouns)}|(?:the\s)?(?:correct|right)))(?![^\W_])"
    )


def last(patterns: Sequence[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match of any pattern that ends last in `text`."""
    found: re.Match[str] | None = None
    for pattern in patterns:
        for match in pattern.finditer(text):
            if found is None or match.end() > found.end():
                found = match
    return found


def _names(nouns: Sequence[str]) -> str:
    words = (r"\s{1,3}".join(map(re.escape, noun.split())) for noun in nouns)
    return f"(?:{'|'.join(words)})"
