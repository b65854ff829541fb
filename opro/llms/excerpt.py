"""The start of a text that others wrote, safe to print on one line."""

from __future__ import annotations

from collections.abc import Iterable

LENGTH = 200
"""Characters kept."""


def excerpt(text: str | bytes, secrets: Iterable[str] = (), length: int = LENGTH) -> str:
    """Return the first characters of `text` without secrets, control or direction characters.

    Bytes are read as UTF-8, what isn't becomes the replacement character. A secret is cut out
    before the text is shortened, so that no part of it stays.
    """
    if isinstance(text, bytes):
        text = text[: 64 * length].decode("utf-8", errors="replace")
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    start = "".join(map(_visible, text[:length].strip()))
    return start + ("…" if len(text) > length else "")


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]
