"""What an office would rather withhold: by degree, because it was withheld last time, or by a secret toss."""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidOption, InvalidProblem, and_more
from tablesafe.core.problem import Problem
from tablesafe.methods.suppress.costs import per_cell

MOST_DEGREES = 30
"""Degrees beyond which a cell is as good as free, or out of the question: costs must stay comparable."""


def mask_of(problem: Problem, given: str | Mask | None, option: str) -> Mask:
    """Which cells an option means; a file must have been read by then."""
    n = len(problem.table)
    if given is None:
        return np.zeros(n, dtype=np.bool_)
    if isinstance(given, str):
        raise InvalidOption(
            f"Suppress.{option} names the file {given!r}, which was not read yet.",
            hint=f"from Python, read it first: Suppress({option}=ts.read_pattern({given!r}, problem)).",
        )
    mask = np.asarray(given)
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise InvalidProblem(
            f"Suppress.{option} must be {n:,} booleans, one per cell; got {mask.dtype} of shape {mask.shape}."
        )
    return mask


def keeping(problem: Problem, keep: Mask) -> Problem:
    """The problem in which somebody's choices are withheld already."""
    clash = np.flatnonzero(keep & problem.frozen)
    if clash.size:
        raise InvalidProblem(
            f"Cell {problem.table.describe(int(clash[0]))} is to be kept withheld, but frozen{and_more(clash.size)}.",
            hint="unfreeze it, or leave it out of the pattern.",
        )
    return problem.replace(suppressed=problem.suppressed | keep) if keep.any() else problem


def preferred(problem: Problem, cost: Floats, degree: str | Floats | None) -> Floats:
    """Costs with preferences by degree: each degree halves what a cell costs, each negative one doubles it."""
    if degree is None:
        return cost
    degrees = per_cell(problem, degree, "prefer")
    far = np.flatnonzero(np.abs(degrees) > MOST_DEGREES)
    if far.size:
        raise InvalidProblem(
            f"The preference for cell {problem.table.describe(int(far[0]))} is {degrees[far[0]]:g}, but degrees go "
            f"from -{MOST_DEGREES} to {MOST_DEGREES}.",
            hint="freeze a cell that must be published; withhold one that must not (suppressed, or keep=).",
        )
    return np.asarray(cost * 2.0**-degrees)


def disturbed(cost: Floats, share: float, random: np.random.Generator) -> Floats:
    """Costs raised at random by up to a share: who knows the algorithm, but not the seed, cannot retrace the choice."""
    return cost * (1.0 + share * random.random(len(cost))) if share > 0 else cost
