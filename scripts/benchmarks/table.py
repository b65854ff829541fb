"""Small tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers are rounded to two decimals, None is a dash."""
    cells = [[_cell(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        print("  " + "  ".join([row[0].ljust(widths[0]), *rest]))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
