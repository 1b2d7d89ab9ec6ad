"""Suites: named lists of comparisons. `smoke` is for every change, `headline` for the README, `full` is everything."""

from __future__ import annotations

from itertools import chain

import benchmarks.instances  # noqa: F401
from benchmarks import tasks
from benchmarks.registry import PROGRAMS, SUITES, Entry, Suite, suite

tasks.load()

BENCH = ("2d_20", "2d_50", "2d_100", "3d_10", "3d_20", "h_2k", "h3_5k", "h_10k", "h_50k")
JJ = ("targus", "table7", "hier13x7x7d", "table8", "table1", "hier13", "hier13x13x13a", "hier16", "two5in6", "nine5d")
JOBS = (
    "ex1", "Simple2D", "Simple2D_optimal", "region_industry", "size_region_year", "enterprise", "2d", "2d_large", "3d",
    "3d_large", "3d_optimal",
)  # fmt: skip


def every(task: str) -> tuple[str, ...]:
    """All programs of a task, ours first."""
    return tuple(PROGRAMS[task])


SMOKE = (
    Entry("tabulate", "records_1k", ("tablesafe", "polars"), patience_s=60),
    Entry("suppress", "firms_2d_100", ("tablesafe", "two per sum", "pytauargus optimal"), seconds=1, patience_s=60),
    Entry("audit", "pattern_3d_200", ("tablesafe", "fresh programs", "pytauargus"), patience_s=60),
    Entry("adjust", "values_2d_100", ("tablesafe",), seconds=1, patience_s=60),
    Entry("round", "counts_2d_100", ("tablesafe", "one integer program", "pytauargus"), seconds=1, patience_s=60),
)
suite(Suite("smoke", "every kind of figure on the smallest tables, in seconds: what every change runs", SMOKE, False))

suite(
    Suite(
        "tasks",
        "every program of every task on a small instance, once: which of them work here",
        (
            Entry("tabulate", "records_10k", every("tabulate")),
            Entry("flag", "flat_100k", every("flag")),
            Entry("audit", "pattern_3d_1k", every("audit")),
            Entry("suppress", "firms_2d_1k", tuple(n for n in every("suppress") if n != "printed"), seconds=2),
            Entry("suppress", "micro/firms_2d_1k", ("tablesafe alike", "tablesafe", "pytauargus modular"), seconds=2),
            Entry("suppress", "bench/2d_20", every("suppress"), seconds=2),
            Entry("adjust", "values_2d_1k", every("adjust"), seconds=3),
            Entry("adjust reference", "jj/targus", every("adjust reference"), seconds=3),
            Entry("adjust percent", "jj/targus", every("adjust percent"), seconds=3),
            Entry("adjust paper", "dandekar_10x6x4", every("adjust paper")),
            Entry("adjust statistics", "cox_kelly_4x9", every("adjust statistics")),
            Entry("tabu steps", "cox_kelly_4x9", every("tabu steps")),
            Entry("round", "counts_2d_1k", every("round"), seconds=3),
            Entry("attack", "pattern_3d_1k", every("attack"), seconds=3),
            Entry("cell key lookup", "keys_100k", every("cell key lookup")),
            Entry("cell key design", "keys_1k", every("cell key design")),
            Entry("cell key", "persons_10k", every("cell key")),
            Entry("small counts", "cube_5d_5k", every("small counts")),
            Entry("views", "views_4_few", every("views")),
            *(Entry(t, "census_10k", every(t)) for t in ("noise", "swap", "swap households")),
            *(Entry(t, "census_10k", every(t)) for t in ("impute", "impute nearest", "impute model")),
            Entry("τ-ARGUS job", "job_3d_optimal", every("τ-ARGUS job"), seconds=2),
        ),
    )
)

