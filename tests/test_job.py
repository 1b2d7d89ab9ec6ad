"""The job file: read, checked as a whole, written back."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablesafe.core.errors import InvalidJob
from tablesafe.job import Job, dump_job, load_job, parse_job
from tablesafe.job.decode import options
from tablesafe.job.model import CHOICES, AuditOptions, Dimension, Output, ProblemOptions, Response, Source
from tablesafe.job.toml import key_lines, toml_key, toml_value
from tablesafe.methods import METHODS, Pattern, PublishAll, Suppress, Withhold
from tablesafe.rules import RULES, AnyOf, Dominance, Levels, PPercent, Threshold, Waiver

GOOD = """\
title = "Turnover"

[source]
file = "firms.csv"
respondent = "firm"

[dimensions.nace]
hierarchy = "nace.hrc"

[dimensions.region]

[response]
value = "turnover"

[[rules]]
rule = "threshold"
n = 4

[[rules]]
rule = "p_percent"
p = 15

[output]
release = "public/table.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the good job reads."""
    (tmp_path / "firms.csv").write_text("firm,nace,region,turnover\n1,A,N,5\n")
    (tmp_path / "nace.hrc").write_text("A\nB\n")
    return tmp_path


def errors_of(text: str, folder: Path) -> list[tuple[int, str]]:
    """The errors of a job as (line, message)."""
    with pytest.raises(InvalidJob) as caught:
        parse_job(text, folder / "job.toml")
    lines = str(caught.value).splitlines()[1:]
    return [(int(line.split(":")[0].split()[1]), line.split(": ", 1)[1]) for line in lines if line.startswith("  line")]


def test_a_good_job_is_read(folder: Path) -> None:
    job = parse_job(GOOD, folder / "job.toml")
    assert job.source.file == "firms.csv"
    assert list(job.dimensions) == ["nace", "region"]
    assert job.response.value == ("turnover",)
    assert job.rules == (Threshold(n=4), PPercent(p=15))
    assert job.method == Suppress()
    assert job.resolve("public/table.csv") == folder / "public/table.csv"


