"""How much work may be done: counted, so that answers repeat, and bounded by the clock and by the user's stop.

**Work** is seconds on a quiet machine. Whoever solves a program or searches a box counts what that takes by its size
and its steps; a search that ends by its work ends at the same point on every machine, however busy. The **clock** is
for machines that are slower than that, and for what nobody counts: it ends everything. It is the processor's clock, so
that a machine which is busy with something else takes longer and gives the same answer, but the one on the wall goes no
further than `PATIENCE` times as far; neither counts what compiling loops takes, once on a machine. A **stop** is the
user's: by Ctrl-C (see `tablesafe.work.stopping`), by the button of the app, or by `stop()`.

A budget is divided: what a part counts, the whole counts too, and a part is over when the whole is. What a part gave up
for want of time it says in a sentence, which whoever holds the whole passes on to the user.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic, process_time

from tablesafe.core.errors import OutOfTime
from tablesafe.core.machine import after_fork
from tablesafe.work.compiled import COMPILING

PER_PROGRAM, PER_ENTRY, PER_STEP, PER_PIVOT_AND_ENTRY, PER_PAIR_OF_PIVOTS = 4e-4, 1.5e-7, 1.8e-7, 2e-9, 7.5e-9
"""Seconds on a machine of 2024, fitted to 27,000 programs: the more pivots, the longer each takes."""
PER_PIVOT = 8e-6
"""The same for programs that go on from their last answer."""
PER_HOT, PER_PIVOT_AND_ROW = 2.5e-4, 3e-8
"""The same for programs of which only the objective or a few bounds change."""
PER_FLOW, PER_ARC = 2e-4, 6e-8
"""The same for minimum-cost flows."""
PER_BOX, PER_LOOK = 1e-4, 2.5e-9
"""The same for boxes, by the cells looked at."""
PATIENCE = 1.6
"""How many times as long as on a quiet machine the user waits on a busy one."""
NECESSARY, WAITING_S = 3.0, 30.0
"""The same for what must be done, and how long the user waits for that in any case, however busy the machine is."""
MOMENT_S = 0.005
"""Seconds for which the processor's clock is taken to stand still."""
GENEROUS = 4.0
"""How many times its share of the time a part of the work may take, where parts differ."""


def wall() -> float:
    """Seconds on the wall, without those in which loops were compiled: that is done once, whoever is in a hurry."""
    return monotonic() - COMPILING.wall


_LOOKED = [-inf, 0.0]
"""When the processor's clock was read last, and what it said."""


def _look_again() -> None:
    _LOOKED[0] = -inf


after_fork(_look_again)  # the processor's clock of a copied process begins anew

_BESIDE = [0.0]
"""Seconds of the processor that other threads worked beside one that worked itself at the same time."""


def beside(cpu: float) -> None:
    """Take what threads worked at the same time as the one that took longest off the processor's clock."""
    _BESIDE[0] += cpu


def worked() -> float:
    """Seconds of this process's processor, without those that compiling took, or that threads worked at the same time;
    as they were a moment ago, at least.

    The clock on the wall is read for nothing, the processor's is a call to the system: on a busy machine, at which
    another process takes over.
    """
    now = monotonic()
    if not 0.0 <= now - _LOOKED[0] <= MOMENT_S:
        _LOOKED[:] = now, process_time()
    return _LOOKED[1] - COMPILING.cpu - _BESIDE[0]


