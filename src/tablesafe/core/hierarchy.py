"""One dimension of a table: its codes and the equations between them.

Most dimensions are trees (regions, NACE, NAICS). Some are several trees over the same leaves (counties and
settlement types over municipalities), and some are no tree at all (`13=4+5+6; 12=1+6; 11=3+4`). All of them are a list
of codes and a sparse matrix of equations with −1 at the total and +1 at its parts.

A total with a single part is the same number under two names. It becomes one code; the other name is kept as an alias.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.errors import InvalidHierarchy, InvalidOption, Setting
from tablesafe.core.language import Text
from tablesafe.core.language import text as sentence
from tablesafe.files.read import Source, did_you_mean, read_source, read_text

if TYPE_CHECKING:
    from scipy import sparse

TOTAL = "Total"


@dataclass(frozen=True, slots=True)
class Equation:
    """`total` = sum of `parts` with their `signs`; `where` says where the user wrote it."""

    total: str
    parts: tuple[str, ...]
    signs: tuple[int, ...]
    where: str = ""

    def __str__(self) -> str:
        terms = [("+ " if sign > 0 else "- ") + part for part, sign in zip(self.parts, self.signs, strict=True)]
        return f"{self.total} = {' '.join(terms).removeprefix('+ ')}"


@shown
@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The codes of one dimension, and the equations between them."""

    codes: tuple[str, ...]
    equations: sparse.csr_array = field(repr=False)
    """One row per equation: −1 at the total, +1 (or −1) at the parts."""
    totals: NDArray[np.int32] = field(repr=False)
    """The position of each equation's total."""
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Other names of a code: a parent with one child is the same cell twice."""
    name: str = "the hierarchy"
    """What errors call it: the file it came from, or the dimension."""

    # -- how to build one ------------------------------------------------------------------------------------------

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        *,
        total: str | None = None,
        labels: Mapping[str, str] | None = None,
        name: str = "the hierarchy",
    ) -> Self:
        """Build a tree from `(parent, child)` pairs; `total` is put on top of several roots.

        The pairs may be tuples, or the first two columns of a file, or of a pandas, polars or Arrow frame.
        """
        located = _located_pairs(pairs, name)
        return cls._from_tree(located, total=total, labels=labels, name=name)

    @classmethod
    def from_levels(
        cls,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        total: str | None = TOTAL,
        labels: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Self:
        """Build a tree from a correspondence table: one column per level, the coarsest first, one row per leaf.

        An empty entry ends a branch early; the same code in neighbouring columns is one code.
        """
        table = read_source(source, name=name or "the correspondence table")
        columns = list(columns or table.frame.columns)
        table.require(*columns)
        text = [table.text(column).fill_null("").to_list() for column in columns]
        seen: dict[tuple[str, str], str] = {}
        alone: dict[str, None] = {}
        for row, path in enumerate(zip(*text, strict=True)):
            codes = [code for i, code in enumerate(path) if code and (i == 0 or code != path[i - 1])]
            if not codes:
                raise InvalidHierarchy(f"{table.where(row)} holds no code.", hint="delete the empty row.")
            alone.setdefault(codes[0])
            for parent, child in itertools.pairwise(codes):
                seen.setdefault((parent, child), str(table.where(row)))
        located = [(parent, child, where) for (parent, child), where in seen.items()]
        return cls._from_tree(located, total=total, labels=labels, name=name or table.name, alone=alone)

    @classmethod
    def from_prefixes(
        cls,
        codes: Iterable[str],
        *,
        lengths: Sequence[int] | None = None,
        filler: str = "",
        total: str | None = TOTAL,
        labels: Mapping[str, str] | None = None,
        name: str = "the hierarchy",
    ) -> Self:
        """Build a tree in which a code's parent is a prefix of it, as in NACE, NAICS and NUTS.

        With `lengths`, such as `(1, 3, 4)`, the prefixes of those lengths become parents, listed or not. Without, the
        parent is the longest listed code that begins it; a range such as `31-33` begins all of 31, 32 and 33.
        `filler` is a padding character, as `-` in `11----`.
        """
        listed = list(dict.fromkeys(str(code) for code in codes))
        stems = {code: (code.rstrip(filler) if filler else code) for code in listed}
        by_stem: dict[str, str] = {}
        for code, stem in stems.items():
            if stem in by_stem:
                raise InvalidHierarchy(f"Codes {by_stem[stem]!r} and {code!r} of {name} are equal without the filler.")
            by_stem[stem] = code
        ranges = {member: code for code in listed for member in _expand_range(code)}
        sizes = sorted({len(each) for each in (*by_stem, *ranges)} - {0})
        pairs: dict[tuple[str, str], str] = {}
        for code, stem in stems.items():
            if lengths is None:
                prefixes = (stem[:n] for n in sizes if n <= len(stem))
                chain = [c for p in prefixes for c in (ranges.get(p), by_stem.get(p)) if c is not None]
            else:
                chain = [by_stem.get(stem[:n], stem[:n]) for n in lengths if n < len(stem)]
            path = list(dict.fromkeys([c for c in chain if c != code] + [code]))
            for parent, child in itertools.pairwise(path):
                pairs.setdefault((parent, child), f"code {code!r}")
        located = [(parent, child, where) for (parent, child), where in pairs.items()]
        return cls._from_tree(located, total=total, labels=labels, name=name, alone=dict.fromkeys(listed))

    @classmethod
    def from_hrc(
        cls,
        path: str | Path,
        *,
        indent: str = "@",
        total: str | None = TOTAL,
        labels: Mapping[str, str] | None = None,
    ) -> Self:
        """Read a τ-ARGUS `.hrc` file: one code per line, deeper codes begin with more `indent` strings.

        There is no line for the total. Spaces before a code belong to it, spaces after it do not. A group whose name
        was used for another group already is kept apart under a longer name, with a warning: records carry the codes
        of leaves only, so nothing is ambiguous. A leaf that stands twice is an error.
        """
        path = Path(path)
        if not indent:
            raise InvalidHierarchy(
                sentence("The indent string of {name} is empty.", name=path.name), hint="it is usually '@'."
            )
        lines = _hrc_lines(path, indent)
        located: list[tuple[str, str, str]] = []
        alone: dict[str, None] = {}
        stack: list[str] = []
        first_seen: dict[str, int] = {}
        for i, (line, depth, code) in enumerate(lines):
            where = f"{path.name}, line {line}"
            if depth > len(stack):
                raise InvalidHierarchy(
                    sentence(
                        "Code {code!r} at {where} skips a level: {depth} {indent!r} after at most {many}.",
                        code=code,
                        where=where,
                        depth=depth,
                        indent=indent,
                        many=len(stack),
                    ),
                    hint=sentence("a line may go only one {indent!r} deeper than the line before it.", indent=indent),
                )
            if code in first_seen:
                is_group = i + 1 < len(lines) and lines[i + 1][1] > depth
                if not is_group:
                    raise InvalidHierarchy(
                        sentence(
                            "Code {code!r} stands twice in {name}: lines {first} and {line}.",
                            code=code,
                            name=path.name,
                            first=first_seen[code],
                            line=line,
                        ),
                        hint="remove one of the two, or give it another code.",
                    )
                renamed = f"{code} ({stack[depth - 1] if depth else f'line {line}'})"
                warnings.warn(
                    f"{path.name}: two groups are called {code!r} (lines {first_seen[code]} and {line}); "
                    f"the second is kept apart as {renamed!r}.",
                    stacklevel=2,
                )
                code = renamed
            first_seen[code] = line
            del stack[depth:]
            if stack:
                located.append((stack[-1], code, where))
            else:
                alone[code] = None
            stack.append(code)
        if not first_seen:
            raise InvalidHierarchy(
                sentence("{name} holds no codes.", name=path.name),
                hint="it needs a line for each code; is it the right file?",
            )
        return cls._from_tree(located, total=total, labels=labels, name=path.name, alone=alone)

    @classmethod
    def from_equations(
        cls,
        equations: str | Iterable[str] | Mapping[str, Sequence[str]],
        *,
        codes: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        name: str = "the hierarchy",
    ) -> Self:
        """Build any structure from equations such as `"13=4+5+6; 12=1+6"` or `{"13": ["4", "5", "6"]}`.

        A minus sign needs spaces around it (`net = gross - tax`); a code with one of `= + ;` in it needs double quotes.
        """
        parsed = parse_equations(equations, name)
        order = list(codes) if codes is not None else _order_of_mention(parsed)
        return cls._build(order, parsed, labels=labels, name=name)

    @classmethod
    def flat(cls, codes: Iterable[str], *, total: str | None = TOTAL, name: str = "the hierarchy") -> Self:
        """One total over all codes; without `total`, codes that add up to nothing published."""
        parts = list(codes)
        if total is None:
            return cls._build(parts, [], labels=None, name=name)
        return cls._from_tree([], total=total, labels=None, name=name, alone=dict.fromkeys(parts), listed=parts)

    @classmethod
    def _from_tree(
        cls,
        located: Sequence[tuple[str, str, str]],
        *,
        total: str | None,
        labels: Mapping[str, str] | None,
        name: str,
        alone: Mapping[str, None] | None = None,
        listed: Sequence[str] = (),
    ) -> Self:
        """Build a tree from located `(parent, child, where)` triples and codes that may stand alone."""
        _refuse_repeats(listed, name)
        parent_of: dict[str, tuple[str, str]] = {}
        children: dict[str, list[str]] = {}
        for parent, child, where in located:
            if parent == child:
                raise InvalidHierarchy(
                    sentence(
                        "Code {child!r} is its own parent ({name}, {where}).", child=child, name=name, where=where
                    ),
                    hint="remove the pair.",
                )
            if child in parent_of:
                other, first = parent_of[child]
                if other == parent:
                    raise InvalidHierarchy(
                        sentence(
                            "Code {child!r} stands twice under {parent!r} ({name}: {first} and {where}).",
                            child=child,
                            parent=parent,
                            name=name,
                            first=first,
                            where=where,
                        ),
                        hint="remove one of the two.",
                    )
                raise InvalidHierarchy(
                    sentence(
                        "Code {child!r} has two parents, {other!r} ({first}) and {parent!r} ({where}), in {name}.",
                        child=child,
                        other=other,
                        first=first,
                        parent=parent,
                        where=where,
                        name=name,
                    ),
                    hint="several trees over the same leaves go in as equations: Hierarchy.from_equations.",
                )
            parent_of[child] = (parent, where)
            children.setdefault(parent, []).append(child)
        mentioned = list(dict.fromkeys([*(alone or {}), *children, *parent_of]))
        if not mentioned:
            raise InvalidHierarchy(
                f"{name} holds no codes.", hint="it needs a line for each code; is it the right file?"
            )
        roots = [code for code in mentioned if code not in parent_of]
        if not roots:
            raise InvalidHierarchy(
                sentence("{name} has no root: {cycle}.", name=name, cycle=_a_cycle(children, mentioned)),
                hint="remove one of these.",
            )
        top = total
        if total is not None and total not in mentioned:
            children[total] = roots
        elif len(roots) > 1 and total is None:
            raise InvalidHierarchy(
                sentence(
                    "{name} has several codes without a parent: {several}.",
                    name=name,
                    several=", ".join(map(repr, roots[:5])) + " …" * (len(roots) > 5),
                ),
                hint=sentence("add the missing parents, or pass {option}.", option=Setting("total", "Total")),
            )
        elif total is not None and (orphans := [code for code in roots if code != total]):
            raise InvalidHierarchy(
                f"Code {orphans[0]!r} of {name} has no parent, though {total!r} is the total.",
                hint=f"add the pair ({total!r}, {orphans[0]!r}).",
            )
        else:
            top = roots[0]
        order = _depth_first(children, top or roots[0])
        if len(order) < len({*mentioned, *children}):
            lost = [code for code in mentioned if code not in set(order)]
            raise InvalidHierarchy(
                sentence("{name} has a cycle: {cycle}.", name=name, cycle=_a_cycle(children, lost)),
                hint="remove one of these.",
            )
        equations = [
            Equation(parent, tuple(children[parent]), (1,) * len(children[parent]), name)
            for parent in order
            if parent in children
        ]
        return cls._build(order, equations, labels=labels, name=name)

    @classmethod
    def _build(
        cls, codes: Sequence[str], equations: Sequence[Equation], *, labels: Mapping[str, str] | None, name: str
    ) -> Self:
        """Merge equal codes, check the equations, and make the matrix."""
        _refuse_repeats(codes, name)
        _refuse_blanks(codes, {equation.total for equation in equations}, name)
        known = set(codes)
        for equation in equations:
            for code in (equation.total, *equation.parts):
                if code not in known:
                    hint = did_you_mean(code, list(codes)) or "add it to the list of codes."
                    raise InvalidHierarchy(
                        sentence(
                            "Equation '{equation}' of {name} names {code!r}, which is no code.",
                            equation=equation,
                            name=name,
                            code=code,
                        ),
                        hint=hint,
                    )
        aliases = _merge_single_parts(codes, equations)
        merged: dict[tuple[str, frozenset[tuple[str, int]]], Equation] = {}
        for equation in equations:
            new = Equation(
                aliases.get(equation.total, equation.total),
                tuple(aliases.get(part, part) for part in equation.parts),
                equation.signs,
                equation.where,
            )
            if len(new.parts) == 1 and new.parts[0] == new.total:
                continue
            if new.total in new.parts:
                raise InvalidHierarchy(
                    f"Equation '{equation}' of {name} has {new.total!r} on both sides.", hint="remove it from one."
                )
            if len(set(new.parts)) < len(new.parts):
                raise InvalidHierarchy(
                    f"Equation '{equation}' of {name} counts a code twice.", hint="name every code once."
                )
            merged.setdefault((new.total, frozenset(zip(new.parts, new.signs, strict=True))), new)
        kept = [code for code in codes if code not in aliases]
        position = {code: i for i, code in enumerate(kept)}
        _refuse_cycles(kept, list(merged.values()), name)
        rows, columns, data = [], [], []
        for row, equation in enumerate(merged.values()):
            members = [equation.total, *equation.parts]
            rows += [row] * len(members)
            columns += [position[code] for code in members]
            data += [-1, *equation.signs]
        from scipy import sparse

        matrix = sparse.csr_array(
            (np.array(data, dtype=np.int8), (np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32))),
            shape=(len(merged), len(kept)),
        )
        totals = np.array([position[equation.total] for equation in merged.values()], dtype=np.int32)
        return cls(tuple(kept), matrix, totals, labels=dict(labels or {}), aliases=aliases, name=name)

    # -- what it knows ---------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.codes):,} codes, {self.equations.shape[0]:,} equations, name={self.name!r})"

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.codes == other.codes and set(map(str, self.as_equations())) == set(map(str, other.as_equations()))

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _position(self) -> dict[str, int]:
        position = {code: i for i, code in enumerate(self.codes)}
        for alias, code in self.aliases.items():
            position[alias] = position[code]
        return position

    @cached_property
    def _stripped(self) -> dict[str, int]:
        """Positions by code without surrounding spaces, where that is unambiguous."""
        stripped: dict[str, set[int]] = {}
        for code, i in self._position.items():
            stripped.setdefault(code.strip(), set()).add(i)
        return {code: next(iter(at)) for code, at in stripped.items() if len(at) == 1}

    def position(self, code: str) -> int:
        """The position of one code or alias; surrounding spaces matter only when they tell two codes apart."""
        found = self._position.get(code, self._stripped.get(code.strip(), -1))
        if found < 0:
            hint = did_you_mean(code, list(self._position)) or sentence(
                "its codes are {codes} …", codes=", ".join(map(repr, self.codes[:8]))
            )
            raise InvalidHierarchy(sentence("{name} has no code {code!r}.", name=self.name, code=code), hint=hint)
        return found

    def positions(self, codes: pl.Series) -> NDArray[np.int32]:
        """The position of each code, −1 where it is unknown or missing."""
        unique = codes.unique().drop_nulls().cast(pl.String)
        found = [self._position.get(code, self._stripped.get(code.strip(), -1)) for code in unique.to_list()]
        known = pl.DataFrame({"code": unique, "position": pl.Series(found, dtype=pl.Int32)})
        frame = codes.cast(pl.String).to_frame("code").join(known, on="code", how="left", maintain_order="left")
        return frame["position"].fill_null(-1).to_numpy().astype(np.int32)

    def locate(self, source: Source, column: str, *, dimension: str | None = None) -> NDArray[np.int32]:
        """The positions of a column's codes; an unknown one is an error that names its line."""
        text = source.text(column, strip=False)
        positions = self.positions(text)
        bad = np.flatnonzero(positions < 0)
        if bad.size:
            raise self.unknown(text[int(bad[0])], source.where(int(bad[0])), dimension or column)
        return positions

    def unknown(self, code: str | None, where: Text | str, dimension: str) -> InvalidHierarchy:
        """What to tell the user about a code that this hierarchy does not know."""
        if code is None:
            return InvalidHierarchy(
                sentence("The code of {dimension!r} is missing at {where}.", dimension=dimension, where=where),
                hint="fill it in, or name a code for missing.",
                about=("dimension", dimension, "missing"),
            )
        has = ", ".join(map(repr, self.codes[:5]))
        hint = did_you_mean(code, list(self._position)) or sentence(
            "is it the hierarchy of {dimension!r}? It has {has} …", dimension=dimension, has=has
        )
        return InvalidHierarchy(
            sentence(
                "Code {code!r} of {dimension!r} at {where} is not in {name}.",
                code=code.strip(),
                dimension=dimension,
                where=where,
                name=self.name,
            ),
            hint=hint,
            about=("dimension", dimension, "hierarchy"),
        )

    @cached_property
    def is_total(self) -> NDArray[np.bool_]:
        """Which codes are the left side of an equation."""
        mask = np.zeros(len(self.codes), dtype=np.bool_)
        mask[self.totals] = True
        return mask

    @property
    def leaves(self) -> tuple[str, ...]:
        """Codes that no equation breaks down further."""
        return tuple(code for code, total in zip(self.codes, self.is_total, strict=True) if not total)

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Codes that are part of no other code."""
        as_part = np.bincount(self.equations.indices, minlength=len(self.codes))
        as_part -= np.bincount(self.totals, minlength=len(self.codes))
        return tuple(code for code, n in zip(self.codes, as_part, strict=True) if n == 0)

    @property
    def total(self) -> str | None:
        """The one code above all others, if there is one."""
        return self.roots[0] if len(self.roots) == 1 else None

    @cached_property
    def is_tree(self) -> bool:
        """One root, every other code part of exactly one equation, no code broken down twice, no minus signs."""
        parts = np.bincount(self.equations.indices, minlength=len(self.codes))
        totals = np.bincount(self.totals, minlength=len(self.codes))
        signed = int((self.equations.data < 0).sum()) > self.equations.shape[0]
        return len(self.roots) == 1 and not signed and bool((totals <= 1).all() and (parts - totals <= 1).all())

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Levels below the nearest root: 0 for a root."""
        depth = np.full(len(self.codes), -1, dtype=np.int32)
        front = [self._position[code] for code in self.roots]
        depth[front] = 0
        level = 0
        parts: dict[int, list[int]] = {}
        for total, members, _ in self._members():
            parts.setdefault(total, []).extend(members)
        while front:
            level += 1
            front = [part for total in front for part in parts.get(total, []) if depth[part] < 0]
            depth[front] = level
        return depth

    @cached_property
    def leaf_matrix(self) -> sparse.csr_array:
        """How often each leaf (column, in the order of `leaves`) counts in each code (row)."""
        leaf_column = {self._position[code]: j for j, code in enumerate(self.leaves)}
        contents: dict[int, dict[int, int]] = {i: {j: 1} for i, j in leaf_column.items()}
        equations = self._members()
        row_of = {total: row for row, (total, _, _) in reversed(list(enumerate(equations)))}
        for total in _bottom_up(len(self.codes), [(total, parts) for total, parts, _ in equations]):
            if total in contents:
                continue
            _, parts, signs = equations[row_of[total]]
            mixed: dict[int, int] = {}
            for part, sign in zip(parts, signs, strict=True):
                for leaf, times in contents[part].items():
                    mixed[leaf] = mixed.get(leaf, 0) + sign * times
            contents[total] = {leaf: times for leaf, times in mixed.items() if times}
        rows = np.repeat(np.arange(len(self.codes)), [len(contents[i]) for i in range(len(self.codes))])
        columns = [leaf for i in range(len(self.codes)) for leaf in contents[i]]
        data = [times for i in range(len(self.codes)) for times in contents[i].values()]
        from scipy import sparse

        return sparse.csr_array(
            (np.array(data, dtype=np.int32), (rows, np.array(columns, dtype=np.int64))),
            shape=(len(self.codes), len(leaf_column)),
        )

    def _members(self) -> list[tuple[int, list[int], list[int]]]:
        """Each equation as (position of the total, positions of the parts, their signs)."""
        indptr, indices, data = self.equations.indptr, self.equations.indices, self.equations.data
        members = []
        for row, total in enumerate(self.totals.tolist()):
            span = slice(indptr[row], indptr[row + 1])
            part = indices[span] != total
            members.append((total, indices[span][part].tolist(), data[span][part].tolist()))
        return members

    def as_equations(self) -> list[Equation]:
        """The equations in the user's codes."""
        return [
            Equation(self.codes[total], tuple(self.codes[part] for part in parts), tuple(signs), self.name)
            for total, parts, signs in self._members()
        ]

    def merge(self, other: Hierarchy) -> Hierarchy:
        """All codes and all equations of both; for tables that use different parts of one classification."""
        if self == other:
            return self
        codes = list(dict.fromkeys([*self.codes, *self.aliases, *other.codes, *other.aliases]))
        equations = [*self.as_equations(), *other.as_equations()]
        for hierarchy in (self, other):
            equations += [Equation(code, (alias,), (1,), self.name) for alias, code in hierarchy.aliases.items()]
        name = self.name if self.name == other.name else f"{self.name} and {other.name}"
        return Hierarchy._build(codes, equations, labels={**other.labels, **self.labels}, name=name)

    def with_part(self, code: str) -> Hierarchy:
        """The hierarchy with one more leaf, right below the grand total."""
        if self.total is None:
            raise InvalidHierarchy(
                f"{self.name} has no single total that {code!r} could be a part of.", hint=f"add {code!r} to it."
            )
        equations = [
            replace(e, parts=(*e.parts, code), signs=(*e.signs, 1)) if e.total == self.total else e
            for e in self.as_equations()
        ]
        equations += [Equation(known, (alias,), (1,), self.name) for alias, known in self.aliases.items()]
        codes = [*self.codes, *self.aliases, code]
        return Hierarchy._build(codes, equations, labels=self.labels, name=self.name)

    def keep(self, codes: Iterable[str], *, name: str | None = None) -> Hierarchy:
        """The hierarchy cut down to some codes: equations all of whose members remain."""
        wanted = {self.codes[self.position(code)] for code in codes}
        order = [code for code in self.codes if code in wanted]
        equations = [e for e in self.as_equations() if e.total in wanted and wanted.issuperset(e.parts)]
        return Hierarchy._build(order, equations, labels=self.labels, name=name or self.name)

    def to_hrc(self, path: str | Path, *, indent: str = "@") -> None:
        """Write a tree as a τ-ARGUS `.hrc` file (without its total, which that format leaves out)."""
        from tablesafe.files.write import write_text

        write_text(path, self.hrc_text(indent=indent))

    def hrc_text(self, *, indent: str = "@") -> str:
        """The text of a τ-ARGUS `.hrc` file."""
        if not self.is_tree:
            raise InvalidHierarchy(f"{self.name} is not a tree, so it has no .hrc file.", hint="write its equations.")
        parts = {total: members for total, members, _ in self._members()}
        top = self._position[self.roots[0]]
        below: dict[str, list[str]] = {}
        for alias, code in self.aliases.items():
            below.setdefault(code, []).append(alias)
        above = below.get(self.codes[top], [])
        lines = [indent * i + text for i, text in enumerate(above)]
        stack = [(part, len(above)) for part in reversed(parts.get(top, []))]
        while stack:
            at, depth = stack.pop()
            names = [self.codes[at], *below.get(self.codes[at], [])]
            lines += [indent * (depth + i) + text for i, text in enumerate(names)]
            stack += [(part, depth + len(names)) for part in reversed(parts.get(at, []))]
        return "\n".join(lines) + "\n"


