"""A bound on large step programs without solving them: prices of the rows, raised step by step.

Any prices give a bound (Lagrange). The best ones maximise a concave function with kinks; smoothed by entropy, it rises
by Nesterov's accelerated gradient (Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103, 2005).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.solve.rounding import StepProgram
from tablesafe.work.budget import Budget

STAGES = 7
STEPS = 120
"""Gradient steps of each stage; the smoothing of the next stage is finer."""
FINER = 2.5


def raised_prices(program: StepProgram, budget: Budget) -> Floats:
    """Prices of the rows whose bound comes within about a thousandth of the linear program's."""
    matrix = sparse.csr_array(program.matrix).astype(np.float64)
    across, size = sparse.csr_array(matrix.T), abs(matrix)
    width = np.maximum(np.asarray(size @ np.asarray(size.sum(axis=0))), 1.0)
    smooth = max(float(np.abs(program.cost).max(initial=0.0)), 1e-9)
    best, prices = np.zeros(len(program.rhs)), np.zeros(len(program.rhs))
    for _ in range(STAGES):
        prices = _risen(program, matrix, across, width, smooth, prices, budget)
        if program.bound(prices) > program.bound(best):
            best = prices
        if budget.over:
            break
        smooth /= FINER
    return best


def _risen(
    program: StepProgram, matrix: sparse.csr_array, across: sparse.csr_array, width: Floats, smooth: float,
    prices: Floats, budget: Budget,
) -> Floats:  # fmt: skip
    """Accelerated steps at one smoothing; begins anew whenever it overshoots."""
    ahead, before, momentum = prices, prices, 1.0
    for _ in range(STEPS):
        if budget.over:
            break
        point = 1.0 / (1.0 + np.exp(np.clip((program.cost - across @ ahead) / smooth, -50.0, 50.0)))
        missing = program.rhs - matrix @ point
        new = ahead + 4.0 * smooth * missing / width
        after = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if (new - before) @ missing < 0:
            momentum = after = 1.0
        ahead, before, momentum = new + (momentum - 1.0) / after * (new - before), new, after
    return before
