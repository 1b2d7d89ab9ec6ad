"""Jobs from end to end: what goes in comes out, whole or not at all, and without a secret."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, InvalidInput, InvalidProblem, InvalidTable
from tablesafe.core.linking import RESPONSE
from tablesafe.core.release import Status
from tablesafe.io.jj import write_jj
from tablesafe.job import Job, load_job
from tablesafe.job.checks import input_files
from tablesafe.job.model import Dimension, Output, ProblemOptions, Response, RunOptions, Source, TableOptions
from tablesafe.methods import METHODS, Pattern, PublishAll, Suppress, Withhold, protect
from tablesafe.pipeline import Result, build_problem, build_table, run
from tablesafe.pipeline.columns import extra_columns
from tablesafe.pipeline.outputs import together
from tablesafe.report.progress import Event
from tablesafe.rules import AnyOf, Dominance, Levels, Manual, PPercent, Threshold
from tablesafe.rules.needs import contributors_needed
from tablesafe.verify import verify

CELLS = """\
region,size,value,n,flag,bound
Total,Total,1000,40,0,5000
Total,small,400,20,0,5000
Total,large,600,20,0,5000
N,Total,507,21,0,5000
N,small,107,2,1,300
N,large,400,19,0,5000
S,Total,493,19,0,5000
S,small,293,18,0,5000
S,large,200,2,0,700
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table of cells."""
    (tmp_path / "cells.csv").write_text(CELLS)
    return tmp_path


def job_in(folder: Path, **changes: Any) -> Job:
    """A job over the cells, with some parts changed."""
    parts: dict[str, Any] = {
        "source": Source(file="cells.csv", kind="cells", count="n"),
        "dimensions": {"region": Dimension(), "size": Dimension()},
        "response": Response(value=("value",)),
        "rules": (Threshold(n=3),),
        "method": Withhold(),
        "output": Output(release=("public/table.csv",), report="public/report.html"),
        **changes,
    }
    return Job(**parts, path=folder / "job.toml")


def files_in(folder: Path) -> set[str]:
    """Every file, hidden ones as well."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# -- all or nothing ---------------------------------------------------------------------------------------------------


def test_files_appear_together(tmp_path: Path) -> None:
    with together() as outputs:
        outputs.place(tmp_path / "a" / "one.txt").write_text("1")
        outputs.place(tmp_path / "two.txt", private=True).write_text("2")
        assert not (tmp_path / "a" / "one.txt").exists()
    assert files_in(tmp_path) == {"a/one.txt", "two.txt"}
    assert stat.S_IMODE((tmp_path / "two.txt").stat().st_mode) == 0o600
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a" / "one.txt").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "old.txt").write_text("before")

    def fail() -> None:
        with together() as outputs:
            outputs.place(tmp_path / "old.txt").write_text("after")
            outputs.place(tmp_path / "deep" / "er" / "new.txt").write_text("new")
            raise error

    with pytest.raises(error):
        fail()
    assert files_in(tmp_path) == {"old.txt"}
    assert (tmp_path / "old.txt").read_text() == "before"
    assert not (tmp_path / "deep").exists()


def test_a_rename_that_fails_undoes_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("before")

    def fail() -> None:
        with together() as outputs:
            outputs.place(tmp_path / "old.txt").write_text("after")
            outputs.place(tmp_path / "second.txt").write_text("new")
            outputs.place(tmp_path / "third.txt").write_text("never")
            (tmp_path / "third.txt").mkdir()  # somebody puts a folder there meanwhile

    with pytest.raises(InvalidFile, match=r"third\.txt"):
        fail()
    assert files_in(tmp_path) == {"old.txt"}
    assert (tmp_path / "old.txt").read_text() == "before"


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="folder"), together() as outputs:
        outputs.place(tmp_path)


def test_a_job_that_cannot_write_fails_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "public").write_text("a file where a folder should be")
    monkeypatch.setattr("tablesafe.pipeline.running.build_problem", lambda *_: pytest.fail("worked in vain"))
    with pytest.raises(InvalidFile, match="public"):
        run(job_in(folder))


