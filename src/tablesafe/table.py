"""A table: cells as columns of arrays, and the equations between them as a sparse matrix.

Every value is a whole multiple of `10**-decimals`, so sums can be checked, and later proved, in exact integers: for any
table, `equations @ integers == 0` holds without a tolerance. Linked tables are one table: a cell that two of them
show is one cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.errors import InvalidTable
from tablesafe.files import LARGEST_EXACT, Source, read_source
from tablesafe.hierarchy import TOTAL, Hierarchy, parse_equations

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

RESPONSE = "response"
"""The dimension that tells several response variables of one table apart."""


@dataclass(frozen=True, eq=False)
class Contributors:
    """The largest contributors of each cell, after records of one respondent and respondents of one holding are merged.

    Row i belongs to cell i; columns go from the largest amount (in absolute value) down; unused places hold amount 0
    and identity −1.
    """

    amount: Floats = field(repr=False)
    """What the contributor itself reported: the unweighted sum of its records."""
    identity: Integers = field(repr=False)
    """The same number for the same contributor in every cell."""
    weighted: Floats | None = field(default=None, repr=False)
    """What the contributor adds to the published, weighted total; without weights the same as `amount`."""
    names: NDArray[Any] | None = field(default=None, repr=False)
    """The name behind each identity. A secret of the office."""

    @property
    def depth(self) -> int:
        """How many contributors are kept per cell."""
        return int(self.amount.shape[1])

    def take(self, cells: NDArray[Any]) -> Contributors:
        """The contributors of some cells, −1 for a cell that has none."""
        there = (cells >= 0)[:, None]
        return Contributors(
            np.where(there, self.amount[cells], 0.0),
            np.where(there, self.identity[cells], -1),
            None if self.weighted is None else np.where(there, self.weighted[cells], 0.0),
            self.names,
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Cells and the equations between them; `equations @ integers` is exactly zero."""

    integers: Integers = field(repr=False)
    """The values as whole numbers of `10**-decimals`."""
    decimals: int
    equations: sparse.csr_array = field(repr=False)
    """One row per equation: −1 at the total, +1 (or −1) at the parts."""
    totals: Integers = field(repr=False)
    """The cell that is the total of each equation."""
    dimensions: Mapping[str, Hierarchy] = field(default_factory=dict)
    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32), repr=False)
    """Position of each cell's code in each dimension's hierarchy."""
    names: NDArray[Any] | None = field(default=None, repr=False)
    """The cells' own names, in a table without dimensions."""
    response: str = "value"
    count: Integers | None = field(default=None, repr=False)
    """Respondents that contribute to each cell (records, when nobody told them apart)."""
    holdings: Integers | None = field(default=None, repr=False)
    """Holdings that contribute to each cell."""
    contributors: Contributors | None = field(default=None, repr=False)
    structural_zero: Mask | None = field(default=None, repr=False)
    """Cells that are zero by definition, as everyone knows."""
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """Further columns by name: shadow and cost variables, standard errors, request flags."""
    exact: bool = True
    """False when the values as given had too many decimals and were rounded to `decimals`."""

    # -- how to build one ------------------------------------------------------------------------------------------

    @classmethod
    def from_cells(
        cls,
        source: Any,
        *,
        dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
        value: str = "value",
        count: str | None = None,
        holdings: str | None = None,
        largest: Sequence[str] = (),
        identity: Sequence[str] = (),
        structural_zero: str | None = None,
        columns: Sequence[str] = (),
        missing_totals: Literal["error", "compute", "ignore"] = "error",
        total: str = TOTAL,
        tolerance: float = 0.0,
        response: str | None = None,
    ) -> Self:
        """Build a table from one row per cell: a CSV or Parquet file, or a pandas, polars or Arrow frame.

        A dimension without a hierarchy is flat: all its codes add up to `total`. Rows that are absent are empty cells.
        `missing_totals="compute"` adds totals that are absent; `"ignore"` leaves out equations without a total. Totals
        off by no more than `tolerance` are replaced by the sum of their parts. `largest` names the columns with the
        largest contributions, `identity` those with their contributors.
        """
        read = read_source(source)
        hierarchies = _flat_where_missing(read, dimensions, total, missing_totals)
        codes = np.column_stack([h.locate(read, d, dimension=d) for d, h in hierarchies.items()])
        values = read.numbers(value)
        keep, codes = _merge_aliases(read, codes, values, hierarchies, value)
        extra = {name: read.numbers(name, missing=0.0)[keep] for name in columns}
        counts = _whole(read, count)
        held = _whole(read, holdings)
        contributors = _read_contributors(read, largest, identity)
        zero = None if structural_zero is None else read.numbers(structural_zero, missing=0.0) != 0
        given = cls._assemble(
            codes,
            values[keep],
            hierarchies,
            count=None if counts is None else counts[keep],
            holdings=None if held is None else held[keep],
            contributors=None if contributors is None else contributors.take(keep),
            structural_zero=None if zero is None else zero[keep],
            columns=extra,
            response=response or value,
        )
        if missing_totals == "compute":
            given = given._with_missing_totals()
        return given._connected(tolerance=tolerance, ignore_missing=missing_totals == "ignore", source=read.name)

    @classmethod
    def from_codes(
        cls,
        codes: NDArray[np.int32],
        values: Floats,
        dimensions: Mapping[str, Hierarchy],
        *,
        count: Integers | None = None,
        holdings: Integers | None = None,
        contributors: Contributors | None = None,
        structural_zero: Mask | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        response: str = "value",
        decimals: int | None = None,
        tolerance: float = 0.0,
        ignore_missing: bool = False,
        source: str = "the table",
    ) -> Self:
        """Build a table from arrays: one row of code positions, and one value, per cell."""
        given = cls._assemble(
            codes,
            values,
            dimensions,
            count=count,
            holdings=holdings,
            contributors=contributors,
            structural_zero=structural_zero,
            columns=columns or {},
            response=response,
            decimals=decimals,
        )
        return given._connected(tolerance=tolerance, ignore_missing=ignore_missing, source=source)

    @classmethod
    def from_equations(
        cls,
        equations: Any,
        values: Mapping[str, float] | Floats,
        *,
        totals: Integers | None = None,
        names: Sequence[str] | None = None,
        count: Integers | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        tolerance: float = 0.0,
        response: str = "value",
    ) -> Self:
        """Build a table of any structure: named cells and equations such as `"total = men + women"`.

        `equations` may also be a sparse matrix with one row per equation and one column per value.
        """
        if isinstance(values, Mapping):
            names = list(values) if names is None else names
            values = np.array([values[name] for name in names], dtype=np.float64)
        values = np.asarray(values, dtype=np.float64)
        labels = np.array([str(i) for i in range(len(values))] if names is None else list(names), dtype=object)
        if len(labels) != len(values):
            raise InvalidTable(f"There are {len(values)} values but {len(labels)} names.")
        _refuse_bad_values(values, labels)
        if sparse.issparse(equations):
            matrix = sparse.csr_array(equations).astype(np.int8)
            if totals is None:
                totals = _negative_member(matrix)
        else:
            matrix, totals = _matrix_of_named(equations, labels)
        integers, decimals, exact = to_integers(values)
        table = cls(
            integers, decimals, matrix, np.asarray(totals, dtype=np.int64), names=labels, count=count,
            columns=dict(columns or {}), response=response, codes=np.zeros((len(values), 0), np.int32), exact=exact,
        )  # fmt: skip
        return table._balanced(tolerance, "the table")

    @classmethod
    def _assemble(
        cls,
        codes: NDArray[np.int32],
        values: Floats,
        dimensions: Mapping[str, Hierarchy],
        *,
        count: Integers | None,
        holdings: Integers | None,
        contributors: Contributors | None,
        structural_zero: Mask | None,
        columns: Mapping[str, NDArray[Any]],
        response: str,
        decimals: int | None = None,
    ) -> Self:
        """A table without its equations."""
        integers, decimals, exact = to_integers(values, decimals)
        none = sparse.csr_array((0, len(integers)), dtype=np.int8)
        return cls(
            integers, decimals, none, np.zeros(0, np.int64), dict(dimensions), np.ascontiguousarray(codes), None,
            response, count, holdings, contributors, structural_zero, dict(columns), exact,
        )  # fmt: skip

    def _connected(self, *, tolerance: float, ignore_missing: bool, source: str) -> Self:
        """Add the equations that the hierarchies imply, and check them."""
        keys = cell_keys(self.codes, self._sizes())
        order = np.argsort(keys, kind="stable")
        same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        if same.size:
            cell = int(order[same[0] + 1])
            raise InvalidTable(
                f"Cell {self.describe(cell)} stands twice in {source} (rows {int(order[same[0]]) + 1} and {cell + 1}).\n\n"
                f"Hint: remove one of the two, or add up the rows first."
            )
        product = product_equations(self.codes, list(self.dimensions.values()))
        if product.orphan_cell is not None and not ignore_missing:
            dimension = list(self.dimensions)[product.orphan_dimension]
            raise InvalidTable(
                f"Cell {self.describe(product.orphan_cell)} is part of {product.orphan_total!r} of {dimension!r}, "
                f"but {source} has no row for that total.\n\n"
                f"Hint: add the row, or pass missing_totals='compute' to add up what is missing."
            )
        table = replace(self, equations=product.equations, totals=product.totals)
        return table._balanced(tolerance, source)

    def _balanced(self, tolerance: float, source: str) -> Self:
        """Check that everything adds up; replace totals that are off by no more than the tolerance allows."""
        residual = self.residual()
        bad = np.flatnonzero(residual)
        if not bad.size:
            return self
        width = np.diff(self.equations.indptr)
        scale = np.abs(self.integers[self.totals[bad]]) * 2.0**-48
        rounding = np.zeros(bad.size) if self.exact else width[bad] / 2 + scale
        allowed = np.maximum(tolerance * 10.0**self.decimals, rounding)
        wrong = bad[np.abs(residual[bad]) > allowed]
        if wrong.size:
            raise InvalidTable(self._not_additive(wrong, residual, source))
        integers = self._recomputed_totals()
        table = replace(self, integers=integers)
        left = np.flatnonzero(table.residual())
        if left.size:
            raise InvalidTable(
                table._not_additive(left, table.residual(), source)
                + "\nIts totals were recomputed within the tolerance, and no longer agree with each other."
            )
        if tolerance > 0 and bool((np.abs(residual[bad]) > rounding).any()):
            moved = int((integers != self.integers).sum())
            warnings.warn(
                f"{source}: {moved:,} totals were off within the tolerance and were recomputed.", stacklevel=3
            )
        return table

    def _recomputed_totals(self) -> Integers:
        """Every total as the sum of its parts, bottom up; cells that are no total stay."""
        first = np.full(len(self), -1, dtype=np.int64)
        rows = np.arange(len(self.totals))[::-1]
        first[self.totals[rows]] = rows
        is_total = first >= 0
        chosen = self.equations[first[is_total]].astype(np.int64)
        own = sparse.csr_array(
            (np.ones(int(is_total.sum()), np.int64), (np.arange(int(is_total.sum())), np.flatnonzero(is_total))),
            shape=chosen.shape,
        )
        parts = chosen + own
        integers = self.integers.copy()
        for _ in range(200):
            new = parts @ integers
            if (new == integers[is_total]).all():
                break
            integers[is_total] = new
        return integers

    def _with_missing_totals(self) -> Self:
        """Add every cell that the leaves of the hierarchies imply and that is not there."""
        codes, columns = roll_up(
            self.codes,
            list(self.dimensions.values()),
            {
                "value": self.integers,
                **({} if self.count is None else {"count": self.count}),
                **({} if self.holdings is None else {"holdings": self.holdings}),
                **{f"column {name}": column for name, column in self.columns.items()},
            },
        )
        have = cell_keys(self.codes, self._sizes())
        all_keys = cell_keys(codes, self._sizes())
        new = ~np.isin(all_keys, have)

        def extended(old: NDArray[Any], name: str) -> NDArray[Any]:
            return np.concatenate([old, columns[name][new].astype(old.dtype)])

        return replace(
            self,
            integers=extended(self.integers, "value"),
            equations=sparse.csr_array((0, len(self) + int(new.sum())), dtype=np.int8),
            codes=np.concatenate([self.codes, codes[new]]),
            count=None if self.count is None else extended(self.count, "count"),
            holdings=None if self.holdings is None else extended(self.holdings, "holdings"),
            contributors=self._no_contributors_of_new(int(new.sum())),
            structural_zero=None
            if self.structural_zero is None
            else np.concatenate([self.structural_zero, np.zeros(int(new.sum()), np.bool_)]),
            columns={name: extended(column, f"column {name}") for name, column in self.columns.items()},
        )

    def _no_contributors_of_new(self, new: int) -> Contributors | None:
        if self.contributors is None:
            return None
        if new:
            raise InvalidTable(
                "The largest contributors of missing totals cannot be computed from the cells.\n\n"
                "Hint: give all totals, or tabulate from microdata."
            )
        return self.contributors

    # -- what it knows ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.integers)

    @cached_property
    def value(self) -> Floats:
        """The value of each cell."""
        return self.integers / 10.0**self.decimals

    def residual(self) -> Integers:
        """By how much each equation fails, in units of `10**-decimals`; zero in every finished table."""
        return np.asarray(self.equations.astype(np.int64) @ self.integers)

    def largest(self, k: int) -> Floats:
        """The k largest contributions of each cell, largest first, as the contributors themselves reported them."""
        return self._contributions(k).amount[:, :k]

    def _contributions(self, k: int) -> Contributors:
        if self.contributors is None or self.contributors.depth < k:
            have = 0 if self.contributors is None else self.contributors.depth
            raise InvalidTable(
                f"This needs the {k} largest contributors of each cell, but the table keeps {have}.\n\n"
                f"Hint: tabulate with largest={k}, or name the columns that hold them."
            )
        return self.contributors

    def _sizes(self) -> list[int]:
        return [len(hierarchy) for hierarchy in self.dimensions.values()]

    def describe(self, cell: int) -> str:
        """Name a cell in the user's own codes."""
        if self.names is not None:
            return repr(str(self.names[cell]))
        parts = [f"{d}={h.codes[c]}" for (d, h), c in zip(self.dimensions.items(), self.codes[cell], strict=True)]
        return f"({', '.join(parts)})"

    def describe_equation(self, row: int) -> str:
        """Spell out an equation in the user's own codes."""
        span = slice(self.equations.indptr[row], self.equations.indptr[row + 1])
        total = int(self.totals[row])
        parts = [
            (c, s) for c, s in zip(self.equations.indices[span], self.equations.data[span], strict=True) if c != total
        ]
        text = " ".join(f"{'+' if sign > 0 else '-'} {self.describe(int(cell))}" for cell, sign in parts)
        return f"{self.describe(total)} = {text.removeprefix('+ ')}"

    def index(self, **codes: str) -> int:
        """The number of the cell with these codes; a dimension left out means its total."""
        wanted = []
        for dimension, hierarchy in self.dimensions.items():
            code = codes.pop(dimension, None) or hierarchy.total
            if code is None:
                raise InvalidTable(f"Dimension {dimension!r} has no single total: say which code is meant.")
            wanted.append(hierarchy.position(str(code)))
        if codes:
            raise InvalidTable(f"There is no dimension {next(iter(codes))!r}; there are {', '.join(self.dimensions)}.")
        found = np.flatnonzero((self.codes == np.array(wanted, dtype=np.int32)).all(axis=1))
        if not found.size:
            raise InvalidTable(f"The table has no cell with codes {wanted!r}: it is empty or was left out.")
        return int(found[0])

    def cells(self) -> pl.DataFrame:
        """One row per cell: its codes, value, count and further columns. Confidential."""
        data: dict[str, Any] = dict(self.code_columns())
        data[self.response if self.response not in data else "value"] = self.value
        if self.count is not None:
            data["count"] = self.count
        if self.holdings is not None:
            data["holdings"] = self.holdings
        for name, column in self.columns.items():
            data.setdefault(name, column)
        return pl.DataFrame(data)

    def code_columns(self) -> dict[str, pl.Series]:
        """The cells' codes as text, one column per dimension (or their names)."""
        if self.names is not None:
            return {"cell": pl.Series("cell", self.names, dtype=pl.String)}
        return {
            dimension: pl.Series(dimension, hierarchy.codes, dtype=pl.String).gather(self.codes[:, d].astype(np.uint32))
            for d, (dimension, hierarchy) in enumerate(self.dimensions.items())
        }

    @cached_property
    def is_total(self) -> Mask:
        """Which cells are the total of an equation."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[self.totals] = True
        return mask

    def _not_additive(self, wrong: NDArray[Any], residual: Integers, source: str) -> str:
        lines = []
        for row in wrong[:3].tolist():
            total = int(self.totals[row])
            value, difference = int(self.integers[total]), int(residual[row])
            lines.append(
                f"{self.describe(total)} is {self._show(value)} but its parts add up to {self._show(value + difference)} "
                f"(difference {self._show(abs(difference))})."
            )
        more = f"\nand {wrong.size - 3:,} more equations of {source}." if wrong.size > 3 else ""
        largest = int(np.abs(residual[wrong]).max())
        return (
            "\n".join(lines)
            + more
            + f"\n\nHint: correct {source}, or pass tolerance={self._show(largest).replace(',', '')}"
            " to accept such differences and recompute the totals."
        )

    def _show(self, integer: int) -> str:
        return f"{integer / 10**self.decimals:,.{self.decimals}f}" if self.decimals else f"{integer:,}"


def link(
    tables: Sequence[Table], *, equations: str | Iterable[str] | Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Join tables into one: cells that several of them show are one cell.

    Tables may have different dimensions: one that a table lacks stands at its total there. Tables of different response
    variables get a further dimension, `response`; `equations` such as `"total = domestic + export"` tie them together.
    Equations that only the joined hierarchies imply (a region of one table as the sum of districts of another) hold
    for an attacker too, so they are added.
    """
    if not tables:
        raise InvalidTable("There is no table to link.")
    if all(table.names is not None for table in tables):
        return _link_named(tables)
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
    )
    _refuse_disagreement(joined, integers, cell_of, tables)
    own, own_totals = _stacked_equations(tables, cell_of, len(where))
    implied = product_equations(joined.codes, list(dimensions.values()))
    holds = np.asarray(implied.equations.astype(np.int64) @ joined.integers) == 0
    matrix = sparse.vstack([own, implied.equations[holds]], format="csr").astype(np.int8)
    totals = np.concatenate([own_totals, implied.totals[holds]])
    keep = distinct_rows(matrix)
    table = replace(joined, equations=matrix[keep], totals=totals[keep])
    if equations is not None:
        _require_response_equations(table, dimensions, holds, implied)
    return table._balanced(0.0, "the linked tables")


