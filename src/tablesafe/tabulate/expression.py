"""The leaf aggregate as an Ibis expression: a database or a Spark cluster groups its own records.

Only what the table needs leaves it. A contributor that lives in one leaf cell matters there only if it is among the
largest; the others are sent as one row per cell, with their number and their sum. Ibis has no grouping sets, and needs
none: totals are made here, from the leaves.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import pyarrow as pa

from tablesafe.core.equations import MOST_DECIMALS
from tablesafe.core.errors import InvalidInput, InvalidOption, InvalidTable, Setting
from tablesafe.core.language import text
from tablesafe.files.read import LARGEST_EXACT, did_you_mean, require_parquet
from tablesafe.tabulate.axes import Axis
from tablesafe.tabulate.columns import NO_DECIMALS, NOISE, Extent, Scale
from tablesafe.tabulate.leaves import Leaves, cell_sql, number_leaves
from tablesafe.tabulate.plan import DROP, ERROR, Measure, Plan
from tablesafe.tabulate.sources import Connection
from tablesafe.tabulate.survey import LARGEST_REQUEST, Survey

SOURCE = "the Ibis table"


def as_ibis(source: Any) -> ir.Table:
    """An Ibis table as it is; a frame or Parquet files through DuckDB."""
    if isinstance(source, ir.Table):
        return source
    if isinstance(source, (str, Path)):
        if Path(source).suffix.lower() not in {".parquet", ".pq"}:
            raise InvalidOption(
                (
                    Setting("engine", "ibis"),
                    f" reads Parquet files, frames and Ibis tables, not {str(source)!r}.",
                )
            )
        require_parquet(Path(source))
        return ibis.duckdb.connect().read_parquet(str(source))
    try:
        table = pa.Table.from_pandas(source, preserve_index=False) if hasattr(source, "iloc") else pa.table(source)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInput(f"Cannot read a {type(source).__name__} as an Ibis table.") from error
    backend = ibis.duckdb.connect()
    backend.con.register("records", table)
    return backend.table("records")


def survey(records: ir.Table, plan: Plan, name: str = SOURCE) -> Survey:
    """Look at every record once, and once more for the codes of each dimension."""
    _require(records, plan, name)
    prepared = _prepared(records, plan)
    asked: dict[str, Any] = {"records": prepared.count()}
    for i in range(len(plan.column_of)):
        asked[f"missing {i}"] = prepared[f"d{i}"].isnull().sum()
    if plan.respondent is not None:
        asked["nobody"] = prepared.respondent.isnull().sum()
    numbers = _numbers(plan)
    for column, alias in numbers.items():
        value, weight = prepared[alias], 1 if plan.weight is None else prepared[numbers[plan.weight]]
        fit = value.abs() < LARGEST_EXACT
        asked[f"empty {column}"] = value.isnull().sum()
        asked[f"huge {column}"] = (~fit | value.isnan()).sum()
        value = ibis.ifelse(fit, value, 0.0)
        asked[f"negative {column}"] = (value < 0).sum()
        asked[f"whole {column}"] = (value != value.round(0)).sum()
        asked[f"largest {column}"] = value.abs().max()
        asked[f"decimals {column}"] = _decimals(value).max()
        asked[f"total {column}"] = value.abs().sum()
        asked[f"weighted {column}"] = (value * weight).abs().sum()
    if plan.frequency is not None:
        nobody = prepared[numbers[plan.frequency]] == 0
        asked["of nobody"] = sum(
            (nobody & (prepared[alias] != 0)).sum() for c, alias in numbers.items() if c != plan.weight
        )
    asked |= {f"equation {i}": broken.sum() for i, broken in enumerate(_broken(prepared, plan))}
    asked |= {f"below {name}": below.sum() for name, below in _below_zero(prepared, plan).items()}
    answer = prepared.aggregate(**asked).to_pyarrow().to_pylist()[0]
    _check(plan, numbers, {key: value or 0 for key, value in answer.items()}, name)
    codes = tuple(_codes(prepared, i) for i in range(len(plan.column_of)))
    extents = {
        column: Extent(int(answer[f"decimals {column}"]), answer[f"total {column}"], answer[f"weighted {column}"])
        for column in numbers
    }
    missing = tuple(int(answer[f"missing {i}"] or 0) for i in range(len(plan.column_of)))
    negative = frozenset(name for name in _below_zero(prepared, plan) if answer[f"below {name}"])
    return Survey(int(answer["records"]), extents, codes, missing, negative)


def is_counted(records: ir.Table, plan: Plan, column: str) -> bool:
    """Whether a column holds whole numbers from 0, more than 1 among them, in every record that counts."""
    if not records[column].type().is_numeric():
        return False
    value = _filtered(records, plan)[column].cast("float64")
    fit = (value >= 0) & (value == value.floor())
    answer = value.as_table().aggregate(unfit=(~fit | value.isnull()).sum(), most=value.max())
    found = answer.to_pyarrow().to_pylist()[0]
    return not found["unfit"] and float(found["most"] or 0) > 1


def aggregate(
    connection: Connection, records: ir.Table, plan: Plan, axes: Sequence[Axis], units: Mapping[Measure, Scale]
) -> Leaves:
    """Let the records' own engine group them, and bring the result into the private database."""
    number_leaves(connection, axes)
    key, joins = cell_sql(axes, "r")
    measures = "".join(f", CAST(m{i} AS BIGINT) AS m{i}" for i in range(len(plan.measures)))
    select = (
        f"SELECT {key} AS cell, CAST(name AS VARCHAR) AS name, alone, CAST(respondent AS VARCHAR) AS respondent, "
        f"respondents, holders, request{measures} FROM batch r{joins}"
    )
    begun = False
    for batch in _batches(leaf_expression(records, plan, units)):
        connection.register("batch", pa.Table.from_batches([batch]))
        connection.execute(f"INSERT INTO leaf {select}" if begun else f"CREATE TEMP TABLE leaf AS {select}")
        connection.unregister("batch")
        begun = True
    return Leaves(connection, plan)


