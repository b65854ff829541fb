"""Model-made text made harmless for a terminal, a Markdown table and a Markdown fence."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, bidi and zero-width marks, lone surrogates
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&@$])")
_AUTOLINK = re.compile(r"://|\bwww\.", re.IGNORECASE)
_SUSPECT = re.compile(r"[^\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3040-\ud7ff]")
"""Everything outside a few ranges known to hold printable characters only: checked one by one."""


def visible(text: str, keep: str = "") -> str:
    r"""Return `text` with every character that hides or moves others written as an escape.

    NUL becomes `\x00`, a right-to-left override `\u202e`, a lone surrogate `\ud800`; what is
    left can always be encoded as UTF-8 and printed.

    Args:
        text: any text, also one that isn't valid Unicode.
        keep: control characters to leave as they are (newline and tab in a block).
    """

    def shown(match: re.Match[str]) -> str:
        char = match.group()
        if char in keep or unicodedata.category(char) not in _HIDDEN:
            return char
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _SUSPECT.sub(shown, text)


def plain(text: str, limit: int = 80) -> str:
    """Return `text` on one line of at most `limit` characters, safe to print.

    Runs of blanks become one, line breaks a `⏎`; what is cut off is marked by `…`.
    """
    if limit < 1:
        return ""
    head = text[: 8 * limit]  # never walk through a megabyte for one line
    joined = " ⏎ ".join(head.strip(" \t\r\n").splitlines())
    line = visible(re.sub(r"[ \t]+", " ", joined))
    if len(line) > limit or len(head) < len(text):
        return f"{line[: limit - 1].rstrip()}…"
    return line


def cell(text: str, limit: int = 80) -> str:
    """Return `text` as one line that a Markdown table shows literally.

    Args:
        text: any text.
        limit: characters shown, not counting the backslashes that guard them.
    """
    line = _SPECIAL.sub(r"\\\1", plain(text, limit))
    return _AUTOLINK.sub(lambda match: _unlinked(match.group()), line) or "(empty)"


def _unlinked(start: str) -> str:
    return f"\\{start}" if start == "://" else f"{start[:-1]}\\."


def fence(text: str, limit: int = 20_000, rest: str = "the run's state file") -> str:
    """Return `text` in a Markdown fence longer than any run of backticks inside it.

    Args:
        text: any text.
        limit: characters shown; a longer text is cut and the sentence below the fence says so.
        rest: where the whole text is.
    """
    shown = visible(text[:limit], keep="\n\t")
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    marks = "`" * max(3, longest + 1)
    block = f"{marks}text\n{shown}\n{marks}"
    if len(text) > limit:
        block += f"\n\nCut: {limit:,} of {len(text):,} characters are shown; all are in {rest}."
    return block
