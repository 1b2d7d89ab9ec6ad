"""A table: cells as columns of arrays, and the equations between them as a sparse matrix.

Every value is a whole multiple of `10**-decimals`, so sums can be checked, and later proved, in exact integers: for any
table, `equations @ integers == 0` holds without a tolerance. Linked tables are one table: a cell that two of them
show is one cell.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Integers, Mask, cell_keys, equations_across_gaps, roll_up, to_integers
from tablesafe.core.errors import InvalidOption, InvalidTable, Setting, and_more
from tablesafe.core.hierarchy import TOTAL, Hierarchy, parse_equations, require_hierarchies
from tablesafe.core.language import Text, joined, text
from tablesafe.core.totals import Shown, flat_dimension
from tablesafe.files.native import Library, library_of, long_form, to_library
from tablesafe.files.read import LARGEST_EXACT, Source, read_source

if TYPE_CHECKING:
    from scipy import sparse

RESPONSE = "response"
"""The dimension that tells several response variables of one table apart."""

MISSING_TOTALS = ("error", "compute", "none")
ROUNDED = 0.01
"""Share of a total by which it may be off through rounding; more is a mistake, and no tolerance is advised for it."""
CLOSE = 1e-9
"""Share of a value by which contributions may miss it through the noise of sums."""
SEVERAL_LEVELS = 1.2
"""How many times a total its parts must be before they seem to be of several levels, and not just a little off."""
SHOWN_ALONE = 5
"""How many of the cells that are part of no sum are named."""

Negative = Literal["auto", "possible", "never"]
"""Whether contributions may be negative: as the data show, whatever they show, or by nature not."""


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
    sure: int | None = None
    """How many of the largest are kept for certain, by what they reported and by what they add, where these differ:
    with weights. Between the others there may be some who are not kept. None: all places are certain."""

    @property
    def depth(self) -> int:
        """How many contributors are kept per cell."""
        return int(self.amount.shape[1])

    @property
    def certain(self) -> int:
        """How many of the largest contributors of each cell are kept for certain."""
        return self.depth if self.sure is None else self.sure

    def take(self, cells: NDArray[Any]) -> Contributors:
        """The contributors of some cells, −1 for a cell that has none."""
        there = (cells >= 0)[:, None]
        return Contributors(
            np.where(there, self.amount[cells], 0.0),
            np.where(there, self.identity[cells], -1),
            None if self.weighted is None else np.where(there, self.weighted[cells], 0.0),
            self.names,
            self.sure,
        )


@dataclass(frozen=True, slots=True)
class Apart:
    """Linked tables of the same records whose common unseen cells are not looked at, and why."""

    tables: tuple[str, ...]
    why: Literal["ignored", "size", "irregular", "unlinked"]

    def __str__(self) -> str:
        reason = {
            "ignored": 'the user chose cube = "ignore"',
            "size": "the cross-classification that joins them is too large",
            "irregular": "they break their codes down in ways that do not fit together",
            "unlinked": "nobody linked them (ts.link([table]) does)",
        }[self.why]
        return f"{', '.join(self.tables)}: each looked at by its own cells only, because {reason}."


class Origin(Protocol):
    """Records, and how a table was made from them."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that `tabulate` was given, by name."""
        ...

    def records(self) -> pl.DataFrame:
        """The records that the table counts, with every column, in their order."""
        ...

    def table(self, records: Any = None, **changes: Any) -> Table:
        """Tabulate again: from other records, or with other options of `tabulate`, or both."""
        ...


