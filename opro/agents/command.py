"""The agent that is a command: any program, such as a coding agent's, run once for each task.

It runs in a folder of its own that holds the instruction (ADAPTER.md, and under whatever names the
program reads by itself: AGENTS.md, CLAUDE.md) and the task as JSON. It is no sandbox: the program
has the rights of the user who runs us. What becomes of a run:

    exit code 0                          its output is rated by the judge
    exit code in infrastructure_exit_codes   infrastructure: once more, then unscored
    any other exit code                  no_response: 0, with the end of what it printed as reason
    ended by a signal that isn't ours    infrastructure
    longer than `seconds`                limit: 0
    more output than `max_output_bytes`  limit: 0
    no `output_file` at the end          no_response: 0
    the program can't be started         infrastructure; a missing one is refused before the run
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from opro.agents.base import Agent, Session
from opro.argv import absolute, check_argv, environment, fill
from opro.errors import ConfigError, Interrupted
from opro.processes import Command, Ended, Processes, scratch_folder
from opro.text import clip
from opro.types import Kind, Rollout, Task

PLACES = ("instruction_file", "task_file", "workdir", "launch_folder")
KEPT = 4000
"""Characters of each output that a trajectory keeps: its end."""
FileName = Annotated[str, Field(pattern=r"^[^/\x00]+$", max_length=200)]


class CommandAgent(Agent):
    """Runs a command for each task.

    Args:
        command: the program and its arguments; `{instruction_file}`, `{task_file}`, `{workdir}`
            and `{launch_folder}` are replaced by absolute paths.
        stdin: what it reads: the task's text, or nothing.
        instruction_files: names in its folder that hold the instruction; the first is
            `{instruction_file}`.
        task_file: the name in its folder of the task as JSON (`id`, `fields`, `text`).
        output_file: the name in its folder of what is rated; None: what it prints.
        env: names of the variables that it gets of ours.
        seconds: of one run.
        max_output_bytes: of all that it prints, and of `output_file`.
        infrastructure_exit_codes: exit codes by which it says that the failure isn't the
            instruction's.
        launch_folder: where the run was started.
    """

    needs_llm = False
    max_calls = 0

    def __init__(
        self,
        *,
        launch_folder: Path,
        command: list[str],
        stdin: Literal["task", "none"] = "task",
        instruction_files: Annotated[list[FileName], Field(min_length=1)] | None = None,
        task_file: FileName = "task.json",
        output_file: FileName | None = None,
        env: list[str] | None = None,
        seconds: Annotated[float, Field(gt=0)] = 600.0,
        max_output_bytes: Annotated[int, Field(ge=1)] = 1_000_000,
        infrastructure_exit_codes: list[int] | None = None,
    ) -> None:
        self._command = command
        self._stdin = stdin
        self._instruction_files = instruction_files or ["ADAPTER.md"]
        self._task_file = task_file
        self._output_file = output_file
        self._env = env or ["PATH", "HOME"]
        self._seconds = seconds
        self._max_bytes = max_output_bytes
        self._infrastructure = infrastructure_exit_codes or []
        self._launch_folder = launch_folder
        self._processes = Processes()

    def check(self, tasks: tuple[Task, ...]) -> None:
        """Raise ConfigError when the program isn't there or its files would collide."""
        check_argv(self._command, self._env, "agent.command", PLACES)
        names = [*self._instruction_files, self._task_file]
        if len(set(names)) < len(names) or {".", ".."} & {*names, self._output_file}:
            raise ConfigError(
                f"agent.instruction_files={self._instruction_files},"
                f" agent.task_file={self._task_file}, agent.output_file={self._output_file}:"
                " give each file a name of its own"
            )
        for task in tasks:
            _as_json(task)

    def run(self, instruction: str, task: Task, session: Session) -> Rollout:
        """Run the command in a fresh folder; see the module for what becomes of it."""
        with scratch_folder() as scratch:
            folder = scratch / "work"
            data = instruction.encode("utf-8", "replace")
            for name in self._instruction_files:
                (folder / name).write_bytes(data)
            (folder / self._task_file).write_text(_as_json(task), "utf-8")
            try:
                ended = self._processes.run(self._filled(scratch, task))
            except OSError as error:
                reason = f"{self._command[0]} can't be started: {error.strerror}"
                return Rollout(output="", kind=Kind.ERROR, reason=reason)
            if ended.end == "closed":
                raise Interrupted("the run is ending")
            return self._rollout(ended, folder)

    def close(self) -> None:
        """End all commands under way; their runs raise Interrupted."""
        self._processes.close()

    def _filled(self, scratch: Path, task: Task) -> Command:
        folder = scratch / "work"
        places = {
            "instruction_file": str(folder / self._instruction_files[0]),
            "task_file": str(folder / self._task_file),
            "workdir": str(folder),
            "launch_folder": str(self._launch_folder),
        }
        text = task.text() if self._stdin == "task" else ""
        return Command(
            argv=fill(absolute(self._command), places),
            scratch=scratch,
            env=environment(self._env),
            stdin=text.encode("utf-8", "replace"),
            seconds=self._seconds,
            max_bytes=self._max_bytes,
        )

    def _rollout(self, ended: Ended, folder: Path) -> Rollout:
        output, missing = self._output(ended, folder)
        kind, reason = self._kind(ended)
        if kind is None and missing:
            kind, reason = Kind.NO_RESPONSE, missing
        step: dict[str, Any] = {"command": " ".join(self._command), "exit": ended.code}
        step["told"] = ended.stdout.decode("utf-8", "replace")[-KEPT:]
        step["errors"] = ended.stderr.decode("utf-8", "replace")[-KEPT:]
        step["seconds"] = ended.seconds
        return Rollout(output=output, kind=kind, reason=reason, trajectory=(step,))

    def _kind(self, ended: Ended) -> tuple[Kind | None, str]:
        if ended.end == "seconds":
            return Kind.LIMIT, f"seconds: the command took more than {self._seconds:g} s"
        if ended.end == "output":
            return Kind.LIMIT, f"output: the command printed more than {self._max_bytes} bytes"
        code = ended.code or 0
        if code < 0:
            return Kind.ERROR, f"the command was ended by {_signal_name(-code)}"
        if code in self._infrastructure:
            return Kind.ERROR, _exited(ended, code)
        return (Kind.NO_RESPONSE, _exited(ended, code)) if code else (None, "")

    def _output(self, ended: Ended, folder: Path) -> tuple[str, str]:
        """Return the output and, when its file isn't there, what is missing."""
        if self._output_file is None:
            return ended.stdout.decode("utf-8", "replace"), ""
        path = folder / self._output_file
        try:
            # A link would be followed to any file of ours.
            if path.is_symlink() or not path.is_file():
                raise OSError
            with open(path, "rb") as file:
                return file.read(self._max_bytes).decode("utf-8", "replace"), ""
        except OSError:
            return "", f"the command left no file {self._output_file}"


def _as_json(task: Task) -> str:
    """Return what the command may know of a task: never its answer or its check."""
    known = {"id": task.id, "fields": dict(task.fields), "text": task.text()}
    return json.dumps(known, indent=2, default=str)


def _exited(ended: Ended, code: int) -> str:
    text = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip()
    last = clip(text.splitlines()[-1].strip(), 200) if text else ""
    return f"the command exited with {code}{f': {last}' if last else ''}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
