"""Linked views: how many entries each algorithm withholds, and what linear programs over the whole cube find open.

Seconds are for all problems of the instance. At size 4 the printed average of the tabu search (5.58) lies below the
proven optimum of problems made by this recipe (about 6.6), so no safe patterns reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from benchmarks.clock import Stopwatch
from benchmarks.registry import Case, NotHere, Outcome, Row, program
from tablesafe.methods.views.greedy import close_all, drop_redundant, withhold_in_order
from tablesafe.methods.views.instance import Hidden, TwoViews, targets_of
from tablesafe.methods.views.program import cheapest, suppression_program
from tablesafe.methods.views.state import Data, State, data_of, seed_of, state_of
from tablesafe.methods.views.tabu import tabu_search
from tablesafe.work.budget import Budget

TASK, WARM = "views", "views_4_few"
CHECKED = 10
"""Problems of an instance that the independent programs look at, of at most this size."""
CHECKED_SIZE = 10
PRINTED = {  # Table 6: average suppressions of 1,000 problems: greedy, random, tabu
    4: (11.4, 9.4, 5.58), 5: (13.7, 13.0, 7.49), 6: (14.4, 15.8, 7.37), 7: (13.7, 17.8, 6.99), 8: (11.8, 18.0, 6.16),
    9: (9.9, 18.0, 5.34), 10: (8.26, 16.6, 4.53),
}  # fmt: skip
Pattern = tuple[np.ndarray, np.ndarray]


def stated(cube: np.ndarray) -> TwoViews:
    """The problem of a cube: every entry of the two views may be withheld, at the same cost."""
    a, b, c = cube.sum(axis=2).T.astype(float), cube.sum(axis=0).astype(float), cube.sum(axis=1)
    one = np.zeros(len(a), np.int64)
    cells = np.arange(c.size).reshape(1, *c.shape)
    groups, low, up = targets_of(a, b, [Hidden(one, np.zeros(cells.shape), np.round(1.2 * c, 9)[None], cells)])
    free = np.ones(a.shape, np.bool_), np.ones(b.shape, np.bool_)
    none = np.zeros(a.shape, np.bool_), np.zeros(b.shape, np.bool_)
    return TwoViews(a, b, np.ones(a.shape), np.ones(b.shape), *free, *none, groups, low, up)


def greedy(views: TwoViews, number: int, seconds: float) -> Pattern:
    """Withhold what closes most, then what is needless goes."""
    state = _greedy(views, data_of(views))
    return state.held_a, state.held_b


def _greedy(views: TwoViews, data: Data) -> State:
    state = state_of(data, views.forced_a, views.forced_b)
    never = np.zeros(views.a.shape, np.int64), np.zeros(views.b.shape, np.int64)
    assert close_all(data, state, *never, 0, seed_of(0), 0.0)
    drop_redundant(data, state, np.arange(views.a.size + views.b.size))
    return state


def tabu(views: TwoViews, number: int, seconds: float) -> Pattern:
    """A tabu search from the greedy pattern: 600 steps, or the seconds of the case."""
    data = data_of(views)
    state = _greedy(views, data)
    tabu_search(data, state, seed=seed_of(number), steps=600 if views.a.size < 400 else 10**9, seconds=seconds)
    return state.held_a, state.held_b


def at_random(views: TwoViews, number: int, seconds: float) -> Pattern:
    """Entries in random order until all is closed."""
    data, random = data_of(views), np.random.default_rng(number)
    state = state_of(data, views.forced_a, views.forced_b)
    assert withhold_in_order(data, state, random.permutation(views.a.size + views.b.size))
    drop_redundant(data, state, random.permutation(views.a.size + views.b.size))
    return state.held_a, state.held_b


def exact(views: TwoViews, number: int, seconds: float, big_m: float | None = None) -> Pattern:
    """The integer program, with bounds that are proven or with one large constant."""
    pattern = suppression_program(views, big_m)
    answer = cheapest(pattern.program, budget=Budget(seconds))
    if answer.status != "optimal":
        raise TimeoutError(f"no proven optimum in {seconds:.0f} s")
    return pattern.read(answer.point)


def protected(case: Case, by: Callable[[TwoViews, int, float], Pattern]) -> Outcome:
    """All problems of an instance by one algorithm."""
    cubes: list[np.ndarray] = case.made.facts["cubes"]
    watch = Stopwatch()
    patterns = [by(stated(cube), number, case.seconds) for number, cube in enumerate(cubes)]
    cpu, wall = watch.cpu_s, watch.wall_s
    held = np.mean([a.sum() + b.sum() for a, b in patterns])
    measures: Row = {"objective": round(float(held), 3), "note": "objective: entries withheld per problem"}
    if len(cubes[0]) <= CHECKED_SIZE:
        looked = list(zip(cubes, patterns, strict=True))[:CHECKED]
        measures |= {"open_by_programs": sum(open_cells(cube, *pattern) > 0 for cube, pattern in looked)}
        measures |= {"programs_asked": len(looked), "sampled": len(looked) < len(cubes)}
    return Outcome(cpu_s=cpu, wall_s=wall, measures=measures)


program(TASK, "tablesafe tabu", "tablesafe", warm=WARM)(partial(protected, by=tabu))
program(TASK, "tablesafe greedy", "tablesafe", warm=WARM)(partial(protected, by=greedy))
program(TASK, "tablesafe optimal", "tablesafe", warm=WARM)(partial(protected, by=exact))
program(TASK, "one integer program, M = 2,000", "naive", warm=WARM)(partial(protected, by=partial(exact, big_m=2000.0)))
program(TASK, "at random", "naive", warm=WARM)(partial(protected, by=at_random))


@program(TASK, "printed", "printed")
def printed(case: Case) -> Outcome:
    """Table 6 of the paper."""
    size = len(case.made.facts["cubes"][0])
    if size not in PRINTED:
        raise NotHere("nothing is printed about this size")
    words = ("greedy", "random", "tabu")
    rows = [
        {"program": f"{word} (printed)", "status": "ok", "objective": average}
        for word, average in zip(words, PRINTED[size], strict=True)
    ]
    return Outcome(rows=tuple(rows))


def open_cells(cube: np.ndarray, held_a: np.ndarray, held_b: np.ndarray) -> int:
    """How many cells that everything published would disclose are still open, by programs over the whole cube.

    Withholding only widens intervals, so no other cells need be looked at. Nothing of tablesafe is used.
    """
    a, b, c = cube.sum(axis=2), cube.sum(axis=0), cube.sum(axis=1)
    upper = np.minimum(a[:, :, None], b[None]).sum(axis=1)
    lower = np.maximum(a[:, :, None] + b[None] - a.sum(axis=0)[None, :, None], 0).sum(axis=1)
    place = np.arange(cube.size).reshape(cube.shape)
    lines = [place[i, j, :] for i, j in np.argwhere(~held_a.T)] + [place[:, j, k] for j, k in np.argwhere(~held_b)]
    right = np.concatenate([a[~held_a.T], b[~held_b]])
    row = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
    left = sparse.csr_array((np.ones(len(row)), (row, np.concatenate(lines))), shape=(len(lines), cube.size))
    count = 0
    for sign, at, need in (
        *((1.0, at, 0.0) for at in np.argwhere(lower > 0)),
        *((-1.0, at, 1.2 * c[tuple(at)]) for at in np.argwhere(upper < 1.2 * c - 1e-9)),
    ):
        cost = np.zeros(cube.size)
        cost[place[at[0], :, at[1]]] = sign
        found = linprog(cost, A_eq=left, b_eq=right, bounds=(0, None), method="highs")
        reached = -np.inf if found.status == 3 else found.fun
        count += bool(reached > (0.0 if sign > 0 else -need) + 1e-6)
    return count
