"""Judge llm: the prompt, the verdict that counts, and a reply without one."""

from __future__ import annotations

import pytest

from opro.errors import CallFailed, ConfigError
from opro.judges.llm import Llm
from opro.types import Completion, Kind, Request, Rollout, Task

TASK = Task(id="t", fields={"question": "How many?", "hint": "few"}, answer="5")


class Replies:
    """A judge's model that gives stored replies and keeps the requests."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Completion:
        self.requests.append(request)
        return Completion(text=self.texts[len(self.requests) - 1])


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("SCORE: 0.7", 0.7),
        ("Fine.\nSCORE: 1", 1.0),
        ("Fine.\n**Score: 1.0**\n\n", 1.0),
        ("**SCORE:** .5", 0.5),
        ("score = 0.25.", 0.25),
        ("SCORE: 1/1", 1.0),
        ("SCORE: 0", 0.0),
        ("SCORE: 0.1\nSCORE: 0.9", 0.9),
        ("VERDICT: right", 1.0),
        ("Hm.\n`Verdict: WRONG`", 0.0),
    ],
)
def test_verdicts(reply: str, score: float) -> None:
    model = Replies(reply)
    verdict = Llm().rate(TASK, Rollout(output="five"), model)
    assert verdict.score == score
    assert verdict.kind is (Kind.RIGHT if score == 1.0 else Kind.WRONG)
    assert verdict.answer == "five"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "right",
        "SCORE: 7",
        "SCORE: 1.01",
        "SCORE: -1",
        "SCORE: 0.5 or 0.6",
        "SCORE: x",
        "The SCORE: 0.7",
        "SCORE: 0.7\nThat's it.",
        "VERDICT: right or wrong",
        "VERDICT: partly",
        "SCORE: " + "9" * 100_000,
    ],
)
def test_no_verdict_is_asked_once_more_and_then_a_failed_call(reply: str) -> None:
    model = Replies(reply, "SCORE: 0.7")
    assert Llm().rate(TASK, Rollout(output="five"), model).score == 0.7
    assert [request.sample for request in model.requests] == [0, 1]
    with pytest.raises(CallFailed) as caught:
        Llm().rate(TASK, Rollout(output="five"), Replies(reply, reply))
    assert caught.value.kind == "judge_unparsed"
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_placeholders_are_filled_in_once() -> None:
    model = Replies("SCORE: 1")
    judge = Llm(rubric="R {output}", template="{rubric}|{question}|{answer}|{output}|{other}{}")
    output = "{answer} {question} \\1 \\g<0> ${oc.env:HOME} %s {0}"
    judge.rate(TASK, Rollout(output=output), model)
    content = model.requests[0].messages[0].content
    shown = "question: How many?\nhint: few"
    assert content == f"R {{output}}|{shown}|5|{output}|{{other}}{{}}"


def test_the_request_follows_the_settings() -> None:
    model = Replies("SCORE: 1")
    judge = Llm(question_field="hint", template="{question}{output}", temperature=None)
    judge.rate(TASK, Rollout(output="5"), model)
    (request,) = model.requests
    assert (request.temperature, request.max_tokens) == (None, 512)
    assert [message.role for message in request.messages] == ["user"]
    assert request.messages[0].content == "few5"


def test_feedback_is_the_models_reason_and_the_expected_answer() -> None:
    model = Replies("Too few.\nSCORE: 0")
    verdict = Llm().rate(TASK, Rollout(output="4"), model)
    assert verdict.feedback == "Too few; the expected answer is '5'."
    long = Llm().rate(TASK, Rollout(output="4"), Replies("x" * 9_999 + "\nSCORE: 0"))
    assert len(long.feedback) < 600 and "'5'" in long.feedback


def test_a_task_without_an_answer() -> None:
    model = Replies("SCORE: 0.5")
    verdict = Llm().rate(Task(id="t", fields={"q": "?"}), Rollout(output="4"), model)
    assert "(none is given)" in model.requests[0].messages[0].content
    assert verdict.feedback == "The judge gave 0.5."


def test_a_blank_output_costs_no_call() -> None:
    model = Replies()
    assert Llm().rate(TASK, Rollout(output=" "), model).kind is Kind.NO_RESPONSE
    assert model.requests == []


def test_refused() -> None:
    with pytest.raises(ConfigError, match=r"judge\.template: \{output\} is missing"):
        Llm(template="{question}")
    with pytest.raises(ConfigError, match=r"judge\.question_field=hnt: .*did you mean 'hint'"):
        Llm(question_field="hnt").check(TASK)
    with pytest.raises(ConfigError, match="needs a model"):
        Llm().rate(TASK, Rollout(output="5"))


def test_plan() -> None:
    assert Llm().needs_llm and Llm().max_calls == 2
