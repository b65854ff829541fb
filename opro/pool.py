"""Runs many small pieces of work at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from joblib import Parallel, delayed

T = TypeVar("T")
R = TypeVar("R")


class Pool:
    """A pool of workers for all work of a step, with no barrier inside.

    Args:
        concurrency: pieces under way at once.
    """

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Yield `work(item)` for every item, in order of completion.

        `work` must not raise: a failure of one piece would drop the answers of those under way.
        """
        if len(items) <= 1 or self.concurrency == 1:
            yield from map(work, items)
            return
        parallel = Parallel(
            n_jobs=min(self.concurrency, len(items)),
            backend="threading",
            batch_size=1,
            pre_dispatch="2*n_jobs",
            return_as="generator_unordered",
        )
        yield from parallel(delayed(work)(item) for item in items)
