"""What a person reads of a sweep's jobs while it goes on and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from opro.plain import plain
from opro.sweeps.file import JobNote


def job_table(notes: Sequence[JobNote], names: Sequence[str], swept: Sequence[str]) -> str:
    """Return one line per job, `ok` or not, and how many are."""
    found = {note.name: job_line(note, swept) for note in notes}
    lines = [found.get(name, f"not run  {name}") for name in names]
    good = sum(note.status == "ok" for note in notes)
    return "\n".join([f"{good} of {len(lines)} jobs ok", *lines])


def job_line(note: JobNote, swept: Sequence[str]) -> str:
    """Return how a job ended; one that didn't end well with its swept overrides."""
    if note.status == "ok":
        value = "no score" if note.value is None else f"{note.value:.4f}"
        return f"ok       {note.name}  {value}{'  (finished before)' if note.skipped else ''}"
    varied = [one for one in note.overrides if one.partition("=")[0] in swept]
    overrides = " ".join(plain(one, 120) for one in varied)
    return f"{note.status:<8} {note.name}  {plain(note.error, 300)}  [{overrides}]"
