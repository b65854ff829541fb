"""Whole words in a text, also in scripts that write none."""

from __future__ import annotations

import re

_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, kana, Han and hangul: their letters stand next to a word without ending it."""

WORD = rf"[^\W_{_UNSPACED}]"
"""A character class: a letter or digit that a whole word can't touch."""

START = rf"(?<!{WORD})(?<!{WORD}[-_])"
END = rf"(?!{WORD})(?![-_]{WORD})"
"""Word edges: `non-urgent` and `very_urgent` don't hold the word `urgent`; `*urgent*` does."""


def phrase(text: str) -> str:
    """Return a pattern for `text`, whose words may be apart by blanks, `_` or `-`."""
    pieces = [re.escape(piece) for piece in re.split(r"[\s_-]+", text) if piece]
    return r"[\s_-]{1,3}".join(pieces) if pieces else re.escape(text)


def any_of(texts: tuple[str, ...]) -> str:
    """Return a pattern for one of `texts` as whole words; the longest wins at a place."""
    longest = sorted(texts, key=len, reverse=True)
    return f"{START}(?:{'|'.join(phrase(text) for text in longest)}){END}"


def fold(text: str) -> str:
    """Return `text` with case, `_`, `-` and the width of blanks made alike."""
    return " ".join(re.split(r"[\s_-]+", text.strip())).casefold()