class Budget:
    """So much work, and no longer than so many seconds on the clock; without limits where none are given."""

    __slots__ = (
        "_behind", "_clock", "_counted", "_cpu", "_cpu_end", "_end", "_given_up", "_hurry", "_most", "_parent",
        "_stopped", "spent",
    )  # fmt: skip

    def __init__(
        self,
        seconds: float | None = None,
        *,
        work: float | None = None,
        patience: float = PATIENCE,
        clock: Callable[[], float] | None = None,
        cpu: Callable[[], float] | None = None,
        parent: Budget | None = None,
        counted: bool = True,
    ) -> None:
        """Allow `seconds` on the processor's clock, and as much work unless `work` says how much.

        `clock` and `cpu` are other clocks, for tests. What is not `counted` is no work of the whole.
        """
        self._clock, self._cpu, self._parent = clock or wall, cpu or clock or worked, parent
        self._end = inf if seconds is None else self._clock() + patience * max(seconds, 0.0)
        self._cpu_end = inf if seconds is None else self._cpu() + max(seconds, 0.0)
        self._most = max(work, 0.0) if work is not None else inf if seconds is None else max(seconds, 0.0)
        self._stopped, self._counted = False, counted
        self._hurry: tuple[Budget, float] | None = None
        self._behind: Budget | None = None
        self._given_up: list[str] = []
        self.spent = 0.0
        """Seconds of work that were counted so far."""

    def __reduce__(self) -> tuple[Callable[..., Budget], tuple[float, float]]:
        """What another process may do: what is left here."""
        return _elsewhere, (self.seconds_left, self.work_left)  # its processor's clock is another

    # -- what is left ----------------------------------------------------------------------------------------------

    @property
    def work_left(self) -> float:
        """Seconds of work that are left, the same on every machine; 0 when the budget is over for any reason."""
        if self.stopped or self.seconds_left <= 0:
            return 0.0
        return self._uncounted()

    @property
    def seconds_left(self) -> float:
        """Seconds on the clock that are left, for a solver that has a limit of its own."""
        end, cpu_end = self._ends()
        return inf if end == inf else max(0.0, min(end - self._clock(), PATIENCE * (cpu_end - self._cpu())))

    @property
    def left(self) -> float:
        """Seconds for something that is not counted: of work or on the clock, whichever is less."""
        if self.stopped:
            return 0.0
        end, cpu_end = self._ends()
        if end == inf:
            return self._uncounted()
        return max(0.0, min(self._uncounted(), end - self._clock(), cpu_end - self._cpu()))

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun: the work is done, the time is up, or the user wants it to stop."""
        return self.left <= 0

    @property
    def stopped(self) -> bool:
        """Whether the user wants it to stop."""
        return self._stopped or (self._parent is not None and self._parent.stopped)

    @property
    def hurried(self) -> bool:
        """Whether the user wants it to end, at once or within the seconds that it has for what must be done."""
        return self.stopped or (self._behind is not None and self._behind.stopped)

    @property
    def overdue(self) -> bool:
        """Whether the user wanted it to end, and the seconds that it had after that are over: break it off."""
        return self._behind is not None and self._behind.stopped and self.over

    @property
    def late(self) -> bool:
        """Whether the clock or the user, not the work, has ended it: then the answer may differ elsewhere."""
        return self.stopped or self.seconds_left <= 0

    def check(self) -> None:
        """Stop by an error when the budget is over: for work that has no answer before its end."""
        if self.over:
            raise OutOfTime("The time given was too short for an answer.")

    def _uncounted(self) -> float:
        own = max(0.0, self._most - self.spent)
        return own if self._parent is None else min(own, self._parent._uncounted())

    def _ends(self) -> tuple[float, float]:
        hurry = self._hurry  # another thread may look at the same time
        if hurry is not None and hurry[0].stopped:
            self._end, self._hurry = min(self._end, self._clock() + hurry[1]), None
        if self._parent is None:
            return self._end, self._cpu_end
        end, cpu_end = self._parent._ends()
        return min(self._end, end), min(self._cpu_end, cpu_end)

    # -- parts -----------------------------------------------------------------------------------------------------

    def child(self, seconds: float | None = None, *, work: float | None = None) -> Budget:
        """A part of this budget, with limits of its own: of work, on the clock, or none."""
        work = inf if work is None and seconds is None else work
        return Budget(seconds, work=work, clock=self._clock, cpu=self._cpu, parent=self)

    def apart(self, cpu: Callable[[], float]) -> Budget:
        """A part of this budget that ends with it, and counts for itself: for what is done at the same time.

        It goes by the processor's clock of its own thread, `cpu`, which goes on from that of the whole.
        """
        return Budget(work=self._uncounted(), clock=self._clock, cpu=cpu, parent=self, counted=False)

    def processor(self) -> float:
        """What the processor's clock says."""
        return self._cpu()

    def share(self, part: float) -> Budget:
        """What a part of the work left may take: several times its part of the time, for parts differ."""
        part = max(min(1.0, GENEROUS * part), 1e-9)
        return self.child(part * self.left, work=part * self.work_left)

    def at_least(self, seconds: float) -> Budget:
        """This budget, or a new one where less is left of it: for what has to be brought to an end."""
        return self if self.left >= seconds else Budget(seconds)

    def until(self, work: float) -> Callable[[], bool]:
        """Whether this budget is over, or so much more work was counted in it: for loops that are given a `stop`."""
        end = self.spent + work
        return lambda: self.spent > end or self.over

    def prolong(self, kept: float) -> None:
        """Allow all that the whole has left but some seconds, on every clock, where that is more than was allowed."""
        whole = self._parent
        if whole is None or self._end == inf:
            return
        end, cpu_end = whole._ends()
        self._end = max(self._end, end - PATIENCE * kept)
        self._cpu_end = max(self._cpu_end, cpu_end - kept)
        self._most = max(self._most, self.spent + whole._uncounted() - kept)

    def stop(self) -> None:
        """End it, and all its parts, as soon as they look."""
        self._stopped = True

    def hurry(self, other: Budget, seconds: float) -> None:
        """End within some seconds once another is stopped: for what must be done all the same."""
        self._hurry, self._behind = (other, seconds), other

    # -- what was given up -----------------------------------------------------------------------------------------

    def give_up(self, what: str) -> None:
        """Note, in a sentence for the user, what there was no time for."""
        whole = self
        while whole._parent is not None:
            whole = whole._parent
        if what not in whole._given_up:
            whole._given_up.append(what)

    @property
    def given_up(self) -> tuple[str, ...]:
        """What there was no time for, in this budget and all parts of the whole."""
        return tuple(self._given_up) if self._parent is None else self._parent.given_up

    # -- counting --------------------------------------------------------------------------------------------------

    def count(self, work: float) -> None:
        """Count some work."""
        self.spent += work
        if self._parent is not None and self._counted:
            self._parent.count(work)

    def program(self, entries: int, pivots: int, steps: int = 0) -> None:
        """Count one linear program, by its pivots and by its interior-point steps."""
        pivots, steps = max(pivots, 0), max(steps, 0)
        by_pivots = (PER_PIVOT_AND_ENTRY * entries + PER_PAIR_OF_PIVOTS * pivots) * pivots
        self.count(PER_PROGRAM + (PER_ENTRY + PER_STEP * steps) * entries + by_pivots)

    def hot(self, rows: int, pivots: int) -> None:
        """Count a program that is kept in memory and goes on from its last answer."""
        self.count(PER_HOT + (PER_PIVOT + PER_PIVOT_AND_ROW * rows) * max(pivots, 0))

    def integer(self, rows: int, pivots: int) -> None:
        """Count an integer program, by all pivots of its relaxations."""
        self.count(10 * PER_PROGRAM + (PER_PIVOT + PER_PIVOT_AND_ROW * rows) * max(pivots, 0))

    def flow(self, arcs: int) -> None:
        """Count one minimum-cost flow."""
        self.count(PER_FLOW + PER_ARC * arcs)

    def box(self, looks: int) -> None:
        """Count one search for a box."""
        self.count(PER_BOX + PER_LOOK * looks)


def _elsewhere(seconds: float, work: float) -> Budget:
    return Budget(None if seconds == inf else seconds / PATIENCE, work=work)


def necessary(seconds: float) -> Budget:
    """A budget for what must be done, or all was in vain: few seconds of work, for which a busy machine has longer."""
    return Budget(seconds, patience=max(NECESSARY, WAITING_S / max(seconds, 1e-9)))


ENDLESS = Budget()
"""A budget without limits, for who is given none; it counts nothing that anybody reads."""
