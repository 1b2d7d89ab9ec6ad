"""Methods turn a problem into a release. Each is a frozen dataclass with a `protect`; `METHODS` names them all.

A method is loaded, with its algorithms, when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from tablesafe.core.errors import InvalidOption
from tablesafe.core.registry import Registry, loader
from tablesafe.files.read import did_you_mean

if TYPE_CHECKING:
    from tablesafe.core.problem import Problem
    from tablesafe.core.release import Release
    from tablesafe.methods.adjust import Adjust
    from tablesafe.methods.cell_key import CellKey
    from tablesafe.methods.given import Pattern, PublishAll, Withhold
    from tablesafe.methods.intervals import PublishIntervals
    from tablesafe.methods.records.impute import BlankAndImpute
    from tablesafe.methods.records.noise import Noise
    from tablesafe.methods.records.swap import Swap
    from tablesafe.methods.round import Round
    from tablesafe.methods.small_counts import SmallCounts
    from tablesafe.methods.suppress import Suppress
    from tablesafe.methods.views import SuppressViews
    from tablesafe.work.run import Run


__all__ = [
    "METHODS",
    "Adjust",
    "BlankAndImpute",
    "CellKey",
    "Method",
    "Noise",
    "Pattern",
    "PublishAll",
    "PublishIntervals",
    "Round",
    "SmallCounts",
    "Suppress",
    "SuppressViews",
    "Swap",
    "Withhold",
    "protect",
]


class Method(Protocol):
    """A way to protect: its options are its fields, each with its help."""

    name: ClassVar[str]

    def protect(self, problem: Problem, run: Run | None = None) -> Release: ...


METHODS: Registry[type[Method]] = Registry(
    {
        "none": "tablesafe.methods.given:PublishAll",
        "withhold": "tablesafe.methods.given:Withhold",
        "pattern": "tablesafe.methods.given:Pattern",
        "suppress": "tablesafe.methods.suppress.suppress:Suppress",
        "adjust": "tablesafe.methods.adjust.adjust:Adjust",
        "round": "tablesafe.methods.round.round:Round",
        "small_counts": "tablesafe.methods.small_counts.small_counts:SmallCounts",
        "intervals": "tablesafe.methods.intervals.publish_intervals:PublishIntervals",
        "views": "tablesafe.methods.views.suppress_views:SuppressViews",
        "cell_key": "tablesafe.methods.cell_key.cell_key:CellKey",
        "noise": "tablesafe.methods.records.noise.noise:Noise",
        "swap": "tablesafe.methods.records.swap.swap:Swap",
        "impute": "tablesafe.methods.records.impute.blank_and_impute:BlankAndImpute",
    }
)
"""Every method by the name that a job file calls it."""
__getattr__ = loader(__name__, METHODS.kinds)


def protect(problem: Problem, method: Method | str, run: Run | None = None) -> Release:
    """Protect a problem by a method; the release still has to pass its audit.

    `run` says how to do it: how long, where, who hears of it, and whom the release must withstand.

    The name of a method, such as `"suppress"`, stands for the method with its defaults.
    """
    from tablesafe.core.problem import Problem

    if isinstance(method, Problem):
        raise InvalidOption("protect takes the problem first.", hint="protect(problem, method)")
    if not isinstance(problem, Problem):
        raise InvalidOption(
            f"protect takes a problem, got a {type(problem).__name__}.", hint="ts.Problem(table, rules=[…])"
        )
    if isinstance(method, str):
        method = _named(method)
    if isinstance(method, type):
        raise InvalidOption(f"{method.__name__} is a kind of method.", hint=f"ts.{method.__name__}() with its options.")
    if not callable(getattr(method, "protect", None)):
        raise InvalidOption(
            f"protect takes a method, got a {type(method).__name__}.", hint="ts.protect(problem, ts.Suppress())"
        )
    return method.protect(problem) if run is None else method.protect(problem, run)


def _named(name: str) -> Method:
    """The method of a name, with its defaults."""
    if name not in METHODS:
        near = did_you_mean(name, list(METHODS)) or f"there are {', '.join(METHODS)}."
        raise InvalidOption(f"There is no method {name!r}.", hint=near)
    try:
        return METHODS[name]()
    except TypeError as error:
        raise InvalidOption(
            f"Method {name!r} cannot do without options: {error}.", hint=f"ts.{METHODS[name].__name__}(…)"
        ) from error
