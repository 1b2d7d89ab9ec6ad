"""Records and columns as objects: the same as the keywords that stand for them, and each thing is said once."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

import numpy as np
import polars as pl
import pytest

import tablesafe as ts
from tablesafe.core.errors import InvalidOption
from tablesafe.tabulate.records_and_columns import OF_COLUMNS, OF_RECORDS, ShortForm

FIRMS = pl.DataFrame(
    {
        "region": list("aabbbNc"),
        "firm": list("1234556"),
        "group": [*"xxyyzz", None],
        "sales": [5.0, 7.0, 11.0, 2.0, 3.0, 1.0, 8.0],
        "staff": [1, 2, 3, 4, 5, 6, 7],
        "year": [1, 1, 1, 1, 1, 1, 2],
    }
)


def test_objects_and_keywords_make_the_same_table() -> None:
    records = ts.Records(FIRMS, where="year = 1", empty=("N",))
    columns = ts.Columns(value="sales", respondent="firm", holding="group", further=["staff"], negative="possible")
    made = ts.tabulate(records, columns=columns, dimensions=["region"], missing="drop", largest=2)
    short = ts.tabulate(
        FIRMS, where="year = 1", empty=("N",), value="sales", respondent="firm", holding="group", columns=["staff"],
        negative="possible", dimensions=["region"], missing="drop", largest=2,
    )  # fmt: skip
    assert made.cells().equals(short.cells())
    assert (made.columns["staff"] == short.columns["staff"]).all()
    assert made.value[made.index(region="Total")] == 5 + 7 + 11 + 2 + 3
    assert made.origin is not None
    assert short.origin is not None
    assert made.origin.options == short.origin.options
    again = made.origin.table(where=None, empty=())
    assert again.value[again.index(region="Total")] == FIRMS["sales"].sum()
    assert np.array_equal(made.origin.table().value, made.value)


def test_the_short_form_has_every_field_of_both_and_of_the_same_type() -> None:
    short = get_type_hints(ShortForm)
    assert set(short) == {*OF_RECORDS, *OF_COLUMNS}
    assert len(short) == len(OF_RECORDS) + len(OF_COLUMNS)
    for kind, names in ((ts.Records, OF_RECORDS), (ts.Columns, OF_COLUMNS)):
        own = get_type_hints(kind)
        assert {name: own[name] for name in names} == {name: short[name] for name in names}
        assert all(each.metadata.get("help") for each in fields(kind))


def test_nothing_is_said_twice_or_misspelt() -> None:
    with pytest.raises(InvalidOption, match=r"where is given beside a Records.*\n\nHint: Records\(…, where=…\)"):
        ts.tabulate(ts.Records(FIRMS), dimensions=["region"], where="year = 1")
    with pytest.raises(InvalidOption, match="value is given beside a Columns"):
        ts.tabulate(FIRMS, columns=ts.Columns(value="sales"), dimensions=["region"], value="sales")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'valeu'.*value"):
        ts.tabulate(FIRMS, dimensions=["region"], valeu="sales")  # type: ignore[call-arg]


def test_objects_are_checked_when_they_are_made() -> None:
    with pytest.raises(InvalidOption, match="engine must be"):
        ts.Records(FIRMS, engine="sparks")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="negative must be"):
        ts.Columns(negative="often")  # type: ignore[arg-type]
    for name in ("respondent", "holding", "request", "shadow"):
        with pytest.raises(InvalidOption, match="about single respondents"):
            ts.Columns(frequency="n", **{name: "firm"})