def _batches(rows: ir.Table) -> Iterable[Any]:
    """The rows in batches; from DuckDB 2 they come whole, for Ibis 12 does not know how to stream from it."""
    whole = rows.get_backend().name == "duckdb"
    batches: Iterable[Any] = rows.to_pyarrow().to_batches() if whole else rows.to_pyarrow_batches()
    return batches


@ibis.udf.agg.builtin(name="bit_or")  # type: ignore[untyped-decorator]
def _bit_or(bits: int) -> int:
    """All bits of a group: Ibis has no such operation for Spark, which has the function."""
    raise NotImplementedError  # the engine has it


def leaf_expression(records: ir.Table, plan: Plan, units: Mapping[Measure, Scale]) -> ir.Table:
    """One row per leaf cell and contributor that matters, and one per leaf cell for the others."""
    prepared, numbers = _prepared(records, plan), _numbers(plan)
    codes = [f"d{i}" for i in range(len(plan.column_of))]
    weight = None if plan.weight is None else prepared[numbers[plan.weight]]
    asked = ibis.literal(0, "int64") if plan.request is None else prepared[numbers[plan.request]].cast("int64")
    request = ibis.ifelse(asked > 0, ibis.literal(1, "int64") << ibis.greatest(asked - 1, 0), 0)
    flat = prepared.select(
        **{code: prepared[code].fill_null("") for code in codes},
        **{name: prepared[name] for name in ("respondent", "holding") if name in prepared.columns},
        **{
            f"m{i}": _measure(measure, units[measure], {c: prepared[a] for c, a in numbers.items()}, weight)
            for i, measure in enumerate(plan.measures)
        },
        request=request.cast("int64"),
        many=ibis.literal(1, "int64") if plan.frequency is None else prepared[numbers[plan.frequency]].cast("int64"),
    )
    flat = flat if plan.frequency is None else flat.filter(flat.many > 0)
    return _reduced(_by_contributor(flat, plan, codes), plan, codes)


