"""Margins of one cube: the cells that no table shows tie the tables together (issue 19, number 1)."""

from __future__ import annotations

import importlib
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import tablesafe as ts
from tablesafe.core.cube import MOST_UNSEEN, tied, unseen_levels
from tablesafe.core.equations import Mask
from tablesafe.core.errors import InvalidOption, InvalidTable

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
GROUPS = {"A0": {"a0", "a1"}, "A1": {"a2", "a3"}}


def issue() -> pl.DataFrame:
    """The records of the issue: (a0, b0, c0) is one firm with 8."""
    cells = [(0, 0, 0, 1, 8), (0, 1, 0, 10, 3), (1, 0, 0, 10, 4), (0, 1, 1, 10, 2), (1, 0, 1, 5, 5), (1, 1, 1, 10, 6)]
    rows = [(f"a{a}", f"b{b}", f"c{c}", value) for a, b, c, firms, value in cells for _ in range(firms)]
    frame = pl.DataFrame(rows, schema=["a", "b", "c", "v"], orient="row")
    return frame.with_row_index("firm")


def made(frame: pl.DataFrame, margins: Any = PAIRS, **options: Any) -> ts.Table:
    names = [name for name in frame.columns if name not in {"v", "firm"}]
    given = {"dimensions": names, "value": "v", "respondent": "firm", "margins": margins, **options}
    return ts.tabulate(frame, **given)


def random_records(random: np.random.Generator, sizes: tuple[int, ...], empty: float) -> pl.DataFrame:
    names = [chr(ord("a") + d) for d in range(len(sizes))]
    rows = [
        [*(f"{name}{at}" for name, at in zip(names, place, strict=True)), int(random.integers(1, 20))]
        for place in product(*map(range, sizes))
        if random.random() >= empty
        for _ in range(int(random.choice([1, 1, 2, 3, 8])))
    ]
    frame = pl.DataFrame(rows, schema=[*names, "v"], orient="row").with_row_index("firm")
    if all(frame[name].n_unique() == size for name, size in zip(names, sizes, strict=True)):
        return frame
    return random_records(random, sizes, empty)  # a dimension with one code is no dimension


class Attacker:
    """Knows the shown cells, that cells not shown are empty, and that nothing is negative; shares no code with ours."""

    def __init__(self, frame: pl.DataFrame, table: ts.Table, margins: Any, *, negative: bool = False) -> None:
        self.least = None if negative else 0
        codes = {name: column.to_list()[: table.seen] for name, column in table.code_columns().items()}
        names = list(codes)
        leaves = {name: sorted(set(frame[name].to_list())) for name in names}
        there = set(zip(*codes.values(), strict=True))
        inner = [
            place
            for place in product(*leaves.values())
            if all(
                tuple(code if name in margin else "Total" for name, code in zip(names, place, strict=True)) in there
                for margin in margins
            )
        ]
        self.value = table.value[: table.seen]
        self.sums = np.array([
            [
                all(
                    codes[name][i] in {"Total", code} or code in GROUPS.get(codes[name][i], ())
                    for name, code in zip(names, place, strict=True)
                )
                for place in inner
            ]
            for i in range(table.seen)
        ]).reshape(table.seen, len(inner)).astype(float)  # fmt: skip

    def interval(self, cell: int, hidden: Mask) -> tuple[float, float]:
        known, weights = ~hidden[: len(self.value)], self.sums[cell]
        bounds = [(self.least, None)] * self.sums.shape[1]
        return self.least_of(weights, known, bounds), -self.least_of(-weights, known, bounds)

    def least_of(self, weights: Any, known: Mask, bounds: Any) -> float:
        """The least that a sum of inner cells can be."""
        for options in ({}, {"presolve": False}):  # presolve does not always tell unbounded from infeasible
            found = linprog(weights, A_eq=self.sums[known], b_eq=self.value[known], bounds=bounds, options=options)
            if found.status in {0, 3}:
                return float(found.fun) if found.status == 0 else -np.inf
        raise AssertionError(found.message)

    def opens(self, problem: ts.Problem, hidden: Mask) -> set[int]:
        """The shown sensitive cells that come too close."""
        levels, out = problem.sensitivity, set()
        for cell in problem.sensitive[problem.sensitive < len(self.value)].tolist():
            low, high = self.interval(cell, hidden)
            value, slack = self.value[cell], 1e-6
            far = low <= value - levels.lower[cell] + slack and high >= value + levels.upper[cell] - slack
            if not far or high - low <= slack:
                out.add(cell)
        return out


