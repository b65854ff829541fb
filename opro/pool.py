"""Runs many small pieces of work at once."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from joblib import Parallel, delayed, parallel_config

T = TypeVar("T")
R = TypeVar("R")


class Pool:
    """The threads that do a run's work, batch after batch; they start with the first one.

    Args:
        concurrency: pieces under way at once.
    """

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self._parallel: Parallel | None = None

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Yield `work(item)` for every item, in order of completion; one batch at a time.

        `work` must not raise: a failure of one piece would drop the answers of those under way.
        """
        if len(items) <= 1 or self.concurrency == 1:
            yield from map(work, items)
            return
        if self._parallel is None:
            self._parallel = Parallel(
                n_jobs=self.concurrency,
                backend="threading",
                batch_size=1,
                pre_dispatch="2*n_jobs",
                return_as="generator_unordered",
            )
            self._parallel.__enter__()  # keeps its threads until `close`
        yield from self._parallel(delayed(work)(item) for item in items)

    def close(self) -> None:
        """End the threads; what they still do must be able to end by itself."""
        parallel, self._parallel = self._parallel, None
        if parallel is not None:
            parallel.__exit__(None, None, None)


def spread(
    call: tuple[Callable[..., None], tuple[Any, ...]],
    times: int,
    backend: Literal["dask", "ray"],
    cluster: str | None,
) -> None:
    """Make the same call many times at once on a cluster's workers; return when all are over.

    Args:
        call: a function that workers can import, and its arguments.
        times: how many at once, if the cluster has room for so many; the others wait.
        backend: joblib's.
        cluster: its address; None starts one on this machine, for this call.
    """
    work, arguments = call
    start = {"dask": _dask, "ray": _ray}[backend]
    with start(cluster, times) as config, parallel_config(backend=backend, **config):
        Parallel(batch_size=1, pre_dispatch="all")(delayed(work)(*arguments) for _ in range(times))


@contextlib.contextmanager
def _dask(cluster: str | None, times: int) -> Iterator[dict[str, Any]]:
    distributed: Any = importlib.import_module("distributed")  # late: of an extra
    with contextlib.ExitStack() as stack:
        if cluster is None:
            local = distributed.LocalCluster(threads_per_worker=times, dashboard_address=":0")
            cluster = stack.enter_context(local).scheduler_address
        client = distributed.Client(cluster, set_as_default=False, timeout=10)
        yield {"client": stack.enter_context(client), "n_jobs": times}


@contextlib.contextmanager
def _ray(cluster: str | None, times: int) -> Iterator[dict[str, Any]]:
    ray: Any = importlib.import_module("ray")  # late: of an extra
    # Our own workers wait for models and containers most of the time: no CPU is counted for it.
    room = {"num_cpus": times} if cluster is None else {"address": cluster}
    ray.init(**room, log_to_driver=False, logging_level="ERROR")
    try:
        importlib.import_module("ray.util.joblib").register_ray()
        yield {"n_jobs": min(times, int(ray.cluster_resources().get("CPU", 1)))}
    finally:
        ray.shutdown()
