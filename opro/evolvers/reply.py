"""From an optimizer's reply to an instruction.

Each parser returns the instruction, or None where its rule finds none (then the reply is skipped
with the rule's reason). `upstream_*` are the authors' rules, which take something from almost any
reply; `strict` takes one complete pair or nothing.
"""

from __future__ import annotations

import re

_PAIR = {tag: re.compile(rf"<{tag}>(.*?)</{tag}>", re.DOTALL) for tag in ("INS", "Start", "TEXT")}
_BRACKETS = re.compile(r"\[(.*?)\]")  # on one line, as in the authors' rule


def upstream_tags(reply: str, tag: str) -> str:
    """Return what lies between the first opening and the first closing tag, stripped.

    A missing opening tag means from the start, a missing closing tag to the end; reversed tags
    give ''.
    """
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = reply.index(opening) + len(opening) if opening in reply else 0
    end = reply.index(closing) if closing in reply else len(reply)
    return reply[start:end].strip()


def upstream_brackets(reply: str) -> str:
    """Return the text in the first pair of square brackets, stripped; '' when there is none."""
    found = _BRACKETS.search(reply)
    return found[1].strip() if found else ""


def upstream_text(reply: str) -> str:
    """Return the first `<TEXT>…</TEXT>`, stripped; '' when there is none."""
    found = _PAIR["TEXT"].search(reply)
    return found[1].strip() if found else ""


def strict(reply: str, tag: str | None) -> str | None:
    """Return the only complete pair's text, stripped; None for no pair or more than one.

    Args:
        reply: the optimizer's reply; a code fence around the pair doesn't matter.
        tag: `INS`, `Start` or `TEXT`; None for square brackets.
    """
    found = (_BRACKETS if tag is None else _PAIR[tag]).findall(reply)
    return found[0].strip() if len(found) == 1 else None


def with_prefix(reply: str, prefix: str) -> str:
    """Return the reply with the beginning that was given to it; some endpoints repeat that."""
    return reply if reply.startswith(prefix) else prefix + reply


def polish(text: str, add_period: bool = False) -> str:
    """Return the authors' polished form: stripped, without `**`, first letter upper-case.

    Args:
        text: the instruction.
        add_period: also end it with a full stop unless it ends in punctuation.
    """
    text = text.strip()
    if not text:
        return ""
    text = text.replace("**", "")
    if len(text) > 1:
        text = text[0].upper() + text[1:]
    if add_period and not text.endswith((".", "?", "!")):
        text += "."
    return text
