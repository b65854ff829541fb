"""Compares the jobs of a sweep: a table, paired tests, plots, one page."""

from __future__ import annotations

from pathlib import Path


def publish(folder: Path) -> str:
    """Write the comparison of a sweep's jobs into its folder and return its text."""
    return ""