def test_all_errors_come_at_once_in_the_order_of_their_lines(folder: Path) -> None:
    text = (
        GOOD.replace("title", "titel")
        .replace('"firms.csv"', '"frims.csv"')
        .replace("n = 4", 'n = "four"')
        .replace("p = 15", "p = 150")
        .replace('hierarchy = "nace.hrc"', "hierachy = 1")
        .replace('"public/table.csv"', '"public/table.doc"')
    )
    found = errors_of(text, folder)
    assert [line for line, _ in found] == [1, 4, 8, 17, 21, 24]
    told = [message for _, message in found]
    assert "'titel': did you mean 'title'?" in told[0]
    assert "did you mean 'firms.csv'?" in told[1]
    assert "'hierachy': did you mean 'hierarchy'?" in told[2]
    assert 'must be a whole number, such as 3; got text "four"' in told[3]
    assert "at most 100, got 150" in told[4]
    assert ".csv, .parquet, .xlsx" in told[5]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('rule = "p_percent"', 'rule = "p_prozent"', 20, "no rule 'p_prozent': did you mean 'p_percent'?"),
        ('rule = "p_percent"', "", 19, "[[rules]] no. 2 needs the key 'rule'"),
        ("p = 15", "k = 15", 21, "[[rules]] no. 2 has no key 'k'"),
        ("p = 15", 'p = "15"', 21, "Leave out the quotes"),
        ("p = 15", 'p = "1,5"', 21, "Write a decimal point: 1.5."),
        ("p = 15", "p = nan", 21, "must be a number"),
        ("[dimensions.region]", '[dimensions.region]\nkind = "hrc"', 10, "names no file: hierarchy = 'codes.hrc'"),
        ("[dimensions.region]", '[dimensions.region]\nkind = "equations"', 10, "but has none: equations ="),
        ('"turnover"', "5", 13, "text in quotes or a list of it"),
        ('"turnover"', '["turnover", 5]', 13, "Element 2 of 'value' must be text in quotes"),
        ("[[rules]]\nrule = \"threshold\"\nn = 4\n\n[[rules]]", "[rules]", 15, "write [[rules]], not [rules]"),
        ("[source]", '[source]\nkind = "cell"', 4, "did you mean 'cells'?"),
        ('file = "firms.csv"', "", 3, "[source] needs the key 'file'"),
        ('[source]\nfile = "firms.csv"\nrespondent = "firm"', "", 22, "no [source] table"),
        ('"public/table.csv"', '"firms.csv"', 24, "would destroy the original"),
        ('"public/table.csv"', '"table.csv"', 24, "folder of its own"),
        ('"public/table.csv"', '["a/b.csv", "a/b.csv"]', 24, "written twice"),
        ("[output]", "[output]\nreport = \"a.pdf\"", 24, "must end in .html"),
        ("[output]", '[method]\nname = "supress"\n[output]', 24, "There is no method 'supress'"),
        ("[output]", '[method]\nname = "pattern"\nfile = "none.csv"\n[output]', 25, "There is no file 'none.csv'"),
        ("[output]", '[problem]\napriori = ["firms.csv", "none.hst"]\n[output]', 24, "There is no file 'none.hst'"),
        ("[output]", '[problem]\nfrozen = [{ regio = "N" }]\n[output]', 24, "did you mean 'region'?"),
        ("[output]", "[problem]\nwithin_percent = -5\n[output]", 24, "must be above 0"),
        ("[output]", "[problem]\nwithin_percent = 5\nlower = 0\n[output]", 24, "the same thing twice"),
        ("[output]", '[[tables]]\ndimensions = ["nace", "sice"]\n[output]', 24, "no dimension 'sice'"),
        ("[source]", '[source]\ncount = "n"', 4, 'needs kind = "cells"'),
        ("[source]", '[source]\nkind = "cells"', 6, "the source holds cells"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_its_line(folder: Path, old: str, new: str, line: int, said: str) -> None:
    found = errors_of(GOOD.replace(old, new, 1), folder)
    assert any(at == line and said in message for at, message in found), found


def test_text_that_is_no_number_at_all_is_not_told_to_lose_its_quotes(folder: Path) -> None:
    assert errors_of(GOOD.replace("p = 15", 'p = "much"'), folder)[0][1].endswith('got text "much".')


def test_contributions_to_one_value_do_not_judge_another(folder: Path) -> None:
    cells = GOOD.replace('respondent = "firm"', 'kind = "cells"\ncontributions = ["max1", "max2"]')
    parse_job(cells, folder / "job.toml")
    ((line, told),) = errors_of(cells.replace('value = "turnover"', 'value = ["turnover", "staff"]'), folder)
    assert line == cells.splitlines().index('contributions = ["max1", "max2"]') + 1
    assert "contributions to something else" in told


def test_nothing_sensitive_is_an_error(folder: Path) -> None:
    text = GOOD[: GOOD.index("[[rules]]")] + GOOD[GOOD.index("[output]") :]
    assert "nothing would be sensitive" in errors_of(text, folder)[0][1]


@pytest.mark.parametrize(
    ("method", "enough"),
    [
        ('name = "swap"\ngeography = ["nace"]', True), ('name = "impute"\ncolumns = ["nace"]', True),
        ('name = "noise"', True), ('name = "noise"\nlevel = "cell"', False), ('name = "round"', True),
        ('name = "small_counts"', True), ('name = "suppress"', False),
    ],
)  # fmt: skip
def test_methods_that_change_every_cell_need_no_rules(folder: Path, method: str, enough: bool) -> None:
    text = GOOD[: GOOD.index("[[rules]]")] + f"[method]\n{method}\n" + GOOD[GOOD.index("[output]") :]
    if enough:
        assert not parse_job(text, folder / "job.toml").rules
    else:
        assert "nothing would be sensitive" in errors_of(text, folder)[0][1]


def test_syntax_errors_show_the_line(folder: Path) -> None:
    with pytest.raises(InvalidJob, match=r"line 4: .*file = firms.csv"):
        parse_job(GOOD.replace('"firms.csv"', "firms.csv"), folder / "job.toml")
    with pytest.raises(InvalidJob, match="Hint"):
        parse_job('title = "open', folder / "job.toml")


def test_the_file_may_have_a_byte_order_mark_and_windows_line_ends(folder: Path) -> None:
    path = folder / "job.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_job(path) == parse_job(GOOD, path)
    path.write_bytes(GOOD.replace("n = 4", "n = 0").replace("\n", "\r\n").encode())
    with pytest.raises(InvalidJob, match="line 17"):
        load_job(path)


def test_nested_rules_are_read_and_checked(folder: Path) -> None:
    nested = """
[[rules]]
rule = "any_of"
rules = [
  { rule = "dominance", n = 1, k = 70 },   # the largest alone
  { rule = "threshold", n = 3 },
]

[[rules]]
rule = "waiver"
respondents = ["a", 7]
of = { rule = "levels", lower = 0.5, of = { rule = "p_percent" } }

[output]
"""
    job = parse_job(GOOD.replace("[output]", nested), folder / "job.toml")
    assert job.rules[2] == AnyOf(rules=(Dominance(n=1, k=70.0), Threshold(n=3)))
    waiver = job.rules[3]
    assert isinstance(waiver, Waiver)
    assert waiver.respondents == ("a", 7)
    assert waiver.of == Levels(of=PPercent(), lower=0.5)
    assert parse_job(dump_job(job), folder / "job.toml").rules == job.rules
    found = errors_of(GOOD.replace("[output]", nested.replace("k = 70", "k = 700")), folder)
    assert [line for line, _ in found] == [27]
    assert "Dominance.k" in found[0][1]


# -- lines ------------------------------------------------------------------------------------------------------------

TRICKY = '''\
# [not.a.table]
a.b = 1          # x = 2
"quoted key"."ä.b" = """
c = 3
[d]
""" # end
'single' = \'\'\'
"""
\'\'\'\'
list = [
  1, # ]
  "two ]", [
    3 ],
  { x = 1, y = { z = "}" } },
]
[t]
k = "a\\"b"
[t.u]
k = 1
[[many]]
k = 1
[[many]]
k = 2
[[many.inner]]
k = 3
[[many.inner]]
k = 4
  [ spaced . "x y" ]
date = 1979-05-27T07:32:00Z
'''


def test_lines_of_tricky_toml() -> None:
    lines = key_lines(TRICKY)
    expected = {
        ("a", "b"): 2, ("quoted key", "ä.b"): 3, ("single",): 7, ("list",): 10, ("list", 0): 11, ("list", 1): 12,
        ("list", 2): 12, ("list", 2, 0): 13, ("list", 3, "x"): 14, ("list", 3, "y", "z"): 14, ("t",): 16,
        ("t", "k"): 17, ("t", "u", "k"): 19,
        ("many", 0, "k"): 21, ("many", 1, "k"): 23, ("many", 1, "inner", 0, "k"): 25,
        ("many", 1, "inner", 1, "k"): 27, ("spaced", "x y"): 28, ("spaced", "x y", "date"): 29,
    }  # fmt: skip
    assert {path: lines.get(path) for path in expected} == expected
    assert set(paths_in(tomllib.loads(TRICKY))) <= set(lines)


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every path that tomllib found."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


keys = st.text(min_size=1, max_size=6)
scalars = st.booleans() | st.integers(-99, 99) | st.text(max_size=12) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
tables = st.dictionaries(keys, values, max_size=4)


@given(st.dictionaries(keys, tables, max_size=4))
def test_every_key_is_found_on_its_line(data: dict[str, dict[str, Any]]) -> None:
    written: list[str] = []
    expected: dict[tuple[str | int, ...], int] = {}
    for name, table in data.items():
        written += ["# [comment]", f"[{toml_key(name)}] # x = 1"]
        expected[(name,)] = len(written)
        for key, value in table.items():
            written += ["", f"{toml_key(key)} = {toml_value(value)}"]
            expected[(name, key)] = len(written)
    text = "\n".join(written)
    assert tomllib.loads(text) == data  # our own TOML writer is right
    lines = key_lines(text)
    assert {path: lines[path] for path in expected} == expected
    assert set(paths_in(data)) <= set(lines)


# -- round trip -------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
selectors = st.dictionaries(texts, texts | st.lists(texts, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2)
rules = st.lists(
    st.builds(Threshold, n=st.integers(1, 9), zero=st.booleans())
    | st.builds(PPercent, p=st.floats(0.1, 100), coalition=st.integers(1, 3))
    | st.builds(AnyOf, rules=st.lists(st.builds(Dominance, k=st.floats(1, 99)), min_size=1, max_size=2).map(tuple)),
    min_size=1,
    max_size=3,
).map(tuple)
jobs = st.builds(
    Job,
    title=texts,
    source=st.builds(Source, file=st.just("data.jj"), where=st.none() | texts, largest=st.integers(0, 9)),
    dimensions=st.dictionaries(
        texts, st.builds(Dimension, total=texts, lengths=st.lists(st.integers(1, 5), max_size=2).map(tuple)), max_size=2
    ),
    response=st.builds(Response, value=st.lists(texts, max_size=2).map(tuple)),
    rules=rules,
    problem=st.builds(ProblemOptions, upper=st.none() | texts | st.floats(0, 9), frozen=texts | st.tuples(selectors)),
    method=st.builds(PublishAll) | st.builds(Pattern, file=st.just("data.jj")),
    audit=st.builds(AuditOptions, certificate=st.booleans()),
    output=st.builds(Output, force=st.booleans(), internal=st.just("inside")),
)


@given(jobs, st.booleans())
def test_a_job_survives_the_round_trip(tmp_path_factory: pytest.TempPathFactory, job: Job, explain: bool) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "data.jj").touch()
    assert parse_job(dump_job(job, explain=explain), folder / "job.toml") == job


def every_option() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Every key that a job file may have, with the name of its table."""
    sections = {spec.name: spec.default_factory for spec in dataclasses.fields(Job)}
    kinds = [Job, Source, Dimension, *(f for f in sections.values() if isinstance(f, type) and f is not dict)]
    for kind in [*kinds, *RULES.values(), *METHODS.values()]:
        for spec in options(kind).values():
            yield kind.__name__, spec


@pytest.mark.parametrize(("table", "spec"), list(every_option()), ids=lambda x: x if isinstance(x, str) else x.name)
def test_every_key_has_help(table: str, spec: dataclasses.Field[Any]) -> None:
    assert spec.metadata.get("help"), f"{table}.{spec.name} has no help text"


def test_every_rule_and_method_can_be_chosen() -> None:
    assert {kind for choice in CHOICES.values() for kind in choice.registry.values()} >= {*RULES.values(), Withhold}


def test_bounds_around_the_truth_are_not_announced() -> None:
    told = GOOD + "intervals = true\n\n[problem]\nwithin_percent = 50\n"
    with pytest.raises(InvalidJob, match="whose middle is the true value"):
        parse_job(told)


@pytest.mark.parametrize("key", ["lower", "upper"])
def test_bounds_that_some_attackers_know_are_not_announced_to_all(key: str) -> None:
    told = GOOD + f"intervals = true\n\n[problem]\n{key} = "
    with pytest.raises(InvalidJob, match=f"bounds of .problem. {key}, which some attackers know"):
        parse_job(told + '"bound"\n')
    with pytest.raises(InvalidJob) as error:  # the files of the example are not there
        parse_job(told + "1.0\n")
    assert "attackers" not in str(error.value)
