"""A budget counts work, is bounded by the clock, hears a stop, and divides itself."""

from __future__ import annotations

import pickle
from math import inf

import pytest

from tablesafe.core.errors import OutOfTime
from tablesafe.work import budget as budgets
from tablesafe.work.budget import ENDLESS, Budget


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_work_ends_it_whatever_the_clock_says() -> None:
    budget = Budget(10, clock=FakeClock())
    budget.count(9.5)
    assert (budget.left, budget.work_left, budget.over) == (0.5, 0.5, False)
    budget.count(1)
    assert budget.over
    assert not budget.late
    with pytest.raises(OutOfTime):
        budget.check()


def test_the_clock_ends_it_though_nothing_was_counted() -> None:
    clock = FakeClock()
    budget = Budget(10, work=100, clock=clock)
    clock.now += 8
    assert (budget.left, budget.work_left) == (2, 100)  # work left does not depend on how fast the machine is
    clock.now += 2
    assert budget.over
    assert budget.late
    assert budget.work_left == 0


def test_a_busy_machine_takes_longer_and_not_for_ever() -> None:
    clock, cpu = FakeClock(), FakeClock()
    budget = Budget(10, clock=clock, cpu=cpu)
    clock.now, cpu.now = clock.now + 12, cpu.now + 3
    assert budget.left == pytest.approx(4)  # of 16 on the wall
    assert not budget.late
    clock.now += 4
    assert budget.over
    assert budget.late


def test_a_stop_ends_all_parts() -> None:
    whole = Budget()
    part = whole.child(5).share(0.5)
    assert not part.over
    whole.stop()
    assert part.over
    assert part.stopped
    assert part.late


def test_a_stop_of_a_part_leaves_the_whole() -> None:
    whole = Budget()
    part = whole.child(work=5)
    part.stop()
    assert part.over
    assert not whole.over


def test_what_a_part_counts_the_whole_counts() -> None:
    whole = Budget(10, clock=FakeClock())
    part = whole.child(work=4)
    part.child().count(3)
    assert (whole.spent, part.spent) == (3, 3)
    assert (part.work_left, whole.work_left) == (1, 7)
    whole.count(7)
    assert part.over


def test_a_part_is_bounded_by_the_whole() -> None:
    clock = FakeClock()
    whole = Budget(10, clock=clock)
    assert whole.child(50).left == 10
    assert whole.child(3, work=50).left == 3
    assert whole.child().left == 10
    assert whole.share(0.1).left == 4  # four times its share
    clock.now += 10
    assert whole.share(0.1).over


def test_until_rings_after_some_more_work() -> None:
    budget = Budget(work=10)
    rings = budget.until(2)
    budget.count(2)
    assert not rings()
    budget.count(0.1)
    assert rings()


def test_without_limits_nothing_ends() -> None:
    budget = Budget()
    budget.program(1_000, 1_000_000)
    assert budget.left == inf
    assert budget.child().share(0.01).left == inf
    assert not ENDLESS.over


def test_what_was_given_up_is_told_once_by_the_whole() -> None:
    whole = Budget()
    whole.child().give_up("Improvement stopped.")
    whole.child().child().give_up("Improvement stopped.")
    whole.give_up("Sums were searched in part.")
    assert whole.given_up == ("Improvement stopped.", "Sums were searched in part.")
    assert whole.child().given_up == whole.given_up


def test_another_process_gets_what_is_left() -> None:
    budget = Budget(work=10).child(work=4)
    budget.count(1)
    there = pickle.loads(pickle.dumps(budget))
    assert there.work_left == 3
    budget.stop()
    assert pickle.loads(pickle.dumps(budget)).over


def test_what_must_be_brought_to_an_end_has_some_time_in_any_case() -> None:
    now = [0.0]
    budget = Budget(10, clock=lambda: now[0])
    assert budget.at_least(3) is budget
    now[0] = 8.0
    assert budget.at_least(3) is not budget
    assert 2.5 < budget.at_least(3).left <= 3
    budget.stop()
    assert not budget.at_least(1).over


def test_a_copied_process_reads_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's clock is read once in a moment; in a process that was just copied it stands elsewhere."""
    told = iter([100.0, 0.5])
    monkeypatch.setattr(budgets, "process_time", lambda: next(told))
    monkeypatch.setattr(budgets, "MOMENT_S", 1e9)
    budgets._look_again()
    before = budgets.worked()
    assert budgets.worked() == before
    budgets._look_again()
    assert budgets.worked() == pytest.approx(before - 99.5)


def test_more_time_than_was_thought_is_used_and_some_is_kept_on_every_clock() -> None:
    clock, cpu = FakeClock(), FakeClock()
    whole = Budget(10, clock=clock, cpu=cpu)
    part = whole.child(4)
    part.count(4)
    assert part.over
    part.prolong(2)
    assert (part.left, part.work_left) == (4, 4)
    part.prolong(3)  # less than it has
    assert part.left == 4
    clock.now += 12.5  # of 16 on the wall
    assert whole.left == 3.5
    assert part.left == pytest.approx(0.3)
    cpu.now += 8
    assert whole.left == 2
    assert part.over
    part.prolong(0)
    whole.stop()
    assert part.over
    endless = Budget()
    endless.prolong(1)
    assert endless.left == inf
