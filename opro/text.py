"""Small pure helpers for model-made text, shared by agents, judges and the core."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence


def md5_of(text: str) -> str:
    """Return the hex md5 of the text's UTF-8 bytes; lone surrogates are hashed, not refused."""
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def clip(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` - 1 characters and `…` when it is longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def strip_think(text: str, tags: Sequence[str]) -> str | None:
    """Return `text` without its thinking blocks, or None when one is never closed.

    A complete pair goes with what is inside. A closing tag without an opening one (the chat
    template opened it) drops all before it. An opening tag without its closing one means that
    the model never got to its answer: None. With nothing to remove, `text` comes back as it is;
    otherwise blanks at both ends go too, so a block with nothing after it leaves ''.

    Args:
        text: a model's reply.
        tags: tag names such as `think`, without angle brackets, in any case; none: no change.
    """
    if not tags or "<" not in text:
        return text
    kept: list[str] = []
    opened: str | None = None
    start = 0
    for match in _tag_pattern(tuple(tags)).finditer(text):
        name = match["name"].lower()
        if opened is not None and (not match["slash"] or name != opened):
            continue
        if match["slash"] and opened is None:
            kept.clear()
        elif match["slash"]:
            opened = None
        else:
            kept.append(text[start : match.start()])
            opened = name
        start = match.end()
    if opened is not None:
        return None
    return "".join([*kept, text[start:]]).strip() if start else text


@functools.lru_cache(maxsize=32)
def _tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True))
    return re.compile(rf"<(?P<slash>/?)(?P<name>{names})\s*>", re.IGNORECASE)