@shown
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
    unseen: Mask | None = field(default=None, repr=False)
    """Cells that no table shows, always the last ones: the cross-classification of which linked tables are margins."""
    judged: bool = False
    """Whether it is known who contributes to the unseen cells, so that rules can be applied to them."""
    apart: tuple[Apart, ...] = ()
    """Tables that were not examined together."""
    origin: Origin | None = field(default=None, repr=False)
    """How the table was made from records, when it was. It does not travel with a table to other processes."""
    signed: Mask | None = field(default=None, repr=False)
    """Cells whose contributions may be negative, where that is known: from the records, or because somebody said so."""
    empty: Literal["shown", "left out"] | None = None
    """Of a table that counts records, what became of combinations without any; None where that is not known."""
    computed: Mask | None = field(default=None, repr=False)
    """Totals that were not given but added up here, their further columns too: a sum of marks or codes is none."""
    library: Library = "polars"
    """The library that the data came from, in which `to_native` gives them back."""

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
        missing_totals: Literal["error", "compute", "none"] = "error",
        total: str | Mapping[str, str] = TOTAL,
        tolerance: float = 0.0,
        response: str | None = None,
        negative: Negative = "auto",
    ) -> Self:
        """Build a table from one row per cell: a CSV or Parquet file, or a pandas, polars or Arrow frame.

        A dimension without a hierarchy is flat: all its codes add up to `total`, which may be given by dimension; one
        that is called like a total, and is one everywhere, is found. Rows that are absent are empty cells. Totals that
        are absent are an error; `missing_totals="compute"` adds them up, counts included (a respondent in two cells is
        then counted twice); `"none"` says that no sum of these cells is published anywhere, and every verdict repeats
        it. Totals off by no more than `tolerance` are replaced by the sum of their parts. `largest` names the columns
        with the largest contributions, `identity` those with their contributors. `negative` says whether contributions
        may be negative: `"auto"` goes by the values and contributions given, `"possible"` is for profits and balances
        whatever these cells show, `"never"` refuses negative numbers.
        """
        if missing_totals not in MISSING_TOTALS:
            raise InvalidOption(
                f"missing_totals must be one of {', '.join(map(repr, MISSING_TOTALS))}, got {missing_totals!r}."
            )
        require_negative(negative)
        read = read_source(source)
        counts = _whole(read, count)
        held = _whole(read, holdings)
        contributors = _read_contributors(read, largest, identity)
        hierarchies = _flat_where_missing(read, dimensions, value, total, missing_totals)
        codes = np.column_stack([h.locate(read, d, dimension=d) for d, h in hierarchies.items()])
        values = read.numbers(value)
        for name in (count, holdings):
            _refuse_missing_counts(read, name, value, values)
        keep, codes = _merge_aliases(read, codes, values, hierarchies, value)
        if contributors is not None:
            others = [read.numbers(name, missing=0.0) for name in columns]
            _refuse_missing_contributors(read, largest, contributors.amount, [values, *others])
        extra = {name: read.numbers(name, missing=0.0)[keep] for name in columns}
        zero = None if structural_zero is None else _zero_by_definition(read, structural_zero, value, values)
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
        given = given._declared(negative, read.name)
        table = given._connected(tolerance=tolerance, ignore_missing=missing_totals == "none", source=read.name)
        if missing_totals != "none":
            table._require_sums(read.name)
        return replace(table, library=library_of(source))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        rows: str | Sequence[str] = (),
        columns: str | Sequence[str] = (),
        dimensions: Mapping[str, Hierarchy | None] | None = None,
        value: str = "value",
        missing_totals: Literal["error", "compute", "none"] = "error",
        total: str | Mapping[str, str] = TOTAL,
        tolerance: float = 0.0,
        negative: Negative = "auto",
    ) -> Self:
        """Build a table from a crosstab: codes down the side and across the top, as `pandas.crosstab` makes it.

        In pandas the index and the labels of the columns are the codes, with several levels for several dimensions, and
        their names those of the dimensions, unless `rows` and `columns` say other ones. In other libraries `rows` names
        the columns that hold codes, and `columns` the dimension whose codes all other columns are called by. An empty
        entry is a cell that is not there. `dimensions` has the hierarchies; the rest is as in `from_cells`.
        """
        sides = ((name,) if isinstance(name, str) else tuple(name) for name in (rows, columns))
        cells, names = long_form(frame, rows=next(sides), columns=next(sides), value=value)
        given = dimensions or {}
        if unknown := [name for name in given if name not in names]:
            raise InvalidTable(
                f"The crosstab has no dimension {unknown[0]!r}: it has {', '.join(names)}.",
                about=("dimension", unknown[0]),
            )
        table = cls.from_cells(
            cells,
            dimensions={name: given.get(name) for name in names},
            value=value,
            missing_totals=missing_totals,
            total=total,
            tolerance=tolerance,
            negative=negative,
        )
        return replace(table, library=library_of(frame))

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
    def loose(
        cls,
        codes: NDArray[np.int32],
        values: Floats,
        dimensions: Mapping[str, Hierarchy],
        *,
        count: Integers | None = None,
        holdings: Integers | None = None,
        contributors: Contributors | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        response: str = "value",
        decimals: int | None = None,
    ) -> Self:
        """Cells without the equations between them."""
        return cls._assemble(
            codes, values, dimensions, count=count, holdings=holdings, contributors=contributors, structural_zero=None,
            columns=columns or {}, response=response, decimals=decimals,
        )  # fmt: skip

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
        from scipy import sparse

        if sparse.issparse(equations):
            given = sparse.csr_array(equations)
            given.eliminate_zeros()
            if not bool((np.abs(given.data) == 1).all()):
                raise InvalidTable(
                    "The coefficients of equations must be −1 at the total, and 1 or −1 at the parts.",
                    hint="split a multiple into several cells that are equal to each other.",
                )
            matrix = given.astype(np.int8)
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
        from scipy import sparse

        none = sparse.csr_array((0, len(integers)), dtype=np.int8)
        return cls(
            integers, decimals, none, np.zeros(0, np.int64), dict(dimensions), np.ascontiguousarray(codes), None,
            response, count, holdings, contributors, structural_zero, dict(columns), exact,
        )  # fmt: skip

    def _declared(self, negative: Negative, source: str) -> Self:
        """With what was said about negative contributions; "never" is refused where one is seen."""
        if negative == "auto":
            return self
        seen = np.flatnonzero(self._seen_negative)
        if negative == "never" and seen.size:
            cell = int(seen[0])
            told = (
                "Cell {cell} of {source} is negative, but {option} says that no contribution is."
                if self.integers[cell] < 0
                else "Cell {cell} of {source} has a contribution that is negative, but {option} says that none is."
            )
            raise InvalidTable(
                text(told, cell=self.describe(cell), source=source, option=Setting("negative", "never")),
                hint=text("correct the value, or leave {option} out.", option=Setting("negative", "never")),
            )
        return replace(self, signed=np.full(len(self), negative == "possible"))

    def _connected(self, *, tolerance: float, ignore_missing: bool, source: str) -> Self:
        """Add the equations that the hierarchies imply, and check them."""
        keys = cell_keys(self.codes, self._sizes())
        order = np.argsort(keys, kind="stable")
        same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        if same.size:
            first, cell = int(order[same[0]]), int(order[same[0] + 1])
            raise InvalidTable(
                text(
                    "Cell {cell} stands twice in {source} (rows {one} and {other}).",
                    cell=self.describe(cell),
                    source=source,
                    one=first + 1,
                    other=cell + 1,
                ),
                hint="remove one of the two, or add up the rows first.",
            )
        product = equations_across_gaps(self.codes, list(self.dimensions.values()))
        if product.orphan_cell is not None and not ignore_missing:
            dimension = list(self.dimensions)[product.orphan_dimension]
            raise InvalidTable(
                text(
                    "Cell {cell} is part of {total!r} of {dimension!r}, but {source} has no row for that total.",
                    cell=self.describe(product.orphan_cell),
                    total=product.orphan_total,
                    dimension=dimension,
                    source=source,
                ),
                hint=text(
                    "add the row, pass {option} to add up what is missing, or {option2} if that total is "
                    "published nowhere.",
                    option=Setting("missing_totals", "compute"),
                    option2=Setting("missing_totals", "none"),
                ),
                about=("source", "missing_totals"),
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
            raise self._not_additive(wrong, residual, source)
        integers = self._recomputed_totals()
        table = replace(self, integers=integers)
        left = np.flatnonzero(table.residual())
        if left.size:
            found = table._not_additive(left, table.residual(), source)
            also = text("Its totals were recomputed within the tolerance, and no longer agree with each other.")
            raise InvalidTable(joined("\n", [*found.words[:1], also]), hint=found.advice)
        if tolerance > 0 and bool((np.abs(residual[bad]) > rounding).any()):
            moved = int((integers != self.integers).sum())
            off = "not the sums of their parts" if np.isinf(tolerance) else "off within the tolerance"
            warnings.warn(f"{source}: {moved:,} totals were {off} and were recomputed.", stacklevel=3)
        return table

    def _recomputed_totals(self) -> Integers:
        """Every total as the sum of its parts, bottom up; cells that are no total stay."""
        first = np.full(len(self), -1, dtype=np.int64)
        rows = np.arange(len(self.totals))[::-1]
        first[self.totals[rows]] = rows
        is_total = first >= 0
        chosen = self.equations[first[is_total]].astype(np.int64)
        from scipy import sparse

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

        from scipy import sparse

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
            signed=None if self.signed is None else np.full(len(self) + int(new.sum()), self.signed.any()),
            columns={name: extended(column, f"column {name}") for name, column in self.columns.items()},
            computed=np.arange(len(self) + int(new.sum())) >= len(self),
        )

    def _no_contributors_of_new(self, new: int) -> Contributors | None:
        if self.contributors is None:
            return None
        if new:
            raise InvalidTable(
                "The largest contributors of missing totals cannot be computed from the cells.",
                hint="give all totals, or tabulate from microdata.",
                about=("contributors",),
            )
        return self.contributors

    # -- what it knows ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.integers)

    @cached_property
    def seen(self) -> int:
        """How many cells some table shows: the first ones."""
        return len(self) if self.unseen is None else int((~self.unseen).sum())

    def whole_mask(self, mask: NDArray[Any]) -> NDArray[Any]:
        """An entry per cell, from entries of all cells or of the shown ones; unseen cells get a zero."""
        if self.unseen is None or mask.shape != (self.seen,):
            return mask
        return np.concatenate([mask, np.zeros(len(self) - self.seen, dtype=mask.dtype)])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(tree):,} codes" for name, tree in self.dimensions.items())
        hidden = "" if self.unseen is None else f" and {len(self) - self.seen:,} unseen ones"
        return (
            f"Table({self.seen:,} cells{hidden}, {self.equations.shape[0]:,} equations{', ' + sizes if sizes else ''})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "origin": None}

    @cached_property
    def value(self) -> Floats:
        """The value of each cell."""
        return self.integers / 10.0**self.decimals

    @property
    def _seen_negative(self) -> Mask:
        """Cells that are negative, or list a contribution to them that is; a shadow variable's is none."""
        seen = self.integers < 0
        if self.contributors is not None and (self.response == "shadow" or "shadow" not in self.columns):
            kept = self.contributors
            seen = seen | ((kept.amount if kept.weighted is None else kept.weighted) < 0).any(axis=1)
        return np.asarray(seen)

    @cached_property
    def may_be_negative(self) -> Mask:
        """Cells to which, for all an attacker knows, some contribution is negative.

        That is no matter of single cells, for nobody sees the signs of what others reported: the variable has negative
        contributions or it has none. It has when a record, a value or a listed contribution is negative, or when
        somebody said so. Only linked tables of several variables hold cells of both kinds.
        """
        if self.signed is not None:
            return self.signed
        return np.full(len(self), bool(self._seen_negative.any()))

    def leaves_out_empty(self, shown: Mask) -> bool:
        """Whether to be shown is to be told that somebody is there, whatever is published.

        That is so where records were counted without their empty combinations; and, in tables that were read, where
        cells are missing and none of those shown is 0. Cells that nobody sees tell nothing, as unseen ones of a cube;
        nor does a whole margin that is not there, as in linked tables.
        """
        if self.empty is not None:
            return self.empty == "left out"
        zero = shown & (self.integers == 0)
        if self.structural_zero is not None:
            zero &= ~self.structural_zero
        if not self.dimensions or zero.any():
            return False
        trees = list(self.dimensions.values())
        roots = [np.array([tree.position(code) for code in tree.roots]) for tree in trees]
        top = np.column_stack([np.isin(self.codes[shown, d], own) for d, own in enumerate(roots)])
        margins, cells = np.unique(top, axis=0, return_counts=True)
        at_top = np.array([len(own) for own in roots])
        below = np.array([len(tree) for tree in trees]) - at_top
        return bool((cells < np.where(margins, at_top, below).astype(np.float64).prod(axis=1)).any())

    @cached_property
    def occupied(self) -> Mask:
        """Shown cells of a table of counts of which everybody knows that somebody is in them: they are 1 or more."""
        shown = np.ones(len(self), np.bool_) if self.unseen is None else ~self.unseen
        counted = self.empty is not None or (
            self.count is not None and self.decimals == 0 and bool((self.count == self.integers)[shown].all())
        )
        if not counted or not self.leaves_out_empty(shown):
            return np.zeros(len(self), np.bool_)
        return np.asarray(shown & (self.integers > 0))

    def residual(self) -> Integers:
        """By how much each equation fails, in units of `10**-decimals`; zero in every finished table."""
        return np.asarray(self.equations.astype(np.int64) @ self.integers)

    def largest(self, k: int) -> Floats:
        """The k largest contributions of each cell, largest first, as the contributors themselves reported them."""
        return self._contributions(k).amount[:, :k]

    def _contributions(self, k: int) -> Contributors:
        if self.contributors is None or self.contributors.certain < k:
            have = 0 if self.contributors is None else self.contributors.certain
            counted = None if self.origin is None else self.origin.options.get("frequency")
            if counted is not None:
                raise InvalidTable(
                    (
                        f"This needs the {k} largest contributors of each cell, but with ",
                        Setting("frequency", counted),
                        " a row stands for several respondents, and nobody knows how much each of them reported.",
                    ),
                    hint="judge such cells by a threshold, or tabulate one record per respondent.",
                )
            raise InvalidTable(
                text(
                    "This needs the {k} largest contributors of each cell, but the table keeps {have}.", k=k, have=have
                ),
                about=("contributors",),
                hint=text("tabulate with {option}, or name the columns that hold them.", option=Setting("largest", k)),
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

    def describe_some(self, cells: Sequence[int] | NDArray[Any], most: int) -> str:
        """The first of several cells in the user's codes, and how many more there are."""
        more = f" and {len(cells) - most:,} more" if len(cells) > most else ""
        return ", ".join(self.describe(int(cell)) for cell in cells[:most]) + more

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
        """One row per cell that is shown: its codes, value, count and further columns. Confidential."""
        data: dict[str, Any] = dict(self.code_columns())
        data[self.response if self.response not in data else "value"] = self.value
        if self.count is not None:
            data["count"] = self.count
        if self.holdings is not None:
            data["holdings"] = self.holdings
        for name, column in self.columns.items():
            data.setdefault(name, column)
        return pl.DataFrame(data).head(self.seen)

    def to_pandas(self) -> Any:
        """The cells as a pandas frame, codes as categories in the order of their hierarchies. Confidential."""
        return to_library(self.cells(), "pandas", self.orders)

    def to_native(self) -> Any:
        """The cells in the library that the data came from. Confidential."""
        return to_library(self.cells(), self.library, self.orders)

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """The codes of each dimension in the order of its hierarchy."""
        return {name: tuple(hierarchy.codes) for name, hierarchy in self.dimensions.items()}

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The cells, for whatever reads Arrow: `pd.DataFrame.from_arrow(table)`, `pa.table(table)`. Confidential."""
        return self.cells().__arrow_c_stream__(requested_schema)

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

    @cached_property
    def alone(self) -> Mask:
        """Which cells are in no equation: whatever else is published, nothing is known to be subtracted from them."""
        return np.asarray(np.bincount(self.equations.indices, minlength=len(self)) == 0)

    @property
    def without_sums(self) -> str:
        """What adds up to nothing in this table, in words; empty where every cell is part of a sum in each dimension.

        A proof says nothing about sums that the table does not know, so every verdict repeats this.
        """
        alone = np.flatnonzero(self.alone)
        if len(alone) == len(self):
            all_of_them = "the one cell" if len(self) == 1 else f"all {len(self):,} cells"
            return (
                f"No sums: {all_of_them} of the table are taken to be published alone, so nothing is proved against "
                f"readers who know a total of them."
            )
        told = []
        if alone.size:
            told.append(
                f"{alone.size:,} of {len(self):,} cells are part of no sum and are taken to be published alone: "
                f"{self.describe_some(alone, SHOWN_ALONE)}."
            )
        for name, tree in self.dimensions.items():
            loose = [
                tree.codes[at]
                for at in np.flatnonzero(np.bincount(tree.equations.indices, minlength=len(tree)) == 0).tolist()
            ]
            if len(loose) == len(tree) > 1:
                told.append(f"No sum across {name!r} is taken to be published.")
            elif len(tree) > 1 and loose:
                some = ", ".join(map(repr, loose[:SHOWN_ALONE])) + (" …" if len(loose) > SHOWN_ALONE else "")
                told.append(f"No sum with {some} of {name!r} is taken to be published.")
        return " ".join(told)

    def _require_sums(self, source: str) -> None:
        """Refuse cells that no equation holds: an audit would prove nothing about them, and call it safe."""
        alone = np.flatnonzero(self.alone)
        if len(self) <= 1 or not alone.size:
            return
        told = (
            "Cell {cell} of {source} is part of no sum: nothing would be proved about it."
            if alone.size == 1
            else "Cell {cell} of {source} is part of no sum, as are {more:,} more: nothing would be proved about it."
        )
        raise InvalidTable(
            text(told, cell=self.describe(int(alone[0])), source=source, more=alone.size - 1),
            hint=text(
                "give hierarchies with a total, or, if no sum of these cells is published anywhere, say so ({option}).",
                option=Setting("missing_totals", "none"),
            ),
        )

    def _not_additive(self, wrong: NDArray[Any], residual: Integers, source: str) -> InvalidTable:
        lines = []
        for row in wrong[:3].tolist():
            total = int(self.totals[row])
            value, difference = int(self.integers[total]), int(residual[row])
            lines.append(
                text(
                    "{cell} is {value} but its parts add up to {parts} (difference {difference}).",
                    cell=self.describe(total),
                    value=self._show(value),
                    parts=self._show(value + difference),
                    difference=self._show(abs(difference)),
                )
            )
        if wrong.size > 3:
            lines.append(text("and {more:,} more equations of {source}.", more=wrong.size - 3, source=source))
        told = joined("\n", lines)
        levels = self._levels_added_up(wrong, residual)
        if levels is not None:
            name, much = levels
            return InvalidTable(
                text(
                    "{told}\n\nThe codes of {name!r} in {source} add up to {much} their total: codes of "
                    "several levels seem to stand side by side.",
                    told=told,
                    name=name,
                    source=source,
                    much=much,
                ),
                hint=text("give {name!r} a hierarchy that says which codes are parts of which.", name=name),
                about=("dimension", name, "hierarchy"),
            )
        largest = int(np.abs(residual[wrong]).max())
        size = np.abs(self.integers[self.totals[wrong]])
        terms = np.diff(self.equations.tocsr().indptr)[wrong]  # each may be half a unit off
        if bool((np.abs(residual[wrong]) > np.maximum(ROUNDED * size, terms / 2)).any()):
            absent = math.prod(len(tree.codes) for tree in self.dimensions.values()) - len(self)
            short = residual[wrong] * np.sign(self.integers[self.totals[wrong]]) < 0
            if self.dimensions and absent > 0 and bool(short.all()):
                return InvalidTable(
                    told,
                    hint=text(
                        "{source} has no value for {absent:,} of the cells that its codes make, and all "
                        "these parts fall short. If somebody has withheld them, bring the table with their "
                        "values: only then can its sums be checked.",
                        source=source,
                        absent=absent,
                    ),
                )
            return InvalidTable(
                told,
                hint=text(
                    "correct {source}: this is too much for rounding. If codes of several levels stand "
                    "side by side, give their dimension its hierarchy.",
                    source=source,
                ),
                about=("source", "tolerance"),
            )
        tolerance = Setting("tolerance", largest / 10**self.decimals if self.decimals else largest)
        return InvalidTable(
            told,
            hint=text(
                "correct {source}, or pass {option} to accept such differences and recompute the totals.",
                source=source,
                option=tolerance,
            ),
            about=("source", "tolerance"),
        )

    def _levels_added_up(self, wrong: NDArray[Any], residual: Integers) -> tuple[str, Text] | None:
        """Which dimension seems to hold codes of several levels, though all were taken for parts of its total.

        Parts of every level add up to a total as often as there are levels; where some branches are deeper than others
        they add up to much more than the total throughout.
        """
        coo = self.equations[wrong].tocoo()
        for d, (name, tree) in enumerate(self.dimensions.items()):
            across = np.zeros(wrong.size, dtype=np.bool_)
            across[coo.row[self.codes[coo.col, d] != self.codes[self.totals[wrong[coo.row]], d]]] = True
            if len(tree.totals) != 1 or not across.any():
                continue
            total = self.integers[self.totals[wrong[across]]]
            parts = total + residual[wrong[across]]
            if not bool((total > 0).all() and (parts >= SEVERAL_LEVELS * total).all()):
                continue
            times = np.unique(parts / total)
            whole = times.size == 1 and times[0].is_integer()
            much = text("exactly {times} times", times=int(times[0])) if whole else text("more than")
            return name, much
        return None

    def _show(self, integer: int) -> str:
        return f"{integer / 10**self.decimals:,.{self.decimals}f}" if self.decimals else f"{integer:,}"


def require_negative(negative: str) -> None:
    """Refuse what is no answer to whether contributions may be negative."""
    if negative not in get_args(Negative):
        raise InvalidOption(f"negative must be 'auto', 'possible' or 'never', got {negative!r}.")


def _flat_where_missing(
    source: Source,
    dimensions: Mapping[str, Hierarchy | None] | Sequence[str],
    value: str,
    total: str | Mapping[str, str],
    missing_totals: str,
) -> dict[str, Hierarchy]:
    require_hierarchies(dimensions)
    if not isinstance(dimensions, Mapping):
        dimensions = dict.fromkeys(dimensions)
    if not dimensions:
        raise InvalidTable("A table needs at least one dimension.", hint="dimensions={'region': None}")
    source.require(*dimensions)
    out: dict[str, Hierarchy] = {}
    for name, hierarchy in dimensions.items():
        if hierarchy is None:
            top = total if isinstance(total, str) else total.get(name, TOTAL)
            others = tuple(other for other in dimensions if other != name)
            hierarchy = flat_dimension(name, [Shown(source, others, (value,))], total=top, missing=missing_totals)
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
            f"(a code with a single part), but their {value!r} differ.",
            hint="correct one of them.",
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
            text(
                "Column {column!r} should hold whole numbers of 0 or more, but {where} has {found:g}.",
                column=column,
                where=source.where(int(bad[0])),
                found=numbers[bad[0]],
            ),
            hint="a count is the number of contributors, not a weighted sum.",
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
            f"The largest contributions at {source.where(row)} are not in descending order.",
            hint="name the columns from the largest down: largest=['max1', 'max2'].",
        )
    if not identity:
        return Contributors(amount, np.full(amount.shape, -1, dtype=np.int64))
    text = pl.concat([source.text(column).alias("name") for column in identity])
    text = text.set((text.str.strip_chars() == "").fill_null(False), None)
    names = text.drop_nulls().unique().sort()
    numbers = text.to_frame().join(names.to_frame().with_row_index("id"), on="name", how="left", maintain_order="left")
    ids = numbers["id"].cast(pl.Int64).fill_null(-1).to_numpy().reshape(len(identity), -1).T
    ranked = np.sort(ids, axis=1)
    twice = np.flatnonzero(((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).any(axis=1))
    if twice.size:
        raise InvalidTable(
            f"{source.where(int(twice[0]))} names the same contributor in two places.",
            hint="add up what each contributor has in a cell before the largest are taken: one contributor in two "
            "places would pass for two.",
            about=("contributors",),
        )
    return Contributors(amount, np.ascontiguousarray(ids), names=names.to_numpy())


def _refuse_missing_counts(source: Source, column: str | None, value: str, values: Floats) -> None:
    """A count that is not there would say that nobody contributes, so that there is nobody to protect."""
    if column is None:
        return
    missing = np.flatnonzero(_empty(source, column) & (values != 0))
    if missing.size:
        raise InvalidTable(
            f"Column {column!r} is empty at {source.where(int(missing[0]))}, where {value!r} is not 0"
            f"{and_more(missing.size)}.",
            hint="an empty count would say that nobody contributes: fill it in, with 0 only where that is so.",
            about=("column", column),
        )


def _zero_by_definition(source: Source, column: str, value: str, values: Floats) -> Mask:
    """Cells that are zero, as everyone knows; one that holds something would be published, whoever it is from."""
    zero = np.asarray(source.numbers(column, missing=0.0) != 0)
    wrong = np.flatnonzero(zero & (values != 0))
    if wrong.size:
        raise InvalidTable(
            f"Column {column!r} says at {source.where(int(wrong[0]))} that the cell is zero by definition, but "
            f"{value!r} is not 0{and_more(wrong.size)}.",
            hint="correct one of them: a cell that is zero by definition is published, and never sensitive.",
            about=("column", column),
        )
    return zero


def _empty(source: Source, column: str) -> Mask:
    return np.asarray(source.text(column).fill_null("").str.strip_chars() == "", dtype=np.bool_)


def _refuse_missing_contributors(
    source: Source, largest: Sequence[str], amount: Floats, sums: Sequence[Floats]
) -> None:  # fmt: skip
    """A place without an entry is empty where those listed are all there are: then they add up to the whole cell.

    Elsewhere it is not known what stands there, as often in totals, and every rule would take it for nothing. `sums`
    are the values, and other columns: of one of these the contributions may be.
    """
    empty = np.column_stack([_empty(source, column) for column in largest])
    rows = np.flatnonzero(empty.any(axis=1))
    listed = amount[rows].sum(axis=1)
    short = np.ones(len(rows), dtype=np.bool_)
    for each in sums:
        coarsest = min(to_integers(some)[1] for some in (each, amount))
        allowed = (len(largest) + 1) / 2 * 10.0**-coarsest + CLOSE * np.abs(each[rows])
        short &= np.abs(each[rows] - listed) > allowed
    if short.any():
        raise InvalidTable(
            f"{source.where(int(rows[short][0]))} lists fewer contributors than there are columns for, and these do "
            f"not add up to its value{and_more(int(short.sum()))}.",
            hint="what is missing would be taken for nothing: give the largest contributors of every cell, totals too, "
            "or tabulate from microdata.",
            about=("contributors",),
        )


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
    from scipy import sparse

    matrix = sparse.csr_array((np.array(data, np.int8), (rows, columns)), shape=(len(parsed), len(labels)))
    if len(matrix.data) < len(data):
        twice = next(each for each in parsed if len({each.total, *each.parts}) <= len(each.parts))
        raise InvalidTable(
            f"Equation '{twice}' names a cell twice.",
            hint="split a multiple into several cells that are equal to each other.",
        )
    return matrix, np.array(totals, dtype=np.int64)
