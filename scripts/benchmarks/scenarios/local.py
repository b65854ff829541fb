"""SmolLM2 on this machine: tokens per second of a search, and of its server asked alone."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from opro.llms.llama_server import LlamaServerLLM
from opro.types import Message, Request
from scripts.benchmarks import process, table

DEMO = process.ROOT / "opro/data/demo.jsonl"
CANDIDATES = 8
ANSWER, REPLY = 48, 96
"""The most tokens of an answer and of an optimizer's reply."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1)


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Search with a server of this process, and send it the same requests without a search.

    The server answers faster the longer it runs, and this machine is now quick, now slow. So a
    first search warms it up and says what is asked; a second one lies between two times asking.
    """
    llm = LlamaServerLLM(seed=0)
    address = llm.share()
    _search(settings, folder, address, "warm")
    batches = list(_batches(folder / "mlruns/runs/warm"))
    measured = [
        ("bare server", *_alone(address, batches)),
        ("search", *_search(settings, folder, address, "x")),
        ("bare server", *_alone(address, batches)),
    ]
    llm.close()
    bare = sum(tokens / seconds for name, tokens, seconds in measured if name != "search") / 2
    rows = [
        [name, tokens, seconds, tokens / seconds, tokens / seconds / bare]
        for name, tokens, seconds in measured
    ]
    table.show("local model", ("", "tokens", "seconds", "tokens / s", "/ bare"), rows)


def _search(
    settings: argparse.Namespace, folder: Path, address: str, name: str
) -> tuple[int, float]:
    """Run a search at `address`; return tokens answered and seconds."""
    process.opro(
        [
            *("llm=smollm2", f"llm.base_url={address}", "llm.cache=false", "tracker=none"),
            *(f"trainer.run_name={name}", "trainer.rescore=false", "trainer.compare=[]"),
            *("evolver.params.select=train", f"evolver.params.n_candidates={CANDIDATES}"),
            *(f"trainer.epochs={settings.steps}", f"data.train={settings.tasks}"),
            *(f"agent.max_tokens={ANSWER}", f"evolver.params.max_tokens={REPLY}"),
        ],
        folder,
        None,
    )
    text = (folder / "mlruns/runs" / name / "result.json").read_text("utf-8")
    totals = json.loads(text)["totals"]
    tokens = sum(role["completion_tokens"] for role in totals["by_role"].values())
    return tokens, totals["seconds"]


def _batches(folder: Path) -> Iterator[list[Request]]:
    """Yield what a search sent at a time: the start's scoring, then each step's two batches."""
    state = json.loads((folder / "state/opro.json").read_text("utf-8"))
    rows = {row["id"]: row for row in map(json.loads, DEMO.read_text("utf-8").splitlines())}
    questions = [rows[task]["message"] for task in state["task_ids"]]
    for step in range(-1, len(state["steps"])):
        if step >= 0:
            text = (folder / f"output/step_{step:03d}/meta_prompt.md").read_text("utf-8")
            yield [
                _request(1.0, REPLY, step * CANDIDATES + n, user=text) for n in range(CANDIDATES)
            ]
        texts = [one["instruction"] for one in state["history"] if one["step"] == step]
        yield [_request(0.0, ANSWER, 0, system=t, user=q) for t in texts for q in questions]


def _request(temperature: float, most: int, sample: int, **texts: str) -> Request:
    messages = tuple(Message(role=role, content=text) for role, text in texts.items())
    return Request(messages=messages, temperature=temperature, max_tokens=most, sample=sample)


def _alone(address: str, batches: list[list[Request]]) -> tuple[int, float]:
    """Send the batches one after the other; return tokens answered and seconds."""
    llm = LlamaServerLLM(seed=0, base_url=address)
    began, tokens = time.monotonic(), 0
    with (
        contextlib.closing(llm),
        Parallel(n_jobs=llm.max_in_flight, backend="threading", batch_size=1) as parallel,
    ):
        for batch in batches:
            answers: list[Any] = parallel(delayed(llm.send)(request) for request in batch)
            tokens += sum(answer.usage.completion_tokens or 0 for answer in answers)
    return tokens, time.monotonic() - began