def _by_contributor(flat: ir.Table, plan: Plan, codes: list[str]) -> ir.Table:
    """Group by leaf cell, contributor and respondent."""
    text = ibis.null("string")
    measures = _sums(plan)
    if plan.respondent is None:
        flat = flat.mutate(place=ibis.row_number().over(group_by=codes, order_by=[*measures, "request"]))
        cell = functools.reduce(operator.add, [flat[code] + ", " for code in codes])
        flat = flat.mutate(record=cell + "record " + (flat.place + 1).cast("string"))
    own = flat.respondent if plan.respondent is not None else flat.record
    named = flat.mutate(
        name=own if plan.holding is None else ibis.coalesce(flat.holding, own),
        alone=ibis.literal(False) if plan.holding is None else flat.holding.isnull(),
        respondent=flat.respondent if plan.counts_respondents else text,
    )
    grouped = named.group_by([*codes, "name", "alone", "respondent"]).aggregate(
        **{m: named[m].sum() for m in measures}, request=_bit_or(named.request), respondents=named.many.sum()
    )
    return grouped if plan.respondent is None else grouped.mutate(respondents=ibis.literal(1, "int64"))


def _reduced(rows: ir.Table, plan: Plan, codes: list[str]) -> ir.Table:
    """Take together, per leaf cell, the contributors that live in no other and are not among the largest."""
    measures = _sums(plan)
    own = {"group_by": ["name", "alone"]}
    apart = [rows[code].min().over(**own) != rows[code].max().over(**own) for code in codes]
    rows = rows.mutate(apart=functools.reduce(operator.or_, apart))
    if plan.counts_respondents:  # a respondent of two holdings must be known as one
        both = {"group_by": ["respondent"]}
        split = rows.name.min().over(**both) != rows.name.max().over(**both)
        split |= rows.alone.cast("int8").min().over(**both) != rows.alone.cast("int8").max().over(**both)
        rows = rows.mutate(split=split.cast("int8"))
        rows = rows.mutate(apart=rows.apart | (rows.split.max().over(**own) > 0))
    rows = rows.mutate(respondent=ibis.ifelse(rows.apart, rows.respondent, ibis.null("string")))
    keys = [*codes, "name", "alone", "respondent", "apart"]
    rows = rows.group_by(keys).aggregate(
        **{m: rows[m].sum() for m in measures}, request=_bit_or(rows.request), respondents=rows.respondents.sum()
    )
    kept = rows.apart
    for amount, _ in plan.rankings:
        order = [rows[f"m{plan.measures.index(amount)}"].abs().desc(), rows.name, rows.alone]
        cell = [*(rows[code] for code in codes), rows.apart]
        kept |= ibis.row_number().over(group_by=cell, order_by=order) < plan.largest
    rows = rows.mutate(kept=kept)
    rows = rows.mutate(
        name=ibis.ifelse(rows.kept, rows.name, ibis.null("string")), alone=ibis.ifelse(rows.kept, rows.alone, False)
    )
    return rows.group_by([*codes, "name", "alone", "respondent"]).aggregate(
        respondents=rows.respondents.sum().cast("int64"),
        holders=rows.count().cast("int64"),
        request=_bit_or(rows.request),
        **{m: rows[m].sum().cast("int64") for m in measures},
    )


def _sums(plan: Plan) -> list[str]:
    return [f"m{i}" for i in range(len(plan.measures))]


def _numbers(plan: Plan) -> dict[str, str]:
    return {column: f"n{i}" for i, column in enumerate(plan.numbers)}


def _require(records: ir.Table, plan: Plan, name: str) -> None:
    have = list(records.columns)
    for column in plan.columns:
        if column not in have:
            raise InvalidTable(
                f"{name} has no column {column!r}. It has: {', '.join(map(repr, have))}.",
                hint=f"{did_you_mean(column, have) or 'check the name of the column.'}",
            )
    for column in _numbers(plan):
        kind = records[column].type()
        if not (kind.is_numeric() or kind.is_boolean()):
            raise InvalidTable(
                f"Column {column!r} of {name} holds {kind}, not numbers.",
                hint=f"turn it into numbers first: table.mutate({column}=table.{column}.cast('float64'))",
            )


