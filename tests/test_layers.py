"""Who may import whom: an arrow points down, and nobody but YAML names a concrete."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROLES = ("agents", "data", "evolvers", "judges", "llms", "trackers")

THIRD_PARTY = {
    "hydra": {"opro.run", "opro.sweeps.callback"},
    "mlflow": {"opro.trackers.mlflow_client"},
    "openai": {"opro.llms.openai_chat"},
    "docker": {"opro.agents.docker_engine"},
    "joblib": {"opro.pool"},
    "xllamacpp": {"opro.llms.llama_server"},
}
"""The only modules that know a package; each is imported late or by few."""

SHARED = {
    *("types", "errors", "records", "evaluated"),
    *("text", "template", "argv", "processes", "owner"),
}
"""What a role's folder may import besides itself: records that cross a boundary, plain helpers."""

EXCEPTIONS = {
    # The fault table is the contract between a model and the one who retries.
    ("calls", "llms.faults"),
    # The tracker's thread belongs to the run, whichever tracker is behind it.
    ("ending", "trackers.background"),
    ("evaluation", "trackers.background"),
    ("job", "trackers.background"),
    ("replay", "trackers.background"),
    ("sync", "trackers.background"),
    ("trainer", "trackers.background"),
    # Whichever tracker asks for it gets a process of its own.
    ("setup.assembly", "trackers.apart"),
    # A replay tracks nothing, whatever is configured.
    ("replay", "trackers.none"),
    # Whether a process is still alive: no tracker in it.
    ("sweeps.parent", "trackers.process"),
    ("sweeps.file", "trackers.process"),
    ("sweeps.job", "trackers.process"),
    # `opro.clean` removes what runs of terminal agents left behind.
    ("clean", "agents.box"),
    ("clean", "agents.docker_engine"),
}
"""(importer, concrete): each with its reason."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((ROOT / "opro").rglob("*.py"))}


def imports(module: str, *, at_start: bool = False) -> Iterator[str]:
    """Yield the modules that one imports; `at_start`: only those that loading it loads."""
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    nodes = tree.body if at_start else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in found)


@pytest.mark.parametrize("package", THIRD_PARTY)
def test_a_package_is_known_to_its_own_files(package: str) -> None:
    users = {m for m in MODULES for name in imports(m) if name.split(".")[0] == package}
    assert users <= THIRD_PARTY[package]


def test_nobody_imports_a_concrete() -> None:
    found = set()
    for module in MODULES:
        role = module.split(".")[1:2]
        for name in imports(module):
            _, *parts = name.split(".")
            concrete = len(parts) > 1 and parts[0] in ROLES and parts[1] != "base"
            if name.startswith("opro.") and concrete and role != parts[:1]:
                found.add((module.removeprefix("opro."), ".".join(parts)))
    assert found - EXCEPTIONS == set()
    assert EXCEPTIONS - found == set(), "an exception that nobody needs any more"


def test_a_part_imports_nothing_of_those_that_use_it() -> None:
    found = set()
    for module in MODULES:
        _, *path = module.split(".")
        for name in imports(module):
            first, *parts = name.split(".")
            if first == "opro" and path and path[0] in ROLES and parts and parts[0] not in ROLES:
                found.add((module, parts[0]))
    assert {pair for pair in found if pair[1] not in SHARED} == set()


def test_types_and_errors_import_nothing_of_ours() -> None:
    for module in ("opro.types", "opro.errors"):
        assert not [name for name in imports(module) if name.startswith("opro")]


def test_no_import_goes_round_in_a_circle() -> None:
    graph = {
        module: {name for name in imports(module, at_start=True) if name in MODULES}
        for module in MODULES
    }
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert order.index("opro.types") < order.index("opro.rollouts") < order.index("opro.trainer")
    assert order.index("opro.trainer") < order.index("opro.job")
