"""Insiders: what respondents learn about each other, knowing their own contributions.

**Who matters.** Every contributor that a table lists is looked at, and every coalition of up to `coalition` of them:
the single contributor of a cell, one of two, the largest others of a sensitive cell. For most of them one witness
settles the matter for all at once: a table that agrees with the release, in which the sensitive cell has moved as far
as its level asks, and in which no cell has fallen below what its largest contributor has there. Only the insiders that
can rule a witness out are asked for a witness of their own; if there is none, the exact interval of the cell as they
see it decides.

**What must hold.** The levels of a cell say how far its total must be hidden from the attacker of the rule, and they
hold for every insider as they do for the outsider, with three exceptions. To those who are all the contributors of a
cell it is no secret. From the largest contributor, and a coalition with it, the cell must hide not the largest but the
next largest contributor: with the tolerance t that the level implies, `level = t·x1 − (X − x1 − x2)`, that is
`t·m − (X − c − m)` for a coalition that has c itself, where m is the largest other; if this is not above zero, the
others hide each other, and nothing more is asked. And nothing is asked below what the coalition has itself.

**What is not known.** Where a table keeps fewer contributors than a cell has, insiders may have more than is listed
(see `knowledge`). A finding is certain when what is listed is enough for it, and possible otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tablesafe.audit.intervals import exact_intervals
from tablesafe.audit.knowledge import Knowledge, Part
from tablesafe.audit.moves import Moves
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.equations import Floats, Mask
from tablesafe.errors import InvalidOption
from tablesafe.problem import Problem

_RANKS = ("largest", "second largest", "third largest", "fourth largest", "fifth largest")

Members = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insider:
    """The insider that learns most about one sensitive cell: by its role, not by its name."""

    cell: int
    """The table's cell."""
    role: str
    size: int
    """How many share what they know."""
    lower: float
    """The least that the cell can be, as far as the insider can tell."""
    upper: float
    short_below: float
    """How much further down its interval would have to reach; 0 when it reaches far enough."""
    short_above: float
    short_width: float
    exact: bool
    """Whether it knows the cell exactly."""
    certain: bool
    """False when it takes contributions that the table does not list, but that are possible."""
    names: tuple[str, ...] = ()
    """Who it is; only when asked for."""


@dataclass(frozen=True, eq=False)
class Insiders:
    """The worst insider of every sensitive cell that is open to one, and what was looked at."""

    found: tuple[Insider, ...]
    checked: int
    """Cells that were looked at."""
    programs: int
    """Linear programs solved."""
    searched: str
    """What was searched, in words."""
    cut: bool = False
    """Whether the number of coalitions met its limit, so that there may be more."""

    @property
    def safe(self) -> bool:
        """Whether no cell is open to an insider for certain."""
        return not any(insider.certain for insider in self.found)


def insiders(
    problem: Problem,
    system: System,
    wanted: NDArray[np.intp] | None = None,
    *,
    coalition: int = 1,
    names: bool = False,
    max_coalitions: int = 200,
) -> Insiders:
    """Find, for each sensitive cell, the respondent or coalition that learns most about the others in it.

    `wanted` are positions among the unknown cells of the system, by default all that are sensitive. A cell that is open
    to the outsider is open to everyone and not looked at again. `max_coalitions` limits how many coalitions of two or
    more are tried for one cell.
    """
    if coalition < 1:
        raise InvalidOption(f"insiders' coalition must be at least 1, got {coalition!r}.")
    knowledge = Knowledge.of(system)
    if knowledge is None:
        return Insiders((), 0, 0, "No insiders: the table tells neither contributors nor their number.")
    sensitive = np.flatnonzero(problem.sensitivity.mask[system.cells])
    wanted = sensitive if wanted is None else np.intersect1d(wanted, sensitive)
    searches = [
        _Search(problem, part, np.searchsorted(part.cells, targets), max_coalitions)
        for part, targets in _parts(knowledge, wanted, coalition)
    ]
    found = [insider for search in searches for insider in search.worst(names)]
    listed = knowledge.lists.who[system.cells]
    who = "contributor" if coalition == 1 else f"coalition of up to {coalition} contributors"
    return Insiders(
        tuple(sorted(found, key=lambda insider: insider.cell)),
        len(wanted),
        sum(search.programs for search in searches),
        f"Every {who} of the {len(np.unique(listed[listed >= 0])):,} listed in suppressed cells, "
        f"against {len(wanted):,} sensitive cells.",
        any(search.cut for search in searches),
    )