def _located_pairs(pairs: Any, name: str) -> list[tuple[str, str, str]]:
    """Parent and child of each pair, and where it stands."""
    framed = isinstance(pairs, (str, Path, pl.DataFrame, pl.LazyFrame)) or hasattr(pairs, "__arrow_c_stream__")
    if not framed and not hasattr(pairs, "iloc"):
        return [(str(parent), str(child), f"pair {i + 1}") for i, (parent, child) in enumerate(pairs)]
    source = read_source(pairs, name=name)
    if len(source.frame.columns) < 2:
        raise InvalidHierarchy(f"{source.name} has one column only.", hint="pairs are two: the parent and the child.")
    parents, children = (source.text(column).to_list() for column in source.frame.columns[:2])
    for row, pair in enumerate(zip(parents, children, strict=True)):
        if None in pair:
            raise InvalidHierarchy(f"A code is missing at {source.where(row)}.", hint="delete the empty row.")
    return [
        (parent, child, str(source.where(i))) for i, (parent, child) in enumerate(zip(parents, children, strict=True))
    ]


def _hrc_lines(path: Path, indent: str) -> list[tuple[int, int, str]]:
    """The lines of a `.hrc` file as (line number, depth, code)."""
    lines = []
    for line, written in enumerate(read_text(path).splitlines(), start=1):
        code, depth = written.rstrip(" \t\x1a"), 0
        while code.startswith(indent):
            code, depth = code[len(indent) :], depth + 1
        if code.strip():
            lines.append((line, depth, code))
    return lines


