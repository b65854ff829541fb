"""Everything that is asked of MLflow itself. The only file that imports mlflow.

Runs are addressed by their id alone: MLflow's active run, its threads and its environment
variables play no part.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opro.errors import ConfigError, RunError
from opro.trackers import mlflow_quiet, names
from opro.trackers.points import Point
from opro.trackers.store import Store
from opro.types import Dataset

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

RACES = ("locked", "already exists", "unique constraint")
"""What another process of a sweep may have done in between, e.g. made the same prompt first."""

TRIES = 6
"""Attempts while another process holds the database; MLflow waits 20 s in each of them."""

NOTE, TABLES = "mlflow.note.content", "mlflow.loggedArtifacts"
LINKED_PROMPTS = "mlflow.linkedPrompts"

EXPERIMENTS_OF_PROMPT = "_mlflow_experiment_ids"
"""The tag by which MLflow's UI lists a prompt under an experiment."""


class Client:
    """MLflow's client for one store and one experiment; opened on first use.

    Args:
        store: where.
        experiment: its name; created when it isn't there.
    """

    def __init__(self, store: Store, experiment: str) -> None:
        self._store = store
        self._experiment = experiment
        self._mlflow: MlflowClient | None = None
        self._tables: set[tuple[str, str]] = set()
        self.experiment_id = ""

    def load(self) -> None:
        """Import mlflow."""
        mlflow_quiet.before_import()
        import mlflow  # noqa: F401

        from opro.trackers import mlflow_engines

        mlflow_quiet.after_import()
        mlflow_engines.watch()

    def close(self) -> None:
        """Close the connections to databases, of all clients; they come again when needed."""
        if self._mlflow is not None:
            from opro.trackers import mlflow_engines

            mlflow_engines.close()

    def open(self) -> None:
        """Create what is missing in the store, find the experiment."""
        if self._mlflow is not None:
            return
        self.load()
        with self._store.lock(), self._redacted():
            from mlflow import MlflowClient

            uri = self._store.uri
            client = _patiently(lambda: MlflowClient(tracking_uri=uri, registry_uri=uri))
            self.experiment_id = _patiently(lambda: self._find_experiment(client))
        self._mlflow = client

    def _find_experiment(self, client: MlflowClient) -> str:
        found = client.get_experiment_by_name(self._experiment)
        if found is None:
            try:
                location = self._store.artifacts
                return str(client.create_experiment(self._experiment, artifact_location=location))
            except Exception:
                found = client.get_experiment_by_name(self._experiment)  # another was faster
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            raise ConfigError(
                f"tracker.experiment={self._experiment}: deleted in {self._store.shown}; restore "
                "it there or choose another name"
            )
        return str(found.experiment_id)

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of MLflow's client; again while another process holds the database."""
        self.open()
        with self._redacted():
            return _patiently(lambda: getattr(self._mlflow, method)(*args, **kwargs))

    @contextlib.contextmanager
    def _redacted(self) -> Iterator[None]:
        """Keep the URI's password out of what is raised: MLflow puts it into its messages."""
        try:
            yield
        except Exception as error:
            text = self._store.redact(str(error))
            if text == str(error):
                raise
            raise RunError(text) from None

    # -- runs -----------------------------------------------------------------------------

    def create(self, name: str, tags: Mapping[str, str]) -> str:
        """Create a run and return its id."""
        self.open()
        return str(
            self.call("create_run", self.experiment_id, tags=tags, run_name=name).info.run_id
        )

    def active(self, run_id: str) -> Run | None:
        """Return the run, or None when it was deleted or never was in this store."""
        try:
            run: Run = self.call("get_run", run_id)
        except Exception as error:
            if getattr(error, "error_code", "") != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return run if run.info.lifecycle_stage == "active" else None

    def runs_on(self, run_id: str) -> bool:
        """Return whether the run is marked as RUNNING now; it may have ended since a search."""
        run = self.active(run_id)
        return run is not None and run.info.status == "RUNNING"

    def search(self, query: str) -> list[Run]:
        """Return the experiment's runs that match, the latest first."""
        self.open()
        return list(self.call("search_runs", [self.experiment_id], query))

    # -- what a run holds -----------------------------------------------------------------

    def log_points(self, run_id: str, points: Iterable[Point], time_ms: int) -> None:
        """Log metric points in batches; up to 1,000 are written as one, or not at all."""
        self.open()
        from mlflow.entities import Metric

        metrics = [Metric(point.name, point.value, time_ms, point.x) for point in points]
        self.call("log_batch", run_id, metrics=metrics, synchronous=True)

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Log params, 100 in a batch."""
        self.open()
        from mlflow.entities import Param

        entities = [Param(key, value) for key, value in params.items()]
        self.call("log_batch", run_id, params=entities, synchronous=True)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags; what is longer than a tag may be is cut, saying so."""
        self.open()
        from mlflow.entities import RunTag

        entities = [RunTag(key, names.clip(value)) for key, value in tags.items()]
        self.call("log_batch", run_id, tags=entities, synchronous=True)

    def log_dataset(self, run_id: str, dataset: Dataset) -> None:
        """Log the data set as the run's input: name, digest, sizes of the splits."""
        self.open()
        from mlflow.entities import Dataset as Entity
        from mlflow.entities import DatasetInput, InputTag

        sizes = {split: len(dataset.split(split)) for split in ("train", "val", "test")}
        entity = Entity(
            name=names.clip(dataset.name, 400) or "data",
            digest=dataset.digest[:12] or "unknown",  # MLflow allows 36; its pages have room for 12
            source_type="local",
            source=json.dumps({"uri": dataset.source}),
            profile=json.dumps({"digest": dataset.digest, **sizes}),
        )
        context = InputTag("mlflow.data.context", "train, val, test")
        self.call("log_inputs", run_id, datasets=[DatasetInput(entity, [context])])

    def log_path(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """Upload a file, or a folder's content, when it is there."""
        if path.is_dir():
            self.call("log_artifacts", run_id, str(path), folder)
        elif path.is_file():
            self.call("log_artifact", run_id, str(path), folder)

    def log_text(self, run_id: str, path: str, text: str) -> None:
        """Write a text artifact."""
        self.call("log_text", run_id, names.clean(text), path)

    def log_table(self, run_id: str, path: str, text: str) -> None:
        """Write a table artifact (whole, in MLflow's format) and tell the UI of it."""
        self.call("log_text", run_id, text, path)
        if (run_id, path) in self._tables:
            return
        listed = json.loads(self.call("get_run", run_id).data.tags.get(TABLES, "[]"))
        entry = {"path": path, "type": "table"}
        if entry not in listed:
            self.set_tags(run_id, {TABLES: json.dumps([*listed, entry])})
        self._tables.add((run_id, path))

    def log_note(self, run_id: str, report: Path) -> None:
        """Make a report, if it is there, the run's description."""
        if report.is_file():
            text = report.read_text(encoding="utf-8", errors="replace")
            self.set_tags(run_id, {NOTE: names.note_text(text)})

    # -- prompts --------------------------------------------------------------------------

    def register(self, run_id: str, name: str, text: str, message: str) -> int:
        """Add `text`, byte for byte, as a new version of a prompt and return its number."""
        version = self.call("register_prompt", name, text, commit_message=message)
        # MLflow lists the prompt under its *active* experiment, from a thread of its own. Ours is
        # another one, so wait for that thread and set the list right.
        for thread in threading.enumerate():
            if thread.name.startswith("link_prompt_to_experiment"):
                thread.join(30)
        listed = self.call("get_prompt", name).tags.get(EXPERIMENTS_OF_PROMPT, "")
        ids = {part for part in listed.split(",") if part} - {"0"} | {self.experiment_id}
        self.call("set_prompt_tag", name, EXPERIMENTS_OF_PROMPT, f",{','.join(sorted(ids))},")
        # `link_prompt_version_to_run` would look for the run in MLflow's default store.
        link = {"name": name, "version": str(version.version)}
        self.set_tags(run_id, {LINKED_PROMPTS: json.dumps([link])})
        return int(version.version)


def _patiently(call: Callable[[], Any]) -> Any:
    """Return what `call` returns, trying again when another process was at the same thing."""
    for attempt in range(TRIES):
        try:
            return call()
        except Exception as error:
            text = str(error).lower()
            if attempt == TRIES - 1 or not any(sign in text for sign in RACES):
                raise
            # Processes that were turned away together shouldn't come back together.
            time.sleep(0.1 * 2**attempt + os.getpid() % 10 / 50)
    raise AssertionError("unreachable")
