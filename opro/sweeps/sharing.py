"""What the jobs of a sweep share of a model: its limit, and a server that one process runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opro.errors import ConfigError
from opro.fingerprint import sha256_of
from opro.llms.base import LLM


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A job's part.

    Attributes:
        at_once: how many jobs may run at the same time.
        servers: addresses of running servers, by `key_of`.
        tracker: the address of what the parent's tracker shares; '' for nothing.
    """

    at_once: int = 1
    servers: Mapping[str, str] = field(default_factory=dict)
    tracker: str = ""


def key_of(llm: LLM) -> str:
    """Return what names a model: equal for two objects that give the same answers."""
    return sha256_of(dict(llm.identity()))


def take_part(llms: Iterable[LLM], shared: Shared) -> None:
    """Give each model its part of the limit, and the server that already runs.

    The limit is split evenly and for good: jobs at once, together, never exceed it.
    """
    for llm in llms:
        llm.max_in_flight = max(1, llm.max_in_flight // shared.at_once)
        address = shared.servers.get(key_of(llm))
        if address is not None:
            llm.join(address)


def check_limit(llms: Iterable[LLM], at_once: int, launcher: str) -> None:
    """Raise ConfigError when a model's limit can't be split among so many jobs at once."""
    for llm in llms:
        if llm.max_in_flight < at_once:
            raise ConfigError(
                f"llm.max_in_flight={llm.max_in_flight} ({llm.model}): fewer requests at once than"
                f" the {at_once} jobs at once of hydra/launcher={launcher}; lower"
                " hydra.launcher.n_jobs or hydra.sweeper.max_batch_size"
            )
