"""reasoning-gym's generators and folders of the `datasets` library, both for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opro.data.hf import Hf
from opro.data.reasoning_gym import ReasoningGym
from opro.errors import ConfigError


def refused(loader: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loader.load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestReasoningGym:
    def test_tasks_and_the_librarys_own_scorer(self) -> None:
        import reasoning_gym

        found = ReasoningGym(name="leg_counting", size=12, train=6, test="rest").load()
        assert (len(found.train), len(found.test)) == (6, 6)
        scorer = reasoning_gym.get_score_answer_fn("leg_counting")
        for task in found.train:
            assert task.extra["dataset"] == "leg_counting"
            assert task.id.startswith("leg_counting-seed0-")
            assert scorer(answer=task.answer, entry=task.extra["entry"]) == 1.0
            assert list(task.fields) == ["question"]

    def test_seed_makes_other_tasks(self) -> None:
        one, two = (ReasoningGym(size=5, seed=seed).load() for seed in (0, 5))
        assert one.digest != two.digest
        assert not {task.text() for task in one.train} & {task.text() for task in two.train}

    def test_params(self) -> None:
        found = ReasoningGym(size=5, params={"min_animals": 2, "max_animals": 2}).load()
        assert all(len(task.extra["entry"]["metadata"]["animals"]) == 2 for task in found.train)

    def test_many_right_answers(self) -> None:
        assert ReasoningGym(name="graph_color", size=2).load().train[0].answer is None

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"name": "leg_count"}, "data.name=leg_count: unknown (did you mean 'leg_counting'?)"),
            (
                {"params": {"min_animal": 2}},
                "data.params=min_animal: unknown (did you mean 'min_animals'?); allowed are max_a",
            ),
            ({"params": {"seed": 2}}, "data.params=seed: unknown"),
            (
                {"params": {"min_animals": 0}},
                "data.params={'min_animals': 0}: leg_counting refuses",
            ),
        ],
    )
    def test_refused(self, settings: dict[str, Any], message: str) -> None:
        assert refused(ReasoningGym(**settings)).startswith(message)


class TestHf:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        import datasets

        labels = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
        )

        def part(*texts: str) -> Any:
            columns = {"text": list(texts), "label": [len(text) % 2 for text in texts]}
            return datasets.Dataset.from_dict(columns, features=labels)

        parts = {"train": part("a", "bb", "ccc"), "validation": part("dd"), "test": part("e")}
        datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "own"))
        return str(tmp_path / "own")

    def test_native_splits_and_label_names(self, folder: str) -> None:
        found = Hf(path=folder, answer_field="label").load()
        assert [(t.id, t.text(), t.answer) for t in found.train] == [
            ("train-00001", "a", "pos"),
            ("train-00002", "bb", "neg"),
            ("train-00003", "ccc", "pos"),
        ]
        assert [task.text() for task in (*found.val, *found.test)] == ["dd", "e"]
        assert found.name == "own"

    def test_chosen_splits(self, folder: str) -> None:
        found = Hf(path=folder, answer_field="label", splits={"train": "test"}).load()
        assert [task.text() for task in found.train] == ["e"]
        message = refused(Hf(path=folder, answer_field="label", splits={"train": "tset"}))
        assert message == "data.splits.train=tset: allowed are train, validation, test"

    def test_other_split_names(self, tmp_path: Path) -> None:
        import datasets

        part = datasets.Dataset.from_dict({"q": ["a"], "answer": ["1"]})
        datasets.DatasetDict({"main": part}).save_to_disk(str(tmp_path / "own"))
        message = "data.splits=null: 'main' is no split of ours; say which is which, it has main"
        assert refused(Hf(path=str(tmp_path / "own"))) == message

    def test_one_pool(self, tmp_path: Path) -> None:
        import datasets

        columns = {"key": [5, 6], "q": ["a", "b"], "answer": [1.5, 2.0], "image": [b"x", b"y"]}
        datasets.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "own"))
        roles = {"id_field": "key", "fields": ["q"]}
        found = Hf(path=str(tmp_path / "own"), train=1, test="rest", **roles).load()
        (task,) = found.train
        assert task.id in ("5", "6")
        assert task.extra["image"] in (b"x", b"y")
        assert len(found.test) == 1

    def test_hidden_label(self, tmp_path: Path) -> None:
        import datasets

        kinds = {"q": datasets.Value("string"), "answer": datasets.ClassLabel(names=["no", "yes"])}
        columns = {"q": ["a", "b"], "answer": [1, -1]}
        hidden = datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))
        hidden.save_to_disk(str(tmp_path / "own"))
        message = refused(Hf(path=str(tmp_path / "own")))
        assert message.startswith("row 2: no value for data.answer_field=answer")

    def test_refused(self, tmp_path: Path) -> None:
        assert refused(Hf()).startswith("data.path=null: give ")
        message = refused(Hf(path=str(tmp_path / "no")))
        assert message == f"data.path={tmp_path}/no: no such folder"
        (tmp_path / "state.json").write_text("{}")
        assert refused(Hf(path=str(tmp_path))).startswith(
            f"data.path={tmp_path}: can't be loaded: "
        )
