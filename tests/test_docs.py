"""What the documentation shows: its commands work, and what it names is there."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from opro import clean, compare, run, sync
from opro.sweeps.file import SweepFile, save_sweep
from scripts.benchmarks.main import names as scenarios
from tests.commands import OPTIONS, PAGES, Command, commands, known_keys, spans, unknown
from tests.conftest import ROOT, Search
from tests.test_compare import write_job
from tests.test_search import WRONG, optimizer, script, table

UNCHECKED = {
    "./scripts/quickstart": "makes an environment from a package index",
    "./scripts/test": "runs this test",
    "./scripts/ui": "makes an environment from a package index, then serves pages",
    "scripts/build-image": "makes an environment; its work is in tests/agents",
    "scripts/setup docker": "makes an environment from a package index",
    "python -m opro.evaluate": "the module's name, in a sentence",
    "python -m opro.run -m hydra/launcher=ray evolver.params.n_candidates=4,8": (
        "Ray's plugin can't be installed beside the other extras"
    ),
}
"""Commands that are not run, and why; that scripts are there is tested all the same."""

EVERY = [command for page in [*PAGES, *OPTIONS] for command in commands(page)]
ONCE = list({(c.module, *c.arguments()) if c.module else c.words: c for c in EVERY}.values())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the documentation's commands name: files, runs, sweeps, programs."""
    folder = tmp_path_factory.mktemp("docs")
    search = Search(folder)
    labels = ("delivery", "payment", "return")
    for name, form in (
        ("jsonl", '{{"id": "t{0}", "question": "Where is {0}?", "answer": "{1}"}}\n'),
        ("csv", "t{0},Where is {0}?,{1}\n"),
        ("tsv", "t{0}\tWhere is {0}?\t{1}\n"),
    ):
        head = {"csv": "id,question,answer\n", "tsv": "id\tquestion\tanswer\n"}.get(name, "")
        rows = (form.format(number, labels[number % 3]) for number in range(120))
        search.write(f"tasks.{name}", head + "".join(rows))
    _benchmarks(folder)
    for name in ("start.md", "steps.md"):
        search.write(name, f"Instruction of {name}")
    search.write("answers.yaml", "[{contains: '', reply: x}]")
    (folder / "my-model.gguf").write_bytes(b"GGUF" + bytes(100))
    (folder / "bin").mkdir()
    for name in ("bin/codex", "bin/claude", "my-agent.sh", "answer.sh"):
        search.write(name, "#!/bin/sh\n")
        (folder / name).chmod(0o755)
    small = ["trainer.epochs=1", "evolver.params.n_candidates=1", "evolver.params.select=train"]
    arguments = [*table(search), *script(search, optimizer("<INS>New</INS>"), WRONG), *small]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        search.run(*arguments, name="made")
    shutil.copytree(search.path("made"), search.path("port-gsm8k"))
    for name in ("grid", "first"):
        sweep = folder / "mlruns/sweeps" / name
        save_sweep(sweep, SweepFile(name=name, swept=["evolver.params.n_candidates"]))
        write_job(sweep, 4, 10, winner="a")
        write_job(sweep, 8, 12, winner="b")
    return folder


def _benchmarks(folder: Path) -> None:
    """Put the benchmarks' files at `data`, or small ones of the same form."""
    (folder / "data").mkdir()
    (folder / "data/gsm_data").symlink_to(folder / "data")
    shared = ROOT.parent / "shared/data"
    for name in ("gsm_data/gsm_train.tsv", "gsm_data/gsm_test.tsv"):
        rows = "".join(f"What is {n} plus 1?\t{n + 1}\n" for n in range(200))
        _file(folder / "data" / Path(name).name, shared / name, rows)
    tasks = ", ".join(f'{{"input": "Step {n}.", "target": "Yes"}}' for n in range(150))
    navigate = "BIG-Bench-Hard-data/navigate.json"
    _file(folder / "data/navigate.json", shared / navigate, f'{{"examples": [{tasks}]}}')


def _file(path: Path, real: Path, text: str) -> None:
    if real.is_file():
        path.symlink_to(real)
    else:
        path.write_text(text, "utf-8")


