"""Cells one by one: found, sorted, told of; who protects whom; what if; and decisions that are part of the job."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browsing import firms
from running import DRAFT, FIRMS, give, in_session

from tablesafe import pipeline
from tablesafe.audit.audit import Audit
from tablesafe.audit.explain import protected_by, protectors_of
from tablesafe.audit.verdict import How, Opening, Word
from tablesafe.core.errors import TablesafeError
from tablesafe.io.decisions import Decision
from tablesafe.pipeline import Result
from tablesafe.web.child import Desk
from tablesafe.web.desk import kept_at, result_of
from tablesafe.web.long_tasks import _keep
from tablesafe.web.sessions import Session, Sessions
from tablesafe.web.tasks import cells as asking
from tablesafe.web.tasks.windows import layout_of, place, whole_of, window

JOB = """[source]
file = "firms.csv"
respondent = "firm"
[dimensions.nace]
kind = "prefixes"
lengths = [1]
[dimensions.region]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
[[rules]]
rule = "p_percent"
p = 25
"""
OF = {"run": "run-1"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("finished")
    run = folder / "runs" / "run-1"
    run.mkdir(parents=True)
    firms(run / "firms.csv")
    (run / "job.toml").write_text(JOB)
    _keep(kept_at(run), pipeline.run(run / "job.toml"))
    return Desk(folder, lambda event: None)


@pytest.fixture(scope="module")
def result(desk: Desk) -> Result:
    return result_of(desk, "run-1")


def listed(desk: Desk, truth: bool = True, **asked: Any) -> dict[str, Any]:
    return asking.found(desk, {"of": OF, "list": asked, "truth": truth}, [0, 400, 0, 9])


def test_cells_are_found_by_code_and_by_status(desk: Desk, result: Result) -> None:
    table = result.problem.table
    assert listed(desk)["count"][0] == len(table)
    north = listed(desk, text="north A0")
    assert north["count"][0] == 2
    assert all("North" in row["text"] and "A0" in row["text"] for row in north["rows"])
    assert listed(desk, text="nowhere")["count"][0] == 0
    assert listed(desk, kind="sensitive")["count"][0] == len(result.problem.sensitive)
    assert listed(desk, kind="withheld")["count"][0] == int(result.release.suppressed.sum())


def test_every_column_sorts_both_ways(desk: Desk, result: Result) -> None:
    for key in asking.COLUMNS:
        up, down = ([row["key"] for row in listed(desk, sort=key, descending=way)["rows"]] for way in (False, True))
        assert sorted(up) == sorted(down)
        if key == "value":
            assert (np.diff(result.problem.table.value[up]) >= 0).all()
            assert (np.diff(result.problem.table.value[down]) <= 0).all()


def test_true_values_are_no_column_unless_asked_for(desk: Desk) -> None:
    heads = {head["key"] for head in listed(desk, truth=False)["heads"]}
    assert not heads & asking.TRUTHS
    assert {head["key"] for head in listed(desk)["heads"]} >= asking.TRUTHS


def test_only_lines_with_cells_of_a_kind_are_shown(desk: Desk, result: Result) -> None:
    every = window(desk, {"of": OF, "opened": "all"}, [0, 90, 0, 90])
    only = window(desk, {"of": OF, "only": "sensitive"}, [0, 90, 0, 90])
    assert 0 < only["count"][0] < every["count"][0]
    shown = {cell[5] for row in only["rows"] for cell in row["cells"]}
    assert set(result.problem.sensitive.tolist()) <= shown


def test_a_cell_is_shown_where_it_stands(desk: Desk, result: Result) -> None:
    for cell in result.problem.sensitive.tolist():
        found = place(desk, {"of": OF}, cell)
        row, column = found["at"]
        part = window(desk, {"of": OF, **found["view"]}, [row, row + 1, column, column + 1])
        assert part["rows"][0]["cells"][0][5] == cell
    assert layout_of(desk, {"of": OF}).table is whole_of(desk, OF).table


def test_who_protects_whom_is_the_same_both_ways(result: Result) -> None:
    """And a cell that its witnesses do not move could be known: publishing all who protect it opens it."""
    findings, release = result.findings, result.release
    pairs = {(int(c), int(s)) for s in result.problem.sensitive for c in protectors_of(findings, int(s))}
    other = {(c, int(s)) for c in np.flatnonzero(release.suppressed).tolist() for s in protected_by(findings, c)}
    assert pairs
    assert pairs == other
    assert all(release.suppressed[cell] for cell, _ in pairs)
    audit = Audit(result.problem)
    audit.judge(release)
    target = int(result.problem.sensitive[0])
    allies = protectors_of(findings, target)
    assert target in {opening.cell for opening in audit.publish(allies).open}


def test_the_panel_tells_what_the_audit_found(desk: Desk, result: Result) -> None:
    cell = int(result.problem.sensitive[0])
    told = asking.panel(desk, OF, cell)
    assert told["kind"][0] == "sensitive"
    assert told["how"] == "protectors"
    assert told["why"]
    need_low, need_high, low, high, value = told["bar"]
    assert low is None or low <= need_low
    assert high is None or high >= need_high
    assert need_low <= value <= need_high
    assert asking.panel(desk, OF, 10**9) == {}


def test_contributors_add_up_to_no_more_than_the_cell(desk: Desk, result: Result) -> None:
    cell = int(result.problem.sensitive[0])
    rows = asking.contributors(desk, OF, cell)
    assert 0 < len(rows) <= 3
    assert sum(float(row["share"].rstrip("%")) for row in rows) <= 100.1


def test_what_if_is_what_the_audit_says(desk: Desk, result: Result) -> None:
    fresh = Audit(result.problem)
    fresh.judge(result.release)
    for cell in np.flatnonzero(result.release.suppressed)[:6].tolist():
        assert asking.what_if(desk, "run-1", cell, True)["safe"] == fresh.publish([cell]).safe


def test_what_if_tells_what_is_found_of_outsiders_before_it_asks_the_others(desk: Desk, result: Result) -> None:
    """Whoever waits reads on, and what was told stays true: a cell that is open to outsiders is open."""
    told: list[dict[str, Any]] = []
    asker = replace(desk, tell=told.append)
    asking.ready(asker, "run-1")
    once = asker.loaded["audits"]["run-1"]
    ends = [asking.what_if(asker, "run-1", cell, True) for cell in result.problem.sensitive[:3].tolist()]
    assert asker.loaded["audits"]["run-1"] is once
    assert [(each["asked"], each["next"]) for each in told[:2]] == [
        (["outsiders"], "respondents"),
        (["outsiders", "respondents"], "sums"),
    ]
    assert len(told) == 2 * len(ends)
    for first, second, end in zip(told[::2], told[1::2], ends, strict=True):
        assert 0 < first["many"] <= second["many"] <= end["many"]


def test_a_list_can_be_turned_back_to_the_order_of_the_table(desk: Desk) -> None:
    def names(**asked: object) -> tuple[list[str], str]:
        told = asking.found(desk, {"of": OF, "list": asked}, [0, 100, 0, 10])
        return [row["text"] for row in told["rows"]], told["order"]

    first, arrow = names()
    assert arrow == " ▲"
    assert names(sort="", descending=True) == (first[::-1], " ▼")
    by_count, none = names(sort="count", descending=True)
    assert by_count != first
    assert none == ""
    assert names(sort="", descending=False) == (first, " ▲")


@pytest.mark.parametrize(("certain", "word"), [(True, Word.OPEN), (False, Word.POSSIBLY_OPEN)])
def test_what_if_names_the_cells_also_where_they_would_only_possibly_be_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, certain: bool, word: Word
) -> None:
    """It once said that no cell would be open, under POSSIBLY OPEN."""
    opening = Opening(3, "C10", How.LOWER, 1.0, 0.0, 2.0, certain=certain)
    found = SimpleNamespace(
        verdict=SimpleNamespace(word=word), safe=False, open=(opening,) * certain, possible=(opening,) * (not certain)
    )
    audit = SimpleNamespace(publish=lambda cells, time_limit_s, heard: found, insiders=True, unions=True)
    monkeypatch.setattr(Audit, "after", lambda findings, attackers: audit)
    monkeypatch.setitem(desk.loaded, "audits", {})
    told = asking.what_if(desk, "run-1", 5, True)
    assert (told["word"], told["possibly"], told["many"]) == (word, not certain, 1)
    assert [cell for cell, _ in told["opened"]] == [3]


# -- decisions -----------------------------------------------------------------------------------------------------


def test_a_waiver_needs_a_reason() -> None:
    with pytest.raises(TablesafeError, match="reason"):
        Decision({"region": "r1"}, "safe", 1.0)


def test_decisions_are_part_of_the_job_and_run_the_same_from_the_shell(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        work = session.workspace
        await give(session, FIRMS, copy.deepcopy(DRAFT))
        of = {"job": work.job_text()}
        rows = await work.compute(asking.codes_and_costs, of, [1, 2, 7])
        assert [len(row["codes"]) for row in rows] == [2, 2, 2]
        by = {"who": "N. N.", "when": "2026-01-01"}
        work.decide([Decision(rows[0]["codes"], "sensitive", rows[0]["cost"], why="known firm", **by)])
        work.decide([Decision(row["codes"], "avoid", row["cost"], why="users ask for it", **by) for row in rows[1:]])
        assert work.draft["problem"]["apriori"] == "decisions.csv"
        assert not work.check()
        run = session.runs.start()
        await run.finished()
        assert run.safe, run.message
        assert session.runs.outdated(run) == ()
        found = await work.compute(asking.panel, {"run": run.id}, 1)
        assert found["kind"][0] == "sensitive"
        folder = tmp_path / "shell"
        folder.mkdir()
        for name in ("job.toml", "decisions.csv"):
            (folder / name).write_bytes(run.file(name).read_bytes())
        assert "N. N." in (folder / "decisions.csv").read_text()
        (folder / "firms.csv").write_text(FIRMS)
        subprocess.run([sys.executable, "-m", "tablesafe", "run", "job.toml", "--quiet"], cwd=folder, check=True)
        assert (folder / "public" / "table.csv").read_bytes() == run.file("public/table.csv").read_bytes()
        work.undo()
        assert [each.what for each in work.decided] == ["sensitive"]
        assert [str(line).partition(": ")[2] for line in session.runs.outdated(run)] == ["avoid → not decided"] * 2
        work.forget_decision(work.decided[0])
        assert "problem" not in work.draft
        assert "decisions.csv" not in work.files

    in_session(tmp_path, scenario)


def test_of_several_decisions_on_a_cell_the_last_counts(tmp_path: Path) -> None:
    async def scenario(sessions: Sessions, session: Session) -> None:
        work = session.workspace
        await give(session, FIRMS, copy.deepcopy(DRAFT))
        cell = {"region": "r1", "size": "s1"}
        for what in ("sensitive", "protected", "withheld"):
            work.decide([Decision(cell, what, 1.0)])  # type: ignore[arg-type]
        assert [each.what for each in work.decided] == ["withheld"]
        work.undo()
        assert [each.what for each in work.decided] == ["protected"]
        work.draft["problem"]["apriori"] = "known.hst"
        with pytest.raises(TablesafeError, match=r"known\.hst already"):
            work.decide([Decision(cell, "avoid", 1.0)])

    in_session(tmp_path, scenario)
