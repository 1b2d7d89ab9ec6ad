"""SDMX, as statistical offices, central banks and Eurostat exchange data: SDMX-CSV, and SDMX-ML through pysdmx.

SDMX-CSV (1.0 and 2.0) is read and written without any further package: the columns before `OBS_VALUE` are dimensions,
those after it attributes. `CONF_STATUS` says why a value is confidential, `OBS_STATUS` that it is missing because
it was suppressed (Q). A structure message in SDMX-ML, with codelists, gives labels, the order of codes, and hierarchies
where codes have parents. SDMX-ML needs the extra `sdmx`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidOption, MissingExtra
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.read import Source, parse_csv, read_text
from tablesafe.files.write import whole_file, write_text
from tablesafe.io.dataset import STATUS, Dataset

OBS_VALUE, OBS_STATUS, CONF_STATUS = "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"
ABOUT = ("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "DATAFLOW", "SERIES_KEY", "OBS_KEY")
"""Columns that say what a row belongs to."""
FLOW = "TABLESAFE:RELEASE(1.0)"
SUPPRESSED, NORMAL = "Q", "A"
_ID = re.compile(r"[^A-Za-z0-9_@$-]")


def read_sdmx(path: str | Path, *, structure: str | Path | None = None) -> Dataset:
    """Read SDMX data: SDMX-CSV, or SDMX-ML with the extra `sdmx`; `structure` is a structure message with codelists."""
    path = Path(path)
    head = read_text(path)
    data = _from_csv(head, path.name) if not head.lstrip("\ufeff \r\n\t").startswith("<") else _from_xml(path)
    return data if structure is None else _with_codelists(data, Path(structure))


def is_sdmx_csv(names: Sequence[str]) -> bool:
    """Whether a file with these columns is SDMX-CSV."""
    plain = {_id(name) for name in names}
    return OBS_VALUE in plain and bool(plain & {"DATAFLOW", "STRUCTURE_ID"})


def write_sdmx(
    release: Release | Dataset,
    path: str | Path,
    *,
    problem: Problem | None = None,
    confidential: bool = False,
    flow: str = FLOW,
    version: str = "csv-2.0",
) -> None:
    """Write a release as SDMX data: `.csv` as SDMX-CSV, `.xml` as SDMX-ML 2.1 or 3.0 (`version="ml-3.0"`).

    To the public a withheld cell has no value, `OBS_STATUS` Q and `CONF_STATUS` C, whatever the reason. With
    `confidential`, for those who may see it, every value is there and `CONF_STATUS` tells the reason: A small counts, O
    and T dominated by one or two, M another measure of concentration, C any other, D secondary. Confidential.
    """
    data = (
        release
        if isinstance(release, Dataset)
        else Dataset.of_release(release, problem=problem, confidential=confidential)
    )
    if not re.fullmatch(r"[^:()]+:[^:()]+\([\w.+*]+\)", flow):
        raise InvalidOption(f"flow must look like AGENCY:ID(1.0), got {flow!r}.")
    path = Path(path)
    if path.suffix.lower() == ".xml":
        _write_xml(data, path, flow, "3.0" if version == "ml-3.0" else "2.1")
    else:
        write_text(path, sdmx_csv(data, flow=flow, version="1.0" if version == "csv-1.0" else "2.0"))


def sdmx_csv(data: Dataset, *, flow: str = FLOW, version: str = "2.0") -> str:
    """The text of an SDMX-CSV file."""
    frame, about = _observations(data), data.rows.frame.height
    lead = {"DATAFLOW": [flow] * about} if version == "1.0" else {
        "STRUCTURE": ["dataflow"] * about, "STRUCTURE_ID": [flow] * about, "ACTION": ["I"] * about
    }  # fmt: skip
    return pl.DataFrame(lead).hstack(frame).write_csv()


def _observations(data: Dataset) -> pl.DataFrame:
    """Dimensions under names that SDMX allows, the value, and both statuses."""
    frame = data.rows.frame
    names = _ids(list(data.dimensions))
    columns: dict[str, Any] = {names[name]: frame[name] for name in data.dimensions}
    values = frame[data.value]
    whole = values.drop_nulls()
    columns[OBS_VALUE] = values.cast(pl.Int64) if bool((whole == whole.round()).all()) else values
    columns[OBS_STATUS] = pl.select(
        pl.when(values.is_null()).then(pl.lit(SUPPRESSED)).otherwise(pl.lit(NORMAL))
    ).to_series()
    if data.scheme == "sdmx-conf" and data.status is not None:
        columns[CONF_STATUS] = frame[data.status]
    return pl.DataFrame(columns)


def _ids(names: Sequence[str]) -> dict[str, str]:
    """Names as SDMX allows them: letters, digits, _ - @ $; no two alike."""
    taken: dict[str, str] = {}
    for name in names:
        plain = _ID.sub("_", name) or "DIMENSION"
        while plain in taken.values() or plain in {OBS_VALUE, OBS_STATUS, CONF_STATUS, *ABOUT}:
            plain += "_"
        taken[name] = plain
    return taken


# SDMX-CSV in.


def _id(name: str) -> str:
    """The identifier of a column or code: with labels it reads `FREQ: Frequency`."""
    return name.split(":", 1)[0].strip().removesuffix("[]")


def _from_csv(text: str, name: str) -> Dataset:
    source = parse_csv(text, name)
    plain = {column: _id(column) for column in source.frame.columns}
    if OBS_VALUE not in plain.values():
        raise InvalidFile(
            f"{name} has no column {OBS_VALUE}. It has: {', '.join(map(repr, source.frame.columns))}.",
            hint="SDMX-CSV names its values so; plain tables are read as CSV.",
        )
    labelled = any(": " in column for column in source.frame.columns)
    frame = source.frame.rename(plain) if len(set(plain.values())) == len(plain) else _refuse_twice(name, plain)
    frame, labels = _split_labels(frame) if labelled else (frame, {})
    columns = frame.columns
    before = columns[: columns.index(OBS_VALUE)]
    dimensions = [column for column in before if column not in ABOUT]
    if not dimensions:
        raise InvalidFile(f"{name} has no dimensions before {OBS_VALUE}.", hint="dimensions stand before the values.")
    _refuse_deletions(name, source, frame)
    flows = frame.select(c for c in ("DATAFLOW", "STRUCTURE_ID") if c in columns).unique()
    if flows.height > 1:
        raise InvalidFile(
            f"{name} holds several datasets: {', '.join(map(str, flows.to_series().head(4).to_list()))}.",
            hint="keep the rows of one of them.",
        )
    values = frame[OBS_VALUE].str.strip_chars()
    numbers = pl.select(pl.when(values.str.to_lowercase().is_in(["", "nan"])).then(None).otherwise(values)).to_series()
    read = Source(frame.with_columns(numbers.alias(OBS_VALUE)), name, first_line=2)
    present = read.frame.with_columns(pl.Series(OBS_VALUE, _numbers(read)))
    status = next((column for column in (CONF_STATUS, OBS_STATUS) if column in columns), None)
    return Dataset(
        rows=Source(present, name, first_line=2),
        dimensions=dict.fromkeys(dimensions),
        codes={column: frame[column].unique(maintain_order=True).to_list() for column in dimensions},
        labels=labels,
        value=OBS_VALUE,
        status=status,
        scheme={CONF_STATUS: "sdmx-conf", OBS_STATUS: "obs-status", None: None}[status],
        unit=str(frame["UNIT_MEASURE"][0]) if "UNIT_MEASURE" in columns and frame.height else "",
    )


def _numbers(source: Source) -> list[float | None]:
    missing = source.frame[OBS_VALUE].is_null().to_numpy()
    values = source.numbers(OBS_VALUE, missing=0.0)
    return [None if gone else value for gone, value in zip(missing.tolist(), values.tolist(), strict=True)]


def _refuse_twice(name: str, plain: Mapping[str, str]) -> pl.DataFrame:
    twice = next(value for value in plain.values() if list(plain.values()).count(value) > 1)
    raise InvalidFile(f"{name} has two columns called {twice!r}.", hint="remove one of them.")


def _split_labels(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, dict[str, str]]]:
    """Codes and labels of entries such as `M: Monthly`."""
    labels: dict[str, dict[str, str]] = {}
    for column in frame.columns:
        parts = frame[column].str.splitn(": ", 2)
        code, label = parts.struct.field("field_0"), parts.struct.field("field_1")
        if column not in {OBS_VALUE, *ABOUT} and not label.is_null().all():
            pairs = pl.DataFrame({"code": code, "label": label}).drop_nulls().unique("code", maintain_order=True)
            labels[column] = dict(pairs.iter_rows())
            frame = frame.with_columns(code.alias(column))
    return frame, labels


def _refuse_deletions(name: str, source: Source, frame: pl.DataFrame) -> None:
    if "ACTION" in frame.columns:
        gone = np.flatnonzero((frame["ACTION"].str.to_uppercase() == "D").fill_null(False).to_numpy())
        if gone.size:
            raise InvalidFile(
                f"{source.where(int(gone[0]))} deletes an observation (ACTION D): {name} is an update, not a table.",
                hint="apply it to the data it belongs to first.",
            )


# SDMX-ML, through pysdmx.


def _pysdmx() -> Any:
    try:
        import pysdmx.io as io
    except ImportError:
        raise MissingExtra("SDMX-ML", "sdmx") from None
    return io


def _from_xml(path: Path) -> Dataset:
    io = _pysdmx()
    try:
        message = io.read_sdmx(str(path), validate=False)
        datasets = list(message.data or ())
    except Exception as error:
        raise InvalidFile(
            f"{path.name} is no SDMX data: {error}.", hint="a structure message is given as structure=."
        ) from error
    if not datasets:
        raise InvalidFile(f"{path.name} holds no data.", hint="a structure message is given as structure=.")
    frame = pl.from_pandas(datasets[0].data.astype(str)).with_columns(pl.all().replace({"nan": "", "None": ""}))
    columns = frame.columns
    if OBS_VALUE not in columns:
        raise InvalidFile(f"{path.name} has no observations.", hint="is the file complete?")
    attributes = [
        c
        for c in columns
        if c in {OBS_STATUS, CONF_STATUS, "UNIT_MEASURE", "UNIT_MULT", "DECIMALS"} or c.startswith("COMMENT")
    ]
    ordered = [c for c in columns if c not in {OBS_VALUE, *attributes}] + [OBS_VALUE, *attributes]
    return _from_csv(frame.select(ordered).write_csv(), path.name)


def _with_codelists(data: Dataset, structure: Path) -> Dataset:
    """The dataset with labels, order and parents of its codes as a structure message has them."""
    io = _pysdmx()
    try:
        message = io.read_sdmx(str(structure), validate=False)
        codelists = list(message.get_codelists())
    except Exception as error:
        raise InvalidFile(
            f"{structure.name} is no SDMX structure: {error}.", hint="export it with its codelists."
        ) from error
    dimensions, codes, labels = dict(data.dimensions), dict(data.codes), dict(data.labels)
    for name in data.dimensions:
        used = set(data.codes[name])
        fitting = [own for own in codelists if used <= {code.id for code in own.codes}]
        if not fitting:
            continue
        chosen = min(fitting, key=lambda own: (_id(own.id).removeprefix("CL_").upper() != name.upper(), len(own.codes)))
        codes[name] = [code.id for code in chosen.codes if code.id in used]
        labels[name] = {code.id: code.name for code in chosen.codes if code.id in used and code.name}
        parents = [
            (code.parent, code.id) for code in chosen.codes if getattr(code, "parent", None) in used and code.id in used
        ]
        if parents:
            dimensions[name] = Hierarchy.from_pairs(parents, name=f"{structure.name}, codelist {chosen.id}")
    return replace(data, dimensions=dimensions, codes=codes, labels=labels)


def _write_xml(data: Dataset, path: Path, flow: str, version: str) -> None:
    _pysdmx()
    from pysdmx.io import write_sdmx as write
    from pysdmx.io.format import Format
    from pysdmx.io.pd import PandasDataset
    from pysdmx.model import Component, Components, Concept, DataType, Role, Schema

    frame = _observations(data)
    agency, rest = flow.split(":", 1)
    name, number = rest.rstrip(")").split("(")
    roles = {
        column: Role.MEASURE
        if column == OBS_VALUE
        else Role.ATTRIBUTE
        if column in {OBS_STATUS, CONF_STATUS}
        else Role.DIMENSION
        for column in frame.columns
    }
    parts = [
        Component(
            id=column, required=role == Role.DIMENSION, role=role, concept=Concept(column),
            local_dtype=DataType.DOUBLE if column == OBS_VALUE else DataType.STRING,
            attachment_level="O" if role == Role.ATTRIBUTE else None,
        )
        for column, role in roles.items()
    ]  # fmt: skip
    schema = Schema(
        context="dataflow", agency=agency, id=name, version=number, components=Components(parts), artefacts=[]
    )
    dataset = PandasDataset(structure=schema, data=frame.to_pandas())
    kind = Format.DATA_SDMX_ML_3_0 if version == "3.0" else Format.DATA_SDMX_ML_2_1_STR
    with whole_file(path) as temporary:
        write([dataset], sdmx_format=kind, output_path=str(temporary))


__all__ = ["STATUS", "is_sdmx_csv", "read_sdmx", "sdmx_csv", "write_sdmx"]
