"""Types 1, 2 and 3 of `<WRITETABLE>`: a release as a grid, or one line per cell.

What is withheld is `x`, what is empty is `-`, and nothing tells a sensitive cell from another, unless statuses are
asked for: then, as in τ-ARGUS, the true values are there too, and the file is confidential.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tablesafe.io.status import Argus
from tablesafe.io.tauargus_output import joined
from tablesafe.io.tauargus_write_layout import Layout, quoted
from tablesafe.io.tauargus_write_sheet import Sheet, response_name


def listed(sheet: Sheet, *, names: bool) -> str:
    layout, truth = sheet.layout(), sheet.tells_the_truth
    columns = layout.codes(quotes=sheet.options.QU)
    columns.append(layout.spread(sheet.true() if truth and sheet.how == "suppressed" else sheet.published()))
    if truth and sheet.how != "suppressed":
        columns.append(layout.spread(sheet.true()))
    if truth and sheet.how != "rounded":
        status = pl.Series(sheet.status).cast(pl.String)
        columns.append(layout.spread(status, absent=str(int(Argus.EMPTY))))
    first = ",".join(_first_line(sheet)) + "\n" if names else ""
    return first + joined(columns, ",")


def _first_line(sheet: Sheet) -> list[str]:
    response = response_name(sheet.problem)
    ending = {"rounded": "_Round", "adjusted": "_CTA"}.get(sheet.how, "")
    names = [*sheet.problem.table.dimensions, response + ending]
    if sheet.tells_the_truth:
        names += [] if sheet.how == "suppressed" else [f"{response}_Orig"]
        names += [] if sheet.how == "rounded" else ["Status"]
    return quoted(pl.Series(names, dtype=pl.String), "the first line", quotes=sheet.options.QU).to_list()


def status_notes(sheet: Sheet) -> list[str]:
    if sheet.tells_the_truth:
        return ["AS+: the file holds the status and the true value of every cell. It is not for publication."]
    return ["AS+: τ-ARGUS adds no status to perturbed values."] if sheet.options.AS else []


def grid(sheet: Sheet) -> str:
    """Rows and columns; of more than two dimensions, one block per combination of the codes of the first ones."""
    layout = Layout.of(sheet.problem.table, lines="grid", widths=sheet.widths)
    labels = [
        quoted(entries.names, name, quotes=sheet.options.QU).to_list()
        for name, entries in zip(sheet.problem.table.dimensions, layout.lists, strict=True)
    ]
    sizes = [len(codes) for codes in labels]
    shown = layout.spread(sheet.published())
    head = "," + ",".join(labels[-1]) + "\n"
    if len(sizes) == 1:
        return head + "," + ",".join(shown.to_list()) + "\n"
    columns = [shown.gather_every(sizes[-1], j).alias(str(j)) for j in range(sizes[-1])]
    rows = pl.Series(labels[-2] * (len(shown) // (sizes[-1] * sizes[-2])), dtype=pl.String)
    lines = joined([rows, *columns], ",").splitlines(keepends=True)
    blocks = []
    for i, start in enumerate(range(0, len(lines), sizes[-2])):
        above = np.unravel_index(i, sizes[:-2]) if len(sizes) > 2 else ()
        where = ", ".join(f"Var {d + 1},{labels[d][int(at)]}" for d, at in enumerate(above))
        blocks.append((where + "\n" if where else "") + head + "".join(lines[start : start + sizes[-2]]) + "\n")
    return "".join(blocks)