def _parts(knowledge: Knowledge, wanted: NDArray[np.intp], size: int) -> Iterator[tuple[Part, NDArray[np.intp]]]:
    """The components with wanted cells, each with those of its cells."""
    component = components(knowledge.system.matrix)
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(component.max(initial=-1) + 2))
    asked = wanted[np.argsort(component[wanted], kind="stable")]
    for number in np.unique(component[wanted]).tolist():
        cells = np.sort(order[starts[number] : starts[number + 1]])
        yield Part.of(knowledge, cells, size), np.sort(asked[component[asked] == number])


@dataclass(frozen=True, slots=True)
class _Need:
    """How far a cell must be able to move, in units: `ways` are pairs of down and up, of which one must be possible."""

    lower: float
    upper: float
    sliding: float
    bare: bool
    """It must only not be known exactly."""

    @property
    def nothing(self) -> bool:
        return not (self.bare or self.lower > 0 or self.upper > 0 or self.sliding > 0)

    def ways(self) -> tuple[tuple[float, float], ...]:
        if self.bare:
            return ((0.0, 1.0), (1.0, 0.0))
        whole = tuple(float(np.ceil(level - 1e-6)) for level in (self.lower, self.upper, self.sliding))
        exact = (self.lower, self.upper, self.sliding)
        out: list[tuple[float, float]] = []
        for down, up, width in (whole, exact) if whole != exact else (whole,):
            more = max(width - down - up, 0.0)
            out += [(down, up + more), (down + more, up)] if more else [(down, up)]
        return tuple(out)

    def short(self, value: float, low: float, high: float) -> tuple[float, float, float] | None:
        """By how much an interval is too narrow below, above and in width; None when it is wide enough."""
        tie = 1e-9 * max(1.0, abs(value))
        if self.bare:
            return (0.0, 0.0, 0.0) if high - low <= tie else None
        shorts = low - (value - self.lower), value + self.upper - high, self.sliding - (high - low)
        cut = tuple(max(short, 0.0) if short > tie else 0.0 for short in shorts)
        return (cut[0], cut[1], cut[2]) if any(cut) else None


@dataclass(frozen=True, slots=True)
class _Opening:
    """A coalition that one cell is open to."""

    members: Members
    lower: float
    upper: float
    short: tuple[float, float, float]
    certain: bool

    def badness(self, need: _Need) -> tuple[bool, bool, float, int]:
        level = max(need.lower, need.upper, need.sliding, 1.0)
        return self.certain, self.exact, max(self.short) / level, -len(self.members)

    @property
    def exact(self) -> bool:
        return self.upper - self.lower <= 1e-9 * max(1.0, abs(self.upper))


