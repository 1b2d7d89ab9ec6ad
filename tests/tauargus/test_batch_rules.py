"""SAFETYRULE against rules computed here, record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tablesafe as ts
from tablesafe.core.problem import Problem

META = """<SEPARATOR> ";"
a 1 9
  <RECODEABLE>
b 1
  <RECODEABLE>
v 6
  <NUMERIC>
s 6
  <NUMERIC>
w 4
  <WEIGHT>
h 3
  <HOLDING>
r 1
  <REQUEST> "J" "K"
"""


class Record(NamedTuple):
    a: str
    b: str
    v: int
    s: int
    w: int
    h: str
    r: str


def records() -> list[Record]:
    random = np.random.default_rng(11)
    out = []
    for _ in range(90):
        v = 0 if random.random() < 0.15 else int(random.lognormal(3, 1.3))
        a, b = str(random.choice(list("1239"), p=[0.4, 0.3, 0.2, 0.1])), str(random.choice(list("xyzu")))
        who, asked = f"h{random.integers(25)}", str(random.choice(list("-JK"), p=[0.6, 0.2, 0.2]))
        out.append(Record(a, b, v, int(random.lognormal(2, 1)), int(random.integers(1, 5)), who, asked))
    return [*out, Record("2", "q", 0, 1, 1, "h1", "-"), Record("2", "q", 0, 1, 1, "h2", "-")]


DATA = records()
Rule = Callable[[list[Record]], bool]


def problem(folder: Path, rules: str, spec: str = '"a""b"|"v"') -> Problem:
    (folder / "d.asc").write_text("".join(";".join(map(str, r)) + "\n" for r in DATA), encoding="utf-8")
    (folder / "d.rda").write_text(META, encoding="utf-8")
    text = (
        f'<OPENMICRODATA> "d.asc"\n<OPENMETADATA> "d.rda"\n<SPECIFYTABLE> {spec}\n<SAFETYRULE> {rules}\n<READMICRODATA>'
    )
    (folder / "j.arb").write_text(text, encoding="utf-8")
    found = ts.run(folder / "j.arb").problem
    assert isinstance(found, Problem)
    return found


def flagged(rule: Rule, *, missing_safe: bool = False) -> set[tuple[str, str]]:
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in DATA:
        for a in (record.a, "Total"):
            for b in (record.b, "Total"):
                cells[a, b].append(record)
    return {key for key, inside in cells.items() if rule(inside) and not (missing_safe and key[0] == "9")}


def ours(found: Problem) -> set[tuple[str, str]]:
    a, b = (codes.to_list() for codes in found.table.code_columns().values())
    return {(a[i], b[i]) for i in found.sensitive.tolist()}


def amounts(inside: list[Record], field: str = "v", *, by: str | None = None) -> list[int]:
    if by is None:
        return sorted((getattr(record, field) for record in inside), reverse=True)
    sums: dict[str, int] = defaultdict(int)
    for record in inside:
        sums[getattr(record, by)] += getattr(record, field)
    return sorted(sums.values(), reverse=True)


def expanded(inside: list[Record]) -> list[int]:
    return sorted((record.v for record in inside for _ in range(record.w)), reverse=True)


def p_percent(x: list[int], p: float, n: int = 1) -> bool:
    return bool(x) and sum(x[n + 1 :]) * 100 < p * x[0]


def nk(x: list[int], n: int, k: float) -> bool:
    return sum(x[:n]) * 100 > k * sum(x)


def on_request(inside: list[Record], shares: tuple[float, float], fewest: int) -> bool:
    top = max(inside, key=lambda record: record.v)
    share = {"J": shares[0], "K": shares[1]}.get(top.r, 100)
    return top.v * 100 > share * sum(r.v for r in inside) or (
        len(inside) < fewest and any(record.r in "JK" for record in inside)
    )


RULES: dict[str, Rule] = {
    "P(15,1)": lambda cell: p_percent(amounts(cell), 15),
    "P(30)": lambda cell: p_percent(amounts(cell), 30),
    "P(20,3)": lambda cell: p_percent(amounts(cell), 20, 3),
    "P(20,50,2)": lambda cell: p_percent(amounts(cell), 40, 2),
    "P(15,1)|P(30,2)": lambda cell: p_percent(amounts(cell), 15) or p_percent(amounts(cell), 30, 2),
    "P(0,0)|P(0,0)|P(15,1)": lambda cell: p_percent(amounts(cell, by="h"), 15),
    "P(15,1)|P(0,0)|P(15,1)|P(0,1)": lambda cell: p_percent(amounts(cell), 15) or p_percent(amounts(cell, by="h"), 15),
    "NK(2,75)|NK(0,0)": lambda cell: nk(amounts(cell), 2, 75),
    "NK(1,60)|NK(3,90)": lambda cell: nk(amounts(cell), 1, 60) or nk(amounts(cell), 3, 90),
    "NK(0,0)|NK(0,0)|NK(2,80)|NK(1,50)": lambda cell: (
        nk(amounts(cell, by="h"), 2, 80) or nk(amounts(cell, by="h"), 1, 50)
    ),
    "FREQ(5,20)": lambda cell: len(cell) < 5,
    "FREQ(0,0)|FREQ(5,20)": lambda cell: len({record.h for record in cell}) < 5,
    "FREQ(4,20)|FREQ(6,20)": lambda cell: len(cell) < 4 or len({record.h for record in cell}) < 6,
    "ZERO(10)": lambda cell: sum(record.v for record in cell) == 0,
    "P(10,1)|FREQ(3,20)|ZERO(5)": lambda cell: (
        p_percent(amounts(cell), 10) or len(cell) < 3 or sum(r.v for r in cell) == 0
    ),
    "REQ(40,60,10)": lambda cell: on_request(cell, (40, 60), 0),
    "REQ(40,60,7,10)": lambda cell: on_request(cell, (40, 60), 7),
    "WGT(1)|P(15,1)": lambda cell: p_percent(expanded(cell), 15),
    "WGT(1)|NK(3,40)": lambda cell: nk(expanded(cell), 3, 40),
    "MAN(20)": lambda cell: False,
}


@pytest.mark.parametrize("rules", RULES)
def test_the_same_cells_are_sensitive(tmp_path: Path, rules: str) -> None:
    assert ours(problem(tmp_path, rules)) == flagged(RULES[rules])


@pytest.mark.parametrize("rules", ["P(15,1)", "FREQ(0,0)|FREQ(5,20)", "P(0,0)|P(0,0)|P(15,1)"])
def test_cells_with_a_missing_code_are_safe_if_asked(tmp_path: Path, rules: str) -> None:
    assert ours(problem(tmp_path, f"{rules}|MIS(1)")) == flagged(RULES[rules], missing_safe=True)
    assert ours(problem(tmp_path, f"{rules}|MIS(0)")) == flagged(RULES[rules])


def test_levels_are_those_of_the_rules(tmp_path: Path) -> None:
    found = problem(tmp_path, "FREQ(5,20)")
    value, levels = found.table.value, found.sensitivity
    assert levels.upper[levels.mask] == pytest.approx(0.2 * value[levels.mask])
    found = problem(tmp_path, "REQ(40,60,10)")
    value, levels = found.table.value, found.sensitivity
    assert levels.upper[levels.mask] == pytest.approx(0.1 * value[levels.mask])
    found = problem(tmp_path, "ZERO(10)")
    assert set(found.sensitivity.upper[found.sensitivity.mask].tolist()) == {10.0}


def test_a_shadow_variable_takes_the_place_of_the_response(tmp_path: Path) -> None:
    found = problem(tmp_path, "P(15,1)", '"a""b"|"v"|"s"|')
    assert ours(found) == flagged(lambda cell: p_percent(amounts(cell, "s"), 15))
    assert found.table.value[found.table.index()] == sum(record.v for record in DATA)


def test_a_table_of_counts_takes_no_rule_on_contributions(tmp_path: Path) -> None:
    found = problem(tmp_path, "FREQ(4,10)", '"a""b"|<freq>')
    assert ours(found) == flagged(lambda cell: len(cell) < 4)
    assert found.table.value[found.table.index()] == len(DATA)
    with pytest.raises(ts.TablesafeError, match=r"(?s)j.arb, line 4, <SAFETYRULE>: P\(10,1\).*only counts"):
        problem(tmp_path, "P(10,1)", '"a""b"|<freq>')


@pytest.mark.parametrize(
    ("spec", "cost"),
    [
        ('"a""b"|"v"', lambda cell: sum(r.v for r in cell)),
        ('"a""b"|"v"||""', lambda cell: sum(r.v for r in cell)),
        ('"a""b"|"v"||"s"', lambda cell: sum(r.s for r in cell)),
        ('"a""b"|"v"||-1', len),
        ('"a""b"|"v"||-2', lambda cell: 1),
    ],
)
def test_costs(tmp_path: Path, spec: str, cost: Callable[[list[Record]], int]) -> None:
    found = problem(tmp_path, "FREQ(3,10)", spec)
    inner = found.table.index(a="1", b="x")
    assert found.cost[inner] == cost([r for r in DATA if (r.a, r.b) == ("1", "x")])
    assert found.cost[found.table.index()] == cost(DATA)


@pytest.mark.parametrize(
    ("rules", "keyword"), [("FREQ(0,0)|FREQ(3,1)", "HOLDING"), ("REQ(50,50,1)", "REQUEST"), ("WGT(1)", "WEIGHT")]
)
def test_a_rule_that_the_metadata_cannot_serve_says_what_to_add(tmp_path: Path, rules: str, keyword: str) -> None:
    problem(tmp_path, "FREQ(3,1)")
    text = META.replace(f"<{keyword}>", "<TRUNCABLE>").replace('<TRUNCABLE> "J" "K"', "<TRUNCABLE>")
    (tmp_path / "d.rda").write_text(text, encoding="utf-8")
    (tmp_path / "j.arb").write_text((tmp_path / "j.arb").read_text().replace("FREQ(3,1)", rules), encoding="utf-8")
    with pytest.raises(ts.TablesafeError, match=rf"(?s)j.arb, line 4, <SAFETYRULE>: .*no variable as <{keyword}>"):
        ts.run(tmp_path / "j.arb")
