"""Two things at once: in the order in which they were asked for, counted once, and ended together."""

from __future__ import annotations

import threading

import pytest

from tablesafe.work import budget as budgets
from tablesafe.work import side_by_side as module
from tablesafe.work.budget import Budget
from tablesafe.work.side_by_side import side_by_side


@pytest.fixture(params=[1, 2])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "cores", lambda: request.param)
    return int(request.param)


def test_answers_come_in_order_and_count_as_long_as_the_longest(cores: int) -> None:
    whole = Budget(work=10.0)

    def after(work: float) -> object:
        def do(budget: Budget) -> float:
            budget.count(work)
            return work

        return do

    assert side_by_side([after(3.0), after(2.0)], whole) == [3.0, 2.0]  # type: ignore[list-item]
    assert whole.spent == 3.0
    assert side_by_side([], whole) == []
    assert whole.spent == 3.0


def test_two_cores_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other: done one after the other, neither would come back."""
    monkeypatch.setattr(module, "cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)

    def meet(budget: Budget) -> int:
        return both.wait()

    assert sorted(side_by_side([meet, meet], Budget())) == [0, 1]


def test_an_error_in_one_ends_the_other(cores: int) -> None:
    heard = list[bool]()
    failed = threading.Event()

    def fail(budget: Budget) -> None:
        failed.set()
        raise KeyboardInterrupt

    def wait(budget: Budget) -> None:
        failed.wait(60)
        stopped = threading.Event()
        while not budget.over and not stopped.wait(0.01):
            pass
        heard.append(budget.stopped)

    with pytest.raises(KeyboardInterrupt):
        side_by_side([fail, wait], Budget())
    assert heard == [True] * (cores - 1)


def test_a_part_ends_with_the_whole_and_knows_what_is_left_of_it() -> None:
    whole = Budget(work=5.0)
    whole.count(1.0)

    def see(budget: Budget) -> tuple[float, bool]:
        left = budget.work_left
        whole.stop()
        return left, budget.over

    assert side_by_side([see], whole) == [(4.0, True)]


def test_what_other_threads_work_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's clock goes by what this thread waits for, not by what both have worked."""
    monkeypatch.setattr(module, "cores", lambda: 2)
    own = threading.local()

    def thread_time() -> float:
        """Each part begins at 0 and ends at 7."""
        own.now = 7.0 if hasattr(own, "now") else 0.0
        return float(own.now)

    monkeypatch.setattr(module, "thread_time", thread_time)
    monkeypatch.setattr(budgets, "process_time", lambda: 100.0)
    budgets._look_again()
    before = budgets.worked()
    side_by_side([lambda budget: None, lambda budget: None], Budget())
    try:
        assert before - budgets.worked() == pytest.approx(7.0)
    finally:
        budgets.beside(-7.0)
