"""Types 4, 6 and 7 of `<WRITETABLE>`: what is passed on inside the office, or to Eurostat. Confidential.

Only the perturbed values of type 7 are for the public, unless the original ones are asked for beside them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats
from tablesafe.core.release import Status
from tablesafe.core.table import Table
from tablesafe.io.jj import jj_text
from tablesafe.io.status import sbs_flags
from tablesafe.io.tauargus_meta import Metadata, Role, Variable, metadata_text
from tablesafe.io.tauargus_output import joined
from tablesafe.io.tauargus_table import refuse_unwritable
from tablesafe.io.tauargus_write_layout import Layout
from tablesafe.io.tauargus_write_sheet import WITHHELD, Sheet, response_name
from tablesafe.io.tauargus_write_tab import described_dimensions, distinct
from tablesafe.io.text import with_decimals
from tablesafe.rules.contributions import SHADOW
from tablesafe.rules.linear import PQ, PPercent

# -- SBS ---------------------------------------------------------------------------------------------------------------


def sbs(sheet: Sheet) -> str:
    """`code[,level],…,value,count,flag[,share[,share]]`: empty cells are left out.

    The count is that of holdings where there are any. Of a cell that is sensitive by a rule on shares or by hand the
    largest contributor's percentage follows; with a p% rule that of the second too, otherwise that of both together.
    """
    table = sheet.problem.table
    lines = Layout.of(table, lines="cells", widths=sheet.widths)
    lines = lines.keep(~(sheet.empty | sheet.by_design)[lines.cell])
    columns: list[pl.Series] = []
    for code, level in zip(lines.codes(quotes=sheet.options.QU), lines.levels(), strict=True):
        columns += [code, level] if sheet.options.HL else [code]
    columns += [lines.spread(sheet.true()), lines.spread(_heads(table))]
    columns.append(lines.spread(_flags_with_shares(sheet)))
    return joined(columns, ",")


def _heads(table: Table) -> pl.Series:
    count = table.count if table.holdings is None else table.holdings
    return pl.Series([""] * len(table), dtype=pl.String) if count is None else pl.Series(count).cast(pl.String)


def _flags_with_shares(sheet: Sheet) -> pl.Series:
    flag = sbs_flags(sheet.problem, sheet.release)
    text = pl.Series(flag, dtype=pl.String)
    told = pl.Series(np.isin(flag, ["B", "C", "F"]))
    for share in _shares(sheet):
        text = text.zip_with(~told, text + "," + share)
    return text


def _shares(sheet: Sheet) -> list[pl.Series]:
    """What the largest hold of each cell, in percent; 0.0 where that is not known."""
    table = sheet.problem.table
    amount = np.zeros((len(table), 0)) if table.contributors is None else np.abs(table.contributors.amount)
    total = np.abs(np.asarray(table.columns.get(SHADOW, table.value), dtype=np.float64))
    first = amount[:, :1].sum(axis=1)
    if any(isinstance(rule, PPercent | PQ) for rule in sheet.problem.rules):
        parts = [first, amount[:, 1:2].sum(axis=1)]
    else:
        parts = [amount[:, :2].sum(axis=1)]
    share = [np.divide(100 * part, total, out=np.zeros_like(total), where=total > 0) for part in parts]
    return [with_decimals(np.round(each, 1), 1) for each in share]


# -- JJ and cell key ---------------------------------------------------------------------------------------------------


def jj(sheet: Sheet) -> str:
    """A JJ file of the problem, with the cells that the release withholds for others as suppressed."""
    others = np.isin(sheet.release.status, [Status.COMPLEMENTARY, Status.GIVEN])
    return jj_text(sheet.problem.replace(suppressed=sheet.problem.suppressed | others))


def cell_key(sheet: Sheet, name: str) -> dict[str, str]:
    """`code;…;value[;original][;difference]`, and the `.rda` that describes it."""
    table, path, lines = sheet.problem.table, Path(name), sheet.layout()
    refuse_unwritable(table, path)
    values = np.nan_to_num(sheet.release.values)
    response = response_name(sheet.problem)
    told: list[tuple[str, Floats]] = [(response, values)]
    told += [(f"{response}_Orig", table.value)] if sheet.options.AO else []
    told += [(f"{response}_Diff", values - table.value)] if sheet.options.AD else []
    columns = lines.codes(quotes=sheet.options.QU)
    hidden = pl.Series(sheet.release.suppressed)
    columns += [lines.spread(sheet.number(each).set(hidden, WITHHELD), absent="0") for _, each in told]
    names = distinct([each for each, _ in told], table)
    variables, described = described_dimensions(table.dimensions, path)
    variables += [Variable(name=each, role=Role.RESPONSE, decimals=table.decimals) for each in names]
    metadata = Metadata(variables=tuple(variables), kind="table", separator=";", path=path)
    return {name: joined(columns, ";"), path.with_suffix(".rda").name: metadata_text(metadata), **described}
