"""The command line as a new user meets it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import dataclasses
import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import polars as pl
import pytest
from cyclopts import Parameter

from tablesafe.cli.app import call
from tablesafe.cli.demo import copy_demo
from tablesafe.cli.exits import Exit, report_error
from tablesafe.cli.suppress import Choices
from tablesafe.job import load_job
from tablesafe.job.decode import options
from tablesafe.methods import Suppress

REPOSITORY = Path(__file__).resolve().parent.parent

JOB = """\
[source]
file = "data.csv"
respondent = "firm"

[dimensions.region]
hierarchy = "regions.csv"

[dimensions.size]

[response]
value = "turnover"

[[rules]]
rule = "threshold"

[[rules]]
rule = "p_percent"

[method]
name = "withhold"

[output]
release = "public/table.csv"
report = "public/report.html"
"""

CELLS = """\
[source]
file = "cells.csv"
kind = "cells"
count = "n"

[dimensions.region]

[response]
value = "value"

[[rules]]
rule = "threshold"

[method]
name = "withhold"

[output]
release = "public/table.csv"
"""

RECORDS = """\
firm,region,size,turnover
1,N1,small,10
2,N1,small,20
3,N1,large,30
4,N2,small,40
5,N2,large,50
6,S1,small,60
7,S1,large,70
8,S1,large,80
9,S2,small,90
10,S2,large,100
"""

GOOD_CELLS = "region,value,n\nTotal,100,20\nN,60,10\nS,40,10\n"


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, object]:
        """The JSON document on standard output."""
        found: dict[str, object] = json.loads(self.out)
        return found


Run = Callable[..., Outcome]


@pytest.fixture
def tablesafe(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = call([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small job that runs."""
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "data.csv").write_text(RECORDS)
    (tmp_path / "regions.csv").write_text("zone,region\nNorth,N1\nNorth,N2\nSouth,S1\nSouth,S2\n")
    (tmp_path / "cells.toml").write_text(CELLS)
    (tmp_path / "cells.csv").write_text(GOOD_CELLS)
    return tmp_path


def outputs(folder: Path) -> list[str]:
    """What a run left behind, hidden files as well."""
    given = {"job.toml", "data.csv", "regions.csv", "cells.toml", "cells.csv"}
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return sorted(path for path in found if path not in given)


# -- bad input --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """A file of the folder, what goes wrong in it, and what the message must say."""

    said: tuple[str, ...]
    change: tuple[str, str] = ("", "")
    """What is replaced by what in the file."""
    content: bytes | None = None
    """The whole file instead."""
    file: str = "data.csv"
    job: str = "job.toml"