def _prepared(records: ir.Table, plan: Plan) -> ir.Table:
    """The records that count: codes as d0, d1, …, numbers as n0, n1, …, who and whose."""
    records = _filtered(records, plan)
    chosen = {f"d{i}": _text(records[column], plan.empty) for i, column in enumerate(plan.column_of.values())}
    chosen |= {alias: _float(records[column]) for column, alias in _numbers(plan).items()}
    for name, given in (("respondent", plan.respondent), ("holding", plan.holding)):
        if given is not None:
            chosen[name] = _text(records[given], plan.empty).strip()
    prepared = records.select(**chosen)
    dropped = [prepared[f"d{i}"].notnull() for i, d in enumerate(plan.column_of) if plan.missing[d] == DROP]
    return prepared.filter(dropped) if dropped else prepared


def _filtered(records: ir.Table, plan: Plan) -> ir.Table:
    where = plan.where
    if isinstance(where, str):
        raise InvalidOption(
            f"The filter {where!r} is SQL, of which every engine has its own.",
            hint="for an Ibis table pass a function, where=lambda t: t.year == 2024, or filter the table itself.",
        )
    if isinstance(where, Mapping):
        for column, codes in where.items():
            wanted = [codes] if isinstance(codes, str) else [str(code) for code in codes]
            records = records.filter(_text(records[column], plan.empty).strip().isin([code.strip() for code in wanted]))
    elif where is not None:
        records = records.filter(where(records))
    return records


def _text(column: ir.Value, empty: Sequence[str]) -> Any:
    kind = column.type()
    if isinstance(kind, dt.Floating):
        small = ibis.ifelse(column.abs() < 1e15, column, 0.5)
        text = ibis.cases(
            (column.isnan(), ibis.null("string")),
            (small == small.round(0), small.round(0).cast("int64").cast("string")),
            else_=column.cast("string"),
        )
    else:
        text = column if kind.is_string() else column.cast("string")
    return ibis.ifelse(text.strip().isin(["", *empty]), ibis.null("string"), text)


def _float(column: ir.Value) -> Any:
    if column.type().is_boolean():
        return column.cast("int8").cast("float64")
    if column.type() == dt.float32:  # through its shortest decimal form: 0.1 stays 0.1
        return column.cast("string").cast("float64")
    return column.cast("float64")


def _decimals(value: Any) -> Any:
    cases = [((value - value.round(d)).abs() <= NOISE * value.abs(), d) for d in range(MOST_DECIMALS + 1)]
    return ibis.cases(*cases, else_=NO_DECIMALS)


def _measure(measure: Measure, unit: Scale, numbers: Mapping[str, Any], weight: Any) -> Any:
    """A measure of one record as a whole number of its unit."""
    if not measure.weighted:
        parts = [sign * _whole(numbers[column], unit.decimals) for column, sign in measure.terms]
    elif unit.exact:
        times = _whole(weight, unit.decimals - unit.factor)
        parts = [sign * _whole(numbers[column], unit.factor) * times for column, sign in measure.terms] or [times]
    else:
        parts = [sign * _whole(numbers[column] * weight, unit.decimals) for column, sign in measure.terms]
        parts = parts or [_whole(weight, unit.decimals)]
    return functools.reduce(operator.add, parts) if parts else ibis.literal(1, "int64")


def _whole(value: Any, places: int) -> Any:
    return (value * 10.0**places).round().cast("int64")


def _codes(prepared: ir.Table, i: int) -> tuple[str, ...]:
    column = prepared.select(code=prepared[f"d{i}"]).distinct().to_pyarrow()["code"]
    return tuple(sorted(code for code in column.to_pylist() if code is not None))


def _broken(prepared: ir.Table, plan: Plan) -> list[Any]:
    """For each equation whose total is a column: whether a record breaks it."""
    numbers = _numbers(plan)
    terms = {r.name: r.value.terms for r in plan.responses}
    out = []
    for equation in plan.equations:
        if equation.total in plan.listed:
            total = prepared[numbers[equation.total]]
            parts = [
                sign * inner * prepared[numbers[column]]
                for part, sign in zip(equation.parts, equation.signs, strict=True)
                for column, inner in (((part, 1),) if part in plan.listed else terms[part])
            ]
            size = functools.reduce(operator.add, [part.abs() for part in (total, *parts)])
            out.append((total - functools.reduce(operator.add, parts)).abs() > 1e-9 * size)
    return out


