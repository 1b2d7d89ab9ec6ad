"""Work that is spread: every question is answered once, by its own answer, whoever is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from tablesafe.core.errors import InvalidOption
from tablesafe.work import executor
from tablesafe.work import memo as remembering
from tablesafe.work.dask import Cluster, version_here
from tablesafe.work.executor import in_order, spread
from tablesafe.work.memo import Remembering

LONG = 5.0
"""Estimated seconds of a task that goes alone."""


def square(number: int) -> int:
    return number * number


def cube(number: int) -> int:
    return number**3


def broken(number: int) -> float:
    return 1 / number


class Forgetful(Executor):
    """Those who do the work: they answer in another order, and are lost after some answers, some times."""

    def __init__(self, lost_after: int, times: int) -> None:
        self.lost_after, self.times = lost_after, times
        self.sent: list[tuple[Any, ...]] = []
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.sent.append(tuple(args[1]))
        self._waiting.append((future, function, args))
        if len(self.sent) % 2 == 0:  # the later ones are answered first
            self._answer(self._waiting.pop())
            self._answer(self._waiting.pop(0))
        return future

    def _answer(self, waiting: tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]) -> None:
        future, function, args = waiting
        if self.lost_after <= 0 and self.times > 0:
            future.set_exception(ConnectionError("they are gone"))
        else:
            self.lost_after -= 1
            future.set_result(function(*args))

    def answers(self) -> bool:
        return True

    def revive(self) -> bool:
        self.times -= 1
        self._waiting.clear()
        return True


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("lost_after", [0, 1, 3, 7])
def test_every_task_is_answered_once_by_its_own_answer(lost_after: int, times: int) -> None:
    pool = Forgetful(lost_after, times)
    found = list(spread(square, range(8), [LONG] * 8, pool))
    assert sorted(found) == [(i, i * i) for i in range(8)]


def test_what_was_answered_is_not_asked_again() -> None:
    pool = Forgetful(lost_after=3, times=1)
    seen = [(number, len(pool.sent)) for number, _ in spread(square, range(8), [LONG] * 8, pool)]
    before = {number for number, sent in seen if sent == 8}
    again = [number for tasks in pool.sent[8:] for number in tasks]
    assert before
    assert sorted(again) == sorted(set(range(8)) - before)


def test_those_who_are_lost_each_time_are_done_without() -> None:
    with pytest.warns(RuntimeWarning, match="the work goes on without them"):
        assert in_order(square, range(8), [LONG] * 8, Forgetful(0, 99)) == [i * i for i in range(8)]


def test_small_tasks_that_go_together_keep_their_own_answers() -> None:
    seconds = [0.4, 3.0, 0.1, 0.5, 2.0, 0.3, 0.2, 0.6]
    assert in_order(square, range(8), seconds, Forgetful(99, 0)) == [i * i for i in range(8)]


# -- memory ------------------------------------------------------------------------------------------------------------


class Store(dict[str, bytes]):
    def put(self, key: str, data: bytes) -> None:
        self[key] = data


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Remembering:
    monkeypatch.setattr(remembering, "WORTH_S", 0.0)
    return Remembering(None, Store())


def test_an_answer_is_that_of_its_own_task_and_function(memory: Remembering) -> None:
    for function in (square, cube):
        for tasks in (range(4), range(2, 6), range(4)):
            assert in_order(function, tasks, [LONG] * 4, memory) == [function(i) for i in tasks]


def test_what_is_remembered_is_not_done_again(memory: Remembering, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_order(square, range(4), [LONG] * 4, memory) == [0, 1, 4, 9]

    def never(*args: object) -> None:
        raise AssertionError("this is known")

    monkeypatch.setattr(executor, "work", never)
    assert in_order(square, range(4), [LONG] * 4, memory) == [0, 1, 4, 9]


def test_a_failure_is_not_remembered(memory: Remembering, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        in_order(broken, [1, 0], [0.1, 0.1], memory)
    assert memory._store == {}


# -- others ------------------------------------------------------------------------------------------------------------


class Client:
    """A scheduler and its workers, each with a version of the program."""

    def __init__(self, scheduler: str, *workers: str) -> None:
        self.scheduler, self.workers = scheduler, workers

    def wait_for_workers(self, number: int, timeout: float) -> None:
        if len(self.workers) < number:
            raise TimeoutError

    def run_on_scheduler(self, function: Callable[[], str]) -> str:
        return self.scheduler

    def run(self, function: Callable[[], str]) -> dict[str, str]:
        return {f"tls://{i}": version for i, version in enumerate(self.workers)}


@pytest.mark.parametrize("versions", [("0.0", None), (None, None, "0.0"), (None,)], ids=["scheduler", "worker", "none"])
def test_only_workers_with_this_very_program_are_sent_anything(versions: tuple[str | None, ...]) -> None:
    """Others would answer something else, and nobody would notice."""
    made = object.__new__(Cluster)
    made._what = "the cluster"
    made._client = Client(*(version or version_here() for version in versions))
    with pytest.raises(InvalidOption, match=r"(?s)workers of the cluster.*Hint: .*version|are there workers"):
        made.agree()
    made._client = Client(version_here(), version_here())
    made.agree()
