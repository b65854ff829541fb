"""Every option of conf/data passes the shared suite; a new YAML file is picked up by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from opro.errors import ConfigError
from tests.suites import data_suite

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
OPTIONS = sorted((ROOT / "conf" / "data").glob("*.yaml"))
BENCHMARKS = {
    "gsm8k": {"path": str(SHARED / "gsm_data")},
    "bbh": {"path": str(SHARED / "BIG-Bench-Hard-data")},
    "mmlu": {"path": str(SHARED / "MMLU-data")},
    "multiarith": {"path": str(SHARED / "MultiArith-data")},
    "aqua": {"path": str(SHARED / "AQuA-data")},
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Return the settings that an option can't load without."""
    datasets = pytest.importorskip("datasets")
    folder = tmp_path_factory.mktemp("data")
    (folder / "t.jsonl").write_text('{"q": "a", "answer": 1}\n{"q": "b", "answer": 2}\n')
    (folder / "t.csv").write_text("q,answer\na,1\nb,2\n")
    (folder / "t.tsv").write_text("q\tanswer\na\t1\nb\t2\n")
    table = datasets.Dataset.from_dict({"q": ["a", "b"], "answer": [1, 2]})
    table.save_to_disk(str(folder / "hf"))
    own = {kind: {"path": str(folder / f"t.{kind}"), "val": 1} for kind in ("jsonl", "csv", "tsv")}
    return {**own, "hf": {"path": str(folder / "hf"), "val": 1}, **BENCHMARKS}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda path: path.stem)
def test_yaml(option: Path) -> None:
    data_suite.check_yaml(option)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda path: path.stem)
def test_contract(option: Path, samples: dict[str, dict[str, object]]) -> None:
    settings = samples.get(option.stem, {})
    if option.stem in BENCHMARKS and not SHARED.is_dir():
        pytest.skip("the benchmark files aren't beside the checkout")
    data_suite.check_contract(lambda: data_suite.from_yaml(option, **settings))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda path: path.stem)
def test_no_file(option: Path, samples: dict[str, dict[str, object]]) -> None:
    if option.stem in samples:
        data_suite.check_unset(lambda: data_suite.from_yaml(option))
    else:
        assert data_suite.from_yaml(option).load().train


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": True}, "data.train=true: "),
        ({"train": "50"}, "data.train=50: no such file; allowed are null, a count"),
        ({"seed": -1}, "data.seed=-1: "),
        ({"step_size": 0}, "data.step_size=0: "),
        ({"draw": "authors"}, 'data.draw="authors": '),
        ({"vaL": 3}, "data.vaL: unknown key (did you mean 'val'?)"),
        ({"path": {"train": "a", "dev": "b"}}, 'data.path={"train": "a", "dev": "b"}: '),
    ],
)
def test_settings_are_checked(
    settings: dict[str, object], message: str, samples: dict[str, dict[str, object]]
) -> None:
    option = ROOT / "conf" / "data" / "jsonl.yaml"
    with pytest.raises(ConfigError) as caught:
        data_suite.from_yaml(option, **{**samples["jsonl"], **settings}).load()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
