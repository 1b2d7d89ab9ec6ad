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
others hide each other, and nothing more is asked, unless the cell is sensitive whatever they weigh (too few of them, or
flagged by hand): then it must still not be known exactly. And nothing is asked below what the coalition has itself;
where a shadow variable ranks the contributors, that is what it has in the parts of which it is the only contributor.

**Negative contributions.** Where they may be negative, x1, c and m are absolute values and X is the sum of them, as in
the rules; and the cell can be less than what the coalition has in it, so that no level is cut off there.

**Whole numbers.** Of counts every contributor knows that they are whole, as outsiders do. Where the equations are no
network, a table in parts of a unit then shows nothing; a program in whole numbers looks for another.

**What is not known.** Where a table keeps fewer contributors than a cell has, insiders may have more than is listed
(see `knowledge`). A finding is certain when what is listed is enough for it, and possible otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.alternative_tables import Limits, Move, Moves, Room
from tablesafe.audit.doubts import MOST_BYTES, Doubts, Listed
from tablesafe.audit.exact import ExactMove
from tablesafe.audit.hypercubes import hypercubes_of
from tablesafe.audit.integers import is_network
from tablesafe.audit.respondent_knowledge import Knowledge, Lists, Members
from tablesafe.audit.sums import components
from tablesafe.audit.system import System
from tablesafe.audit.together import MANY, affordable, convincing_moves
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, OutOfTime
from tablesafe.core.problem import Problem
from tablesafe.rules.combined import agreed, measured_by_value, not_to_be_known
from tablesafe.work.budget import ENDLESS, Budget

_RANKS = ("largest", "second largest", "third largest", "fourth largest", "fifth largest")

MOST_COALITIONS = 10_000
"""Coalitions that are looked at for one cell, before it is said that this was not enough."""

PER_COALITION, PER_MEMBER = 2e-4, 1e-5
"""Seconds of work that a coalition takes, and each of its members: beside the programs that are solved for it."""
SEARCHED, WORTH_IT = 40, 0.2
"""Cells for which a witness that nobody can rule out is searched for in any case, and for what share of them it must be
found for the search to be worth its time: without it, respondents are asked one by one."""
WHOLE = 300
"""Questions whether a cell is possibly open that are asked of the whole component, where what is near says that it is:
each is a program of its own."""
TOGETHER = 60_000
"""Unknown cells up to which programs move many of them at once: of 100,000 cells one takes more than a minute, and each
of 10,000 respondents is asked with hypercubes in less."""
NEARLY_WHOLE = 1e-6
"""What a solver's answer may lack of a whole number."""
DESCRIBED = 5
"""Members of a coalition that are described one by one."""

NOTHING_TOLD = "Nothing is published but zeros: beyond its own contributions nobody learns anything."

NOTHING = Limits(np.zeros(0, np.intp), np.zeros(0), np.zeros(0))
"""What the outsider knows beyond the release."""


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
    members: Members = field(default=(), repr=False)
    """Who it is, by number (see `knowledge.Lists`)."""


@dataclass(frozen=True, eq=False)
class Insiders:
    """The worst insider of every sensitive cell that is open to one, and what was looked at."""

    found: tuple[Insider, ...]
    every: tuple[Insider, ...] = field(repr=False)
    """All that were found, not only the worst of each cell."""
    checked: int
    """Cells that were looked at."""
    programs: int
    """Linear programs solved."""
    searched: str
    """What was searched, in words."""
    unsearched: tuple[int, ...] = ()
    """The table's cells for which there were more coalitions than could be looked at."""
    late: tuple[int, ...] = ()
    """Those for which there was no time to look at every insider."""
    coalition: int = 1
    """How many share what they know, at most."""
    examined: bool = True
    """False when the table tells neither contributors nor their number."""

    @property
    def safe(self) -> bool:
        """Whether every cell was looked at, and none is open to an insider for certain."""
        return not self.unsearched and not self.late and not any(insider.certain for insider in self.found)


@dataclass(frozen=True, eq=False)
class SettledCells:
    """Cells that no respondent comes too close to, and all that the witnesses change which show it."""

    cells: NDArray[np.intp] = field(repr=False)
    """Positions among the unknown cells."""
    moved: tuple[NDArray[np.intp], ...] = field(repr=False)
    """Sets of cells that witnesses change."""
    by: NDArray[np.intp] = field(repr=False)
    """Pairs of a place in `cells` and a set that it rests on."""


