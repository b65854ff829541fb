"""The Docker daemon: the one file that knows the `docker` package."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from opro.agents.box import Box, ContainerFailed, Found
from opro.errors import ConfigError

TIMEOUT = 60.0
"""Seconds that the daemon gets to answer one request; a wedged one is a failure, not a hang."""
DEFAULT = "unix:///var/run/docker.sock"
"""Where the client looks when DOCKER_HOST is not set."""
PROJECT = {"opro.project": "opro"}
"""The label of everything that we make at a daemon."""
HOLD = "trap : CHLD; while :; do read x; jobs; done"
"""Process 1 of a container: waits on its open standard input and reaps orphans.

`kill -9 -1` spares it, so the processes of a command can be ended without the container.
"""


class Engine:
    """A connection to the daemon that DOCKER_HOST names. Not thread-safe: one for each thread.

    Args:
        version: the daemon's API version as an earlier connection found it; None asks.

    Raises:
        ContainerFailed: no daemon answers.
        ImportError: the `docker` package isn't installed.
    """

    def __init__(self, version: str | None = None) -> None:
        import docker  # an extra, and 0.1 s

        with _failures():
            _knock(os.environ.get("DOCKER_HOST") or DEFAULT)
            settings = docker.utils.kwargs_from_env()
            self.api: Any = docker.APIClient(version=version or "auto", timeout=TIMEOUT, **settings)
        self.version: str = self.api._version

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.api.close()

    def has(self, image: str) -> bool:
        """Tell whether the daemon has an image."""
        from docker.errors import ImageNotFound

        with _failures():
            try:
                self.api.inspect_image(image)
            except ImageNotFound:
                return False
        return True

    def unlimited(self) -> list[str]:
        """Return the limits that this daemon can't hold (rootless ones without cgroup v2)."""
        wanted = {"memory": "MemoryLimit", "pids": "PidsLimit", "cpus": "CpuCfsQuota"}
        with _failures():
            info = self.api.info()
        return [name for name, key in wanted.items() if info.get(key) is False]

    def start(self, box: Box) -> str:
        """Make and start a container; return its id. A failed start leaves nothing behind."""
        with _failures():
            made = self.api.create_container(
                box.image,
                ["/bin/sh", "-c", HOLD],
                user=box.user,
                working_dir="/work",
                environment={"HOME": "/work"},
                labels={**PROJECT, **box.labels},
                stdin_open=True,
                network_disabled=not box.network,
                host_config=self._host_config(box),
            )
        name: str = made["Id"]
        try:
            with _failures():
                self.api.start(name)
        except BaseException:
            self.remove(name)
            raise
        return name

    def _host_config(self, box: Box) -> Any:
        uid, _, gid = box.user.partition(":")
        mount = f"rw,exec,nosuid,nodev,nr_inodes=65536,uid={uid},gid={gid},mode=0700"
        size = box.memory_mb * 2**20
        return self.api.create_host_config(
            network_mode="bridge" if box.network else "none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=box.read_only,
            tmpfs={folder: f"{mount},size={box.workdir_mb}m" for folder in ("/work", "/tmp")},
            shm_size=2**20,
            mem_limit=size,
            memswap_limit=size,
            nano_cpus=round(box.cpus * 1e9),
            pids_limit=box.pids,
            log_config={"Type": "none"},
        )

    def state(self, name: str) -> Mapping[str, Any]:
        """Return a container's state as the daemon tells it."""
        with _failures():
            state: Mapping[str, Any] = self.api.inspect_container(name)["State"]
        return state

    def remove(self, name: str) -> bool:
        """Kill and remove a container; tell whether it was there to be removed by us."""
        from docker.errors import APIError

        try:
            with _failures():
                self.api.remove_container(name, force=True, v=True)
        except ContainerFailed as error:
            cause = error.__cause__
            # 404: gone already. 409: another request removes it right now.
            if isinstance(cause, APIError) and cause.status_code in (404, 409):
                return False
            raise
        return True

    def ours(self) -> list[Found]:
        """Return all containers of this project, ended ones too."""
        label = [f"{key}={value}" for key, value in PROJECT.items()]
        with _failures():
            rows = self.api.containers(all=True, filters={"label": label})
        return [Found(id=row["Id"], labels=row["Labels"] or {}) for row in rows]

    def exec(self, name: str, argv: Sequence[str]) -> tuple[str, Any]:
        """Start a command in a container; return its id and the socket of its output."""
        with _failures():
            made = self.api.exec_create(name, list(argv))["Id"]
            return made, self.api.exec_start(made, socket=True)

    def exec_state(self, made: str) -> Mapping[str, Any]:
        """Return a command's state: `Running`, `ExitCode`."""
        with _failures():
            state: Mapping[str, Any] = self.api.exec_inspect(made)
        return state

    def load(self, archive: bytes, image: str, changes: Sequence[str]) -> None:
        """Make an image of a root file system as a tar archive."""
        name, _, tag = image.partition(":")
        with _failures():
            self.api.import_image_from_data(
                archive, repository=name, tag=tag or "latest", changes=list(changes)
            )


def connect() -> Engine:
    """Return a connection to the daemon.

    Raises:
        ConfigError: with the cause and what to do about it.
    """
    try:
        return Engine()
    except ImportError:
        raise ConfigError(
            "agent: needs the docker package, which isn't installed; pip install 'opro[docker]'"
        ) from None
    except ContainerFailed as error:
        raise ConfigError(f"agent: {error}; {_fix(error)}") from None


def _fix(error: ContainerFailed) -> str:
    if isinstance(_root(error), PermissionError):
        return (
            "join the group that owns the socket (docker), or set DOCKER_HOST to a daemon of yours"
        )
    return "start it, or set DOCKER_HOST to where one listens"


def _knock(host: str) -> None:
    """Raise the bare OSError of a local socket that can't be reached.

    The client would say it in more words, and leave a socket open each time.
    """
    scheme, _, path = host.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn whatever the client raises into ContainerFailed."""
    import docker
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        raise ContainerFailed(f"Docker: {_line(error.explanation or error)}") from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        _away(error)


def _away(error: Exception) -> NoReturn:
    root = _root(error)
    why = getattr(root, "strerror", None) or _line(root)
    host = os.environ.get("DOCKER_HOST") or DEFAULT
    raise ContainerFailed(f"no Docker daemon answers at {host} ({why})") from error


def _root(error: BaseException) -> BaseException:
    """Return the deepest cause, which alone says what happened."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None:
            nested = [one for one in error.args if isinstance(one, BaseException)]
            if not nested:
                return error
            inner = nested[-1]
        error = inner


def _line(text: object) -> str:
    return " ".join(str(text).split())[:300]
