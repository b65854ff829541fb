"""Trajectories in a step's files."""

from __future__ import annotations

import json
from dataclasses import replace

from opro.records import Candidate, Scored, StepRecord
from opro.transcript import one_run, trajectories
from opro.types import Evaluation, Kind, Rollout, TaskResult, Verdict

STEPS = (
    {"reply": "```bash\nls ```", "tokens": [10, None], "reply_seconds": 0.5, "command": "ls",
     "told": "exit code: 0\u202e\n````", "seconds": 0.25},
    {"check": "exited with 1", "told": "no", "seconds": 0.1},
)  # fmt: skip


def evaluation(md5: str, *scores: float | None, steps: tuple = STEPS) -> Evaluation:
    results = tuple(
        TaskResult(
            task_id=f"t{number}",
            rollout=Rollout(output="x", reason="r", trajectory=steps),
            verdict=None if score is None else Verdict(score=score, kind=Kind.WRONG),
        )
        for number, score in enumerate(scores)
    )
    known = [score for score in scores if score is not None]
    mean = sum(known) / len(known) if len(known) == len(scores) else None
    return Evaluation(instruction=md5, md5=md5, results=results, mean=mean, n=len(results))


def record(*evaluations: Evaluation) -> StepRecord:
    candidates = [
        Candidate(index=index, status="scored", evaluation=one)
        for index, one in enumerate(evaluations)
    ]
    return StepRecord(
        step=0, current=None, exemplar_ids=(), meta_prompt="", shown=0, temperature=1.0,
        candidates=tuple(candidates),
        best=Scored(instruction="x", md5="x", step=0, score=0.0),
    )  # fmt: skip


def test_the_best_candidates_first_run_that_is_not_right_is_shown() -> None:
    found = record(evaluation("low", 0.0), evaluation("best", 1.0, 0.0), evaluation("none", None))
    text = "\n".join(one_run(found))
    assert "Task t1, wrong, score 0.000, under the instruction of md5 best" in text
    assert "**Turn 1** (reply 0.5 s, command 0.25 s, 10 tokens)" in text
    assert "**The check** exited with 1 after 0.1 s." in text
    assert "\u202e" not in text and "`````" in text
    lines = [json.loads(line) for line in trajectories(found).splitlines()]
    assert [(one["md5"], one["task"], one["score"]) for one in lines] == [
        ("low", "t0", 0.0), ("best", "t0", 1.0), ("best", "t1", 0.0), ("none", "t0", None),
    ]  # fmt: skip
    assert lines[0]["trajectory"] == [dict(step) for step in STEPS]


def test_agents_that_answer_at_once_leave_nothing() -> None:
    found = record(evaluation("a", 1.0, steps=()))
    assert one_run(found) == [] and trajectories(found) == ""
    assert one_run(replace(found, candidates=())) == []