class _Search:
    """The insiders of one component against its sensitive cells."""

    def __init__(self, problem: Problem, part: Part, targets: NDArray[np.intp], max_coalitions: int) -> None:
        self.part, self.moves = part, Moves(part)
        self.levels = [_levels(problem, int(cell)) for cell in part.system.cells[targets]]
        self.targets = {int(target): number for number, target in enumerate(targets)}
        self.max_coalitions = max_coalitions
        self.intervals, self.cut = 0, False
        self.settled: set[tuple[int, int]] = set()
        """Cells and directions in which a witness is known that no insider can rule out."""
        self.openings: dict[int, list[_Opening]] = {}
        for target in self.targets:
            self._look_at(target)

    @property
    def programs(self) -> int:
        """Linear programs solved, two for each interval."""
        return self.moves.solved + 2 * self.intervals

    def _look_at(self, target: int) -> None:
        """Ask for witnesses that convince everybody, then for one for each insider who is not convinced."""
        tried: set[Members] = set()
        moved = self._witnesses(target, (), cautious=True)
        if moved is not None:
            self._convince(target, (), moved, True, tried)
            return
        moved = self._witnesses(target, (), cautious=False)
        if moved is None and self._opening(target, (), certain=True) is not None:
            return  # open to anybody
        possible = self._opening(target, (), certain=False)
        if possible is not None:
            self.openings.setdefault(target, []).append(possible)
        self._convince(target, (), moved, False, tried)

    def _convince(
        self, target: int, members: Members, moved: list[Floats] | None, cautious: bool, tried: set[Members]
    ) -> None:
        """Look at every coalition with one member more that can rule the witnesses out."""
        for one in self._doubters(target, moved).tolist():
            more = tuple(sorted({*members, one}))
            if more in tried or self._covers(target, more):
                continue
            if len(more) > 1 and len(tried) >= self.max_coalitions:
                self.cut = True
                return
            tried.add(more)
            witnesses = self._judge(target, more, moved, cautious)
            if any(opening.certain and opening.exact for opening in self.openings.get(target, ())):
                return  # nothing is worse
            if witnesses is not None and len(more) < self.part.size:
                self._convince(target, more, witnesses, cautious, tried)

    def _judge(self, target: int, members: Members, moved: list[Floats] | None, cautious: bool) -> list[Floats] | None:
        """Witnesses for one coalition; None, and an opening on record, where it learns too much."""
        if moved is not None and all(self.moves.convinces(move, members, target, cautious=cautious) for move in moved):
            return moved
        if self._need(target, members, cautious).nothing:
            return moved
        witnesses = self._witnesses(target, members, cautious=cautious)
        if witnesses is not None:
            return witnesses
        opening = self._opening(target, members, certain=not cautious)
        if opening is None:
            return moved
        if cautious:
            witnesses = self._witnesses(target, members, cautious=False)
            sure = None if witnesses is not None else self._opening(target, members, certain=True)
            opening = opening if sure is None else sure
        self.openings.setdefault(target, []).append(opening)
        return witnesses

    def _doubters(self, target: int, moved: list[Floats] | None) -> NDArray[np.int64]:
        """Contributors listed in cells where the witnesses go against what some coalition knows.

        Any coalition that can rule a witness out has a member that is listed in one of those cells. Of single insiders
        only those count who can do so themselves. Without witnesses everyone counts.
        """
        part = self.part
        if moved is None:
            return np.unique(part.who[part.who >= 0])
        found = []
        for move in moved:
            cells = self.moves.violated(move, target)
            who, own = part.who[cells], part.own[cells]
            doubts = who >= 0
            if part.size == 1:
                doubts &= (own > (part.system.truth + move)[cells, None]) | (part.everyone[cells] == 1)[:, None]
            found.append(who[doubts])
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _covers(self, target: int, members: Members) -> bool:
        """Whether the coalition is all there is in a cell."""
        return int(np.isin(self.part.who[target], members).sum()) >= int(self.part.everyone[target])

    # -- witnesses -----------------------------------------------------------------------------------------------------

    def _witnesses(self, target: int, members: Members, *, cautious: bool) -> list[Floats] | None:
        """Moves of a cell down and up as far as it needs, that a coalition cannot rule out; None if there are none."""
        for down, up in self._need(target, members, cautious).ways():
            moved: list[Floats] = []
            for by in (-down, up):
                if by == 0 or (not members and (target, int(np.sign(by))) in self.settled):
                    continue
                move = self.moves.find(target, by, members, cautious=cautious)
                if move is None:
                    break
                self._offer(move)
                moved.append(move)
            else:
                return moved
        return None

    def _offer(self, move: Floats) -> None:
        """Use a move, or its opposite, for every sensitive cell that it moves, in the length that the cell needs."""
        for target, number in self.targets.items():
            if move[target] == 0:
                continue
            down, up = self.levels[number].ways()[0]
            for by in (-down, up):
                if by and (target, int(np.sign(by))) not in self.settled:
                    scaled = move * (by / move[target])
                    if self.moves.possible(scaled) and not self.moves.violated(scaled, target).size:
                        self.settled.add((target, int(np.sign(by))))

    def _opening(self, target: int, members: Members, *, certain: bool) -> _Opening | None:
        """The exact interval of a cell as a coalition sees it, if it is too narrow."""
        floor, known = self.part.view(members, cautious=not certain)
        system = self.part.system
        keep = np.flatnonzero(~known)
        matrix, truth = system.matrix[:, keep], system.truth[keep]
        seen = System(
            system.table, system.cells[keep], system.rows, matrix,
            np.asarray(matrix.astype(np.int64) @ truth), floor[keep], system.upper[keep], truth,
        )  # fmt: skip
        self.intervals += 1
        interval = exact_intervals(seen, np.searchsorted(keep, [target]))
        low, high = float(interval.lower[0]), float(interval.upper[0])
        short = self._need(target, members, not certain).short(float(system.truth[target]), low, high)
        return None if short is None else _Opening(members, low, high, short, certain)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def _need(self, target: int, members: Members, cautious: bool) -> _Need:
        """How far a cell must be hidden from a coalition, in units (see the module's text)."""
        need = self.levels[self.targets[target]]
        part = self.part
        if need.bare or part.knowledge.lists.negative:
            return need
        value = float(part.system.truth[target])
        if members:
            need = _relaxed(need, value, part.own[target], np.isin(part.who[target], members), part.who[target] >= 0)
        floor = float(part.view(members, cautious=cautious)[0][target])
        if floor > part.system.lower[target]:
            need = replace(need, lower=min(need.lower, value - floor))
        return need

    # -- what is told --------------------------------------------------------------------------------------------------

    def worst(self, names: bool) -> Iterator[Insider]:
        """The insider that learns most about each cell that is open to one."""
        unit = 10.0**self.part.system.table.decimals
        for target, openings in self.openings.items():
            need = self.levels[self.targets[target]]
            worst = max(openings, key=lambda opening: opening.badness(need))
            yield Insider(
                cell=int(self.part.system.cells[target]),
                role=role(self.part, target, worst.members),
                size=max(len(worst.members), 1),
                lower=worst.lower / unit,
                upper=worst.upper / unit,
                short_below=worst.short[0] / unit,
                short_above=worst.short[1] / unit,
                short_width=worst.short[2] / unit,
                exact=worst.exact,
                certain=worst.certain,
                names=tuple(_name(self.part, member) for member in worst.members) if names else (),
            )


