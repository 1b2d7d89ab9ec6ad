"""Tasks anywhere: every task once, whatever the executor; long ones alone, short ones together."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from tablesafe.work import executor as module
from tablesafe.work.executor import spread


def square(x: int) -> int:
    """At the top of the module, so that it can be sent."""
    return x * x


def process(_: int) -> int:
    """Where a task ran."""
    return os.getpid()


def die_elsewhere(home: int) -> int:
    """Kill any process but the one that asked."""
    if os.getpid() != home:
        os._exit(1)
    return home


class Counting(Executor):
    """Runs at once, and remembers how many tasks came together."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.cancelled = 0

    def submit(self, function, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.batches.append(len(args[1]))
        future: Future = Future()
        future.set_result(function(*args, **kwargs))
        return future


@pytest.mark.parametrize(
    "executor", [None, ThreadPoolExecutor(2), ProcessPoolExecutor(2)], ids=["here", "threads", "processes"]
)
def test_every_task_is_done_once(executor: Executor | None) -> None:
    tasks = list(range(50))
    found = sorted(spread(square, tasks, [0.1] * 50, executor))
    assert found == [(i, i * i) for i in tasks]
    if executor is not None:
        executor.shutdown()


def test_short_tasks_go_together_and_long_ones_alone() -> None:
    executor = Counting()
    assert len(list(spread(square, range(100), [5.0, 3.0] + [0.01] * 98, executor))) == 100
    assert executor.batches[:2] == [1, 1]
    assert executor.batches[2] == 98


def test_little_work_stays_here_and_much_goes_to_a_pool() -> None:
    little = {result for _, result in spread(process, range(4), [0.1] * 4, None)}
    assert little == {os.getpid()}
    if len(os.sched_getaffinity(0)) > 1:
        much = {result for _, result in spread(process, range(4), [100.0] * 4, None)}
        assert os.getpid() not in much


def test_a_pool_that_dies_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    home = os.getpid()
    with pytest.warns(RuntimeWarning, match="processes that did the work are gone"):
        found = dict(spread(die_elsewhere, [home] * 3, [100.0] * 3, None))
    assert found == {0: home, 1: home, 2: home}


def test_the_callers_own_pool_is_done_without_too() -> None:
    home = os.getpid()
    with ProcessPoolExecutor(1) as pool, pytest.warns(RuntimeWarning, match="BrokenProcessPool"):
        assert dict(spread(die_elsewhere, [home] * 3, [100.0] * 3, pool)) == dict.fromkeys(range(3), home)


def test_what_is_not_wanted_any_more_is_cancelled() -> None:
    with ThreadPoolExecutor(1) as pool:
        running = spread(square, range(30), [10.0] * 30, pool)
        next(running)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            running.close()
    assert module.BATCH_S > 0