def require_hierarchies(dimensions: Any) -> None:
    """Refuse what is no hierarchy where one belongs, and say how to make one of it."""
    if isinstance(dimensions, str):
        raise InvalidOption(f"dimensions must name columns, got {dimensions!r}.", hint=f"dimensions=[{dimensions!r}]")
    for name, given in dimensions.items() if isinstance(dimensions, Mapping) else ():
        if given is None or isinstance(given, Hierarchy):
            continue
        how = "Hierarchy.flat(codes, total='Total'), or None for one total over all codes"
        if isinstance(given, Mapping):
            how = "Hierarchy.from_equations(…) of a mapping from totals to their parts, or Hierarchy.from_pairs(…)"
        elif isinstance(given, str | PathLike):
            how = f"Hierarchy.from_hrc({str(given)!r}), or Hierarchy.from_levels(…) and from_pairs(…) for a table"
        raise InvalidOption(
            f"The hierarchy of {name!r} must be a Hierarchy or None, got a {type(given).__name__}.", hint=how
        )


def parse_equations(equations: str | Iterable[str] | Mapping[str, Sequence[str]], name: str) -> list[Equation]:
    """Parse equations given as text, as lines of text, or as a mapping from total to parts."""
    if isinstance(equations, Mapping):
        return [
            Equation(str(total), tuple(map(str, parts)), (1,) * len(parts), f"{name}, equation {i + 1}")
            for i, (total, parts) in enumerate(equations.items())
        ]
    if isinstance(equations, str):
        lines: Iterable[str] = re.findall(r'(?:"[^"]*"|[^;\n"])+', equations)
    else:
        lines = equations
    parsed = [_parse_equation(text, f"{name}, equation {i + 1}") for i, text in enumerate(lines) if text.strip()]
    if not parsed:
        raise InvalidHierarchy(
            sentence("{name} holds no equation.", name=name), hint="write them as 'total = part + part'."
        )
    return parsed