NUMBER = ("'turnover'", "data.csv, line 5")
BAD = {
    "no such data file": Bad(("line 2", "no file 'data.csv'"), content=b"-"),
    "empty file": Bad(("data.csv", "empty"), content=b""),
    "header without rows": Bad(("data.csv", "no rows"), content=b"firm,region,size,turnover\n"),
    "wrong delimiter": Bad(("delimiter",), content=RECORDS.replace(",", ":").encode()),
    "missing column": Bad(("'turnover'", "'umsatz'"), ("turnover", "umsatz")),
    "misspelt column": Bad(("did you mean 'turnovr'?",), ("turnover", "turnovr")),
    "text in a number column": Bad((*NUMBER, "'secret'"), ("small,40", "small,secret")),
    "thousands separator": Bad(NUMBER, ("small,40", 'small,"1,234.5"')),
    "not a number": Bad(NUMBER, ("small,40", "small,NaN")),
    "infinite": Bad(NUMBER, ("small,40", "small,inf")),
    "huge": Bad(NUMBER, ("small,40", "small,1e300")),
    "empty value": Bad(NUMBER, ("small,40", "small,")),
    "missing code": Bad(("'region'", "line 5"), ("4,N2,", "4,,")),
    "unknown code": Bad(("'N9'", "line 5", "regions.csv"), ("4,N2,", "4,N9,")),
    "ragged line": Bad(("data.csv",), ("N2,large,50", "N2,large,50,9,9")),
    "binary file": Bad(("data.csv",), content=bytes(range(256)) * 20),
    "a hierarchy of another dimension": Bad(
        ("regions.csv", "'region'"), content=b"parent,child\nTotal,small\nTotal,large\n", file="regions.csv"
    ),
    "two parents": Bad(("two parents", "'N1'"), content=b"zone,region\nA,N1\nB,N1\n", file="regions.csv"),
    "empty hierarchy": Bad(("regions.csv", "empty"), content=b"", file="regions.csv"),
    "no job": Bad(("nojob.toml",), job="nojob.toml"),
    "no TOML": Bad(("job.toml", "line 1"), content=b"[source\n", file="job.toml"),
    "data instead of a job": Bad(("data.csv", "TOML"), job="data.csv"),
    "empty job": Bad(("[source]",), content=b"", file="job.toml"),
    "duplicate cells": Bad(
        ("(region=N)", "twice", "cells.csv"), ("S,40,10", "S,40,10\nN,60,10"), file="cells.csv", job="cells.toml"
    ),
    "a total that does not add up": Bad(
        ("(region=Total)", "101", "100", "cells.csv"), ("Total,100", "Total,101"), file="cells.csv", job="cells.toml"
    ),
    "a count that is none": Bad(("'n'", "line 3", "9.5"), ("60,10", "60,9.5"), file="cells.csv", job="cells.toml"),
    "text among cells": Bad(("line 3", "'x'"), ("N,60", "N,x"), file="cells.csv", job="cells.toml"),
    "no value": Bad(("line 3", "empty"), ("N,60", "N,"), file="cells.csv", job="cells.toml"),
    "one name twice": Bad(("'value'", "two columns"), ("value,n", "value,n,value"), file="cells.csv", job="cells.toml"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_clear_message_and_leaves_nothing(tablesafe: Run, folder: Path, case: str) -> None:
    bad, file = BAD[case], folder / BAD[case].file
    if bad.content == b"-":
        file.unlink()
    else:
        file.write_bytes(file.read_text().replace(*bad.change).encode() if bad.content is None else bad.content)
    outcome = tablesafe("run", folder / bad.job)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    assert outcome.err.startswith("Error: ")
    assert "Traceback" not in outcome.err
    assert "bug" not in outcome.err
    for words in bad.said:
        assert words in outcome.err, outcome.err
    assert outputs(folder) == []


GOOD = {
    "as it is": RECORDS.encode(),
    "byte-order mark": b"\xef\xbb\xbf" + RECORDS.encode(),
    "UTF-16": RECORDS.encode("utf-16"),
    "Windows line ends": RECORDS.replace("\n", "\r\n").encode(),
    "semicolons": RECORDS.replace(",", ";").encode(),
    "tabs": RECORDS.replace(",", "\t").encode(),
    "semicolons and decimal commas": RECORDS.replace(",", ";").replace(";40\n", ";40,5\n").encode(),
    "quotes": b'"firm","region","size","turnover"\n' + RECORDS.split("\n", 1)[1].replace("small", '"small"').encode(),
    "no line end at the end": RECORDS.rstrip().encode(),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_the_usual_ways_of_writing_a_file_are_all_read(tablesafe: Run, folder: Path, case: str) -> None:
    (folder / "data.csv").write_bytes(GOOD[case])
    outcome = tablesafe("tabulate", folder / "job.toml", "-o", folder / "out" / "cells.csv")
    assert outcome.code == 0, outcome.err
    cells = pl.read_csv(folder / "out" / "cells.csv")
    total = cells.filter((pl.col("region") == "Total") & (pl.col("size") == "Total"))["turnover"].item()
    assert total == (550.5 if "decimal" in case else 550)


def test_windows_1252_is_read(tablesafe: Run, folder: Path) -> None:
    (folder / "data.csv").write_bytes(RECORDS.replace("small", "größe").encode("cp1252"))
    outcome = tablesafe("tabulate", folder / "job.toml", "-o", folder / "out.csv")
    assert outcome.code == 0, outcome.err
    assert "größe" in pl.read_csv(folder / "out.csv")["size"].to_list()


# -- run --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def safe(folder: Path) -> Path:
    """A folder with a job that is safe: nobody is alone and nobody dominates."""
    rows = [
        f"{firm},{region},{size},{10 + firm % 3}"
        for firm, (region, size) in enumerate(itertools.product(("N1", "N2", "S1", "S2"), ("small", "large") * 9))
    ]
    (folder / "data.csv").write_text("firm,region,size,turnover\n" + "\n".join(rows) + "\n")
    return folder


def test_an_open_release_is_not_written_and_the_exit_code_says_so(tablesafe: Run, folder: Path) -> None:
    outcome = tablesafe("run", folder / "job.toml")
    assert outcome.code == 1
    assert "OPEN: " in outcome.out
    assert "not written" in outcome.out
    assert all(path.startswith("internal") for path in outputs(folder))
    assert "internal/findings.json" in outputs(folder)


def test_force_writes_it_all_the_same_and_the_exit_code_still_says_so(tablesafe: Run, folder: Path) -> None:
    outcome = tablesafe("run", folder / "job.toml", "--force")
    assert outcome.code == 1
    assert "do not publish" in outcome.out
    assert {"public/table.csv", "public/report.html"} <= set(outputs(folder))


def test_a_safe_release_is_written_and_its_certificate_verifies(tablesafe: Run, safe: Path) -> None:
    outcome = tablesafe("run", safe / "job.toml")
    assert outcome.code == 0, outcome.out + outcome.err
    certificate, table = safe / "internal" / "certificate.json.gz", safe / "public" / "table.csv"
    assert tablesafe("verify", certificate, "--release", table).code == 0
    table.write_text(table.read_text().replace("99", "98"))
    wrong = tablesafe("verify", certificate, "--release", table)
    assert wrong.code == 1
    assert wrong.err.startswith("Error: ")


def test_json_is_one_document_on_standard_output(tablesafe: Run, folder: Path) -> None:
    found = tablesafe("run", folder / "job.toml", "--json").document
    assert found["status"] == "open"
    assert found["exit_code"] == 1
    assert found["release_written"] is False
    (folder / "data.csv").unlink()
    failed = tablesafe("run", folder / "job.toml", "--json")
    assert failed.document["exit_code"] == failed.code == 2
    assert failed.err == ""
    assert tablesafe("run", "--nonsense", "--json").document["exit_code"] == 2


def test_quiet_says_nothing_when_all_is_well(tablesafe: Run, safe: Path) -> None:
    outcome = tablesafe("run", safe / "job.toml", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


# -- the other commands -----------------------------------------------------------------------------------------------


def test_init_writes_a_job_that_runs(tablesafe: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(RECORDS)
    outcome = tablesafe("init", tmp_path / "data.csv", "-o", tmp_path / "job.toml")
    assert outcome.code == 0, outcome.err
    text = (tmp_path / "job.toml").read_text()
    assert 'respondent = "firm"' in text
    assert "[dimensions.region]" in text
    assert 'value = ["turnover"]' in text
    assert "# weight = " in text  # what is not used is there to be used
    done = tablesafe("run", tmp_path / "job.toml")
    assert done.code == 0, done.out + done.err
    assert done.out.count("SAFE") == 1
    again = tablesafe("init", tmp_path / "data.csv", "-o", tmp_path / "job.toml")
    assert again.code == 2
    assert "--overwrite" in again.err


MESSY = "firm;region;nace;turnover\n" + "".join(
    f"f{i};{'' if i in {7, 8, 9, 710, 711} else ('N1', 'N2', 'S1')[i % 3]};{1011 + i % 70};"
    f"{'' if i == 11 else -3.5 if i == 20 else 10 + i % 17}\n"
    for i in range(1470)
)


def test_init_takes_data_as_they_are(tablesafe: Run, tmp_path: Path) -> None:
    """Hierarchies beside the data, codes that look like numbers, gaps, and losses: no question stays open."""
    (tmp_path / "messy.csv").write_text(MESSY)
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\nS\n@S1\n@S2\n")
    codes = [str(1011 + i) for i in range(70)]
    groups = dict.fromkeys(code[:3] for code in codes)
    lines = [f"{group}\n" + "".join(f"@{code}\n" for code in codes if code[:3] == group) for group in groups]
    (tmp_path / "nace.hrc").write_text("".join(lines))
    outcome = tablesafe("init", tmp_path / "messy.csv", "-o", tmp_path / "job.toml")
    assert outcome.code == 0, outcome.err
    assert "5 records have no 'region': they count under the code 'missing'" in outcome.out
    assert "1 record has no 'turnover': it is left out" in outcome.out
    assert "1 record has a negative 'turnover'" in outcome.out
    text = (tmp_path / "job.toml").read_text()
    assert 'hierarchy = "region.hrc"' in text
    assert 'hierarchy = "nace.hrc"' in text
    done = tablesafe("run", tmp_path / "job.toml")
    assert done.code == 0, done.out + done.err
    assert done.out.count("SAFE") == 1


def test_init_sees_finished_cells_counts_and_levels(tablesafe: Run, tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text(GOOD_CELLS)
    assert tablesafe("init", tmp_path / "cells.csv", "-o", tmp_path / "a.toml").code == 0
    assert 'kind = "cells"' in (tmp_path / "a.toml").read_text()
    assert tablesafe("run", tmp_path / "a.toml").code == 0
    (tmp_path / "counts.csv").write_text("zone,town,sex,freq\nA,x,f,5\nA,x,m,6\nA,y,f,7\nA,y,m,8\nB,z,f,9\nB,z,m,9\n")
    assert tablesafe("init", tmp_path / "counts.csv", "-o", tmp_path / "b.toml").code == 0
    text = (tmp_path / "b.toml").read_text()
    assert 'columns = ["zone", "town"]' in text
    assert tablesafe("run", tmp_path / "b.toml").code == 0


def test_init_refuses_what_is_no_table(tablesafe: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a\n1\n2\n3\n")
    outcome = tablesafe("init", tmp_path / "data.csv", "-o", tmp_path / "job.toml")
    assert outcome.code == 2
    assert not (tmp_path / "job.toml").exists()


def test_tabulate_and_flag_take_options_instead_of_a_job(tablesafe: Run, folder: Path) -> None:
    options = ["--by", "region", "--by", "size", "--value", "turnover", "--respondent", "firm"]
    hierarchy = ["--hierarchy", f"region={folder / 'regions.csv'}"]
    tabulated = tablesafe("tabulate", folder / "data.csv", *options, *hierarchy, "--json")
    assert tabulated.document["cells"] == 21
    shown = tablesafe("tabulate", folder / "data.csv", *options)
    assert "550" in shown.out
    flagged = tablesafe("flag", folder / "data.csv", *options, "--rule", "threshold n=3", "--rule", "p_percent p=10")
    assert flagged.code == 0, flagged.err
    assert "threshold" in flagged.out
    written = tablesafe("flag", folder / "job.toml", "-o", folder / "flagged.xlsx")
    assert written.code == 0, written.err
    assert (folder / "flagged.xlsx").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tabulate", "data.csv"], "--by"),
        (["flag", "data.csv", "--by", "region"], "--rule"),
        (["flag", "data.csv", "--by", "region", "--rule", "p_percent p=ten"], "p_percent p=10"),
        (["flag", "data.csv", "--by", "region", "--rule", "p_percent p=1000"], "at most 100"),
        (["flag", "data.csv", "--by", "region", "--rule", "treshold"], "threshold"),
        (["tabulate", "data.csv", "--by", "region", "--hierarchy", "regions.csv"], "region=regions"),
        (["tabulate", "data.csv", "--by", "regoin"], "'region'"),
        (["tabulate", "job.toml", "--by", "region"], "job file says all"),
        (["tabulate", "data.csv", "--by", "region", "-o", "out.doc"], ".csv, .parquet and .xlsx"),
        (["audit", "data.csv"], "init"),
        (["audit", "job.toml", "--pattern", "none.csv"], "none.csv"),
        (["verify", "data.csv"], "damaged"),
        (["verify", "none.json"], "none.json"),
        (["convert", "data.csv", "data.jj"], "job file"),
        (["convert", "data.csv", "data.csv"], "same file"),
        (["convert", "data.csv", "data.sas"], ".sas"),
        (["convert", "none.csv", "x.parquet"], "none.csv"),
        (["rules", "p_prozent"], "p_percent"),
        (["rules", "convert", "threshold n=3"], "does not weigh"),
        (["rules", "plot", "p_percent p=10", "-o", "x.doc"], "svg"),
        (["demo", "-o", "data.csv"], "folder"),
        (["rnu", "job.toml"], "run"),
        (["run"], "JOB"),
    ],
)
def test_mistakes_at_the_prompt_get_a_hint(
    tablesafe: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(folder)
    outcome = tablesafe(*arguments)
    assert outcome.code in {1, 2}
    assert outcome.code == (1 if arguments[0] == "verify" else 2)
    assert said in outcome.err, outcome.err
    assert "Traceback" not in outcome.err
    assert "bug" not in outcome.err
    assert outputs(folder) == []


def test_audit_of_a_pattern_made_elsewhere(tablesafe: Run, folder: Path) -> None:
    pattern = "region,suppressed\nTotal,0\nN,1\nS,0\n"
    (folder / "cells.csv").write_text("region,value,n\nTotal,100,12\nN,60,2\nS,40,10\n")
    (folder / "pattern.csv").write_text(pattern)
    leaky = tablesafe("audit", folder / "cells.toml", "--pattern", folder / "pattern.csv")
    assert leaky.code == 1
    assert "(region=N)" in leaky.out
    (folder / "pattern.csv").write_text(pattern.replace("S,0", "S,1"))
    certificate = folder / "secret" / "proof.json"
    good = tablesafe("audit", folder / "cells.toml", "--pattern", folder / "pattern.csv", "--certificate", certificate)
    assert good.code == 0, good.out
    assert tablesafe("verify", certificate, "--json").document["status"] == "safe"
    found = tablesafe("audit", folder / "cells.toml", "--json", "-o", folder / "findings.csv")
    assert found.document["safe"] is False
    assert pl.read_csv(folder / "findings.csv").height == 1


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A JJ file of a flat table of three by three, with one sensitive cell."""
    rows, columns = ["T", "a", "b", "c"], ["T", "x", "y", "z"]
    inner = {("a", "x"): 5, ("a", "y"): 6, ("a", "z"): 20, ("b", "x"): 7, ("b", "y"): 8, ("b", "z"): 30}
    inner |= {("c", "x"): 9, ("c", "y"): 40, ("c", "z"): 50}
    value = {
        r + c: sum(v for (i, j), v in inner.items() if r in ("T", i) and c in ("T", j)) for r in rows for c in columns
    }
    names = list(value)
    kind = {name: ("u", 1) if name == "ax" else ("s", 0) for name in names}
    lines = [
        f"{i} {value[name]} {value[name]} {kind[name][0]} 0 1000 {kind[name][1]} {kind[name][1]} 0"
        for i, name in enumerate(names)
    ]
    sums = [[f"T{c}", *(r + c for r in rows[1:])] for c in columns] + [
        [f"{r}T", *(r + c for c in columns[1:])] for r in rows
    ]
    equations = [
        f"0 {len(cells)} : " + " ".join(f"{names.index(cell)} ({1 if k else -1})" for k, cell in enumerate(cells))
        for cells in sums
    ]
    monkeypatch.chdir(tmp_path)
    text = ["0", str(len(names)), *lines, str(len(equations)), *equations]
    (tmp_path / "grid.jj").write_text("\n".join(text) + "\n")
    return tmp_path / "grid.jj"


def test_suppress_protects_a_jj_file_and_proves_it(tablesafe: Run, grid: Path) -> None:
    done = tablesafe("suppress", grid, "-o", "public.csv")
    assert done.code == 0
    assert "1 cell is sensitive; 3 more are withheld to protect it." in done.out
    assert "What is withheld besides costs 21: proven to be the least." in done.out
    assert pl.read_csv("public.csv")["value"].null_count() == 4
    assert tablesafe("verify", "grid-internal/certificate.json.gz", "--release", "public.csv").code == 0


def test_suppress_takes_the_options_of_the_method(tablesafe: Run, grid: Path) -> None:
    done = tablesafe("suppress", grid, "--cost", "inverse", "--algorithm", "network", "--seed", "3", "--json")
    assert done.code == 0
    assert done.document["solution"]["status"] in {"optimal", "feasible"}  # type: ignore[index]
    assert done.document["by_status"]["complementary"] == 3  # type: ignore[index]
    wrong = tablesafe("suppress", grid, "--algorithm", "magic")
    assert wrong.code == 2
    assert "'magic'" in wrong.err
    assert tablesafe("suppress", grid, "--keep", "nowhere.csv").code == 2


def test_suppress_repairs_a_pattern_and_measures_stability(tablesafe: Run, grid: Path) -> None:
    Path("mine.csv").write_text("cell,suppressed\n5,1\n7,1\n13,1\n")
    done = tablesafe("suppress", grid, "--keep", "mine.csv", "--previous", "mine.csv")
    assert done.code == 0
    assert "Of 2 complementary cells of last period 2 are kept (100%)" in done.out
    statuses = pl.read_csv("grid-internal/cells.csv")["status"].to_list()
    assert [statuses[cell] for cell in (5, 7, 13)] == ["sensitive", "given", "given"]


def test_suppress_takes_apriori_information(tablesafe: Run, grid: Path) -> None:
    Path("known.hst").write_text("5;pl;3;4\n6;p\n9;c;500\n")
    assert tablesafe("suppress", grid, "--apriori", "known.hst").code == 0
    cells = pl.read_csv("grid-internal/cells.csv")
    assert cells.row(5, named=True)["upper level"] == 4
    assert cells.row(6, named=True)["status"] == "published"
    assert cells.row(9, named=True)["cost"] == 500
    assert cells.row(9, named=True)["status"] == "published"


def test_every_option_of_suppress_can_be_given_at_the_prompt() -> None:
    """What the method offers, the command offers: nothing is forgotten, nothing is invented."""
    wanted = set(options(Suppress))
    assert {spec.name for spec in dataclasses.fields(Choices)} == wanted


def test_the_prompt_helps_with_the_words_of_the_method() -> None:
    """The command must not load the method to show its help, so that its words stand there twice: they are the same."""
    declared = {name: spec.metadata["help"] for name, spec in options(Suppress).items()}
    shown = {
        name: next(each.help for each in hint.__metadata__ if isinstance(each, Parameter))
        for name, hint in get_type_hints(Choices, include_extras=True).items()
    }
    assert shown == declared


def test_help_flows_with_the_terminal(tablesafe: Run) -> None:
    """Lines end where the terminal does, not where those of the source file did."""
    for command in ("run", "suppress", "convert", "serve"):
        lines = tablesafe(command, "--help").out.splitlines()
        paragraphs = lines[1 : next(i for i, line in enumerate(lines) if line.startswith("╭"))]
        for line, below in pairwise(paragraphs):
            if line and below:
                width = max(map(len, paragraphs))
                assert len(line.rstrip()) + 1 + len(below.split()[0]) > width - 2, (line, below)


def test_init_knows_the_words_of_other_languages(tablesafe: Run, tmp_path: Path) -> None:
    rows = [f"F{i:03d};K{i // 3};{'NS'[i % 2]};{'ABC'[i % 3]};{1 + i % 4};{100 + 7 * i}" for i in range(60)]
    (tmp_path / "d.csv").write_text("Firma Nr.;Konzern;Region;Branche;Gewicht;Umsatz\n" + "\n".join(rows) + "\n")
    assert tablesafe("init", tmp_path / "d.csv", "-o", tmp_path / "job.toml").code == 0
    job = load_job(tmp_path / "job.toml")
    assert (job.source.respondent, job.source.holding, job.source.weight) == ("Firma Nr.", "Konzern", "Gewicht")
    assert set(job.dimensions) == {"Region", "Branche"}


def test_convert_goes_round(tablesafe: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for source, target in [
        ("job.toml", "a.jj"), ("a.jj", "b.csv"), ("a.jj", "c.jj"), ("cells.toml", "d.tab"), ("d.tab", "e.jj"),
        ("d.tab", "f.xlsx"), ("data.csv", "g.parquet"), ("g.parquet", "h.xlsx"), ("h.xlsx", "i.csv"),
        ("regions.csv", "j.hrc"), ("j.hrc", "k.csv"), ("k.csv", "l.hrc"),
    ]:  # fmt: skip
        outcome = tablesafe("convert", source, target)
        assert outcome.code == 0, f"{source} → {target}: {outcome.err}"
    assert (folder / "a.jj").read_text() == (folder / "c.jj").read_text()
    assert (folder / "j.hrc").read_text() == (folder / "l.hrc").read_text()
    assert pl.read_csv("i.csv").equals(pl.read_csv("data.csv"))


def test_the_rules_are_listed_converted_and_plotted(tablesafe: Run, tmp_path: Path) -> None:
    assert "p_percent" in tablesafe("rules").out
    assert "coalition" in tablesafe("rules", "p_percent").out
    found = tablesafe("rules", "convert", "p_percent p=10", "--json").document
    assert found["subadditive"] is True
    assert tablesafe("rules", "plot", "p_percent p=10", "-o", tmp_path / "x.svg").code == 0
    assert (tmp_path / "x.svg").read_text().startswith("<?xml")


def test_debug_shows_where_it_failed(tablesafe: Run, folder: Path) -> None:
    outcome = tablesafe("run", folder / "none.toml", "--debug")
    assert outcome.code == 2
    assert "Traceback" in outcome.err


def test_the_demo_is_safe_and_says_where_its_files_are(
    tablesafe: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    copy_demo(folder)
    quick = (folder / "job.toml").read_text().replace("time_limit_s = 20", "time_limit_s = 1")
    (folder / "job.toml").write_text(quick)  # what is there already is not overwritten
    outcome = tablesafe("demo", "-o", folder)
    assert outcome.code == 0, outcome.out + outcome.err
    assert (folder / "job.toml").read_text() == quick
    assert outcome.out.count("SAFE") == 1
    assert str(folder / "job.toml") in outcome.out
    release, proof = folder / "public" / "revenue.csv", folder / "internal" / "certificate.json.gz"
    assert tablesafe("verify", proof, "--release", release).code == 0
    total = pl.read_csv(release).filter((pl.col("state") == "US") & (pl.col("month") == "1996"))
    assert total["value"].max() == total["value"].sum() / 2  # the sectors add up to the total


# -- the house --------------------------------------------------------------------------------------------------------


def test_help_is_quick_because_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from tablesafe.cli.app import call; call(['--help']); call(['flag', '--help']);"
        "sys.exit(' '.join({'numba', 'highspy', 'scipy', 'polars', 'duckdb', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert "Exit codes" in done.stdout


def test_output_that_nobody_reads_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tablesafe", "rules"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


def test_an_interrupt_leaves_nothing_behind(tablesafe: Run, safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tablesafe.pipeline.running.write_internal", interrupted)
    outcome = tablesafe("run", safe / "job.toml")
    assert outcome.code == 130
    assert "Interrupted" in outcome.err
    assert outputs(safe) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_does_not_break_off_what_the_first_says(
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever was tried before in this process
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, heard))

    def interrupted(*_: object, **options: object) -> None:
        signal.raise_signal(number)

    def told_late(*args: Any, **options: Any) -> Exit:
        signal.raise_signal(number)
        return report_error(*args, **options)

    module = sys.modules[call.__module__]  # its name in the package is that of the app
    monkeypatch.setattr(module, "app", interrupted)
    monkeypatch.setattr(module, "report_error", told_late)
    before = signal.getsignal(signal.SIGTERM)
    assert call(["rules"]) == Exit.INTERRUPTED
    assert "Interrupted: nothing was written." in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_bug_is_called_a_bug(tablesafe: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablesafe.pipeline.running.build_problem", lambda *_: 1 / 0)
    outcome = tablesafe("run", folder / "job.toml")
    assert outcome.code == 3
    assert "--debug" in outcome.err
