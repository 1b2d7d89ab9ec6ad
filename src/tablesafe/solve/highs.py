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

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.program import FEASIBILITY, NOTHING, Program, Scale, Solution, SolveStatus
from tablesafe.work.budget import ENDLESS, Budget

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
NOISE = 1e-7
"""Reduced costs about 1 that are so near to 0 are rounding: the solver's own tolerance, unless it has another."""
UNLIMITED = 2**31 - 1
"""Iterations without a limit."""
HAS_POINT = 2

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

    `later` is the simplex strategy of all runs after the first. What is counted is counted in `work`.
    """

    def __init__(
        self, program: Program | None = None, *, scale: Scale | None = None, later: int | None = None,
        work: Budget | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._options: dict[str, Any] = {}
        self.set(output_flag=False, threads=1, random_seed=0, **options)
        self._scale, self._later, self._work = Scale(), later, work
        self._warm = self._mixed = False
        self._watch: _Watch | None = None
        self.status, self.interrupted, self.seconds = SolveStatus.FAILED, False, 0.0
        if program is not None:
            self.load(program, scale=scale)

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
        by_rows = p.matrix.format == "csr"
        kinds = np.zeros(len(p.cost), np.int32) if p.integer is None else p.integer.astype(np.int32)
        self._pass(
            p.cost * s.price, p.lower / s.step, p.upper / s.step, p.row_lower / s.step, p.row_upper / s.step,
            (p.matrix.indptr, p.matrix.indices, p.matrix.data), kinds, _BY_ROWS if by_rows else _BY_COLUMNS,
            s.inside(p.offset),
        )  # fmt: skip
        self._program = replace(
            p, cost=p.cost.copy(), lower=p.lower.copy(), upper=p.upper.copy(),
            row_lower=p.row_lower.copy(), row_upper=p.row_upper.copy(),
        )  # fmt: skip
        self._added: list[tuple[sparse.csr_array, Floats, Floats]] = []

    def _pass(
        self, cost: Floats, lower: Floats, upper: Floats, row_lower: Floats, row_upper: Floats,
        entries: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], kinds: NDArray[np.int32], layout: int, offset: float,
    ) -> None:  # fmt: skip
        start, index, value = entries
        self.highs.passModel(
            len(cost), len(row_lower), len(value), layout, _MINIMISE, offset, cost, lower, upper, row_lower, row_upper,
            start.astype(np.int32), index.astype(np.int32), value.astype(np.float64), kinds,
        )  # fmt: skip
        if self._watch is None and (self._mixed or len(value) > WATCHED):
            self._watch = _Watch()
            self.highs.cbMipInterrupt += self._watch.judge
            self.highs.cbMipInterrupt += self._watch.tell
            self.highs.cbSimplexInterrupt += self._watch.judge
            self.highs.cbIpmInterrupt += self._watch.judge

    @property
    def program(self) -> Program:
        """The program as it stands, with all that was changed and added."""
        if self._added:
            p, (matrices, lower, upper) = self._program, zip(*self._added, strict=True)
            self._program = replace(
                p, matrix=sparse.csr_array(sparse.vstack([p.matrix, *matrices], format="csr")),
                row_lower=np.concatenate([p.row_lower, *lower]), row_upper=np.concatenate([p.row_upper, *upper]),
            )  # fmt: skip
            self._added = []
        return self._program

    def set_costs(self, columns: NDArray[np.intp], cost: Floats) -> None:
        """Change the objective in some columns."""
        self._program.cost[columns] = cost
        self.highs.changeColsCost(len(columns), columns.astype(np.int32), cost * self._scale.price)

    def set_bounds(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Change the bounds of some columns."""
        self._program.lower[columns], self._program.upper[columns] = lower, upper
        step = self._scale.step
        self.highs.changeColsBounds(len(columns), columns.astype(np.int32), lower / step, upper / step)

    def set_row_bounds(self, rows: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Change the bounds of some rows."""
        self.program.row_lower[rows], self.program.row_upper[rows] = lower, upper
        step = self._scale.step
        self.highs.changeRowsBounds(len(rows), rows.astype(np.int32), lower / step, upper / step)

    def add_rows(self, matrix: sparse.csr_array, lower: Floats, upper: Floats) -> None:
        """Add rows `lower <= matrix @ x <= upper`."""
        step = self._scale.step
        self.highs.addRows(
            len(lower), lower / step, upper / step, matrix.nnz,
            matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32), matrix.data.astype(np.float64),
        )  # fmt: skip
        self._added.append((matrix, lower, upper))

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
        """Solve from where the last run ended, or from scratch where that gets lost in rounding.

        An interrupt by the user goes on as one, unless the run is `anytime`: then what was found until then counts.
        A linear program whose minimum is seen to lie above `better_than` is cut off.
        """
        self.set(objective_bound=np.inf if better_than == np.inf else self._scale.inside(better_than))
        begin = monotonic()
        self._run(budget, report)
        said = self.highs.getModelStatus()
        if said not in _STATUS and said not in _LIMITS and not self.interrupted:
            self.highs.clearSolver()
            self._run(budget, report)
            said = self.highs.getModelStatus()
        if self.interrupted and not anytime:
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

    def _run(self, budget: Budget, report: Report | None) -> None:
        seconds = np.inf if budget is ENDLESS else budget.left
        self.set(time_limit=np.inf if seconds == np.inf else self.highs.getRunTime() + max(seconds, LEAST_S))
        if self._watch is None:
            self.highs.run()
        else:
            with interrupts() as caught:
                self._watch.begin(caught, budget, report, self._scale)
                self.highs.run()
                self.interrupted = bool(caught)
        if self._work is not None:
            counted = self._work.integer if self._mixed else self._work.hot
            counted(self.highs.getNumRow(), self.info("simplex_iteration_count"))

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
            raise OutOfTime("The time given was too short for an answer.\n\nHint: raise time_limit_s.")
        if solution.status is SolveStatus.FAILED and not anytime:
            said = self.highs.modelStatusToString(self.highs.getModelStatus())
            raise SolverFailure(f"The solver stopped without an answer ({said}).")
        return solution

    def maximise(self, objective: Floats, budget: Budget = ENDLESS) -> Solution:
        """The point where `objective @ x` is largest, and the dual of that: to be proved before it is believed."""
        changed = np.flatnonzero(self._program.cost != -objective)
        self.set_costs(changed, -objective[changed])
        status = self.run(budget)
        point, dual = self.answer()
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
        """The point of the last run and the price of every row, unchecked: for who proves them anyway."""
        raw = self.highs.getSolution()
        return np.asarray(raw.col_value) * self._scale.step, np.asarray(raw.row_dual) / self._scale.price

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
        """Stop when the user wants it, or the budget is over."""
        if self._caught:
            event.interrupt()
        elif (now := monotonic()) >= self._look:
            self._look = now + LOOK_S
            if self._budget.over:
                event.interrupt()

    def tell(self, event: Any) -> None:
        """Report an integer program now and then."""
        if self._report is not None and monotonic() - self._told >= TELL_S:
            self._told = monotonic()
            found, bound = float(event.data_out.mip_primal_bound), float(event.data_out.mip_dual_bound)
            self._report(self._scale.original(found), self._scale.original(bound))


def whole_point(
    matrix: sparse.csr_array, rhs: Integers, upper: Floats, *, budget: Budget
) -> tuple[SolveStatus, Integers | None]:
    """A whole point of `matrix @ x = rhs`, `0 <= x <= upper`; or that there is none, or none was found.

    The vertices of many such systems are whole by themselves, so a linear program is tried before an integer one.
    """
    n = matrix.shape[1]
    for integer in (None, np.ones(n, np.bool_)):
        program = Program.equations(matrix, rhs, np.zeros(n), upper, integer=integer)
        model = Model(program, scale=Scale(), mip_feasibility_tolerance=1e-9)
        status = model.run(budget)
        if status is SolveStatus.INFEASIBLE:
            return status, None
        point = program.whole(model.answer()[0])
        if point is not None:
            return SolveStatus.FEASIBLE, point
    return SolveStatus.FAILED, None


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Interrupts that arrive meanwhile; other threads than the first hear of none.

    A wish to end the process stops the solver too, and goes on to whoever deals with it afterwards.
    """
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    before = {
        number: signal.signal(number, lambda got, _: caught.append(got)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if signal.SIGTERM in caught:
            signal.raise_signal(signal.SIGTERM)
