"""What an endpoint's settings refuse, before anything is sent and without showing a secret."""

from __future__ import annotations

import pytest

from opro.errors import ConfigError
from opro.llms.openai_chat import OFFICIAL, OpenAILLM
from opro.setup.config import build

TARGET = "opro.llms.openai_chat.OpenAILLM"


def refused(**settings: object) -> str:
    with pytest.raises(ConfigError) as info:
        build({"_target_": TARGET, "model": "m", **settings}, "llm")
    assert "\n" not in str(info.value)
    return str(info.value)


def test_llm_default_address() -> None:
    llm = OpenAILLM(model="m")
    assert llm.base_url == OFFICIAL and llm.identity()["base_url"] == OFFICIAL
    assert OpenAILLM(model="m", base_url="http://h:1/v1/").base_url == "http://h:1/v1"


def test_llm_model_must_be_set() -> None:
    assert "llm.model" in refused(model="???")
    assert "llm.model" in refused(model=None)


@pytest.mark.parametrize("url", ["http://user:hunter2@h/v1", "https://hunter2@h/v1"])
def test_llm_credentials_in_the_address(url: str) -> None:
    message = refused(base_url=url)
    assert "llm.base_url" in message and "llm.api_key_env" in message
    assert "hunter2" not in message and "'h'" in message


@pytest.mark.parametrize(
    "url", ["h:80/v1", "ftp://h/v1", "http://", "http://h/v1?key=hunter2", "http://h:x/v1", ""]
)
def test_llm_odd_address(url: str) -> None:
    if not url:
        assert OpenAILLM(model="m", base_url=url).base_url == OFFICIAL
        return
    message = refused(base_url=url)
    assert "llm.base_url" in message and "hunter2" not in message


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"timeout": None}, "llm.timeout"),
        ({"timeout": 0}, "llm.timeout"),
        ({"timeout": "10"}, "llm.timeout"),
        ({"retries": -1}, "llm.retries"),
        ({"max_in_flight": 0}, "llm.max_in_flight"),
        ({"cache": "false"}, "llm.cache"),
        ({"max_tokens_param": "max_new_tokens"}, "llm.max_tokens_param"),
        ({"price": {"promt": 1.0}}, "llm.price.promt"),
        ({"basurl": "x"}, "llm.basurl"),
    ],
)
def test_llm_wrong_setting(settings: dict[str, object], key: str) -> None:
    assert key in refused(**settings)


def test_llm_missing_key_names_variable_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPRO_NO_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"'OPRO_NO_KEY' is not set; llm\.api_key_env"):
        OpenAILLM(model="m", api_key_env="OPRO_NO_KEY").check()
    with pytest.raises(ConfigError, match=r"'OPRO_NO_KEY' is not set; llm\.headers_env\.X-A"):
        OpenAILLM(model="m", headers_env={"X-A": "OPRO_NO_KEY"}).check()


@pytest.mark.parametrize("value", ["sk-\u2013hunter2", "sk-hunter2\nX-Evil: 1"])
def test_llm_key_that_no_header_carries(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPRO_ODD_KEY", value)
    with pytest.raises(ConfigError, match="OPRO_ODD_KEY") as info:
        OpenAILLM(model="m", api_key_env="OPRO_ODD_KEY").check()
    assert "hunter2" not in str(info.value)


def test_llm_harmless_extra_body() -> None:
    OpenAILLM(model="m", extra_body={"max_tokens": 5, "logit_bias": {"token": 1}, "user": "sky"})
