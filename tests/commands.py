"""The commands of the documentation: how they are found, and what their placeholders stand for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTIONS = sorted((ROOT / "conf").rglob("*.yaml"))

TASKS = ["data=jsonl", "data.path=tasks.jsonl", "data.id_field=id", "data.train=50", "data.val=50"]
TASKS += ["data.test=rest", "judge=label", "llm=openai", "llm.model=gpt-4.1-mini"]

PLACEHOLDERS: dict[str, list[str]] = {
    "…": TASKS,  # "and the settings as before": those of the user's own task
    "llm=…": ["llm=openai", "llm.model=some-model"],
    "llm.model=…": ["llm.model=some-model"],
    "agent.llm.model=…": ["agent.llm.model=some-model"],
    "data.path=…": ["data.path=data"],
    "data.path=FOLDER": ["data.path=data"],
    "NAME": ["made"],
    "[NAME]": ["made"],
}
"""A word of a command → the words that a user would put there."""

NAMES = {"run:NAME": "run:made", "initial:NAME": "initial:made"}
"""Placeholders inside a word."""

NO_COMMANDS = ('{"id": ', '"check": ', "mlruns/")
"""What lines of code blocks begin with that are no commands."""

ROLES = ("evolver", "data", "llm", "agent", "judge", "trainer", "tracker", "hydra", "experiment")
PROGRAMS = ("python -m opro.", ".venv/bin/python -m opro.", "./scripts/", "scripts/")


@dataclass(frozen=True)
class Command:
    """A command as a page shows it; `words` as a shell would see them."""

    page: str
    line: int
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def module(self) -> str:
        """`opro.run` and the like; '' for a script."""
        return self.words[2] if self.words[1:2] == ("-m",) else ""

    def arguments(self) -> list[str]:
        """Return the arguments with every placeholder replaced; what was said first stays."""
        found: dict[str, str] = {}
        for word in self.words[3:]:
            for name, value in NAMES.items():
                word = word.replace(name, value)
            for one in PLACEHOLDERS.get(word, [word]):
                found.setdefault(one.partition("=")[0], one)
        return list(found.values())


def commands(path: Path) -> Iterator[Command]:
    """Find the commands of a page, in code blocks and inline, or in an option's comments.

    Raises:
        ValueError: for a line of a code block that is neither a command nor in `NO_COMMANDS`.
    """
    page = str(path.relative_to(ROOT))
    text = path.read_text("utf-8")
    if path.suffix == ".yaml":
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("# python -m opro."):
                yield _command(page, number, re.sub(r"\s{2,}\(.*", "", line[2:]))
        return
    for number, line in _lines(text):
        if line.startswith(PROGRAMS):
            yield _command(page, number, line)
        elif all("=" in word for word in shlex.split(line)):  # settings to go with others
            yield _command(page, number, f"python -m opro.run {line} …")
        elif not line.startswith(NO_COMMANDS):
            raise ValueError(f"{page}:{number}: is this a command? {line}")
    for number, span in spans(text):
        if span.startswith(PROGRAMS):
            yield _command(page, number, span)


def spans(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line numbers and contents of the inline code of a page."""
    blocks = {at for number, _, last in _blocks(text) for at in range(number, last + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if number not in blocks:
            for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", line):
                yield number, found[1]


def _command(page: str, line: int, text: str) -> Command:
    words = shlex.split(text, comments=True)
    return Command(page, line, tuple(word.removeprefix(".venv/bin/") for word in words))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of all code blocks; one that goes on in the next is one."""
    for number, block, _ in _blocks(text):
        indent = min(len(line) - len(line.lstrip()) for line in block if line)
        whole, begins = "", number
        for at, line in enumerate(block, number):
            deeper = len(line) - len(line.lstrip()) > indent
            if whole.endswith("\\"):
                whole = whole[:-1] + line.strip()
            elif whole and deeper and not whole.startswith(NO_COMMANDS):
                whole += " " + line.strip()
            else:
                if whole:
                    yield begins, whole
                whole, begins = line.strip(), at
        if whole:
            yield begins, whole


def _blocks(text: str) -> Iterator[tuple[int, list[str], int]]:
    """Yield (first line's number, lines, last line's number) of indented and fenced blocks."""
    block: list[str] = []
    fenced = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.startswith("```")
        inside = not fence and (fenced or line.startswith("    "))
        if inside:
            block.append(line)
        elif block and (fence or not fenced):
            yield number - len(block), block, number - 1
            block = []
        fenced ^= fence


def known_keys() -> set[str]:
    """Return every key of some option, in dots, and its parts: `llm.price`, `llm.price.prompt`."""
    found = {"hydra.job.chdir", "hydra.sweeper.max_batch_size"}  # Hydra's own
    for path in OPTIONS:
        role = ".".join(path.parent.relative_to(ROOT / "conf").parts)
        roles = {"llm": ["llm", "agent.llm", "judge.llm"], "experiment": [], "": []}
        for prefix in roles.get(role, [role]):
            found.update(_dotted(yaml.safe_load(path.read_text("utf-8")), prefix))
    return found


def _dotted(node: object, prefix: str) -> Iterator[str]:
    yield prefix
    for name, value in node.items() if isinstance(node, dict) else ():
        yield from _dotted(value, f"{prefix}.{name}")


def unknown(span: str, known: set[str]) -> list[str]:
    """Return the keys and options that inline code names and that aren't there."""
    return [word for word in span.split() if not _is_known(word.lstrip("+").rstrip(":,"), known)]


def _is_known(word: str, known: set[str]) -> bool:
    key, equals, value = word.partition("=")
    if equals and (key in ROLES or key.startswith(("hydra/", "llm@"))):
        group = "llm" if key.startswith("llm@") else key
        names = value.split(",") if re.fullmatch(r"[\w,]+", value) else []
        return all((ROOT / "conf" / group / f"{name}.yaml").is_file() for name in names)
    if key.partition(".")[0] not in ROLES or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", key):
        return True
    return key in known or key.startswith(("llm.extra_body.", "llm.headers_env."))
