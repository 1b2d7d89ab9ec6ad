"""Statuses of other programs: each is understood, each of ours has one, and there and back is the same meaning."""

from __future__ import annotations

from typing import get_args

import numpy as np
import polars as pl
import pytest

from tablesafe.cli.sources import SchemeName
from tablesafe.core.errors import InvalidFile, InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.statuses import (
    FLAGS,
    LETTERS,
    NUMBERS,
    OBS_STATUS,
    SBS,
    SDMX_CONF,
    VOCABULARIES,
    WORDS,
    Meaning,
    Scheme,
    read_statuses,
)
from tablesafe.core.table import Table
from tablesafe.files.read import Source
from tablesafe.rules.counts import Threshold
from tablesafe.rules.linear import Dominance, PPercent
from tablesafe.tauargus.statuses import Argus, argus_statuses, sbs_flags

SPELLINGS = [(scheme, known) for scheme, each in VOCABULARIES.items() for known in each]


def column(*entries: object, name: str = "status") -> Source:
    return Source(pl.DataFrame({name: entries}), "given.csv", first_line=2)


def test_the_command_line_offers_the_vocabularies_there_are() -> None:
    assert get_args(SchemeName) == get_args(Scheme) == tuple(VOCABULARIES)


@pytest.mark.parametrize(("scheme", "known"), SPELLINGS)
def test_every_word_of_every_scheme_is_read(scheme: Scheme, known: dict[str, Meaning]) -> None:
    spelled = [word.upper() for word in known]
    assert read_statuses(column(*spelled), "status", scheme=scheme).tolist() == [int(m) for m in known.values()]


@pytest.mark.parametrize("known", [NUMBERS, LETTERS, WORDS, FLAGS, SDMX_CONF, OBS_STATUS])
def test_a_vocabulary_with_words_of_its_own_tells_itself(known: dict[str, Meaning]) -> None:
    assert read_statuses(column(*known), "status").tolist() == [int(meaning) for meaning in known.values()]


def test_the_letters_of_sdmx_are_those_of_its_code_lists() -> None:
    """CL_CONF_STATUS 1.3 and CL_OBS_STATUS 2.2: what may be published, and what is not shown."""
    assert {letter for letter, means in SDMX_CONF.items() if not means.hidden} == {"f", "e"}
    assert {letter for letter, means in SDMX_CONF.items() if means is Meaning.SENSITIVE} == set("acgmotx")
    assert {letter for letter, means in SDMX_CONF.items() if means is Meaning.SUPPRESSED} == set("dns")
    assert {letter for letter, means in OBS_STATUS.items() if means.hidden} == set("hloq")


AMBIGUOUS = {
    "primary and free": ("A", "F", "F"),
    "secondary and free": ("S", "F", ""),
    "the flags of SBS without V": ("A", "B", "D", "F"),
    "SBS, or kinds of values": ("V", "A", "B", "D"),
    "unsafe, or provisional and of low reliability": ("P", "U", "E"),
    "safe or secondary": ("S", "M", "E"),
    "not for publication, or no": ("N", "N"),
    "low reliability, or unsafe": ("U", "P", ""),
    "Eurostat's e, p and u": ("e", None, "u"),
    "safe or suppressed everywhere": (1, 1),
}


