"""Noise, swapping and imputation of records, beside loops over the records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial

import polars as pl

from benchmarks.clock import Stopwatch
from benchmarks.registry import Case, Outcome, program
from tablesafe.methods.records.impute import BlankAndImpute
from tablesafe.methods.records.noise import Noise
from tablesafe.methods.records.swap import Swap

WARM, RATE, LOOPED = "census_1k", 0.1, 10_000
"""Loops run on so many records at most; their time is scaled up in proportion, which favours them."""
METHODS: dict[str, tuple[str, Noise | Swap | BlankAndImpute]] = {
    "noise": ("tablesafe", Noise(columns=("income",), respondent="firm")),
    "swap": (
        "tablesafe",
        Swap(geography=("region", "municipality"), match=("age", "sex"), key=("age", "sex", "job"), rate=RATE),
    ),
    "swap households": (
        "tablesafe",
        Swap(
            geography=("region", "municipality"), match=("sex",), key=("age", "job"), rate=RATE, household="household"
        ),
    ),
    "impute": (
        "tablesafe hot deck",
        BlankAndImpute(columns=("job",), geography=("region", "municipality"), classes=("age", "sex"), rate=RATE),
    ),
    "impute nearest": (
        "tablesafe",
        BlankAndImpute(
            columns=("job",), geography=("municipality",), classes=("age", "sex"), donor="nearest", near=("income",),
            rate=RATE,
        ),
    ),
    "impute model": (
        "tablesafe",
        BlankAndImpute(
            columns=("job", "income"), amounts=("income",), geography=("municipality",), method="model",
            predictors=("age", "sex", "region"), rate=RATE,
        ),
    ),
}  # fmt: skip


def ours(case: Case, method: Noise | Swap | BlankAndImpute) -> Outcome:
    """One edit of all records."""
    records = pl.read_parquet(case.folder / "census.parquet")
    watch = Stopwatch()
    method.edit(records)
    return Outcome(cpu_s=watch.cpu_s, wall_s=watch.wall_s)


for _task, (_name, _method) in METHODS.items():
    program(_task, _name, "tablesafe", warm=WARM)(partial(ours, method=_method))


def looped(case: Case, loop: Callable[[pl.DataFrame], None]) -> Outcome:
    """A loop over the first records."""
    records = pl.read_parquet(case.folder / "census.parquet")
    some = records.head(LOOPED)
    watch = Stopwatch()
    loop(some)
    share = len(records) / len(some)
    note = "" if share == 1 else f"from {len(some):,} records, scaled up"
    return Outcome(cpu_s=watch.cpu_s * share, wall_s=watch.wall_s * share, measures={"note": note, "scaled_up": share})


def noise_by_loop(records: pl.DataFrame) -> None:
    """The same noise, record by record."""
    draw = random.Random(1)
    factor: dict[int, float] = {}
    out = []
    for row in records.iter_rows(named=True):
        if row["firm"] not in factor:
            factor[row["firm"]] = 1 + draw.choice([-1, 1]) * draw.uniform(0.05, 0.15)
        out.append(round(row["income"] * factor[row["firm"]]))


def swap_by_loop(records: pl.DataFrame) -> None:
    """Risky records first, then others, each with the first free partner of its class elsewhere."""
    draw = random.Random(1)
    rows = list(records.iter_rows(named=True))
    alike = Counter((row["municipality"], row["age"], row["sex"], row["job"]) for row in rows)
    left = {area: round(RATE * n) for area, n in Counter(row["municipality"] for row in rows).items()}
    classes = defaultdict(list)
    for i, row in enumerate(rows):
        classes[row["age"], row["sex"]].append(i)
    for members in classes.values():
        draw.shuffle(members)
    partner: dict[int, int] = {}

    def risk(i: int) -> tuple[int, float]:
        row = rows[i]
        return min(alike[row["municipality"], row["age"], row["sex"], row["job"]], 3), draw.random()

    for i in sorted(range(len(rows)), key=risk):
        area = rows[i]["municipality"]
        if i in partner or not left[area]:
            continue
        for j in classes[rows[i]["age"], rows[i]["sex"]]:
            other = rows[j]["municipality"]
            if j not in partner and other != area and left[other]:
                partner[i], partner[j] = j, i
                left[area] -= 1
                left[other] -= 1
                break


def impute_by_loop(records: pl.DataFrame) -> None:
    """A tenth of the records blanked, each with the job of a random other record of its class in its region."""
    draw = random.Random(1)
    rows = list(records.iter_rows(named=True))
    blank = set(draw.sample(range(len(rows)), round(RATE * len(rows))))
    donors = defaultdict(list)
    for i, row in enumerate(rows):
        if i not in blank:
            donors[row["region"], row["age"], row["sex"]].append(i)
    for i in blank:
        found = donors[rows[i]["region"], rows[i]["age"], rows[i]["sex"]]
        if found:
            rows[i]["job"] = rows[draw.choice(found)]["job"]


program("noise", "loop", "naive")(partial(looped, loop=noise_by_loop))
program("swap", "loop", "naive")(partial(looped, loop=swap_by_loop))
program("impute", "loop", "naive")(partial(looped, loop=impute_by_loop))
