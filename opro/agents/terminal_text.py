"""What is said in a shell session: the protocol, the reading of replies, what comes back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opro.agents.container import MAX_SCRIPT, Ran

PROTOCOL = """You work in a Linux shell that you reach by writing. A reply may hold one block:

```bash
the commands
```

It is run by sh in the folder /work. The next message shows you its exit code and what it printed. \
Each block starts a new shell in /work: files stay, variables and cd don't. Nothing can be typed \
into a running command. When the task is solved, write DONE on a line of its own, outside of any \
block. You have {turns} replies in all."""
"""Stands below the instruction in the system message."""
NO_BLOCK = "Nothing was run: the reply held no ```bash block and no line DONE."
CUT = "Nothing was run: the reply was cut off by the token limit inside its block."
MORE_BLOCKS = "Only the first block of the reply was run."

_OPEN = re.compile(r"^[ \t]*```[ \t]*(?:bash|sh|shell)[ \t]*\r?\n", re.IGNORECASE | re.MULTILINE)
_CLOSE = re.compile(r"^[ \t]*```[ \t]*\r?$", re.MULTILINE)
_DONE = re.compile(r"^[ \t*_`]*DONE[ \t*_`.!]*\r?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply as it is understood.

    Attributes:
        script: of the first block; None when there is none.
        done: whether a line outside of it says DONE.
        problem: what the model is told in place of or besides an output; '' for nothing.
    """

    script: str | None
    done: bool
    problem: str


def read_reply(text: str) -> Reply:
    """Return what a reply asks for; an opened block counts only when it is closed."""
    start = _OPEN.search(text)
    if start is None:
        done = _DONE.search(text) is not None
        return Reply(script=None, done=done, problem="" if done else NO_BLOCK)
    end = _CLOSE.search(text, start.end())
    if end is None:
        return Reply(script=None, done=False, problem=CUT)
    script, rest = text[start.end() : end.start()], text[end.end() :]
    done = any(_DONE.search(part) for part in (text[: start.start()], rest))
    if "\0" in script or len(script.encode("utf-8", "replace")) > MAX_SCRIPT:
        problem = f"Nothing was run: a block has at most {MAX_SCRIPT} bytes and no NUL."
        return Reply(script=None, done=False, problem=problem)
    more = _OPEN.search(rest) is not None
    return Reply(script=script, done=done, problem=MORE_BLOCKS if more else "")


def shown(ran: Ran, limit: int, note: str) -> str:
    """Return a command's outcome as the model reads it.

    Args:
        ran: what it did.
        limit: characters of its output.
        note: why it was killed, or ''.
    """
    code = "none" if ran.code is None else str(ran.code)
    head = f"exit code: {code}{f' ({note})' if note else ''}"
    text = decode(ran.output)
    return f"{head}\noutput:\n{clip_middle(text, limit)}" if text else f"{head}\nno output"


def decode(data: bytes) -> str:
    """Return bytes as text whatever they are; what isn't UTF-8 becomes the replacement mark."""
    return data.decode("utf-8", "replace")


def clip_middle(text: str, limit: int) -> str:
    """Return `text`, or its two ends around a note on what is left out, when longer."""
    if len(text) <= limit:
        return text
    tail = limit // 2
    head = limit - tail
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[-tail:]}"
