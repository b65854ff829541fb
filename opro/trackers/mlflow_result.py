"""What a run's end puts into MLflow: result, files, report, status tags, the winner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from opro.records import RunEnd, RunInfo, Summary
from opro.trackers import names, tables
from opro.trackers.mlflow_client import Client
from opro.trackers.points import result_points

FILES = (
    "report.md", "curve.png", "ADAPTER.md", "result.json", "config.json", "config.yaml",
    "journal.jsonl",
)  # fmt: skip
"""Taken from the run's folder, where they are there; and `state/`."""

ERROR = "opro.error"
PROMPT = "opro.prompt"


def result_parts(
    client: Client, run_id: str, info: RunInfo, end: RunEnd
) -> list[Callable[[], object]]:
    """Return the calls that log a run's end, none of which needs another to succeed."""
    parts = [partial(_log_ending, client, run_id, end)]
    if end.summary is not None:
        parts.append(partial(_log_result, client, run_id, end.summary))
    parts.append(partial(_log_files, client, run_id, info.folder))
    return list(parts)


def _log_result(client: Client, run_id: str, summary: Summary) -> None:
    text, note = tables.scores_table(summary)
    client.log_table(run_id, tables.SCORES, text)
    logged = client.call("get_run", run_id).data.metrics
    fresh = [p for p in result_points(summary) if logged.get(p.name) != p.value]
    client.log_points(run_id, fresh, int(time.time() * 1000))
    tags = {"opro.winner_md5": summary.winner.md5, "opro.select": summary.select}
    client.set_tags(run_id, {**tags, **({"opro.per_task_scores": note} if note else {})})


def _log_files(client: Client, run_id: str, folder: Path) -> None:
    for name in FILES:
        client.log_path(run_id, folder / name)
    client.log_path(run_id, folder / "state", "state")
    client.log_note(run_id, folder / "report.md")


def _log_ending(client: Client, run_id: str, end: RunEnd) -> None:
    client.set_tags(run_id, {"opro.stop_reason": end.stop_reason})
    if end.error:
        client.set_tags(run_id, {ERROR: end.error})
        client.log_text(run_id, "error.txt", end.error)


def register_winner(client: Client, run_id: str, info: RunInfo, summary: Summary) -> None:
    """Make the winner a version of the data set's prompt, unless this run did so before."""
    winner = summary.winner
    tags = client.call("get_run", run_id).data.tags
    if tags.get(PROMPT, "").endswith(winner.md5):
        return
    name = names.prompt_name(info.dataset.name)
    scores = {p.name: f"{p.value:.4f}" for p in result_points(summary) if "score" in p.name}
    message = f"run {info.name}: " + ", ".join(f"{k} {v}" for k, v in scores.items())
    text = names.clean(winner.instruction)
    if text != winner.instruction:
        message += "; NUL and lone surrogates are written as escapes"
    version = client.register(run_id, name, text, names.clip(message, 900))
    about = {"run_id": run_id, "md5": winner.md5, "sweep": tags.get("opro.sweep", "")}
    for key, value in {**about, **scores}.items():
        if value:
            tag = f"opro.{key.replace('/', '.')}"
            client.call("set_prompt_version_tag", name, version, tag, value)
    client.set_tags(run_id, {PROMPT: f"{name} version {version}, md5 {winner.md5}"})


def each(parts: Iterable[Callable[[], object]]) -> list[Exception]:
    """Call all, also after a failure, and return what was raised."""
    errors = []
    for part in parts:
        try:
            part()
        except Exception as error:
            errors.append(error)
    return errors
