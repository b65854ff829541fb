"""One run of the terminal agent in a started container: turns until done or a limit, the check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opro.agents.base import Session
from opro.agents.box import ContainerFailed
from opro.agents.container import Container, Ran
from opro.agents.terminal_task import TerminalTask
from opro.agents.terminal_text import clip_middle, decode, read_reply, shown
from opro.errors import CallFailed, ScoreError
from opro.text import clip
from opro.types import Completion, Kind, Message, Request, Rollout

KEPT = 4000
"""Characters of each reply, command and output that a trajectory keeps."""
CHECK_BYTES = 100_000
"""Bytes of a check's output that are read; more ends it."""
OVERFLOW = "context_overflow"
"""The fault of a call whose conversation has outgrown the model: the agent wrote or read it."""
_SCORE = re.compile(r"SCORE:[ \t]*(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)[ \t]*")


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How the model is asked, and how much of an output it sees.

    Attributes:
        temperature, max_tokens: None leaves them to the endpoint.
        shown_chars: of one command's output.
    """

    temperature: float | None
    max_tokens: int | None
    shown_chars: int


@dataclass(kw_only=True)
class Episode:
    """A run under way.

    Attributes:
        messages: the conversation so far; begins with the instruction and the task.
        trajectory: what happened, one entry a turn, clipped.
        output: the last reply.
        seconds, output_bytes: used by the commands so far.
        notes: limits that the agent met without being ended by them.
    """

    container: Container
    task_id: str
    task: TerminalTask
    session: Session
    asking: Asking
    messages: list[Message]
    trajectory: list[Mapping[str, Any]] = field(default_factory=list)
    output: str = ""
    seconds: float = 0.0
    output_bytes: int = 0
    oom_kills: int = 0
    notes: list[str] = field(default_factory=list)

    def play(self) -> Rollout:
        """Take turns until the agent is done or at a limit, then rate the container."""
        self._set_up()
        limit = self._turns()
        if isinstance(limit, Rollout):
            return limit
        self.container.kill_all()
        score, reason = self._check()
        reasons = [limit] if limit else []
        if score < 1.0:
            if self.container.events("pids"):
                self.notes.append(f"processes: more than the {self.task.limits.pids} allowed")
            reasons += [*dict.fromkeys(self.notes), reason]
        return Rollout(
            output=self.output,
            kind=Kind.LIMIT if limit else None,
            reason="; ".join(reasons),
            score=score,
            trajectory=tuple(self.trajectory),
        )

    def _set_up(self) -> None:
        self.container.write(self.task.files)
        if self.task.setup:
            seconds = self.task.limits.check_seconds
            ran = self.container.shell(self.task.setup, seconds, CHECK_BYTES)
            if ran.code != 0:
                last = _last_line(decode(ran.output))
                raise ContainerFailed(f"the task's set-up {_how(ran)}{f': {last}' if last else ''}")

    def _turns(self) -> str | Rollout:
        """Return the limit that ended the conversation, '' for none, or a refused run."""
        limits = self.task.limits
        for _ in range(limits.turns):
            try:
                completion = self._ask()
            except CallFailed as error:
                if error.kind != OVERFLOW:
                    raise
                return "context: the conversation grew longer than the model can read"
            self.output = completion.text
            if completion.refusal is not None or completion.finish_reason == "content_filter":
                return self._refused(completion)
            reply = read_reply(completion.text)
            step: dict[str, Any] = {"reply": clip_middle(completion.text, KEPT)}
            step["tokens"] = [completion.usage.prompt_tokens, completion.usage.completion_tokens]
            step["reply_seconds"] = round(completion.seconds, 3)
            self.trajectory.append(step)
            told, limit = reply.problem, ""
            if reply.script is not None:
                told, limit = self._act(reply.script, step)
                told = f"{told}\n{reply.problem}".strip()
            if limit or reply.done:
                return limit
            self.messages += [
                Message(role="assistant", content=completion.text),
                Message(role="user", content=told),
            ]
        return f"turns: {limits.turns} replies without DONE"

    def _ask(self) -> Completion:
        return self.session.ask(
            Request(
                messages=tuple(self.messages),
                temperature=self.asking.temperature,
                max_tokens=self.asking.max_tokens,
            )
        )

    def _refused(self, completion: Completion) -> Rollout:
        reason = completion.refusal or "stopped by the provider's content filter"
        return Rollout(
            output=self.output,
            kind=Kind.REFUSAL,
            reason=reason,
            trajectory=tuple(self.trajectory),
        )

    def _act(self, script: str, step: dict[str, Any]) -> tuple[str, str]:
        """Run a block; return what the model is told, and the limit that ends the run or ''."""
        limits = self.task.limits
        left = limits.seconds - self.seconds
        room = limits.output_bytes - self.output_bytes
        ran = self.container.shell(script, min(limits.command_seconds, left), room)
        self.seconds += ran.seconds
        self.output_bytes += len(ran.output)
        limit, note = self._met(ran)
        told = shown(ran, self.asking.shown_chars, limit or note)
        step["command"] = clip_middle(script, KEPT)
        step["told"] = clip_middle(told, KEPT)
        step["seconds"] = ran.seconds
        return told, limit

    def _met(self, ran: Ran) -> tuple[str, str]:
        """Return the limit that ends the run, or a note on one that doesn't; '' for none."""
        limits = self.task.limits
        if ran.end == "output":
            return f"output: more than {limits.output_bytes} bytes in all", ""
        if self.seconds >= limits.seconds:
            return f"seconds: the commands took {limits.seconds:g} s in all", ""
        note = ""
        if ran.end == "seconds":
            note = f"a command was killed after {limits.command_seconds:g} s"
        elif ran.code == 137 and self._ran_out_of_memory():
            note = f"a command was killed at the memory limit of {limits.memory_mb} MB"
        if note:
            self.notes.append(note)
        return "", note

    def _ran_out_of_memory(self) -> bool:
        before, self.oom_kills = self.oom_kills, self.container.events("memory")
        return self.oom_kills > before

    def _check(self) -> tuple[float, str]:
        """Run the task's check; return the score and, when it isn't full, why."""
        limits = self.task.limits
        ran = self.container.shell(self.task.check, limits.check_seconds, CHECK_BYTES)
        text = decode(ran.output)
        last = _last_line(text)
        step: dict[str, Any] = {"check": _how(ran), "told": clip_middle(text, KEPT)}
        step["seconds"] = ran.seconds
        self.trajectory.append(step)
        match = _SCORE.fullmatch(last)
        if ran.end == "exit" and match is not None:
            score = float(match[1])
            if not 0.0 <= score <= 1.0:
                where = f"agent=terminal: the check of task {self.task_id!r}"
                raise ScoreError(f"{where} printed {last!r}, outside of 0 to 1")
            others = text.rstrip()[: -len(last)]
            return score, _reason(f"the check gave {score:g}", _last_line(others))
        return float(ran.code == 0), _reason(f"the check {_how(ran)}", last)


def _how(ran: Ran) -> str:
    if ran.end == "exit":
        return f"exited with {ran.code}"
    return "took too long" if ran.end == "seconds" else "printed too much"


def _reason(head: str, line: str) -> str:
    return f"{head}: {clip(line, 200)}" if line else head


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
