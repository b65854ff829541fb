"""Names and values that MLflow takes, made without two becoming one or anything lost in silence."""

from __future__ import annotations

import hashlib
import posixpath
import re

import pytest

from opro.trackers import names

ALLOWED = re.compile(r"[/\w.\- ]*")  # the strictest of MLflow's rules
ODD = [
    "", " ", ".", "..", "/", "a/", "/a", "a//b", "a/../b", "./a", "a b", " a", "a ", "a:b", "a|b",
    "ü", "日本", "x" * 400, "x" * 401, "a\n", "a\x00", "\ud800", "a-0123456789", "<b>", "a_b", "A",
    "mmlu/test-00012", "gsm8k.train:7", "100%", "odd", "a?b", "a*b",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_keys_are_allowed(name):
    key = names.key(name)
    assert ALLOWED.fullmatch(f"task/{key}")
    assert 0 < len(key) <= 200
    assert posixpath.normpath(f"task/{key}") == f"task/{key}"


def test_keys_differ_as_their_names_do():
    more = [names.key(name) for name in ODD]  # a name that reads like a made key
    every = list(dict.fromkeys(ODD + more))
    assert len({names.key(name) for name in every}) == len(every)


@pytest.mark.parametrize("name", ["a b", "mmlu/test-00012", "A", "task.1", "0", "evolver.params.x"])
def test_common_names_stay(name):
    assert names.key(name) == name


def test_short_params_stay_and_long_ones_say_where_the_rest_is():
    assert names.param("x", "Pay ${amount} {x} 100%") == ("Pay ${amount} {x} 100%", None)
    long = "ä{{x}}" * 1400
    shown, whole = names.param("evolver.text", long)
    assert whole == long
    assert shown.startswith(long[:200])
    assert "8,400 characters, whole in params/evolver.text.txt" in shown
    assert hashlib.sha256(long.encode()).hexdigest() in shown
    assert len(shown) <= names.PARAM_LIMIT


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (0.5, "0.5"), ([1, "ü"], '[1, "ü"]'), ("null", "null")],
)
def test_params_read_like_the_configuration(value, text):
    assert names.param("x", value)[0] == text


def test_what_a_database_refuses_is_escaped():
    assert names.clean("a\x00b\ud800ü") == "a\\x00b\\ud800ü"


def test_cut_texts_say_so():
    assert names.clip("short") == "short"
    cut = names.clip("x" * 9000)
    assert len(cut) == names.TAG_LIMIT
    assert cut.endswith("… [cut: 9,000 characters]")


def test_notes_keep_whole_sections():
    report = "# T\n\nTwo sentences.\n\n" + "".join(f"## S{i}\n\n{'x ' * 900}\n\n" for i in range(9))
    note = names.note_text(report)
    assert len(note) <= names.TAG_LIMIT
    assert note.startswith("# T\n\nTwo sentences.\n\n## S0")
    assert note.endswith("The whole report is the artifact `report.md`.\n")
    assert re.findall(r"## S(\d)", note) == ["0", "1", "2", "3"][: note.count("## S")]
    assert names.note_text("# short") == "# short"


@pytest.mark.parametrize("dataset", ["gsm8k", "my data/ü.jsonl", "a:b", ""])
def test_prompt_names_are_allowed(dataset):
    assert re.fullmatch(r"[a-zA-Z0-9_\-.]+", names.prompt_name(dataset))
