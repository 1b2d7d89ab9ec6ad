"""What the statuses of other programs mean here, and how ours are spelled for them.

| here                  | τ-ARGUS                                | letter   | SBS     | words                          |
|-----------------------|----------------------------------------|----------|---------|--------------------------------|
| published             | 1 safe, 2 safe by hand, 13 empty so far | s       | V       | published, safe, open, changed |
| sensitive             | 3 by a rule on shares                  | u        | B, C, F | sensitive, unsafe, primary     |
|                       | 5 too few contributors                 |          | A       |                                |
|                       | 4 on request, 6 zero,                  |          | B       |                                |
|                       | 7 and 8 singletons, 9 by hand          |          | B       |                                |
| frozen                | 10 protected                           | p, z     | V       | frozen, protected              |
| complementary         | 11 secondary, 12 secondary by hand     | m, ml, x | D       | complementary, secondary       |
| given, by design      | 11                                     | m        | D       | given, suppressed, withheld,   |
|                       |                                        |          |         | confidential, by design        |
| structural zero       | 14 empty                               | e        | V       | empty                          |

The letters are those of τ-ARGUS tables (S, U, P, M, E), a-priori files (also ML), JJ files (z) and sdcTable (x).
The SBS flags are Eurostat's: A too few contributors, B one contributor dominates, C two dominate, D secondary, F the p%
rule, V value may be published. As in τ-ARGUS, the rule of the status decides: too few contributors alone is A, and a
cell that is sensitive by hand, on request or because it is zero is B.

Plain flags (true and false, yes and no, 1 and 0) say only whether a cell is suppressed. A column of nothing but ones
could be either flags or τ-ARGUS statuses; then the reader has to be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.equations import Mask
from tablesafe.errors import InvalidFile
from tablesafe.files import Source, did_you_mean
from tablesafe.problem import Problem
from tablesafe.release import Release, Status
from tablesafe.rules.linear import Dominance

Scheme = Literal["argus", "flags", "letters", "sbs", "words"]


class Meaning(IntEnum):
    """What a status of another program asks for or reports."""

    PUBLISHED = 0
    SENSITIVE = 1
    SUPPRESSED = 2
    FROZEN = 3
    EMPTY = 4

    @property
    def status(self) -> Status:
        """What a release calls it."""
        return _STATUS_OF[self]


class Argus(IntEnum):
    """The statuses of τ-ARGUS."""

    SAFE = 1
    SAFE_BY_HAND = 2
    UNSAFE = 3
    UNSAFE_REQUEST = 4
    UNSAFE_FREQUENCY = 5
    UNSAFE_ZERO = 6
    UNSAFE_SINGLETON = 7
    UNSAFE_SINGLETON_BY_HAND = 8
    UNSAFE_BY_HAND = 9
    PROTECTED = 10
    SECONDARY = 11
    SECONDARY_BY_HAND = 12
    EMPTY_NOT_STRUCTURAL = 13
    EMPTY = 14


_STATUS_OF = {
    Meaning.PUBLISHED: Status.PUBLISHED,
    Meaning.SENSITIVE: Status.SENSITIVE,
    Meaning.SUPPRESSED: Status.COMPLEMENTARY,
    Meaning.FROZEN: Status.PUBLISHED,
    Meaning.EMPTY: Status.PUBLISHED,
}

ARGUS: dict[str, Meaning] = {
    **{str(int(code)): Meaning.SENSITIVE for code in Argus if Argus.UNSAFE <= code <= Argus.UNSAFE_BY_HAND},
    "1": Meaning.PUBLISHED,
    "2": Meaning.PUBLISHED,
    "10": Meaning.FROZEN,
    "11": Meaning.SUPPRESSED,
    "12": Meaning.SUPPRESSED,
    "13": Meaning.PUBLISHED,
    "14": Meaning.EMPTY,
}
LETTERS: dict[str, Meaning] = {
    "s": Meaning.PUBLISHED,
    "u": Meaning.SENSITIVE,
    "p": Meaning.FROZEN,
    "z": Meaning.FROZEN,
    "m": Meaning.SUPPRESSED,
    "ml": Meaning.SUPPRESSED,
    "x": Meaning.SUPPRESSED,
    "e": Meaning.EMPTY,
}
SBS: dict[str, Meaning] = {
    "a": Meaning.SENSITIVE,
    "b": Meaning.SENSITIVE,
    "c": Meaning.SENSITIVE,
    "d": Meaning.SUPPRESSED,
    "f": Meaning.SENSITIVE,
    "v": Meaning.PUBLISHED,
}
WORDS: dict[str, Meaning] = {
    "published": Meaning.PUBLISHED,
    "safe": Meaning.PUBLISHED,
    "open": Meaning.PUBLISHED,
    "changed": Meaning.PUBLISHED,
    "sensitive": Meaning.SENSITIVE,
    "unsafe": Meaning.SENSITIVE,
    "primary": Meaning.SENSITIVE,
    "frozen": Meaning.FROZEN,
    "protected": Meaning.FROZEN,
    "complementary": Meaning.SUPPRESSED,
    "secondary": Meaning.SUPPRESSED,
    "given": Meaning.SUPPRESSED,
    "suppressed": Meaning.SUPPRESSED,
    "confidential": Meaning.SUPPRESSED,
    "withheld": Meaning.SUPPRESSED,
    "by design": Meaning.SUPPRESSED,
    "empty": Meaning.EMPTY,
}
FLAGS: dict[str, Meaning] = {
    **dict.fromkeys(("1", "true", "yes", "y"), Meaning.SUPPRESSED),
    **dict.fromkeys(("0", "false", "no", "n"), Meaning.PUBLISHED),
}
SCHEMES: dict[Scheme, Mapping[str, Meaning]] = {
    "argus": ARGUS,
    "flags": FLAGS,
    "letters": LETTERS,
    "sbs": SBS,
    "words": WORDS,
}


def read_statuses(
    source: Source, column: str, *, scheme: Scheme | None = None, empty: Meaning = Meaning.PUBLISHED
) -> NDArray[np.uint8]:
    """The `Meaning` of each entry of a column; an entry that means nothing is an error that names its line.

    Without a scheme the entries tell which one it is. `empty` is what an empty entry means.
    """
    text = source.text(column).str.to_lowercase().str.replace(r"^(\d+)\.0+$", "$1").fill_null("")
    found = text.unique(maintain_order=True).to_list()
    words = [word for word in found if word]
    known = SCHEMES[scheme] if scheme is not None else _recognised(words, source, column)
    meaning = {"": int(empty), **{word: int(known[word]) for word in words if word in known}}
    unknown = [word for word in words if word not in known]
    if unknown:
        row = int((text == unknown[0]).arg_max() or 0)
        hint = did_you_mean(unknown[0], list(known)) or f"statuses are {', '.join(sorted(known))}."
        raise InvalidFile(f"{source.where(row)} has the status {source.frame[column][row]!r}.\n\nHint: {hint}")
    return text.replace_strict(list(meaning), list(meaning.values()), return_dtype=pl.UInt8).to_numpy()


def _recognised(words: list[str], source: Source, column: str) -> Mapping[str, Meaning]:
    """The vocabulary that the words are from: numbers are flags or τ-ARGUS, and everything else is unambiguous."""
    if words == ["1"]:
        raise InvalidFile(
            f"Column {column!r} of {source.name} holds only the number 1: suppressed everywhere, or 'safe' of τ-ARGUS?"
            f"\n\nHint: say which: scheme='flags' or scheme='argus'."
        )
    if any(word.isdigit() for word in words):
        return FLAGS if set(words) <= set(FLAGS) else ARGUS
    if words and set(words) <= set(FLAGS):
        return FLAGS
    return {**LETTERS, **SBS, **WORDS}


def argus_statuses(problem: Problem, release: Release | None = None) -> NDArray[np.uint8]:
    """The τ-ARGUS status of each cell, before protection or of a release. Only for use inside the office."""
    status = np.full(len(problem.table), Argus.SAFE, dtype=np.uint8)
    status[problem.frozen] = Argus.PROTECTED
    if problem.table.structural_zero is not None:
        status[problem.table.structural_zero] = Argus.EMPTY
    hidden = problem.suppressed | problem.withheld
    status[hidden if release is None else release.suppressed] = Argus.SECONDARY
    sensitive = problem.sensitivity.mask if release is None else problem.sensitivity.mask & release.suppressed
    return np.where(sensitive, _by_reason(problem, _ARGUS_REASONS, Argus.UNSAFE), status).astype(np.uint8)


def sbs_flags(problem: Problem, release: Release | None = None) -> NDArray[np.str_]:
    """The SBS flag of each cell, before protection or of a release. Only for use inside the office."""
    status = argus_statuses(problem, release)
    flag = np.full(len(problem.table), "V")
    flag[(status >= Argus.UNSAFE) & (status <= Argus.UNSAFE_BY_HAND)] = "B"
    flag[status == Argus.UNSAFE_FREQUENCY] = "A"
    flag[(status == Argus.SECONDARY) | (status == Argus.SECONDARY_BY_HAND)] = "D"
    by_rule = status == Argus.UNSAFE
    flag[by_rule & _flagged_by(problem, "dominance") & _dominated_by_two(problem)] = "C"
    flag[by_rule & _flagged_by(problem, "p%", "pq", "linear")] = "F"
    return flag


def _flagged_by(problem: Problem, *reasons: str) -> Mask:
    bits = np.uint32(sum(1 << j for j, name in enumerate(problem.sensitivity.reasons) if name in reasons))
    flagged: Mask = np.not_equal(problem.sensitivity.reason & bits, 0)
    return flagged


_ARGUS_REASONS = (
    ("given", Argus.UNSAFE_BY_HAND),
    ("manual", Argus.UNSAFE_BY_HAND),
    ("zero", Argus.UNSAFE_ZERO),
    ("threshold", Argus.UNSAFE_FREQUENCY),
    ("request", Argus.UNSAFE_REQUEST),
)
"""What the reasons of our rules are in τ-ARGUS; any other reason is its 3, a rule on shares."""


def _by_reason(problem: Problem, table: tuple[tuple[str, int], ...], other: int) -> NDArray[np.int64]:
    """A number per cell from the rules that flagged it: those later in the table win, and `other` over all of them."""
    sensitivity = problem.sensitivity
    found = np.full(len(problem.table), other, dtype=np.int64)
    known = dict(table)
    numbers = [known.get(name, other) for name in sensitivity.reasons]
    order = [*known.values(), other]
    for j in sorted(range(len(numbers)), key=lambda j: order.index(numbers[j])):
        found[(sensitivity.reason >> np.uint32(j)) & np.uint32(1) == 1] = numbers[j]
    return found


def _dominated_by_two(problem: Problem) -> Mask:
    """Cells that only a dominance rule on two or more contributors flagged."""
    one = np.zeros(len(problem.table), dtype=np.bool_)
    more = False
    for rule in problem.rules:
        if isinstance(rule, Dominance) and rule.n == 1:
            one |= rule(problem.table).mask
        more |= isinstance(rule, Dominance) and rule.n > 1
    return ~one & more
