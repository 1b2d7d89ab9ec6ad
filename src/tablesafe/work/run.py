"""How to do what is asked: how long, where, who hears of it, whom it must withstand, and what was done already.

What to do is said by options, which are frozen and belong to a job. How to run it is said by a `Run`, which is passed
along with the problem: `protect(problem, method, run)`, `audit(problem, release, run=run)`. So a need of running is one
field here, and no field of any method.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from tablesafe.core.options import require_choice, require_whole
from tablesafe.work.budget import Budget

if TYPE_CHECKING:
    from tablesafe.work.memo import Store

Possibly = Literal["open", "accept"]
"""What becomes of cells that are open only if contributors that the table does not list are as large as they can be."""
Searching = Callable[[float, float], None]
"""Hears of every better answer: its cost, and what none can be below."""
Examining = Callable[[float], None]
"""Hears how far an audit is, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attackers:
    """Whom a release must withstand besides whoever sees it."""

    insiders: bool = field(default=True, metadata={"help": "respondents, who know their own contributions"})
    coalition: int = field(default=1, metadata={"help": "how many respondents may put together what they know"})
    unions: bool = field(default=True, metadata={"help": "those who derive sums of withheld cells"})
    integers: bool | None = field(
        default=None, metadata={"help": "whether they know that values are whole numbers; as the table says"}
    )
    possibly: Possibly = field(
        default="open", metadata={"help": "what turns on unlisted contributors: open, until accepted"}
    )

    def __post_init__(self) -> None:
        require_choice(self, "possibly", get_args(Possibly))
        require_whole(self, "coalition", at_least=1)
        if not self.insiders:
            object.__setattr__(self, "coalition", 1)  # coalitions are of respondents


OUTSIDERS = Attackers(insiders=False, unions=False)
"""Nobody but who sees the release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a method or an audit is run, which is no option of it: by default at once, here, and against everybody."""

    budget: Budget | None = field(
        default=None, metadata={"help": "time that is left, with limits of options inside it"}
    )
    refining: Budget | None = field(
        default=None,
        metadata={"help": "time for what makes an audit's answer finer, not surer: exact intervals; by default half"},
    )
    executor: Executor | None = field(
        default=None, metadata={"help": "who works; by default a pool where it is worth it"}
    )
    progress: Searching | None = field(
        default=None, metadata={"help": "called with the cost of each better answer and a bound"}
    )
    examined: Examining | None = field(
        default=None, metadata={"help": "called with the share of the audit that is done"}
    )
    attackers: Attackers = field(default=Attackers(), metadata={"help": "whom the release must withstand"})
    memo: Store | None = field(
        default=None, metadata={"help": "where answers are kept for a run that goes on from this one"}
    )
    audits: dict[Hashable, Any] | None = field(
        default=None,
        compare=False,
        repr=False,
        metadata={"help": "an empty dict: the audit then goes on from what was proved while the pattern was made"},
    )

    def seconds(self, limit: float) -> float:
        """How long something with a limit of its own may take: no longer than the work that is left of the run."""
        return limit if self.budget is None else min(limit, self.budget.work_left)

    def within(self, seconds: float | None) -> Budget:
        """The budget of something that has a limit of its own, within that of the run."""
        return Budget(seconds) if self.budget is None else self.budget.child(seconds)

    @property
    def workers(self) -> Executor | None:
        """Who works, with the memory of what was worked out already."""
        if self.memo is None:
            return self.executor
        from tablesafe.work.memo import Remembering

        return Remembering(self.executor, self.memo)
