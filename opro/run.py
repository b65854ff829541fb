"""Entry point: `python -m opro.run`, one search or, with `-m`, a sweep of them."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from opro.errors import ConfigError, Interrupted, OproError
from opro.setup.composed import plain_config, secrets_of, task_overrides
from opro.setup.hydra_errors import BrokenFile, one_line

if TYPE_CHECKING:
    from opro.job import Outcome, Place
    from opro.sweeps.parent import Sweep

_PACKAGE = Path(__file__).resolve().parent
CONF = next(path for path in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if path.is_dir())
"""The configuration tree: inside an installed package, beside it in a checkout."""

_started = False
_status = 0
_error: OproError | None = None
_sweep: Sweep | None = None
"""In the process that started a sweep, and there only."""


def task(config: DictConfig) -> float | None:
    """Run one search; Hydra calls it, in a sweep once per job and perhaps in another process."""
    from opro import job  # late: --help needs none of it

    global _started
    _started = True
    os.chdir(HydraConfig.get().runtime.cwd)  # whatever hydra.job.chdir says
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        return _sweep_job(config)
    return _value_of(lambda: job.run(plain_config(config), _place(config)))


def evaluation_task(config: DictConfig) -> float | None:
    """Run one evaluation (`python -m opro.evaluate`); with `-m`, one after the other."""
    from opro import evaluation

    global _started
    _started = True
    os.chdir(HydraConfig.get().runtime.cwd)
    if isinstance(_error, Interrupted):
        return None
    return _value_of(lambda: evaluation.run(plain_config(config), _place(config)))


def _value_of(work: Callable[[], Outcome]) -> float | None:
    """Do the work; its error is kept for `main`, since Hydra would print it first, its own way."""
    global _status, _error
    try:
        outcome = work()
    except OproError as error:
        _error = error
        return None
    _status = max(_status, outcome.status)
    return outcome.value


_main = hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(task)
evaluate = hydra.main(version_base="1.3", config_path=str(CONF), config_name="evaluate")(
    evaluation_task
)


class Preflight(Callback):
    """Hydra's callback: refuses a wrong configuration before any folder or run is made."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the one job's configuration; with `plan=true`, print the plan and end."""
        _or_exit(lambda: _preflight().search(config))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check every job of a sweep and open it; with `plan=true`, print the plans and end."""
        _or_exit(lambda: _open_sweep(config))


class EvaluationPreflight(Callback):
    """The same for `python -m opro.evaluate`."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the evaluation's configuration; with `plan=true`, print the plan and end."""
        _or_exit(lambda: _preflight().evaluation(config))


def main(entry: Callable[[], Any] = _main) -> int:
    """Run the command line and return its exit status.

    Args:
        entry: Hydra's way to the work: a search or sweep, or `evaluate`.

    Returns:
        0 done; 1 failed, or a job of a sweep did; 2 a configuration that can't work; 3 done, but
        not fully tracked; 130 or 143 stopped by Ctrl-C or SIGTERM.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach us instead of Hydra's printer
    # Hydra's parser takes overrides on one side of `-m` only.
    sys.argv[1:] = sorted(sys.argv[1:], key=lambda word: word not in ("-m", "--multirun"))
    _set_up_options()
    status = 1
    try:
        status = _guarded(entry)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    finally:
        if _sweep is not None:
            status = _sweep.close(status)
    return status


def _set_up_options() -> None:
    """Let the presets in `conf/hydra/` stand for what plugins register under the same names.

    Hydra would hold them to the plugin's schema and warn of that, or refuse it (Optuna's). And it
    would copy its store of options at each look into it, which took half the time of `--help`.
    """
    Plugins.instance()  # registers them, if it hasn't
    store: Any = ConfigStore.instance()
    registered = store.repo.get("hydra", {})
    for path in (CONF / "hydra").glob("*/*.yaml"):
        registered.get(path.parent.name, {}).pop(path.name, None)
    store.__deepcopy__ = lambda memo: store  # what is taken from it is a copy anyway


def _guarded(entry: Callable[[], Any]) -> int:
    try:
        entry()
        if _error is not None:
            raise _error
    except (HydraException, OmegaConfBaseException, BrokenFile) as error:
        return _fail(one_line(error), 2)
    except ValueError as error:
        if _started and _sweep is None:  # a bug of ours; Hydra's own come before any job
            raise
        return _fail(one_line(error), 2)
    except ConfigError as error:
        return _fail(str(error), 2)
    except Interrupted as error:
        return _fail(f"stopped by {error}", 128 + int(getattr(signal, str(error), 0)))
    except OproError as error:
        return _fail(str(error), 1)
    except OSError as error:
        if _started:
            raise
        return _fail(f"{error.filename}: {error.strerror}", 1)  # Hydra's own files
    return _status


def _preflight() -> ModuleType:
    from opro.setup import preflight  # late: --help needs none of it

    return preflight


def _open_sweep(config: DictConfig) -> None:
    from opro.sweeps.callback import open_sweep

    global _sweep
    _sweep = open_sweep(config)


def _sweep_job(config: DictConfig) -> float | None:
    from opro import job
    from opro.sweeps import job as sweep_job
    from opro.sweeps.file import started_sweep

    hydra_config = HydraConfig.get()
    sweep_folder = Path(hydra_config.runtime.cwd, hydra_config.sweep.dir)
    place = sweep_job.JobPlace(
        sweep=started_sweep(sweep_folder),
        sweep_folder=sweep_folder,
        folder=Path(hydra_config.runtime.output_dir),
        overrides=tuple(task_overrides(hydra_config)),
        here=_sweep is not None,
    )
    value = sweep_job.run_job(
        lambda: job.run(plain_config(config), sweep_job.in_sweep(_place(config), place.sweep)),
        place,
    )
    if _sweep is not None:
        _sweep.tell()
    return value


def _job_name(*, _root_: DictConfig) -> str:
    """Return a job's name, for its folder: the resolver `${opro.job:}`."""
    from opro.sweeps.file import started_sweep
    from opro.sweeps.names import job_name

    sweep = started_sweep(Path(_root_.hydra.runtime.cwd, _root_.hydra.sweep.dir))
    return job_name(task_overrides(_root_.hydra), sweep.swept)


OmegaConf.register_new_resolver("opro.job", _job_name, replace=True)


def _place(config: DictConfig) -> Place:
    from opro.job import Place

    hydra_config = HydraConfig.get()
    return Place(
        launch=Path(hydra_config.runtime.cwd),
        folder=Path(hydra_config.runtime.output_dir),
        overrides=tuple(task_overrides(hydra_config)),
        secrets=secrets_of(config),
    )


def _or_exit(check: Callable[[], None]) -> None:
    """Run a check in a callback, where Hydra would turn an exception into a warning."""
    try:
        check()
    except OproError as error:
        raise SystemExit(_fail(str(error), 2)) from None
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


def _fail(message: str, status: int) -> int:
    print(f"opro: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    # Under its own name, so that the processes of a sweep find `task` where it is.
    from opro.run import main as run

    sys.exit(run())
