"""The codes of τ-ARGUS variables: hierarchies, missing codes and labels (`.cdl`), and coarser codings of them (`.grc`).

Global recoding is a coarser coding of one variable, from a `.grc` file or by a level of its hierarchy. A variable with
a hierarchy is collapsed: to a level (the total is level 0), or at the codes that a file lists after `<TREERECODE>`;
what is below them is added up into them. Any other variable is recoded by lines such as

    1: 01, 02
    2: 03 - 06, 09
    3: 10 -

a new code and the old ones that it stands for: codes, or ranges in the order of the codes, open on one side if a bound
is missing. Codes that no line names stay as they are. `<MISSING>` lists the missing codes of the new coding,
`<CODELIST>` the file with its labels.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tablesafe.core.errors import InvalidFile, InvalidHierarchy
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.read import did_you_mean, read_text
from tablesafe.files.write import write_text
from tablesafe.tauargus.metadata import Metadata, Variable, find_beside


def read_code_list(path: str | Path) -> dict[str, str]:
    """Read labels: one `code,label` per line; spaces before a code belong to it."""
    path = Path(path)
    labels: dict[str, str] = {}
    for number, line in enumerate(read_text(path).replace("\r\r\n", "\n").splitlines(), start=1):
        if not line.strip(" \t\x1a"):
            continue
        code, comma, label = line.partition("," if "," in line else ";")
        if not comma or not code.strip():
            raise InvalidFile(f"{path.name}, line {number}: {line.strip()!r} is not 'code,label'.", hint="add a comma.")
        code = code.rstrip().strip('"')
        if code in labels:
            raise InvalidFile(f"{path.name}, line {number}: code {code!r} has a label already.", hint="remove one.")
        labels[code] = label.strip().strip('"')
    if not labels:
        raise InvalidFile(f"{path.name} is empty.", hint="is it the right file, and complete?")
    return labels


def write_code_list(labels: Mapping[str, str], path: str | Path) -> None:
    """Write labels as τ-ARGUS reads them."""
    bad = next((code for code in labels if "," in code or "\n" in code + labels[code] or not code.strip()), None)
    if bad is not None:
        raise InvalidFile(f"Code {bad!r} cannot be written to {Path(path).name}.", hint="codes there hold no comma.")
    write_text(path, "".join(f"{code},{label}\n" for code, label in labels.items()))


def hierarchy_of(variable: Variable, metadata: Metadata, found: Sequence[str]) -> Hierarchy:
    """The hierarchy of a dimension: its file, the digits of its codes, or all codes `found` under one total.

    A missing code is part of the total and of nothing else.
    """
    labels = {}
    if variable.code_list is not None:
        labels = read_code_list(metadata.file(variable.code_list, variable.line))
    missing = list({code.strip(): code for code in variable.missing if code.strip()}.values())
    both = next((code for code in missing if code.strip() == variable.total.strip()), None)
    if both is not None:
        raise InvalidFile(
            f"{metadata.path.name}, line {variable.line}: {both!r} of {variable.name!r} is missing code and total.",
            hint="give one of the two another code.",
        )
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


def add_the_line(error: InvalidHierarchy, trees: Mapping[str, Hierarchy]) -> InvalidHierarchy:
    """The error about a code that a hierarchy file lacks, with the remedy for it."""
    match error.about:
        case ("dimension", str(name), "hierarchy") if name in trees and trees[name].name.lower().endswith(".hrc"):
            hint = f"{error.hint} If the code is right, add a line for it to {trees[name].name}."
            return InvalidHierarchy(error.told, hint=hint, about=error.about, where=error.where)
        case _:
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


# -- recoding ----------------------------------------------------------------------------------------------------------


_DASHES = re.compile("[‐-―−]")


@dataclass(frozen=True, eq=False)
class Recoding:
    """A new hierarchy for a variable, and the code in it that each old code of a record becomes."""

    tree: Hierarchy
    becomes: Mapping[str, str] = field(repr=False)
    missing: tuple[str, ...] = ()
    """Missing codes of the new coding."""
    remarks: tuple[str, ...] = ()
    """What the user should know, in words."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    new: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecodeFile:
    """What a `.grc` file says."""

    path: Path
    collapsed: tuple[tuple[int, str], ...] | None
    """The codes after `<TREERECODE>` with their lines; None for a list of new codes."""
    lines: tuple[_Line, ...] = ()
    missing: tuple[str, ...] = ()
    code_list: str | None = None

    def where(self, line: int) -> str:
        """The place of a line, in the user's terms."""
        return f"{self.path.name}, line {line}"