def insiders(
    problem: Problem,
    system: System,
    wanted: NDArray[np.intp] | None = None,
    *,
    coalition: int = 1,
    names: bool = False,
    max_coalitions: int = MOST_COALITIONS,
    whole: bool = False,
    budget: Budget = ENDLESS,
) -> Insiders:
    """Find, for each sensitive cell, the respondent or coalition that learns most about the others in it.

    `wanted` are positions among the unknown cells of the system, by default all that are sensitive. A cell that is open
    to the outsider is open to everyone and not looked at again; nor are coalitions of which a part learns too much
    already. `max_coalitions` limits how many coalitions of two or more are tried for one cell. With `whole` everybody
    knows that values are whole numbers. When the budget is over, the cells that are left are told as `late`: nothing is
    known of them.
    """
    return search_insiders(
        problem, system, wanted, coalition=coalition, names=names, max_coalitions=max_coalitions, whole=whole,
        budget=budget,
    )[0]  # fmt: skip


def search_insiders(
    problem: Problem,
    system: System,
    wanted: NDArray[np.intp] | None = None,
    *,
    coalition: int = 1,
    names: bool = False,
    max_coalitions: int = MOST_COALITIONS,
    lists: Lists | None = None,
    checked: int | None = None,
    presume: bool = False,
    suggested: Sequence[ExactMove] = (),
    together: bool = True,
    whole: bool = False,
    budget: Budget = ENDLESS,
) -> tuple[Insiders, SettledCells]:
    """The same, and what it takes to know of another release without asking again.

    `lists` are those of the table, where they are at hand; `checked` is how many cells are told to have been looked
    at, where others were before. With `presume`, whoever has no witness that is soon found is said to know the cell:
    for a repair, which gives it one, that is quicker than to find out how much it knows. `suggested` are moves of the
    unknown cells that may convince many: they are checked. Unless cells are looked at `together`, each is by itself.
    """
    if coalition < 1:
        raise InvalidOption(f"insiders' coalition must be at least 1, got {coalition!r}.")
    knowledge = Knowledge.of(system, coalition, lists)
    if knowledge is None:
        words = "No insiders: the table tells neither contributors nor their number."
        nothing = SettledCells(np.zeros(0, np.intp), (), np.zeros((0, 2), np.intp))
        return Insiders((), (), 0, 0, words, coalition=coalition, examined=False), nothing
    sensitive = np.flatnonzero(problem.sensitivity.mask[system.cells])
    wanted = sensitive if wanted is None else np.intersect1d(wanted, sensitive)
    checked = len(wanted) if checked is None else checked
    if system.tells_nothing:
        everything = (np.arange(len(system)),)
        by = np.column_stack([np.arange(len(wanted)), np.zeros(len(wanted), np.intp)])
        return Insiders((), (), checked, 0, NOTHING_TOLD, coalition=coalition), SettledCells(wanted, everything, by)
    search = _Search(problem, knowledge, wanted, max_coalitions, budget, presume=presume, whole=whole)
    search.run(suggested, together=together)
    listed = np.unique(knowledge.who[knowledge.who >= 0])
    who = "contributor" if coalition == 1 else f"coalition of up to {coalition}"
    found = Insiders(
        tuple(search.worst(names)),
        tuple(search.every(names)),
        checked,
        search.moves.solved,
        f"Every {who} of the {len(listed):,} contributors listed in suppressed cells, "
        f"against {checked:,} sensitive cells{_except(len(search.cut), len(search.late))}.",
        tuple(system.cells[sorted(search.cut)].tolist()),
        tuple(system.cells[sorted(search.late)].tolist()),
        coalition,
    )
    return found, search.settled_cells()


@dataclass(frozen=True, eq=False)
class Question:
    """How far a cell must be able to move in the eyes of an insider, and how far others can, in units of the table."""

    cell: int
    """The table's cell."""
    lower: float
    upper: float
    sliding: float
    bare: bool
    """It must only not be known exactly."""
    cells: NDArray[np.intp]
    """The table's cells of which the insider knows something, ascending."""
    down: Floats
    up: Floats


class Questions:
    """What insiders must not learn: the same whatever is withheld, so that a search can ask it of every pattern."""

    def __init__(self, problem: Problem, system: System, coalition: int = 1) -> None:
        """Read a system in which everything is unknown that may be withheld."""
        knowledge = Knowledge.of(system, coalition)
        assert knowledge is not None
        sensitive = np.flatnonzero(problem.sensitivity.mask[system.cells])
        self._search, self._system = _Search(problem, knowledge, sensitive, 0, Budget()), system

    def of(self, insider: Insider) -> Question:
        """What one of them must not learn about its cell."""
        search, system = self._search, self._system
        target = int(np.searchsorted(system.cells, insider.cell))
        room, limits, need = search.in_question(target, insider.members, certain=insider.certain)
        down, up = room.down.copy(), room.up.copy()
        down[limits.cells] = np.minimum(down[limits.cells], limits.down)
        up[limits.cells] = np.minimum(up[limits.cells], limits.up)
        less = np.flatnonzero((down < search.plain.down) | (up < search.plain.up))
        return Question(
            insider.cell, need.lower, need.upper, need.sliding, need.bare, system.cells[less], down[less], up[less]
        )


