"""Statuses of other programs: each is understood, each of ours has one, and there and back is the same meaning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tablesafe.errors import InvalidFile
from tablesafe.files import Source
from tablesafe.io.status import (
    ARGUS,
    FLAGS,
    LETTERS,
    SBS,
    WORDS,
    Argus,
    Meaning,
    Scheme,
    argus_statuses,
    read_statuses,
    sbs_flags,
)
from tablesafe.problem import Problem
from tablesafe.release import Release, Status
from tablesafe.rules.counts import Threshold
from tablesafe.rules.linear import Dominance, PPercent
from tablesafe.rules.sensitivity import Sensitivity
from tablesafe.table import Table


def column(*entries: object) -> Source:
    return Source(pl.DataFrame({"status": entries}), "given.csv", first_line=2)


@pytest.mark.parametrize("scheme", ["argus", "letters", "sbs", "words", "flags"])
def test_every_word_of_every_scheme_is_read(scheme: Scheme) -> None:
    known = {"argus": ARGUS, "letters": LETTERS, "sbs": SBS, "words": WORDS, "flags": FLAGS}[scheme]
    spelled = [word.upper() for word in known]
    assert read_statuses(column(*spelled), "status", scheme=scheme).tolist() == [int(m) for m in known.values()]


@pytest.mark.parametrize("known", [ARGUS, LETTERS, SBS, WORDS, FLAGS])
def test_the_scheme_tells_itself(known: dict[str, Meaning]) -> None:
    assert read_statuses(column(*known), "status").tolist() == [int(meaning) for meaning in known.values()]


def test_tau_argus_has_fourteen_statuses_and_all_have_a_meaning() -> None:
    assert set(ARGUS) == {str(i) for i in range(1, 15)}
    assert {int(status) for status in Argus} == set(range(1, 15))
    hidden = {code for code, meaning in ARGUS.items() if meaning.status is not Status.PUBLISHED}
    assert hidden == {"3", "4", "5", "6", "7", "8", "9", "11", "12"}


def test_every_status_of_a_release_has_a_word() -> None:
    for status in Status:
        meaning = WORDS[status.word]
        shown = status in {Status.PUBLISHED, Status.CHANGED}
        assert (meaning.status is Status.PUBLISHED) == shown


def test_numbers_booleans_and_empty_entries() -> None:
    assert read_statuses(column(1, 3, 14), "status").tolist() == [0, 1, 4]
    assert read_statuses(column(1.0, 11.0, 2.0), "status").tolist() == [0, 2, 0]
    assert read_statuses(column(0, 1, 1), "status").tolist() == [0, 2, 2]
    assert read_statuses(column(True, False), "status").tolist() == [2, 0]
    assert read_statuses(column("u", None, " S "), "status", empty=Meaning.EMPTY).tolist() == [1, 4, 0]
    assert read_statuses(column("yes", "", "no"), "status").tolist() == [2, 0, 0]


def test_ones_alone_are_ambiguous() -> None:
    with pytest.raises(InvalidFile, match=r"(?s)only the number 1.*scheme='flags'"):
        read_statuses(column(1, 1), "status")
    assert read_statuses(column(1, 1), "status", scheme="flags").tolist() == [2, 2]
    assert read_statuses(column(1, 1), "status", scheme="argus").tolist() == [0, 0]


def test_an_unknown_status_is_named_with_its_line() -> None:
    with pytest.raises(InvalidFile, match=r"(?s)given.csv, line 3 has the status 'sensitve'.*did you mean 'sensitive'"):
        read_statuses(column("safe", "sensitve"), "status")
    with pytest.raises(InvalidFile, match="line 4 has the status 15"):
        read_statuses(column(1, 3, 15), "status")


def table() -> Table:
    names = ["Total", "A", "B", "C", "D", "E", "F"]
    frame = {
        "r": names,
        "value": [1600.0, 100.0, 200.0, 300.0, 400.0, 600.0, 0.0],
        "count": [29, 2, 5, 5, 7, 10, 0],
        "max1": [500.0, 60.0, 190.0, 150.0, 100.0, 100.0, 0.0],
        "max2": [190.0, 40.0, 5.0, 140.0, 100.0, 100.0, 0.0],
        "zero": [0, 0, 0, 0, 0, 0, 1],
    }
    return Table.from_cells(
        frame, dimensions=["r"], value="value", count="count", largest=["max1", "max2"], structural_zero="zero"
    )


def test_the_reasons_of_our_rules_become_statuses() -> None:
    given = Sensitivity.of(np.array([False, False, False, False, True, False, False]), 1.0, reason="manual")
    frozen = np.array([True, False, False, False, False, False, False])
    problem = Problem(
        table(), [Threshold(n=3), Dominance(n=1, k=80), Dominance(n=2, k=90)], sensitivity=given, frozen=frozen
    )
    assert argus_statuses(problem).tolist() == [10, 3, 3, 3, 9, 1, 14]
    release = Release.from_suppression(problem, np.array([False, True, True, True, True, True, False]))
    assert argus_statuses(problem, release).tolist() == [10, 3, 3, 3, 9, 11, 14]
    assert sbs_flags(problem, release).tolist() == ["V", "C", "B", "C", "B", "D", "V"]
    counts_only = Problem(table(), [Threshold(n=3)])
    assert argus_statuses(counts_only)[1] == Argus.UNSAFE_FREQUENCY
    assert sbs_flags(counts_only)[1] == "A"
    shares = Problem(table(), [PPercent(p=10)])
    assert sbs_flags(shares)[2] == "F"


def test_a_sensitive_cell_left_in_the_open_is_not_called_suppressed() -> None:
    problem = Problem(table(), [Threshold(n=3)])
    release = Release.from_suppression(problem, np.zeros(7, np.bool_))
    assert argus_statuses(problem, release).tolist() == [1, 1, 1, 1, 1, 1, 14]
    assert set(sbs_flags(problem, release)) == {"V"}
