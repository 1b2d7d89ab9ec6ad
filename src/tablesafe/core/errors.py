"""What can go wrong, as one tree of exceptions.

TablesafeError
├── InvalidInput               something the user gave is wrong; the message says what, where, and what to do
│   ├── InvalidFile            a file that cannot be read as what it claims to be
│   ├── InvalidHierarchy       codes that form no hierarchy: cycles, orphans, duplicates
│   ├── InvalidTable           cells that form no table: unknown codes, duplicates, sums that do not add up
│   ├── InvalidProblem         levels, bounds, costs or statuses that contradict the table or each other
│   ├── InvalidRelease         a pattern or values that do not belong to the problem
│   ├── InvalidOption          an option outside its range
│   ├── InvalidJob             a job file; lists all its errors at once
│   └── InvalidCertificate     a certificate that does not prove what it claims
├── MissingExtra               an optional dependency is not installed
├── SolverFailure              the solver stopped without an answer that passes our own check
│   └── OutOfTime              it was given too little time to find one
├── UnsafeRelease              a release failed its audit and was therefore not written
└── Interrupted                the user stopped the run

Terminated stands outside the tree, as KeyboardInterrupt does: the process is to end, and nothing may hold that up.
"""

from __future__ import annotations

LONGEST_LINE, MOST_LINES = 1_000, 60
"""What is shown of a message that quotes a file without line breaks, or that lists hundreds of mistakes."""


class TablesafeError(Exception):
    """Root of all errors that tablesafe raises on purpose. A message is for people: one beyond all measure is cut."""

    def __init__(self, message: str = "", *rest: object) -> None:
        super().__init__(_readable(str(message)), *rest)


def _readable(message: str) -> str:
    """The message with the middle left out of long lines, and of many lines."""
    if len(message) <= LONGEST_LINE:
        return message
    half = LONGEST_LINE // 2
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}" for line in message.split("\n")]
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        lines = [*lines[: MOST_LINES - 4], f"  … and {left:,} lines more", *lines[-4:]]
    return "\n".join(lines)


class InvalidInput(TablesafeError, ValueError):
    """Something the user gave is wrong."""


class InvalidFile(InvalidInput):
    """A file cannot be read as what it claims to be."""


class InvalidHierarchy(InvalidInput):
    """Codes and parents do not form a hierarchy."""


class InvalidTable(InvalidInput):
    """Cells do not form a table."""


class InvalidProblem(InvalidInput):
    """Levels, bounds, costs or statuses contradict the table or each other."""


class InvalidRelease(InvalidInput):
    """A pattern or published values do not belong to the problem."""


class InvalidOption(InvalidInput):
    """An option lies outside its range."""


class InvalidJob(InvalidInput):
    """A job file is wrong; the message lists every error with its line."""


class InvalidCertificate(InvalidInput):
    """A certificate does not prove what it claims."""


class MissingExtra(TablesafeError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency.\n\nHint: pip install 'tablesafe[{extra}]'")


class SolverFailure(TablesafeError, RuntimeError):
    """The solver stopped without an answer that passes our own check."""


class OutOfTime(SolverFailure):
    """The time given was too short for an answer."""


class UnsafeRelease(TablesafeError):
    """A release failed its audit and was therefore not written."""


class Interrupted(TablesafeError):
    """The user stopped the run; what was finished and safe is kept."""


class Terminated(BaseException):
    """The process was asked to end: nothing more is written, and all that is temporary is removed on the way out."""