def _levels(problem: Problem, cell: int) -> _Need:
    levels, unit = problem.sensitivity, 10.0**problem.table.decimals
    lower, upper, sliding = (float(level[cell]) * unit for level in (levels.lower, levels.upper, levels.sliding))
    return _Need(lower, upper, sliding, lower == upper == sliding == 0)


def _relaxed(need: _Need, value: float, own: Floats, inside: Mask, listed: Mask) -> _Need:
    """The need when the largest contributor is itself the insider: the largest of the others must be hidden."""
    order = np.argsort(-own, kind="stable")
    own, inside, listed = own[order], inside[order], listed[order]
    if not inside[0] or own[0] <= 0:
        return need
    left = max(value - float(own.sum()), 0.0)
    smallest = min(float(own[-1]), left) if listed.all() else 0.0
    second = float(own[1]) if len(own) > 1 else smallest
    others = own[~inside & listed]
    target = float(others[0]) if others.size else smallest
    rest = max(value - float(own[0]) - second, 0.0)
    hidden_by = max(value - float(own[inside].sum()) - target, 0.0)
    lower, upper = (
        min(max((level + rest) / float(own[0]) * target - hidden_by, 0.0), level) if level > 0 else 0.0
        for level in (need.lower, need.upper)
    )
    return _Need(lower, upper, need.sliding * min(target / float(own[0]), 1.0), False)


def role(part: Part, target: int, members: Members) -> str:
    """What makes a coalition an insider, without its name."""
    if not members:
        return "a contributor that is not among the largest listed"
    single = [_role_of_one(part, target, member) for member in members]
    return single[0] if len(single) == 1 else f"a coalition of {len(single)}: {'; '.join(single)}"


def _role_of_one(part: Part, target: int, member: int) -> str:
    place = np.flatnonzero(part.who[target] == member)
    roles = []
    if place.size:
        rank = int((part.own[target] > part.own[target, place[0]]).sum())
        roles.append(f"the {_RANKS[rank] if rank < len(_RANKS) else f'{rank + 1}th largest'} contributor of the cell")
    elsewhere = _elsewhere(part, target, np.flatnonzero((part.who == member).any(axis=1)))
    if elsewhere:
        roles.append(elsewhere)
    return ", ".join(roles) or "a contributor to other suppressed cells"


def _elsewhere(part: Part, target: int, cells: NDArray[np.intp]) -> str:
    """The strongest position that a contributor has in other cells."""
    cells = cells[cells != target]
    rows = part.system.matrix.tocsc()[:, [target]].indices
    beside = np.unique(part.system.matrix[rows].indices)
    for contributors, words in ((1, "the only contributor"), (2, "one of two contributors")):
        there = cells[part.everyone[cells] == contributors]
        if there.size:
            where = "in the same row" if np.isin(there, beside).any() else "that is suppressed"
            return f"{words} of another cell {where}"
    return "a contributor to another suppressed cell" if cells.size else ""


def _name(part: Part, member: int) -> str:
    kept = part.system.table.contributors
    if kept is None or member >= part.knowledge.lists.nobody:
        return "without a name"
    return str(member) if kept.names is None else str(kept.names[member])
