"""Records as a relation that DuckDB scans: files of any size, or a frame in memory.

A file is never read whole. A CSV file stays text until its columns are asked for as codes or as numbers, so that an
error can show what stands in the file, and where. What DuckDB has to put on disk goes to a folder that only this user
can enter and that is gone when the tabulation ends, well or not.
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidInput, InvalidOption, InvalidTable, MissingExtra, Setting
from tablesafe.core.language import text
from tablesafe.files.limits import is_there
from tablesafe.files.private import private_folder
from tablesafe.files.read import did_you_mean, require_parquet, with_index
from tablesafe.tabulate.csvfile import CsvFile, look_at_csv
from tablesafe.tabulate.readstat import is_readstat, read_records

Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True, eq=False)
class Scanned:
    """A frame that DuckDB scans by the streams that Arrow agreed on: no library of Arrow is needed."""

    frame: pl.DataFrame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def frame_of(connection: Connection, query: str) -> pl.DataFrame:
    """What a query gives, through NumPy: decimals as text on the way, so that they stay exact."""
    asked = connection.sql(query)
    kinds = {name: str(kind) for name, kind in zip(asked.columns, asked.types, strict=True)}
    exact = {name: kind for name, kind in kinds.items() if kind.startswith("DECIMAL") or kind.endswith("HUGEINT")}
    if exact:
        texts = ", ".join(f"CAST({identifier(name)} AS VARCHAR) AS {identifier(name)}" for name in exact)
        asked = connection.sql(f"SELECT * REPLACE ({texts}) FROM ({query})")
    found = asked.fetchnumpy()
    frame = pl.DataFrame([_series(name, values) for name, values in found.items()])
    dates = [pl.col(name).cast(pl.Date) for name, kind in kinds.items() if kind == "DATE"]
    decimals = [pl.col(name).cast(_decimal(kind)) for name, kind in exact.items()]
    return frame.with_columns(*dates, *decimals)


def _series(name: str, values: Any) -> pl.Series:
    if not isinstance(values, np.ma.MaskedArray):
        return pl.Series(name, values.tolist() if values.dtype == object else values)
    known = pl.Series(name, values.tolist() if values.dtype == object else values.data)
    return known.set(pl.Series(np.ma.getmaskarray(values)), None)


def _decimal(kind: str) -> pl.Decimal:
    digits, _, scale = kind.partition("(")[2].rstrip(")").partition(",")
    return pl.Decimal(int(digits or 38), int(scale or 0))


@dataclass(frozen=True, slots=True)
class Column:
    """A column as SQL calls it, and its type there."""

    sql: str
    type: str


@dataclass(frozen=True, slots=True)
class Part:
    """One file, or the whole frame."""

    relation: str
    name: str
    file: CsvFile | None = None

    def where(self, row: int) -> str:
        """Say where record `row` (from 0) stands, in the user's terms."""
        return f"row {row + 1:,} of {self.name}" if self.file is None else f"{self.name}, line {self.file.line(row)}"


@dataclass(frozen=True)
class Records:
    """Records that DuckDB can scan, as often as needed and in the same order."""

    name: str
    relation: str
    columns: Mapping[str, Column]
    parts: tuple[Part, ...]
    paths: tuple[Path, ...] = ()
    available: tuple[str, ...] = ()
    """Every column of a frame, also those that were not handed over."""

    def require(self, columns: Sequence[str]) -> None:
        """Check that the columns exist, and suggest what was meant."""
        have = list(self.available or self.columns)
        for column in columns:
            if column not in self.columns:
                shown = ", ".join(map(repr, have[:40])) + (" …" if len(have) > 40 else "")
                near = did_you_mean(column, have) if len(have) > 1 else ""
                raise InvalidTable(
                    text(
                        "{name} has no column {column!r}. It has: {shown}.", name=self.name, column=column, shown=shown
                    ),
                    hint=near or "check the delimiter and the header line.",
                )


