r"""Numbers in running text: one reader for targets and replies.

What is read as a number: digits with an optional sign, currency, thousands separators (comma,
apostrophe, `_`, no-break or thin space, LaTeX's `{,}` and `\,`), a decimal part, an exponent
(`1e3`, `2×10^3`), a fraction (`3/4`, `2 1/2`, `½`, `\frac{3}{4}`: its value). A minus counts as
a sign unless a letter, digit, point, percent sign or closing bracket stands right before it, so
`10-3` holds 10 and 3, `823-yard` 823. A percent sign and words behind a number (`kg`, `million`)
are units and are dropped: `60%` is 60, never 0.6. Digits glued behind a letter (`x2`) are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Literal

from opro.judges.words import WORD

DecimalMark = Literal[".", ","]

_MAX_DIGITS = 300
"""A longer run of digits is noise, and Python refuses to convert some of them."""

_LATEX = {"{,}": ",", r"\,": "", r"\!": "", r"\;": "", r"\$": "$", r"\%": "%"}
_LATEX |= {r"\times": "×", r"\cdot": "×"}
_LATEX_PATTERN = re.compile("|".join(map(re.escape, _LATEX)))
_FRAC = re.compile(
    r"(\d)?\\[dt]?frac\s?\{\s?(-?\d{1,9})\s?\}\s?\{\s?(\d{1,9})\s?\}"
)  # a digit before it makes a mixed number
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅛": "1/8"}
_VULGAR_PATTERN = re.compile(f"(\\d)?([{''.join(_VULGAR)}])")


class NumberReader:
    """Finds numbers in text.

    Args:
        decimal_mark: `,` reads `1.234,5` as Germans do; the point then separates thousands.
    """

    def __init__(self, decimal_mark: DecimalMark = ".") -> None:
        self._pattern = _number_pattern(decimal_mark)
        self._mark = decimal_mark

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the numbers of `text`, which `plain` made, in order; `value` reads one."""
        return filter(_readable, self._pattern.finditer(text))

    def value(self, match: re.Match[str]) -> Fraction:
        """Return the exact value of a number that `find` yielded."""
        if match["core"] is None:
            size = Fraction(int(match["num"]), int(match["den"]))
            if match["whole"] is not None and size < 1:
                size += int(match["whole"])
        else:
            size = self._decimal(match["core"])
            power = int(match["exp"] or 0) + int((match["pow"] or "0").replace("−", "-"))
            size *= Fraction(10) ** power
        negative = any(match[name] in ("-", "−", "–") for name in ("sign", "inner"))
        return -size if negative else size

    def _decimal(self, core: str) -> Fraction:
        whole, _, part = core.partition(self._mark)
        digits = "".join(filter(str.isdecimal, whole))
        return Fraction(int(digits + part or "0"), 10 ** len(part))


def plain(text: str) -> str:
    """Return `text` with LaTeX's and Unicode's spellings of numbers written plainly."""
    if "\\" in text or "{,}" in text:
        text = _LATEX_PATTERN.sub(lambda match: _LATEX[match.group()], text)
        text = _FRAC.sub(lambda m: f"{m[1]} {m[2]}/{m[3]}" if m[1] else f"{m[2]}/{m[3]}", text)
    if text.isascii():
        return text
    return _VULGAR_PATTERN.sub(lambda m: f"{m[1]} {_VULGAR[m[2]]}" if m[1] else _VULGAR[m[2]], text)


def spell(value: Fraction) -> str:
    """Return the one spelling of a value: `1000`, `-1234.5`, `1/3`."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    with localcontext(prec=3 * _MAX_DIGITS):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


def _readable(match: re.Match[str]) -> bool:
    if match["core"] is not None:
        return len(match["core"]) <= _MAX_DIGITS
    return int(match["den"]) != 0


def _number_pattern(mark: DecimalMark) -> re.Pattern[str]:
    point = re.escape(mark)
    group = "[" + ("," if mark == "." else ".") + "'’_\u00a0\u202f\u2009]"
    return re.compile(
        rf"""
        (?P<sign>(?<![\w)\]}}.%])[-−–+])?
        (?:[$€£¥₹₩]\s?(?P<inner>[-−])?)?
        (?<!{WORD})
        (?:
            (?:(?P<whole>\d{{1,9}})[ \u00a0])?
            (?P<num>\d{{1,9}})\s?[/⁄]\s?(?P<den>\d{{1,9}})(?![\d/]|{point}\d)
        |
            (?P<core>
                (?:\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)(?:{point}\d+)?
                |(?<![\w.,]){point}\d+
            )
            (?:[eE](?P<exp>[+-]?\d{{1,3}})(?!{WORD}))?
            (?:\s?[x×*·]\s?10\s?(?:\^|\*\*)\s?[{{(]?(?P<pow>[-−]?\d{{1,3}})(?!\d)[)}}]?)?
        )
        """,
        re.VERBOSE,
    )