def to_integers(values: Floats, decimals: int | None = None) -> tuple[Integers, int, bool]:
    """Scale values to whole numbers: as few decimals as hold them all, or as many as floats can add exactly.

    Returns the integers, the decimals, and whether nothing was rounded beyond the noise of floating point.
    """
    values = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    room = 15 if largest == 0 else int(np.floor(np.log10(LARGEST_EXACT / 8 / max(largest, 1e-300))))
    if decimals is None:
        for d in range(min(room, 9) + 1):
            rounded = np.round(values, d)
            if bool((np.abs(values - rounded) <= 3.6e-15 * np.abs(values)).all()):
                return np.rint(rounded * 10.0**d).astype(np.int64), d, True
        decimals = max(0, min(room, 15))
    if decimals > room:
        raise InvalidTable(
            f"Values up to {largest:,.0f} with {decimals} decimals are too large to add exactly.\n\n"
            f"Hint: use a larger unit (thousands, millions)."
        )
    integers = np.rint(values * 10.0**decimals)
    exact = bool((np.abs(values * 10.0**decimals - integers) <= 1e-6).all())
    return integers.astype(np.int64), decimals, exact


@dataclass(frozen=True, slots=True)
class ProductEquations:
    """The equations of cells in a product of hierarchies, and the first cell whose total is missing."""

    equations: sparse.csr_array
    totals: Integers
    orphan_cell: int | None = None
    orphan_total: str = ""
    orphan_dimension: int = 0