@contextmanager
def session(memory_limit: str | None, threads: int | None, temporary: str | Path | None) -> Iterator[tuple[Any, Path]]:
    """A database in memory, and the private folder that it may spill to; the folder is removed in any case."""
    with ExitStack() as stack:
        try:
            private = stack.enter_context(private_folder(temporary))
        except OSError as error:
            raise InvalidOption(f"No temporary folder can be made in {str(temporary)!r}: {error.strerror}.") from error
        config: dict[str, Any] = {
            "temp_directory": str(private / "spill"),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            **({} if memory_limit is None else {"memory_limit": memory_limit}),
            **({} if threads is None else {"threads": threads}),
        }
        try:
            connection = duckdb.connect(config=config)
        except duckdb.Error as error:
            raise InvalidOption(
                (
                    Setting("memory_limit", memory_limit),
                    " or ",
                    Setting("threads", threads),
                    f" cannot be used: {first_line(error)}",
                ),
                hint="write a limit as '4GB' and threads as a whole number.",
            ) from error
        connection.execute("SET enable_progress_bar = false")
        try:
            yield connection, private
        except duckdb.OutOfMemoryException as error:
            raise InvalidOption(
                (
                    "The tabulation does not fit into ",
                    Setting("memory_limit", memory_limit),
                    f": {first_line(error)}",
                ),
                hint="raise memory_limit, use fewer threads, or give a temporary folder on a larger disk.",
            ) from error
        finally:
            connection.close()


def seal(connection: Connection, records: Records) -> None:
    """Let the database read the given files and nothing else: no other file, no network, whatever a filter says."""
    paths = ", ".join(quoted(str(path)) for path in records.paths)
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def one_row(connection: Connection, query: str) -> tuple[Any, ...]:
    """The first row that a query gives; nothing if it gives none."""
    rows = connection.sql(query).fetchall()
    return tuple(rows[0]) if rows else ()


def first_line(error: Exception) -> str:
    """What an error says, without the rows that it quotes."""
    return str(error).strip().splitlines()[0]


def open_records(
    connection: Connection, source: Any, private: Path, *, delimiter: str | None, wanted: Callable[[str], bool]
) -> Records:
    """Make records scannable: a CSV or Parquet file, a list or a pattern of files, or a frame.

    Of a frame only the columns that are `wanted` are handed over.
    """
    paths = _paths(source)
    if paths is None:
        return _open_frame(connection, source, wanted)
    if len(paths) == 1 and is_readstat(paths[0]):
        records, name = _open_frame(connection, read_records(paths[0]).frame, wanted), paths[0].name
        return replace(records, name=name, parts=tuple(replace(part, name=name) for part in records.parts))
    if all(_is_parquet(path) for path in paths):
        return _open_parquet(connection, paths)
    if any(_is_parquet(path) for path in paths):
        raise InvalidInput("The files are partly CSV, partly Parquet.", hint="tabulate one kind at a time.")
    return _open_csv([look_at_csv(path, private, delimiter) for path in paths])


def look_at_files(source: Any, private: Path, delimiter: str | None) -> tuple[Sequence[CsvFile | Path], str]:
    """The files meant, looked at but not opened, and what errors call them together."""
    paths = _paths(source)
    if paths is None:
        raise InvalidOption(
            (
                Setting("engine", "spark"),
                f" reads files, not a {type(source).__name__}.",
            ),
            hint="give a path, or an Ibis table on Spark.",
        )
    if all(_is_parquet(path) for path in paths):
        for path in paths:
            require_parquet(path)
        return [path.absolute() for path in paths], _title(paths)
    if any(_is_parquet(path) for path in paths):
        raise InvalidInput("The files are partly CSV, partly Parquet.", hint="tabulate one kind at a time.")
    files = [look_at_csv(path, private, delimiter) for path in paths]
    for file in files[1:]:
        _require_same_columns(files[0], file)
    return files, _title([file.path for file in files], files[0].name)


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _safe(i: int) -> str:
    """What SQL calls the i-th column, so that no name of the user's can clash with another."""
    return f'"§{i}"'


