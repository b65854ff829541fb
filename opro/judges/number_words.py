"""Number words from zero to ninety-nine."""

from __future__ import annotations

import re

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

_PATTERN = re.compile(
    rf"""\W{{0,8}}(?P<minus>(?:minus|negative)\s)?
    (?:(?P<tens>{"|".join(_TENS)})(?:[\s-](?P<unit>{"|".join(_SMALL[1:10])}))?
    |(?P<small>{"|".join(sorted(_SMALL, key=len, reverse=True))}))
    (?![\w-])(?!\s(?:of|hundred|thousand|million|billion)\b)""",
    re.VERBOSE | re.IGNORECASE,
)


def leading_word(text: str) -> int | None:
    """Return the value of the number word that `text` begins with, or None.

    Words that count further (`one hundred`) or pick (`one of them`) are none.
    """
    match = _PATTERN.match(text)
    if match is None:
        return None
    if match["small"]:
        size = _SMALL.index(match["small"].lower())
    else:
        size = 10 * (_TENS.index(match["tens"].lower()) + 2)
        size += _SMALL.index(match["unit"].lower()) if match["unit"] else 0
    return -size if match["minus"] else size
