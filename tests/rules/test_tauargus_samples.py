"""τ-ARGUS's own sample runs: the same cells are unsafe. The records are read here, by other code than ours."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.table import Contributors, Table
from tablesafe.rules import AnyOf, PPercent, Waiver, ZeroCells

EMPTY = "14"
UNSAFE = "3"


def fixed_width(path: Path, **columns: tuple[int, int]) -> pl.DataFrame:
    lines = [line for line in path.read_text(encoding="cp1252").splitlines() if line.strip()]
    return pl.DataFrame(
        {name: [line[start - 1 : start - 1 + width] for line in lines] for name, (start, width) in columns.items()}
    )


def ancestors(path: Path) -> dict[str, list[str]]:
    """Each code of an indented hierarchy with the codes above it."""
    above: list[str] = []
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="cp1252").splitlines():
        code = line.lstrip("@")
        above = above[: len(line) - len(code)]
        found[code] = list(above)
        above.append(code)
    return found


def cells(
    records: pl.DataFrame, dimensions: Mapping[str, Mapping[str, list[str]]], who: str, value: str
) -> pl.DataFrame:
    """Every cell with its total, its count and its two largest contributors."""
    for name, above in dimensions.items():
        rows = [{name: code, f"{name}_code": up} for code, codes in above.items() for up in (code, "Total", *codes)]
        records = records.join(pl.DataFrame(rows), on=name)
    codes = [f"{name}_code" for name in dimensions]
    merged = records.group_by([*codes, who]).agg(pl.col(value).sum(), pl.len().alias("records"))
    return merged.group_by(codes, maintain_order=True).agg(
        pl.col(value).sum().alias("total"),
        pl.col("records").sum(),
        pl.col(value).top_k(2).sort(descending=True).alias("top"),
    )


def as_table(found: pl.DataFrame) -> Table:
    named = {str(i): round(float(total), 2) for i, total in enumerate(found["total"])}
    amount = np.array([[*row, 0.0][:2] for row in found["top"].to_list()], dtype=np.float64)
    table = Table.from_equations({}, named, count=found["records"].to_numpy().astype(np.int64))
    return replace(table, contributors=Contributors(amount, np.full(amount.shape, -1)))


def assert_same_cells(found: pl.DataFrame, mask: Any, path: Path) -> int:
    """The published values are ours, and the cells with status 3 are those of the mask; how many there are."""
    keys = zip(*(found[name].str.strip_chars() for name in found.columns[:2]), strict=True)
    ours = {key: (total, bool(flag)) for key, total, flag in zip(keys, found["total"], mask, strict=True)}
    unsafe = 0
    for first, second, value, status in csv.reader(path.read_text(encoding="cp1252").splitlines()):
        if status != EMPTY:
            total, flag = ours[first.strip(), second.strip()]
            assert abs(total - float(value)) < 0.006
            assert flag == (status == UNSAFE), (first, second)
            unsafe += flag
    return unsafe


def test_size_by_region_with_p_15(instances: Path) -> None:
    folder = instances / "tauargus" / "testW"
    records = fixed_width(folder / "tau_testW.asc", size=(9, 2), region=(12, 2), value=(28, 10))
    records = records.with_columns(pl.col("value").str.strip_chars().cast(pl.Float64)).with_row_index("who")
    sizes: dict[str, list[str]] = {code: [] for code in records["size"].unique().sort()}
    found = cells(records, {"size": sizes, "region": ancestors(folder / "region2.hrc")}, "who", "value")
    mask = PPercent(p=15)(as_table(found)).mask
    assert assert_same_cells(found, mask, folder / "expected_Simple2D" / "Simple2D.txt") == 9


def test_activity_by_product_with_holdings_where_missing_is_safe(instances: Path) -> None:
    folder = instances / "tauargus" / "enterprise"
    records = fixed_width(
        folder / "example_enterprise.asc", who=(1, 9), act=(10, 2), product=(12, 2), value=(19, 8)
    ).with_columns(pl.col("value").str.strip_chars().cast(pl.Float64))
    products: dict[str, list[str]] = {code: [] for code in records["product"].unique().sort()}
    activities = ancestors(folder / "nace_divisions.hrc") | {"00": []}
    found = cells(records, {"act": activities, "product": products}, "who", "value")
    rule = Waiver(
        of=AnyOf(rules=(PPercent(p=10), ZeroCells(range_absolute=10))), cells=(found["act_code"] == "00").to_numpy()
    )
    assert assert_same_cells(found, rule(as_table(found)).mask, folder / "expected_test_1.txt") == 283
