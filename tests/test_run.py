"""The command line, from a checkout and from an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_search import WRONG, optimizer, rich_search, script, table


def opro(folder: Path, *arguments: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "opro.run", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evolver.params.n_candidate=4", "evolver.params.n_candidate: unknown key (did you mean"),
        ("+evolver.score_treshold=0.5", "(did you mean 'evolver.params.score_threshold'?)"),
        ("evolver.params.n_candidates=four", 'n_candidates="four": input should be a valid int'),
        ("evolver.params.n_candidates=0", "n_candidates=0: input should be greater than or equal"),
        ("evolver.params.score_threshold=30", "score_threshold=30: input should be less than"),
        ("evolvr=opro", "evolvr: unknown key (did you mean 'evolver'?)"),
        ("evolver=opo", "evolver=opo: no such option (did you mean 'opro'?); there are: opro"),
        ("llm@agent.llm=vlm", "no such option (did you mean 'vllm'?)"),
        ("hydra.lancher=joblib", "hydra.lancher: unknown key (did you mean 'launcher'?)"),
        ("llm.cache='false'", 'llm.cache="false": input should be a valid boolean'),
        ("llm=null", "Config group override must be a string"),
        ("+llm.api_key=sk-secret", "llm.api_key: a key in the configuration would be logged"),
        ("+sed=1", "sed: unknown key (did you mean 'seed'?)"),
        ("data.path=nowhere.jsonl", "data.path=nowhere.jsonl: no such file"),
        ("agent.suffix=${oc.env:NOT_SET}", "NOT_SET"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(search, override: str, message: str) -> None:
    done = opro(search.folder, *table(search), *script(search, WRONG), override)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "sk-secret" not in done.stderr
    assert not (search.folder / "mlruns").exists()


def test_help_lists_the_groups(tmp_path: Path) -> None:
    done = opro(tmp_path, "--help")
    assert done.returncode == 0
    for group in ("evolver: opro", "llm: ", "agent: ", "judge: ", "tracker: ", "experiment: "):
        assert group in done.stdout


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['opro', '--help']; from opro import run\n"
        "try: run.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'mlflow', 'openai', 'joblib', 'pydantic', 'matplotlib', 'numpy', 'rich',"
        " 'scipy', 'docker', 'xllamacpp'} & set(sys.modules); sys.exit(repr(sorted(heavy)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_plan_counts_what_the_run_then_asks(search) -> None:
    texts = [f"<INS>Instruction {i}</INS>" for i in range(6)]
    arguments = [
        *table(search),
        *script(search, optimizer(*texts), WRONG),
        "trainer.epochs=3",
        "evolver.params.n_candidates=2",
    ]
    done = opro(search.folder, *arguments, "plan=true")
    assert done.returncode == 0, done.stderr
    assert not (search.folder / "mlruns").exists()
    counts = dict(line.rsplit(None, 1) for line in done.stdout.splitlines() if "  " in line)
    rows = {name.strip(): value for name, value in counts.items()}
    assert rows["optimizer calls"] == "6"
    assert rows["scorer calls"] == "46"
    assert rows["re-score the best"] == "8"
    search.run(*arguments)
    roles = search.result()["totals"]["by_role"]
    assert roles["optimizer"]["calls"] == 6
    # An upper bound: the winner may be the initial instruction, which is then measured once.
    assert roles["agent"]["calls"] == 44
    assert search.result()["winner"]["step"] == -1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as pip would into a folder away from the checkout."""
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(out.glob("*.whl"))
    target = out / "site"
    install = [*pip, "install", "-q", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return target


def test_an_installed_wheel_runs_in_another_folder(search, installed: Path) -> None:
    assert (installed / "opro/conf/config.yaml").is_file()
    assert (installed / "opro/data/demo.jsonl").is_file()
    done = opro(search.folder, *rich_search(search), "tracker=none", path=installed)
    assert done.returncode == 0, done.stderr
    assert list((search.folder / "mlruns/runs").iterdir())
