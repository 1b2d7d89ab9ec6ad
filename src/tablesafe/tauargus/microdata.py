"""τ-ARGUS microdata (`.asc` with `.rda`), of fixed or free format, as a frame and hierarchies for `tabulate`.

- Codes are spelled as in their hierarchy; where there is none, without the spaces around them.
- A blank code is the variable's (first) missing code. A blank holding is no holding: the record stands alone.
- A number with one of the variable's missing codes, or without any digit, is missing (null).
- Numbers are taken as they stand: `<DECIMALS>` says how many to show, it moves no point. Decimal commas are understood.
- A variable that is both a dimension and a response is there twice: its codes under its name, its numbers under the
  name with ` (number)` after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidHierarchy
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.read import Source, read_bytes_probe
from tablesafe.io.text import read_lines, split_lines
from tablesafe.tauargus.codes import add_the_line, hierarchy_of
from tablesafe.tauargus.metadata import Kind, Metadata, Role, Variable, read_metadata

NUMERIC_ROLES = {Role.RESPONSE, Role.WEIGHT, Role.RECORD_KEY}
NUMBER = " (number)"


@dataclass(frozen=True, eq=False)
class Microdata:
    """Records, and what the metadata say about them."""

    frame: pl.DataFrame = field(repr=False)
    dimensions: Mapping[str, Hierarchy]
    metadata: Metadata = field(repr=False)
    name: str

    @property
    def weight(self) -> str | None:
        """The sampling weight, if there is one."""
        return self._only(Role.WEIGHT)

    @property
    def holding(self) -> str | None:
        """The variable that tells groups of respondents apart, if there is one."""
        return self._only(Role.HOLDING)

    @property
    def request(self) -> str | None:
        """The variable that marks respondents who ask for protection, if there is one."""
        return self._only(Role.REQUEST)

    def response(self, name: str) -> str:
        """The column of the frame that holds the numbers of a response variable."""
        variable = self.metadata.variable(name)
        if not variable.is_response:
            raise InvalidFile(
                f"{variable.name!r} is no response variable: {self.metadata.path.name} calls it {variable.role.value}.",
                hint="add <NUMERIC> to it.",
            )
        return variable.name + (NUMBER if variable.is_dimension else "")

    def _only(self, role: Role) -> str | None:
        found = self.metadata.having(role)
        return found[0].name if found else None


def read_microdata(
    path: str | Path, metadata: Metadata | str | Path | None = None, *, dimensions: Sequence[str] | None = None
) -> Microdata:
    """Read microdata as their metadata describe them; by default those of the same name, ending in `.rda`.

    `dimensions` limits which hierarchies are built and checked against the records; by default all.
    """
    path = Path(path)
    metadata = metadata_for(path, metadata, "micro")
    lines = read_lines(path)
    names = [variable.name for variable in metadata.variables]
    if metadata.separator is None:
        source = _split_fixed(lines, path.name, metadata.variables)
    else:
        source = split_lines(lines, path.name, metadata.separator, names)
    wanted = metadata.dimensions if dimensions is None else [_dimension(metadata, name) for name in dimensions]
    hierarchies: dict[str, Hierarchy] = {}
    columns: dict[str, pl.Series] = {}
    for variable in metadata.variables:
        if variable in wanted:
            tree, codes = _codes(source, variable, metadata)
            hierarchies[variable.name], columns[variable.name] = tree, codes
        elif variable.role is Role.HOLDING:
            columns[variable.name] = _holdings(source, variable)
        elif variable.role not in NUMERIC_ROLES:
            columns[variable.name] = source.text(variable.name)
        if variable.role in NUMERIC_ROLES or variable.is_response:
            name = variable.name + (NUMBER if variable.is_dimension else "")
            columns[name] = _numbers(source, variable).alias(name)
    return Microdata(pl.DataFrame(columns), hierarchies, metadata, path.name)


def _dimension(metadata: Metadata, name: str) -> Variable:
    variable = metadata.variable(name)
    if not variable.is_dimension:
        raise InvalidFile(
            f"{variable.name!r} is no dimension: {metadata.path.name} calls it {variable.role.value}.",
            hint="add <RECODEABLE> to it.",
        )
    return variable


def metadata_for(path: Path, metadata: Metadata | str | Path | None, kind: Kind) -> Metadata:
    """The metadata as given, or read from the file given, or from the `.rda` file beside the data."""
    if isinstance(metadata, Metadata):
        return metadata
    return read_metadata(_rda_beside(path) if metadata is None else metadata, kind=kind)


def _rda_beside(path: Path) -> Path:
    """The `.rda` file with the name of the data, in any case."""
    read_bytes_probe(path)
    others = sorted(entry for entry in path.parent.iterdir() if entry.suffix.lower() == ".rda")
    for entry in others:
        if entry.stem.lower() == path.stem.lower():
            return entry
    names = ", ".join(entry.name for entry in others)
    raise InvalidFile(
        f"There is no {path.stem}.rda beside {path.name} that describes it.",
        hint=f"say which file does{f'; there is {names}' if names else ''}.",
    )


def _split_fixed(lines: pl.Series, name: str, variables: Sequence[Variable]) -> Source:
    """Cut lines of fixed format into columns; what a short line lacks is blank."""
    columns = {}
    for variable in variables:
        if variable.start is None or variable.width is None:
            raise InvalidFile(f"The place of {variable.name!r} in {name} is not given.", hint="'name start width'.")
        columns[variable.name] = lines.str.slice(variable.start - 1, variable.width)
    first = min(variable.start or 1 for variable in variables)
    short = (lines.str.len_chars() < first).to_numpy()
    if short.any():
        raise InvalidFile(
            f"{name}, line {int(short.argmax()) + 1} ends before the first variable.",
            hint="does the file belong to its metadata?",
        )
    return Source(pl.DataFrame(columns), name, first_line=1)


def _codes(source: Source, variable: Variable, metadata: Metadata) -> tuple[Hierarchy, pl.Series]:
    """The hierarchy of a dimension, and the records' codes spelled as there."""
    text = _filled(source, variable)
    width = variable.width or 0
    found = sorted({code.strip() for code in text.unique().to_list()}, key=lambda code: code.rjust(width))
    if variable.levels:
        found = sorted({code.rstrip() for code in text.unique().to_list()})
    tree = hierarchy_of(variable, metadata, found)
    try:
        tree.locate(Source(text.to_frame(), source.name, source.first_line), variable.name)
    except InvalidHierarchy as error:
        raise add_the_line(error, {variable.name: tree}) from None
    names = {name.strip(): name for name in (*tree.aliases, *tree.codes)}
    spelled = {code: code if code in tree.aliases else names[code.strip()] for code in text.unique().to_list()}
    own = {code: code if code in tree.codes else name for code, name in spelled.items()}
    return tree, text.replace_strict(list(own), list(own.values()), return_dtype=pl.String)


