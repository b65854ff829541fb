"""The one-shot agent: one instruction, one question, one answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from opro.agents.base import Agent, Session
from opro.agents.prompts import chat_prompt
from opro.errors import ConfigError, nearest
from opro.text import strip_think
from opro.types import Completion, Kind, Message, Request, Rollout, Task

Position = Literal["system", "before_Q", "Q_begin", "Q_end", "A_begin"]


class ChatAgent(Agent):
    """Asks the acting model once per task.

    Args:
        instruction_position: `system` sends the instruction as the system message; the others
            put it into the user message as the authors' scorer prompts do.
        include_qa: the user message carries `Q:` and `A:`.
        question_field: the task field asked; None asks all of them.
        temperature: None leaves it to the endpoint.
        max_tokens: of an answer; None leaves it to the endpoint.
        think_tags: names of tags whose block isn't part of the answer; the raw output keeps it.
        suffix: appended to the question, e.g. to ask for a form of answer; '' for none.
    """

    max_calls = 1

    def __init__(
        self,
        *,
        instruction_position: Position = "system",
        include_qa: bool = False,
        question_field: str | None = None,
        temperature: Annotated[float, Field(ge=0, le=5)] | None = 0.0,
        max_tokens: Annotated[int, Field(ge=1)] | None = None,
        think_tags: list[str] | None = None,
        suffix: str = "",
    ) -> None:
        self.position = instruction_position
        self.include_qa = include_qa
        self.question_field = question_field
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.think_tags = think_tags or []
        self.suffix = suffix

    def check(self, tasks: tuple[Task, ...]) -> None:
        """Raise ConfigError when a task lacks `question_field`."""
        if self.question_field is not None:
            for task in tasks:
                if self.question_field not in task.fields:
                    raise ConfigError(
                        f"agent.question_field={self.question_field}: task {task.id!r} has no such"
                        f" field{nearest(self.question_field, task.fields)};"
                        f" it has: {', '.join(task.fields)}"
                    )

    def run(self, instruction: str, task: Task, session: Session) -> Rollout:
        """Ask once; the judge sees the answer without its think block, the journal all of it."""
        completion = session.ask(
            Request(
                messages=self._messages(instruction, task),
                temperature=self.temperature,
                max_tokens=self.max_tokens,
            )
        )
        return self._rollout(completion)

    def _messages(self, instruction: str, task: Task) -> tuple[Message, ...]:
        question = task.text(self.question_field) + self.suffix
        if self.position != "system":
            text = chat_prompt(instruction, question, self.position, self.include_qa)
            return (Message(role="user", content=text),)
        text = chat_prompt("", question, "Q_begin", self.include_qa)
        user = Message(role="user", content=text)
        system = Message(role="system", content=instruction)
        return (system, user) if instruction else (user,)

    def _rollout(self, completion: Completion) -> Rollout:
        if completion.refusal is not None or completion.finish_reason == "content_filter":
            reason = completion.refusal or "stopped by the provider's content filter"
            return Rollout(output=completion.text, kind=Kind.REFUSAL, reason=reason)
        kind, reason = self._end(completion)
        answer = strip_think(completion.text, self.think_tags)
        if answer is None:
            return Rollout(
                output="",
                kind=kind or Kind.UNPARSED,
                reason=reason or "the thinking block was never closed",
            )
        if not answer and completion.text.strip():
            return Rollout(
                output="", kind=kind or Kind.UNPARSED, reason=reason or "nothing after thinking"
            )
        return Rollout(output=answer, kind=kind, reason=reason)

    def _end(self, completion: Completion) -> tuple[Kind | None, str]:
        if completion.finish_reason != "length":
            return None, ""
        return Kind.TRUNCATED, "the answer was cut off by the token limit"