def _except(cut: int, late: int) -> str:
    found = f", not all of them against {cut:,} of these: there are too many" if cut else ""
    return found + (f", not all of them against {late:,} of these: the time was over" if late else "")


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
        return np.isfinite(self.upper) and self.upper - self.lower <= 1e-9 * max(1.0, abs(self.upper))


class _Search:
    """All insiders against the sensitive cells."""

    def __init__(
        self, problem: Problem, knowledge: Knowledge, wanted: NDArray[np.intp], max_coalitions: int, budget: Budget,
        *, presume: bool = False, whole: bool = False,
    ) -> None:  # fmt: skip
        self.problem, self.presume = problem, presume
        self.only_whole = whole and not is_network(sparse.csr_array(knowledge.system.matrix))
        """Whether only whole numbers count; of a network every vertex is whole, so that there is no difference."""
        self.knowledge, self.system, self.max_coalitions = knowledge, knowledge.system, max_coalitions
        self.needs = {int(cell): _levels(problem, int(self.system.cells[cell])) for cell in wanted}
        self.wanted = {sign: np.zeros(len(self.system)) for sign in (-1, 1)}
        """How far each sensitive cell needs to fall and to rise."""
        for cell, need in self.needs.items():
            self.wanted[-1][cell], self.wanted[1][cell] = need.ways()[0]
        self.moves = Moves(self.system, budget, whole=self.only_whole)
        self.moves.quick = presume
        truth, hidden = self.system.truth, ~knowledge.transparent
        up = self.system.upper - truth
        self.plain = self.moves.room(truth - self.system.lower, up)
        """What the outsider cannot rule out."""
        self.cautious = self.moves.room(truth - knowledge.guess, up)
        """What nobody can rule out who is listed nowhere."""
        self.free = self.moves.room(np.where(hidden, truth - knowledge.most, 0.0), np.where(hidden, up, 0.0))
        """What nobody at all can rule out."""
        self.settled = {+1: np.full(len(truth), -1), -1: np.full(len(truth), -1)}
        """For each cell the move that takes it as far as it needs and that nobody can rule out; −1 for none."""
        self.offered: list[NDArray[np.intp]] = []
        """The cells of such moves."""
        self.moved: dict[int, list[NDArray[np.intp]]] = {target: [] for target in self.needs}
        """For each target the cells of all moves on which the answer about it rests."""
        self.presumed: dict[int, list[Members]] = {}
        """Who is presumed to learn a cell, because moves of many at once have not convinced it."""
        self.kept_limits: dict[Members, Limits] = {}
        self.scratch = np.full(len(truth), np.inf), np.full(len(truth), np.inf)
        self.open_to_all: set[int] = set()
        self.convincing: list[list[Move]] = []
        """Witnesses for the cell that is looked at, which convinced somebody."""
        self.components = components(self.system.matrix)
        self.openings: dict[int, list[_Opening]] = {}
        self.last: tuple[Members, Floats] | None = None
        """What the coalition looked at last has in each unknown cell."""
        self.cut: set[int] = set()
        self.late: set[int] = set()
        self.whole = 0
        """Questions asked of whole components (see `WHOLE`)."""
        self.budget = budget
        self.agreed = tuple(mask[self.system.cells] for mask in agreed(problem.rules, self.system.table))
        """Who agreed to publication, as each of the rules has it."""
        self.not_to_be_known = not_to_be_known(problem.rules, problem.sensitivity)[self.system.cells]
        said = self.system.table.signed is not None
        self.as_it_is = not said or knowledge.lists.shadow or measured_by_value(problem.rules)
        """Whether the levels of cells with negative contributions tell nothing about absolute values."""

    def run(self, suggested: Sequence[ExactMove] = (), *, together: bool = True) -> None:
        """Look at every sensitive cell: first for witnesses that nobody at all can rule out.

        Where there are many, for moves that take many of them at once. Where hypercubes are looked for, and a search
        after them finds hardly any, they alone are looked for.
        """
        together &= len(self.needs) >= MANY and self.knowledge.size == 1
        together &= affordable(self.system.matrix, self.budget)
        together &= len(self.system) <= TOGETHER
        if together and hypercubes_of(self.system) is not None:
            self._together(suggested)
        searched = found = 0
        for target in self.needs:
            if target in self.presumed:
                for members in dict.fromkeys(self.presumed[target]):
                    self._note(target, self._presumed(target, members))
                continue
            before = self.moves.solved
            self.moves.only_hypercubes = searched >= SEARCHED and found < WORTH_IT * searched
            try:
                if not self._is_settled(target):
                    self.budget.check()
                witnesses = self._witnesses(target, (), self.free, NOTHING)
                if self.moves.solved > before:
                    searched, found = searched + 1, found + (witnesses is not None)
                if witnesses is None:
                    self.moves.only_hypercubes = False
                    self._look_at(target)
            except OutOfTime:
                self.late.add(target)

    def _together(self, suggested: Sequence[ExactMove]) -> None:
        """Settle cells by moves of many at once, where hypercubes leave many.

        Where one shows a cell to the outsider, few can rule it out, and these are soon asked; unless moves are at hand.
        """
        self.moves.only_hypercubes = True
        left = [target for target in self.needs if self._witnesses(target, (), self.free, NOTHING) is None]
        if not suggested:
            left = [target for target in left if self._witnesses(target, (), self.cautious, NOTHING) is None]
        down, up, listed = self.plain.down, self.plain.up, Listed.of(self.problem, self.knowledge)
        if len(left) < MANY or Doubts.bytes(listed, len(left)) > MOST_BYTES:
            return
        asked = np.zeros(len(self.system), dtype=np.bool_)
        asked[left] = True
        doubts = Doubts(
            listed, *(np.where(asked, self.wanted[side], 0.0) for side in (-1, 1)), whole=self.only_whole
        )  # fmt: skip
        matrix, moved = sparse.csr_array(self.system.matrix), np.zeros(len(self.system), dtype=np.bool_)
        for by in convincing_moves(matrix, down, up, doubts, suggested, self.budget):
            moved |= by != 0
        self.offered.append(np.flatnonzero(moved))
        for side in (-1, 1):
            open_ = np.flatnonzero(doubts.open(side))
            self.settled[side][np.setdiff1d(doubts.targets, open_)] = len(self.offered) - 1
            for target in open_.tolist() if self.presume else ():
                self.presumed.setdefault(target, []).extend(doubts.some(side, target))

    def _is_settled(self, target: int) -> bool:
        """Whether moves are at hand that nobody can rule out."""
        return all(self.wanted[side][target] <= 0 or self.settled[side][target] >= 0 for side in (-1, 1))

    def _look_at(self, target: int) -> None:
        """Find out who can rule out the witnesses of a cell, and what they learn."""
        tried: set[Members] = set()
        self.convincing = []
        moved = self._witnesses(target, (), self.cautious, NOTHING)
        if moved is not None:
            self._convince(target, (), moved, True, tried)
            return
        moved = self._witnesses(target, (), self.plain, NOTHING)
        if self.presume:
            self._note(target, self._presumed(target, ()))
            return
        if moved is None and self._opening(target, (), certain=True) is not None:
            self.open_to_all.add(target)
            return
        far = self._witnesses(target, (), self.cautious, NOTHING, everywhere=True)
        if far is not None:
            self._convince(target, (), far, True, tried)
            return
        self._note(target, self._opening(target, (), certain=False) or self._presumed(target, ()))
        self._convince(target, (), moved, False, tried)

    def _note(self, target: int, opening: _Opening | None) -> None:
        if opening is not None:
            self.openings.setdefault(target, []).append(opening)

    def _convince(
        self, target: int, members: Members, moved: list[Move] | None, cautious: bool, tried: set[Members]
    ) -> None:
        """Look at every coalition with one member more that can rule the witnesses out."""
        for one in self._doubters(target, members, moved).tolist():
            more = tuple(sorted({*members, one}))
            if more in tried or self._covers(target, more):
                continue
            if len(more) > 1 and len(tried) >= self.max_coalitions:
                self.cut.add(target)
                return
            if self.budget.over:
                self.late.add(target)
                return
            tried.add(more)
            self.budget.count(PER_COALITION + PER_MEMBER * len(more))
            witnesses = self._judge(target, more, moved, cautious)
            if any(opening.certain and opening.exact for opening in self.openings.get(target, ())):
                return  # nothing is worse
            if witnesses is not None and len(more) < self.knowledge.size:
                self._convince(target, more, witnesses, cautious, tried)

    def _judge(self, target: int, members: Members, moved: list[Move] | None, cautious: bool) -> list[Move] | None:
        """Witnesses for one coalition; None where it has none that are sure. Openings go on record."""
        listed = self._listed_limits(members)
        if self.knowledge.size > 1:
            listed = self._limits(members, joined=True)
        tried = [*([] if moved is None else [moved]), *reversed(self.convincing)]
        with self._believed(listed, target) as (down, up):
            for known in tried:
                if all((move.by <= up[move.cells]).all() and (-move.by <= down[move.cells]).all() for move in known):
                    return known
        need = self._need(target, members)
        if need.nothing:
            return moved
        room = self.cautious if cautious else self.plain
        witnesses = self._witnesses(target, members, room, listed)
        if witnesses is not None:
            if need == self.needs[target]:
                self.convincing.append(witnesses)
            return witnesses
        if self.presume:
            self._note(target, self._presumed(target, members))
            return None
        witnesses = self._witnesses(target, members, self.plain, self._limits(members, guess=True))
        possible = None if witnesses is not None else self._opening(target, members, certain=False)
        if possible is None:
            return moved if witnesses is None else witnesses
        witnesses = self._witnesses(target, members, self.plain, self._listed_limits(members), certain=True)
        certain = None if witnesses is not None else self._opening(target, members, certain=True)
        self._note(target, certain or possible)
        return witnesses

    @contextmanager
    def _believed(self, limits: Limits, but: int) -> Iterator[tuple[Floats, Floats]]:
        """How far each cell may move within some limits, one cell apart; for a while."""
        down, up = self.scratch
        down[limits.cells], up[limits.cells] = limits.down, limits.up
        down[but] = up[but] = np.inf
        try:
            yield down, up
        finally:
            down[limits.cells] = up[limits.cells] = np.inf

    def _doubters(self, target: int, members: Members, moved: list[Move] | None) -> NDArray[np.int64]:
        """Contributors who, joining a coalition, may make it learn too much.

        Any coalition that can rule a witness out has a member that is listed in a cell where the witness goes against
        what some coalition knows. Of single insiders only those count who can do so themselves. Without witnesses
        everyone in the component counts. From a coalition that nothing must be hidden from, something must be only
        when another contributor joins it that the cell lists.
        """
        known = self.knowledge
        if self._need(target, members).nothing:
            return np.asarray(known.who[target][known.who[target] >= 0])
        if moved is None:
            cells = np.flatnonzero(self.components == self.components[target])
            return np.unique(known.who[cells][known.who[cells] >= 0])
        found = [np.zeros(0, np.int64)]
        for move in moved:
            over = (move.by > self.free.up[move.cells]) | (-move.by > self.free.down[move.cells])
            over &= move.cells != target
            cells = move.cells[over]
            doubts = known.who[cells] >= 0
            if known.size == 1:
                left = (self.system.truth[cells] + move.by[over])[:, None]
                short = (known.own[cells] > left) & ~known.negative[cells, None]
                doubts &= short | (known.everyone[cells] == 1)[:, None]
            found.append(known.who[cells][doubts])
        return np.unique(np.concatenate(found))

    def _covers(self, target: int, members: Members) -> bool:
        """Whether the coalition is all there is in a cell."""
        return int(_among(self.knowledge.who[target], members).sum()) >= int(self.knowledge.everyone[target])

    # -- witnesses -----------------------------------------------------------------------------------------------------

    def _witnesses(
        self,
        target: int,
        members: Members,
        room: Room,
        limits: Limits,
        *,
        certain: bool = False,
        everywhere: bool = False,
    ) -> list[Move] | None:
        """Moves of a cell down and up as far as it needs, that a coalition cannot rule out; None if none is found.

        Directions in which nobody at all can rule a move out need none. The outsider's are looked for everywhere: of
        the others, unless they are too, `_opening` has the last word.
        """
        everywhere |= room is self.plain and not members
        for down, up in self._need(target, members, certain=certain).ways():
            moved: list[Move] = []
            for by in (-down, up):
                if by == 0:
                    continue
                if not members and (one := int(self.settled[int(np.sign(by))][target])) >= 0:
                    self.moved[target].append(self.offered[one])
                    continue
                if by > self.plain.up[target] or -by > self.plain.down[target]:
                    break
                move = self.moves.find(room, target, by, limits, everywhere=everywhere)
                if move is None:
                    break
                self._offer(move)
                self.moved[target].append(move.cells)
                moved.append(move)
            else:
                return moved
        return None

    def _offer(self, move: Move) -> None:
        """Use a move, or its opposite, for every sensitive cell that it moves, in the length that the cell needs."""
        fixed = move.cells[self.knowledge.transparent[move.cells]]
        if len(fixed) > 1:
            return
        for turned in (1.0, -1.0):
            by = turned * move.by
            room = np.where(by > 0, self.free.up[move.cells], self.free.down[move.cells])
            open_room = np.where(by > 0, self.plain.up[move.cells], self.plain.down[move.cells])
            room[np.isin(move.cells, fixed)] = np.inf
            moves = by != 0
            times = float((room[moves] / np.abs(by[moves])).min(initial=np.inf))
            for sign, wanted in self.wanted.items():
                before = self.settled[sign][move.cells] < 0
                reach, needed = np.minimum(sign * times * by, open_room), wanted[move.cells]
                if self.only_whole:  # so many times the move, and no part of it
                    often = np.ceil(needed / np.where(moves, np.abs(by), np.inf))
                    reach = np.where((often <= np.floor(times)) & (often * np.abs(by) <= open_room), needed, -np.inf)
                served = (needed > 0) & (reach >= needed) & (sign * by > 0)
                served &= (move.cells == fixed[0]) if fixed.size else True
                if (served & before).any():
                    self.settled[sign][move.cells[served & before]] = len(self.offered)
                    self.offered.append(move.cells)

    def _listed_limits(self, members: Members) -> Limits:
        """The same where members are listed; kept for single respondents, who are asked about again and again."""
        if len(members) > 1:
            return self._limits(members)
        if members not in self.kept_limits:
            self.kept_limits[members] = self._limits(members)
        return self.kept_limits[members]

    def _limits(self, members: Members, *, guess: bool = False, joined: bool = False) -> Limits:
        """How far cells may move for all a coalition knows, or may when it is `joined` by others.

        With `guess` also where its members are not listed.
        """
        cells, floor, known = self.knowledge.seen_by(members, joined=joined)
        truth = self.system.truth
        if guess:
            beside, negative = self.knowledge.guesses(members), self.knowledge.negative[cells]
            least = np.maximum(beside, self.system.lower)
            least[cells] = np.maximum(least[cells], np.where(negative, floor, floor + beside[cells]))
            known |= self.knowledge.seen_by(members, joined=self.knowledge.size > 1)[2]
            unlisted = least > self.system.lower
            unlisted[cells] = False
            more = np.flatnonzero(unlisted)
            cells = np.concatenate([cells, more])
            known = np.concatenate([known, np.zeros(len(more), np.bool_)])
            floor = np.minimum(least, truth)[cells]
        up = self.system.upper[cells] - truth[cells]
        return Limits(cells, np.where(known, 0.0, np.floor(truth[cells] - floor)), np.where(known, 0.0, np.floor(up)))

    def _opening(self, target: int, members: Members, *, certain: bool) -> _Opening | None:
        """The interval of a cell as a coalition sees it, if it is too narrow."""
        room, limits, need = self.in_question(target, members, certain=certain)
        value = float(self.system.truth[target])
        if self.only_whole:
            return self._opening_of_whole(target, members, (room, limits, need), certain=certain)
        low, high, short = value, value, None
        for exactly in (True,) if certain else (False, True):
            low, high = (value + way * self.moves.reach(room, target, way, limits, exactly=exactly) for way in (-1, 1))
            short = need.short(value, low, high)
            if short is None or self.whole >= WHOLE:
                break
            self.whole += not exactly
        if short is None:  # no table shows it, only a bound over all of the component
            self.moved[target].append(np.flatnonzero(self.components == self.components[target]))
            return None
        return _Opening(members, low, high, short, certain)

    def _opening_of_whole(
        self, target: int, members: Members, asked: tuple[Room, Limits, _Need], *, certain: bool
    ) -> _Opening | None:
        """The same for who knows that values are whole.

        It is `certain` by what no whole table exceeds, and possible by what none was seen to reach.

        The program that takes parts of a unit comes first: where its interval is too narrow, so is that.
        """
        room, limits, need = asked
        value, ends = float(self.system.truth[target]), list[float]()
        for way in (-1, 1):
            ends.append(float(np.floor(self.moves.reach(room, target, way, limits, exactly=True) + NEARLY_WHOLE)))
        short = need.short(value, value - ends[0], value + ends[1])
        if short is None:
            for at, way in enumerate((-1, 1)):
                if np.isfinite(ends[at]):
                    seen, bound = self.moves.reach_whole(room, target, way, limits)
                    shown = 0.0 if seen is None else abs(seen.at(target))
                    ends[at] = min(ends[at], bound) if certain else shown
            short = need.short(value, value - ends[0], value + ends[1])
        if short is None:
            self.moved[target].append(np.flatnonzero(self.components == self.components[target]))
            return None
        return _Opening(members, value - ends[0], value + ends[1], short, certain)

    def _presumed(self, target: int, members: Members) -> _Opening | None:
        """A coalition as if it knew a cell exactly."""
        value = float(self.system.truth[target])
        short = self.in_question(target, members, certain=False)[2].short(value, value, value)
        return None if short is None else _Opening(members, value, value, short, certain=False)

    def in_question(self, target: int, members: Members, *, certain: bool) -> tuple[Room, Limits, _Need]:
        """How far cells may move for all a coalition knows, and how far one must."""
        room = self.cautious if not members and not certain else self.plain
        limits = self._limits(members, guess=not certain and bool(members))
        value, need = float(self.system.truth[target]), self._need(target, members, certain=certain)
        own = limits.down[limits.cells == target]
        floor = value - min([float(room.down[target]), *own.tolist()])
        if floor > self.system.lower[target] and not need.bare:
            need = replace(need, lower=min(need.lower, value - floor))
        return room, limits, need

    def settled_cells(self) -> SettledCells:
        """The targets that nobody comes too close to, each with the cells that its witnesses move."""
        doubtful = {*self.openings, *self.cut, *self.late, *self.open_to_all}
        safe = [target for target in self.needs if target not in doubtful]
        number: dict[int, int] = {}
        sets: list[NDArray[np.intp]] = []
        pairs: list[tuple[int, int]] = []
        for place, target in enumerate(safe):
            for moved in self.moved[target]:
                if id(moved) not in number:
                    number[id(moved)] = len(sets)
                    sets.append(moved)
                pairs.append((place, number[id(moved)]))
        by = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return SettledCells(np.array(safe, dtype=np.intp), tuple(sets), by)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def _need(self, target: int, members: Members, *, certain: bool = False) -> _Need:
        """How far a cell must be hidden from a coalition, in units (see the module's text).

        Where contributors are not listed, it is as far as it may have to be, whoever of them is in the coalition or
        joins it; with `certain`, as it has to be.
        """
        need, known = self.needs[target], self.knowledge
        signed = bool(known.negative[target])
        if need.bare or not members or (signed and self.as_it_is):
            return need
        if known.lists.shadow:
            room = float(self.system.truth[target]) - self._has(members)[target]
            return replace(need, lower=min(need.lower, max(room, 0.0)))
        inside = _among(known.who[target], members) & (known.who[target] >= 0)
        value, own, listed = float(self.system.truth[target]), known.own[target], known.who[target] >= 0
        left = max(value - float(own.sum()), 0.0)
        if signed:
            left, own = abs(value - float(own.sum())), np.abs(own)
            value = float(own.sum()) + left
        unlisted = left / max(int(known.everyone[target]) - int(listed.sum()), 1)
        if not certain:
            unlisted = float(known.lists.unlisted[self.system.cells[target]])
        mine = theirs = float(own[inside].sum())
        if known.size > 1 and known.everyone[target] > listed.sum():  # some of them may be among the others
            if certain and not signed:
                mine = theirs = max(theirs, float(self._has(members)[target]))
            elif not certain:
                mine += min((known.size - int(inside.sum())) * unlisted, left)
        several = [
            _for_members(need, value, own, inside, mine, listed, unlisted, agreed[target]) for agreed in self.agreed
        ]
        lower, upper, sliding = (max(getattr(one, name) for one in several) for name in ("lower", "upper", "sliding"))
        found = replace(need, lower=lower, upper=upper, sliding=sliding)
        if not signed:
            found = replace(found, lower=min(found.lower, value - theirs))
        return replace(found, bare=True) if found.nothing and self.not_to_be_known[target] else found

    def _has(self, members: Members) -> Floats:
        """What a coalition is known to have in each unknown cell; kept for the next target."""
        if self.last is None or self.last[0] != members:
            self.last = (members, self.knowledge.least(members)[self.system.cells])
        return self.last[1]

    # -- what is told --------------------------------------------------------------------------------------------------

    def worst(self, names: bool) -> Iterator[Insider]:
        """The insider that learns most about each cell that is open to one."""
        for target, openings in sorted(self.openings.items()):
            need = self.needs[target]
            yield self._told(target, max(openings, key=lambda opening: opening.badness(need)), names)

    def every(self, names: bool) -> Iterator[Insider]:
        """All insiders that a cell is open to, as far as they were looked at."""
        return (self._told(cell, one, names) for cell, openings in sorted(self.openings.items()) for one in openings)

    def _told(self, target: int, opening: _Opening, names: bool) -> Insider:
        unit = 10.0**self.system.table.decimals
        return Insider(
            cell=int(self.system.cells[target]),
            role=role(self.knowledge, target, opening.members),
            size=max(len(opening.members), 1),
            lower=opening.lower / unit,
            upper=opening.upper / unit,
            short_below=opening.short[0] / unit,
            short_above=opening.short[1] / unit,
            short_width=opening.short[2] / unit,
            exact=opening.exact,
            certain=opening.certain,
            names=tuple(_name(self.knowledge, member) for member in opening.members) if names else (),
            members=opening.members,
        )


