"""The pictures of a sweep: best so far over calls and over cost, and parallel coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opro.comparison.load import JobResult, Jobs, best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LEGEND = 16
AXES = {"calls": "model calls", "usd": "US dollars", "tokens": "tokens"}


def draw_all(jobs: Jobs, folder: Path) -> list[Path]:
    """Write the PNGs that the jobs have the numbers for and return their paths."""
    done = [job for job in jobs.done if len(job.curve("calls")) > 0]
    cost = "usd" if all(job.used("usd") for job in done) else "tokens"
    pictures: list[tuple[str, bool, Callable[[Path], None]]] = [
        ("best_by_calls.png", bool(done), lambda path: _curves(done, "calls", path)),
        (
            "best_by_cost.png",
            bool(done) and all(job.curve(cost) for job in done),
            lambda path: _curves(done, cost, path),
        ),
        ("parallel.png", _can_be_parallel(jobs), lambda path: _parallel(jobs, path)),
    ]
    found = []
    for name, possible, draw in pictures:
        (folder / name).unlink(missing_ok=True)
        if possible:
            draw(folder / name)
            found.append(folder / name)
    return found


def _figure(width: float = 9.0) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.8), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _curves(jobs: Sequence[JobResult], x: str, path: Path) -> None:
    from matplotlib import colormaps

    figure, axes = _figure()
    colors = colormaps["turbo"].resampled(max(2, len(jobs)))
    styles = ("-", "--", ":", "-.")
    for index, job in enumerate(jobs):
        points = job.curve(x)
        axes.plot(
            [a for a, _ in points],
            [b for _, b in points],
            drawstyle="steps-post",
            marker="o",
            markersize=3,
            linestyle=styles[index % len(styles)],  # lines that lie on each other stay visible
            color=colors(index),
            label=_literal(job.name),
        )
    axes.set_xlabel(f"{AXES[x]} used")
    axes.set_ylabel("best training score so far")
    axes.margins(y=0.1)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    if len(jobs) <= MAX_LEGEND:
        figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, format="png", metadata={"Software": None})


def _can_be_parallel(jobs: Jobs) -> bool:
    return len(jobs.done) > 1 and bool(_varied(jobs))


def _varied(jobs: Jobs) -> list[str]:
    """Return the swept keys in which finished jobs differ."""
    return [key for key in jobs.sweep.swept if len({job.value_of(key) for job in jobs.done}) > 1]


def _parallel(jobs: Jobs, path: Path) -> None:
    """One vertical axis per swept key and one for the score; a line for each job."""
    from matplotlib import colormaps

    found = best_of(jobs)
    split = "train" if found is None else found[1]
    keys = _varied(jobs)
    known = [score for score in (job.mean(split) for job in jobs.done) if score is not None]
    low, span = min(known), max(max(known) - min(known), 1e-9)
    columns = [_column([job.value_of(key) for job in jobs.done]) for key in keys]
    figure, axes = _figure(width=max(7.0, 2.2 * (len(keys) + 1)))
    for index, job in enumerate(jobs.done):
        score = job.mean(split)
        if score is not None:
            heights = [places[index] for places, _ in columns]
            color = colormaps["viridis"](0.9 * (score - low) / span)
            axes.plot(range(len(keys) + 1), [*heights, score], color=color, linewidth=2, alpha=0.8)
    for x, (_, ticks) in enumerate(columns):
        axes.axvline(x, color="0.3", linewidth=1)
        for text, y in ticks.items():
            axes.annotate(
                _literal(text[:24]), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8
            )
    axes.axvline(len(keys), color="0.3", linewidth=1)
    names = [_literal(key.rpartition(".")[2]) for key in keys]
    axes.set_xticks(range(len(keys) + 1), [*names, f"{split} score"])
    axes.set_ylim(-0.05, 1.08)
    axes.yaxis.tick_right()
    axes.set_xlim(-0.1, len(keys) + 0.15)
    figure.savefig(path, format="png", metadata={"Software": None})


def _column(values: Sequence[str | None]) -> tuple[list[float], dict[str, float]]:
    """Return each value's height in [0, 1] and the heights' labels; numbers keep their order."""
    texts = ["(default)" if value is None else value for value in values]
    distinct = sorted(set(texts), key=_order)
    step = 1.0 / max(1, len(distinct) - 1)
    places = {text: index * step for index, text in enumerate(distinct)}
    return [places[text] for text in texts], places


def _order(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def _literal(text: str) -> str:
    """Return text in which matplotlib finds no mathematics; a leading `_` would hide a label."""
    return " " * text.startswith("_") + text.replace("$", r"\$")