# -- a run ------------------------------------------------------------------------------------------------------------


def test_an_open_release_is_withheld_unless_the_user_insists(folder: Path) -> None:
    result = run(job_in(folder))
    assert not result.safe
    assert not result.published
    assert not (folder / "public").exists()
    assert {path.name for path in result.files} >= {"report.html", "findings.json", "cells.csv"}
    forced = run(job_in(folder), force=True)
    assert forced.published
    assert (folder / "public" / "table.csv").exists()


def safe_job(folder: Path) -> Job:
    """The cells with a pattern that hides what must be hidden."""
    (folder / "pattern.csv").write_text(
        "region,size,status\nTotal,Total,published\nTotal,small,published\nTotal,large,published\n"
        "N,Total,published\nN,small,sensitive\nN,large,complementary\nS,Total,published\nS,small,complementary\n"
        "S,large,sensitive\n"
    )
    return job_in(folder, method=Pattern(file="pattern.csv"), rules=(Threshold(n=3, range_percent=17.3),))


def test_a_safe_release_comes_with_its_proof(folder: Path) -> None:
    result = run(safe_job(folder))
    assert result.safe, result.findings.text()
    table = folder / "public" / "table.csv"
    assert result.files[0] == table
    assert verify(folder / "internal" / "certificate.json.gz", release=table).safe
    frame = pl.read_csv(table)
    assert frame.columns == ["region", "size", "value", "status"]
    assert frame["value"].null_count() == 4
    words = result.release.status[result.release.suppressed]
    assert set(words.tolist()) == {Status.SENSITIVE, Status.COMPLEMENTARY}


def test_no_secret_reaches_what_is_published(folder: Path) -> None:
    (folder / "cells.csv").write_text(CELLS)
    output = Output(release=("public/t.csv", "public/t.xlsx"), report="public/r.html")
    result = run(replace(safe_job(folder), output=output))
    published = pl.read_csv(folder / "public" / "t.csv")
    assert set(published["status"]) == {"published", "confidential"}
    page = (folder / "public" / "r.html").read_text()
    for text in (page, (folder / "public" / "t.csv").read_text()):
        for secret in ("17.3", "107", "293", "witness", "complementary", "Sensitive</th>", str(folder)):
            assert secret not in text, secret
    assert "17.3" in (folder / "internal" / "report.html").read_text()
    assert stat.S_IMODE((folder / "internal").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (folder / "internal").iterdir())
    assert {path.parent.name for path in result.files} == {"public", "internal"}