def _among(who: NDArray[np.int64], members: Members) -> Mask:
    """Which of some contributors are members; mostly there is one."""
    return who == members[0] if len(members) == 1 else np.isin(who, members)


def _levels(problem: Problem, cell: int) -> _Need:
    levels, unit = problem.sensitivity, 10.0**problem.table.decimals
    lower, upper, sliding = (float(level[cell]) * unit for level in (levels.lower, levels.upper, levels.sliding))
    return _Need(lower, upper, sliding, lower == upper == sliding == 0)


def _for_members(
    need: _Need, value: float, own: Floats, inside: Mask, mine: float, listed: Mask, unlisted: float, agreed: Mask
) -> _Need:
    """The need against some of the contributors: where the largest is among them, the largest other must be hidden.

    Those who agreed to publication need not be hidden. `mine` is what they have in all, listed in the cell or not, and
    `unlisted` what the largest of those has who are not listed.
    """
    order = np.lexsort((-own, agreed))
    own, inside, listed, agreed = own[order], inside[order], listed[order], agreed[order]
    if not inside[0] or own[0] <= 0:
        return need
    second = float(own[1:].max()) if len(own) > 1 else unlisted
    others = own[~inside & listed & ~agreed]
    target = max(float(others[0]), unlisted) if others.size else unlisted
    rest = max(value - float(own[0]) - second, 0.0)
    hidden_by = max(value - mine - target, 0.0)
    lower, upper = (
        min(max((level + rest) / float(own[0]) * target - hidden_by, 0.0), level) if level > 0 else 0.0
        for level in (need.lower, need.upper)
    )
    return _Need(lower, upper, need.sliding * min(target / float(own[0]), 1.0), False)


