"""Coarser hierarchies: siblings joined, branches cut off. Records keep their codes: the old ones become other names.

A code that is gone is an alias of the one that takes its place, so that records, which still carry it, are counted
there without being changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.errors import InvalidOption
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.table import Table

LONGEST_NAME = 40
"""Characters of a joined code's name; a longer one names only the first and the last code."""


@dataclass(frozen=True, eq=False)
class Recode:
    """A coarser hierarchy, and where the codes of the finer one went."""

    hierarchy: Hierarchy
    place: NDArray[np.int32] = field(repr=False)
    """Per old code its position in the new hierarchy; −1 where cells with it are gone."""
    joined: bool
    """Whether some codes were joined, so that their cells add up."""


def parts_of(hierarchy: Hierarchy) -> dict[str, tuple[str, ...]]:
    """The parts of every code of a tree that has any."""
    if not hierarchy.is_tree:
        raise InvalidOption(
            f"{hierarchy.name} is no tree, so its codes cannot be joined or dropped.",
            hint="keep this dimension, or use a tree for it.",
        )
    return {equation.total: equation.parts for equation in hierarchy.as_equations()}


def joined_name(codes: Sequence[str], taken: Iterable[str] = ()) -> str:
    """A name for several codes in the place of one."""
    name = "+".join(codes)
    if len(name) > LONGEST_NAME:
        name = f"{codes[0]}+…+{codes[-1]}"
    used = set(taken)
    while name in used:
        name += "'"
    return name


def join(hierarchy: Hierarchy, codes: Sequence[str], into: str) -> Recode:
    """Put one code in the place of several siblings; what is below them stays, below the new one."""
    parts = parts_of(hierarchy)
    known = [hierarchy.codes[hierarchy.position(code)] for code in codes]
    above = {part: total for total, members in parts.items() for part in members}
    _refuse_bad_join(hierarchy, known, into, parts, above)
    parent, gone = above[known[0]], set(known)
    first = next(part for part in parts[parent] if part in gone)
    below = tuple(part for code in parts[parent] if code in gone for part in parts.get(code, ()))
    new = {total: members for total, members in parts.items() if total not in gone}
    new[parent] = tuple(into if p == first else p for p in parts[parent] if p == first or p not in gone)
    if below:
        alone = [code for code in known if code not in parts]
        if alone:
            raise InvalidOption(
                f"{known[0]!r} and {alone[0]!r} of {hierarchy.name} cannot be joined: one of them has parts, the "
                f"other has none.",
                hint="drop the parts first.",
            )
        new[into] = below
    return _recoded(hierarchy, new, dict.fromkeys(known, into), {}, into)


def cut(hierarchy: Hierarchy, codes: Iterable[str]) -> Recode:
    """Drop everything below some codes."""
    parts = parts_of(hierarchy)
    gone: dict[str, str] = {}
    for code in codes:
        top = hierarchy.codes[hierarchy.position(code)]
        if top not in parts:
            raise InvalidOption(f"{top!r} of {hierarchy.name} has no parts that could be dropped.")
        stack = list(parts[top])
        while stack:
            part = stack.pop()
            gone.setdefault(part, top)
            stack += parts.get(part, ())
    tops = set(gone.values())
    new = {total: members for total, members in parts.items() if total not in gone and total not in tops}
    return _recoded(hierarchy, new, {}, gone, None)


def _refuse_bad_join(
    hierarchy: Hierarchy,
    codes: Sequence[str],
    into: str,
    parts: Mapping[str, Sequence[str]],
    above: Mapping[str, str],
) -> None:
    if len(set(codes)) < 2:
        raise InvalidOption(f"At least two different codes of {hierarchy.name} are needed to join them, got {codes!r}.")
    parents = {above.get(code) for code in codes}
    if len(parents) > 1 or None in parents:
        raise InvalidOption(
            f"{', '.join(map(repr, codes))} of {hierarchy.name} are not parts of the same code, so they cannot be "
            f"joined.",
            hint="join codes that stand side by side in the hierarchy.",
        )
    parent = above[codes[0]]
    if len(set(codes)) == len(parts[parent]):
        raise InvalidOption(
            f"These are all parts of {parent!r} of {hierarchy.name}: joined they are {parent!r} itself.",
            hint=f"drop the parts of {parent!r} instead.",
        )
    if not into or into in {*hierarchy.codes, *hierarchy.aliases} - set(codes):
        raise InvalidOption(f"{hierarchy.name} has a code {into!r} already.", hint="give the joined code another name.")