# -- the example of the issue ------------------------------------------------------------------------------------------


def test_the_release_that_the_shown_cells_alone_call_safe_is_open() -> None:
    rules = [ts.PPercent(p=20)]
    alone = ts.Problem(made(issue(), zeros=True, cube="ignore"), rules)
    pattern = ts.protect(alone, ts.Suppress()).suppressed
    assert ts.audit(alone, ts.Release.from_suppression(alone, pattern)).safe
    problem = ts.Problem(made(issue(), zeros=True), rules)
    findings = ts.audit(problem, ts.Release.from_suppression(problem, pattern))
    assert not findings.safe
    cell = problem.table.index(a="a0", b="b0")
    assert findings.lower[findings.cells == cell] == 8.0
    assert "≥ (a=a0, b=Total, c=c0) − (a=Total, b=b1, c=c0)" in str(findings)


@pytest.mark.parametrize("algorithm", ["auto", "optimal", "sequential", "modular"])
def test_suppress_makes_it_safe_and_a_certificate_proves_it(algorithm: Any, tmp_path: Path) -> None:
    table = made(issue(), zeros=True)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    release = ts.protect(problem, ts.Suppress(algorithm=algorithm, time_limit_s=5))
    findings = ts.audit(problem, release)
    assert findings.safe
    assert not Attacker(issue(), table, PAIRS).opens(problem, release.suppressed)
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "proof.json")
    ts.verify(tmp_path / "proof.json")


def test_adjustment_sees_the_unseen_cells_and_publishes_none() -> None:
    problem = ts.Problem(made(issue(), zeros=True), [ts.PPercent(p=20)])
    release = ts.protect(problem, ts.Adjust(time_limit_s=5))
    assert release.frame().height == problem.table.seen
    assert ts.audit(problem, release).safe


def test_nothing_unseen_is_shown_or_counted() -> None:
    table = made(issue(), zeros=True)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    release = ts.protect(problem, ts.Suppress(time_limit_s=5))
    assert table.seen == 19
    assert len(table) == 27
    assert table.cells().height == release.frame().height == ts.loss(problem, release).cells == 19
    assert "of 19 cells are withheld" in str(ts.audit(problem, release))
    assert (problem.cost[19:] == 0).all()
    assert problem.withheld[19:].all()
    assert not problem.withheld[:19].any()


# -- an attacker of its own --------------------------------------------------------------------------------------------


def _case(seed: int) -> tuple[pl.DataFrame, Any, dict[str, Any]]:
    random = np.random.default_rng(seed)
    sizes = [(2, 2, 2), (3, 2, 3), (2, 2, 2, 2), (4, 2, 2)][seed % 4]
    frame = random_records(random, sizes, float(random.choice([0.1, 0.4])))
    names = [name for name in frame.columns if name not in {"v", "firm"}]
    margins: Any = list(combinations(names, 2))
    if len(sizes) == 4:
        three = list(combinations(names, 3))
        chosen = [three, [*three[:2], *margins], [margins[i] for i in random.choice(6, 5, replace=False)]]
        margins = chosen[int(random.integers(3))]
    options: dict[str, Any] = {"zeros": bool(random.integers(2)), "margins": margins}
    if sizes == (4, 2, 2):
        pairs = [
            ("Total", "A0"),
            ("Total", "A1"),
            *((group, leaf) for group in GROUPS for leaf in sorted(GROUPS[group])),
        ]
        options["dimensions"] = {"a": ts.Hierarchy.from_pairs(pairs), "b": None, "c": None}
    return frame, margins, options


