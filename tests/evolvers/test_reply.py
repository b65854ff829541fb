"""From a reply to an instruction: the authors' rules and the strict one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opro.evolvers import reply
from opro.text import md5_of


def test_stored_replies(shared: Path) -> None:
    cases = json.loads((shared / "golden/replies.json").read_text("utf-8"))
    assert len(cases) == 15
    for case in cases:
        found = reply.upstream_tags(case["reply"], "INS")
        assert found == case["instruction"]
        assert reply.polish(found) == case["polished"]
        assert reply.upstream_brackets(case["reply"]) == case["bracket"]


def test_stored_polish(shared: Path) -> None:
    cases = json.loads((shared / "golden/polish.json").read_text("utf-8"))
    assert len(cases) == 18
    for case in cases:
        assert reply.polish(case["text"]) == case["polished"]
        assert reply.polish(case["text"], add_period=True) == case["polished_with_period"]
        if "md5" in case:  # the authors' code can't hash what isn't ASCII; ours can
            assert md5_of(case["polished"]) == case["md5"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A plain sentence.", None),
        ("Sure, here is one that I like", None),
        ("</INS> x <INS>", None),
        ("<INS>one</INS> and <INS>two</INS>", None),
        ("```plaintext\n<INS>Do it.</INS>\n```", "Do it."),
        ("<INS>never closed", None),
    ],
)
def test_strict_takes_one_complete_pair_or_nothing(text: str, found: str | None) -> None:
    assert reply.strict(text, "INS") == found
