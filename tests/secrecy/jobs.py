"""One job for every method, on data made for the search."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from secrecy.searched import ATTACK_SEED, HRC, PARAMETERS, SEED, SIZES, records
from tablesafe.io.formats import FORMATS

JOB = """title = "Turnover by region and size"
[source]
file = "records.csv"
respondent = "firm"
holding = "group"
[dimensions.region]
hierarchy = "tree.hrc"
[dimensions.size]
[response]
value = "turnover"
[[rules]]
rule = "p_percent"
p = {p}
[[rules]]
rule = "threshold"
n = 3
range_percent = {range_percent}
[[rules]]
rule = "dominance"
n = 2
k = {k}
[[rules]]
rule = "pq"
p = {pq_p}
q = {pq_q}
[problem]
within_percent = {within_percent}
manual_range = {manual_range}
[method]
name = "{name}"
{options}
[attack]
attacks = ["midpoint", "published value"]
time_limit_s = 5.0
seed = {attack_seed}
[output]
release = [{release}]
report = ["public/report.html", "public/report.json", "public/report.xlsx"]
internal = "internal"
intervals = {intervals}
force = true
"""
WRITTEN = [
    "table.csv",
    "table.xlsx",
    "table.parquet",
    *(f"table{own.endings[0]}" for own in FORMATS if own.load()[1] is not None),
]
"""A file of every format in which a release is published."""
OPTIONS = {
    "pattern": 'file = "pattern.csv"',
    "suppress": f"algorithm = \"sequential\"\nmargin = {PARAMETERS['margin']}\ntime_limit_s = 2.0\nseed = {SEED}",
    "adjust": f"capacity_percent = {PARAMETERS['capacity_percent']}\ntime_limit_s = 2.0\nseed = {SEED}",
    "round": f"time_limit_s = 2.0\nseed = {SEED}",
    "small_counts": f"limit = 3\nseed = {SEED}",
    "intervals": f"kind = \"asymmetric\"\nseed = {SEED}\nsuppress = {{ time_limit_s = 2.0 }}",
    "views": f"time_limit_s = 2.0\nseed = {SEED}",
    "cell_key": f"identifier = \"firm\"\nseed = {SEED}\nvariance = {PARAMETERS['variance']}",
    "noise": f"least_percent = {PARAMETERS['least_percent']}\nmost_percent = {PARAMETERS['most_percent']}\n"
             f"seed = {SEED}",
    "swap": f"geography = \"region\"\nrate = {PARAMETERS['rate']}\nnew_cells = \"avoid\"\nseed = {SEED}",
    "impute": f"columns = [\"size\"]\nrate = {PARAMETERS['rate']}\nnew_cells = \"avoid\"\nseed = {SEED}",
}  # fmt: skip
"""What a method needs, and its parameters as numbers that can be found again; others run as they are."""


ANNOUNCING = {"adjust", "round", "intervals", "cell_key", "noise"}
"""Methods whose release announces intervals; with these, what an attacker knows beforehand may not be a percentage."""


def lay_out(folder: Path, method: str) -> pl.DataFrame:
    """Write the job of a method and its inputs; give the records."""
    frame = records()
    frame.write_csv(folder / "records.csv")
    (folder / "tree.hrc").write_text(HRC, encoding="utf-8")
    inner = [(region, size) for region in frame["region"].unique().sort() for size in SIZES]
    lines = "".join(f"{region},{size},suppressed\n" for region, size in inner)
    totals = "".join(f"{region},{size},published\n" for region in ("Total", "NO", "SO") for size in (*SIZES, "Total"))
    sums = "".join(f"{region},Total,published\n" for region in frame["region"].unique().sort())
    (folder / "pattern.csv").write_text(f"region,size,status\n{totals}{sums}{lines}", encoding="utf-8")
    options = OPTIONS.get(method, "")
    text = JOB.format(
        **PARAMETERS,
        release=", ".join(f'"public/{name}"' for name in WRITTEN),
        name=method,
        options=options,
        attack_seed=ATTACK_SEED,
        intervals=str(method in ANNOUNCING).lower(),
    )
    if method in ANNOUNCING:
        text = text.replace(f"within_percent = {PARAMETERS['within_percent']}\n", "")
    (folder / "job.toml").write_text(text, encoding="utf-8")
    return frame