@pytest.mark.parametrize("seed", range(24))
def test_the_audit_and_an_attacker_over_the_whole_cube_agree(seed: int) -> None:
    frame, margins, options = _case(seed)
    random = np.random.default_rng(1000 + seed)
    table = made(frame, **options)
    problem = ts.Problem(table, [ts.PPercent(p=20)] if seed % 3 else [ts.Threshold(n=2)])
    pattern = problem.sensitivity.mask.copy()
    pattern[: table.seen] |= random.random(table.seen) < 0.35
    release = ts.Release.from_suppression(problem, pattern)
    findings = ts.audit(problem, release, insiders=False, unions=False)
    attacker = Attacker(frame, table, margins)
    found = {int(cell) for cell in findings.cells[~findings.protected] if cell < table.seen}
    assert found == attacker.opens(problem, release.suppressed)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_protected_is_protected_from_that_attacker(seed: int) -> None:
    frame, margins, options = _case(seed)
    table = made(frame, **options)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    release = ts.protect(problem, ts.Suppress(algorithm="sequential", time_limit_s=0.5))
    assert ts.audit(problem, release).safe
    assert not Attacker(frame, table, margins).opens(problem, release.suppressed)


@pytest.mark.parametrize("seed", range(4))
def test_finished_tables_that_are_linked_are_judged_like_margins_of_records(seed: int) -> None:
    frame = random_records(np.random.default_rng(seed), (3, 2, 2), 0.3)
    parts = [ts.tabulate(frame, dimensions=list(pair), value="v", respondent="firm") for pair in PAIRS]
    linked, whole = ts.link(parts), made(frame)
    assert linked.seen == whole.seen
    assert linked.unseen is not None
    assert (linked.integers[linked.seen :] >= 0).all()
    assert not linked.residual().any()
    problem = ts.Problem(linked, [ts.PPercent(p=20)])
    assert (problem.sensitive < linked.seen).all()
    release = ts.protect(problem, ts.Suppress(algorithm="sequential", time_limit_s=0.5))
    assert ts.audit(problem, release, insiders=False).safe
    assert not Attacker(frame, linked, PAIRS).opens(problem, release.suppressed)


ALONE = {"000": [8, 15, 16, 17, 28, 53], "001": [5, 15, 21, 25], "100": [41, 55, 55, 59], "101": [33],
         "110": [16, 18, 24, 42], "111": [4, 5, 13, 37]}  # fmt: skip
"""A cube in which no margin is sensitive, and one firm alone: AC(a1,c1) − BC(b1,c1), for there is no (a0,b1)."""


def test_an_unseen_cell_that_anybody_can_work_out_is_not_called_safe_where_nobody_knows_whose_it_is() -> None:
    rows = [(*(name + code for name, code in zip("abc", codes, strict=True)), value)
            for codes, some in ALONE.items() for value in some]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["a", "b", "c", "v"], orient="row").with_row_index("firm")
    rules = [ts.Threshold(n=2)]
    records = ts.Problem(ts.tabulate(frame, dimensions=list("abc"), value="v", respondent="firm", margins=PAIRS), rules)
    assert [records.table.describe(cell) for cell in records.sensitive] == ["(a=a1, b=b0, c=c1)"]
    parts = [ts.tabulate(frame, dimensions=list(pair), value="v") for pair in PAIRS]
    problem = ts.Problem(ts.link(parts), rules)
    assert not len(problem.sensitive)
    release = ts.protect(problem, ts.PublishAll())
    findings = ts.audit(problem, release)
    assert findings.worked_out == 2  # (a1,b0,c1), and with it (a1,b0,c0)
    assert findings.verdict.word == "NOT PROVED"
    assert any("some can be worked out" in line for line in findings.verdict.lines)
    accepted = ts.audit(problem, release, possibly="accept")
    assert accepted.safe
    assert any("accepted" in line for line in accepted.verdict.lines)
    nothing = ts.Release.from_suppression(problem, np.ones(problem.table.seen, np.bool_))
    assert ts.audit(problem, nothing).worked_out == 0
    assert ts.audit(problem, nothing).safe