_TOKEN = re.compile(r'\s*(?:"([^"]*)"|(=)|(\+)|((?<=\s)-(?=\s))|((?:[^=+"\s]|\s(?!\s*[=+])(?!\s*-\s))+))')


def _parse_equation(text: str, where: str) -> Equation:
    problem = InvalidHierarchy(
        sentence("Cannot read {equation!r} ({where}) as an equation.", equation=text.strip(), where=where),
        hint="write 'total = part + part'; put codes with = + ; in double quotes and spaces around a minus.",
    )
    words: list[str] = []
    signs: list[int] = []
    equals = 0
    expect_code = True
    sign = 1
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise problem
        position = match.end()
        quoted, equal, _plus, minus, code = match.groups()
        if quoted is not None or code is not None:
            if not expect_code:
                raise problem
            words.append(quoted if quoted is not None else code.strip())
            signs.append(sign)
            expect_code, sign = False, 1
        elif expect_code:
            raise problem
        else:
            equals += equal is not None
            sign = -1 if minus else 1
            expect_code = True
            if (equal is not None) != (len(words) == 1):
                raise problem
    if equals != 1 or expect_code or len(words) < 2:
        raise problem
    return Equation(words[0], tuple(words[1:]), tuple(signs[1:]), where)


def _order_of_mention(equations: Sequence[Equation]) -> list[str]:
    return list(dict.fromkeys(code for equation in equations for code in (equation.total, *equation.parts)))