def product_equations(codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy]) -> ProductEquations:
    """Every equation of every hierarchy, at every combination of codes of the other dimensions that has cells.

    A part without a cell is empty and left out; a total without any part is simply not broken down there.
    """
    n, sizes = len(codes), [len(h) for h in hierarchies]
    blocks: list[sparse.csr_array] = []
    totals: list[Integers] = []
    orphan: tuple[int, str, int] | None = None
    for d, hierarchy in enumerate(hierarchies):
        if hierarchy.equations.shape[0] == 0:
            continue
        by_code = hierarchy.equations.tocsc()
        per_cell = np.diff(by_code.indptr)[codes[:, d]]
        cell = np.repeat(np.arange(n, dtype=np.int64), per_cell)
        start = np.repeat(by_code.indptr[codes[:, d]] - (np.cumsum(per_cell) - per_cell), per_cell)
        entry = start + np.arange(len(cell))
        equation, sign = by_code.indices[entry], by_code.data[entry]
        rest = cell_keys(np.delete(codes, d, axis=1), sizes[:d] + sizes[d + 1 :])
        if rest.size and int(rest.max()) > (2**62) // hierarchy.equations.shape[0]:
            rest = np.unique(rest, return_inverse=True)[1]
        key = rest[cell] * hierarchy.equations.shape[0] + equation
        _, row = np.unique(key, return_inverse=True)
        rows = int(row.max(initial=-1)) + 1
        is_total = hierarchy.totals[equation] == codes[cell, d]
        total = np.full(rows, -1, dtype=np.int64)
        total[row[is_total]] = cell[is_total]
        parts = np.bincount(row[~is_total], minlength=rows)
        lost = np.flatnonzero((total < 0) & (parts > 0))
        if lost.size and orphan is None:
            at = int(np.flatnonzero(row == lost[0])[0])
            orphan = (int(cell[at]), hierarchy.codes[int(hierarchy.totals[equation[at]])], d)
        keep = (total >= 0) & (parts > 0)
        renumber = np.cumsum(keep) - 1
        used = keep[row]
        blocks.append(
            sparse.csr_array(
                (sign[used].astype(np.int8), (renumber[row[used]], cell[used])),
                shape=(int(keep.sum()), n),
                dtype=np.int8,
            )
        )
        totals.append(total[keep])
    if not blocks:
        return ProductEquations(sparse.csr_array((0, n), dtype=np.int8), np.zeros(0, np.int64))
    matrix = sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
    return ProductEquations(sparse.csr_array(matrix), np.concatenate(totals), *(orphan or ()))


