"""A made-up run in the project's own records: the input of the tracker and report tests."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from opro.records import (
    Candidate,
    Comparison,
    RunEnd,
    RunInfo,
    Scored,
    StepRecord,
    Summary,
    Totals,
    Validation,
)
from opro.types import Dataset, Evaluation, Kind, Rollout, Task, TaskResult, Usage, Verdict

HOSTILE = (
    "a | b\n| c |\n```\n</td><script>alert(1)</script>\n# head\n\x1b[31mred\x00 \u202eevil "
    "\ud800 `````` ${oc.env:HOME} {{x}} {% raw %} 100% [click](javascript:alert(1)) ![i](http://h/x)"
)
WORDS = "Read the review slowly weigh tone and then answer with one label only".split()


@dataclass(frozen=True, kw_only=True)
class FakeRun:
    """Everything that a tracker is told of one run."""

    info: RunInfo
    steps: tuple[tuple[StepRecord, Totals], ...]
    end: RunEnd

    @property
    def summary(self) -> Summary:
        return self.end.summary


def md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass")).hexdigest()


def make_tasks(prefix: str, n: int) -> tuple[Task, ...]:
    return tuple(
        Task(
            id=f"{prefix}/{i:03d}",
            fields={"review": f"Review {i} of {prefix}."},
            answer="positive" if i % 5 < 3 else "negative",
        )
        for i in range(n)
    )


def evaluate(text: str, tasks: tuple[Task, ...], chance: float, rng: random.Random) -> Evaluation:
    results = []
    for task in tasks:
        right = rng.random() < chance
        kind = Kind.RIGHT if right else rng.choice([Kind.WRONG, Kind.WRONG, Kind.UNPARSED])
        answer = None if kind is Kind.UNPARSED else str(task.answer) if right else "neutral"
        verdict = Verdict(score=float(right), kind=kind, answer=answer, feedback="Made up.")
        output = f"I say {answer}."
        results.append(TaskResult(task_id=task.id, rollout=Rollout(output=output), verdict=verdict))
    mean = sum(r.score for r in results) / len(results)
    return Evaluation(
        instruction=text, md5=md5(text), results=tuple(results), mean=mean, n=len(results)
    )


def totals(step: int, agent_calls: int, n: int, seconds: float = 12.5) -> Totals:
    return Totals(
        by_role={
            "agent": Usage(
                calls=agent_calls, prompt_tokens=60 * agent_calls, completion_tokens=9 * agent_calls
            ),
            "optimizer": Usage(
                calls=(step + 1) * n, prompt_tokens=900, completion_tokens=300, usd=0.012
            ),
        },
        requests=agent_calls + (step + 1) * n + 3,
        cache_hits=0,
        replayed=0,
        faults={"rate_limit": 2, "timeout": 1},
        kinds={"right": agent_calls // 2, "wrong": agent_calls - agent_calls // 2},
        seconds=seconds,
    )


class _Maker:
    """Plays the search with made-up scores."""

    def __init__(self, dataset: Dataset, n: int, seed: int, odd: list[str]) -> None:
        self.data, self.n, self.odd = dataset, n, odd
        self.rng = random.Random(seed)
        self.initial = evaluate("Let's think.", dataset.train, 0.25, self.rng)
        self.history = [self._scored(self.initial, -1)]
        self.evaluations = {self.initial.md5: self.initial}
        self.calls = len(dataset.train)

    @staticmethod
    def _scored(evaluation: Evaluation, step: int) -> Scored:
        return Scored(
            instruction=evaluation.instruction,
            md5=evaluation.md5,
            step=step,
            score=evaluation.mean,
        )

    def best(self) -> Scored:
        return max(self.history, key=lambda s: s.score)

    def candidate(self, step: int, k: int) -> Candidate:
        if k == self.n - 1:
            return Candidate(index=k, status="failed", reason="timeout: no answer in 60 s")
        if k == self.n - 2:
            reply = "Sorry, I cannot help with that."
            return Candidate(index=k, status="skipped", reason="no tags", reply=reply)
        if k == self.n - 3 and step:
            old = self.history[-1]
            return Candidate(
                index=k,
                status="duplicate",
                reason=f"generated in step {old.step}",
                reply=f"<INS>{old.instruction}</INS>",
                instruction=old.instruction,
                md5=old.md5,
            )
        text = self.odd.pop() if self.odd else self._words(step, k)
        chance = min(0.95, 0.3 + 0.08 * step + 0.25 * self.rng.random())
        evaluation = evaluate(text, self.data.train, chance, self.rng)
        self.calls += evaluation.n
        self.history.append(self._scored(evaluation, step))
        self.evaluations[evaluation.md5] = evaluation
        return Candidate(
            index=k,
            status="scored",
            reply=f"<INS>{text}</INS>",
            instruction=text,
            md5=evaluation.md5,
            evaluation=evaluation,
        )

    def _words(self, step: int, k: int) -> str:
        return f"{' '.join(self.rng.sample(WORDS, 7)).capitalize()} ({step}.{k})."

    def step(self, step: int) -> StepRecord:
        current, before = self.initial, self.best()
        if step:
            current = evaluate(before.instruction, self.data.train, before.score, self.rng)
            self.calls += current.n
        candidates = tuple(self.candidate(step, k) for k in range(self.n))
        return StepRecord(
            step=step,
            current=current,
            exemplar_ids=tuple(t.id for t in self.data.train[:3]),
            meta_prompt="Your task is to generate the instruction <INS>.",
            shown=step + 1,
            temperature=1.0,
            candidates=candidates,
            best=self.best(),
            initial=(self.initial,) if step == 0 else (),
            notices=("the two worst instructions were left out to fit the context",) * (step == 2),
        )


def make_run(
    folder: Path,
    *,
    tasks: int = 20,
    steps: int = 4,
    n: int = 8,
    seed: int = 1,
    odd: list[str] | None = None,
    held_out: int = 30,
) -> FakeRun:
    """Return a run of `steps` steps whose folder holds the files that the trainer would write."""
    dataset = Dataset(
        name="reviews",
        train=make_tasks("train", tasks),
        val=make_tasks("val", 10),
        test=make_tasks("test", held_out),
        digest=hashlib.sha256(b"reviews").hexdigest(),
        source="reviews.jsonl",
    )
    maker = _Maker(dataset, n, seed, list(odd or []))
    records = []
    for step in range(steps):
        record = maker.step(step)
        records.append((record, totals(step, maker.calls, n)))
    info = RunInfo(
        name="fake",
        folder=folder,
        dataset=dataset,
        initial_instructions=("Let's think.",),
        params={
            "evolver.name": "opro",
            "evolver.params.n_candidates": n,
            "trainer.epochs": steps,
            "seed": seed,
            "trainer.budget.usd": None,
        },
        tags={"opro.git_commit": "0" * 40, "opro.overrides": "trainer.epochs=4"},
    )
    return FakeRun(info=info, steps=tuple(records), end=_end(maker, records))


def _end(maker: _Maker, records: list[tuple[StepRecord, Totals]]) -> RunEnd:
    top = sorted(maker.history, key=lambda s: -s.score)[:3]
    winner = top[0]
    finalists = tuple(Validation(candidate=c, mean=0.6 - 0.1 * i, n=10) for i, c in enumerate(top))
    test = maker.data.test
    comparisons = [
        Comparison(split="train", initial=maker.initial, winner=maker.evaluations[winner.md5])
    ]
    if test:
        comparisons.append(
            Comparison(
                split="test",
                initial=evaluate("Let's think.", test, 0.25, maker.rng),
                winner=evaluate(winner.instruction, test, 0.6, maker.rng),
            )
        )
    summary = Summary(
        initial=maker.history[0],
        winner=winner,
        select="validation",
        finalists=finalists,
        comparisons=tuple(comparisons),
        history=tuple(maker.history),
        steps=tuple(record for record, _ in records),
        stop_reason="epochs",
        totals=totals(len(records) - 1, maker.calls, maker.n, seconds=61.0),
    )
    return RunEnd(status="FINISHED", stop_reason="epochs", summary=summary)