class _Page(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [str(value) for name, value in attrs if name in {"src", "href", "srcset", "action"}]


@pytest.mark.parametrize("page", ["public/report.html", "internal/report.html"])
def test_the_report_needs_nothing_else_and_escapes_what_it_shows(folder: Path, page: str) -> None:
    run(replace(safe_job(folder), title="<script>alert('&')</script>"))
    text = (folder / page).read_text()
    parsed = _Page()
    parsed.feed(text)
    assert all(address.startswith(("#", "data:")) for address in parsed.loads)
    assert parsed.tags.count("script") == 1  # its own, which folds the table
    assert "http:" not in text
    assert "https:" not in text
    assert text.count("url(") == text.count("url(#")
    assert "&lt;script&gt;" in text


def test_events_tell_what_happens(folder: Path) -> None:
    events: list[Event] = []
    run(job_in(folder), on_event=events.append)
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages == ["tabulate", "rules", "protect", "audit", "attack", "write"]


def test_the_last_word_on_the_cost_is_what_the_answer_costs(folder: Path) -> None:
    """What is withheld because of insiders, after the search, is in the last report of it too; no bound is above."""
    counts = [[1, 9, 8, 7], [9, 1, 6, 5], [2, 7, 7, 1], [6, 8, 1, 9]]
    rows = [f"{r}{i},{r},{c},{10 * (i + 1) + 3 * j}" for i, r in enumerate("ABCD") for j, c in enumerate("wxyz")
            for _ in range(counts[i][j])]  # fmt: skip
    text = "firm,row,column,value\n" + "\n".join(f"f{n}{row[1:]}" for n, row in enumerate(rows)) + "\n"
    (folder / "grid.csv").write_text(text)
    job = Job(
        source=Source(file="grid.csv", respondent="firm"),
        dimensions={"row": Dimension(), "column": Dimension()},
        response=Response(value=("value",)),
        rules=(Threshold(n=3),),
        method=Suppress(time_limit_s=2),
        output=Output(release=("public/t.csv",)),
        path=folder / "job.toml",
    )
    told: list[Event] = []
    result = run(job, on_event=told.append)
    costs = [event.incumbent for event in told if event.incumbent is not None]
    assert result.release.solution is not None
    assert costs[-1] == result.release.solution.objective > min(costs)
    assert all(event.bound <= event.incumbent for event in told if event.incumbent is not None and event.bound)
    assert told[-1].stage == "write"


def test_the_facts_name_no_cell(folder: Path) -> None:
    result = run(job_in(folder))
    facts = result.facts()
    assert facts["cells"] == 9
    assert facts["sensitive"] == 2
    assert facts["status"] == "open"
    assert set(facts["seconds"]) == {"table", "protect", "audit", "attack", "write"}
    assert "N" not in facts.values()


def test_run_takes_a_path(folder: Path) -> None:
    from tablesafe.job import dump_job

    (folder / "job.toml").write_text(dump_job(job_in(folder)))
    assert load_job(folder / "job.toml") == job_in(folder)
    assert isinstance(run(str(folder / "job.toml")), Result)
    with pytest.raises(InvalidInput, match="no file"):
        run(folder / "batch.arb")


def test_two_runs_write_the_same_release(folder: Path) -> None:
    run(safe_job(folder))
    first = {name: (folder / name).read_bytes() for name in ("public/table.csv", "internal/certificate.json.gz")}
    run(safe_job(folder))
    assert first == {name: (folder / name).read_bytes() for name in first}


def test_the_result_does_not_depend_on_where_it_was_computed(folder: Path) -> None:
    here = run(safe_job(folder)).findings
    there = run(replace(safe_job(folder), run=RunOptions(executor="processes", workers=2))).findings
    assert here.safe
    assert there.safe
    assert (here.lower == there.lower).all()
    assert (here.upper == there.upper).all()


# -- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.hrc", "A\n@A1\n@A2\nB\n@B1\n@B2\n", {}),
        ("t.hrc", "A\n..A1\n..A2\nB\n..B1\n..B2\n", {"indent": ".."}),
        ("t.csv", "parent,child\nTotal,A\nTotal,B\nA,A1\nA,A2\nB,B1\nB,B2\n", {}),
        ("t.csv", "parent,child\nA,A1\nA,A2\nB,B1\nB,B2\n", {}),
        ("t.csv", "up;down\nA;A1\nA;A2\nB;B1\nB;B2\n", {"kind": "pairs", "columns": ("up", "down")}),
        ("t.csv", "top,leaf\nA,A1\nA,A2\nB,B1\nB,B2\n", {}),
        ("t.csv", "x,top,leaf\n1,A,A1\n2,A,A2\n3,B,B1\n4,B,B2\n", {"columns": ("top", "leaf")}),
        ("t.csv", "code\nA1\nA2\nB1\nB2\n", {"kind": "prefixes", "lengths": (1,)}),
        (None, "", {"kind": "prefixes"}),
        (None, "", {"lengths": (1,)}),
        (None, "", {"equations": ("Total = A + B", "A = A1 + A2", "B = B1 + B2")}),
    ],
)
def test_every_way_to_write_a_hierarchy_gives_the_same_tree(
    tmp_path: Path, name: str | None, content: str, options: dict[str, Any]
) -> None:
    rows = {"Total": 10, "A": 3, "B": 7, "A1": 1, "A2": 2, "B1": 3, "B2": 4}
    (tmp_path / "cells.csv").write_text("code,value\n" + "".join(f"{code},{value}\n" for code, value in rows.items()))
    if name is not None:
        (tmp_path / name).write_text(content)
    table = build_table(
        job_in(
            tmp_path,
            source=Source(file="cells.csv", kind="cells"),
            dimensions={"code": Dimension(hierarchy=name, **options)},
        )
    )
    assert {str(equation) for equation in table.dimensions["code"].as_equations()} == {
        "Total = A + B", "A = A1 + A2", "B = B1 + B2",
    }  # fmt: skip
    assert table.equations.shape[0] == 3