def read_recode(path: str | Path) -> RecodeFile:
    """Read a `.grc` file."""
    path = Path(path)
    collapsed: list[tuple[int, str]] | None = None
    lines: list[_Line] = []
    missing: tuple[str, ...] = ()
    code_list: str | None = None
    for number, raw in enumerate(read_text(path).replace("\r\r\n", "\n").splitlines(), start=1):
        text = raw.strip(" \t\x1a")
        keyword = re.match(r"<\s*([A-Za-z]+)\s*>\s*(.*)$", text)
        if not text:
            continue
        if keyword is None:
            if collapsed is not None:
                collapsed.append((number, raw.rstrip(" \t\x1a").strip('"')))
            else:
                lines.append(_new_code(path, number, text))
        elif keyword[1].upper() == "TREERECODE":
            collapsed = []
        elif keyword[1].upper() == "MISSING":
            missing = tuple(a or b for a, b in re.findall(r'"([^"]*)"|([^\s";,]+)', keyword[2]))
        elif keyword[1].upper() == "CODELIST":
            code_list = keyword[2].strip().strip('"') or None
        else:
            raise InvalidFile(
                f"{path.name}, line {number}: there is no keyword <{keyword[1]}>.",
                hint="keywords are TREERECODE, MISSING and CODELIST.",
            )
    if not lines and not collapsed:
        raise InvalidFile(f"{path.name} recodes nothing.", hint="lines are like '1: 01, 02'.")
    if lines and collapsed is not None:
        raise InvalidFile(
            f"{path.name}, line {lines[0].number} is a new code, but the file collapses a hierarchy (<TREERECODE>).",
            hint="after <TREERECODE> a line is one code.",
        )
    listed = None if collapsed is None else tuple(collapsed)
    return RecodeFile(path, listed, tuple(lines), missing, code_list)


def _new_code(path: Path, number: int, text: str) -> _Line:
    new, colon, old = text.partition(":")
    items = tuple(item.strip().strip('"') for item in old.split(",") if item.strip())
    if not colon or not new.strip().strip('"').strip() or not items:
        raise InvalidFile(
            f"{path.name}, line {number}: {text!r} is not 'new code: old codes'.", hint="write it like '1: 01, 02-04'."
        )
    return _Line(number, new.strip().strip('"'), items)


# -- hierarchies -------------------------------------------------------------------------------------------------------


def recode_level(tree: Hierarchy, level: int, variable: str) -> Recoding:
    """Collapse a hierarchy to a level; the total is level 0."""
    parents = _parents(tree)
    deepest = max((len(_above(code, parents)) for code in parents), default=0)
    if deepest < 2:
        raise InvalidHierarchy(
            f"{variable!r} has no hierarchy, so it has no level {level}.",
            hint="recode it with a .grc file, or give its hierarchy in the metadata.",
        )
    if not 1 <= level <= deepest:
        raise InvalidHierarchy(
            f"{variable!r} has no level {level}: below its total it has levels 1 to {deepest} ({tree.name}).",
            hint=f"name one of these; {deepest} leaves everything as it is.",
        )
    remarks = (f"{variable} has {deepest} levels: level {level} changes nothing.",) if level == deepest else ()
    at_level = [code for code in parents if len(_above(code, parents)) == level]
    return _collapsed(tree, parents, at_level, remarks)


def recode_tree(tree: Hierarchy, file: RecodeFile, variable: str) -> Recoding:
    """Collapse a hierarchy at the codes that a file lists."""
    assert file.collapsed is not None
    parents = _parents(tree)
    names = {code.strip(): code for code in parents}
    inner = set(parents.values())
    if not inner - {tree.total}:
        raise InvalidHierarchy(
            f"{variable!r} has no hierarchy, but {file.path.name} collapses one (<TREERECODE>).",
            hint="write lines like '1: 01, 02', or give its hierarchy in the metadata.",
        )
    chosen, remarks = [], []
    for number, code in file.collapsed:
        if code.strip() not in names:
            hint = did_you_mean(code.strip(), list(names)) or f"it has {', '.join(map(repr, list(names)[:5]))} …"
            raise InvalidHierarchy(
                f"Code {code.strip()!r} of {variable!r} at {file.where(number)} is not in {tree.name}.", hint=hint
            )
        chosen.append(names[code.strip()])
        if chosen[-1] not in inner:
            remarks.append(f"{file.where(number)}: {code.strip()!r} has no parts, so nothing is collapsed there.")
    return _collapsed(tree, parents, chosen, tuple(remarks), _labels(file))


