"""The page of errors: each class, when it is raised, what to do, and a message as users see it."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reference.pages import NOTE
from tablesafe.cli.exits import exit_of
from tablesafe.core import errors
from tablesafe.core.errors import MissingExtra, TablesafeError
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.job import load_job
from tablesafe.rules import PPercent
from tablesafe.verify import verify

ADVICE: dict[str, tuple[str, str]] = {
    "TablesafeError": (
        "The root of the tree: nothing is raised as this class itself.",
        "Catch it to catch everything that tablesafe raises on purpose; anything else is a fault of the program.",
    ),
    "InvalidInput": (
        "Something that was given is wrong: the root of what a user can put right.",
        "Read the message: it names the file, the line, the code or the cell, and ends in a hint.",
    ),
    "InvalidFile": (
        "A file is missing, cannot be read or written, or does not hold what its name promises.",
        "Look at the line that the message names; for text files, check the encoding, the delimiter and the header.",
    ),
    "InvalidHierarchy": (
        "Codes and parents form no hierarchy: a cycle, a code with two parents, a code that nothing leads to.",
        "Correct the file of the hierarchy; structures that are no tree are given as equations.",
    ),
    "InvalidTable": (
        "Cells form no table: a code that no hierarchy knows, a cell that is there twice, a total that is not the sum "
        "of its parts.",
        "Correct the cell that is named; let totals be computed (`missing_totals`), or allow small differences "
        "(`tolerance`).",
    ),
    "InvalidProblem": (
        "Levels, bounds, costs or statuses contradict the table or each other.",
        "Unfreeze or waive the cell that is named, or correct the bounds: they must contain the true value.",
    ),
    "InvalidRelease": (
        "A pattern or published values do not belong to the problem.",
        "Check that the file was made for this table: the same cells, in the same codes.",
    ),
    "InvalidOption": (
        "An option of a rule, a method, a command or a function is outside its range, or does not fit the table.",
        "Take a value that the message allows; the reference lists every option with its meaning.",
    ),
    "InvalidJob": (
        "A job file or a batch file is wrong. All its errors are listed at once, each with its line.",
        "Correct them from the top down; `tablesafe init` writes a file to compare with.",
    ),
    "InvalidCertificate": (
        "A certificate is damaged, edited, made for another release, or claims more than its witnesses show.",
        "Do not publish on the strength of it. Audit the release again and keep the new certificate.",
    ),
    "MissingExtra": (
        "Something was asked for that needs a package which is not installed.",
        "Install the extra that the message names.",
    ),
    "SolverFailure": (
        "No answer was found that passes the program's own checks: nothing protects the table under what is allowed, "
        "or the solver failed.",
        "The message names the cells that cannot be protected and what is in the way: unfreeze, waive or widen it.",
    ),
    "OutOfTime": (
        "The time given was too short for a first answer.",
        "Give more time (`time_limit_s`), or take a quicker algorithm.",
    ),
    "UnsafeRelease": (
        "A release failed its audit, so nothing was written.",
        "Read the findings: repair the pattern (`tablesafe suppress --keep`), or insist (`force`) and answer for it.",
    ),
    "Interrupted": (
        "The user stopped the run.",
        "What was finished and safe by then is kept; run it again to go on.",
    ),
}
"""When each is raised, and what to do. A class without an entry fails the build of the page."""


def errors_reference() -> str:
    """Every class of errors, in Markdown."""
    tree = inspect.cleandoc(errors.__doc__ or "").split("\n\n", 1)[1]
    lines = [
        NOTE, "", "# Errors", "",
        "Whatever tablesafe raises on purpose is one of these classes. A message says what is wrong in the user's own",
        "codes, and ends in a hint where there is something to do. The command line prints message and hint and leaves",
        "with an exit code; the web app shows the same message beside the field that caused it.", "",
        "```text", tree, "```",
    ]  # fmt: skip
    for cls in _classes():
        lines += _entry(cls)
    return "\n".join(lines) + "\n"


def _classes() -> list[type[Exception]]:
    """All classes of the tree, in the order of the code."""
    return [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, TablesafeError)]


def _entry(cls: type[Exception]) -> Iterator[str]:
    when, what = ADVICE[cls.__name__]
    bases = " and ".join(f"`{base.__name__}`" for base in cls.__bases__)
    yield from ("", f"## {cls.__name__}", "", inspect.cleandoc(cls.__doc__ or ""), "")
    yield from (f"- **When**: {when}", f"- **What to do**: {what}")
    yield f"- **A kind of**: {bases}. **Exit code**: {int(exit_of(cls.__new__(cls)))}."
    if example := EXAMPLES.get(cls.__name__):
        yield from ("", "For example:", "", "```text", _message(example), "```")


# -- messages, by making the mistake


def _message(make: Callable[[Path], Any]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            make(Path(folder))
        except TablesafeError as error:
            return str(error).replace(f"{folder}/", "")
    raise AssertionError("the example of an error raises none")


def _text(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _regions(north: int) -> Table:
    cells = pl.DataFrame({"region": ["Total", "north", "south"], "value": [100, north, 60]})
    return Table.from_cells(cells, dimensions=["region"])


def _frozen() -> Problem:
    mask = np.array([False, True, False])
    return Problem(_regions(40), sensitivity=Sensitivity.of(mask, 5.0), frozen=mask)


JOB = '[source]\nfile = "firms.csv"\n\n[[rules]]\nrule = "p_percent"\np = 0\nq = 3\n\n[method]\nname = "supress"\n'
EXAMPLES: dict[str, Callable[[Path], Any]] = {
    "InvalidFile": lambda folder: read_jj(
        _text(folder, "table.jj", "0\n2\n0 10 1 s 0 20 0 0 0\n1 abc 1 s 0 20 0 0 0\n")
    ),
    "InvalidHierarchy": lambda folder: Hierarchy.from_pairs([("A", "B"), ("B", "C"), ("C", "A")]),
    "InvalidTable": lambda folder: _regions(45),
    "InvalidProblem": lambda folder: _frozen(),
    "InvalidRelease": lambda folder: Release.from_suppression(Problem(_regions(40)), np.zeros(5, np.bool_)),
    "InvalidOption": lambda folder: PPercent(p=0),
    "InvalidJob": lambda folder: load_job(_text(folder, "job.toml", JOB)),
    "InvalidCertificate": lambda folder: verify(_text(folder, "certificate.json", "{}")),
    "MissingExtra": lambda folder: _missing(),
}
"""A mistake for each class that a user can make one for."""


def _missing() -> None:
    raise MissingExtra("Plotting", "plots")