@pytest.mark.parametrize("insiders", [False, True])
def test_very_many_sensitive_unseen_cells_are_safe_exactly_where_they_would_be_judged_so(
    monkeypatch: pytest.MonkeyPatch, insiders: bool
) -> None:
    """One firm knows all of a margin but what one other has: bounds, with nothing withheld, tell nothing of that."""
    rules, told = [ts.PPercent(p=20)], []
    module = importlib.import_module("tablesafe.core.problem")
    for seed in range(8):
        random = np.random.default_rng(seed)
        table = made(random_records(random, (3, 3, 3), 0.4), largest=20)
        judged = ts.Problem(table, rules)
        with monkeypatch.context() as few:
            few.setattr(module, "MOST_JUDGED", 0)
            problem = ts.Problem(table, rules)
        withheld = random.random(problem.table.seen) < 1 - 0.2 * (seed % 2)
        release, same = (ts.Release.from_suppression(each, withheld) for each in (problem, judged))
        findings = ts.audit(problem, release, insiders=insiders)
        assert findings.safe == ts.audit(judged, same, insiders=insiders).safe
        if problem.unjudged:
            accepted = ts.audit(problem, release, insiders=insiders, possibly="accept")
            told.append((findings.verdict.word, accepted.verdict.word))
            assert findings.unproved <= problem.unjudged
            assert accepted.unproved == problem.unjudged
            assert not accepted.safe or any("accepted" in line for line in accepted.verdict.lines)
    assert (("NOT PROVED", "SAFE") in told) == insiders  # bounds alone would not do
    assert ("SAFE", "SAFE") in told


def test_very_many_sensitive_unseen_cells_are_not_proved_where_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("tablesafe.core.problem"), "MOST_JUDGED", 0)
    problem = ts.Problem(
        made(random_records(np.random.default_rng(0), (3, 3, 3), 0.4), largest=20), [ts.PPercent(p=20)]
    )
    assert problem.unjudged
    nothing = ts.Release.from_suppression(problem, np.ones(problem.table.seen, np.bool_))
    findings = ts.audit(problem, nothing, time_limit_s=0)
    assert findings.unproved == problem.unjudged
    assert findings.verdict.word == "NOT PROVED"


def test_what_respondents_know_of_unseen_cells_is_not_proved_of_linked_tables() -> None:
    """Records tell that a firm which knows its part of the cube derives a cell; linked tables cannot tell."""
    for seed in (7, 8, 11, 17):  # of the first eighteen those that linked tables alone would call safe
        random = np.random.default_rng(seed)
        frame = random_records(random, (2, 2, 2), 0.2)
        frame = frame.with_columns(firm=pl.Series(random.integers(0, 6, frame.height)))
        rules = [ts.PPercent(p=20)]
        whole = ts.Problem(made(frame, zeros=True, largest=20), rules)
        parts = [
            ts.tabulate(frame, dimensions=list(pair), value="v", respondent="firm", zeros=True, largest=20)
            for pair in PAIRS
        ]
        linked = ts.Problem(ts.link(parts), rules)
        assert linked.table.seen == whole.table.seen
        hidden = whole.sensitivity.mask[: whole.table.seen] | (random.random(whole.table.seen) < 0.6)
        pattern = np.concatenate([hidden, np.ones(len(whole.table) - whole.table.seen, np.bool_)])
        codes = [list(zip(*p.table.code_columns().values(), strict=True)) for p in (whole, linked)]
        at = [codes[0].index(code) for code in codes[1][: linked.table.seen]]
        same = np.concatenate([hidden[at], np.ones(len(linked.table) - linked.table.seen, np.bool_)])
        release = ts.Release.from_suppression(linked, same)
        accepted = ts.audit(linked, release, unions=False, possibly="accept")
        if accepted.safe and len(linked.sensitive):
            truly = ts.audit(whole, ts.Release.from_suppression(whole, pattern), unions=False)
            findings = ts.audit(linked, release, unions=False)
            assert findings.verdict.word == "NOT PROVED"
            assert any("their own part" in line for line in findings.verdict.lines)
            assert any("accepted" in line for line in accepted.verdict.lines)
            if any(one.cell < whole.table.seen for one in truly.insiders.found if one.certain):  # type: ignore[union-attr]
                return
    pytest.fail("no firm knows more than linked tables tell: nothing is tried")


