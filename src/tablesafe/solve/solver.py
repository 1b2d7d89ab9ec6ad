"""HiGHS as every program here uses it: silent, on one thread, from the same seed."""

from __future__ import annotations

from typing import Any

import highspy

from tablesafe.core.errors import SolverFailure


def new_solver(**options: Any) -> Any:
    """A solver with some options."""
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    set_options(solver, output_flag=False, threads=1, random_seed=0, **options)
    return solver


def set_options(solver: Any, /, **options: Any) -> None:
    """Set options of a solver; one that it does not know would silently be left out."""
    for option, value in options.items():
        if solver.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise SolverFailure(f"HiGHS does not accept {option}={value!r}.")
