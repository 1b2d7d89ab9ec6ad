"""The codes of τ-ARGUS variables: hierarchies as the metadata describe them, missing codes, labels (`.cdl`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tablesafe.core.errors import InvalidFile, InvalidHierarchy
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.read import read_text
from tablesafe.files.write import write_text
from tablesafe.io.tauargus_meta import Metadata, Variable


def read_code_list(path: str | Path) -> dict[str, str]:
    """Read labels: one `code,label` per line; spaces before a code belong to it."""
    path = Path(path)
    labels: dict[str, str] = {}
    for number, line in enumerate(read_text(path).replace("\r\r\n", "\n").splitlines(), start=1):
        if not line.strip(" \t\x1a"):
            continue
        code, comma, label = line.partition("," if "," in line else ";")
        if not comma or not code.strip():
            raise InvalidFile(
                f"{path.name}, line {number}: {line.strip()!r} is not 'code,label'.\n\nHint: add a comma."
            )
        code = code.rstrip().strip('"')
        if code in labels:
            raise InvalidFile(f"{path.name}, line {number}: code {code!r} has a label already.\n\nHint: remove one.")
        labels[code] = label.strip().strip('"')
    if not labels:
        raise InvalidFile(f"{path.name} is empty.\n\nHint: is it the right file, and complete?")
    return labels


def write_code_list(labels: Mapping[str, str], path: str | Path) -> None:
    """Write labels as τ-ARGUS reads them."""
    bad = next((code for code in labels if "," in code or "\n" in code + labels[code] or not code.strip()), None)
    if bad is not None:
        raise InvalidFile(f"Code {bad!r} cannot be written to {Path(path).name}.\n\nHint: codes there hold no comma.")
    write_text(path, "".join(f"{code},{label}\n" for code, label in labels.items()))


def hierarchy_of(variable: Variable, metadata: Metadata, found: Sequence[str]) -> Hierarchy:
    """The hierarchy of a dimension: its file, the digits of its codes, or all codes `found` under one total.

    A missing code is part of the total and of nothing else.
    """
    labels = {}
    if variable.code_list is not None:
        labels = read_code_list(metadata.file(variable.code_list, variable.line))
    missing = [code for code in variable.missing if code.strip()]
    special = {variable.total.strip(), *(code.strip() for code in missing)}
    codes = [code for code in found if code.strip() and code.strip() not in special]
    if variable.hierarchy_file is not None and variable.hierarchical:
        path = metadata.file(variable.hierarchy_file, variable.line)
        tree = Hierarchy.from_hrc(path, indent=variable.indent, total=variable.total)
    elif variable.levels:
        lengths = list(itertools.accumulate(width for width in variable.levels if width))[:-1]
        tree = Hierarchy.from_prefixes(codes or missing, lengths=lengths, total=variable.total, name=variable.name)
    elif codes or missing:
        tree = Hierarchy.flat([*codes, *missing], total=variable.total, name=variable.name)
    else:
        tree = Hierarchy.flat([variable.total], total=None, name=variable.name)
    return with_labels(with_codes(tree, missing, variable.total), labels)


def add_the_line(error: InvalidHierarchy, trees: Iterable[Hierarchy]) -> InvalidHierarchy:
    """The error about a code that a hierarchy file lacks, with the remedy for it."""
    message = str(error)
    for tree in trees:
        if tree.name.lower().endswith(".hrc") and f"is not in {tree.name}." in message:
            return InvalidHierarchy(f"{message} If the code is right, add a line for it to {tree.name}.")
    return error


def with_codes(tree: Hierarchy, codes: Iterable[str], total: str) -> Hierarchy:
    """The tree with further codes directly under its total."""
    known = {code.strip() for code in (*tree.codes, *tree.aliases)}
    new = [code for code in dict.fromkeys(codes) if code.strip() not in known]
    if not new:
        return tree
    pairs = [*pairs_of(tree), *((total, code) for code in new)]
    return Hierarchy.from_pairs(pairs, labels=tree.labels, name=tree.name)


def with_labels(tree: Hierarchy, labels: Mapping[str, str]) -> Hierarchy:
    """The tree with labels; codes that differ only by spaces around them are the same."""
    if not labels:
        return tree
    bare = {code.strip(): label for code, label in labels.items()}
    own = {code: labels.get(code, bare.get(code.strip(), "")) for code in tree.codes}
    return replace(tree, labels={code: label for code, label in own.items() if label})


def pairs_of(tree: Hierarchy) -> list[tuple[str, str]]:
    """Parents and children, with the second names of codes as levels of their own again."""
    bottom = {code: code for code in tree.codes}
    pairs: list[tuple[str, str]] = []
    for alias, code in tree.aliases.items():
        pairs.append((bottom[code], alias))
        bottom[code] = alias
    return pairs + [(bottom[e.total], part) for e in tree.as_equations() for part in e.parts]
