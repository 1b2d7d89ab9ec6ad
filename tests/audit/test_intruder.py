"""Whenever a release is called safe, an intruder who has all the records finds nothing that the rules do not allow.

Small tables, decided by linear programs of the intruder's own: waivers, holdings and coalitions; published intervals
and adjusted values; several responses; redesigned tables; counts that are known to be whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from math import inf
from typing import Any

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from oracle.intruder import TOTAL, Cell, Intruder, Rule, Shares, crossed
from seeds import fresh
from tablesafe.methods.redesign.collapse import take

KNOWN: dict[str, tuple[int, ...]] = {
    "coalitions": (0, 1),
    "intervals": (0, 3),
    "adjusted": (0, 2),
    "responses": (0, 1),
    "redesigned": (1, 2),
    "counts": (2, 3),
}
"""Seeds of releases that are called safe although something in them is sensitive: there the intruder has work to do."""
REGIONS = [("Total", "A"), ("Total", "B"), ("A", "a0"), ("A", "a1"), ("B", "a2"), ("B", "a3")]

Row = tuple[Cell, str, float]
Case = tuple[ts.Problem, ts.Release, Intruder, Rule, int]
"""What is audited and attacked: the last is how many respondents put together what they know."""


def firms(random: np.random.Generator, shape: tuple[int, int], most: int = 4) -> list[Row]:
    """Records of a few firms, some of them large, in a table of which some cells have hardly any."""
    rows = []
    for a, b in product(range(shape[0]), range(shape[1])):
        for _ in range(int(random.integers(0, most + 1))):
            amount = random.integers(1, 40) if random.random() < 0.7 else random.integers(40, 400)
            rows.append(((f"a{a}", f"b{b}"), f"f{random.integers(0, 8)}", float(amount)))
    return rows


def frame_of(rows: list[Row], holding: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"a": codes[0], "b": codes[1], "firm": who, "holding": holding[who], "value": v} for codes, who, v in rows]
    )


def shown_in(release: ts.Release) -> dict[Cell, tuple[float, float]]:
    """What the published file says, read as anybody reads it."""
    out: dict[Cell, tuple[float, float]] = {}
    for row in release.frame().iter_rows(named=True):
        codes, value = tuple(row[name] for name in release.table.dimensions), row[release.heading]
        if value is not None:
            out[codes] = (float(value), float(value))
        elif row.get("from") is not None or row.get("to") is not None:
            low, high = row["from"], row["to"]
            out[codes] = (-inf if low is None else float(low), inf if high is None else float(high))
    return out


def pattern(random: np.random.Generator, problem: ts.Problem, coalition: int) -> ts.Release:
    """A pattern of ours, or what is sensitive and more at random, which the audit alone has to judge."""
    if random.random() < 0.3:
        run = ts.Run(attackers=ts.Attackers(coalition=coalition))
        return ts.protect(problem, ts.Suppress(time_limit_s=3), run)
    more = random.random(len(problem.table)) < random.choice([0.2, 0.5, 0.7])
    return ts.Release.from_suppression(problem, problem.sensitivity.mask | (more & ~problem.frozen))


def p_and_n(random: np.random.Generator) -> tuple[float, int]:
    return float(random.choice([10, 20, 50])), int(random.choice([0, 3]))


def there(table: ts.Table, parts: dict[Cell, frozenset[int]]) -> dict[Cell, frozenset[int]]:
    codes = set(zip(*(column.to_list() for column in table.code_columns().values()), strict=True))
    return {cell: some for cell, some in parts.items() if cell in codes}


def coalitions(random: np.random.Generator) -> Case:
    """Waivers of all kinds, holdings, short lists, and coalitions of up to three."""
    rows = firms(random, (int(random.integers(2, 4)), int(random.integers(2, 4))))
    held = random.random() < 0.5
    holding = {f"f{i}": f"h{random.integers(0, 5)}" if held else f"f{i}" for i in range(8)}
    table = ts.tabulate(
        frame_of(rows, holding), dimensions=["a", "b"], value="value", respondent="firm",
        holding="holding" if held else None, largest=int(random.choice([2, 3, 9])),
    )  # fmt: skip
    names = tuple(sorted({holding[who] for _, who, _ in rows}))
    agreed = tuple(name for name in names if random.random() < 0.3)
    p, n = p_and_n(random)
    weighing, counting = ts.PPercent(p=p), ts.Threshold(n=3, on="holdings" if held else "respondents")
    both = n > 0 and random.random() < 0.5
    rules: list[Any] = [ts.AnyOf(rules=(weighing, counting)) if both else weighing]
    rules = [ts.Waiver(of=rule, respondents=agreed) if agreed else rule for rule in rules]
    if n and not both:
        rules.append(counting)
    problem, coalition = ts.Problem(table, rules), int(random.choice([1, 2, 3]))
    rule = Rule(p, n, frozenset(agreed), frozenset(agreed if both else ()))
    release = pattern(random, problem, coalition)
    parts, shares = crossed([(codes, holding[who], amount) for codes, who, amount in rows], [{}, {}])
    return problem, release, Intruder(there(table, parts), shares, shown_in(release)), rule, coalition


def simple(random: np.random.Generator) -> tuple[list[Row], ts.Problem, Rule]:
    rows = firms(random, (int(random.integers(2, 4)), 3))
    holding = {f"f{i}": f"f{i}" for i in range(8)}
    table = ts.tabulate(
        frame_of(rows, holding), dimensions=["a", "b"], value="value", respondent="firm",
        largest=int(random.choice([3, 9])),
    )  # fmt: skip
    p, n = p_and_n(random)
    return rows, ts.Problem(table, [ts.PPercent(p=p), *([ts.Threshold(n=n)] if n else [])]), Rule(p, n)


def intervals(random: np.random.Generator) -> Case:
    """Intervals in the place of values, of all kinds, of patterns of ours or at random."""
    rows, problem, rule = simple(random)
    coalition, kind = int(random.choice([1, 2])), str(random.choice(["exact", "grid", "asymmetric"]))
    options: dict[str, Any] = {"grid": 10.0} if kind == "grid" else {"seed": 7} if kind == "asymmetric" else {}
    mask = pattern(random, problem, coalition).suppressed
    release = ts.protect(problem, ts.PublishIntervals(kind=kind, pattern=mask, **options))  # type: ignore[arg-type]
    parts, shares = crossed(rows, [{}, {}])
    return problem, release, Intruder(there(problem.table, parts), shares, shown_in(release)), rule, coalition


def adjusted(random: np.random.Generator) -> Case:
    """Adjusted values, with what is announced, and totals that keep theirs."""
    rows, problem, rule = simple(random)
    announced = None if random.random() < 0.5 else float(random.choice([50, 100]))
    fixed = str(random.choice(["none", "top", "totals"]))
    release = ts.protect(problem, ts.Adjust(time_limit_s=2, announce_percent=announced, fixed=fixed))  # type: ignore[arg-type]
    codes = zip(*(column.to_list() for column in problem.table.code_columns().values()), strict=True)
    ends = zip(release.lower.tolist(), release.upper.tolist(), strict=True)
    parts, shares = crossed(rows, [{}, {}])
    shown = dict(zip(codes, ends, strict=True))
    return problem, release, Intruder(there(problem.table, parts), shares, shown), rule, int(random.choice([1, 2]))


def responses(random: np.random.Generator) -> Case:
    """Two responses and their sum, with one pattern for all or each with its own."""
    one, other = (firms(random, (2, 2)) for _ in range(2))
    rows = [((*codes, "x"), who, amount) for codes, who, amount in one]
    rows += [((*codes, "y"), who, amount) for codes, who, amount in other]
    frame = pl.DataFrame(
        [{"a": codes[0], "b": codes[1], "firm": who, "x": v * (codes[2] == "x"), "y": v * (codes[2] == "y"), "z": v}
         for codes, who, v in rows]
    )  # fmt: skip
    rows += [((*codes[:2], "y" if codes[2] == "x" else "x"), who, 0.0) for codes, who, _ in rows]
    tables = [
        ts.tabulate(frame, dimensions=["a", "b"], value=name, respondent="firm", largest=9) for name in ("x", "y", "z")
    ]
    p, n = p_and_n(random)
    problem = ts.Problem(
        ts.link(tables, equations="z = x + y"), [ts.PPercent(p=p), *([ts.Threshold(n=n)] if n else [])]
    )
    coalition = int(random.choice([1, 2]))
    if random.random() < 0.5:
        release = ts.protect(problem, ts.Suppress(time_limit_s=3, same_pattern=True))
    else:
        release = pattern(random, problem, coalition)
    parts, shares = crossed(rows, [{}, {}, {}])
    named = {(a, b, "z" if c == TOTAL else c): some for (a, b, c), some in parts.items()}
    return problem, release, Intruder(there(problem.table, named), shares, shown_in(release)), Rule(p, n), coalition


def redesigned(random: np.random.Generator) -> Case:
    """Codes joined and levels dropped, with the records behind the table; the whole result attacked."""
    rows = firms(random, (4, 2), most=3)
    holding = {f"f{i}": f"f{i}" for i in range(8)}
    dimensions = {"a": ts.Hierarchy.from_pairs(REGIONS), "b": None}
    table = ts.tabulate(
        frame_of(rows, holding), dimensions=dimensions, value="value", respondent="firm",
        largest=int(random.choice([3, 9])),
    )  # fmt: skip
    p, n = p_and_n(random)
    problem = ts.Problem(table, [ts.PPercent(p=p), *([ts.Threshold(n=n)] if n else [])])
    for step in ts.redesign(problem, steps=int(random.integers(1, 3))).steps:
        problem = take(problem, step).problem
    coalition = int(random.choice([1, 2]))
    release = pattern(random, problem, coalition)
    trees = list(problem.table.dimensions.values())
    above = [{part: sum_.total for sum_ in tree.as_equations() for part in sum_.parts} for tree in trees]
    now = [
        (tuple(tree.codes[tree.position(code)] for tree, code in zip(trees, codes, strict=True)), who, amount)
        for codes, who, amount in rows
    ]
    parts, shares = crossed(now, above)
    return problem, release, Intruder(there(problem.table, parts), shares, shown_in(release)), Rule(p, n), coalition


def counts(random: np.random.Generator) -> Case:
    """People counted already, with empty combinations shown or left out: values are known to be whole."""
    inner = random.choice([0, 1, 1, 2, 3, 5], size=(int(random.integers(2, 4)), int(random.integers(2, 4))))
    zeros = bool(random.random() < 0.5)
    rows = [{"a": f"a{i}", "b": f"b{j}", "n": int(inner[i, j])} for i, j in np.ndindex(*inner.shape)]
    table = ts.tabulate(pl.DataFrame(rows), dimensions=["a", "b"], frequency="n", zeros=zeros)
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    ours = random.random() < 0.5
    hidden = problem.sensitivity.mask | ((random.random(len(table)) < 0.5) & (table.value > 0))
    release = ts.protect(problem, ts.Suppress(time_limit_s=3)) if ours else ts.Release.from_suppression(problem, hidden)
    shares: list[Shares] = [
        {f"{i} {j}": float(inner[i, j])} if inner[i, j] else {} for i, j in np.ndindex(*inner.shape)
    ]
    parts: dict[Cell, set[int]] = {}
    for at, row in enumerate(rows):
        for cell in product((str(row["a"]), TOTAL), (str(row["b"]), TOTAL)):
            parts.setdefault(cell, set()).add(at)
    whole = {cell: frozenset(some) for cell, some in parts.items()}
    in_file = there(table, whole)
    shown = {cell: (0.0, 0.0) for cell in whole if cell not in in_file} | shown_in(release)
    told = ours or not zeros or bool((table.value == 0).any())
    known = {cell: (1.0 if told else 0.0, inf) for cell in in_file if cell not in shown}
    return problem, release, Intruder(whole, shares, shown, known=known, whole=True), Rule(n=3), 0


def too_small(intruder: Intruder) -> list[str]:
    """Counts below three that are known exactly."""
    found = []
    for cell, has in intruder.has.items():
        if 0 < sum(has.values()) < 3:
            low, high = intruder.interval(cell)
            if high - low < 0.5:
                found.append(f"{cell} is {low:g}")
    return found


SURFACES: dict[str, Callable[[np.random.Generator], Case]] = {
    each.__name__: each for each in (coalitions, intervals, adjusted, responses, redesigned, counts)
}


def called_safe(surface: str, seed: int) -> bool:
    """Whether the release of a seed has something sensitive and is called safe; fails if the intruder knows better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem, release, intruder, rule, coalition = SURFACES[surface](np.random.default_rng(seed))
            findings = ts.audit(problem, release, coalition=max(coalition, 1))
        except ts.TablesafeError:
            return False  # nothing to tabulate, or nothing that protects
    if str(findings.verdict.word) != "SAFE" or not len(problem.sensitive):
        return False
    found = too_small(intruder) if surface == "counts" else list(intruder.objections(rule, coalition, sums=2))
    assert not found, f"{surface}, seed {seed}, coalitions of {coalition}: {found[:3]}"
    return True


@pytest.mark.parametrize("surface", SURFACES)
def test_the_intruder_has_releases_to_object_to(surface: str) -> None:
    assert all(called_safe(surface, seed) for seed in KNOWN[surface])


@pytest.mark.parametrize(
    ("surface", "seed"), [(surface, seed) for surface in SURFACES for seed in fresh(2, f"intruder, {surface}")]
)
def test_what_is_called_safe_withstands_an_intruder_with_all_records(surface: str, seed: int) -> None:
    called_safe(surface, seed)