def cell_keys(codes: NDArray[np.int32], sizes: Sequence[int]) -> Integers:
    """One number per combination of codes, equal exactly when the codes are."""
    key = np.zeros(len(codes), dtype=np.int64)
    span = 1
    for d, size in enumerate(sizes):
        if span * size >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            span = int(key.max(initial=0)) + 1
        key = key * size + codes[:, d]
        span *= size
    return key


def roll_up(
    codes: NDArray[np.int32], hierarchies: Sequence[Hierarchy], columns: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int32], dict[str, NDArray[Any]]]:
    """Add up the leaf cells into every cell that has any: dimension by dimension, all in arrays."""
    leaf = np.ones(len(codes), dtype=np.bool_)
    for d, hierarchy in enumerate(hierarchies):
        leaf &= ~hierarchy.is_total[codes[:, d]]
    codes, sums = codes[leaf], {name: column[leaf] for name, column in columns.items()}
    sizes = [len(h) for h in hierarchies]
    for d, hierarchy in enumerate(hierarchies):
        up = hierarchy.leaf_matrix.T.tocsr()
        column_of_leaf = np.full(len(hierarchy), -1, dtype=np.int64)
        column_of_leaf[~hierarchy.is_total] = np.arange(up.shape[0])
        leaves = column_of_leaf[codes[:, d]]
        per_cell = np.diff(up.indptr)[leaves]
        cell = np.repeat(np.arange(len(codes)), per_cell)
        start = np.repeat(up.indptr[leaves] - (np.cumsum(per_cell) - per_cell), per_cell)
        entry = start + np.arange(len(cell))
        wide = codes[cell]
        wide[:, d] = up.indices[entry]
        times = up.data[entry]
        _, first, group = np.unique(cell_keys(wide, sizes), return_index=True, return_inverse=True)
        sums = {name: _grouped_sum(column[cell] * times, group, len(first)) for name, column in sums.items()}
        codes = wide[first]
    return codes, sums


