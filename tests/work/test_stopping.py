"""Ctrl-C stops what is heeded, and a second one ends it as anywhere."""

from __future__ import annotations

import signal

import pytest

from tablesafe.work.budget import Budget
from tablesafe.work.stopping import ask, ask_once, asked, heed, heeding, overdue


def test_ctrl_c_stops_the_budget_and_then_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with heed(Budget()) as budget:
        assert heeding()
        signal.raise_signal(signal.SIGINT)
        assert budget.stopped
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert not heeding()
    assert not asked()


def test_who_asks_again_wants_an_end_at_once() -> None:
    assert not ask_once(), "nothing is heeded"
    with heed(Budget()) as budget:
        assert not budget.stopped, "and nothing waits for a stop"
        assert ask_once()
        assert budget.stopped
        assert not ask_once()


def test_what_must_be_done_goes_on_for_a_while() -> None:
    now = [0.0]
    whole = Budget()
    must = Budget(clock=lambda: now[0])
    must.hurry(whole, 2.0)
    with heed(whole, must):
        ask()
        assert not asked()
        assert must.left == pytest.approx(2.0)
        now[0] = 1.9
        assert not must.over
        now[0] = 2.1
        assert must.over


def test_a_stop_goes_to_all_that_are_heeded() -> None:
    with heed(Budget()) as outer, heed(Budget()) as inner:
        ask()
        assert outer.stopped
        assert inner.stopped


def test_what_begins_after_a_stop_is_stopped_too() -> None:
    with heed(Budget()):
        ask()
        with heed(Budget()) as later:
            assert later.stopped


def test_a_stop_that_comes_early_is_heard_later() -> None:
    ask()
    with heed(Budget()) as budget:
        assert budget.stopped
    with heed(Budget()) as budget:
        assert not budget.stopped


def test_what_has_no_answer_is_broken_off_when_its_seconds_after_a_stop_are_over() -> None:
    now = [0.0]
    whole = Budget()
    must = Budget(clock=lambda: now[0])
    must.hurry(whole, 2.0)
    assert not overdue()
    with heed(whole, must):
        now[0] = 5.0
        assert not overdue()
        assert not must.hurried
        ask()
        assert must.hurried
        assert not overdue()
        now[0] = 7.1
        assert overdue()