@pytest.mark.parametrize("seed", range(6))
def test_a_cube_too_large_for_one_program_is_never_called_safe_wrongly(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubes = import_module("tablesafe.audit.hypercubes")
    monkeypatch.setattr(cubes, "MOST_FREE", 3)
    monkeypatch.setattr(cubes, "EACH", 3)
    monkeypatch.setattr(import_module("tablesafe.audit.system"), "MOST_FREE", 3)
    frame, margins, options = _case(seed)
    random = np.random.default_rng(2000 + seed)
    table = made(frame, **options)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    attacker = Attacker(frame, table, margins)
    for share in (0.3, 0.8):
        pattern = problem.sensitivity.mask.copy()
        pattern[: table.seen] |= random.random(table.seen) < share
        release = ts.Release.from_suppression(problem, pattern)
        findings = ts.audit(problem, release, insiders=False, unions=False)
        found = {int(cell) for cell in findings.cells[~findings.protected] if cell < table.seen}
        assert attacker.opens(problem, release.suppressed) <= found


# -- respondents -------------------------------------------------------------------------------------------------------


def _hidden_as_asked(
    contributions: dict[int, int], firm: int, low: float, high: float, levels: tuple[float, float], *,
    negative: bool = False,
) -> bool:  # fmt: skip
    """Whether an interval hides a cell from one firm as far as the levels ask (see the text of `insiders`)."""
    value = sum(contributions.values())
    ranked = sorted(((who, abs(amount)) for who, amount in contributions.items()), key=lambda each: (-each[1], each[0]))
    total, own = sum(amount for _, amount in ranked), abs(contributions.get(firm, 0))
    lower, upper = levels
    if ranked[0][0] == firm:
        second = ranked[1][1]
        rest = total - ranked[0][1] - second
        hidden = total - own - second
        lower, upper = (
            min(level, max(0.0, (level + rest) / ranked[0][1] * second - hidden)) for level in (lower, upper)
        )
    lower = lower if negative else min(lower, value - own)
    return low <= value - lower + 1e-6 and high >= value + upper - 1e-6


@pytest.mark.parametrize(("seed", "negative"), [*((seed, False) for seed in range(6)), *((s, True) for s in range(12))])
def test_respondents_who_know_the_cube_are_found(seed: int, negative: bool) -> None:
    """A firm that knows its own part of every inner cell, by a program of its own over the whole cube.

    Where contributions may be negative, its part is no bound; but a cell in which it is alone is known to it.
    """
    random = np.random.default_rng(3000 + seed)
    frame = random_records(random, (2, 2, 2), 0.2)
    frame = frame.with_columns(firm=pl.Series(random.integers(0, max(4, frame.height // 2), frame.height)))
    if negative:
        frame = frame.with_columns(v=pl.col("v") * pl.Series(random.choice([1, 1, 1, -1], frame.height)))
    negative = bool((frame["v"] < 0).any())
    table = made(frame, zeros=True, largest=20)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    pattern = problem.sensitivity.mask.copy()
    pattern[: table.seen] |= random.random(table.seen) < 0.6
    release = ts.Release.from_suppression(problem, pattern)
    findings = ts.audit(problem, release, unions=False)
    attacker, hidden = Attacker(frame, table, PAIRS, negative=negative), release.suppressed[: table.seen]
    open_to_all = attacker.opens(problem, release.suppressed)
    inner = list(product(*(sorted(set(frame[name].to_list())) for name in "abc")))
    who = [
        dict(
            frame.filter((pl.col("a") == a) & (pl.col("b") == b) & (pl.col("c") == c))
            .group_by("firm").agg(pl.col("v").sum()).iter_rows()
        )
        for a, b, c in inner
    ]  # fmt: skip
    parts: list[dict[int, int]] = [{} for _ in range(table.seen)]
    for cell, at in np.argwhere(attacker.sums).tolist():
        for firm, amount in who[at].items():
            parts[cell][firm] = parts[cell].get(firm, 0) + amount
    truly = set()
    for firm in sorted({each for part in who for each in part}):
        known = ~hidden | np.array([set(part) == {firm} for part in parts])
        bounds: list[tuple[float | None, float | None]] = [
            (own, own) if set(part) == {firm} else (None if negative else own, None)
            for part in who
            for own in [part.get(firm, 0)]
        ]
        for cell in problem.sensitive[problem.sensitive < table.seen].tolist():
            if cell in open_to_all or not hidden[cell] or set(parts[cell]) <= {firm}:
                continue
            ends = [sign * attacker.least_of(sign * attacker.sums[cell], known, bounds) for sign in (1, -1)]
            levels = float(problem.sensitivity.lower[cell]), float(problem.sensitivity.upper[cell])
            if not _hidden_as_asked(parts[cell], firm, ends[0], ends[1], levels, negative=negative):
                truly.add(cell)
    assert findings.insiders is not None
    assert truly <= {one.cell for one in findings.insiders.found}
    assert {one.cell for one in findings.insiders.found if one.certain and one.cell < table.seen} <= truly


# -- which cells matter ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "unseen"),
    [
        ([(1, 1, 0), (0, 1, 1)], []),
        ([(1, 1, 0), (1, 0, 1), (0, 1, 1)], [(1, 1, 1)]),
        ([(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1)], []),
        ([(2, 2, 1), (2, 1, 2), (1, 2, 2)], [(2, 2, 2)]),
        ([(2, 1, 0), (0, 2, 1), (1, 0, 2)], [(1, 1, 1)]),
        ([(2, 1), (1, 2)], []),
    ],
)  # fmt: skip
def test_only_what_is_no_tree_needs_unseen_cells(tables: Any, unseen: Any) -> None:
    assert unseen_levels(tables) == unseen


def test_a_ring_of_four_tables_needs_two_triangles_and_not_the_whole_cube() -> None:
    ring = [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)]
    assert sorted(map(sum, unseen_levels(ring))) == [3, 3]


def test_a_ring_of_four_tables_is_judged_as_the_whole_cube_would_be() -> None:
    random = np.random.default_rng(5)
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    for _ in range(6):
        frame = random_records(random, (2, 2, 2, 2), 0.4)
        table = made(frame, ring, zeros=True)
        problem = ts.Problem(table, [ts.PPercent(p=30)])
        pattern = problem.sensitivity.mask.copy()
        pattern[: table.seen] |= random.random(table.seen) < 0.4
        findings = ts.audit(problem, ts.Release.from_suppression(problem, pattern), insiders=False, unions=False)
        found = {int(cell) for cell in findings.cells[~findings.protected] if cell < table.seen}
        assert found == Attacker(frame, table, ring).opens(problem, pattern | problem.withheld)


def test_one_table_and_its_totals_need_nothing() -> None:
    assert made(issue(), None).unseen is None
    assert made(issue(), [("a", "b", "c"), ("a", "b")]).unseen is None
    assert made(issue(), [("a", "b"), ("b", "c")]).unseen is None


def test_unseen_cells_that_may_be_negative_have_no_bound() -> None:
    """They matter to who is alone in one, and to all where combinations are empty; nobody knows them to be positive."""
    frame = issue().with_columns(pl.when(pl.col("firm") == 3).then(-200).otherwise(pl.col("v")).alias("v"))
    table = made(frame)
    assert table.unseen is not None
    assert table.may_be_negative.all()
    assert np.isneginf(ts.Problem(table, [ts.PPercent(p=20)]).lower[table.unseen]).all()
    parts = [ts.tabulate(frame, dimensions=list(pair), value="v", respondent="firm") for pair in PAIRS]
    linked = ts.link(parts)
    assert linked.unseen is not None
    assert linked.may_be_negative.all()
    assert not linked.residual().any()


# -- what was not looked at is said ------------------------------------------------------------------------------------


def test_too_large_is_not_proved_and_never_safe() -> None:
    table = tied(made(issue(), cube="ignore"), limit=3)
    problem = ts.Problem(table, [ts.PPercent(p=20)])
    release = ts.protect(ts.Problem(made(issue(), cube="ignore"), [ts.PPercent(p=20)]), ts.Suppress(time_limit_s=5))
    findings = ts.audit(problem, ts.Release.from_suppression(problem, release.suppressed))
    assert not findings.safe
    assert not findings.open
    assert str(findings).startswith("NOT PROVED")
    assert "a by b" in str(findings)
    assert "too large" in str(findings)
    assert MOST_UNSEEN >= 1_000_000


def test_margins_in_a_frame_of_cells_are_not_proved_until_they_are_linked() -> None:
    """Finished cells of three margins without the cube: nobody tied them, so nobody may call them safe."""
    shown = made(issue(), zeros=True, cube="ignore")
    table = ts.Table.from_cells(shown.cells().drop("count"), dimensions=["a", "b", "c"], value="v")
    levels = ts.Problem(shown, [ts.PPercent(p=20)]).sensitivity
    problem = ts.Problem(table, sensitivity=levels)
    pattern = ts.protect(problem, ts.Suppress(time_limit_s=5)).suppressed
    findings = ts.audit(problem, ts.Release.from_suppression(problem, pattern))
    assert not findings.safe
    assert findings.verdict.word == "NOT PROVED"
    assert any("ts.link([table])" in line for line in findings.verdict.lines)
    assert findings.certificate is not None
    assert any("ts.link" in each for each in findings.certificate.others)
    assert ts.link([table]).unseen is not None
    full = ts.tabulate(issue(), dimensions=["a", "b", "c"], value="v", respondent="firm")
    assert not ts.audit(
        ts.Problem(full), ts.Release.from_suppression(ts.Problem(full), np.zeros(len(full), bool))
    ).apart


def test_ignoring_the_cube_is_told() -> None:
    problem = ts.Problem(made(issue(), zeros=True, cube="ignore"), [ts.PPercent(p=20)])
    findings = ts.audit(problem, ts.protect(problem, ts.Suppress(time_limit_s=5)))
    assert findings.safe
    assert any('cube = "ignore"' in line for line in findings.verdict.lines)
    assert 'cube = "ignore"' in str(findings)


def test_tables_that_no_records_can_have_are_refused() -> None:
    def table(one: str, two: str, values: list[int]) -> ts.Table:
        frame = pl.DataFrame(
            {one: [f"{one}0", f"{one}0", f"{one}1", f"{one}1"], two: [f"{two}0", f"{two}1"] * 2, "v": values}
        )
        return ts.Table.from_cells(frame, dimensions=[one, two], value="v", missing_totals="compute")

    same, crossed = [1, 0, 0, 1], [0, 1, 1, 0]
    with pytest.raises(InvalidTable, match=r"contradict each other|say that there is nothing|leave no place"):
        ts.link([table("a", "b", same), table("b", "c", same), table("a", "c", crossed)])
    assert ts.link([table("a", "b", same), table("b", "c", same), table("a", "c", same)]).unseen is not None


def test_a_wrong_word_for_the_cube_is_refused() -> None:
    with pytest.raises(InvalidOption, match="'tie' or 'ignore'"):
        made(issue(), cube="both")


def test_a_job_looks_at_the_cube_unless_told_otherwise(tmp_path: Path) -> None:
    issue().write_csv(tmp_path / "firms.csv")
    text = """
[source]
file = "firms.csv"
respondent = "firm"
zeros = true
[dimensions.a]
[dimensions.b]
[dimensions.c]
[response]
value = ["v"]
[[tables]]
dimensions = ["a", "b"]
[[tables]]
dimensions = ["a", "c"]
[[tables]]
dimensions = ["b", "c"]
[[rules]]
rule = "p_percent"
p = 20
[problem]
cube = "CUBE"
[output]
release = ["public/table.csv"]
"""
    for cube, unseen in (("tie", 8), ("ignore", 0)):
        (tmp_path / "job.toml").write_text(text.replace("CUBE", cube), encoding="utf-8")
        result = ts.run(tmp_path / "job.toml")
        assert len(result.problem.table) - result.problem.table.seen == unseen
        assert pl.read_csv(tmp_path / "public/table.csv").height == 19
        assert ("not examined together" in str(result.findings).lower()) == (cube == "ignore")
