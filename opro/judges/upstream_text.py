"""The normal form that OPRO's authors give a reply before they compare it.

The behaviour is that of google-deepmind/opro (`opro/evaluation/metrics.py`, Apache-2.0), quirks
included; the code is ours and takes linear time. Its quirks, each kept on purpose:

- whether `answer is `, `answer: ` count as cues is decided by the reply's own case, so `The Answer:
  5` has none, and its number is what stands before the colon: nothing;
- a number behind a cue is the first token that isn't letters alone, otherwise the last one;
- number words are replaced inside other words too (`none` becomes `n1`, read as 1);
- exactly one distinct letter in brackets makes the first bracket of the text the answer;
- a number with decimals is rounded, half to even (`3.14159` is `3`).
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

BOOLEANS = (("false", "true"), ("no", "yes"), ("invalid", "valid"))
"""The Boolean answers of BIG-Bench Hard: what stands for false, what for true."""

_QUESTION = (
    "প্রশ্ন:",
    "frage:",
    "question:",
    "pregunta:",
    "question :",
    "問題：",
    "задача:",
    "swali:",
    "ప్రశ్న:",
    "โจทย์:",
    "问题：",
    "q:",
)
_ANSWER = (
    "ধাপে ধাপে উত্তর: ",
    "schritt-für-schritt-antwort: ",
    "step-by-step answer: ",
    "respuesta paso a paso: ",
    "réponse étape par étape : ",
    "ステップごとの答え：",
    "пошаговое решение: ",
    "jibu la hatua kwa hatua: ",
    "దశలవారీగా సమాధానం: ",
    "คำตอบทีละขั้นตอน: ",
    "逐步解答：",
    "#### ",
)
_BEHIND = ("answer is ", "answer: ", "answer is: ")
_BEHIND_ELSE = ("is: ", "are: ")
_AHEAD = tuple(f" is the {rank}answer" for rank in ("correct ", "right ", "final ", ""))
_NUMBER_WORDS = {
    word: str(number)
    for number, word in [
        *enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen seventeen eighteen nineteen".split()
        ),
        *zip(
            range(20, 100, 10),
            "twenty thirty forty fifty sixty seventy eighty ninety".split(),
            strict=True,
        ),
    ]
}
_UNITS = str.maketrans("", "", "$,%€£")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a reply is read as.

    Attributes:
        number: the number alone.
        decimals: to round a number to.
        boolean: a word without punctuation; 0 and 1 become `false` and `true`.
    """

    number: bool = False
    decimals: int = 0
    boolean: bool = False


def normalise(reply: str, form: Form) -> str:
    """Return the normal form of a reply, '' when nothing is left."""
    text, cued = _cut(reply)
    text = text.strip().partition("this is the solution:")[0]
    text = _bracketed(text.rstrip(".").rstrip("'"))
    if form.boolean:
        return _boolean(text, cued, form.decimals)
    return _number(text, cued, form.decimals) if form.number else _sentence(text)


def unpunctuated(text: str) -> str:
    """Return `text` without ASCII punctuation."""
    return text.translate(_PUNCTUATION)


def _cut(reply: str) -> tuple[str, bool]:
    """Return what the cues leave of a reply, in lower case, and whether there was one."""
    text = reply.lower().strip()
    for question in _QUESTION:
        text = text.partition(question)[0]
    cued = False
    behind = _BEHIND if any(cue in reply for cue in _BEHIND) else _BEHIND_ELSE
    for cue in (*_ANSWER, *behind):
        cued |= cue in text
        text = text.rpartition(cue)[2]
    for cue in _AHEAD:
        cued |= cue in text
        text = text.partition(cue)[0]
    return text, cued


def _bracketed(text: str) -> str:
    """Return the first bracket when there is exactly one distinct letter in brackets."""
    if sum(f"({letter})" in text for letter in string.ascii_lowercase) != 1:
        return text
    for line in text.split("\n"):
        start = line.find("(")
        end = line.find(")", start)
        if 0 <= start < end:
            return line[start : end + 1]
    return text


def _sentence(text: str) -> str:
    return text.partition(".")[0]


def _boolean(text: str, cued: bool, decimals: int) -> str:
    sentence, number = _sentence(text), _number(text, cued, decimals)
    if any(sentence in pair for pair in BOOLEANS):
        text = sentence
    else:
        for bit in (sentence, number):
            if bit in ("0", "1"):
                text = "true" if bit == "1" else "false"
                break
    return unpunctuated(text).strip()


def _number(text: str, cued: bool, decimals: int) -> str:
    text = text.rpartition("=")[2].translate(_UNITS).partition(":")[0].strip()
    for word, digits in _NUMBER_WORDS.items():
        text = text.replace(word, digits)
    tokens = text.split(" ")
    if not cued:
        tokens.reverse()
    token = next((token for token in tokens if not token.isalpha()), tokens[0])
    token = _without_unit(token)
    try:
        return f"{round(float(token), decimals):.{decimals}f}"
    except ValueError:
        return _last_digits(token)


def _without_unit(token: str) -> str:
    end = len(token)
    while end and token[end - 1].isalpha():
        end -= 1
    return token[:end].removesuffix("-")


def _last_digits(token: str) -> str:
    """Return the last run of digits of the first line that has one, else the token."""
    for line in token.split("\n"):
        runs = re.findall(r"\d+", line)
        if runs:
            return str(runs[-1])
    return token
