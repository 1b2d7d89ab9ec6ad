"""HiGHS: one model of a program, kept warm. The only file that imports the solver.

Objective, bounds and rows of a model can be changed, and the next run goes on from the last basis. Every run ends when
its budget is over and when the user interrupts: the solver alone goes on past its time in places, and would hear of
Ctrl-C only at its end. Small programs are too short for either, and by the thousand too many to be watched.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.program import FEASIBILITY, NOTHING, Columns, Matrix, Program, Rows, Scale, Solution, SolveStatus
from tablesafe.work.budget import ENDLESS, PATIENCE, Budget
from tablesafe.work.stopping import asked, heeding, overdue

DUAL, PRIMAL = 1, 4
"""Strategies of the simplex method: after a change of bounds or rows, and after one of the objective."""
SIMPLEX: dict[str, Any] = {"solver": "simplex", "presolve": "off"}
"""For models that are run again and again: presolve would forget the basis."""
INTERIOR: dict[str, Any] = {"solver": "ipm", "run_crossover": "off"}
"""For a point amid all optimal ones."""
PRECISE: dict[str, Any] = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
WATCHED = 10_000
"""Entries from which on a program is watched while it runs: below, a run takes milliseconds."""
LOOK_S, TELL_S = 0.02, 0.5
"""Seconds between two looks at the budget, and between two reports."""
LEAST_S = 0.05
"""Whatever is left: a solver that is asked at all gets so much."""
LARGE = 20_000
"""Entries beyond which an interior point, and the vertex next to it, are found sooner than by pivots."""
TIGHT = 1e-7
"""By how much the answer to a small program may miss."""
NOISE = 1e-7
"""Reduced costs about 1 that are so near to 0 are rounding: the solver's own tolerance, unless it has another."""
PER_ROW = 20
"""Entries that make a pivot as slow as a row does."""
UNLIMITED = 2**31 - 1
"""Iterations without a limit."""
HAS_POINT = 2
"""What HiGHS says of its point when it is feasible."""

_BY_COLUMNS, _BY_ROWS = int(highspy.MatrixFormat.kColwise), int(highspy.MatrixFormat.kRowwise)
_MINIMISE = int(highspy.ObjSense.kMinimize)
_STATUS = {
    highspy.HighsModelStatus.kOptimal: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kModelEmpty: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: SolveStatus.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: SolveStatus.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: SolveStatus.UNBOUNDED,
    highspy.HighsModelStatus.kObjectiveBound: SolveStatus.CUT_OFF,
    highspy.HighsModelStatus.kTimeLimit: SolveStatus.STOPPED,
    highspy.HighsModelStatus.kInterrupt: SolveStatus.STOPPED,
}
_LIMITS = {
    highspy.HighsModelStatus.kIterationLimit,
    highspy.HighsModelStatus.kSolutionLimit,
    highspy.HighsModelStatus.kMemoryLimit,
}
_UNFINISHED = {SolveStatus.STOPPED, SolveStatus.FAILED, SolveStatus.CUT_OFF}

Report = Callable[[float, float], None]
"""Hears of the cost of the best point so far (infinite before there is one), and of the proven bound."""


