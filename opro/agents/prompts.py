"""The authors' prompts for a scorer: where the instruction stands in the question."""

from __future__ import annotations


def chat_prompt(instruction: str, question: str, position: str, include_qa: bool) -> str:
    """Return the user message, byte for byte as google-deepmind/opro writes it.

    Args:
        instruction: '' leaves no trace of its place.
        question: the problem's text.
        position: `before_Q`, `Q_begin`, `Q_end` or `A_begin`; the first and the last need the
            marks and have them whatever `include_qa` says.
        include_qa: put `Q: ` before the question and `A:` after it.
    """
    marked = include_qa or position in ("before_Q", "A_begin")
    asked = question
    if instruction and position == "Q_begin":
        asked = f"{instruction}\n{question}"
    elif instruction and position == "Q_end":
        asked = f"{question}\n{instruction}"
    if not marked:
        return asked
    before = f"{instruction}\n" if instruction and position == "before_Q" else ""
    after = f" {instruction}" if instruction and position == "A_begin" else ""
    return f"{before}Q: {asked}\n\nA:{after}"
