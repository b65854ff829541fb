"""OPRO's meta-prompts, byte for byte as the authors' code writes them.

The wording is the method's own (google-deepmind/opro, Apache-2.0; see NOTICE). `gpt` and `palm`
are the texts for the two families of optimizers in the paper; `instructions_only` shows no
problems. `tests/evolvers/test_meta_prompt.py` holds all three to stored outputs of that code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Style = Literal["gpt", "palm", "instructions_only"]
Slot = Literal["before_Q", "Q_begin", "Q_end", "A_begin"]

_GPT_HEAD = (
    "Your task is to generate the instruction <INS>. Below are some previous instructions with"
    " their scores. The score ranges from 0 to 100.\n"
)
_GPT_TAIL = (
    "Generate an instruction that is different from all the instructions <INS> above, and has a"
    " higher score than all the instructions <INS> above. The instruction should begin with <INS>"
    " and end with </INS>. The instruction should be concise, effective, and generally applicable"
    " to all problems above."
)
_GPT_START_HEAD = (
    "Your task is to generate the answer starting sentence <Start>. Below are some previous"
    " starting sentences with their scores. The score ranges from 0 to 100.\n"
)
_GPT_START_TAIL = (
    "Generate a starting sentence that is different from all the <Start> sentences above, and has"
    " a higher score than all the <Start> sentences above. The starting sentence should begin with"
    " <Start> and end with </Start>. The starting sentence should be concise, effective, and"
    " generally applicable to all QA pairs above."
)
_GPT_PROBLEMS = "Below are some problems.\n"
_PALM_HEAD = (
    "I have some texts along with their corresponding scores. The texts are arranged in ascending"
    " order based on their scores, where higher scores indicate better quality.\n\n"
)
_PALM_PROBLEMS = (
    "The following exemplars show how to apply your text: you replace <INS> in each input with"
    " your text, then read the input and give an output. We say your output is wrong if your"
    " output is different from the given output, and we say your output is correct if they are"
    " the same. When replacing <INS> with an old piece of text above, we get wrong outputs on the"
    " following inputs.\n\n"
)
_PALM_TAIL = (
    "Write your new text that is different from the old ones and has a score as high as possible."
    " Write the text in square brackets."
)
_ONLY_HEAD = (
    "Create a piece of text at the {place} to enhance the precision in solving diverse"
    " {description}.\n\n"
)
_ONLY_PLACE = {
    "before_Q": "beginning of the question",
    "Q_begin": "beginning of the question",
    "Q_end": "end of the question",
    "A_begin": "beginning of the answer",
}


@dataclass(frozen=True, kw_only=True)
class Exemplar:
    """One training problem and the answer to show with it."""

    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a meta-prompt is laid out.

    Attributes:
        style: the wording.
        slot: where `<INS>` stands in a problem.
        include_qa: problems carry `Q:` and `A:`.
        exemplars_first: the problems come before the instructions.
        num_score_buckets: scores are shown as integers from 0 to this; None: rounded to three
            decimals (two by `instructions_only`, as the authors do).
        description: what `instructions_only` calls the problems.
    """

    style: Style
    slot: Slot
    include_qa: bool
    exemplars_first: bool
    num_score_buckets: int | None
    description: str = "problems"


def write(layout: Layout, pairs: Sequence[tuple[str, float]], exemplars: Sequence[Exemplar]) -> str:
    """Return the meta-prompt.

    Args:
        layout: its form.
        pairs: (instruction, score in [0, 1]) in the order shown, worst first.
        exemplars: the problems; none leaves that part out.
    """
    if layout.style == "instructions_only":
        return _instructions_only(layout, pairs)
    parts = [_history(layout, pairs)]
    if exemplars:
        parts.insert(0 if layout.exemplars_first else 1, _problems(layout, exemplars))
    return "\n\n".join([*parts, _tail(layout)])


def _history(layout: Layout, pairs: Sequence[tuple[str, float]]) -> str:
    if layout.style == "palm":
        head = _PALM_HEAD
    else:
        head = _GPT_START_HEAD if layout.slot == "A_begin" else _GPT_HEAD
    shown = (
        f"\ntext:\n{text}\nscore:\n{_score(score, layout.num_score_buckets, 3)}\n"
        for text, score in pairs
    )
    return head + "".join(shown)


def _tail(layout: Layout) -> str:
    if layout.style == "palm":
        return _PALM_TAIL
    return _GPT_START_TAIL if layout.slot == "A_begin" else _GPT_TAIL


def _problems(layout: Layout, exemplars: Sequence[Exemplar]) -> str:
    head = _PALM_PROBLEMS if layout.style == "palm" else _GPT_PROBLEMS
    return head + "".join(_problem(layout, exemplar) for exemplar in exemplars)


def _problem(layout: Layout, exemplar: Exemplar) -> str:
    palm = layout.style == "palm"
    answer = f"{'output' if palm else 'Ground truth answer'}:\n{exemplar.answer}\n"
    text = exemplar.question
    if layout.include_qa or layout.slot == "A_begin":
        form = {
            "before_Q": f"input:\n<INS>\nQ: {text}\nA:",
            "Q_begin": f"input:\nQ: <INS>\n{text}\nA:",
            "Q_end": f"input:\nQ: {text}\n<INS>\nA:",
            "A_begin": f"input:\nQ: {text}\nA: <INS>" if palm else f"Q: {text}\nA: <Start>",
        }[layout.slot]
        return f"\n{form}\n{answer}"
    body = f"{text}\n<INS>" if layout.slot == "Q_end" else f"<INS>\n{text}"
    return f"\n{'input' if palm else 'Problem'}:\n{body}\n\n{answer}"


def _instructions_only(layout: Layout, pairs: Sequence[tuple[str, float]]) -> str:
    place = _ONLY_PLACE[layout.slot]
    head = _ONLY_HEAD.replace("{place}", place).replace("{description}", layout.description)
    lines = (
        f"Precision: {_score(score, layout.num_score_buckets, 2)} <TEXT>{text}</TEXT>"
        for text, score in pairs
    )
    return head + "\n\n".join(lines)


def _score(score: float, buckets: int | None, decimals: int) -> str:
    return str(round(score, decimals)) if buckets is None else str(round(score * buckets))