NINE: dict[str, tuple[float, tuple[str, ...]]] = {
    "2d_20": (1, ("pytauargus optimal",)),
    "2d_50": (2, ("pytauargus optimal",)),
    "2d_100": (5, ()),
    "3d_10": (5, ("two per sum", "pytauargus optimal")),
    "3d_20": (30, ()),
    "h_2k": (6, ("two per sum", "pytauargus optimal")),
    "h3_5k": (25, ("two per sum",)),
    "h_10k": (25, ()),
    "h_50k": (40, ("two per sum",)),
}
"""Seconds for both sides on each of the nine, and what runs beside ours: the exact method of τ-ARGUS only where it has
an answer within a minute; the suite `suppression` gives both sides more."""
OFFICES = ("tablesafe alike", "tablesafe", "pytauargus modular")
"""On microdata: from outsiders only, as the peer does; from respondents and sums too; the peer, given our primaries."""
MICRODATA: dict[str, tuple[float, float]] = {
    "firms_2d_20k": (10, 60),
    "firms_20k": (60, 180),
    "four_flat_20k": (30, 120),
    "households_20k": (30, 120),
    "farms_2d_20k": (30, 120),
    "trade_5k": (60, 180),
}
"""Seconds for a method, and when it is stopped, on what offices do: these rows lead the README's table."""


def offices(instances: dict[str, tuple[float, float]], programs: tuple[str, ...] = OFFICES) -> tuple[Entry, ...]:
    """The same programs on tables of microdata."""
    return tuple(Entry("suppress", f"micro/{name}", programs, *times) for name, times in instances.items())


HEADLINE = (
    *offices(MICRODATA),
    *(
        Entry("suppress", f"bench/{n}", ("tablesafe", *others, "printed"), s, 3 * s + 30)
        for n, (s, others) in NINE.items()
    ),
    *(Entry("τ-ARGUS job", f"job_{n}", ("tablesafe alike", "pytauargus"), 5, 60) for n in ("2d_large", "3d")),
    Entry("audit", "pattern_3d_10k", ("tablesafe", "fresh programs", "pytauargus"), patience_s=40),
    Entry("audit", "pattern_3d_100k", ("tablesafe", "fresh programs"), patience_s=40),
    Entry("audit", "scattered_h_2k", ("tablesafe", "fresh programs", "pytauargus"), patience_s=40),
    Entry("tabulate", "records_3m", ("tablesafe", "polars"), patience_s=90),
    Entry("adjust", "values_2d_10k", ("tablesafe alternating", "all up"), 15, 60),
    Entry("round", "counts_2d_10k", ("tablesafe", "one integer program", "pytauargus"), 15, 45),
    Entry("flag", "flat_100k", ("tablesafe", "pandas", "acro"), patience_s=60),
    Entry("tabulate", "records_1m", ("tablesafe", "polars", "pandas"), patience_s=90),
    Entry("adjust", "values_2d_1k", ("tablesafe", "one integer program"), 5, 60),
)
MODULAR = "τ-ARGUS modular (HiTaS engine) (printed)"
suite(
    Suite(
        "headline",
        "the README's table: microdata as offices have it, suppression on nine instances beside τ-ARGUS, tabulation, "
        "audit, adjustment, rounding",
        HEADLINE,
        headline=(
            *(("suppress", f"micro/{name}", "pytauargus modular") for name in MICRODATA),
            *(("suppress", f"micro/{name}", "tablesafe") for name in ("firms_20k", "households_20k")),
            ("suppress", "bench/3d_10", "pytauargus optimal"),
            ("suppress", "bench/h_2k", "pytauargus optimal"),
            ("suppress", "bench/h_2k", "two per sum"),
            ("suppress", "bench/3d_20", MODULAR),
            ("suppress", "bench/h3_5k", MODULAR),
            ("suppress", "bench/h_10k", MODULAR),
            ("suppress", "bench/h_50k", MODULAR),
            ("τ-ARGUS job", "job_2d_large", "pytauargus"),
            ("audit", "pattern_3d_10k", "pytauargus"),
            ("audit", "pattern_3d_100k", "fresh programs"),
            ("audit", "scattered_h_2k", "fresh programs"),
            ("adjust", "values_2d_10k", "all up"),
            ("round", "counts_2d_10k", "pytauargus"),
            ("tabulate", "records_3m", "polars"),
            ("flag", "flat_100k", "acro"),
        ),
    )
)


def growing(
    task: str, program: str, names: str, sizes: tuple[str, ...], *, seconds: float = 10, patience_s: float = 120
) -> tuple[Entry, ...]:
    """One program of ours on ever larger instances."""
    return tuple(Entry(task, names.format(size), (program,), seconds, patience_s) for size in sizes)