def _recoded(
    old: Hierarchy,
    parts: Mapping[str, Sequence[str]],
    joined: Mapping[str, str],
    dropped: Mapping[str, str],
    into: str | None,
) -> Recode:
    root = old.roots[0]
    pairs = [(total, part) for total, members in parts.items() for part in members]
    labels = dict(old.labels)
    if into is not None and any(code in labels for code in joined):
        labels[into] = ", ".join(labels.get(code, code) for code in joined)
    if pairs:
        new = Hierarchy.from_pairs(pairs, total=root, labels=labels, name=old.name)
    else:
        new = replace(Hierarchy.flat([root], total=None, name=old.name), labels=labels)
    went = {**joined, **dropped}
    aliases = {
        **new.aliases,
        **{alias: went.get(code, code) for alias, code in old.aliases.items()},
        **{code: to for code, to in went.items() if code != to},
    }
    new = replace(new, aliases=aliases)
    place = [-1 if code in dropped else new.position(joined.get(code, code)) for code in old.codes]
    return Recode(new, np.array(place, dtype=np.int32), bool(joined))


def recode_text(old: Hierarchy, new: Hierarchy) -> str:
    """A τ-ARGUS recode file (`.grc`): new codes with their old ones, or the codes at which a tree is cut."""
    if int(old.depth.max(initial=0)) <= 1:
        inside: dict[str, list[str]] = {}
        for code in old.leaves:
            inside.setdefault(new.codes[new.position(code)], []).append(code)
        return "".join(f"{code}: {', '.join(codes)}\n" for code, codes in inside.items() if codes != [code])
    strange = [code for code in new.codes if code not in old.codes]
    if strange:
        raise InvalidOption(
            f"A .grc file can cut a hierarchy, but not join its codes, as {strange[0]!r} of {old.name} does.",
            hint="write the recodes as .csv, and the new hierarchy as .hrc (--job).",
        )
    totals = {code for code, is_total in zip(old.codes, old.is_total, strict=True) if is_total}
    return "<TREERECODE>\n" + "".join(f"{code}\n" for code in new.leaves if code in totals)


# The steps of a redesign: codes joined, parts, levels and dimensions dropped, tables left out.


Kind = Literal["join", "drop parts", "drop level", "drop dimension", "leave out"]
MOST_SHOWN = 6
"""Codes that the words of a step name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a table's design."""

    kind: Kind
    dimension: str = ""
    codes: tuple[str, ...] = ()
    """The codes that are joined, or the one whose parts are dropped."""
    into: str = ""
    """What the joined codes are called."""
    margin: tuple[str, ...] = ()
    """The dimensions that span the table to leave out."""

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.codes[:MOST_SHOWN])) + (" …" if len(self.codes) > MOST_SHOWN else "")
        match self.kind:
            case "join":
                return f"join {shown} of {self.dimension} as {self.into!r}"
            case "drop parts":
                return f"drop the parts of {shown} of {self.dimension}"
            case "drop level":
                return f"drop the finest level of {self.dimension}"
            case "drop dimension":
                return f"drop {self.dimension}"
            case "leave out":
                return f"leave out the table by {' × '.join(self.margin)}"

    def recode(self, hierarchy: Hierarchy) -> Recode:
        """What the step makes of the hierarchy of its dimension."""
        match self.kind:
            case "join":
                return join(hierarchy, self.codes, self.into)
            case "drop parts":
                return cut(hierarchy, self.codes)
            case "drop level":
                return cut(hierarchy, above_finest(hierarchy))
            case _:
                return cut(hierarchy, hierarchy.roots[:1])


def above_finest(hierarchy: Hierarchy) -> tuple[str, ...]:
    """The codes right above the deepest ones of a tree."""
    parts = parts_of(hierarchy)
    deepest = int(hierarchy.depth.max(initial=0))
    chosen = [code for code in parts if int(hierarchy.depth[hierarchy.position(code)]) == deepest - 1]
    if not chosen:
        raise InvalidOption(f"{hierarchy.name} has one code only, so it has no level to drop.")
    return tuple(chosen)


def spans(table: Table) -> Integers:
    """Per cell which dimensions it does not stand at the total of, as bits."""
    bits = np.zeros(len(table), dtype=np.int64)
    for d, hierarchy in enumerate(table.dimensions.values()):
        top = -1 if hierarchy.total is None else hierarchy.position(hierarchy.total)
        bits |= (table.codes[:, d] != top).astype(np.int64) << d
    return bits


def span_of(names: Mapping[str, Hierarchy], margin: tuple[str, ...]) -> int:
    """The bits of some dimensions."""
    order = list(names)
    for name in margin:
        if name not in order:
            raise InvalidOption(f"There is no dimension {name!r}; there are {', '.join(map(repr, order))}.")
    return sum(1 << order.index(name) for name in margin)


def finest(table: Table, span: int) -> Mask:
    """The innermost cells of the table spanned by some dimensions: leaves in these, totals in the others."""
    mask = np.ones(len(table), dtype=np.bool_)
    for d, hierarchy in enumerate(table.dimensions.values()):
        if span >> d & 1:
            mask &= ~hierarchy.is_total[table.codes[:, d]]
        else:
            mask &= table.codes[:, d] == hierarchy.position(hierarchy.total or "")
    return mask