def _paths(source: Any) -> list[Path] | None:
    """The files meant, or None when the source is a frame."""
    if isinstance(source, (str, Path)):
        return _expanded(source)
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, (str, Path)) for item in source):
        return list(dict.fromkeys(path for item in source for path in _expanded(item)))
    return None


def _expanded(item: str | Path) -> list[Path]:
    path = Path(item)
    if is_there(path) and path.is_dir():
        found = sorted(path.rglob("*.parquet")) or sorted(path.glob("*.csv"))
        if not found:
            raise InvalidFile(f"The folder {str(path)!r} holds no .parquet and no .csv file.", hint="name a file.")
        return found
    if not is_there(path) and glob.has_magic(str(item)) and "\x00" not in str(item):
        found = [Path(name) for name in sorted(glob.glob(str(item), recursive=True))]  # noqa: PTH207
        if not found:
            raise InvalidFile(f"No file matches {str(item)!r}.", hint="paths are relative to the job file.")
        return found
    return [path]


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in {".parquet", ".pq"}


def _open_parquet(connection: Connection, paths: Sequence[Path]) -> Records:
    for path in paths:
        require_parquet(path)
    paths = [path.absolute() for path in paths]
    listed = ", ".join(quoted(str(path)) for path in paths)
    scan = f"read_parquet([{listed}], union_by_name = true)"
    try:
        shape = connection.sql(f"FROM {scan} LIMIT 0")
    except duckdb.Error as error:
        raise InvalidFile(
            text("{name} is not a Parquet file, or is damaged: {why}", name=_title(paths), why=first_line(error)),
            hint="a CSV file must not end in .parquet.",
        ) from error
    columns = {name: Column(_safe(i), str(shape.types[i])) for i, name in enumerate(shape.columns)}
    renamed = ", ".join(f"{identifier(name)} AS {column.sql}" for name, column in columns.items())
    relation = f"(SELECT {renamed} FROM {scan})"
    single = "(SELECT {} FROM (FROM read_parquet({}) UNION ALL BY NAME (FROM {} LIMIT 0)))"
    parts = tuple(Part(single.format(renamed, quoted(str(path)), scan), path.name) for path in paths)
    return Records(_title(paths), relation, columns, parts, tuple(paths))


def _open_csv(files: Sequence[CsvFile]) -> Records:
    first = files[0]
    for file in files[1:]:
        _require_same_columns(first, file)
    columns = {name: Column(_safe(i), "VARCHAR") for i, name in enumerate(first.header)}
    parts = tuple(Part(_csv_relation([file], columns), file.name, file) for file in files)
    alike = all((f.header, f.delimiter) == (first.header, first.delimiter) for f in files)
    relation = (
        _csv_relation(files, columns)
        if alike
        else "(" + " UNION ALL BY NAME ".join(f"FROM {part.relation}" for part in parts) + ")"
    )
    paths = tuple(file.path for file in files)
    return Records(_title(paths, first.name), relation, columns, parts, paths)


def _require_same_columns(first: CsvFile, file: CsvFile) -> None:
    lost = [name for name in first.header if name not in file.header]
    if lost:
        raise InvalidFile(f"{file.name} has no column {lost[0]!r}, which {first.name} has.")


def _csv_relation(files: Sequence[CsvFile], columns: Mapping[str, Column]) -> str:
    """The files as one relation; all its columns are text, under safe names."""
    header = files[0].header
    inner = [columns[name].sql[1:-1] if name in columns else f"unused {i}" for i, name in enumerate(header)]
    spec = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in inner)
    listed = ", ".join(quoted(str(file.path)) for file in files)
    scan = (
        f"read_csv([{listed}], auto_detect = false, header = true, delim = {quoted(files[0].delimiter)}, "
        f"quote = '\"', escape = '\"', columns = {{{spec}}})"
    )
    return f"(SELECT {', '.join(column.sql for column in columns.values())} FROM {scan})"