@pytest.fixture
def check(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Return what runs a command of the documentation, spending nothing; gives its status."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "set")
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # which `run.main` would leave set

    def planned(entry: Callable[[], object], arguments: list[str]) -> int:
        plan = [] if "plan=true" in arguments else ["plan=true"]
        monkeypatch.setattr(sys, "argv", ["opro", *arguments, *plan])
        return run.main(entry)

    def cleaned(arguments: list[str]) -> int:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        return 0 if clean.main(arguments) in (0, 1) else 2  # 1: there is no daemon

    runners: dict[str, Callable[[list[str]], int]] = {
        "opro.run": lambda arguments: planned(run._main, arguments),
        "opro.evaluate": lambda arguments: planned(run.evaluate, arguments),
        "opro.compare": compare.main,
        "opro.sync": sync.main,
        "opro.clean": cleaned,
    }
    return lambda command: runners[command.module](command.arguments())


def test_every_command_is_found() -> None:
    """Among them the ones with a continued line, inline, in an option's comment, in parts."""
    found = {command.text for command in EVERY}
    assert "python -m opro.compare grid" in found
    assert "python -m opro.sync [NAME]" in found
    assert "python -m opro.run llm=smollm2" in found
    assert sum("agent.instruction_files=[AGENTS.md]" in text for text in found) == 1
    assert sum("select=train,validation trainer.run_name=first" in text for text in found) == 1


def test_what_is_not_checked_is_there_and_has_its_reason() -> None:
    assert set(UNCHECKED) <= {command.text for command in EVERY}
    assert all(UNCHECKED.values())


@pytest.mark.parametrize("command", [c for c in ONCE if not c.module], ids=lambda c: c.text)
def test_a_script_is_there(command: Command) -> None:
    path = ROOT / command.words[0]
    assert path.is_file() and os.access(path, os.X_OK)
    if command.words[0] == "scripts/bench":
        name, *options = command.words[1:] or ["NAME"]
        assert name in {"NAME", *scenarios()}
        if options:
            parser = argparse.ArgumentParser()
            import_module(f"scripts.benchmarks.scenarios.{name}").add_arguments(parser)
            parser.parse_args(options)
    else:
        assert command.text in UNCHECKED


@pytest.mark.parametrize(
    "command",
    [c for c in ONCE if c.module and c.text not in UNCHECKED],
    ids=lambda c: f"{c.page}:{c.line}",
)
def test_a_command_works(
    check: Callable[[Command], int], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    status = check(command)
    said = capsys.readouterr().err
    if "agent=terminal" in command.words and "ocker" in said:
        return  # all is composed and built; whether there is a daemon is another test's
    assert status == 0, said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("python -m opro.run llm=smollm2 trainer.epoch=8", "did you mean 'epochs'"),
        ("python -m opro.run -m seed=1,2 evolver.param.top_k=3", "did you mean 'params'"),
        ("python -m opro.run llm=smolm2", "did you mean 'smollm2'"),
        ("python -m opro.evaluate instructions=[x] data.vall=3", "did you mean 'val'"),
        ("python -m opro.compare grit", "grit"),
        ("python -m opro.sync mad", "mad"),
    ],
)
def test_a_misspelt_command_is_found(
    check: Callable[[Command], int], text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(Command("", 0, tuple(text.split()))) == 2
    assert said in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        check(Command("", 0, ("python", "-m", "opro.clean", "--rnu")))


def test_every_setting_that_is_named_is_there() -> None:
    known = known_keys()
    assert {"evolver.params.top_k", "agent.llm.price.prompt", "hydra.launcher.n_jobs"} <= known
    wrong = {
        (str(page.relative_to(ROOT)), number, word)
        for page in PAGES
        for number, span in spans(page.read_text("utf-8"))
        for word in unknown(span, known)
    }
    assert wrong == set()


@pytest.mark.parametrize(
    "span", ["trainer.epoch=8", "evolver.params.topk", "judge=numbr", "hydra/launcher=joblibb"]
)
def test_a_misspelt_setting_is_found(span: str) -> None:
    assert unknown(span, known_keys()) == [span]


def names_in(path: Path) -> set[str]:
    """Return the tests of a file as pytest names them, without parameters."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + one.name for one in inner if isinstance(one, ast.FunctionDef)}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def test_every_test_and_file_that_is_named_is_there() -> None:
    named = re.compile(r"`(tests/[\w/]+\.py)(?:::([\w:]+))?`")
    for page in PAGES:
        for file, name in named.findall(page.read_text("utf-8")):
            assert (ROOT / file).is_file(), f"{page.name}: {file}"
            assert not name or name in names_in(ROOT / file), f"{page.name}: {file}::{name}"


def test_every_trouble_has_its_own_row_with_a_test() -> None:
    text = (ROOT / "docs/troubles.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| [a-z-]+-\d+ \|", line)]
    names = [row.split(" | ")[0].strip("| ") for row in rows]
    assert len(names) == len(set(names)) == 43
    assert all("`tests/" in row and row.count(" | ") == 3 for row in rows)
