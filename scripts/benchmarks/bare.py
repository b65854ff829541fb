"""The bare client: a search's calls by the openai package in joblib threads, and nothing else.

`python -m scripts.benchmarks.bare URL TASKS CANDIDATES STEPS IN_FLIGHT`: the same requests in the
same order as a search makes, step by step; no journal, no judge, no files. As in a search a
failed call is made again (the package's own retries).
"""

from __future__ import annotations

import sys

from joblib import Parallel, delayed
from openai import OpenAI

from scripts.benchmarks.load import Load


def main(url: str, load: Load) -> None:
    """Make all calls of `load` at `url`."""
    client = OpenAI(base_url=url, api_key="none", max_retries=4)

    def ask(messages: list[tuple[str, str]], temperature: float, seed: int) -> str:
        answer = client.chat.completions.create(
            model="loopback-model",
            messages=[{"role": role, "content": text} for role, text in messages],  # type: ignore[misc]
            temperature=temperature,
            seed=seed,
        )
        return answer.choices[0].message.content or ""

    def score(instruction: str, question: str) -> str:
        return ask([("system", instruction), ("user", question)], 0.0, 0)

    with Parallel(n_jobs=load.in_flight, backend="threading", batch_size=1) as parallel:
        instructions = ["Let's solve the problem."]
        for step in range(load.steps + 1):
            pairs = [(text, question) for text in instructions for question in load.questions()]
            parallel(delayed(score)(*pair) for pair in pairs)
            if step < load.steps:
                text = "Your task is to generate\n" + "\n".join(instructions)
                seeds = range(step * load.candidates, (step + 1) * load.candidates)
                instructions = parallel(delayed(ask)([("user", text)], 1.0, n) for n in seeds)


if __name__ == "__main__":
    tasks, candidates, steps, in_flight = map(int, sys.argv[2:])
    main(sys.argv[1], Load(tasks=tasks, candidates=candidates, steps=steps, in_flight=in_flight))