def role(known: Knowledge, target: int, members: Members) -> str:
    """What makes a coalition an insider, without its name."""
    if not members:
        return "a contributor that is not among the largest listed"
    beside = np.unique(known.system.matrix[known.columns[:, [target]].indices].indices)
    single = [_role_of_one(known, target, member, beside) for member in members[:DESCRIBED]]
    if len(members) == 1:
        return single[0]
    more = f"; and {len(members) - DESCRIBED:,} others" if len(members) > DESCRIBED else ""
    return f"a coalition of {len(members)}: {'; '.join(single)}{more}"


def _role_of_one(known: Knowledge, target: int, member: int, beside: NDArray[np.intp]) -> str:
    place = np.flatnonzero(known.who[target] == member)
    roles = []
    if place.size:
        own = np.abs(known.own[target])
        rank = int((own > own[place[0]]).sum())
        roles.append(f"the {_RANKS[rank] if rank < len(_RANKS) else f'{rank + 1}th largest'} contributor of the cell")
    elsewhere = _elsewhere(known, target, known.seen_by((member,))[0], beside)
    if elsewhere:
        roles.append(elsewhere)
    return ", ".join(roles) or "a contributor to other suppressed cells"


def _elsewhere(known: Knowledge, target: int, cells: NDArray[np.intp], beside: NDArray[np.intp]) -> str:
    """The strongest position that a contributor has in other cells, some of which are `beside` the target."""
    cells = cells[cells != target]
    for contributors, words in ((1, "the only contributor"), (2, "one of two contributors")):
        there = cells[known.everyone[cells] == contributors]
        if there.size:
            where = "in the same row" if np.isin(there, beside).any() else "that is suppressed"
            return f"{words} of another cell {where}"
    return "a contributor to another suppressed cell" if cells.size else ""


def _name(known: Knowledge, member: int) -> str:
    kept = known.system.table.contributors
    if kept is None or member >= known.lists.nobody:
        return "without a name"
    return str(member) if kept.names is None else str(kept.names[member])
