"""Meta-prompts equal the stored outputs of the authors' function, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

from opro.evolvers.history import History
from opro.evolvers.meta_prompt import Exemplar, Layout, write
from opro.types import Evaluation


def _layout(settings: dict) -> Layout:
    only = settings.get("meta_prompt_type") == "instructions_only"
    gpt = settings["optimizer_llm_name"].startswith("gpt")
    school = settings["dataset_name"] == "gsm8k"
    task = "grade school math" if school else settings["task_name"].replace("_", " ")
    return Layout(
        style="instructions_only" if only else "gpt" if gpt else "palm",
        slot=settings["instruction_pos"],
        include_qa=settings.get("include_qa", False),
        exemplars_first=not settings.get("instructions_before_exemplars", True),
        num_score_buckets=settings["num_score_buckets"],
        description=f"{task} problems",
    )


def _history(rows: list) -> History:
    history = History()
    for text, score, step in rows:
        evaluation = Evaluation(instruction=text, md5=text, results=(), mean=score, n=1)
        history.join(evaluation, step)
    return history


def test_all_109_stored_meta_prompts(shared: Path) -> None:
    stored = json.loads((shared / "golden/meta_prompts.json").read_text("utf-8"))
    assert len(stored["cases"]) == 109
    for case in stored["cases"]:
        settings = case["settings"]
        history = _history(settings.get("history", stored["history"]))
        shown = history.shown(
            settings.get("max_num_instructions", 1000),
            settings.get("old_instruction_score_threshold", 0.0),
        )
        problems = [stored["problems"][i] for i in settings.get("few_shot_index_list", [])]
        exemplars = [Exemplar(question=p["question"], answer=str(p["answer"])) for p in problems]
        pairs = [(one.instruction, one.score) for one in shown]
        wanted = exemplars if settings.get("few_shot_qa_pairs") else []
        assert write(_layout(settings), pairs, wanted) == case["meta_prompt"], settings


def test_text_that_looks_like_a_template_stays_as_it_is() -> None:
    hostile = "Pay ${amount} {place} {description} <INS> %s at 100%"
    for style in ("gpt", "palm", "instructions_only"):
        layout = Layout(
            style=style,
            slot="Q_end",
            include_qa=True,
            exemplars_first=False,
            num_score_buckets=100,
            description=hostile,
        )
        text = write(layout, [(hostile, 0.5)], [Exemplar(question=hostile, answer=hostile)])
        assert text.count(hostile) == (2 if style == "instructions_only" else 3)
