"""An evaluation as a page, as lines for a terminal, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from opro.evaluated import Contrast, Evaluated, Measured
from opro.plain import cell, fence, plain
from opro.records import RunInfo
from opro.reports import markdown as md

MAX_TASKS = 200
"""Tasks in the page's table; the CSV file has all."""

_HEADERS = ("#", "mean", "95% interval", "tasks", "runs", "instruction")
_PAIR_HEADERS = ("pair", "difference", "95% interval", "better", "worse", "p", "p (Holm)", "test")


def render(found: Evaluated, info: RunInfo) -> str:
    """Return report.md."""
    return md.page(
        [
            f"# Evaluation {info.name}",
            _sentences(found, info),
            md.table(_HEADERS, [_row(found, i, cell) for i in range(len(found.measured))]),
            md.unreadable_warning(sum((one.kinds for one in found.measured), Counter())),
            *_repeats(found),
            *_pairs(found),
            "## Scores by task",
            _by_task(found),
            "## The instructions in full",
            *[text for i, one in enumerate(found.measured) for text in _full(i, one)],
        ]
    )


def lines(found: Evaluated) -> list[str]:
    """Return the tables for a terminal."""
    rows = [_row(found, index, _shown) for index in range(len(found.measured))]
    text = _aligned(_HEADERS, rows)
    if found.contrasts:
        text += _aligned(_PAIR_HEADERS, [_pair(one) for one in found.contrasts])
    warning = md.unreadable_warning(sum((one.kinds for one in found.measured), Counter()))
    return [*text, warning.replace("**", "")] if warning else text


def csv_of(found: Evaluated) -> str:
    """Return one line per run: instruction, repeat, split, task, score, kind, answer."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("instruction", "name", "repeat", "split", "task", "score", "kind", "answer"))
    for index, one in enumerate(found.measured):
        name = ", ".join(one.labels)
        for row in one.rows:
            end = (row.repeat, row.split, row.task_id, row.score, row.kind.value, row.answer)
            writer.writerow((index, name, *end))
    return buffer.getvalue()


def json_of(found: Evaluated, info: RunInfo) -> dict[str, Any]:
    """Return result.json: everything, for programs."""
    return {
        "name": info.name,
        "split": found.split,
        "tasks": found.tasks,
        "repeats": found.repeats,
        "stop_reason": found.stop_reason,
        "dataset": {"name": info.dataset.name, "digest": info.dataset.digest},
        "params": dict(info.params),
        "tags": dict(info.tags),
        "instructions": [_measured(one) for one in found.measured],
        "comparisons": [
            {
                "first": one.first,
                "second": one.second,
                **asdict(one.paired),
                "p_value_holm": one.corrected,
            }
            for one in found.contrasts
        ],
        "totals": asdict(found.totals),
    }


def _measured(one: Measured) -> dict[str, Any]:
    return {
        "names": list(one.labels),
        "instruction": one.instruction,
        "md5": one.md5,
        "mean": one.mean,
        "interval": None if one.interval is None else asdict(one.interval),
        "repeat_means": one.repeat_means,
        "kinds": dict(one.kinds),
        "failed": list(one.failed),
        "scores": dict(one.scores),
    }


def _sentences(found: Evaluated, info: RunInfo) -> str:
    times = "once" if found.repeats == 1 else f"{found.repeats} times"
    text = (
        f"{md.amount(len(found.measured), 'instruction')} on {md.amount(found.tasks, 'task')}"
        f" ({found.split}) of {cell(info.dataset.name)}, each {times}."
    )
    if found.stop_reason != "done":
        text += f" **Not whole: {cell(found.stop_reason)}.**"
    return text


def _row(found: Evaluated, index: int, show: Any) -> tuple[str, ...]:
    one = found.measured[index]
    mean = md.score(one.mean)
    if one.mean is None and one.partial is not None:
        mean += f" ({one.partial:.3f} on {len(one.scores)})"
    kinds = md.kinds_text(one.kinds)
    name = show(", ".join(one.labels))
    return (str(index), mean, md.bounds(one.interval), f"{one.n:,}", kinds, name)


def _shown(text: str) -> str:
    return plain(text, 60) or "(empty)"


def _repeats(found: Evaluated) -> list[str]:
    if found.repeats == 1:
        return []
    headers = ("#", *(f"repeat {number}" for number in range(found.repeats)))
    rows = [
        (str(index), *(md.score(mean) for mean in one.repeat_means))
        for index, one in enumerate(found.measured)
    ]
    note = "A task's score is the mean of its repeats; the intervals take the tasks as the sample."
    return ["## Repeat by repeat", md.table(headers, rows), note]


def _pairs(found: Evaluated) -> list[str]:
    if not found.contrasts:
        return []
    note = (
        "Each pair on the tasks that both have a score for. p (Holm) is corrected for the number"
        " of pairs: where it is at most 0.05, chance alone hardly explains the difference."
    )
    rows = [_pair(one) for one in found.contrasts]
    return ["## Which is better", md.table(_PAIR_HEADERS, rows), note]


def _pair(one: Contrast) -> tuple[str, ...]:
    test = one.paired
    return (
        f"{one.second} minus {one.first}",
        f"{test.difference:+.3f}",
        md.bounds(test.interval, signed=True),
        str(test.better),
        str(test.worse),
        f"{test.p_value:.3g}",
        f"{one.corrected:.3g}",
        test.test,
    )


def _by_task(found: Evaluated) -> str:
    ids = list(dict.fromkeys(row.task_id for one in found.measured for row in one.rows))
    headers = ("task", *(str(index) for index in range(len(found.measured))))
    rows = [
        (cell(task_id, 40), *(_score(one.scores.get(task_id)) for one in found.measured))
        for task_id in ids[:MAX_TASKS]
    ]
    rest = len(ids) - MAX_TASKS
    more = f"\n\n{rest:,} more are in per_task.csv." if rest > 0 else ""
    return md.table(headers, rows) + more


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:g}" if value in (0, 1) else f"{value:.3f}"


def _full(index: int, one: Measured) -> list[str]:
    return [f"{index}, md5 {one.md5}:", fence(one.instruction, rest="result.json")]


def _aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [tuple(headers), *map(tuple, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
