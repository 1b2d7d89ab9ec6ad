"""Linked views: the experiments of Tables 5 and 6 of Roehrig, Padman, Krishnan & Duncan, and larger ones.

python benchmarks/views.py                                   # sizes 4 to 10, 1,000 problems each; then 20, 50 and 100
python benchmarks/views.py --sizes 4 5 --problems 100 --oracle 100
python benchmarks/views.py --sizes --large 100 --seconds 60

n × n × n cubes by the printed recipe: each cell with probability 0.9 uniform on 0 to 3, else uniform on 500 to 1,000;
a × b and b × c are published, a × c may become known to lie in [0, 1.2 c]; a problem needs at least one upper and three
lower disclosures. Beyond size 10 the recipe yields hardly any such problem (one in 600 at size 10), so in the larger
cubes it fills a 6 × 6 block of every slice, at random codes, and the rest is empty.

Seconds are CPU seconds per problem. The oracle is a linear program over the whole cube for each cell that is open when
everything is published (withholding only widens intervals), written without any code of tablesafe.

At size 4 the printed average of the tabu search (5.58) lies below the proven optimum of problems made by this recipe
(about 6.6), so no safe patterns reach it; from size 5 on, the optimum and our tabu search lie below what is printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from tablesafe.methods.views.greedy import close_all, drop_redundant, withhold_in_order
from tablesafe.methods.views.instance import Hidden, TwoViews, targets_of
from tablesafe.methods.views.operators import cell_maxima, cell_minima
from tablesafe.methods.views.program import suppression_program
from tablesafe.methods.views.state import State, data_of, seed_of, state_of
from tablesafe.methods.views.tabu import tabu_search
from tablesafe.solve.views import solve_mixed

Array = np.ndarray[Any, Any]
PRINTED = {  # Table 6: average suppressions of 1,000 problems: greedy, random, tabu
    4: (11.4, 9.4, 5.58), 5: (13.7, 13.0, 7.49), 6: (14.4, 15.8, 7.37), 7: (13.7, 17.8, 6.99), 8: (11.8, 18.0, 6.16),
    9: (9.9, 18.0, 5.34), 10: (8.26, 16.6, 4.53),
}  # fmt: skip
BLOCK = 6


def recipe(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Cells as printed."""
    small = random.random(shape) < 0.9
    return np.where(small, random.integers(0, 4, shape), random.integers(500, 1001, shape))