@pytest.mark.parametrize("entries", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_vocabularies_disagree_on_is_refused(entries: tuple[object, ...]) -> None:
    with pytest.raises(InvalidFile, match=r"(?s)Column 'status' of given.csv can be read in more than one way.*Hint"):
        read_statuses(column(*entries), "status")


def test_the_refusal_shows_the_letters_and_what_each_vocabulary_makes_of_them() -> None:
    with pytest.raises(InvalidFile) as error:
        read_statuses(column("A", "F", "F", "D"), "status")
    text = str(error.value)
    assert "A (1 cell): sbs withheld, sensitive; sdmx-conf withheld, sensitive; obs-status published" in text
    assert "F (2 cells): sbs withheld, sensitive; sdmx-conf published; obs-status published" in text
    assert "scheme='sbs' or scheme='sdmx-conf' or scheme='obs-status'" in text


def test_every_pair_of_vocabularies_that_disagrees_is_refused() -> None:
    """By brute force over all columns of two letters: whatever is read alone, no other vocabulary reads otherwise."""
    letters = sorted({word for _, known in SPELLINGS for word in known if len(word) == 1})
    read = 0
    for first in letters:
        for second in letters:
            entries = (first, second)
            fitting = [known for _, known in SPELLINGS if first in known and second in known]
            if "s" in entries and "a" not in entries:
                fitting = [known for known in fitting if known is not OBS_STATUS] or fitting
            makes = {tuple(known[word] for word in entries) for known in fitting}
            if len(makes) == 1:
                assert tuple(read_statuses(column(*entries), "status").tolist()) == next(iter(makes))
                read += 1
            else:
                with pytest.raises(InvalidFile):
                    read_statuses(column(*entries), "status")
    assert read > 50


def test_vocabularies_that_agree_leave_no_doubt() -> None:
    assert read_statuses(column("C", "", "C"), "status").tolist() == [1, 0, 1], "sensitive in SBS and in SDMX"
    assert read_statuses(column("x", None), "status", pattern=True).tolist() == [2, 0], "withheld in all of them"
    with pytest.raises(InvalidFile, match="more than one way"):
        read_statuses(column("x", None), "status")  # sensitive in one of them


def test_a_column_with_a_name_of_sdmx_is_read_as_sdmx() -> None:
    assert read_statuses(column("A", "F", "S", name="CONF_STATUS"), "CONF_STATUS").tolist() == [1, 0, 2]
    assert read_statuses(column("A", "F", "Q", name="OBS_STATUS"), "OBS_STATUS").tolist() == [0, 0, 2]
    with pytest.raises(InvalidFile, match=r"(?s)line 3 has the status 'U'.*statuses of sdmx-conf are F, E"):
        read_statuses(column("A", "U", name="CONF_STATUS"), "CONF_STATUS")


@pytest.mark.parametrize("name", ["published", "Publish", "is_open", "safe", "released"])
@pytest.mark.parametrize("scheme", [None, "0/1"])
def test_a_column_that_says_what_is_published_is_not_turned_around(name: str, scheme: Scheme | None) -> None:
    for entries in ((1, 0), (True, False), ("yes", "no")):
        with pytest.raises(InvalidFile, match=f"(?s){name!r} of given.csv says yes for what is published"):
            read_statuses(column(*entries, name=name), name, scheme=scheme)


def test_one_spelling_a_column() -> None:
    with pytest.raises(InvalidFile, match="no vocabulary knows every status"):
        read_statuses(column("1", "u", "11"), "status")
    with pytest.raises(InvalidFile, match="has the status"):
        read_statuses(column("1", "u"), "status", scheme="tauargus")
    with pytest.raises(InvalidOption, match=r"(?s)no scheme 'sdmx'.*did you mean"):
        read_statuses(column("A"), "status", scheme="sdmx")  # type: ignore[arg-type]


def test_tau_argus_has_fourteen_statuses_and_all_have_a_meaning() -> None:
    assert set(NUMBERS) == {str(i) for i in range(1, 15)}
    assert {int(status) for status in Argus} == set(range(1, 15))
    hidden = {code for code, meaning in NUMBERS.items() if meaning.status is not Status.PUBLISHED}
    assert hidden == {"3", "4", "5", "6", "7", "8", "9", "11", "12"}


def test_every_status_of_a_release_has_a_word() -> None:
    for status in Status:
        meaning = WORDS[status.word]
        shown = status in {Status.PUBLISHED, Status.CHANGED}
        assert (meaning.status is Status.PUBLISHED) == shown


def test_every_flag_that_we_write_for_eurostat_is_read() -> None:
    assert set(SBS) == {"a", "b", "c", "d", "f", "v"}


def test_numbers_booleans_and_empty_entries() -> None:
    assert read_statuses(column(1, 3, 14), "status").tolist() == [0, 1, 4]
    assert read_statuses(column(1.0, 11.0, 2.0), "status").tolist() == [0, 2, 0]
    assert read_statuses(column(0, 1, 1), "status").tolist() == [0, 2, 2]
    assert read_statuses(column(True, False), "status").tolist() == [2, 0]
    assert read_statuses(column("u", None, " Z "), "status", empty=Meaning.EMPTY).tolist() == [1, 4, 3]
    assert read_statuses(column("yes", "", "no"), "status").tolist() == [2, 0, 0]


def test_ones_alone_are_ambiguous() -> None:
    with pytest.raises(InvalidFile, match=r"(?s)1 \(2 cells\): tauargus published; 0/1 withheld.*scheme='0/1'"):
        read_statuses(column(1, 1), "status")
    assert read_statuses(column(1, 1, name="suppressed"), "suppressed").tolist() == [2, 2]
    assert read_statuses(column(1, 1), "status", scheme="0/1").tolist() == [2, 2]
    assert read_statuses(column(1, 1), "status", scheme="tauargus").tolist() == [0, 0]


@pytest.mark.parametrize("name", ["sensitive", "Primary", "is_unsafe"])
def test_yes_in_a_column_of_what_is_sensitive_says_more_than_withheld(name: str) -> None:
    for entries in ((1, 0), (True, False), ("yes", "no")):
        assert read_statuses(column(*entries, name=name), name).tolist() == [1, 0]
    assert read_statuses(column(1, 1, name=name), name, scheme="tauargus").tolist() == [0, 0]
    assert read_statuses(column(3, 11, name=name), name).tolist() == [1, 2]


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
