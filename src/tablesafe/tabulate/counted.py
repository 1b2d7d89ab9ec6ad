"""Rows that stand for several respondents each: what they cannot tell, and how to notice them.

A file of counts (one row per combination of codes, and how many there are) looks like microdata. Tabulated as such, its
rows are taken for people: a cell of two respondents in two rows passes for one of two rows among thousands, and a
threshold is judged on the wrong numbers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from tablesafe.tabulate.plan import Plan

_FREQUENCY = re.compile(
    r"(^|[_ .])(n|nb|nr|no|num|freq|frequency|frequencies|fweight|count|counts|number|contributors|respondents|persons|"
    r"people|population|pop|cases|n_obs|nobs|obs|observations|anzahl|fallzahl|haeufigkeit|häufigkeit|effectif|"
    r"effectifs|nombre|frecuencia|aantal|antall|antal|lukumäärä|numero|número|liczba|počet)($|[_ .])|^count|^freq",
    re.I,
)
"""What a column that says how many there are is called."""


FEWEST_COUNTED = 4
"""Rows from which on one row per combination is no coincidence: the fewest that a table of two dimensions has."""


def looks_like_frequency(name: str) -> bool:
    """Whether a column is called as those are that say how many a row stands for."""
    return bool(_FREQUENCY.search(name))


def could_be_counted(plan: Plan, columns: Iterable[str]) -> list[str]:
    """The columns that may say how many respondents a row stands for, where nobody said so."""
    if plan.frequency is not None or plan.merged:
        return []
    others = {*plan.column_of.values(), plan.weight, plan.request}
    return [column for column in columns if column not in others and looks_like_frequency(column)]


def warn_of_counts(column: str, rows: int, source: str) -> None:
    """Say that rows look like counts, and how to tabulate them as such."""
    warnings.warn(
        f"{source} has one row for each combination of codes and whole numbers in {column!r}: if these say how many "
        f"respondents each of the {rows:,} rows stands for, the rows were counted instead of the respondents.\n\n"
        f"Hint: frequency={column!r}; if the rows are respondents, name who they are with respondent=…",
        stacklevel=4,
    )