def generated(size: int, count: int, seed: int) -> Iterator[Array]:
    """Cubes with enough disclosures; many are drawn at once, for few are taken."""
    random = np.random.default_rng([seed, size])
    batch = max(1, 200_000 // size**3)
    while count > 0:
        cubes = recipe((batch, size, size, size), random)
        a, b, c = cubes.sum(axis=3), cubes.sum(axis=1), cubes.sum(axis=2)
        upper = np.minimum(a[:, :, :, None], b[:, None]).sum(axis=2)
        total = a.sum(axis=1)[:, None, :, None]
        lower = np.maximum(a[:, :, :, None] + b[:, None] - total, 0).sum(axis=2)
        enough = (upper < 1.2 * c - 1e-9).any(axis=(1, 2)) & ((lower > 0).sum(axis=(1, 2)) >= 3)
        for cube in cubes[enough][:count]:
            count -= 1
            yield cube


def blocks(size: int, seed: int) -> Array:
    """A large cube: in every slice a block by the recipe, the rest empty."""
    random = np.random.default_rng([seed, size])
    cube = np.zeros((size, size, size), dtype=np.int64)
    for j in range(size):
        rows, columns = (random.choice(size, BLOCK, replace=False) for _ in range(2))
        cube[np.ix_(rows, [j], columns)] = recipe((BLOCK, 1, BLOCK), random)
    return cube


def stated(cube: Array) -> TwoViews:
    """The problem of a cube: every entry of the two views may be withheld, at the same cost."""
    a, b, c = cube.sum(axis=2).T.astype(float), cube.sum(axis=0).astype(float), cube.sum(axis=1)
    one = np.zeros(len(a), np.int64)
    cells = np.arange(c.size).reshape(1, *c.shape)
    groups, low, up = targets_of(a, b, [Hidden(one, np.zeros(cells.shape), np.round(1.2 * c, 9)[None], cells)])
    free = np.ones(a.shape, np.bool_), np.ones(b.shape, np.bool_)
    none = np.zeros(a.shape, np.bool_), np.zeros(b.shape, np.bool_)
    return TwoViews(a, b, np.ones(a.shape), np.ones(b.shape), *free, *none, groups, low, up)


def size_of(state: State) -> int:
    """How many entries a pattern withholds."""
    return int(state.held_a.sum() + state.held_b.sum())


def heuristics(views: TwoViews, seed: int, steps: int, seconds: float) -> dict[str, tuple[State, float]]:
    """The three heuristics on one problem: patterns and CPU seconds."""
    out: dict[str, tuple[State, float]] = {}
    begin = process_time()
    data = data_of(views)
    state = state_of(data, views.forced_a, views.forced_b)
    never = np.zeros(views.a.shape, np.int64), np.zeros(views.b.shape, np.int64)
    assert close_all(data, state, *never, 0, seed_of(0), 0.0)
    drop_redundant(data, state, np.arange(views.a.size + views.b.size))
    out["greedy"] = state, process_time() - begin
    begin = process_time()
    better = state_of(data, state.held_a, state.held_b)
    tabu_search(data, better, seed=seed_of(seed), steps=steps, seconds=seconds)
    out["tabu"] = better, process_time() - begin
    begin = process_time()
    chance = state_of(data, views.forced_a, views.forced_b)
    random = np.random.default_rng(seed)
    assert withhold_in_order(data, chance, random.permutation(views.a.size + views.b.size))
    drop_redundant(data, chance, random.permutation(views.a.size + views.b.size))
    out["random"] = chance, process_time() - begin
    return out


def exact(views: TwoViews, big_m: float | None) -> tuple[int, Array, Array, float]:
    """The integer program from scratch: how many entries, which, and CPU seconds."""
    begin = process_time()
    pattern = suppression_program(views, big_m)
    answer = solve_mixed(pattern.program, time_limit_s=600)
    seconds = process_time() - begin
    assert answer.status == "optimal"
    assert answer.x is not None
    a, b = pattern.read(answer.x)
    return int(a.sum() + b.sum()), a, b, seconds


def open_cells(cube: Array, held_a: Array, held_b: Array) -> int:
    """The oracle: how many cells that everything published would disclose are still open under a pattern."""
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


def table6(size: int, problems: int, oracle: int, seed: int, steps: int) -> dict[str, object]:
    """One row: averages of all algorithms over generated problems."""
    counts: dict[str, list[int]] = {name: [] for name in ("greedy", "random", "tabu", "optimal")}
    seconds: dict[str, list[float]] = {name: [] for name in (*counts, "M=2000")}
    unsafe, checked = 0, 0
    for number, cube in enumerate(generated(size, problems, seed)):
        views = stated(cube)
        found = heuristics(views, number, steps, 600.0)
        for name, (state, spent) in found.items():
            counts[name].append(size_of(state))
            seconds[name].append(spent)
        best, a, b, spent = exact(views, None)
        counts["optimal"].append(best)
        seconds["optimal"].append(spent)
        other, _, _, spent = exact(views, 2000.0)
        seconds["M=2000"].append(spent)
        assert other == best
        if number < oracle:
            patterns = [(state.held_a, state.held_b) for state, _ in found.values()] + [(a, b)]
            unsafe += sum(open_cells(cube, *pattern) > 0 for pattern in patterns)
            checked += len(patterns)
    row: dict[str, object] = {"size": size, "problems": problems}
    for at, name in enumerate(("greedy", "random", "tabu")):
        row |= {name: round(float(np.mean(counts[name])), 3)}
        if size in PRINTED:
            row |= {f"{name} printed": PRINTED[size][at]}
    row |= {"optimal": round(float(np.mean(counts["optimal"])), 3), "patterns checked": checked, "unsafe": unsafe}
    row |= {f"{name} s": round(float(np.mean(spent)), 4) for name, spent in seconds.items()}
    return row | {"optimal worst s": round(max(seconds["optimal"]), 2)}


def large(size: int, seconds: float, seed: int) -> dict[str, object]:
    """One row: operators, greedy and tabu search on a large cube."""
    cube = blocks(size, seed)
    a, b = cube.sum(axis=2).T.astype(float), cube.sum(axis=0).astype(float)
    begin = process_time()
    cell_minima(a, b), cell_maxima(a, b)
    operators = process_time() - begin
    views = stated(cube)
    found = heuristics(views, 1, 10**9, seconds)
    return {
        "size": size,
        "hidden cells": cube.size,
        "operators s": round(operators, 4),
        "open sides": len(views.low) + len(views.up),
        **{name: size_of(state) for name, (state, _) in found.items()},
        **{f"{name} s": round(spent, 2) for name, (_, spent) in found.items()},
    }


def show(rows: Iterator[dict[str, object]]) -> None:
    """Print each row as JSON as soon as it is there, then all of them as a Markdown table."""
    done = []
    for row in rows:
        done.append(row)
        print(json.dumps(row), flush=True)
    if done:
        columns = list(dict.fromkeys(key for row in done for key in row))
        print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
        for row in done:
            print("| " + " | ".join(str(row.get(column, "–")) for column in columns) + " |")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(PRINTED))
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--oracle", type=int, default=1000, help="problems per size whose patterns the oracle checks")
    parser.add_argument("--steps", type=int, default=600, help="steps of tabu search on the small problems")
    parser.add_argument("--large", type=int, nargs="*", default=[20, 50, 100])
    parser.add_argument("--seconds", type=float, default=30.0, help="for tabu search on the large ones")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    heuristics(stated(blocks(8, 0)), 0, 2, 1.0)  # compile
    show(table6(n, options.problems, options.oracle, options.seed, options.steps) for n in options.sizes)
    show(large(n, options.seconds, options.seed) for n in options.large)


if __name__ == "__main__":
    main()