def _title(paths: Sequence[Path], name: str | None = None) -> str:
    return (name or paths[0].name) if len(paths) == 1 else f"the {len(paths)} files from {name or paths[0].name}"


def _open_frame(connection: Connection, source: Any, wanted: Callable[[str], bool]) -> Records:
    table, names, available = _scannable(source, wanted)
    if not names:
        return Records("the frame", "(SELECT 1)", {}, (Part("(SELECT 1)", "the frame"),), available=available)
    connection.register("records", table)
    shape = connection.sql("FROM records LIMIT 0")
    inner = [identifier(name) for name in shape.columns]
    columns = {name: Column(_safe(i), str(shape.types[i])) for i, name in enumerate(names)}
    renamed = ", ".join(f"{inner[i]} AS {_safe(i)}" for i in range(len(names)))
    relation = f"(SELECT {renamed} FROM records)"
    return Records("the frame", relation, columns, (Part(relation, "the frame"),), available=available)


def _scannable(source: Any, wanted: Callable[[str], bool]) -> tuple[Any, list[str], tuple[str, ...]]:
    """The wanted columns as something that DuckDB can scan again and again, their names, and all names."""
    try:
        if isinstance(source, (pl.DataFrame, pl.LazyFrame)) or not _is_foreign(source):
            source = source.lazy() if isinstance(source, pl.LazyFrame) else pl.DataFrame(source).lazy()
            available = tuple(source.collect_schema().names())
            frame = source.select([name for name in available if wanted(name)]).collect()
            return (
                Scanned(frame.rename({name: f"c{i}" for i, name in enumerate(frame.columns)})),
                frame.columns,
                available,
            )
        if _is_dataset(source):
            available = tuple(source.schema.names)
            return source, list(available), available
        pa = _arrow()
        if hasattr(source, "iloc"):
            source = with_index(source)
            available = tuple(map(str, source.columns))
            table = _from_pandas(pa, source, wanted)
        else:
            table = pa.table(source)
            available = tuple(table.column_names)
            table = table.select([i for i, name in enumerate(available) if wanted(name)])
    except MissingExtra:
        raise
    except _unreadable() as error:
        raise InvalidInput(
            f"Cannot read a {type(source).__name__} as a table of rows and columns: {first_line(error)}",
            hint="give a path, a pandas, polars or Arrow frame, an Ibis table, or a dict of columns.",
        ) from error
    return table.rename_columns([f"c{i}" for i in range(table.num_columns)]), list(table.column_names), available


def _is_foreign(source: Any) -> bool:
    """Whether a frame is of another library than polars."""
    return hasattr(source, "iloc") or hasattr(source, "__arrow_c_stream__") or _is_dataset(source)


def _arrow() -> Any:
    """The library of Arrow, which frames of pandas and Arrow come through."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("Reading frames of pandas and Arrow", "arrow") from None
    return pyarrow


def _unreadable() -> tuple[type[Exception], ...]:
    """What is raised for something that is no frame; by Arrow's library, where it is loaded, too."""
    loaded = sys.modules.get("pyarrow")
    own = () if loaded is None else (loaded.ArrowException,)
    return (pl.exceptions.PolarsError, TypeError, ValueError, AttributeError, *own)


def _is_dataset(source: Any) -> bool:
    """Whether it is a dataset of Arrow, which is a module of its own that brings pandas along."""
    made = sys.modules.get("pyarrow.dataset")
    return made is not None and isinstance(source, made.Dataset)


def _from_pandas(pa: Any, frame: Any, wanted: Callable[[str], bool]) -> Any:
    frame = frame.loc[:, [isinstance(name, str) and wanted(name) for name in frame.columns]]
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException:  # a column of mixed objects: numbers among text, as spreadsheets have them
        objects = [name for name in frame.columns if frame[name].dtype == object]
        mixed = {name: frame[name].map(str, na_action="ignore") for name in objects}
        return pa.Table.from_pandas(frame.assign(**mixed), preserve_index=False)
