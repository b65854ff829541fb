"""A model behind a command line: each call is one run of a program, such as a coding agent's CLI.

The prompt is the request's messages, one after another with a blank line between (the optimizer
sends one). Temperature and token limit can't be passed on to a program in general, so they are
not, which each answer notes; put such settings into `command`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from opro.argv import absolute, check_argv, environment, fill
from opro.llms.base import LLM, Switch
from opro.llms.command_reply import Places, UsagePlaces, read, said
from opro.llms.excerpt import excerpt
from opro.llms.faults import Fault
from opro.llms.price import Price
from opro.processes import Command, Ended, Processes, scratch_folder
from opro.types import Completion, Request

PLACES = ("prompt_file", "output_file", "workdir", "model")
FileName = Annotated[str, Field(pattern=r"^[^/\x00]+$", max_length=200)]


class CommandLLM(LLM):
    """Answers each request by one run of a command in an empty folder.

    Args:
        command: the program and its arguments; `{prompt_file}`, `{output_file}` and `{workdir}`
            are replaced by absolute paths, `{model}` by `model`.
        model: the name in records, and `{model}`.
        prompt: where the program finds the prompt: on its standard input or in `{prompt_file}`.
        output_file: the name in its folder of the answer; None: what it prints.
        reply_field: where the text is in a JSON object (dots lead inwards); None: all is text.
        prompt_tokens_fields, completion_tokens_field, usd_field: where the usage is in it.
        error_field: where it says that the call failed.
        env: names of the variables that it gets of ours.
        max_output_bytes: of all that it prints, and of the answer.
        price: for a program that tells tokens, but no cost.
        timeout, retries, max_in_flight, cache: as for an endpoint.
    """

    def __init__(
        self,
        *,
        command: list[str],
        model: str = "command",
        prompt: Literal["stdin", "file"] = "stdin",
        output_file: FileName | None = None,
        reply_field: str | None = None,
        prompt_tokens_fields: list[str] | None = None,
        completion_tokens_field: str | None = None,
        usd_field: str | None = None,
        error_field: str | None = None,
        env: list[str] | None = None,
        max_output_bytes: Annotated[int, Field(ge=1)] = 10_000_000,
        price: Price | None = None,
        timeout: Annotated[float, Field(gt=0)] = 600.0,
        retries: Annotated[int, Field(ge=0, le=100)] = 2,
        max_in_flight: Annotated[int, Field(ge=1, le=4096)] = 4,
        cache: Switch = True,
    ) -> None:
        self.model = model
        self.price = price or Price()
        self.tells_cost = usd_field is not None
        self.retries = retries
        self.max_in_flight = max_in_flight
        self.cache = cache
        self._command = command
        self._prompt = prompt
        self._output_file = output_file
        usage = UsagePlaces(
            prompt=prompt_tokens_fields or [], completion=completion_tokens_field, usd=usd_field
        )
        self._places = Places(reply=reply_field, error=error_field, usage=usage)
        self._env = env or ["PATH", "HOME"]
        self._max_bytes = max_output_bytes
        self._timeout = timeout
        self._processes = Processes()
        self._closed = False

    def check(self) -> None:
        """Raise ConfigError when the program isn't there or a placeholder is misspelt."""
        check_argv(self._command, self._env, "llm.command", PLACES)

    def close(self) -> None:
        """End all commands under way."""
        self._closed = True
        self._processes.close()

    def send(self, request: Request) -> Completion:
        """Run the command once.

        Raises:
            Fault: see the kinds `command_…`, `timeout`, `closed` and those of its answer.
        """
        if self._closed:
            raise Fault("closed", f"{self._command[0]}: the run is ending")
        with scratch_folder() as scratch:
            try:
                ended = self._processes.run(self._filled(scratch, request))
            except OSError as error:
                reason = f"{self._command[0]} can't be started: {error.strerror}"
                raise Fault("command_missing", reason) from None
            self._refuse(ended)
            answer = read(self._answer(ended, scratch / "work"), self._places, self._command[0])
        return self._finished(answer, request, ended.seconds)

    def identity(self) -> Mapping[str, Any]:
        """Return the command and how its answer is read."""
        return {
            "model": self.model,
            "command": list(self._command),
            "prompt": self._prompt,
            "output_file": self._output_file,
            "reply_field": self._places.reply,
        }

    def _filled(self, scratch: Path, request: Request) -> Command:
        folder = scratch / "work"
        text = "\n\n".join(message.content for message in request.messages)
        data = text.encode("utf-8", "replace")
        prompt_file = scratch / "prompt.txt"
        if self._prompt == "file":
            prompt_file.write_bytes(data)
        places = {
            "prompt_file": str(prompt_file),
            "output_file": str(folder / (self._output_file or "")),
            "workdir": str(folder),
            "model": self.model,
        }
        return Command(
            argv=fill(absolute(self._command), places),
            scratch=scratch,
            env=environment(self._env),
            stdin=data if self._prompt == "stdin" else b"",
            seconds=self._timeout,
            max_bytes=self._max_bytes,
        )

    def _refuse(self, ended: Ended) -> None:
        """Raise the fault of a command that didn't end well."""
        program = self._command[0]
        if ended.end == "closed":
            raise Fault("closed", f"{program}: the run is ending")
        if ended.end == "seconds":
            raise Fault("timeout", f"{program}: no answer within {self._timeout:g} s")
        if ended.end == "output":
            what = f"more than llm.max_output_bytes={self._max_bytes} bytes"
            raise Fault("command_failed", f"{program}: printed {what}")
        if ended.code:
            text = ended.stderr.decode("utf-8", "replace") or self._said(ended)
            tail = f": '{excerpt(text.strip()[-400:], self._secrets(), 400)}'" if text else ""
            raise Fault("command_failed", f"{program} {_how(ended.code)}{tail}")

    def _said(self, ended: Ended) -> str:
        return said(ended.stdout.decode("utf-8", "replace"), self._places)

    def _secrets(self) -> list[str]:
        """Return what the program may know, but must not tell in a message."""
        given = environment(self._env)
        return [value for name, value in given.items() if re.search("(KEY|TOKEN|SECRET)$", name)]

    def _answer(self, ended: Ended, folder: Path) -> str:
        if self._output_file is None:
            return ended.stdout.decode("utf-8", "replace")
        path = folder / self._output_file
        try:
            with open(path, "rb") as file:
                return file.read(self._max_bytes).decode("utf-8", "replace")
        except OSError:
            what = f"left no file {self._output_file}"
            raise Fault("command_failed", f"{self._command[0]}: {what}") from None

    def _finished(self, answer: Completion, request: Request, seconds: float) -> Completion:
        usage = answer.usage
        if usage.usd is None:
            usd = self.price.usd(usage.prompt_tokens, usage.completion_tokens)
            usage = replace(usage, usd=usd)
        settings = {"temperature": request.temperature, "max_tokens": request.max_tokens}
        left = [name for name, value in settings.items() if value is not None]
        notes = (f"not passed on: {', '.join(left)}",) if left else ()
        return replace(answer, model=self.model, usage=usage, seconds=seconds, notes=notes)


def _how(code: int) -> str:
    """Return how a command ended, in words."""
    if code > 0:
        return f"exited with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
