"""What is asked of a container, and the two ways in which one fails.

- `ContainerFailed`: the daemon is away, the image is gone, a container didn't start or was ended
  by something else than the agent. That is infrastructure, never the instruction's fault.
- `OutOfMemory`: the memory limit ended the whole container. That is the agent's own failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class ContainerFailed(Exception):
    """The daemon or a container failed for a reason that isn't the agent's."""


class OutOfMemory(Exception):
    """The memory limit ended the container itself."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A container to be.

    Attributes:
        user: `uid:gid`.
        network: whether it is on Docker's default bridge; else it has loopback only.
        read_only: whether all but /work, /tmp and /dev/shm can't be written.
        memory_mb, workdir_mb: in units of 2**20 bytes.
        cpus: processors' worth of time.
        pids: processes and threads at once.
        labels: of the container, besides PROJECT.
    """

    image: str
    user: str
    network: bool
    read_only: bool
    memory_mb: int
    cpus: float
    pids: int
    workdir_mb: int
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A container of ours at the daemon."""

    id: str
    labels: Mapping[str, str]