def _expand_range(code: str) -> list[str]:
    match = re.fullmatch(r"(\d+)-(\d+)", code)
    if not match or len(match[1]) != len(match[2]) or len(match[1]) > 4:
        return []
    return [str(n).zfill(len(match[1])) for n in range(int(match[1]), int(match[2]) + 1)]


def _refuse_repeats(codes: Sequence[str], name: str) -> None:
    if len(set(codes)) < len(codes):
        seen: set[str] = set()
        repeated = next(code for code in codes if code in seen or seen.add(code))  # type: ignore[func-returns-value]
        raise InvalidHierarchy(
            sentence("Code {code!r} stands twice in {name}.", code=repeated, name=name), hint="remove one of the two."
        )


def _refuse_blanks(codes: Sequence[str], totals: Set[str], name: str) -> None:
    """A code that nobody can see would be taken for a missing one; the total alone may have no name."""
    blank = next((code for code in codes if not (code or "").strip() and code not in totals), None)
    if blank is not None:
        raise InvalidHierarchy(
            f"A code of {name} is blank: {blank!r}.", hint="give it a name, or leave it out if the code is missing."
        )


def _depth_first(children: Mapping[str, Sequence[str]], top: str) -> list[str]:
    order: list[str] = []
    stack = [top]
    seen: set[str] = set()
    while stack:
        code = stack.pop()
        if code in seen:
            continue
        seen.add(code)
        order.append(code)
        stack += reversed(children.get(code, ()))
    return order


