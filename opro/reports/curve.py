"""The picture of a run: every instruction's training score, and the best so far."""

from __future__ import annotations

from pathlib import Path

from opro.records import Summary


def draw_curve(summary: Summary, path: Path) -> None:
    """Write a PNG: a dot for each scored instruction, a line for the best so far.

    The same summary gives the same bytes under the same matplotlib: no date, no global state.

    Args:
        summary: what to draw.
        path: where to write; its folder must exist.
    """
    # Half a second of import that `--help` doesn't need.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5), dpi=120)
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.11, top=0.98)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if summary.initial.score is not None:
        label = f"initial instruction ({summary.initial.score:.3f})"
        axes.axhline(summary.initial.score, color="0.45", linestyle="--", linewidth=1, label=label)
    dots = [(s.step, s.score) for s in summary.history if s.step >= 0 and s.score is not None]
    axes.plot(*_columns(dots), "o", color="tab:blue", alpha=0.45, markersize=5, label="instruction")
    best = [(r.step, r.best.score) for r in summary.steps if r.best.score is not None]
    axes.plot(*_columns(best), "-", color="tab:red", drawstyle="steps-post", label="best so far")
    axes.set_xlabel("step")
    axes.set_ylabel("mean score on the training tasks")
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.legend(loc="best", framealpha=0.9)
    figure.savefig(path, format="png", metadata={"Software": None})


def _columns(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