def test_labels_are_shown_beside_the_codes(folder: Path) -> None:
    (folder / "labels.csv").write_text("code,label\nN,North\nS,South\n")
    dimensions = {"region": Dimension(labels="labels.csv"), "size": Dimension()}
    run(job_in(folder, dimensions=dimensions), force=True)
    frame = pl.read_csv(folder / "public" / "table.csv")
    assert set(frame["region label"]) == {"Total", "North", "South"}


def test_responses_are_tied_together_and_their_total_is_computed(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("region,home,export\nTotal,30,12\nN,10,5\nS,20,7\n")
    job = job_in(
        tmp_path,
        source=Source(file="cells.csv", kind="cells"),
        dimensions={"region": Dimension()},
        response=Response(value=("home", "export"), equations=("all = home + export",)),
    )
    table = build_table(job)
    assert len(table) == 9
    assert table.value[table.index(region="N", response="all")] == 15
    assert RESPONSE in table.dimensions
    assert not table.residual().any()


def test_tables_of_cells_are_linked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("region,value\nTotal,30\nN,10\nS,20\n")
    (tmp_path / "b.csv").write_text("size,value\nTotal,30\nsmall,12\nlarge,18\n")
    job = job_in(
        tmp_path,
        source=Source(file="a.csv", kind="cells"),
        dimensions={"region": Dimension(), "size": Dimension()},
        tables=(TableOptions(dimensions=("region",)), TableOptions(dimensions=("size",), file="b.csv")),
    )
    assert len(build_table(job)) == 5
    (tmp_path / "b.csv").write_text("size,value\nTotal,31\nsmall,12\nlarge,19\n")
    with pytest.raises(InvalidTable, match="disagree"):
        build_table(job)


def test_records_make_the_linked_tables_asked_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{i},{rng.choice(['N', 'S'])},{rng.choice(['s', 'l'])},{rng.integers(1, 99)}" for i in range(60)]
    (tmp_path / "r.csv").write_text("firm,region,size,v\n" + "\n".join(rows) + "\n")
    job = job_in(
        tmp_path,
        source=Source(file="r.csv", respondent="firm"),
        response=Response(value=("v",)),
        tables=(TableOptions(dimensions=("region",)), TableOptions(dimensions=("size",))),
    )
    table = build_table(job)
    assert len(table) == 5
    assert table.count is not None
    assert table.count[table.index()] == 60


def test_a_column_may_have_another_name_than_its_dimension(folder: Path) -> None:
    job = job_in(folder, dimensions={"where": Dimension(column="region"), "size": Dimension()})
    assert list(build_table(job).dimensions) == ["where", "size"]
    clash = job_in(folder, dimensions={"size": Dimension(column="region"), "region": Dimension(column="size")})
    with pytest.raises(InvalidTable, match="another name"):
        build_table(clash)


# -- problems ---------------------------------------------------------------------------------------------------------


def test_an_attacker_may_know_values_to_within_some_percent(folder: Path) -> None:
    problem = build_problem(job_in(folder, problem=ProblemOptions(within_percent=50.0)))
    assert np.allclose(problem.lower, 0.5 * problem.table.value)
    assert np.allclose(problem.upper, 1.5 * problem.table.value)


def test_bounds_of_single_cells_in_a_file_are_not_announced_to_all(folder: Path) -> None:
    problem = build_problem(job_in(folder, problem=ProblemOptions(within_percent=50.0)))
    write_jj(problem, folder / "cells.jj")
    told = {"source": Source(file="cells.jj"), "dimensions": {}, "response": Response(), "rules": ()}
    assert len(build_problem(job_in(folder, **told)).table) == len(problem.table)
    with pytest.raises(InvalidProblem, match="gives bounds for single cells, which some attackers know"):
        build_problem(job_in(folder, **told, output=Output(release=("public/table.csv",), intervals=True)))


def test_bounds_may_be_numbers_or_columns(folder: Path) -> None:
    problem = build_problem(job_in(folder, problem=ProblemOptions(lower=10.0, upper="bound")))
    cell = problem.table.index(region="N", size="small")
    assert (problem.lower[cell], problem.upper[cell]) == (10.0, 300.0)
    with pytest.raises(InvalidProblem, match="outside the attacker's"):
        build_problem(job_in(folder, problem=ProblemOptions(upper=100.0)))


def test_cells_are_chosen_by_codes_or_by_a_column(folder: Path) -> None:
    options = ProblemOptions(
        frozen=({"size": "Total"},),
        suppressed=({"region": ("N", "S"), "size": "large"},),
        withheld=({"region": "S", "size": "small"},),
        waived="flag",
    )
    problem = build_problem(job_in(folder, problem=options))
    table = problem.table

    def named(mask: Any) -> set[str]:
        return {table.describe(int(cell)) for cell in np.flatnonzero(mask)}

    assert named(problem.frozen) == {"(region=Total, size=Total)", "(region=N, size=Total)", "(region=S, size=Total)"}
    assert named(problem.suppressed) == {"(region=N, size=large)", "(region=S, size=large)"}
    assert named(problem.withheld) == {"(region=S, size=small)"}
    assert [table.describe(int(i)) for i in problem.sensitive] == ["(region=S, size=large)"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"frozen": ({"region": "X"},)}, "X"),
        ({"frozen": ({"size": "small", "region": "N"},)}, "sensitive, but frozen"),
        ({"frozen": ({"nowhere": "X"},)}, "nowhere"),
        ({"waived": "nocolumn"}, "nocolumn"),
        ({"cost": "nocolumn"}, "nocolumn"),
    ],
)
def test_options_that_do_not_fit_the_table_are_refused(folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        build_problem(job_in(folder, problem=ProblemOptions(**options)))


@pytest.mark.parametrize(
    ("cost", "expected"),
    [("value", 107.0), ("unit", 1.0), ("count", 2.0), ("log", float(np.log1p(107.0))), ("bound", 300.0)],
)
def test_costs(folder: Path, cost: str, expected: float) -> None:
    problem = build_problem(job_in(folder, problem=ProblemOptions(cost=cost)))
    assert problem.cost[problem.table.index(region="N", size="small")] == expected


def test_a_cost_of_counts_needs_counts(folder: Path) -> None:
    source = Source(file="cells.csv", kind="cells")
    job = job_in(folder, source=source, rules=(Manual(cells="flag"),), problem=ProblemOptions(cost="count"))
    with pytest.raises(InvalidProblem, match="count"):
        build_problem(job)


def test_zeros_can_be_frozen(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("region,value,n\nTotal,9,9\nN,9,9\nS,0,0\n")
    job = job_in(tmp_path, dimensions={"region": Dimension()}, problem=ProblemOptions(freeze_zeros=True))
    problem = build_problem(job)
    assert problem.frozen.tolist() == [False, False, True]


def test_statuses_of_the_source_and_of_an_apriori_file(folder: Path) -> None:
    (folder / "cells.csv").write_text("region,value,what\nTotal,100,published\nN,60,sensitive\nS,40,suppressed\n")
    source = Source(file="cells.csv", kind="cells", status="what")
    job = job_in(folder, source=source, dimensions={"region": Dimension()}, rules=())
    problem = build_problem(job)
    assert [problem.table.describe(int(i)) for i in problem.sensitive] == ["(region=N)"]
    assert problem.sensitivity.upper[problem.sensitive].tolist() == [12.0]
    assert problem.suppressed.sum() == 1
    (folder / "known.hst").write_text("N;s\nS;u\n")
    informed = build_problem(replace(job, problem=ProblemOptions(apriori="known.hst", manual_range=50.0)))
    assert [informed.table.describe(int(i)) for i in informed.sensitive] == ["(region=S)"]
    assert informed.sensitivity.upper[informed.sensitive].tolist() == [20.0]


def test_of_several_apriori_files_the_later_ones_say_what_counts(folder: Path) -> None:
    (folder / "cells.csv").write_text("region,value\nTotal,100\nN,60\nS,30\nW,10\n")
    (folder / "known.hst").write_text("N;u\nS;u\n")
    (folder / "more.csv").write_text("region,status,cost\nS,published,7\nW,sensitive,\n")
    job = job_in(
        folder, source=Source(file="cells.csv", kind="cells"), dimensions={"region": Dimension()}, rules=(),
        problem=ProblemOptions(apriori=("known.hst", "more.csv"), scheme="words"),
    )  # fmt: skip
    problem = build_problem(job)
    assert [problem.table.describe(int(i)) for i in problem.sensitive] == ["(region=N)", "(region=W)"]
    assert problem.cost[problem.table.index(region="S")] == 7
    turned = build_problem(replace(job, problem=replace(job.problem, apriori=("more.csv", "known.hst"))))
    assert turned.sensitivity.mask[turned.table.index(region="S")]
    assert [name for _, name in input_files(job)] == ["cells.csv", "known.hst", "more.csv"]


SDMX = ["F", "F", "F", "F", "A", "F", "F", "F", "D"]


def with_statuses(folder: Path, statuses: list[str], name: str = "what") -> None:
    frame = pl.read_csv(folder / "cells.csv").with_columns(pl.Series(name, statuses))
    frame.write_csv(folder / "cells.csv")


def test_the_status_column_of_a_job_has_one_vocabulary(folder: Path) -> None:
    with_statuses(folder, SDMX)
    source = Source(file="cells.csv", kind="cells", status="what")
    with pytest.raises(InvalidFile, match=r"(?s)'what' of cells.csv can be read in more than one.*scheme = in a job"):
        build_problem(job_in(folder, source=source, rules=()))
    problem = build_problem(job_in(folder, source=replace(source, scheme="sdmx-conf"), rules=()))
    assert np.flatnonzero(problem.sensitivity.mask).tolist() == [4]
    assert np.flatnonzero(problem.suppressed).tolist() == [8]
    with_statuses(folder, SDMX, "CONF_STATUS")
    named = build_problem(job_in(folder, source=replace(source, status="CONF_STATUS"), rules=()))
    assert (named.sensitivity.mask == problem.sensitivity.mask).all()


def test_a_status_takes_away_nothing_that_a_rule_found(folder: Path) -> None:
    """Cells of two contributors that somebody calls free stay sensitive; who wants to publish them says so."""
    with_statuses(folder, ["F"] * 9)
    source = Source(file="cells.csv", kind="cells", count="n", status="what", scheme="sdmx-conf")
    problem = build_problem(job_in(folder, source=source))
    assert np.flatnonzero(problem.sensitivity.mask).tolist() == [4, 8]
    waived = ProblemOptions(waived=({"region": "N", "size": "small"}, {"region": "S", "size": "large"}))
    assert not build_problem(job_in(folder, source=source, problem=waived)).sensitivity.mask.any()


def test_statuses_that_call_nothing_sensitive_prove_nothing(folder: Path) -> None:
    """A pattern of other people's, with no rule beside it: there is nothing to protect, and it would be called safe."""
    with_statuses(folder, ["published"] * 4 + ["confidential"] + ["published"] * 4)
    source = Source(file="cells.csv", kind="cells", status="what")
    with pytest.raises(InvalidProblem, match=r"(?s)call none sensitive.*add \[\[rules\]\]"):
        build_problem(job_in(folder, source=source, rules=()))
    assert build_problem(job_in(folder, source=replace(source, count="n"))).sensitivity.mask.any()


@pytest.mark.parametrize(
    ("name", "sensitive"), [("sensitive", True), ("is_primary", True), ("Unsafe", True), ("suppressed", False)]
)
@pytest.mark.parametrize("entries", [("1", "0"), ("yes", "no"), ("true", "")])
def test_a_column_of_what_is_sensitive_says_so(
    folder: Path, name: str, sensitive: bool, entries: tuple[str, str]
) -> None:
    """Beside a rule its cells were only withheld, and whoever could work them out did no harm."""
    yes, no = entries
    with_statuses(folder, [no, yes, *[no] * 7], name)
    source = Source(file="cells.csv", kind="cells", count="n", status=name)
    problem = build_problem(job_in(folder, source=source))
    assert problem.sensitivity.mask[1] == sensitive
    assert problem.suppressed[1] != sensitive
    assert problem.sensitivity.mask[[4, 8]].all()


def test_a_pattern_of_a_job_has_one_vocabulary(folder: Path) -> None:
    cells = pl.read_csv(folder / "cells.csv").select("region", "size").with_columns(status=pl.Series(SDMX))
    cells.write_csv(folder / "pattern.csv")
    with pytest.raises(InvalidFile, match="more than one way"):
        run(job_in(folder, method=Pattern(file="pattern.csv")))
    result = run(job_in(folder, method=Pattern(file="pattern.csv", scheme="sdmx-conf")))
    assert np.flatnonzero(result.release.suppressed).tolist() == [4, 8]
    assert not result.safe
    result = run(job_in(folder, method=Suppress(keep="pattern.csv", scheme="sdmx-conf", time_limit_s=2)))
    assert result.safe


def test_columns_and_contributors_that_rules_need() -> None:
    rules = (
        AnyOf(rules=(Dominance(n=3, k=80.0), Manual(cells="byhand", lower="low"))),
        Levels(of=PPercent(coalition=4)),
    )
    job = Job(source=Source(file="x.csv"), rules=rules, problem=ProblemOptions(upper="bound", cost="price"))
    assert set(extra_columns(job)) == {"byhand", "low", "bound", "price"}
    assert contributors_needed(rules) == 5


def test_a_problem_file_runs_as_it_is(instances: Path, tmp_path: Path) -> None:
    job = Job(
        source=Source(file=str(instances / "jj" / "targus.jj")),
        output=Output(release=("public/t.csv",)),
        path=tmp_path / "job.toml",
    )
    result = run(job, force=True)
    assert result.facts()["cells"] == 162
    assert result.facts()["sensitive"] == 13


def test_hierarchies_that_lack_something_say_so(folder: Path) -> None:
    for options in ({"kind": "pairs"}, {"kind": "hrc"}, {"kind": "levels"}):
        with pytest.raises(InvalidHierarchy, match="names no hierarchy file"):
            build_table(job_in(folder, dimensions={"region": Dimension(**options), "size": Dimension()}))  # type: ignore[arg-type]
    (folder / "h.csv").write_text("parent,child\nTotal,N\nTotal,\n")
    with pytest.raises(InvalidHierarchy, match="line 3"):
        build_table(job_in(folder, dimensions={"region": Dimension(hierarchy="h.csv"), "size": Dimension()}))


# -- methods ----------------------------------------------------------------------------------------------------------


def test_methods_have_names_help_and_releases(folder: Path) -> None:
    problem = build_problem(job_in(folder))
    assert {name: kind.name for name, kind in METHODS.items()} == {name: name for name in METHODS}
    assert protect(problem, PublishAll()).suppressed.sum() == 0
    assert protect(problem, Withhold()).suppressed.tolist() == problem.sensitivity.mask.tolist()
    with pytest.raises(InvalidInput, match="not read yet"):
        protect(problem, Pattern(file="x.csv"))