def _parents(tree: Hierarchy) -> dict[str, str]:
    """The parent of every code but the total, with second names as levels of their own."""
    if not tree.is_tree and len(tree) > 1:
        raise InvalidHierarchy(f"{tree.name} is not a tree, so it cannot be collapsed.")
    return {child: parent for parent, child in pairs_of(tree)}


def _above(code: str, parents: Mapping[str, str]) -> list[str]:
    """The code itself and all codes above it, without the total."""
    path = []
    while code in parents:
        path.append(code)
        code = parents[code]
    return path


def _collapsed(
    tree: Hierarchy,
    parents: Mapping[str, str],
    at: Iterable[str],
    remarks: tuple[str, ...],
    labels: Mapping[str, str] | None = None,
) -> Recoding:
    """The tree without what is below some codes; records below them get the topmost of them."""
    cut = set(at)
    becomes = {code: next((up for up in reversed(_above(code, parents)) if up in cut), code) for code in parents}
    kept = [(parent, code) for code, parent in parents.items() if becomes[code] == code]
    new = Hierarchy.from_pairs(kept, labels=tree.labels, name=tree.name)
    return Recoding(with_labels(new, labels or {}), becomes, remarks=remarks)


# -- code lists --------------------------------------------------------------------------------------------------------


def recode_codes(tree: Hierarchy, file: RecodeFile, variable: str, missing: Sequence[str]) -> Recoding:
    """A new code list for a variable without a hierarchy."""
    total = tree.total if len(tree) > 1 else None
    if any(tree.is_total[i] for i, code in enumerate(tree.codes) if code != total):
        raise InvalidHierarchy(
            f"{variable!r} has a hierarchy, but {file.path.name} lists new codes.",
            hint="collapse the hierarchy: <TREERECODE> on the first line, then one code per line.",
        )
    old = [code for code in (*tree.codes, *tree.aliases) if code != total]
    becomes: dict[str, str] = {}
    line_of: dict[str, int] = {}
    remarks: list[str] = []
    for line in file.lines:
        if line.new == total:
            raise InvalidFile(f"{file.where(line.number)}: {line.new!r} is the total.", hint="take another new code.")
        for item in line.items:
            found = _matching(item, old)
            if not found:
                remarks.append(f"{file.where(line.number)}: no record of {variable} has a code {item!r}.")
            for code in found:
                if becomes.get(code, line.new) != line.new:
                    raise InvalidFile(
                        f"{file.where(line.number)}: code {code!r} becomes {line.new!r}, but on line {line_of[code]} "
                        f"{becomes[code]!r}.",
                        hint="remove it from one of the two.",
                    )
                becomes[code], line_of[code] = line.new, line.number
    mapping = {code: becomes.get(code, code) for code in old}
    codes = list(dict.fromkeys(mapping.values()))
    unknown = [code for code in (*file.missing, *missing) if code in codes]
    new = Hierarchy.flat(codes, total=total, name=tree.name)
    labels = {**{code: label for code, label in tree.labels.items() if code in codes}, **_labels(file)}
    return Recoding(with_labels(new, labels), mapping, tuple(dict.fromkeys(unknown)), tuple(remarks))


def _labels(file: RecodeFile) -> dict[str, str]:
    return {} if file.code_list is None else read_code_list(find_beside(file.code_list, file.path))


def _matching(item: str, codes: Sequence[str]) -> list[str]:
    """The codes that an item means: itself if it is one, else those of a range, open where a bound is missing."""
    bare = {code.strip(): code for code in codes}
    if item in bare:
        return [bare[item]]
    low, dash, high = _DASHES.sub("-", item).partition("-")
    if not dash:
        return []
    width = max(map(len, (*bare, low.strip(), high.strip())))
    first, last = low.strip().rjust(width), high.strip().rjust(width)
    return [
        code
        for code in codes
        if (not first.strip() or code.strip().rjust(width) >= first)
        and (not last.strip() or code.strip().rjust(width) <= last)
    ]