def _a_cycle(children: Mapping[str, Sequence[str]], among: Sequence[str]) -> str:
    """Spell out one cycle among codes that reach no root."""
    parent_of = {child: parent for parent, parts in children.items() for child in parts}
    path = [among[0]]
    while path[-1] in parent_of and parent_of[path[-1]] not in path:
        path.append(parent_of[path[-1]])
    start = parent_of.get(path[-1], path[-1])
    cycle = path[path.index(start) :] if start in path else path
    return " is part of ".join(map(repr, [*cycle, cycle[0]]))


def _merge_single_parts(codes: Sequence[str], equations: Sequence[Equation]) -> dict[str, str]:
    """Map each code that is the only part of another to the topmost of its chain."""
    above = {e.parts[0]: e.total for e in equations if len(e.parts) == 1 and e.signs[0] == 1 and e.parts[0] != e.total}
    aliases: dict[str, str] = {}
    for code in codes:
        top, seen = code, {code}
        while top in above and above[top] not in seen:
            top = above[top]
            seen.add(top)
        if top != code:
            aliases[code] = top
    return aliases


def _refuse_cycles(codes: Sequence[str], equations: Sequence[Equation], name: str) -> None:
    position = {code: i for i, code in enumerate(codes)}
    members = [(position[e.total], [position[part] for part in e.parts]) for e in equations]
    done = set(_bottom_up(len(codes), members))
    stuck = [i for i in range(len(codes)) if i not in done]
    if stuck:
        path = [stuck[0]]
        below = {total: next(p for p in parts if p not in done) for total, parts in members if total not in done}
        while below.get(path[-1], path[0]) not in path:
            path.append(below[path[-1]])
        cycle = path[path.index(below.get(path[-1], path[0])) :]
        spelled = " contains ".join(repr(codes[i]) for i in [*cycle, cycle[0]])
        raise InvalidHierarchy(f"{name} has a cycle: {spelled}.", hint="remove one of these equations.")


def _bottom_up(n: int, members: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    """Codes in an order in which every total follows all its parts; codes on a cycle are left out."""
    waiting = [0] * n
    users: dict[int, list[int]] = {}
    for total, parts in members:
        waiting[total] += len(parts)
        for part in parts:
            users.setdefault(part, []).append(total)
    ready = [i for i in range(n) if waiting[i] == 0]
    order: list[int] = []
    while ready:
        code = ready.pop()
        order.append(code)
        for total in users.get(code, ()):
            waiting[total] -= 1
            if waiting[total] == 0:
                ready.append(total)
    return order
