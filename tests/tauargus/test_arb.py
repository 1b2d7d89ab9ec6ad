"""Batch files of τ-ARGUS as dataclasses: every command, in the spellings that offices use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tablesafe.core.errors import InvalidJob
from tablesafe.tauargus.batch import parse_arb, read_arb
from tablesafe.tauargus.batch.commands import (
    Adjustment,
    Apriori,
    Command,
    Hypercube,
    Logbook,
    Modular,
    Network,
    OpenData,
    Optimal,
    Protection,
    ReadTable,
    Recode,
    Rounding,
    SafetyRule,
    Solver,
    SpecifyTable,
    Suppress,
    WriteTable,
)
from tablesafe.tauargus.sheet import Kind

OPEN = '<OPENMICRODATA> "a.asc"\n<OPENMETADATA> "a.rda"\n<SPECIFYTABLE> "A""B"|"v"\n<SAFETYRULE> P(10,1)\n'
READ = OPEN + "<READMICRODATA>\n"
TABLE = '<OPENTABLEDATA> "a.tab"\n<OPENMETADATA> "a.rda"\n<SPECIFYTABLE> "A""B"|"v"\n'


def last(text: str) -> Command:
    return parse_arb(text).commands[-1]


T = TypeVar("T")


def only(text: str, kind: type[T]) -> T:
    (found,) = (command for command in parse_arb(text).commands if isinstance(command, kind))
    return found


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ('"a.asc"', "a.asc"),
        ("a.asc", "a.asc"),
        ('"C:\\Program Files\\TauARGUS\\data\\a.asc"', "C:\\Program Files\\TauARGUS\\data\\a.asc"),
        ('C:\\My data\\a b.asc"', "C:\\My data\\a b.asc"),  # as the manual prints it
        ('  "data/é.asc"  // the records', "data/é.asc"),
        ('"http//x.asc"', "http//x.asc"),
    ],
)
def test_a_file_may_have_quotes_spaces_backslashes_and_a_comment(written: str, file: str) -> None:
    assert last(f"<OPENMICRODATA> {written}\n") == OpenData(line=1, file=file, tabular=False)


def test_lines_are_counted_with_comments_and_blank_lines() -> None:
    text = f"//made by hand\n\n\\\\ another\n{OPEN}"
    assert [command.line for command in parse_arb(text).commands] == [4, 5, 6, 7]


def test_a_byte_order_mark_windows_1252_and_lower_case_are_understood(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "cp1252", "utf-16"):
        (tmp_path / "j.arb").write_bytes('<openMicrodata> "Größe.asc"\r\n'.encode(encoding))
        assert read_arb(tmp_path / "j.arb").commands[0] == OpenData(line=1, file="Größe.asc", tabular=False)


def test_a_command_may_go_on_on_the_next_line() -> None:
    spec = only(OPEN.replace("<SPECIFYTABLE> ", "<SPECIFYTABLE>\n"), SpecifyTable)
    assert (spec.line, spec.explanatory) == (3, ("A", "B"))


SPECIFIED: dict[str, dict[str, Any]] = {
    '"Size""Region"|"Var2"': {},
    '"Size""Region"|"Var2"||': {},
    '"Size" "Region" | "Var2" | "" | ""': {},
    "Size Region|Var2": {},
    '"Size""Region"|"Var2"|"Var3"|"Var4"': {"shadow": "Var3", "cost": "variable", "cost_variable": "Var4"},
    '"Size""Region"|"Var2"||-1': {"cost": "frequency"},
    '"Size""Region"|"Var2"||"-2"': {"cost": "unity"},
    '"Size""Region"|"Var2"||-3,0.5': {"cost": "distance", "power": 0.5},
    '"Size""Region"|"Var2"||"Var2",0': {"cost": "variable", "cost_variable": "Var2", "power": 0.0},
    '"Size""Region"|"Var2"|""|""|0.3': {"power": 0.3},
    '"Size""Region"|<freq>': {"response": None},
    '"Size""Region"|"<FREQ>"||-1': {"response": None, "cost": "frequency"},
}


@pytest.mark.parametrize("written", SPECIFIED)
def test_a_table_in_all_its_spellings(written: str) -> None:
    plain = SpecifyTable(line=3, explanatory=("Size", "Region"), response="Var2")
    found = only(OPEN.replace('"A""B"|"v"', written), SpecifyTable)
    assert found == replace(plain, **SPECIFIED[written])


def test_rules_keep_their_order_and_numbers() -> None:
    text = "P(15,100,1)|P(0,0)|NK(2,75.5)|FREQ(3,30)|FREQ(2,10)|ZERO(10)|REQ(70,85,10)|REQ(70,85,3,10)|MIS(1)|WGT(0)|"
    found = only(OPEN.replace("P(10,1)", text), SafetyRule)
    assert "|".join(map(str, found.rules)) + "|" == text


METHODS: dict[str, Protection] = {
    "MOD(1)": Modular(),
    "MOD(1,5)": Modular(minutes=5),
    "MOD(1, 5, 1, 0, 0)": Modular(minutes=5, single_single=True, single_multiple=False, minimum_frequency=False),
    "mod(1,5,0,1,1,20000)": Modular(minutes=5, single_single=False, scale=20000),
    "OPT(1)": Optimal(),
    "OPT(1,5)": Optimal(minutes=5),
    "GH(1)": Hypercube(),
    "GH(1,75,1,0)": Hypercube(percent=75, large=True, singleton=False),
    "NET(1)": Network(),
    "RND(1,5)": Rounding(base=5),
    "RND(1,5,2,20,1,2,1)": Rounding(base=5, steps=2, minutes=20, partitions=True, stop=2, unit_cost=True),
    "CTA(1)": Adjustment(),
}


@pytest.mark.parametrize("written", METHODS)
def test_methods_with_all_their_parameters(written: str) -> None:
    found = last(f"{READ}<SUPPRESS> {written}")
    assert found == Suppress(line=6, keyword=written[:3].upper().rstrip("("), table=1, how=METHODS[written])


def test_table_0_links_all_tables() -> None:
    found = last(f"{READ}<SUPPRESS> MOD(0)")
    assert isinstance(found, Suppress)
    assert found.table == 0


def test_files_to_write() -> None:
    found = last(f'{READ}<WRITETABLE> (1, 3, AS+se+QU-, "C:\\out, final (2)\\x.txt")')
    assert isinstance(found, WriteTable)
    assert (found.table, found.kind, found.file) == (1, Kind.CODE_VALUE, "C:\\out, final (2)\\x.txt")
    assert (found.options.AS, found.options.SE, found.options.QU, found.options.FL) == (True, True, False, False)


def test_an_option_that_means_nothing_there_is_said() -> None:
    batch = parse_arb(f'{READ}<WRITETABLE> (1, 6, AS+, "x.jj")')
    assert [(note.line, "AS+" in note.text) for note in batch.notes] == [(6, True)]


def test_recodes_by_file_and_by_level() -> None:
    assert last(f'{READ}<RECODE> 1, "A", "a b.grc"') == Recode(line=6, table=1, variable="A", file="a b.grc")
    assert last(f"{READ}<RECODE> 1, A, 2") == Recode(line=6, table=1, variable="A", level=2)


def test_a_priori_files_ignore_errors_unless_told_otherwise() -> None:
    plain = Apriori(line=6, file="x.hst", table=1, separator=";")
    assert last(f'{READ}<APRIORI> "x.hst", 1, ";"') == plain
    assert last(f'{READ}<APRIORY> "x.hst",1,",",0,1') == replace(
        plain, separator=",", ignore_errors=False, expand_trivial=True
    )


def test_reading_a_table_in_its_three_ways() -> None:
    ways = {"": "check", "0": "check", "1": "compute", "2": "any"}
    for written, totals in ways.items():
        assert last(f"{TABLE}<READTABLE> {written}") == ReadTable(line=4, totals=totals)  # type: ignore[arg-type]
    assert last(f"{TABLE}<READTABLE> 1T") == ReadTable(line=4, totals="compute", keep_status=True)


def test_the_other_commands() -> None:
    batch = parse_arb(
        f'<SILENT>\n<LOGBOOK> "my log.txt"\n<VERSIONINFO> "v.txt"\n<SOLVER> CPLEX, "access.ilm"\n{READ}<COVER>\n'
        f"<CLEAR>\n{READ}<GOINTERACTIVE>\n"
    )
    assert batch.commands[1] == Logbook(line=2, file="my log.txt")
    assert batch.commands[3] == Solver(line=4, name="CPLEX", licence="access.ilm")
    assert ["HiGHS" in note.text or "windows" in note.text for note in batch.notes] == [True, True]


# -- errors ------------------------------------------------------------------------------------------------------------

MISTAKES = {
    "unknown command": ("<OPENMICROADTA> x", r"j.arb, line 1: <OPENMICROADTA>: .*did you mean 'OPENMICRODATA'"),
    "no command": ("OPENMICRODATA x", r"j.arb, line 1: 'OPENMICRODATA x' is no command.*angle brackets"),
    "nothing": ("// nothing\n", r"j.arb holds no commands"),
    "no file": ("<OPENMICRODATA>", r"line 1: <OPENMICRODATA>: '' is no file name"),
    "open quote": (OPEN.replace('"v"', '"v'), r"line 3: <SPECIFYTABLE>: a quote is not closed"),
    "no response": (OPEN.replace('|"v"', ""), r"line 3: <SPECIFYTABLE>: no response variable"),
    "no explanatory": (OPEN.replace('"A""B"', ""), r"line 3: <SPECIFYTABLE>: no explanatory variable"),
    "twice": (OPEN.replace('"A""B"', '"A""A"'), r"line 3: .*'A' is named twice"),
    "lambda": (OPEN.replace('"v"', '"v"||"v",x'), r"line 3: .*lambda is 'x', which is no number"),
    "too many entries": (OPEN.replace('"v"', '"v"|||1|2'), r"line 3: .*6 entries"),
    "unknown rule": (OPEN.replace("P(10,1)", "FREC(3,30)"), r"line 4: <SAFETYRULE>: .*'FREC'.*did you mean 'FREQ'"),
    "too few numbers": (OPEN.replace("P(10,1)", "FREQ(3)"), r"line 4: .*FREQ has 1 parameter, not 2.*FREQ\(3,30\)"),
    "too many rules": (OPEN.replace("P(10,1)", "FREQ(3,1)|" * 3), r"line 4: .*FREQ stands 3 times"),
    "no number": (OPEN.replace("P(10,1)", "P(ten)"), r"line 4: .*a parameter of P is 'ten'"),
    "share": (OPEN.replace("P(10,1)", "NK(2,175)"), r"line 4: .*NK\(2,175\) means nothing"),
    "brackets": (OPEN.replace("P(10,1)", "P 10"), r"line 4: .*'P 10' is not a name with parameters"),
    "two rules lines": (OPEN + "<SAFETYRULE> P(10,1)", r"line 5: <SAFETYRULE>: table 1 has its rules already"),
    "rule first": ("<SAFETYRULE> P(10,1)", r"line 1: <SAFETYRULE>: there is no table yet"),
    "metadata first": ('<OPENMETADATA> "a.rda"', r"line 1: <OPENMETADATA>: no data file is open"),
    "wrong reader": (OPEN + "<READTABLE>", r"line 5: <READTABLE>: 'a.asc' holds records.*<READMICRODATA>"),
    "wrong reader of tables": (TABLE + "<READMICRODATA>", r"line 4: .*'a.tab' holds a table.*<READTABLE>"),
    "read parameter": (TABLE + "<READTABLE> 3", r"line 4: <READTABLE>: it is followed by '3'.*1 to compute"),
    "not read": (OPEN + "<SUPPRESS> MOD(1)", r"line 5: <SUPPRESS>: no table has been read yet"),
    "no such table": (READ + "<SUPPRESS> MOD(2)", r"line 6: <SUPPRESS>: there is no table 2.*1 table"),
    "unknown method": (READ + "<SUPPRESS> MAD(1)", r"line 6: .*no method 'MAD'"),
    "method parameters": (READ + "<SUPPRESS> RND(1)", r"line 6: .*RND has 1 parameter, not 2 to 7.*RND\(1,5"),
    "switch": (READ + "<SUPPRESS> MOD(1,5,2)", r"line 6: .*SingleSingle is '2'.*1 for yes or 0 for no"),
    "no time": (READ + "<SUPPRESS> OPT(1,0)", r"line 6: .*minutes above 0"),
    "base": (READ + "<SUPPRESS> RND(1,1)", r"line 6: .*rounding base is '1'"),
    "type": (READ + '<WRITETABLE> (1,9,,"x")', r"line 6: <WRITETABLE>: .*no type 9"),
    "option": (READ + '<WRITETABLE> (1,3,XY+,"x")', r"line 6: .*no option 'XY'"),
    "few parameters": (READ + '<WRITETABLE> (1,3,"x")', r"line 6: .*3 parameters, not 4"),
    "separator": (READ + '<APRIORI> "x.hst", 1, ";;"', r"line 6: .*separator is '\";;\"'"),
    "recode parameters": (READ + "<RECODE> 1, A", r"line 6: .*2 parameters, not 3"),
    "late recode": (READ + "<SUPPRESS> MOD(1)\n<RECODE> 1, A, 1", r"line 7: .*table 1 is protected already"),
    "recode of a table": (TABLE + "<READTABLE>\n<RECODE> 1, A, 1", r"line 5: .*cannot be recoded"),
    "two files": (READ + '<OPENMICRODATA> "b.asc"', r"line 6: .*read already.*<CLEAR>"),
    "solver": ("<SOLVER> GUROBI", r"line 1: .*no solver 'GUROBI'.*FREE"),
    "words after": ("<CLEAR> all", r"line 1: <CLEAR>: it is followed by 'all'.*no parameters"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_file_the_line_and_the_remedy(mistake: str) -> None:
    text, message = MISTAKES[mistake]
    with pytest.raises(InvalidJob, match=f"(?s){message}") as raised:
        parse_arb(text, "folder/j.arb")
    assert "Hint: " in str(raised.value)


def test_all_mistakes_are_told_at_once() -> None:
    text = OPEN.replace("P(10,1)", "P(ten)").replace('"A""B"', "")
    with pytest.raises(InvalidJob, match=r"(?s)2 errors:\n  line 3: .*\n  line 4: "):
        parse_arb(text)
