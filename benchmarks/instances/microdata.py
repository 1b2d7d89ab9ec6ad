"""What offices tabulate, from seeds: firms with holdings, a household survey, foreign trade, farms by municipality.

Few records per fine cell, heavy tails, hierarchies in two of three dimensions, up to half of the cells sensitive: the
opposite of the benchmark tables of the literature. Records are drawn column by column, never one by one, so a million
of them take less than a second. `firms` has the codes, the shares and the tails of an office's business register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import tablesafe as ts
from benchmarks.registry import Made, instance

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tree:
    """The codes of a dimension, and the lengths of prefixes that are its totals; none where it is flat."""

    codes: tuple[str, ...]
    lengths: tuple[int, ...] = ()

    @property
    def hierarchy(self) -> ts.Hierarchy:
        """As the library has it, with a grand total."""
        return ts.Hierarchy.from_prefixes(self.codes, lengths=self.lengths)

    def drawn(self, random: np.random.Generator, records: int, steep: float) -> pl.Series:
        """A code per record; the j-th code is as frequent as j to the power of −`steep`."""
        share = 1 / np.arange(1, len(self.codes) + 1) ** steep
        return self.at(random.choice(len(self.codes), records, p=share / share.sum()))

    def at(self, places: np.ndarray) -> pl.Series:
        """The codes at these places."""
        return pl.Series(self.codes, dtype=pl.String).gather(places.astype(np.uint32))


def digits(*counts: int) -> tuple[str, ...]:
    """Codes with one figure or letter per level, at most 36 of each."""
    signs = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0"
    return tuple("".join(parts) for parts in product(*(signs[:count] for count in counts)))


DIVISIONS = ("10", "11", "13", "14", "20", "22", "25", "28", "45", "46", "47", "49", "55", "56")
REGION = Tree(tuple(f"{a}{b}" for a, b in product("NSW", digits(3, 4))), (1, 2))
NACE = Tree(tuple(f"{d}{g}" for d, g in product(DIVISIONS, digits(3, 2))), (1, 2, 3))
SIZE = Tree(("1-9", "10-49", "50-249", "250+"))
SIZE_SHARES = (0.70, 0.20, 0.08, 0.02)
FINE_NACE = Tree(tuple(f"{d}{g}" for d, g in product(DIVISIONS, digits(3, 3, 3))), (1, 2, 3, 4))
MUNICIPALITY = Tree(digits(5, 6, 10), (1, 2))
PRODUCT = Tree(tuple(f"{c:02d}{h}0{s}0{t}0" for c in range(1, 25) for h, s, t in digits(4, 4, 3)), (2, 3, 5))
COUNTRY = Tree(digits(6, 14), (1,))
MONTH = Tree(tuple(f"{q}{m}" for q, m in product("1234", "abc")), (1,))
NINE = Tree(digits(9))
HOUSEHOLD = Tree(("alone", "couple", "couple with children", "parent alone", "others"))
AGE = Tree(("-24", "25-34", "35-44", "45-54", "55-64", "65+"))
FARM = Tree(digits(4, 3), (1,))
HECTARES = Tree(("-5", "5-20", "20-50", "50-100", "100+"))


def firms(random: np.random.Generator, n: int, *, region: Tree = REGION, nace: Tree = NACE) -> Frame:
    """A business register: turnover grows by size class with a log-normal tail; 30% of the firms are in holdings."""
    size = random.choice(4, n, p=SIZE_SHARES)
    grouped = random.random(n) < 0.3
    holding = np.where(grouped, random.integers(1, max(n // 8, 1) + 1, n), 10_000_000 + np.arange(n))
    return {
        "firm_id": np.arange(n),
        "group_id": holding,
        "region": region.drawn(random, n, 0.8),
        "nace": nace.drawn(random, n, 0.7),
        "size": SIZE.at(size),
        "turnover": np.round(random.lognormal(4 + 1.5 * size, 1.2), 1),
    }


def four_flat(random: np.random.Generator, n: int) -> Frame:
    """Firms by four classifications without subtotals, most of them in few classes."""
    codes = {name: NINE.drawn(random, n, 1.2) for name in ("kind", "form", "age", "market")}
    return codes | {"firm_id": np.arange(n), "turnover": np.round(random.lognormal(5, 1.6, n), 1)}


def households(random: np.random.Generator, n: int) -> Frame:
    """A sample of households with an income each; small districts are sampled more densely, so weights differ."""
    place = random.choice(len(MUNICIPALITY.codes), n)
    inclusion = 0.002 * (1 + 9 * (place % 10) / 10) * random.uniform(0.8, 1.25, n)
    age = random.choice(len(AGE.codes), n, p=(0.08, 0.16, 0.18, 0.2, 0.18, 0.2))
    return {
        "household": np.arange(n),
        "region": MUNICIPALITY.at(place),
        "type": HOUSEHOLD.at(random.choice(5, n, p=(0.38, 0.28, 0.22, 0.08, 0.04))),
        "age": AGE.at(age),
        "weight": np.round(1 / inclusion),
        "income": np.round(random.lognormal(10.2 + 0.1 * np.minimum(age, 4), 0.7)),
    }


def trade(random: np.random.Generator, n: int) -> Frame:
    """Declarations of traders: each has few products and markets, all year round, so nearly all cells are empty."""
    traders = max(n // 12, 1)
    who = np.minimum((traders * random.random(n) ** 1.8).astype(np.int64), traders - 1)
    products, markets = (
        np.minimum(_skewed(random, len(tree.codes), (traders, count)), len(tree.codes) - 1)
        for tree, count in ((PRODUCT, 3), (COUNTRY, 4))
    )
    scale = random.lognormal(0, 1.5, traders)
    return {
        "trader": who,
        "product": PRODUCT.at(products[who, random.integers(0, 3, n)]),
        "country": COUNTRY.at(markets[who, random.integers(0, 4, n)]),
        "month": MONTH.at(random.integers(0, 12, n)),
        "value": np.ceil(scale[who] * random.lognormal(7, 1.3, n)),
    }


def _skewed(random: np.random.Generator, most: int, shape: tuple[int, int]) -> np.ndarray:
    """Places below `most`, the first ones more often."""
    return (most * random.random(shape) ** 2).astype(np.int64)


def farms(random: np.random.Generator, n: int) -> Frame:
    """A farm census: in every municipality some large farms; many keep no animals, which is a contribution of zero."""
    hectares = random.choice(5, n, p=(0.3, 0.3, 0.2, 0.12, 0.08))
    kind = random.choice(len(FARM.codes), n, p=_shares(len(FARM.codes), 0.6))
    animals = np.round(random.lognormal(1.5 + 0.7 * hectares, 1.1)) * (random.random(n) < 0.3 + 0.4 * (kind % 3 == 0))
    return {
        "farm": np.arange(n),
        "municipality": MUNICIPALITY.drawn(random, n, 0.3),
        "kind": FARM.at(kind),
        "area": HECTARES.at(hectares),
        "animals": animals,
    }


def _shares(count: int, steep: float) -> np.ndarray:
    share = 1 / np.arange(1, count + 1) ** steep
    return np.asarray(share / share.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Records of one kind, and how an office tabulates them."""

    draw: Callable[[np.random.Generator, int], Frame]
    dimensions: dict[str, Tree]
    value: str
    roles: dict[str, str]
    rules: Sequence[Any] = field(default=(ts.Threshold(n=3), ts.PPercent(p=10)))

    def records(self, count: int, seed: int) -> pl.DataFrame:
        """Equal seed, equal records."""
        return pl.DataFrame(self.draw(np.random.default_rng([seed, count]), count))

    def problem(self, records: pl.DataFrame) -> ts.Problem:
        """Tabulated, with every total, and judged by the rules."""
        dimensions = {name: tree.hierarchy for name, tree in self.dimensions.items()}
        table = ts.tabulate(records, dimensions=dimensions, value=self.value, largest=3, **self.roles)
        return ts.Problem(table, rules=list(self.rules))