GROWTH = (
    *growing("tabulate", "tablesafe", "records_{}", ("10k", "100k", "300k", "1m", "3m")),
    *growing("audit", "tablesafe", "pattern_3d_{}", ("1k", "10k", "30k", "100k", "300k", "1m")),
    *growing("suppress", "tablesafe modular", "firms_2d_{}", ("300", "1k", "5k", "20k"), seconds=30),
    *growing("adjust", "tablesafe alternating", "values_2d_{}", ("100", "1k", "3k", "10k", "30k", "100k"), seconds=60),
    *growing("round", "tablesafe", "counts_2d_{}", ("100", "1k", "10k", "30k", "150k"), seconds=60),
)
suite(Suite("growth", "how CPU seconds grow with the size, for log–log slopes", GROWTH))

suite(
    Suite(
        "microdata",
        "tables of microdata as offices have them, two to four dimensions, beside τ-ARGUS with the same primaries",
        (
            *offices(MICRODATA),
            *offices({f"firms_20k_seed{seed}": (60, 300) for seed in (5, 6)}),
            *offices({"firms_200k": (120, 600), "farms_20k": (60, 300), "farms_2d_100k": (60, 300),
                      "households_100k": (60, 300), "trade_20k": (120, 600)}),
        ),
    )
)  # fmt: skip
GROWING = {
    "firms_2d": ("1k", "5k", "20k", "200k"),
    "firms": ("5k", "20k", "50k", "200k", "1m"),
    "four_flat": ("1k", "5k", "20k"),
}
suite(
    Suite(
        "growth-microdata",
        "how CPU seconds grow with records and sensitive cells, from outsiders and from respondents",
        offices({f"{kind}_{word}": (120, 400) for kind, words in GROWING.items() for word in words}, OFFICES[:2]),
    )
)
suite(
    Suite(
        "microdata-large",
        "firms by five-digit nace and 300 municipalities, up to a million records; hours",
        offices(
            {"firms_fine_20k": (180, 900), "firms_fine_100k": (600, 1800), "firms_fine_1m": (1000, 3600)},
            ("tablesafe alike", "tablesafe"),
        ),
    )
)

