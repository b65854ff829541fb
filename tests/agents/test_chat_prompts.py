"""The scorer's prompts equal the authors', byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

from opro.agents.prompts import chat_prompt

QUESTION = 'What is "half" of 7 dozen?\nGive a whole number.'


def test_stored_scorer_prompts(shared: Path) -> None:
    cases = json.loads((shared / "golden/scorer_prompts.json").read_text("utf-8"))
    assert len(cases) == 24
    for case in cases:
        made = chat_prompt(
            case["instruction"], QUESTION, case["instruction_pos"], case["include_qa"]
        )
        assert made == case["prompt"], case
