"""Records as microdata of fixed format that τ-ARGUS can open: `.asc` with `.rda` and a `.hrc` per hierarchy.

τ-ARGUS compares codes with the whole width of their field, so that shorter ones have spaces before them, in the records
and at the leaves of the `.hrc` file. A record carries the code of a leaf; where a group has a single part, the part's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from tablesafe.core.errors import InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.read import guess_delimiter
from tablesafe.io.tauargus_export import Commands, closing, opening
from tablesafe.io.tauargus_meta import Metadata, Role, Variable, metadata_text
from tablesafe.io.tauargus_write_tab import Texts, labels_text

WIDEST = 255
"""Characters that a field may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One variable of the records, as text."""

    name: str
    role: Role
    text: pl.Series = field(repr=False)
    tree: Hierarchy | None = None
    decimals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroTable:
    """A table to make of the records, in τ-ARGUS's words."""

    dimensions: tuple[str, ...]
    response: str | None
    rules: str
    shadow: str = ""
    cost: str = ""

    @property
    def line(self) -> str:
        """How a batch file specifies it."""
        spanned = "".join(f'"{name}"' for name in self.dimensions)
        response = "<freq>" if self.response is None else f'"{self.response}"'
        shadow = f'"{self.shadow}"' if self.shadow else ""
        cost = self.cost if self.cost.startswith("-") or not self.cost else f'"{self.cost}"'
        return f"<SPECIFYTABLE> {spanned}|{response}|{shadow}|{cost}"


def record_files(
    columns: Sequence[Column],
    tables: Sequence[MicroTable],
    name: str,
    commands: Commands,
    apriori: Mapping[str, str] | None = None,
) -> Texts:
    """The files of records and of the tables to make of them, the batch file first.

    `apriori` are a-priori files by name, for all tables; they stand in the folder too.
    """
    columns = [_spelled(column) for column in columns]
    variables, fields, start = [], [], 1
    files, labels = _tree_files(columns, name), _label_files(columns, name)
    for column in columns:
        width = max(1, int(column.text.str.len_chars().max() or 1), *_leaf_widths(column))  # type: ignore[arg-type]
        if width > WIDEST:
            raise InvalidTable(f"{column.name!r} has entries of {width} characters, more than τ-ARGUS reads.")
        variables.append(_variable(column, files.get(column.name), labels.get(column.name), start, width))
        fields.append(column.text.fill_null("").str.pad_start(width))
        start += width
    metadata = Metadata(variables=tuple(variables), kind="micro", path=Path(f"{name}.rda"))
    lines = opening(name, commands.comments)
    lines += [f'<OPENMICRODATA> "{name}.asc"', f'<OPENMETADATA> "{name}.rda"']
    for table in tables:
        lines += [table.line, f"<SAFETYRULE> {table.rules}"]
    lines.append("<READMICRODATA>")
    for file, text in (apriori or {}).items():
        lines += [f'<APRIORI> "{file}", {i + 1}, "{guess_delimiter(text)}", 0, 0' for i in range(len(tables))]
    frame = pl.DataFrame([text.alias(str(i)) for i, text in enumerate(fields)])
    rows = frame.select(pl.concat_str(pl.all())).to_series()
    texts = {
        f"{name}.arb": "\n".join([*lines, *closing(len(tables), commands)]) + "\n",
        f"{name}.asc": "".join(row + "\n" for row in rows.to_list()),
        f"{name}.rda": metadata_text(metadata),
        **{file: _padded(tree, width).hrc_text(indent=indent) for file, indent, tree, width in files.values()},
        **dict(labels.values()),
        **(apriori or {}),
    }
    return Texts(texts, [])


def is_plain(tree: Hierarchy) -> bool:
    """Whether τ-ARGUS can read records with the codes of a hierarchy: a tree whose codes differ by more than spaces."""
    names = [*tree.codes, *tree.aliases]
    clean = all(code.strip() and '"' not in code and "\n" not in code for code in names)
    return tree.is_tree and clean and len({code.strip() for code in names}) == len(names)


def _leaves(tree: Hierarchy) -> dict[str, str]:
    """The name of each leaf that a record carries: of several, that of the deepest level."""
    names = {code: code for code in tree.leaves}
    for alias, code in tree.aliases.items():
        if code in names:
            names[code] = alias
    return names


def _spelled(column: Column) -> Column:
    """The column with every code under the name that the `.hrc` file has for its leaf."""
    if column.tree is None:
        return column
    leaves, tree = _leaves(column.tree), column.tree
    known = {code: code for code in tree.codes} | dict(tree.aliases)
    found = column.text.unique().drop_nulls().to_list()
    spelled = {code: leaves[known[code] if code in known else tree.codes[tree.position(code)]] for code in found}
    text = column.text.replace_strict(
        list(spelled), [each.strip() for each in spelled.values()], return_dtype=pl.String
    )
    return replace(column, text=text)


def _leaf_widths(column: Column) -> list[int]:
    return [] if column.tree is None else [len(name.strip()) for name in _leaves(column.tree).values()]


def _tree_files(columns: Sequence[Column], name: str) -> dict[str, tuple[str, str, Hierarchy, int]]:
    """A file, an indent string, the tree and the width of codes for each dimension of several levels."""
    files = {}
    for i, column in enumerate(columns, start=1):
        tree = column.tree
        if tree is not None and (len(tree.totals) > 1 or tree.aliases):
            indent = "@" * (1 + max(len(code) - len(code.lstrip("@")) for code in (*tree.codes, *tree.aliases)))
            file = f"{name}_{i}_{re.sub(r'[^0-9A-Za-z_-]+', '_', column.name)}.hrc"
            files[column.name] = (file, indent, tree, max(_leaf_widths(column)))
    return files


def _padded(tree: Hierarchy, width: int) -> Hierarchy:
    """The tree with spaces before the names of leaves, up to a width; other codes stay."""
    leaves = set(_leaves(tree).values())
    names = {
        code: code.strip().rjust(width) if code in leaves else code.strip() for code in (*tree.codes, *tree.aliases)
    }
    return replace(
        tree,
        codes=tuple(names[code] for code in tree.codes),
        aliases={names[alias]: names[code] for alias, code in tree.aliases.items()},
        labels={},
    )


def _label_files(columns: Sequence[Column], name: str) -> dict[str, tuple[str, str]]:
    """A file and its text for each dimension whose codes have labels."""
    texts = {column.name: labels_text(column.tree) for column in columns if column.tree is not None}
    return {each: (f"{name}_{i}.cdl", text) for i, (each, text) in enumerate(texts.items(), start=1) if text}


def _variable(
    column: Column, file: tuple[str, str, Hierarchy, int] | None, labels: tuple[str, str] | None, start: int, width: int
) -> Variable:
    described = Variable(name=column.name, role=column.role, start=start, width=width, decimals=column.decimals)
    if column.tree is None:
        return described
    described = replace(described, total=column.tree.roots[0], code_list=None if labels is None else labels[0])
    return described if file is None else replace(described, hierarchical=True, hierarchy_file=file[0], indent=file[1])
