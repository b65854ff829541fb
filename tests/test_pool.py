"""The pool of a run: every piece once, in the same threads batch after batch, until closed."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from opro.pool import Pool


def work(number: int) -> tuple[int, str]:
    time.sleep(0.01)
    return number, threading.current_thread().name


@pytest.mark.parametrize("size", [0, 1, 3, 50])
@pytest.mark.parametrize("width", [1, 4])
def test_every_piece_is_done_once_and_no_more_than_wanted_at_once(size: int, width: int) -> None:
    now, most, lock = 0, 0, threading.Lock()

    def counted(number: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return number

    with contextlib.closing(Pool(width)) as pool:
        assert sorted(pool.each(counted, range(size))) == list(range(size))
    assert most == min(size, width) or (most == 1 and size == 1)


def test_a_later_batch_finds_the_threads_of_the_first() -> None:
    with contextlib.closing(Pool(4)) as pool:
        first = {name for _, name in pool.each(work, range(40))}
        count = threading.active_count()
        second = {name for _, name in pool.each(work, range(40))}
        assert threading.active_count() == count
    assert first == second and len(first) == 4


def test_closing_ends_the_threads_and_another_batch_starts_new_ones() -> None:
    before = set(threading.enumerate())
    pool = Pool(4)
    list(pool.each(work, range(8)))
    pool.close()
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(20)
    assert [thread.name for thread in started if thread.is_alive()] == []
    assert len(list(pool.each(work, range(8)))) == 8
    pool.close()
    pool.close()
