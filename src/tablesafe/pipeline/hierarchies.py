"""The hierarchies of a job's dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tablesafe.core.errors import InvalidHierarchy, concerning
from tablesafe.core.hierarchy import TOTAL, Hierarchy
from tablesafe.files.read import Source, read_source
from tablesafe.io.formats import read_dataset
from tablesafe.job.model import Dimension, Job
from tablesafe.tabulate.readstat import is_readstat, value_labels

Written = Literal["hrc", "pairs", "levels", "prefixes", "equations", "flat"]


def is_structured(dimension: Dimension) -> bool:
    """Whether a job says how the codes of a dimension add up, or leaves it to one total over all of them."""
    said = dimension.hierarchy or dimension.lengths or dimension.filler or dimension.equations
    return bool(said) or dimension.kind not in {"auto", "flat"}


def build_hierarchy(job: Job, name: str, codes: Callable[[], list[str]]) -> Hierarchy:
    """The hierarchy of a dimension from its file or its equations; `codes` lists what the data hold if need be."""
    dimension = job.dimensions[name]
    file = None if dimension.hierarchy is None else job.resolve(dimension.hierarchy)
    with concerning("dimension", name, "hierarchy" if file is not None else "equations"):
        source = read_source(file) if file is not None and file.suffix.lower() != ".hrc" else None
        return _built(dimension, name, file, source, codes)


def _built(
    dimension: Dimension, name: str, file: Path | None, source: Source | None, codes: Callable[[], list[str]]
) -> Hierarchy:
    kind = _kind(dimension, file, source)
    total = dimension.total
    if kind in {"hrc", "pairs", "levels"} and file is None:
        raise InvalidHierarchy(f"Dimension {name!r} is of kind {kind!r}, but names no hierarchy file.")
    match kind:
        case "hrc":
            assert file is not None
            return Hierarchy.from_hrc(file, indent=dimension.indent, total=total)
        case "pairs":
            assert source is not None
            return _from_pairs(source, dimension.columns or ("parent", "child"), total)
        case "levels":
            assert source is not None
            return Hierarchy.from_levels(source, columns=dimension.columns or None, total=total, name=source.name)
        case "prefixes":
            listed = _listed(source, dimension) if source is not None else codes()
            lengths, label = dimension.lengths or None, f"dimension {name!r}"
            return Hierarchy.from_prefixes(
                [code for code in listed if code != total],
                lengths=lengths, filler=dimension.filler, total=total, name=label if source is None else source.name,
            )  # fmt: skip
        case "equations":
            return _from_equations(name, dimension)
        case "flat":
            parts = [code for code in codes() if code != total]
            return Hierarchy.flat(parts, total=total, name=f"dimension {name!r}")


def recoded(job: Job, name: str, tree: Hierarchy) -> Hierarchy:
    """The coarser hierarchy that a dimension asks for: a code that is gone is another name of the one in its place."""
    from tablesafe.tauargus.codes import read_recode, recode_codes, recode_level, recode_tree

    dimension, changes = job.dimensions[name], []
    if dimension.recode is not None:
        with concerning("dimension", name, "recode"):
            file = read_recode(job.resolve(dimension.recode))
            listed = file.collapsed is None
            changes.append(recode_codes(tree, file, name, ()) if listed else recode_tree(tree, file, name))
    if dimension.level is not None:
        with concerning("dimension", name, "level"):
            changes.append(recode_level(changes[-1].tree if changes else tree, dimension.level, name))
    for change in changes:
        for remark in change.remarks:
            warnings.warn(remark, stacklevel=2)
        names = {**{code: code for code in change.tree.codes}, **change.tree.aliases}
        before = {**tree.aliases, **{code: code for code in tree.codes}}
        becomes = {old: change.becomes.get(code, code) for old, code in before.items()}
        gone = {old: names[new] for old, new in becomes.items() if old not in names and new in names}
        tree = replace(change.tree, aliases={**change.tree.aliases, **gone})
    return tree


def _kind(dimension: Dimension, file: Path | None, source: Source | None) -> Written:
    if dimension.kind != "auto":
        return dimension.kind
    if file is not None and file.suffix.lower() == ".hrc":
        return "hrc"
    if dimension.lengths or dimension.filler:
        return "prefixes"
    if dimension.equations:
        return "equations"
    if source is None:
        return "flat"
    return "pairs" if {"parent", "child"} <= set(source.frame.columns) else "levels"


def hierarchy_of_source(source: Source, *, total: str = TOTAL) -> Hierarchy:
    """A hierarchy from a file: pairs where it has the columns 'parent' and 'child', otherwise one column per level."""
    if {"parent", "child"} <= set(source.frame.columns):
        return _from_pairs(source, ("parent", "child"), total)
    return Hierarchy.from_levels(source, total=total, name=source.name)


def _from_pairs(source: Source, columns: Sequence[str], total: str) -> Hierarchy:
    if len(columns) != 2:
        raise InvalidHierarchy(f"Pairs need two columns, the parent and the child; got {list(columns)}.")
    parents, children = (source.text(column) for column in columns)
    empty = (parents.is_null() | (parents == "") | children.is_null() | (children == "")).fill_null(True)
    if empty.any():
        row = int(empty.arg_max() or 0)
        raise InvalidHierarchy(f"{source.where(row)} lacks a parent or a child.", hint="fill it in or delete the row.")
    pairs = list(zip(parents.to_list(), children.to_list(), strict=True))
    inner = {child for _, child in pairs}
    roots = list(dict.fromkeys(parent for parent, _ in pairs if parent not in inner))
    return Hierarchy.from_pairs(pairs, total=None if len(roots) == 1 else total, name=source.name)


def _listed(source: Source, dimension: Dimension) -> list[str]:
    column = dimension.columns[0] if dimension.columns else source.frame.columns[0]
    return [str(code) for code in source.text(column).drop_nulls().unique(maintain_order=True).to_list()]


def _from_equations(name: str, dimension: Dimension) -> Hierarchy:
    return Hierarchy.from_equations(list(dimension.equations), name=f"dimension {name!r}")


def with_labels(job: Job, dimensions: Mapping[str, Hierarchy]) -> dict[str, Hierarchy]:
    """The dimensions with the labels that the source tells, and before those the ones that the job names a file for."""
    labelled, told = dict(dimensions), _told_labels(job)
    for name, dimension in job.dimensions.items():
        own = told.get(dimension.column or name, {})
        if name in labelled and own:
            codes = set(labelled[name].codes)
            known = {code: label for code, label in own.items() if code in codes}
            labelled[name] = replace(labelled[name], labels={**known, **labelled[name].labels})
        if dimension.labels is not None and name in labelled:
            with concerning("dimension", name, "labels"):
                labels = read_labels(job.resolve(dimension.labels))
            labelled[name] = replace(labelled[name], labels={**labelled[name].labels, **labels})
    return labelled


def _told_labels(job: Job) -> Mapping[str, Mapping[str, str]]:
    """The names of codes, by column, where the source tells them: value labels of Stata, SPSS and SAS; SDMX, PX, …"""
    path = job.resolve(job.source.file)
    if is_readstat(path):
        return value_labels(path)
    dataset = None if job.source.holds == "problem" else read_dataset(path)
    return {} if dataset is None else dataset.labels


def read_labels(path: Path) -> dict[str, str]:
    """Labels from a file whose first two columns are the code and the label."""
    source = read_source(path)
    if source.frame.width < 2:
        raise InvalidHierarchy(
            f"{source.name} has one column; labels need two: the code and the label.",
            hint="is the delimiter a comma, a semicolon, a tab or a bar?",
        )
    code, label = (source.text(column).fill_null("").to_list() for column in source.frame.columns[:2])
    return dict(zip(code, label, strict=True))