class Model:
    """A program in the hands of HiGHS: silent, on one thread, from the same seed.

    `later` is the simplex strategy of all runs after the first.
    """

    def __init__(
        self, program: Program | None = None, *, scale: Scale | None = None, later: int | None = None,
        work: Budget | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._options: dict[str, Any] = {}
        self.set(output_flag=False, threads=1, random_seed=0, **options)
        self._scale, self._later = Scale(), later
        self.work = Budget() if work is None else work
        """Where the runs are counted; it limits those that have no budget of their own."""
        self._warm = self._mixed = self._torn = False
        self._watch: _Watch | None = None
        self.status, self.interrupted, self.seconds = SolveStatus.FAILED, False, 0.0
        if program is not None:
            self.load(program, scale=scale)

    @classmethod
    def small(cls, work: Budget | None = None) -> Model:
        """A model for small programs, one after another: see `minimise`."""
        return cls(work=work, **SIMPLEX)

    def set(self, **options: Any) -> None:
        """Set options of the solver; one that it does not know would silently be left out."""
        for option, value in options.items():
            if self._options.get(option) != value:
                if self.highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
                    raise SolverFailure(f"HiGHS does not accept {option}={value!r}.")
                self._options[option] = value

    # -- the program -----------------------------------------------------------------------------------------------

    def load(self, program: Program, *, scale: Scale | None = None) -> None:
        """Take another program; scaled to numbers about 1 unless told how."""
        p, s = program, Scale.of(program) if scale is None else scale
        self._scale, self._mixed, self._warm = s, p.mixed, False
        if self._mixed and s.step != 1.0:
            raise ValueError("whole numbers cannot be scaled")
        self._pass(
            p.cost * s.price, p.lower / s.step, p.upper / s.step, p.row_lower / s.step, p.row_upper / s.step,
            p.matrix, p.integer, s.inside(p.offset),
        )  # fmt: skip
        self._program, self._own = p, False
        self._added: list[tuple[Rows, Floats, Floats]] = []

    def _pass(
        self, cost: Floats, lower: Floats, upper: Floats, row_lower: Floats, row_upper: Floats, matrix: Matrix,
        integer: Mask | None = None, offset: float = 0.0,
    ) -> None:  # fmt: skip
        start: NDArray[Any]
        if isinstance(matrix, Columns):
            start, index, value, layout = matrix.start, matrix.index, matrix.value, _BY_COLUMNS
        else:
            start, index, value = matrix.indptr, matrix.indices, matrix.data
            layout = _BY_COLUMNS if matrix.format == "csc" else _BY_ROWS
        self.highs.passModel(
            len(cost), len(row_lower), len(value), layout,
            _MINIMISE, offset, cost, lower, upper, row_lower, row_upper,
            start.astype(np.int32, copy=False), index.astype(np.int32, copy=False),
            value.astype(np.float64, copy=False),
            np.zeros(len(cost), np.int32) if integer is None else integer.astype(np.int32),
        )  # fmt: skip
        self._watch_out(len(value))

    def _watch_out(self, entries: int) -> None:
        """From now on stop when the user wants it, if the program is not too small for that."""
        if self._watch is None and (self._mixed or entries > WATCHED):
            self._watch = _Watch()
            self.highs.cbMipInterrupt += self._watch.judge
            self.highs.cbMipInterrupt += self._watch.tell
            self.highs.cbSimplexInterrupt += self._watch.judge
            self.highs.cbIpmInterrupt += self._watch.judge

    def _to_change(self) -> Program:
        """The program in arrays of our own: those that were given stay as they are."""
        if not self._own:
            p, self._own = self._program, True
            self._program = replace(
                p, cost=p.cost.copy(), lower=p.lower.copy(), upper=p.upper.copy(),
                row_lower=p.row_lower.copy(), row_upper=p.row_upper.copy(),
            )  # fmt: skip
        return self._program

    @property
    def program(self) -> Program:
        """The program as it stands, with all that was changed and added."""
        if self._added:
            p, (matrices, lower, upper) = self._program, zip(*self._added, strict=True)
            added = [p.by_scipy, *(each.by_scipy for each in matrices)]
            self._program = replace(
                p, matrix=sparse.csr_array(sparse.vstack(added, format="csr")),
                row_lower=np.concatenate([p.row_lower, *lower]), row_upper=np.concatenate([p.row_upper, *upper]),
            )  # fmt: skip
            self._added = []
        return self._program

    def set_cost(self, column: int, cost: float) -> None:
        """Change the objective in one column."""
        self._to_change().cost[column] = cost
        self.highs.changeColCost(column, cost * self._scale.price)

    def set_costs(self, columns: NDArray[np.intp], cost: Floats) -> None:
        """Change the objective in some columns."""
        self._to_change().cost[columns] = cost
        self.highs.changeColsCost(len(columns), columns.astype(np.int32), cost * self._scale.price)

    def set_bound(self, column: int, lower: float, upper: float) -> None:
        """Change the bounds of one column."""
        program = self._to_change()
        program.lower[column], program.upper[column] = lower, upper
        self.highs.changeColBounds(column, lower / self._scale.step, upper / self._scale.step)

    def set_bounds(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Change the bounds of some columns."""
        program = self._to_change()
        program.lower[columns], program.upper[columns] = lower, upper
        step = self._scale.step
        self.highs.changeColsBounds(len(columns), columns.astype(np.int32), lower / step, upper / step)

    def set_row_bounds(self, rows: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Change the bounds of some rows."""
        self._to_change()
        program = self.program
        program.row_lower[rows], program.row_upper[rows] = lower, upper
        step = self._scale.step
        self.highs.changeRowsBounds(len(rows), rows.astype(np.int32), lower / step, upper / step)

    def add_rows(self, matrix: Rows, lower: Floats, upper: Floats) -> None:
        """Add rows `lower <= matrix @ x <= upper`."""
        step = self._scale.step
        self.highs.addRows(
            len(lower), lower / step, upper / step, len(matrix.value),
            matrix.start[:-1].astype(np.int32), matrix.index.astype(np.int32), matrix.value.astype(np.float64),
        )  # fmt: skip
        self._added.append((matrix, lower, upper))
        self._watch_out(self.highs.getNumNz())

    def start(self, point: Floats, columns: NDArray[np.intp] | None = None) -> None:
        """Tell a point that is known already, or its values in some columns."""
        if columns is not None:
            self.highs.setSolution(len(columns), columns.astype(np.int32), point[columns] / self._scale.step)
            return
        known = highspy.HighsSolution()
        known.col_value = (point / self._scale.step).tolist()
        known.value_valid = True
        self.highs.setSolution(known)

    def forget(self) -> None:
        """Begin the next run from nothing."""
        self.highs.clearSolver()
        self._warm = False

    # -- runs ------------------------------------------------------------------------------------------------------

    def run(
        self, budget: Budget = ENDLESS, *, anytime: bool = False, report: Report | None = None,
        better_than: float = np.inf,
    ) -> SolveStatus:  # fmt: skip
        """Solve from where the last run ended, or from scratch where that gets lost in rounding, by any method.

        An interrupt by the user goes on as one, unless the run is `anytime`: then what was found until then counts.
        A linear program whose minimum is seen to lie above `better_than` is cut off.
        """
        self.set(objective_bound=np.inf if better_than == np.inf else self._scale.inside(better_than))
        begin = monotonic()
        self._run(budget, report)
        said = self.highs.getModelStatus()
        if said not in _STATUS:
            said = self._once_more(said, budget, report)
        if self._torn and not anytime:
            raise KeyboardInterrupt
        self.status = _STATUS.get(said, SolveStatus.FAILED)
        if self._mixed and self.status in _UNFINISHED and self.info("primal_solution_status") == HAS_POINT:
            self.status = SolveStatus.FEASIBLE
        self.seconds = monotonic() - begin
        if not self._warm:
            self._warm = True
            if self._later is not None:
                self.set(simplex_strategy=self._later)
        return self.status

    def _once_more(self, said: Any, budget: Budget, report: Report | None) -> Any:
        """Solve from scratch, and if that is no better by the other simplex method; says what comes of it."""
        usual = self._options.get("simplex_strategy", DUAL)
        for strategy in (usual, PRIMAL if usual == DUAL else DUAL):
            if said in _STATUS or said in _LIMITS or self._torn:
                break
            self.highs.clearSolver()
            self.set(simplex_strategy=strategy)
            self._run(budget, report)
            said = self.highs.getModelStatus()
        self.set(simplex_strategy=usual)
        return said

    def _allow(self, budget: Budget) -> None:
        """Tell the solver, which looks at the clock on the wall, how long the next run may take."""
        seconds = np.inf if budget is ENDLESS else PATIENCE * budget.left
        self.set(time_limit=np.inf if seconds == np.inf else self.highs.getRunTime() + max(seconds, LEAST_S))

    def _run(self, budget: Budget, report: Report | None) -> None:
        self._allow(budget)
        self._watched_run(budget, report)
        self._count(None if self._options.get("presolve") == "off" else self.highs.getNumNz())

    def _count(self, entries: int | None) -> None:
        """Count a run: one from nothing by its entries, one that goes on from the last by its rows."""
        pivots = self.info("simplex_iteration_count")
        if self._mixed:
            self.work.integer(self.highs.getNumRow(), pivots)
        elif entries is None:
            self.work.hot(self.highs.getNumRow() + self.highs.getNumNz() // PER_ROW, pivots)
        else:
            self.work.program(entries, pivots, 0 if entries <= LARGE else self.info("ipm_iteration_count"))

    def _watched_run(self, budget: Budget, report: Report | None) -> None:
        if self._watch is None:
            self.highs.run()
            self._torn = overdue()
            return
        with interrupts() as caught:
            self._watch.begin(caught, budget, report, self._scale)
            self.highs.run()
            self._torn = bool(caught) or overdue()
        self.interrupted = self._torn or asked()

    def solve(
        self, budget: Budget = ENDLESS, *, anytime: bool = False, report: Report | None = None,
        better_than: float = np.inf,
    ) -> Solution:  # fmt: skip
        """Run, and say what was found; an error where that is nothing at all.

        What an `anytime` run did not find in its time is no error.
        """
        self.run(budget, anytime=anytime, report=report, better_than=better_than)
        solution = self.solution()
        if solution.status is SolveStatus.STOPPED and not anytime:
            raise OutOfTime("The time given was too short for an answer.", hint="raise time_limit_s.")
        if solution.status is SolveStatus.FAILED and not anytime:
            said = self.highs.modelStatusToString(self.highs.getModelStatus())
            raise SolverFailure(f"The solver stopped without an answer ({said}).")
        return solution

    def best_point(self, budget: Budget, per_step: float) -> Floats | None:
        """The point of least cost; None where there is none, or no time.

        Each step of an interior point counts as so many seconds of work: in large programs factors fill up.
        """
        try:
            answer = self.solve(budget)
        except (OutOfTime, SolverFailure):
            return None
        finally:
            budget.count(per_step * max(self.info("ipm_iteration_count"), 0))
        return answer.point if answer.status is SolveStatus.OPTIMAL else None

    def minimise(
        self, cost: Floats, lower: Floats, upper: Floats, columns: Columns, *, most: float = np.inf,
        pivots: int = UNLIMITED, budget: Budget | None = None,
    ) -> Solution | None:  # fmt: skip
        """The minimum over `A x = 0`, `lower ≤ x ≤ upper`; None when there is none or the answer fails our check.

        The short way for small programs by the thousand, in numbers about 1: nothing is kept from one to the next. A
        program whose minimum is seen to lie above `most`, or that takes more than `pivots` steps, is given up, and so
        is one for which the budget is over: its own, or that in which it is counted.
        """
        budget = self.work if budget is None else budget
        entries, zeros = len(columns.value), np.zeros(columns.rows)
        self.set(
            objective_bound=most, simplex_iteration_limit=pivots, solver="ipm" if entries > LARGE else "simplex",
        )  # fmt: skip
        self._mixed = False
        self._pass(cost, lower, upper, zeros, zeros, columns)
        self._allow(budget)
        self._watched_run(budget, None)
        if self._torn:
            raise KeyboardInterrupt
        self._count(entries)
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        raw = self.highs.getSolution()
        x = np.asarray(raw.col_value)
        if not _feasible(x, lower, upper, columns):
            return None
        objective = float(self.highs.getObjectiveValue())
        return Solution(
            status=SolveStatus.OPTIMAL, objective=objective, bound=objective, seconds=0.0, point=x,
            dual=np.asarray(raw.row_dual),
        )  # fmt: skip

    def maximise(self, objective: Floats, budget: Budget = ENDLESS) -> Solution:
        """The point where `objective @ x` is largest, and the dual of that: to be proved before it is believed."""
        changed = np.flatnonzero(self._program.cost != -objective)
        self.set_costs(changed, -objective[changed])
        status = self.run(budget)
        point, dual = self._said()
        return Solution(status=status, objective=np.nan, bound=np.inf, seconds=self.seconds, point=point, dual=-dual)

    # -- answers ---------------------------------------------------------------------------------------------------

    def solution(self) -> Solution:
        """What the last run found, in the units of the data; a point that misses its equations is no answer."""
        status, program, scale = self.status, self.program, self._scale
        objective, bound = np.inf, -np.inf
        point = dual = reduced = NOTHING
        raw = self.highs.getSolution()
        if status is SolveStatus.INFEASIBLE:
            bound = np.inf
        elif self._mixed:
            said = scale.original(float(self.info("mip_dual_bound")))
            bound = said if np.isfinite(said) else bound
        elif status in {SolveStatus.OPTIMAL, SolveStatus.STOPPED}:  # any prices prove a bound
            dual, reduced = (np.array(each, dtype=np.float64) / scale.price for each in (raw.row_dual, raw.col_dual))
            if len(dual) == len(program.row_lower) and np.isfinite(dual).all():
                noise = self._options.get("dual_feasibility_tolerance", NOISE)
                bound = program.bound(dual, noise=noise / scale.price)
        if status is SolveStatus.OPTIMAL or status is SolveStatus.FEASIBLE:
            point = np.array(raw.col_value, dtype=np.float64) * scale.step
            if program.violation(point, unit=scale.step) <= FEASIBILITY:
                objective = float(program.cost @ point) + program.offset
            else:
                status, point = SolveStatus.FAILED, NOTHING
        return Solution(
            status=status, objective=objective, bound=bound, seconds=self.seconds, point=point, dual=dual,
            reduced_costs=reduced, interrupted=self.interrupted,
        )  # fmt: skip

    def answer(self) -> tuple[Floats, Floats]:
        """The point of the last run and the price of every row, finite but unchecked: for who proves them anyway.

        What is no number is asked for once more, from nothing.
        """
        for last in (False, True):
            point, dual = self._said()
            if np.isfinite(point).all() and np.isfinite(dual).all():
                break
            if last:
                raise SolverFailure("The solver gave an answer that is no number.")
            self.highs.clearSolver()
            self._watched_run(ENDLESS, None)
        return point, dual

    def _said(self) -> tuple[Floats, Floats]:
        raw = self.highs.getSolution()
        return np.asarray(raw.col_value) * self._scale.step, np.asarray(raw.row_dual) / self._scale.price

    @property
    def objective(self) -> float:
        """What the point of the last run costs, by the solver."""
        return self._scale.original(float(self.highs.getObjectiveValue()))

    def ray(self) -> Floats | None:
        """Prices that prove, if they are right, that no point fulfils all rows; after a run that found none."""
        answer = self.highs.getDualRay()
        return np.asarray(answer[2]) if answer[1] else None

    def info(self, name: str) -> Any:
        """One of the figures that the solver has of its last run; all of them at once take ten times as long."""
        return self.highs.getInfoValue(name)[1]


class _Watch:
    """What is asked now and then while a program runs. It knows nothing of the model, which would not be freed."""

    def begin(self, caught: list[int], budget: Budget, report: Report | None, scale: Scale) -> None:
        self._caught, self._budget, self._report, self._scale = caught, budget, report, scale
        self._look, self._told = 0.0, monotonic()

    def judge(self, event: Any) -> None:
        """Stop when the user wants it, or the budget is over; what has no budget must have an answer."""
        if self._caught:
            event.interrupt()
        elif self._budget is not ENDLESS and (now := monotonic()) >= self._look:
            self._look = now + LOOK_S
            if self._budget.over or asked():
                event.interrupt()

    def tell(self, event: Any) -> None:
        """Report an integer program now and then."""
        if self._report is not None and monotonic() - self._told >= TELL_S:
            self._told = monotonic()
            found, bound = float(event.data_out.mip_primal_bound), float(event.data_out.mip_dual_bound)
            self._report(self._scale.original(found), self._scale.original(bound))


def _feasible(x: Floats, lower: Floats, upper: Floats, columns: Columns) -> bool:
    """Never trust a status alone: check the point against the equations and the bounds."""
    if not ((x >= lower - TIGHT) & (x <= upper + TIGHT)).all():
        return False
    sums, size = columns.sums(x)
    return bool((np.abs(sums) <= TIGHT * np.maximum(1.0, size)).all())


def whole_point(
    matrix: sparse.csr_array, rhs: Integers, upper: Floats, *, lower: Floats | None = None, budget: Budget
) -> tuple[SolveStatus, Integers | None]:
    """A whole point of `matrix @ x = rhs`, `lower <= x <= upper` (0 if not told); or none, or none was found.

    The vertices of many such systems are whole by themselves, so a linear program is tried before an integer one.
    """
    n = matrix.shape[1]
    for integer in (None, np.ones(n, np.bool_)):
        program = Program.equations(matrix, rhs, np.zeros(n) if lower is None else lower, upper, integer=integer)
        model = Model(program, scale=Scale(), mip_feasibility_tolerance=1e-9)
        status = model.run(budget)
        if status is SolveStatus.INFEASIBLE:
            return status, None
        point = program.whole(model.solution().point)
        if point is not None:
            return SolveStatus.FEASIBLE, point
    return SolveStatus.FAILED, None


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Interrupts that arrive meanwhile; other threads than the first hear of none.

    A wish to end the process stops the solver too, and goes on to whoever deals with it afterwards. Where a budget is
    heeded (see `tablesafe.work.stopping`), both stop that.
    """
    caught: list[int] = []
    if heeding() or threading.current_thread() is not threading.main_thread():
        yield caught
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: caught.append(got)) for number in numbers}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if signal.SIGTERM in caught:
            signal.raise_signal(signal.SIGTERM)
