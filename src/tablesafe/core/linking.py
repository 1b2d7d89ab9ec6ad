"""Several tables as one: cells that more than one of them shows are one cell."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.cube import TIE, tied
from tablesafe.core.equations import (
    Integers,
    Mask,
    ProductEquations,
    cell_keys,
    distinct_rows,
    equations_across_gaps,
    product_equations,
    rescaled,
)
from tablesafe.core.errors import InvalidTable
from tablesafe.core.hierarchy import Hierarchy, parse_equations
from tablesafe.core.table import RESPONSE, Contributors, Table
from tablesafe.core.totals import CERTAIN

__all__ = ["RESPONSE", "joined_as_they_are", "link"]

MOST_RESPONSES = 8
"""Response variables among which sums that nobody told of are looked for."""


def link(
    tables: Sequence[Table],
    *,
    equations: str | Iterable[str] | Mapping[str, Sequence[str]] | None = None,
    cube: Literal["tie", "ignore"] = "tie",
) -> Table:
    """Join tables into one: cells that several of them show are one cell.

    Tables may have different dimensions: one that a table lacks stands at its total there. Tables of different response
    variables get a further dimension, `response`; `equations` such as `"total = domestic + export"` tie them together.
    Equations that only the joined hierarchies imply (a region of one table as the sum of districts of another) hold
    for an attacker too, so they are added.

    Tables of the same records are margins of one cross-classification. Where its cells matter although no table shows
    them, they are added as unseen cells (see `Table.unseen`); with `cube="ignore"` they are not, and the audit says so.
    """
    if not tables:
        raise InvalidTable("There is no table to link.")
    if all(table.names is not None for table in tables):
        return _link_named(tables)
    joined = joined_as_they_are([_shown(table) for table in tables] if cube == TIE else tables, equations)
    return replace(tied(joined, cube=cube), library=tables[0].library)


def joined_as_they_are(
    tables: Sequence[Table], equations: str | Iterable[str] | Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Join tables into one with the unseen cells that they have, and no others."""
    if any(table.names is not None for table in tables):
        raise InvalidTable("Tables with dimensions and tables with named cells cannot be linked.")
    dimensions = _joint_dimensions(tables, equations)
    decimals = max(table.decimals for table in tables)
    codes = np.concatenate([_codes_in(table, dimensions) for table in tables])
    keys = cell_keys(codes, [len(h) for h in dimensions.values()])
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    cell_of = rank[inverse]
    where = first[order]
    unseen, where, cell_of = _unseen_last(tables, where, cell_of)
    integers = np.concatenate([_scaled(table, decimals) for table in tables])
    joined = Table(
        integers[where],
        decimals,
        sparse.csr_array((0, len(where)), dtype=np.int8),
        np.zeros(0, np.int64),
        dimensions,
        codes[where],
        response=tables[0].response,
        count=_joint_column([table.count for table in tables], where),
        holdings=_joint_column([table.holdings for table in tables], where),
        contributors=_joint_contributors(tables, where),
        structural_zero=_joint_column([table.structural_zero for table in tables], where),
        columns={
            name: column
            for name in tables[0].columns
            if (column := _joint_column([table.columns.get(name) for table in tables], where)) is not None
        },
        exact=all(table.exact for table in tables),
        signed=_joint_signs(tables, cell_of, len(where)),
        empty=_joint_empty(tables),
        computed=_joint_computed(tables, where),
        unseen=unseen,
        judged=unseen is not None and all(table.judged for table in tables if table.unseen is not None),
        apart=tuple(dict.fromkeys(each for table in tables for each in table.apart)),
    )
    _refuse_disagreement(joined, integers, cell_of, tables)
    own, own_totals = _stacked_equations(tables, cell_of, len(where))
    between = equations_across_gaps if unseen is None else product_equations  # tables of records lack no totals
    implied = between(joined.codes, list(dimensions.values()))
    holds = np.asarray(implied.equations.astype(np.int64) @ joined.integers) == 0
    matrix = sparse.vstack([own, implied.equations[holds]], format="csr").astype(np.int8)
    totals = np.concatenate([own_totals, implied.totals[holds]])
    keep = distinct_rows(matrix)
    table = replace(joined, equations=matrix[keep], totals=totals[keep])
    if equations is not None:
        _require_response_equations(table, dimensions, holds, implied)
    elif RESPONSE in dimensions:
        _tell_of_sums_between_responses(table)
    return table._balanced(0.0, "the linked tables")