def distinct_rows(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """The first of each set of equal rows, in order; by two independent 64-bit hashes."""
    random = np.random.default_rng(20240229)
    weights = random.integers(1, 2**62, size=(matrix.shape[1], 2), dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes = np.column_stack([matrix.astype(np.int64) @ weights[:, 0], matrix.astype(np.int64) @ weights[:, 1]])
    _, first = np.unique(hashes, axis=0, return_index=True)
    return np.sort(first)


def _grouped_sum(values: NDArray[Any], group: Integers, n: int) -> NDArray[Any]:
    if np.issubdtype(values.dtype, np.integer):
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(n))
        return np.add.reduceat(values[order], starts) if n else values[:0]
    return np.bincount(group, weights=values, minlength=n)


def _flat_where_missing(
    source: Source,
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
    total: str,
    missing_totals: str,
) -> dict[str, Hierarchy]:
    if not isinstance(dimensions, Mapping):
        dimensions = dict.fromkeys(dimensions)
    if not dimensions:
        raise InvalidTable("A table needs at least one dimension.\n\nHint: dimensions={'region': None}")
    out: dict[str, Hierarchy] = {}
    for name, hierarchy in dimensions.items():
        source.require(name)
        if hierarchy is None:
            codes = source.text(name).drop_nulls().unique(maintain_order=True).to_list()
            has_total = total in codes or missing_totals == "compute"
            parts = [code for code in codes if code != total]
            hierarchy = Hierarchy.flat(
                parts or codes, total=total if has_total and parts else None, name=f"dimension {name!r}"
            )
        out[name] = hierarchy
    return out


def _merge_aliases(
    source: Source, codes: NDArray[np.int32], values: Floats, hierarchies: Mapping[str, Hierarchy], value: str
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Rows to keep: a cell given under both names of a code is one cell, if both rows agree."""
    if not any(h.aliases for h in hierarchies.values()):
        return np.arange(len(codes)), codes
    texts = [source.text(d, strip=True).to_list() for d in hierarchies]
    canonical = np.ones(len(codes), dtype=np.bool_)
    for d, hierarchy in enumerate(hierarchies.values()):
        names = pl.Series(hierarchy.codes, dtype=pl.String).str.strip_chars().gather(codes[:, d].astype(np.uint32))
        canonical &= (pl.Series(texts[d], dtype=pl.String) == names).fill_null(False).to_numpy()
    keys = cell_keys(codes, [len(h) for h in hierarchies.values()])
    order = np.lexsort((np.arange(len(codes)), ~canonical, keys))
    sorted_keys = keys[order]
    repeated = np.concatenate([[False], sorted_keys[1:] == sorted_keys[:-1]]) & ~canonical[order]
    leader = order[np.maximum.accumulate(np.where(~repeated, np.arange(len(order)), 0))]
    clash = repeated & (values[order] != values[leader])
    if clash.any():
        at = int(np.flatnonzero(clash)[0])
        one, other = int(leader[at]), int(order[at])
        raise InvalidTable(
            f"{source.where(one)} and {source.where(other)} are the same cell under two names "
            f"(a code with a single part), but their {value!r} differ.\n\nHint: correct one of them."
        )
    keep = np.sort(order[~repeated])
    return keep, codes[keep]


def _whole(source: Source, column: str | None) -> Integers | None:
    if column is None:
        return None
    numbers = source.numbers(column, missing=0.0)
    bad = np.flatnonzero((numbers < 0) | (numbers != np.floor(numbers)))
    if bad.size:
        raise InvalidTable(
            f"Column {column!r} should hold whole numbers of 0 or more, but {source.where(int(bad[0]))} has "
            f"{numbers[bad[0]]:g}.\n\nHint: a count is the number of contributors, not a weighted sum."
        )
    return numbers.astype(np.int64)


def _read_contributors(source: Source, largest: Sequence[str], identity: Sequence[str]) -> Contributors | None:
    if not largest:
        return None
    if identity and len(identity) != len(largest):
        raise InvalidTable(f"There are {len(largest)} columns of largest amounts but {len(identity)} of identities.")
    amount = np.column_stack([source.numbers(column, missing=0.0) for column in largest])
    if bool((np.abs(amount[:, 1:]) > np.abs(amount[:, :-1])).any()):
        row = int(np.flatnonzero((np.abs(amount[:, 1:]) > np.abs(amount[:, :-1])).any(axis=1))[0])
        raise InvalidTable(
            f"The largest contributions at {source.where(row)} are not in descending order.\n\n"
            f"Hint: name the columns from the largest down: largest=['max1', 'max2']."
        )
    if not identity:
        return Contributors(amount, np.full(amount.shape, -1, dtype=np.int64))
    text = pl.concat([source.text(column).alias("name") for column in identity])
    names = text.drop_nulls().unique().sort()
    numbers = text.to_frame().join(names.to_frame().with_row_index("id"), on="name", how="left", maintain_order="left")
    ids = numbers["id"].cast(pl.Int64).fill_null(-1).to_numpy().reshape(len(identity), -1).T
    return Contributors(amount, np.ascontiguousarray(ids), names=names.to_numpy())


def _refuse_bad_values(values: Floats, names: NDArray[Any]) -> None:
    bad = np.flatnonzero(~(np.abs(values) < LARGEST_EXACT))
    if bad.size:
        raise InvalidTable(f"The value of {str(names[bad[0]])!r} is not a number that can be added exactly.")


def _negative_member(matrix: sparse.csr_array) -> Integers:
    """The total of each row: the only −1, or the first."""
    coo = matrix.tocoo()
    total = np.full(matrix.shape[0], -1, dtype=np.int64)
    negative = coo.data < 0
    rows, columns = coo.row[negative][::-1], coo.col[negative][::-1]
    total[rows] = columns
    if (total < 0).any():
        row = int(np.flatnonzero(total < 0)[0])
        raise InvalidTable(f"Equation {row + 1} has no total: one of its coefficients must be −1.")
    return total


def _matrix_of_named(equations: Any, labels: NDArray[Any]) -> tuple[sparse.csr_array, Integers]:
    parsed = parse_equations(equations, "the equations")
    position = {str(name): i for i, name in enumerate(labels)}
    rows, columns, data, totals = [], [], [], []
    for row, equation in enumerate(parsed):
        for code, sign in zip((equation.total, *equation.parts), (-1, *equation.signs), strict=True):
            if code not in position:
                raise InvalidTable(f"Equation '{equation}' names {code!r}, which has no value.")
            rows.append(row)
            columns.append(position[code])
            data.append(sign)
        totals.append(position[equation.total])
    matrix = sparse.csr_array((np.array(data, np.int8), (rows, columns)), shape=(len(parsed), len(labels)))
    return matrix, np.array(totals, dtype=np.int64)


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
                f"({', '.join(map(repr, hierarchy.roots[:4]))}).\n\nHint: add the total of {name!r} to its hierarchy."
            )
        else:
            out[:, j] = hierarchy.position(hierarchy.total)
    return out


def _scaled(table: Table, decimals: int) -> Integers:
    return table.integers * 10 ** (decimals - table.decimals)


def _joint_column(columns: Sequence[NDArray[Any] | None], where: NDArray[np.intp]) -> NDArray[Any] | None:
    if any(column is None for column in columns):
        return None
    return np.concatenate([column for column in columns if column is not None])[where]


def _joint_contributors(tables: Sequence[Table], where: NDArray[np.intp]) -> Contributors | None:
    kept = [table.contributors for table in tables]
    if any(k is None for k in kept):
        return None
    some = [k for k in kept if k is not None]
    depth = min(k.depth for k in some)
    names, shift = _joint_identities(some)
    identity = np.concatenate(
        [np.where(k.identity >= 0, s[k.identity], -1)[:, :depth] for k, s in zip(some, shift, strict=True)]
    )
    weighted = None
    if any(k.weighted is not None for k in some):
        weighted = np.concatenate([(k.amount if k.weighted is None else k.weighted)[:, :depth] for k in some])[where]
    amount = np.concatenate([k.amount[:, :depth] for k in some])
    return Contributors(amount[where], identity[where], weighted, names)


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
            f"Linked tables disagree on cell {joined.describe(cell)}: {one} in one, {other} in another.\n\n"
            f"Hint: common cells must be equal; were the tables made from the same records?"
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
        raise InvalidTable(whole._not_additive(wrong, residual, "the linked tables"))


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
    )  # fmt: skip
    _refuse_disagreement(joined, integers, cell_of, tables)
    return joined._balanced(0.0, "the linked tables")
