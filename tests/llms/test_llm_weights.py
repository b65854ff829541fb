"""Where the weights come from; the cache holds the right file whole, or none."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.llms import weights
from opro.llms.llama_server import LlamaServerLLM


def test_llm_weights_are_fetched_once(
    real_weights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fixture has fetched them by pip; now there is no index, and none is asked."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert weights.smollm2() == real_weights
    assert hashlib.sha256(real_weights.read_bytes()).hexdigest() == weights.SHA256
    assert [path.name for path in real_weights.parent.iterdir()] == [weights.NAME]
    assert capsys.readouterr() == ("", "")


def test_llm_weights_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong file in the cache is not used; the error says what to put where."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    wrong = weights.cache_folder() / weights.NAME
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ConfigError) as info:
        LlamaServerLLM().start()
    message = str(info.value)
    assert "\n" not in message and weights.SHA256 in message and str(wrong.parent) in message
    assert list(wrong.parent.iterdir()) == [wrong]
    assert capsys.readouterr().err.count("\n") == 1


def test_llm_weights_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="no weights"):
        weights.smollm2()


def test_llm_model_file_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"llm\.model_path .*No such file"):
        LlamaServerLLM(model_path=str(tmp_path / "none.gguf")).check()
    text = tmp_path / "text.gguf"
    text.write_text("hello")
    with pytest.raises(ConfigError, match="not a GGUF file"):
        LlamaServerLLM(model_path=str(text)).check()
    text.write_bytes(b"GGUF" + bytes(100))
    LlamaServerLLM(model_path=str(text)).check()
    with pytest.raises(ConfigError, match="can't load"):
        LlamaServerLLM(model_path=str(text)).start()
