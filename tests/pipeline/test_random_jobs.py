"""Whole jobs with options at random over messy records: what is written as safe withstands an intruder who has all.

It reads the published file, and knows the codes of the table as everybody does; see `oracle.intruder`.
"""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts
from oracle.intruder import Cell, Intruder, Rule, Shares
from seeds import fresh

KNOWN = (0, 1, 2)
"""Seeds of jobs whose releases are called safe, and have something sensitive."""
REGIONS = [("Total", "A"), ("Total", "B"), ("A", "a0"), ("A", "a1"), ("B", "a2"), ("B", "a3"), ("B", "a4")]

Row = tuple[Cell, str, int]


@dataclass(frozen=True)
class Made:
    """A job, the records behind it by who they count for, its rule, and how many respondents join."""

    job: Path
    rows: list[Row]
    rule: Rule
    coalition: int
    adjusts: bool


def made(seed: int, folder: Path) -> Made:
    """Records with few firms in a cell, of holdings or not, some without a code; and a job on them."""
    random = np.random.default_rng(seed)
    chance = random.random
    rows: list[Row] = []
    for a, b in product(range(5), range(3)):
        for _ in range(int(random.choice([0, 0, 1, 2, 3, 4]))):
            amount = random.integers(0, 40) if chance() < 0.7 else random.integers(40, 400)
            rows.append(((f"a{a}", f"b{b}"), f"f{random.integers(0, 9)}", int(amount)))
    held, gaps = chance() < 0.3, chance() < 0.3
    holding = {f"f{i}": f"h{random.integers(0, 6)}" if held else f"f{i}" for i in range(9)}
    lines = [f"{codes[0]},{codes[1]},{who},{holding[who]},{amount}" for codes, who, amount in rows]
    lines += ["a1,,f1,h9,7"] if gaps else []
    (folder / "records.csv").write_text("a,b,firm,holding,value\n" + "".join(f"{line}\n" for line in lines))
    (folder / "regions.csv").write_text("parent,child\n" + "".join(f"{one},{other}\n" for one, other in REGIONS))
    p, n, coalition = float(random.choice([10, 20, 50])), int(random.choice([0, 3])), int(random.choice([1, 1, 2, 3]))
    agreed = tuple(name for name in sorted({holding[who] for _, who, _ in rows}) if chance() < 0.2)
    method = str(random.choice(["suppress", "suppress", "intervals", "adjust"]))
    told = ["[source]", 'file = "records.csv"', 'respondent = "firm"', f"largest = {random.choice([3, 6])}"]
    told += ['holding = "holding"'] if held else []
    told += ["zeros = true"] if chance() < 0.3 else []
    told += ["[dimensions.a]", 'hierarchy = "regions.csv"', *(["level = 1"] if chance() < 0.2 else [])]
    told += ["[dimensions.b]", *(['missing = "drop"'] if gaps else []), "[response]", 'value = "value"']
    names = ", ".join(f'"{name}"' for name in agreed)
    told += ["[[rules]]", 'rule = "waiver"', f"respondents = [{names}]", "[rules.of]"] if agreed else ["[[rules]]"]
    told += ['rule = "p_percent"', f"p = {p}"]
    if n:
        told += ["[[rules]]", 'rule = "threshold"', f"n = {n}", *(['on = "holdings"'] if held else [])]
    told += ["[method]", f'name = "{method}"']
    if method == "suppress":
        told += ["time_limit_s = 3", f'unprotectable = "{random.choice(["merge", "withhold totals"])}"']
        told += ["zeros = true"] if chance() < 0.3 else []
    elif method == "adjust":
        told += ["time_limit_s = 2", *(["announce_percent = 100.0"] if chance() < 0.5 else [])]
    told += ["[audit]", f"coalition = {coalition}", "[attack]", "attacks = []"]
    told += ["[output]", 'release = ["public/release.csv"]', "pictures = false"]
    (folder / "job.toml").write_text("".join(f"{line}\n" for line in told))
    who = [(codes, holding[firm], amount) for codes, firm, amount in rows]
    return Made(folder / "job.toml", who, Rule(p, n, frozenset(agreed)), coalition, method == "adjust")


def intruder_of(given: Made, table: ts.Table, release: ts.Release) -> Intruder:
    """The records in the codes of the table as it became, and the published file."""
    trees = list(table.dimensions.values())
    above = [{part: each.total for each in tree.as_equations() for part in each.parts} for tree in trees]
    finest: dict[Cell, Shares] = {}
    for codes, who, amount in given.rows:
        now = tuple(tree.codes[tree.position(code)] for tree, code in zip(trees, codes, strict=True))
        finest.setdefault(now, {})[who] = finest.setdefault(now, {}).get(who, 0.0) + amount
    there = list(zip(*(column.to_list() for column in table.code_columns().values()), strict=True))
    for codes in there:  # nobody knows of those that are withheld that they are empty
        if not any(code in parents.values() for code, parents in zip(codes, above, strict=True)):
            finest.setdefault(codes, {})
    parts: dict[Cell, set[int]] = {}
    for at, codes in enumerate(finest):
        for cell in product(*(upward(code, parents) for code, parents in zip(codes, above, strict=True))):
            parts.setdefault(cell, set()).add(at)
    shown: dict[Cell, tuple[float, float]] = {}
    if given.adjusts:  # every cell is shown; what is known of the true values is what the release says of them
        shown = dict(zip(there, zip(release.lower.tolist(), release.upper.tolist(), strict=True), strict=True))
    else:
        with (given.job.parent / "public" / "release.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                low, high = (
                    row[name] if row["value"] else row.get(end) for name, end in (("value", "from"), ("value", "to"))
                )
                shown[tuple(row[name] for name in table.dimensions)] = float(low or -inf), float(high or inf)
    known = {cell: frozenset(some) for cell, some in parts.items() if cell in set(there)}
    return Intruder(known, list(finest.values()), {cell: ends for cell, ends in shown.items() if cell in known})


def upward(code: str, parents: dict[str, str]) -> list[str]:
    """A code and all above it."""
    out = [code]
    while out[-1] in parents:
        out.append(parents[out[-1]])
    return out


def called_safe(seed: int, folder: Path) -> bool:
    """Whether the job of a seed ends with a safe release that hides something; fails if the intruder knows better."""
    folder.mkdir()
    given = made(seed, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = ts.run(given.job)
        except ts.TablesafeError:
            return False  # nothing protects it as asked
    if str(result.findings.verdict.word) != "SAFE" or not len(result.problem.sensitive):
        return False
    intruder = intruder_of(given, result.problem.table, result.release)
    found = list(intruder.objections(given.rule, given.coalition, sums=2))
    assert not found, f"seed {seed}, coalitions of {given.coalition}: {found[:3]}"
    return True


@pytest.mark.parametrize("seed", KNOWN)
def test_the_intruder_has_jobs_to_object_to(seed: int, tmp_path: Path) -> None:
    assert called_safe(seed, tmp_path / "job")


@pytest.mark.parametrize("seed", fresh(2, "random jobs"))
def test_whatever_a_job_asks_for_what_is_written_as_safe_is(seed: int, tmp_path: Path) -> None:
    called_safe(seed, tmp_path / "job")