REGISTER = {"respondent": "firm_id", "holding": "group_id"}
FINE = partial(firms, region=MUNICIPALITY, nace=FINE_NACE)
SOURCES: dict[str, Source] = {
    "firms": Source(draw=firms, dimensions={"region": REGION, "size": SIZE, "nace": NACE}, value="turnover",
                    roles=REGISTER),
    "firms_2d": Source(draw=firms, dimensions={"size": SIZE, "nace": NACE}, value="turnover", roles=REGISTER),
    "firms_fine": Source(draw=FINE, dimensions={"region": MUNICIPALITY, "size": SIZE, "nace": FINE_NACE},
                         value="turnover", roles=REGISTER),
    "four_flat": Source(draw=four_flat, dimensions=dict.fromkeys(("kind", "form", "age", "market"), NINE),
                        value="turnover", roles={"respondent": "firm_id"}),
    "households": Source(draw=households, dimensions={"region": MUNICIPALITY, "type": HOUSEHOLD, "age": AGE},
                         value="income", roles={"respondent": "household", "weight": "weight"}),
    "trade": Source(draw=trade, dimensions={"product": PRODUCT, "country": COUNTRY, "month": MONTH}, value="value",
                    roles={"respondent": "trader"}),
    "farms_2d": Source(draw=farms, dimensions={"municipality": MUNICIPALITY, "kind": FARM}, value="animals",
                       roles={"respondent": "farm"}, rules=(ts.Threshold(n=3), ts.Dominance(n=2, k=85))),
    "farms": Source(draw=farms, dimensions={"municipality": MUNICIPALITY, "kind": FARM, "area": HECTARES},
                    value="animals", roles={"respondent": "farm"},
                    rules=(ts.Threshold(n=3), ts.Dominance(n=2, k=85))),
}  # fmt: skip
ABOUT = {
    "firms": "firms by region × size × nace, two hierarchies, holdings, threshold and p%",
    "firms_2d": "firms by size × nace, holdings, threshold and p%",
    "firms_fine": "firms by 300 municipalities × size × five-digit nace, holdings, threshold and p%",
    "four_flat": "firms by four dimensions without hierarchies, threshold and p%",
    "households": "a household survey with weights by municipality × type × age, threshold and p%",
    "trade": "foreign trade by eight-digit product × country × month, 99% empty, threshold and p%",
    "farms_2d": "animals by municipality × kind of farm, threshold and dominance",
    "farms": "animals by municipality × kind × area of farm, threshold and dominance",
}
RECORDS: dict[str, tuple[str, ...]] = {
    "firms": ("1k", "5k", "20k", "50k", "200k", "1m"),
    "firms_2d": ("1k", "5k", "20k", "200k"),
    "firms_fine": ("5k", "20k", "100k", "1m"),
    "four_flat": ("1k", "5k", "20k"),
    "households": ("1k", "5k", "20k", "100k"),
    "trade": ("1k", "5k", "20k", "100k"),
    "farms_2d": ("1k", "20k", "100k"),
    "farms": ("1k", "20k", "100k"),
}
SEED = 4
OTHER_SEEDS = (5, 6)


def count_of(word: str) -> int:
    """How many records a word such as 20k stands for."""
    return int(float(word[:-1]) * {"k": 1_000, "m": 1_000_000}[word[-1]])


def made(kind: str, count: int, seed: int, folder: Path) -> Made:
    """The records as a file, and the table of them."""
    source = SOURCES[kind]
    records = source.records(count, seed)
    records.write_parquet(folder / "records.parquet")
    return Made(source.problem(records), facts={"records": count})


for _kind, _words in RECORDS.items():
    for _word in _words:
        instance(f"micro/{_kind}_{_word}", ABOUT[_kind], count_of(_word), partial(made, _kind, count_of(_word), SEED))
for _seed in OTHER_SEEDS:
    instance(f"micro/firms_20k_seed{_seed}", f"{ABOUT['firms']}, another seed", 20_000,
             partial(made, "firms", 20_000, _seed))  # fmt: skip
