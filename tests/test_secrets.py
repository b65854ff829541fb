"""Keys and other secrets: sent where they belong, and nowhere on disk, in logs or in MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.testing.handle import Loopback, in_thread
from tests.conftest import Search
from tests.endpoint import RULES, command_line, small

ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-proj-AbCdEf0123456789KEY",
    "GATEWAY_TOKEN": "gw-Zz99-HEADER-token-value",
    "TENANT": "tenant-7f3a-EXTRA-body",
    "BODY_KEY": "body-key-19ff-EXTRA-body",
    "PROXY_SECRET": "unused-but-key-like-0xDEADBEEF",
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def secret_settings(server: Loopback, folder: Path) -> list[str]:
    return [
        *small(server, folder),
        "llm.api_key_env=OPENAI_API_KEY",
        "+llm.headers_env.X-Gateway-Token=GATEWAY_TOKEN",
        "+llm.extra_body.user=${oc.env:TENANT}",
        "+llm.extra_body.api_key=${oc.env:BODY_KEY}",
        "agent.max_tokens=55",
        "trainer.run_name=run",
    ]


def leaks(folder: Path, *values: str) -> list[str]:
    """Return the files that hold one of the values, as text or within a database."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [
        f"{path.relative_to(folder)}: {value}"
        for path in files
        for value in values
        if value.encode() in path.read_bytes()
    ]


def test_no_secret_is_kept_by_a_whole_run(search: Search, server: Loopback) -> None:
    arguments = secret_settings(server, search.folder)
    done = command_line(search.folder, arguments, **ENVIRONMENT)
    assert done.returncode == 0, done.stderr.decode()
    entry = server.log()[0]
    assert entry["authorized"]  # they did reach the endpoint
    assert entry["headers"]["x-gateway-token"] == ENVIRONMENT["GATEWAY_TOKEN"]
    assert entry["json"]["user"] == ENVIRONMENT["TENANT"]
    assert entry["json"]["api_key"] == ENVIRONMENT["BODY_KEY"]
    assert (search.folder / "mlruns/mlflow.db").exists()
    assert (search.path("run") / ".hydra/config.yaml").exists()
    assert leaks(search.folder, *ENVIRONMENT.values()) == []
    for value in ENVIRONMENT.values():
        assert value.encode() not in done.stdout + done.stderr
    params = search.result("run")["params"]
    assert params["agent.max_tokens"] == 55  # a name with `token` in it is no secret
    assert params["llm.extra_body.user"] == "${oc.env:TENANT}"
    assert params["llm.api_key_env"] == "OPENAI_API_KEY"


def test_no_secret_is_kept_when_the_endpoint_repeats_it(search: Search, server: Loopback) -> None:
    arguments = secret_settings(server, search.folder)
    key, token = ENVIRONMENT["OPENAI_API_KEY"], ENVIRONMENT["GATEWAY_TOKEN"]
    server.control(
        faults=[
            {"kind": "403", "value": f"{token} of {ENVIRONMENT['TENANT']}", "at": [3]},
            {"kind": "401", "value": key},
        ]
    )
    done = command_line(search.folder, arguments, **ENVIRONMENT)
    assert done.returncode == 1
    assert b"OPENAI_API_KEY" in done.stderr  # what to mend is named
    assert (search.path("run") / "error.txt").exists()
    assert leaks(search.folder, key, token) == []
    assert key.encode() not in done.stdout + done.stderr
    assert token.encode() not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("override", "secret", "said"),
    [
        ("llm.base_url=http://me:hunter2-pw@127.0.0.1:9/v1", "hunter2-pw", "llm.base_url"),
        ("+llm.extra_body.api_key=hunter2-pw", "hunter2-pw", "llm.extra_body.api_key"),
        ("+llm.api_key=${oc.env:SOME_SECRET}", "hunter2-env", "llm.api_key: unknown key (did you"),
        ("llm.api_key_env=sk-hunter2-password", "sk-hunter2", "llm.api_key_env"),
        ("llm.api_key_env=hunter2-pw", "hunter2", "llm.api_key_env must be the name of"),
        ("+llm.headers_env.X-Key=hunter2-pw", "hunter2", "llm.headers_env.X-Key must be"),
        ("llm.headers_env={X-Key: A}", "nothing", "llm.headers_env.X-Key: not there yet; add it"),
        ("+llm.extra_body.note=sk-hunter2-password", "sk-hunter2", "llm.extra_body.note"),
    ],
)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(
    search: Search, server: Loopback, override: str, secret: str, said: str
) -> None:
    arguments = [*small(server, search.folder), override]
    done = command_line(search.folder, arguments, SOME_SECRET="hunter2-env")
    assert done.returncode == 2
    lines = done.stderr.decode().strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"opro: {said}")
    assert secret.encode() not in done.stdout + done.stderr
    assert not (search.folder / "mlruns").exists()
    assert server.stats()["requests"] == 0
