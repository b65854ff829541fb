"""Which option a reply names; the rule stands in `opro.judges.choice`."""

from __future__ import annotations

import functools
import re
from collections import deque

from opro.judges.cues import GAP, ahead, behind, last
from opro.judges.options import Options, level
from opro.judges.words import WORD

_CUES = 100
"""How many cues are looked at for a choice's text, from the last one."""

_TEXT = 400
"""Characters behind a cue that a choice's text is looked for in, and the longest such text."""

_DECOR = " \t\r\n*_`\"'“”‘’«»()[]{}（）【】$\\<>,;:!。：#"
_FRAME = f"{_DECOR}.-"
"""What may surround a letter that is the whole reply; a choice's text may begin with . or -."""

_TURN = re.compile(r"\A\s*A:\s")
"""A reply that goes on in the form `Q: …` / `A: …`: no option."""

_EDGE = re.compile(rf"{WORD}|[.,/:]\d|[-_]\w")
_NAMED = re.compile(r"\A(?:option|choice|letter)\s", re.IGNORECASE)
_OPEN, _CLOSE = r"[(\[{（【]", r"[)\]}）】]"


class ChoiceReader:
    """Reads the option that a reply names, among options with the given letters."""

    def __init__(self, letters: str, cues: tuple[str, ...]) -> None:
        up, low = f"[{letters}]", f"[{letters.lower()}]"
        both = f"[{letters}{letters.lower()}]"
        alone = rf"(?![^\W_]|['’]\w|[-_]\w)(?!\s?{_CLOSE}?\s?(?:/|(?i:or|and)\s){_OPEN}?{up}(?!\w))"
        because = r"(?i:because|since|as|for)\b"
        value = (
            rf"(?<!{WORD})(?:(?<={_OPEN})(?P<inside>{both})\s?(?={_CLOSE}){alone}"
            rf"|(?P<upper>{up}){alone}(?!(?<=I)\s(?!{because})[a-z])"
            rf"|(?P<lower>{low}){alone}(?=\s*(?:$|[.,;:!)\]}}*_`\"'”’<$\n])|\s{because}))"
        )
        before = rf"(?<!{WORD})(?:(?P<upper>{up})|(?<={_OPEN})(?P<inside>{low}))"
        self._letters = letters
        self._cue = re.compile(behind(cues))
        self._cued = (re.compile(behind(cues) + GAP + value), re.compile(before + ahead(cues)))
        self._marks = re.compile(
            rf"[(\[（【]\s?(?P<inside>{up})\s?[)\]）】]"
            rf"|^[ \t*_`]{{0,8}}(?P<upper>{up})(?:[*_`]{{0,4}}[.)]|[ \t*_`]{{0,8}}$)",
            re.MULTILINE,
        )
        self._line = re.compile(
            rf"{_OPEN}?\s?(?P<upper>{up})[)\]}}）】.:*_`]{{0,4}}(?:\s+(?P<rest>.*))?"
        )

    def read(self, text: str, options: Options) -> str | None:
        """Return the letter of the option that `text` names, or None."""
        text = _TURN.sub("", text)
        cued = last(self._cued, text)
        if cued is not None:
            return _letter(cued)
        return (
            self._cued_text(text, options)
            or self._bare(text)
            or self._marked(text, options)
            or _whole_text(text, options)
        )

    def _cued_text(self, text: str, options: Options) -> str | None:
        """Return the letter of the choice whose text stands behind the last cue with one."""
        if not options.texts:
            return None
        for cue in reversed(deque(self._cue.finditer(text), _CUES)):
            rest = _bared(text[cue.end() : cue.end() + _TEXT + 20])
            found = [
                (len(known), letter)
                for letter, known in zip(options.letters, map(_bared, options.texts), strict=True)
                if known and rest.startswith(known) and not _EDGE.match(rest, len(known))
            ]
            if found:
                return max(found)[1]
        return None

    def _bare(self, text: str) -> str | None:
        word = _NAMED.sub("", text.strip(_FRAME))
        return word.upper() if len(word) == 1 and word.upper() in self._letters else None

    def _marked(self, text: str, options: Options) -> str | None:
        """Return the only letter marked as an option's, else the one that makes the last line."""
        marked = {_letter(match) for match in self._marks.finditer(text)}
        if len(marked) == 1:
            return marked.pop()
        line = text.rstrip().rpartition("\n")[2].strip(" \t*_`")
        match = self._line.fullmatch(line)
        if match is None:
            return None
        letter = match["upper"]
        own = options.texts[self._letters.index(letter)] if options.texts else ""
        return letter if not match["rest"] or _bared(match["rest"]) == _bared(own) else None


@functools.lru_cache(maxsize=64)
def reader(letters: str, cues: tuple[str, ...]) -> ChoiceReader:
    """Return the reader for `letters` (upper case, from A) and `cues`, compiled once."""
    return ChoiceReader(letters, cues)


def _letter(match: re.Match[str]) -> str:
    return next(found for found in match.groups() if found).upper()


def _bared(text: str) -> str:
    return level(text.lstrip(_DECOR).rstrip(f"{_DECOR}."))


def _whole_text(text: str, options: Options) -> str | None:
    if len(text) > 2 * _TEXT:
        return None
    named = [
        letter
        for letter, known in zip(options.letters, options.texts, strict=False)
        if _bared(known) == _bared(text)
    ]
    return named[0] if len(named) == 1 else None
