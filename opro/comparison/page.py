"""The comparison as one self-contained HTML page: no script, no request, model text escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from opro.comparison.load import Jobs
from opro.comparison.pairs import Pair
from opro.comparison.table import HEADERS, PAIR_HEADERS, cells, headline, pair_cells
from opro.plain import visible

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
th, td { border: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top }
th { background: #f2f2f2 } td:last-child { max-width: 28rem }
pre { white-space: pre-wrap; background: #f7f7f7; padding: .6em; margin: 0 } img { max-width: 100% }
""".strip()
_HEAD = (
    '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width">'
)


def render(jobs: Jobs, pairs: Sequence[Pair], pictures: Iterable[Path]) -> str:
    """Return the page."""
    title = f"Sweep {_text(jobs.sweep.name)}"
    head, *sentences = headline(jobs, pairs)
    parts = [
        f"<h1>{title}</h1>",
        *(f"<p>{_text(line)}</p>" for line in [*sentences, head]),
        _table(HEADERS[:-1], [cells(job)[:-1] for job in jobs.jobs]),
        "<p>Scores are the winner's, with 95 % intervals. Calls, tokens and cost are of the"
        " answers that a job used, whoever paid for them; requests are what it sent itself.</p>",
        *(_image(path) for path in pictures),
    ]
    if pairs:
        rows = [pair_cells(pair) for pair in pairs]
        parts += [
            "<h2>Winners against each other, on the test tasks</h2>",
            _table(PAIR_HEADERS, rows),
        ]
    parts.append("<h2>Winners</h2>")
    for job in jobs.jobs:
        text = job.winner if job.winner is not None else f"{job.note.status}: {job.note.error}"
        parts.append(f"<h3>{_text(job.name)}</h3><pre>{_text(text)}</pre>")
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><head>{_HEAD}<title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _text(text: str) -> str:
    return escape(visible(text, keep="\n\t"))


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in headers)
    lines = ["".join(f"<td>{_text(one)}</td>" for one in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<p><img alt="{_text(path.stem)}" src="data:image/png;base64,{data}"></p>'