FIRMS = ("tablesafe alike", "tablesafe", "two per sum", "pytauargus optimal")
ADJUSTED = ("tablesafe", "tablesafe alternating", "tablesafe search", "all up")
CUBES = ("tablesafe tabu", "tablesafe greedy", "at random")
ALGORITHMS = ("tablesafe", "tablesafe optimal", "tablesafe sequential", "tablesafe modular")
suite(
    Suite(
        "suppression",
        "the nine instances and those of the literature by every algorithm, a minute each, beside the peers",
        (
            *(Entry("suppress", f"bench/{n}", (*ALGORITHMS, "two per sum", "pytauargus optimal", "printed"), 60, 300)
              for n in BENCH),
            *(Entry("suppress", f"jj/{n}", ("tablesafe", "pytauargus optimal"), 60, 300) for n in JJ),
            *(Entry("suppress", f"firms_{n}", FIRMS, 60, 300)
              for n in ("2d_5k", "3d_5k", "4d_5k", "5d_10k", "6d_10k")),
        ),
    )
)  # fmt: skip
suite(
    Suite(
        "adjustment",
        "the instances of the literature with their reference figures, the papers, and large tables",
        (
            *(Entry("adjust reference", f"jj/{n}", every("adjust reference"), 60, 300) for n in JJ),
            *(Entry("adjust percent", f"jj/{n}", every("adjust percent"), 60, 300) for n in ("two5in6", "nine5d")),
            Entry("adjust paper", "dandekar_10x6x4", every("adjust paper"), 60, 300),
            Entry("adjust statistics", "cox_kelly_4x9", every("adjust statistics"), 60, 300),
            *(Entry("tabu steps", n, every("tabu steps"), 60, 300) for n in ("cox_kelly_4x9", "jj/hier13")),
            *(Entry("adjust", f"values_{n}", ADJUSTED, 60, 600)
              for n in ("2d_10k", "3d_10k", "2d_100k", "3d_100k")),
        ),
    )
)  # fmt: skip
ROUNDED = ("2d_flat_10k", "2d_one_tree_150k", "2d_10k", "2d_150k", "3d_1k", "3d_5k", "5d_10k", "6d_10k")
suite(
    Suite(
        "counts",
        "rounding, small counts and the cell key method",
        (
            *(Entry("round", f"counts_{n}", every("round"), 60, 300) for n in ROUNDED),
            *(Entry("round", f"counts_{n}", ("tablesafe",), 120, 600) for n in ("2d_500k", "3d_120k", "4d_1m")),
            Entry("small counts", "cube_8d_1m", every("small counts"), patience_s=600),
            Entry("cell key lookup", "keys_1m", every("cell key lookup"), patience_s=300),
            Entry("cell key design", "keys_1k", every("cell key design"), patience_s=300),
            Entry("cell key", "persons_2m", every("cell key"), patience_s=300),
        ),
    )
)
suite(
    Suite(
        "attacks",
        "audits and attacks at ten thousand unknown cells and more",
        (
            *(Entry("audit", f"pattern_3d_{n}", every("audit"), 60, 300) for n in ("10k", "100k", "1m")),
            Entry("audit", "scattered_3d_20", every("audit"), 60, 300),
            *(Entry("attack", n, every("attack"), 60, 600) for n in ("pattern_3d_100k", "scattered_3d_20")),
        ),
    )
)
suite(
    Suite(
        "views",
        "linked views: Table 6 of Roehrig et al., and larger cubes",
        (
            *(Entry("views", f"views_{n}", every("views"), 60, 600) for n in range(4, 11)),
            *(Entry("views", f"views_{n}", CUBES, 30, 600) for n in (20, 50, 100)),
        ),
    )
)
EDITS = ("noise", "swap", "swap households", "impute", "impute nearest", "impute model")
suite(
    Suite(
        "records",
        "tabulation of up to thirty million records, flags, and edits of a million",
        (
            *(Entry("tabulate", f"records_{n}", every("tabulate"), patience_s=900) for n in ("1m", "3m", "10m")),
            Entry("tabulate", "records_30m", ("tablesafe",), patience_s=900),
            *(Entry("flag", f"flat_{n}", every("flag"), patience_s=300) for n in ("100k", "1m")),
            *(Entry(task, "census_1m", every(task), patience_s=300) for task in EDITS),
        ),
    )
)
suite(
    Suite(
        "jobs",
        "the same batch jobs of τ-ARGUS by tablesafe and by pytauargus",
        tuple(Entry("τ-ARGUS job", f"job_{name}", every("τ-ARGUS job"), 20, 600) for name in JOBS),
    )
)
suite(
    Suite(
        "start",
        "the first answer in a new process, before and after the inner loops are compiled, and imports alone",
        (
            Entry("start", "values_2d_100", every("start"), 10, 600),
            Entry("start", "micro/firms_2d_1k", tuple(n for n in every("start") if n != "tablesafe shell"), 10, 600),
        ),
    )
)
LARGE = ("2d_60k", "2d_250k", "4d_1m")
suite(
    Suite(
        "large",
        "a quarter of a million to ten million cells; hours, and up to 16 GB",
        (
            *growing("suppress", "tablesafe modular", "firms_{}", LARGE, seconds=600, patience_s=3600),
            Entry("adjust", "values_3d_1m", ("tablesafe alternating",), 600, 3600),
            Entry("adjust", "values_4d_1m", ("tablesafe alternating",), 600, 3600),
            Entry("audit", "pattern_3d_1m", ("tablesafe",), 600, 3600),
            *(Entry("round", f"counts_4d_{n}", ("tablesafe",), 600, 3600) for n in ("1m", "10m")),
            Entry("suppress", "values_4d_10m", ("two per sum",), 600, 3600),
        ),
    )
)
PARTS = (
    "headline",
    "microdata",
    "growth",
    "growth-microdata",
    "microdata-large",
    "suppression",
    "adjustment",
    "counts",
    "attacks",
    "views",
    "records",
    "jobs",
    "start",
    "large",
)


def _union() -> tuple[Entry, ...]:
    """Every comparison once, with the programs and the longest times of all suites that have it."""
    found: dict[tuple[str, str], Entry] = {}
    for entry in chain.from_iterable(SUITES[part].entries for part in PARTS):
        other = found.get((entry.task, entry.instance), entry)
        found[entry.task, entry.instance] = Entry(
            entry.task,
            entry.instance,
            tuple(dict.fromkeys((*other.programs, *entry.programs))),
            max(other.seconds, entry.seconds),
            max(other.patience_s, entry.patience_s),
        )
    return tuple(found.values())


suite(Suite("full", "all of the others: many hours", _union()))