def _shown(table: Table) -> Table:
    """The table without unseen cells: which ones matter depends on all linked tables."""
    if table.unseen is None:
        return replace(table, apart=())
    n = table.seen
    inner = np.diff(table.equations.tocsc()[:, n:].tocsr().indptr) > 0
    kept = table.contributors
    return replace(
        table, integers=table.integers[:n], codes=table.codes[:n], equations=table.equations[~inner][:, :n],
        totals=table.totals[~inner], count=None if table.count is None else table.count[:n],
        holdings=None if table.holdings is None else table.holdings[:n],
        contributors=None if kept is None else kept.take(np.arange(n)),
        structural_zero=None if table.structural_zero is None else table.structural_zero[:n],
        columns={name: column[:n] for name, column in table.columns.items()}, unseen=None, judged=False, apart=(),
        computed=None if table.computed is None else table.computed[:n],
    )  # fmt: skip


def _unseen_last(
    tables: Sequence[Table], where: NDArray[np.intp], cell_of: Integers
) -> tuple[Mask | None, NDArray[np.intp], Integers]:
    """Which joint cells no table shows, and the joint cells renumbered so that these come last."""
    if all(table.unseen is None for table in tables):
        return None, where, cell_of
    each = [np.zeros(len(table), np.bool_) if table.unseen is None else table.unseen for table in tables]
    unseen = np.ones(len(where), dtype=np.bool_)
    unseen[cell_of[~np.concatenate(each)]] = False
    order = np.argsort(unseen, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return unseen[order], where[order], rank[cell_of]


def _joint_dimensions(
    tables: Sequence[Table], equations: str | Iterable[str] | Mapping[str, Sequence[str]] | None
) -> dict[str, Hierarchy]:
    dimensions: dict[str, Hierarchy] = {}
    for table in tables:
        for name, hierarchy in table.dimensions.items():
            dimensions[name] = dimensions[name].merge(hierarchy) if name in dimensions else hierarchy
    responses = list(dict.fromkeys(table.response for table in tables))
    if equations is not None or len(responses) > 1:
        if equations is None:
            dimensions[RESPONSE] = Hierarchy.flat(responses, total=None, name="the response variables")
        else:
            parsed = parse_equations(equations, "the response equations")
            named = {code for e in parsed for code in (e.total, *e.parts)}
            lost = sorted(named - set(responses))
            if lost:
                raise InvalidTable(
                    f"The equations name response {lost[0]!r}, but the tables hold {', '.join(map(repr, responses))}."
                )
            dimensions[RESPONSE] = Hierarchy.from_equations(
                [str(e) for e in parsed], codes=responses, name="the response variables"
            )
    return dimensions


def _codes_in(table: Table, dimensions: Mapping[str, Hierarchy]) -> NDArray[np.int32]:
    """The codes of a table's cells in the joint dimensions; a dimension it lacks stands at its total."""
    out = np.empty((len(table), len(dimensions)), dtype=np.int32)
    own = list(table.dimensions)
    for j, (name, hierarchy) in enumerate(dimensions.items()):
        if name in table.dimensions:
            new = np.array([hierarchy.position(code) for code in table.dimensions[name].codes], dtype=np.int32)
            out[:, j] = new[table.codes[:, own.index(name)]]
        elif name == RESPONSE:
            out[:, j] = hierarchy.position(table.response)
        elif hierarchy.total is None:
            raise InvalidTable(
                f"A table without dimension {name!r} cannot be linked: {hierarchy.name} has no single total "
                f"({', '.join(map(repr, hierarchy.roots[:4]))}).",
                hint=f"add the total of {name!r} to its hierarchy.",
            )
        else:
            out[:, j] = hierarchy.position(hierarchy.total)
    return out


def _joint_column(columns: Sequence[NDArray[Any] | None], where: NDArray[np.intp]) -> NDArray[Any] | None:
    if any(column is None for column in columns):
        return None
    return np.concatenate([column for column in columns if column is not None])[where]


def _joint_computed(tables: Sequence[Table], where: NDArray[np.intp]) -> Mask | None:
    """Cells whose columns come from a total that was added up."""
    if all(table.computed is None for table in tables):
        return None
    masks = [np.zeros(len(table), np.bool_) if table.computed is None else table.computed for table in tables]
    return np.asarray(np.concatenate(masks)[where], np.bool_)


def _joint_empty(tables: Sequence[Table]) -> Literal["shown", "left out"] | None:
    """What became of empty combinations, where that is the same in all tables."""
    said = {table.empty for table in tables}
    return said.pop() if len(said) == 1 else None


def _joint_signs(tables: Sequence[Table], cell_of: Integers, n: int) -> Mask | None:
    """Cells whose contributions may be negative in one of the tables; None where none says more than its own values.

    Tables of one variable tell about each other: what has negative contributions in one has them in all.
    """
    responses = np.repeat([table.response for table in tables], [len(table) for table in tables])
    seen = np.concatenate([table.may_be_negative for table in tables])
    said = {t.response for t in tables if t.signed is not None}
    signed = np.zeros(n, dtype=np.bool_)
    for response in np.unique(responses):
        of = responses == response
        signed[cell_of[of]] |= bool(seen[of].any())
    several = len(np.unique(responses)) > 1
    return signed if said or several or bool(seen.any()) else None


def _joint_contributors(tables: Sequence[Table], where: NDArray[np.intp]) -> Contributors | None:
    kept = [table.contributors for table in tables]
    if any(k is None for k in kept):
        return None
    some = [k for k in kept if k is not None]
    sure = None if all(k.sure is None for k in some) else min(k.certain for k in some)
    depth = min(k.depth for k in some) if sure is None else max(k.depth for k in some)
    names, shift = _joint_identities(some)

    def fitted(array: NDArray[Any], fill: int) -> NDArray[Any]:
        more = max(depth - array.shape[1], 0)
        return np.pad(array[:, :depth], ((0, 0), (0, more)), constant_values=fill)

    identity = np.concatenate(
        [fitted(np.where(k.identity >= 0, s[k.identity], -1), -1) for k, s in zip(some, shift, strict=True)]
    )
    weighted = None
    if any(k.weighted is not None for k in some):
        weighted = np.concatenate([fitted(k.amount if k.weighted is None else k.weighted, 0) for k in some])[where]
    amount = np.concatenate([fitted(k.amount, 0) for k in some])
    return Contributors(amount[where], identity[where], weighted, names, sure)


def _joint_identities(some: Sequence[Contributors]) -> tuple[NDArray[Any] | None, list[Integers]]:
    """One numbering for the contributors of all tables: by name, or, without names, as numbered already."""
    if all(k.names is not None for k in some):
        every = np.unique(np.concatenate([np.asarray(k.names, dtype=str) for k in some]))
        return every, [np.searchsorted(every, np.asarray(k.names, dtype=str)) for k in some]
    top = max(int(k.identity.max(initial=-1)) for k in some) + 1
    return None, [np.arange(max(top, 1), dtype=np.int64)] * len(some)


def _refuse_disagreement(joined: Table, integers: Integers, cell_of: Integers, tables: Sequence[Table]) -> None:
    clash = np.flatnonzero(integers != joined.integers[cell_of])
    if clash.size:
        cell = int(cell_of[clash[0]])
        one, other = joined._show(int(joined.integers[cell])), joined._show(int(integers[clash[0]]))
        raise InvalidTable(
            f"Linked tables disagree on cell {joined.describe(cell)}: {one} in one, {other} in another.",
            hint="common cells must be equal; were the tables made from the same records?",
        )


def _stacked_equations(tables: Sequence[Table], cell_of: Integers, n: int) -> tuple[sparse.csr_array, Integers]:
    blocks, totals, offset = [], [], 0
    for table in tables:
        span = cell_of[offset : offset + len(table)]
        coo = table.equations.tocoo()
        blocks.append(sparse.csr_array((coo.data, (coo.row, span[coo.col])), shape=(coo.shape[0], n), dtype=np.int8))
        totals.append(span[table.totals])
        offset += len(table)
    return sparse.csr_array(sparse.vstack(blocks, format="csr")), np.concatenate(totals)


def _require_response_equations(
    table: Table, dimensions: Mapping[str, Hierarchy], holds: Mask, implied: ProductEquations
) -> None:
    """The user said these equations hold; one that does not is an error, not an equation to leave out."""
    names = list(dimensions)
    at = names.index(RESPONSE)
    totals = implied.totals[~holds]
    coo = implied.equations[~holds].tocoo()
    across = np.zeros(len(totals), dtype=np.bool_)
    across[coo.row[table.codes[coo.col, at] != table.codes[totals[coo.row], at]]] = True
    wrong = np.flatnonzero(~holds)[across]
    if wrong.size:
        residual = np.asarray(implied.equations.astype(np.int64) @ table.integers)
        whole = replace(table, equations=implied.equations, totals=implied.totals)
        raise whole._not_additive(wrong, residual, "the linked tables")


def _tell_of_sums_between_responses(table: Table) -> None:
    """Warn of a response that is the sum of others in every cell: readers see it, and the audit was not told."""
    at = list(table.dimensions).index(RESPONSE)
    responses = table.dimensions[RESPONSE].codes
    if not 3 <= len(responses) <= MOST_RESPONSES:
        return
    rest = np.delete(table.codes, at, axis=1)
    keys = cell_keys(rest, [len(tree) for name, tree in table.dimensions.items() if name != RESPONSE])
    _, place = np.unique(keys, return_inverse=True)
    values = np.zeros((len(responses), int(place.max(initial=-1)) + 1), dtype=np.int64)
    values[table.codes[:, at], place] = table.integers
    for total in range(len(responses)):
        others = [i for i in range(len(responses)) if i != total and values[i].any()]
        for parts in (p for size in range(2, len(others) + 1) for p in combinations(others, size)):
            sure = np.log2(1.0 + np.abs(values[total])).sum() >= CERTAIN
            if sure and bool((values[list(parts)].sum(axis=0) == values[total]).all()):
                equation = f"{responses[total]} = {' + '.join(responses[part] for part in parts)}"
                warnings.warn(
                    f"In every cell {equation}, but no equation says so: whoever sees the tables can subtract, and the "
                    f"audit does not.\n\nHint: equations=[{equation!r}]",
                    stacklevel=3,
                )
                return


def _link_named(tables: Sequence[Table]) -> Table:
    decimals = max(table.decimals for table in tables)
    names = np.concatenate([np.asarray(table.names, dtype=object) for table in tables])
    position: dict[str, int] = {}
    cell_of = np.array([position.setdefault(str(name), len(position)) for name in names], dtype=np.int64)
    where = np.full(len(position), -1, dtype=np.int64)
    where[cell_of[::-1]] = np.arange(len(names))[::-1]
    integers = np.concatenate([_scaled(table, decimals) for table in tables])
    own, totals = _stacked_equations(tables, cell_of, len(position))
    keep = distinct_rows(own)
    joined = Table(
        integers[where], decimals, own[keep], totals[keep], names=names[where],
        codes=np.zeros((len(position), 0), np.int32), response=tables[0].response,
        count=_joint_column([table.count for table in tables], where),
        signed=_joint_signs(tables, cell_of, len(position)),
        empty=_joint_empty(tables),
    )  # fmt: skip
    _refuse_disagreement(joined, integers, cell_of, tables)
    return joined._balanced(0.0, "the linked tables")


def _scaled(table: Table, decimals: int) -> Integers:
    return rescaled(table.integers, decimals - table.decimals)
