"""Compares the jobs of a sweep: a table, paired tests, plots, one page."""

from __future__ import annotations

from pathlib import Path

from opro.comparison import page, plots, table
from opro.comparison.load import best_of, load
from opro.comparison.pairs import compare_winners
from opro.runfolder import RunFolder

__all__ = ["best_folder", "publish"]


def publish(folder: Path) -> str:
    """Write the comparison into the sweep's folder and return it as text for a terminal.

    Writes report.md, comparison.html (self-contained), jobs.csv, and the plots as PNG.

    Raises:
        ConfigError: there is no sweep in the folder.
    """
    jobs = load(folder)
    pairs = compare_winners(jobs)
    files = RunFolder(folder)
    pictures = plots.draw_all(jobs, folder)
    files.write("report.md", table.report(jobs, pairs))
    files.write("jobs.csv", table.as_csv(jobs))
    files.write("comparison.html", page.render(jobs, pairs, pictures))
    return f"{table.as_text(jobs, pairs)}\nComparison: {folder / 'comparison.html'}"


def best_folder(folder: Path) -> Path | None:
    """Return the folder of the sweep's best job; None when no job has a result."""
    best = best_of(load(folder))
    return None if best is None else folder / best[0].name