def _filled(source: Source, variable: Variable) -> pl.Series:
    """The codes of a dimension, with the missing code for those that are blank."""
    text = source.frame[variable.name].fill_null("")
    blank = text.str.strip_chars() == ""
    missing = [code for code in variable.missing if code.strip()]
    if not blank.any():
        return text
    if not missing:
        raise InvalidFile(
            f"The code of {variable.name!r} is blank at {source.where(int(blank.arg_max() or 0))}.",
            hint=f"fill it in, or give {variable.name!r} a missing code in the metadata: a code after its width.",
        )
    return text.set(blank, missing[0])


def _holdings(source: Source, variable: Variable) -> pl.Series:
    """Who belongs together; a record without a holding gets one of its own."""
    text = source.text(variable.name).fill_null("")
    alone = (text == "") | text.is_in([code.strip() for code in variable.missing])
    own = "\x00" + pl.int_range(len(text), eager=True).cast(pl.String)
    return text.zip_with(~alone, own).alias(variable.name)


def _numbers(source: Source, variable: Variable) -> pl.Series:
    text = source.text(variable.name)
    gone = text.is_null() | (text == "") | text.is_in([code.strip() for code in variable.missing])
    bare = Source(text.set(gone, None).to_frame(), source.name, source.first_line)
    numbers = pl.Series(bare.numbers(variable.name, missing=0.0))
    return numbers.set(gone, None)
