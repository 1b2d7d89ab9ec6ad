"""Choose 0/1 variables at least cost under inequalities that arrive one after another: `coefficients · x ≥ 1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from tablesafe.equations import Floats, Mask
from tablesafe.errors import SolverFailure
from tablesafe.solve.solver import new_solver, set_options
from tablesafe.solve.stopping import interrupts
from tablesafe.solve.work import Work

NODES = 5_000
"""Branching stops here: the next cuts help more than a finer answer, and a count is the same everywhere."""
LARGEST = 2.0**50
"""Sums of whole costs up to this are exact."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`coefficients · x[variables] ≥ 1`."""

    variables: NDArray[np.int64]
    coefficients: Floats

    def key(self) -> int:
        """Equal for equal cuts."""
        return hash((self.variables.tobytes(), self.coefficients.round(9).tobytes()))


@dataclass(frozen=True, slots=True)
class Choice:
    """A 0/1 answer, and a proven lower bound on every answer."""

    x: Floats
    objective: float
    bound: float
    proved: bool


class Covering:
    """The cuts found so far; their relaxation is re-solved from where it stood, the integer program from scratch."""

    def __init__(self, cost: Floats, work: Work | None = None) -> None:
        self._work = Work() if work is None else work
        self._entries = 0
        self._scale = float(cost[cost > 0].mean()) if (cost > 0).any() else 1.0
        self._given = cost
        self._cost = cost / self._scale
        self.cuts: list[Cut] = []
        self._seen: set[int] = set()
        self._relaxation = self._model()
        self._bound = 0.0
        self._reduced = np.zeros(len(cost))
        self._step = 1.0 if bool((cost == np.rint(cost)).all()) and float(cost.sum()) < LARGEST else 0.0

    def add(self, cuts: list[Cut]) -> int:
        """Add what is new; says how many that were."""
        new = []
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                new.append(cut)
        if new:
            self.cuts += new
            self._entries += sum(len(cut.variables) for cut in new)
            _append(self._relaxation, new)
        return len(new)

    def relax(self) -> tuple[float, Floats]:
        """The least cost of a fractional answer, and the answer."""
        self._relaxation.run()
        self._work.further(self._entries, self._relaxation.getInfo().simplex_iteration_count)
        if self._relaxation.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure("The relaxation of the suppression problem was not solved.")
        solution = self._relaxation.getSolution()
        self._bound = float(self._relaxation.getInfo().objective_function_value) * self._scale
        self._reduced = np.asarray(solution.col_dual) * self._scale
        return self._bound, np.clip(np.asarray(solution.col_value), 0.0, 1.0)

    def useful(self, best: float) -> Mask:
        """The variables that may be 1 in an answer that costs less than `best`, by their reduced costs."""
        return self._reduced <= self._room(best)

    def needed(self, best: float) -> Mask:
        """The variables that are 1 in every answer that costs less than `best`, by their reduced costs."""
        return self._reduced < -self._room(best)

    def _room(self, best: float) -> float:
        """How much an answer may cost beyond the relaxation to cost less than `best`, and a little for rounding."""
        return max(best - self._bound - self._step, 0.0) + 1e-6 * max(abs(best), self._scale)

    def among(self, variables: NDArray[np.int64]) -> Covering:
        """The same for some (ascending) variables, all others being 0."""
        number = np.full(len(self._cost), -1, dtype=np.int64)
        number[variables] = np.arange(len(variables))
        fewer = Covering(self._given[variables], self._work)
        for cut in self.cuts:
            left = number[cut.variables] >= 0
            fewer.add([Cut(number[cut.variables[left]], cut.coefficients[left])])
        return fewer

    def choose(
        self, *, time_limit_s: float, start: Floats | None, gap: float = 1e-6, best: float = np.inf
    ) -> Choice | None:
        """The least cost of a 0/1 answer, within a time limit; `start` is an answer known already.

        Answers that cost no less than `best` need not be found: variables that only those differ in are fixed.
        """
        model = self._model()
        _append(model, self.cuts)
        n = len(self._cost)
        model.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.ones(n, dtype=np.uint8))
        set_options(model, time_limit=max(0.1, time_limit_s))
        set_options(model, mip_rel_gap=gap, mip_abs_gap=min(gap, 1e-6))
        set_options(model, presolve="on")
        self._fix(model, best, start)
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = start.tolist()
            solution.value_valid = True
            model.setSolution(solution)
        set_options(model, mip_max_nodes=NODES)
        run_interruptible(model)
        self._work.further(self._entries, model.getInfo().simplex_iteration_count)
        info = model.getInfo()
        if info.primal_solution_status != 2:  # no point at all
            return None
        x = np.round(np.asarray(model.getSolution().col_value))
        proved = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return Choice(x, float(self._cost @ x) * self._scale, float(info.mip_dual_bound) * self._scale, proved)

    def _fix(self, model: Any, best: float, start: Floats | None) -> None:
        """Fix what the reduced costs tell about answers below `best`; the answer known already stays possible."""
        known = np.full(len(self._cost), -1.0) if start is None else start
        lower = np.where(self.needed(best) & (known != 0), 1.0, 0.0)
        upper = np.where(self.useful(best) | (known == 1), 1.0, 0.0)
        model.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def _model(self) -> Any:
        model: Any = new_solver()
        n = len(self._cost)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = n, 0
        program.col_cost_, program.col_lower_, program.col_upper_ = self._cost, np.zeros(n), np.ones(n)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = np.zeros(n + 1, dtype=np.int32)
        model.passModel(program)
        return model


def _append(model: Any, cuts: list[Cut]) -> None:
    if not cuts:
        return
    lengths = np.array([len(cut.variables) for cut in cuts])
    model.addRows(
        len(cuts),
        np.ones(len(cuts)),
        np.full(len(cuts), highspy.kHighsInf),
        int(lengths.sum()),
        (np.cumsum(lengths) - lengths).astype(np.int32),
        np.concatenate([cut.variables for cut in cuts]).astype(np.int32),
        np.concatenate([cut.coefficients for cut in cuts]),
    )


def run_interruptible(model: Any) -> None:
    """Solve an integer program that Ctrl-C can stop: the solver itself would go on until its time is over."""
    with interrupts() as caught:
        model.cbMipInterrupt += lambda event: event.interrupt() if caught else None
        model.run()
        stopped = bool(caught)
    if stopped:
        raise KeyboardInterrupt
