"""Whom moves of many cells convince: against what each respondent can derive, by a linear program of its own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize, sparse

import tablesafe as ts
from tablesafe.audit import insiders as module
from tablesafe.audit.doubts import Doubts, Largest, Listed
from tablesafe.audit.exact import ExactMove, narrowed
from tablesafe.audit.respondent_knowledge import Knowledge
from tablesafe.audit.system import System
from tablesafe.audit.together import convincing_moves
from tablesafe.core.problem import Problem
from tablesafe.work.budget import Budget


def _frame(seed: int) -> pl.DataFrame:
    """Few firms in a cell, several cells of many firms."""
    random = np.random.default_rng(seed)
    k = int(random.integers(30, 70))
    return pl.DataFrame(
        {
            "a": random.choice(list("pqrs"), k),
            "b": random.choice(list("xyzw"), k),
            "firm": random.integers(0, k * 3 // 4, k),
            "value": np.ceil(random.lognormal(3, 1.2, k)),
        }
    )


def _problem(seed: int) -> Problem:
    table = ts.tabulate(_frame(seed), dimensions=["a", "b"], value="value", respondent="firm", largest=2 + seed % 4)
    return ts.Problem(table, rules=[ts.Threshold(n=3), ts.PPercent(p=15)])


def _reaches(system: System, known: Knowledge, target: int, member: int, by: float) -> bool:
    """Whether a table exists for one respondent in which a cell has moved so far; the cell itself moves freely."""
    low, high = system.lower - system.truth, system.upper - system.truth
    guess = known.guesses((member,)) - system.truth
    low = np.maximum(low, np.minimum(guess, 0.0))
    for cell, place in zip(*np.nonzero(known.who == member), strict=True):
        if known.everyone[cell] == 1:
            low[cell] = high[cell] = 0.0
        else:
            low[cell] = max(
                system.lower[cell] - system.truth[cell], min(known.own[cell, place] - system.truth[cell], 0.0)
            )
    own = float(known.own[target][known.who[target] == member].sum())
    if by < 0:
        by = -min(-by, float(system.truth[target]) - own)
    low[target], high[target] = min(by, 0.0), max(by, 0.0)
    cost = np.zeros(len(system))
    cost[target] = -np.sign(by)
    bounds = [(a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)]
    found = optimize.linprog(cost, A_eq=system.matrix, b_eq=np.zeros(system.matrix.shape[0]), bounds=bounds)
    return found.status == 0 and -found.fun >= abs(by) - 1e-6


def _settled(problem: Problem, pattern: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> module._Search | None:
    monkeypatch.setattr(module, "MANY", 1)
    system = System.of(problem, ts.Release.from_suppression(problem, pattern))
    known = Knowledge.of(system, 1)
    wanted = np.flatnonzero(problem.sensitivity.mask[system.cells])
    if known is None or not len(wanted):
        return None
    search = module._Search(problem, known, wanted, 0, ts.Run().within(None))
    monkeypatch.setattr(search, "_witnesses", lambda *_: None)  # no hypercubes: programs have to do it all
    search._together(())
    return search


@pytest.mark.parametrize("seed", range(6))
def test_who_is_convinced_cannot_rule_it_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(seed)
    random = np.random.default_rng(seed)
    table = problem.table
    pattern = problem.sensitivity.mask | (random.random(len(table)) < random.choice([0.3, 0.6, 0.9]))
    search = _settled(problem, pattern, monkeypatch)
    if search is None:
        return
    known, system = search.knowledge, search.system
    for side in (-1, 1):
        for target in search.needs:
            by = side * float(search.wanted[side][target])
            if by == 0 or search.settled[side][target] < 0:
                continue
            for member in np.unique(known.who[known.who >= 0]).tolist():
                if not search._covers(target, (member,)):
                    need = search._need(target, (member,))
                    far = min(need.upper if side > 0 else need.lower, abs(by))
                    assert far <= 0 or _reaches(system, known, target, member, side * far), (seed, target, member, by)


@pytest.mark.parametrize("seed", range(8))
def test_less_is_asked_of_the_largest_by_the_formula_of_the_audit(seed: int) -> None:
    """With losses, waivers, short lists and without."""
    random = np.random.default_rng(seed)
    frame = _frame(seed)
    if seed % 4 == 3:
        frame = frame.with_columns(value=frame["value"] * random.choice([-1.0, 1.0, 1.0, 1.0], len(frame)))
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=2 + seed % 3)
    rule: ts.rules.Rule = ts.PPercent(p=30)
    if seed % 2:
        rule = ts.Waiver(of=rule, respondents=(int(frame["firm"][0]), int(frame["firm"][5])))
    problem = ts.Problem(table, rules=[ts.Threshold(n=3, range_percent=5), rule])
    system = System.of(problem, ts.Release.from_suppression(problem, np.ones(len(table), dtype=np.bool_)))
    known = Knowledge.of(system, 1)
    assert known is not None
    wanted = np.flatnonzero(problem.sensitivity.mask[system.cells])
    search, listed = module._Search(problem, known, wanted, 0, ts.Run().within(None)), Listed.of(problem, known)
    for cell in wanted.tolist():
        level = search.needs[cell]
        for place in np.flatnonzero(known.who[cell] >= 0).tolist():
            need = search._need(cell, (int(known.who[cell, place]),))
            far = float(np.ceil(level.upper))
            asked = listed.asked(np.full(len(system), far), np.array([cell]), np.array([place]))[0]
            assert need.upper <= asked <= np.ceil(need.upper) + 2, (cell, place)


def test_the_largest_contributor_is_convinced_by_less_or_by_nothing() -> None:
    """It has 100 of a cell in which nobody can learn of the next, 5, what the others, 4, hide anyway."""
    who, room, alone = [[0, 1], [2, -1], [3, -1]], [[9.0, 104.0], [0.0, 0.0], [0.0, 0.0]], [False, True, True]
    some = Largest(np.array([0, -1, -1]), np.array([0.05, 1.0, 1.0]), np.array([-0.25 * 12, 0.0, 0.0]), np.zeros(3))
    listed = Listed(np.array(who), np.array(room), np.array(alone), np.array([FAR] * 3), (some,))
    doubts = Doubts(listed, np.array([0.0, 0.0, 0.0]), np.array([6.0, 0.0, 0.0]))
    assert _left(doubts, 1, 0) == {2, 3}  # nothing is hidden from the largest; the second has no say in any other cell
    some = Largest(np.array([0, -1, -1]), np.array([0.5, 1.0, 1.0]), np.zeros(3), np.zeros(3))
    listed = Listed(np.array(who), np.array(room), np.array(alone), np.array([FAR] * 3), (some,))
    doubts = Doubts(listed, np.array([0.0, 0.0, 0.0]), np.array([6.0, 0.0, 0.0]))
    assert 0 in _left(doubts, 1, 0)
    doubts.add(np.array([2, -2, 0]))
    assert 0 in _left(doubts, 1, 0)
    doubts.add(np.array([3, -3, 0]))
    assert 0 not in _left(doubts, 1, 0)
    assert {2, 3} <= _left(doubts, 1, 0)


def test_who_must_not_know_a_cell_exactly_is_asked_for_a_unit_at_least() -> None:
    """The others hide the next one anyway, but there are too few: their sum must not be known to the largest either."""
    least = np.array([1.0, 0.0, 0.0])
    some = Largest(np.array([0, -1, -1]), np.array([0.05, 1.0, 1.0]), np.array([-5.0, 0.0, 0.0]), least)
    who, room = [[0, 1], [2, -1], [3, -1]], [[9.0, 104.0], [0.0, 0.0], [0.0, 0.0]]
    listed = Listed(np.array(who), np.array(room), np.array([False, True, True]), np.array([FAR] * 3), (some,))
    level, target = np.array([6.0, 0.0, 0.0]), np.array([0, 0])
    assert listed.asked(level, target, np.array([0, 1])).tolist() == [1.0, 6.0]
    assert listed.asked(level / 12, target, np.array([0, 1])).tolist() == [0.5, 0.5]  # and never for more than others
    for side, fall, rise in ((-1, level, NOTHING), (1, NOTHING, level)):
        doubts = Doubts(listed, fall, rise)
        assert 0 in _left(doubts, side, 0)
        doubts.add(side * np.array([1, -1, 0]))
        assert 0 not in _left(doubts, side, 0)


def test_the_lists_of_a_table_say_who_must_not_know_a_cell_exactly() -> None:
    """100 + 1 + 1: p% asks nothing of the largest, a threshold of four that it does not know the sum of the others."""
    firms = [("p", "x", 0, 100), ("p", "x", 1, 1), ("p", "x", 2, 1), *(("p", "y", 10 + i, 20) for i in range(9))]
    frame = pl.DataFrame(firms, schema=["a", "b", "firm", "value"], orient="row")
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=4)
    asked = {}
    for name, rules in {"p": [ts.PPercent(p=10)], "both": [ts.PPercent(p=10), ts.Threshold(n=4)]}.items():
        problem = ts.Problem(table, rules=rules)
        system = System.of(problem, ts.Release.from_suppression(problem, np.ones(len(table), dtype=np.bool_)))
        known = Knowledge.of(system, 1)
        assert known is not None
        cell = int(np.flatnonzero(system.cells == table.index(a="p", b="x"))[0])
        level = np.full(len(system), 10.0)
        asked[name] = Listed.of(problem, known).asked(level, np.array([cell]), np.array([0]))[0]
    assert asked["p"] <= 0 < asked["both"]


# -- what convinces whom, followed by hand -----------------------------------------------------------------------------


def _listed(who: list[list[int]], room: list[list[float]], alone: list[bool], others: list[float]) -> Listed:
    return Listed(np.array(who), np.array(room), np.array(alone), np.array(others))


def _left(doubts: Doubts, side: int, cell: int) -> set[int]:
    bits = np.unpackbits(doubts.left(side, np.array([cell]))[0], count=doubts.respondents)
    number = {int(doubts._number[one]): one for one in np.unique(doubts.listed.who[doubts.listed.who >= 0]).tolist()}
    return {number[at] for at in np.flatnonzero(bits).tolist() if at < doubts.respondents - 1}  # the last is all others


FAR = 1e9
TWO = _listed([[0, 1], [2, -1], [3, -1]], [[FAR, FAR], [0, 0], [0, 0]], [False, True, True], [FAR] * 3)
"""A target, and two cells with one contributor each."""
NOTHING, FIVE = np.zeros(3), np.array([5.0, 0.0, 0.0])


def test_whoever_sees_its_cell_move_is_not_convinced() -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    doubts.add(np.array([5, -5, 0]))
    assert _left(doubts, 1, 0) == {2}


def test_two_moves_that_are_ruled_out_for_opposite_reasons_convince() -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    doubts.add(np.array([5, -5, 0]))
    doubts.add(np.array([5, -3, -2]))
    assert _left(doubts, 1, 0) == {2}  # its cell fell both times
    doubts.add(np.array([10, 1, -11]), unit=2)
    assert not doubts.open(1)[0]


def test_a_move_that_does_not_reach_the_level_convinces_nobody() -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    doubts.add(np.array([5, -5, 0]))
    doubts.add(np.array([4, 0, -4]))
    assert _left(doubts, 1, 0) == {2}
    doubts.add(np.array([9, 0, -9]), unit=2)
    assert _left(doubts, 1, 0) == {2}
    doubts.add(np.array([10, 0, -10]), unit=2)
    assert not doubts.open(1)[0]


def test_opposite_moves_convince_only_who_sees_all_its_cells_move_alike() -> None:
    listed = _listed([[0, 1], [2, -1], [2, -1]], [[FAR, FAR], [0, 0], [0, 0]], [False, True, True], [FAR] * 3)
    doubts = Doubts(listed, NOTHING, FIVE)
    doubts.add(np.array([5, -2, -3]))
    doubts.add(np.array([5, 2, 3]))
    assert _left(doubts, 1, 0) == {2}  # no mixture need leave both at rest: (−2, −3) and (2, 3) would, (−1, −3) not
    doubts.add(np.array([5, -2, -2]))
    assert _left(doubts, 1, 0) == {2}
    doubts.add(np.array([5, 4, 4]))
    assert not doubts.open(1)[0]


def test_the_only_contributor_of_a_target_has_nothing_to_learn() -> None:
    doubts = Doubts(TWO, NOTHING, np.array([0.0, 5.0, 0.0]))
    doubts.add(np.array([-5, 5, 0]))
    assert not doubts.open(1)[1]


def test_no_cell_falls_below_what_a_respondent_has_there() -> None:
    listed = _listed([[0, 1], [2, 3]], [[FAR, FAR], [4, 20]], [False, False], [FAR] * 2)
    doubts = Doubts(listed, np.zeros(2), np.array([5.0, 0.0]))
    doubts.add(np.array([5, -5]))
    assert _left(doubts, 1, 0) == {2}
    doubts.add(np.array([10, -8]), unit=2)
    assert not doubts.open(1)[0]


def test_nor_below_what_somebody_may_have_who_is_not_listed() -> None:
    listed = _listed([[0, 1], [2, 3]], [[FAR, FAR], [20, 30]], [False, False], [FAR, 4])
    doubts = Doubts(listed, np.zeros(2), np.array([5.0, 0.0]))
    doubts.add(np.array([5, -5]))
    assert _left(doubts, 1, 0) == {0, 2}
    doubts.add(np.array([5, -4]))
    assert not doubts.open(1)[0]


def test_a_contributor_of_the_target_is_content_with_what_the_others_have() -> None:
    """Of a cell of 100, of which it has 97, nothing must be hidden from it but the 3: whatever the level is."""
    listed = _listed([[0, 1], [2, 3], [0, 4]], [[3, 97], [FAR, FAR], [1, 90]], [False] * 3, [FAR] * 3)
    fall = np.array([10.0, 0.0, 0.0])
    doubts = Doubts(listed, fall, np.zeros(3))
    doubts.add(np.array([-10, 5, 5]))
    assert not doubts.open(-1)[0]
    doubts = Doubts(listed, fall, np.zeros(3))
    doubts.add(np.array([-10, 20, -10]))  # 3 of it is 3 in the last cell, too, and that is 2 too many
    assert _left(doubts, -1, 0) == {0}
    doubts.add(np.array([-3, 2, 1]))
    assert not doubts.open(-1)[0]


def test_a_level_beyond_what_any_move_reaches_is_not_reached() -> None:
    doubts = Doubts(TWO, NOTHING, np.array([2.0**25, 0.0, 0.0]))
    doubts.add(np.array([2**24, 0, -(2**24)]))
    assert doubts.open(1)[0]


def test_a_mixture_keeps_to_what_both_moves_keep_to() -> None:
    """One respondent knows the second cell, and has nearly all of the third."""
    listed = _listed([[0, 1], [2, -1], [2, 3]], [[FAR, FAR], [0, 0], [1, 50]], [False, True, False], [FAR] * 3)
    doubts = Doubts(listed, NOTHING, FIVE)
    doubts.add(np.array([5, -5, 0]))
    doubts.add(np.array([5, 5, -10]))
    assert _left(doubts, 1, 0) == {2}


def test_a_contributor_that_knows_another_cell_is_not_content_when_that_moves() -> None:
    listed = _listed([[0, 1], [0, -1]], [[3, 97], [0, 0]], [False, True], [FAR] * 2)
    doubts = Doubts(listed, np.array([10.0, 0.0]), np.zeros(2))
    doubts.add(np.array([-10, 10]))
    assert _left(doubts, -1, 0) == {0}


def test_a_target_that_no_move_has_reached_is_open_though_nobody_who_is_looked_at_may_object() -> None:
    """The largest is first everywhere, and nothing must be hidden from it; where nobody is listed, nobody is first."""
    who, room = [[0, 1], [0, 2]], [[15.0, 90.0], [10.0, 11.0]]
    some = Largest(np.array([0, -1]), np.array([0.1, 1.0]), np.array([-5.0, 0.0]), np.zeros(2))
    ruled = Listed(np.array(who), np.array(room), np.array([False] * 2), np.array([FAR] * 2), (some,))
    nobody = _listed([[-1], [-1]], [[FAR], [FAR]], [False] * 2, [FAR] * 2)
    for listed in (ruled, nobody):
        doubts = Doubts(listed, np.zeros(2), np.array([12.0, 0.0]))
        assert doubts.open(1)[0]
        assert doubts.some(1, 0) == [()]
        doubts.add(np.array([11, -11]))
        assert doubts.open(1)[0]
        doubts.add(np.array([120, -100]), unit=10)
        assert not doubts.open(1)[0]


LARGE = (("A", 300), ("D", 100), ("E", 90), ("F", 80), ("H", 90))
PUBLIC = [("p", "z"), ("q", "z"), *(("r", column) for column in "xyz")]
MONOPOLY = [
    ("p", "x", "A", 85), ("p", "x", "B", 10), ("p", "x", "C", 5), ("p", "y", "A", 11), ("p", "y", "B", 10),
    *(("q", column, *each) for column in "xy" for each in LARGE),
    *((row, column, f"{row}{column}{i}", 60) for row, column in PUBLIC for i in range(9)),
]  # fmt: skip
"""A is the largest in all that is withheld. B knows of (p, y) what it has there, so that (p, x) cannot rise by 12."""


@pytest.mark.parametrize("suggested", [(), (ExactMove(np.zeros(0, np.intp), np.zeros(0, np.int64)),)])
def test_a_cell_is_not_settled_before_it_was_moved(
    suggested: tuple[ExactMove, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(module, "hypercubes_of", lambda system: system)
    frame = pl.DataFrame(MONOPOLY, schema=["a", "b", "firm", "value"], orient="row")
    table = ts.tabulate(frame, dimensions=["a", "b"], value="value", respondent="firm", largest=5)
    problem = ts.Problem(table, rules=[ts.PPercent(p=20)])
    pattern = np.zeros(len(table), dtype=np.bool_)
    pattern[[table.index(a=a, b=b) for a in "pq" for b in "xy"]] = True
    system = System.of(problem, ts.Release.from_suppression(problem, pattern))
    found = module.search_insiders(problem, system, names=True, suggested=suggested)[0]
    assert [each.names for each in found.found if each.cell == table.index(a="p", b="x")] == [("B",)]


# -- what is suggested -------------------------------------------------------------------------------------------------

ROOM = np.full(3, 10.0)
SUM = sparse.csr_array(np.array([[1, 1, 0]]))


@pytest.mark.parametrize(
    ("cells", "by", "unit"),
    [([0], [5], 1), ([0, 1], [5, -4], 1), ([0, 1], [20, -20], 1), ([0, 1], [-20, 20], 1), ([0, 1], [21, -21], 2)],
)
def test_a_suggestion_that_breaks_a_sum_or_a_bound_convinces_nobody(cells: list[int], by: list[int], unit: int) -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    move = ExactMove(np.array(cells), np.array(by), unit)
    assert not list(convincing_moves(SUM, ROOM, ROOM, doubts, [move], Budget(0)))
    assert _left(doubts, 1, 0) == _left(Doubts(TWO, NOTHING, FIVE), 1, 0)


@pytest.mark.parametrize(("by", "unit"), [(2**60 + 1, 2**60), (2**75 + 1, 2**75), (6 * 2**75, 2**75)])
def test_a_suggestion_that_64_bits_do_not_hold_convinces_nobody(by: int, unit: int) -> None:
    """10 whole units of 1/2^60 are more than 2^63 of them: a move by one unit would seem to be far enough."""
    room, need = np.full(3, 20.0), np.array([10.0, 0.0, 0.0])
    doubts = Doubts(TWO, NOTHING, need)
    move = ExactMove(np.array([0, 1]), narrowed(np.array([by, -by], dtype=object)), unit)
    assert not list(convincing_moves(SUM, room, room, doubts, [move], Budget(0)))
    assert _left(doubts, 1, 0) == _left(Doubts(TWO, NOTHING, need), 1, 0)


def test_floats_do_not_decide_whether_whole_numbers_reach_a_level() -> None:
    unit = 10**11
    for short, left in ((1, {2, 3}), (0, {2})):
        doubts = Doubts(TWO, NOTHING, np.array([2.0**24, 0.0, 0.0]))
        doubts.add(np.array([2**24 * unit - short, -(2**24) * unit + short, 0]), unit)
        assert _left(doubts, 1, 0) - {0, 1} == left


@pytest.mark.parametrize(("by", "unit"), [(5, 1), (-5, 1), (20, 2), (10, 1)])
def test_a_suggestion_that_keeps_sums_and_bounds_convinces_with_its_reverse(by: int, unit: int) -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    move = ExactMove(np.array([0, 1]), np.array([by, -by]), unit)
    found = [one.tolist() for one in convincing_moves(SUM, ROOM, ROOM, doubts, [move], Budget(0))]
    assert found == [[by, -by, 0], [-by, by, 0]]
    assert _left(doubts, 1, 0) == {2}


def test_of_a_suggestion_and_its_reverse_the_one_with_room_convinces() -> None:
    doubts = Doubts(TWO, NOTHING, FIVE)
    move = ExactMove(np.array([0, 1]), np.array([-5, 5]), 1)
    found = list(convincing_moves(SUM, np.array([0.0, 10.0, 10.0]), ROOM, doubts, [move], Budget(0)))
    assert [one.tolist() for one in found] == [[5, -5, 0]]
