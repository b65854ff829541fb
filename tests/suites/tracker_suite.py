"""What every tracker must do; one function for one promise, each given a way to make it anew.

The run that they are told of is made up (`tests/trackers/fakes.py`), its folder is real. A
tracker whose store isn't chosen by its launch folder alone gets its settings in `SETTINGS`.
"""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from opro.records import RunEnd
from opro.setup.config import build
from opro.trackers.base import Tracker
from tests.trackers.fakes import HOSTILE, FakeRun, make_run

Make = Callable[[], Tracker]
SETTINGS: dict[str, dict[str, Any]] = {}


def maker(path: Path, launch_folder: Path) -> Make:
    """Return what builds the option of one YAML file, checked as a run's configuration is."""
    node = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    node |= SETTINGS.get(path.stem, {})
    return lambda: build(node, "tracker", launch_folder=launch_folder)


def tell(tracker: Tracker, run: FakeRun, end: RunEnd | None = None) -> None:
    """Tell a tracker of a whole run."""
    tracker.prepare()
    tracker.on_run_start(run.info)
    for record, totals in run.steps:
        tracker.on_step_end(record, totals)
    tracker.on_run_end(run.end if end is None else end)


def check_yaml(path: Path) -> None:
    """The YAML names a class of its own and says what each setting is for."""
    text = path.read_text("utf-8")
    node = OmegaConf.to_container(OmegaConf.create(text))
    settings = [line for line in text.splitlines() if line and not line.startswith(("#", "_"))]
    assert text.startswith("#")
    assert node["_target_"].startswith("opro.trackers.")
    assert len(settings) == len(node) - 1
    assert all(" # " in line for line in settings)


def check_start_is_light(path: Path) -> None:
    """Building a tracker imports no tracking library and touches no store."""
    code = (
        "import sys; from pathlib import Path; from tests.suites.tracker_suite import maker\n"
        f"maker(Path({str(path)!r}), Path('/nonexistent/launch'))().where()\n"
        "print([m for m in ('mlflow', 'sqlalchemy', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def check_whole_run(make: Make, folder: Path) -> None:
    """A run from start to end passes, and what was told of it is left as it was."""
    run = make_run(folder / "whole", steps=2, tasks=5)
    before = copy.deepcopy((run.steps, run.end))
    tell(make(), run)
    assert (run.steps, run.end) == before


def check_where_is_one_line(make: Make, folder: Path) -> None:
    """`where` is known at once, from before the start on, and is one line."""
    assert "\n" not in make().where()


def check_hostile_text(make: Make, folder: Path) -> None:
    """Whatever a model or a setting says is stored or escaped, and breaks nothing."""
    run = make_run(folder / "hostile", steps=2, tasks=5, odd=[HOSTILE, "x" * 300_000])
    info = dataclasses.replace(
        run.info,
        params={"a b/ü|<i>": HOSTILE, "long": HOSTILE * 60, "list": [1, None, "ü"], "": "empty"},
        tags={"opro.overrides": HOSTILE * 100},
        initial_instructions=(HOSTILE,),
    )
    tell(make(), dataclasses.replace(run, info=info))


def check_early_end(make: Make, folder: Path) -> None:
    """A run may end before its first step, by an error or a signal."""
    for status in ("FAILED", "KILLED"):
        run = make_run(folder / status, steps=1, tasks=5)
        end = RunEnd(status=status, stop_reason="x", summary=None, error="Boom\n" * 10_000)
        tell(make(), dataclasses.replace(run, steps=()), end)


def check_told_twice(make: Make, folder: Path) -> None:
    """A continued run tells its first steps again, to a new tracker in a new process."""
    run = make_run(folder / "twice", steps=3, tasks=5)
    first = make()
    first.prepare()
    first.on_run_start(run.info)
    first.on_step_end(*run.steps[0])
    tell(make(), dataclasses.replace(run, info=dataclasses.replace(run.info, resumed=True)))


def check_sweep(make: Make, folder: Path) -> None:
    """A sweep's parent is opened before its jobs and closed after them; its tags are text."""
    parent = make()
    parent.prepare()
    tags = parent.open_sweep("a sweep", folder / "sweep", {"opro.sweep": "a sweep"})
    assert all(isinstance(text, str) for pair in tags.items() for text in pair)
    run = make_run(folder / "sweep" / "0", steps=1, tasks=5)
    job = dataclasses.replace(run, info=dataclasses.replace(run.info, tags=tags))
    tell(make(), job)
    parent.close_sweep("FINISHED")


def check_prepare_twice(make: Make, folder: Path) -> None:
    """Preparing again does no harm."""
    tracker = make()
    tracker.prepare()
    tracker.prepare()
    make().prepare()


def check_close(make: Make, folder: Path) -> None:
    """Closed once more or not, it can be told of another run."""
    tracker = make()
    for name in ("first", "second"):
        tell(tracker, make_run(folder / name, steps=1))
        tracker.close()
        tracker.close()