def _below_zero(prepared: ir.Table, plan: Plan) -> dict[str, Any]:
    """For each response variable that is no count: whether a record's is negative, beyond noise."""
    numbers, out = _numbers(plan), {}
    for response in plan.responses:
        parts = [sign * prepared[numbers[column]] for column, sign in response.value.terms]
        if parts:
            noise = 1e-9 if len(parts) > 1 else 0.0
            size = functools.reduce(operator.add, [part.abs() for part in parts])
            out[response.name] = functools.reduce(operator.add, parts) < -noise * size
    return out


FAULTS = (
    "is empty", "is not a number below 2^53 that can be added exactly", "is a weight and negative",
    "is a frequency and negative", "is a frequency and no whole number", "is a request and negative",
    "is a request and no whole number",
)  # fmt: skip
"""What is wrong with a column."""


def _check(plan: Plan, numbers: Mapping[str, str], answer: Mapping[str, Any], source: str) -> None:
    """Complain about what the records lack; a database has no lines to name."""
    if answer["records"] == 0:
        raise InvalidTable(text("{source} has no records, or none that pass the filter.", source=source))
    for column in numbers:
        faults = {"empty": FAULTS[0], "huge": FAULTS[1]}
        if column == plan.weight:
            faults["negative"] = FAULTS[2]
        if column == plan.frequency:
            faults |= {"negative": FAULTS[3], "whole": FAULTS[4]}
        if column == plan.request:
            faults |= {"negative": FAULTS[5], "whole": FAULTS[6]}
            if answer[f"largest {column}"] > LARGEST_REQUEST:
                raise InvalidTable(
                    text(
                        "The request {column!r} goes up to {many:g}: is it one?",
                        column=column,
                        many=answer[f"largest {column}"],
                    )
                )
        for fault, words in faults.items():
            if answer[f"{fault} {column}"]:
                raise InvalidTable(
                    text(
                        "Column {column!r} {words} in {many:,} records of {source}.",
                        column=column,
                        words=text(words),
                        many=answer[f"{fault} {column}"],
                        source=source,
                    ),
                    hint=text("correct them, or leave such records out with {option}", option=Setting("where")),
                )
    if answer.get("of nobody"):
        raise InvalidTable(f"{answer['of nobody']:,} rows of {source} stand for nobody, yet hold an amount.")
    for i, dimension in enumerate(plan.column_of):
        if answer[f"missing {i}"] and plan.missing[dimension] == ERROR:
            raise InvalidTable(
                text(
                    "The code of {dimension!r} is missing in {many:,} records of {source}.",
                    dimension=dimension,
                    many=answer[f"missing {i}"],
                    source=source,
                ),
                hint=text(
                    "drop such records with {option}, or name a code for them.",
                    option=Setting("missing", "drop", dimension),
                ),
            )
    if plan.respondent is not None and answer["nobody"]:
        raise InvalidTable(
            text("The respondent is missing in {many:,} records of {source}.", many=answer["nobody"], source=source)
        )
    if plan.negative == "never":
        for response in plan.responses:
            if answer.get(f"below {response.name}"):
                raise InvalidTable(
                    text(
                        "{name!r} is negative in {many:,} records of {source}, but {option} says that it is in none.",
                        name=response.name,
                        many=answer[f"below {response.name}"],
                        source=source,
                        option=Setting("negative", "never"),
                    ),
                    hint=text("correct them, or leave {option} out.", option=Setting("negative", "never")),
                )
    checked = [equation for equation in plan.equations if equation.total in plan.listed]
    for i, equation in enumerate(checked):
        if answer[f"equation {i}"]:
            raise InvalidTable(f"'{equation}' does not hold in {answer[f'equation {i}']:,} records of {source}.")
