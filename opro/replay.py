"""Re-executes a finished run with the network closed and compares what comes out."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opro.errors import RunError
from opro.job import Place, open_journal, write_reports
from opro.progress import Progress
from opro.provenance import run_info
from opro.result import value_of
from opro.runfolder import RunFolder
from opro.setup.assembly import Assembly
from opro.trackers.background import BackgroundTracker
from opro.trackers.none import NoTracker
from opro.trainer import Parts, Trainer
from opro.wiring import connect

COMPARED = ("state", "output", "report.md", "ADAPTER.md")


def replay(assembly: Assembly, config: Mapping[str, Any], place: Place) -> float | None:
    """Run the algorithm again on the run's journal; raise RunError where a byte differs."""
    journal = open_journal(assembly, config, place, closed=True)
    info = run_info(assembly, config, place, resumed=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch))
        progress = Progress()
        parts = Parts(
            assembly=assembly,
            wires=connect(assembly, info, journal, progress),
            journal=journal,
            folder=folder,
            tracker=BackgroundTracker(NoTracker()),
            progress=progress,
        )
        with journal, contextlib.closing(parts.wires):
            summary = Trainer(parts).run()
        write_reports(folder, summary, info)
        differ = _differences(place.folder, folder.path)
    if differ:
        raise RunError(f"replay: differs from the run in {', '.join(differ[:5])}")
    print(f"replay: {len(summary.steps)} steps, state and reports are equal byte for byte")
    return value_of(summary)


def _differences(run: Path, again: Path) -> list[str]:
    names = set()
    for base in (run, again):
        for name in COMPARED:
            found = base / name
            files = found.rglob("*") if found.is_dir() else [found]
            names |= {str(file.relative_to(base)) for file in files if file.is_file()}
    return sorted(name for name in names if _bytes(run / name) != _bytes(again / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
