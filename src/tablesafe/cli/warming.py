"""Compile before anybody waits for it: small tables go through everything whose loops are compiled.

What is compiled is kept on the disk (see `work.compiled`), so this is needed once on a machine and for a version. Each
piece of work runs in a process of its own, for a compiler uses one core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import as_completed

import numpy as np
import polars as pl

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.machine import cores
from tablesafe.core.problem import Problem
from tablesafe.work.compiled import compiling_at_once
from tablesafe.work.processes import Processes


def warm_up(tell: Callable[[str, int, int], None], workers: int | None = None) -> None:
    """Do every piece of work; `tell` hears what was done, how many pieces are done, and of how many."""
    with Processes(min(len(PIECES), workers or cores())) as pool:
        asked = {pool.submit(_do, name): name for name in PIECES}
        for done, piece in enumerate(as_completed(asked), 1):
            piece.result()
            tell(asked[piece], done, len(PIECES))


def _do(name: str) -> None:
    with compiling_at_once(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PIECES[name]()


def _records(*sizes: int) -> pl.DataFrame:
    """Some records of firms in a table of some size, the same each time."""
    random = np.random.default_rng(1)
    count = 4 * int(np.prod(sizes))
    columns = {f"d{i}": np.array(_codes(i, size))[random.integers(0, size, count)] for i, size in enumerate(sizes)}
    firms, values = random.integers(0, count // 3, count), random.integers(1, 999, count)
    return pl.DataFrame({**columns, "firm": firms, "value": values})


def _codes(dimension: int, size: int) -> list[str]:
    return [f"{dimension}{'abcdefghij'[j]}" for j in range(size)]


def _problem(*sizes: int, tree: bool = False) -> Problem:
    from tablesafe.rules import PPercent, Threshold
    from tablesafe.tabulate import tabulate

    names = [f"d{i}" for i in range(len(sizes))]
    dimensions: dict[str, Hierarchy | None] = dict.fromkeys(names)
    if tree:
        codes = _codes(0, sizes[0])
        half = len(codes) // 2
        pairs = [("Total", "X"), ("Total", "Y"), *(("X", code) for code in codes[:half])]
        dimensions["d0"] = Hierarchy.from_pairs([*pairs, *(("Y", code) for code in codes[half:])])
    table = tabulate(_records(*sizes), dimensions=dimensions, value="value", respondent="firm")
    return Problem(table, rules=[Threshold(n=3), PPercent(p=10)])


def _suppressed(*sizes: int, tree: bool = False) -> None:
    from tablesafe.audit.audit import audit
    from tablesafe.methods import Suppress

    problem = _problem(*sizes, tree=tree)
    audit(problem, Suppress(time_limit_s=2).protect(problem))


def _rounded() -> None:
    from tablesafe.methods import Round
    from tablesafe.rules import Threshold
    from tablesafe.tabulate import tabulate

    counts = tabulate(_records(4, 4), dimensions=["d0", "d1"], respondent="firm")
    Round(base=5).protect(Problem(counts, rules=[Threshold(n=3)]))


def _adjusted() -> None:
    from tablesafe.methods import Adjust

    Adjust(time_limit_s=2).protect(_problem(5, 5))


PIECES: dict[str, Callable[[], None]] = {
    "suppression with hierarchies": lambda: _suppressed(8, 5, tree=True),
    "suppression in three dimensions": lambda: _suppressed(5, 4, 4),
    "suppression of flat tables": lambda: _suppressed(8, 8),
    "rounding": _rounded,
    "adjustment": _adjusted,
}
"""What compiles most comes first."""
