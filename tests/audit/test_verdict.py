"""One verdict: every output repeats its lines word for word, each line holds, and what is possibly open is not safe."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import tablesafe as ts
from tablesafe.audit.findings import Findings
from tablesafe.audit.verdict import Word
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidOption
from tablesafe.core.language import thawed
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.verify import verify

Record = tuple[str, str, str, float]

FIRMS: list[Record] = [
    ("a", "x", "A", 100), ("a", "x", "B", 3), ("a", "y", "C", 5), ("a", "y", "D", 5), ("a", "y", "B", 4),
    ("a", "z", "E", 5), ("a", "z", "G", 5), ("a", "z", "B", 4), ("b", "x", "F", 50), ("b", "x", "G", 50),
    ("b", "x", "H", 45), ("b", "y", "I", 50), ("b", "y", "J", 50), ("b", "y", "K", 45), ("b", "z", "O", 30),
    ("b", "z", "P", 30), ("b", "z", "Q", 28),
]  # fmt: skip
"""B has 4 in (a, y) and (a, z), which lists of two do not show."""
ACCEPTED = ts.Run(attackers=ts.Attackers(possibly="accept"))
INNER = [(row, column) for row in "ab" for column in "xyz"]


class TwentyTwo:
    """A rule that asks for 22 around (a, x), whatever the contributors."""

    name = "twenty-two"

    def __call__(self, table: Table) -> ts.Sensitivity:
        mask = np.zeros(len(table), dtype=np.bool_)
        if table.names is None and "row" in table.dimensions:
            mask[table.index(row="a", column="x")] = True
        return ts.Sensitivity.of(mask, 22.0 * mask, reason="twenty-two")


def firms(records: list[Record] = FIRMS) -> pl.DataFrame:
    return pl.DataFrame(records, schema=["row", "column", "firm", "amount"], orient="row")


def table_of(largest: int = 3, **options: Any) -> Table:
    given = {"respondent": "firm", **options}
    return ts.tabulate(firms(), dimensions=["row", "column"], value="amount", largest=largest, **given)


def hidden(table: Table, cells: list[tuple[str, str]]) -> np.ndarray[Any, Any]:
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(row=row, column=column) for row, column in cells]] = True
    return mask


def possible(**options: Any) -> Findings:
    """The only opening takes what B has in two cells that list two others."""
    table = table_of(2)
    problem = Problem(table, (TwentyTwo(),))
    return ts.audit(problem, Release.from_suppression(problem, hidden(table, INNER)), **options)


def line(findings: Findings, label: str) -> str:
    (found,) = [each for each in findings.verdict.lines if each.startswith(f"{label}: ")]
    return found


# -- each line says what was examined ----------------------------------------------------------------------------------


def test_the_lines_of_a_safe_release() -> None:
    problem = Problem(table_of(), (ts.PPercent(p=10),))
    findings = ts.audit(problem, ts.protect(problem, ts.Suppress(time_limit_s=2)))
    assert findings.verdict.word is Word.SAFE
    assert "proved in exact arithmetic, by tables that agree with the release" in line(findings, "outsiders")
    assert "each by itself, no coalitions" in line(findings, "respondents")
    assert "none comes closer" in line(findings, "respondents")
    assert "the remainder of every equation" in line(findings, "sums")
    assert len(findings.verdict.lines) == 3
    assert not findings.verdict.possibly


def test_what_was_not_examined_is_not_said_to_be_hidden() -> None:
    problem = Problem(table_of(), (ts.PPercent(p=10),))
    release = ts.protect(problem, ts.Suppress(time_limit_s=2))
    few = ts.audit(problem, release, insiders=False, unions=False, certify=False)
    assert "no proof was made" in line(few, "outsiders")
    assert "proved" not in line(few, "outsiders")
    assert line(few, "respondents").startswith("respondents: not examined")
    assert line(few, "sums").startswith("sums: not examined")
    pair = ts.audit(problem, release, coalition=2)
    assert "coalitions of up to 2" in line(pair, "respondents")


def test_without_contributors_the_respondents_are_not_examined() -> None:
    inner = firms().group_by("row", "column").agg(pl.col("amount").sum()).sort("row", "column")
    table = Table.from_cells(inner, dimensions=["row", "column"], value="amount", missing_totals="compute")
    problem = Problem(table, sensitivity=ts.Sensitivity.of(hidden(table, [("a", "x")]), 5.0))
    findings = ts.audit(problem, Release.from_suppression(problem, hidden(table, INNER)))
    assert findings.safe
    assert "respondents: not examined, the table does not tell them." in findings.verdict.lines
    assert line(findings, "sums").startswith("sums: not examined")


def test_outsiders_who_come_too_close_are_told() -> None:
    problem = Problem(table_of(), (ts.PPercent(p=10),))
    findings = ts.audit(problem, Release.from_suppression(problem, problem.sensitivity.mask))
    assert findings.verdict.word is Word.OPEN
    assert line(findings, "outsiders") == "outsiders: sensitive cells are open to anyone who sees the release."
    assert "none comes closer" not in line(findings, "respondents")


def test_respondents_who_come_too_close_are_told() -> None:
    table = table_of(3)
    problem = Problem(table, (TwentyTwo(),))
    findings = ts.audit(problem, Release.from_suppression(problem, hidden(table, INNER)))
    assert findings.verdict.word is Word.OPEN
    assert "every sensitive cell is hidden" in line(findings, "outsiders")
    assert "open to some of them" in line(findings, "respondents")


def test_sums_that_fail_a_rule_are_told() -> None:
    frame = pl.DataFrame({"row": list("aab"), "firm": list("FGH"), "amount": [5.0, 6.0, 50.0]})
    more = pl.DataFrame({"row": ["c"] * 5, "firm": list("IJKLM"), "amount": [7.0] * 5})
    table = ts.tabulate(pl.concat([frame, more]), dimensions=["row"], value="amount", respondent="firm", largest=5)
    problem = Problem(table, (ts.Threshold(n=4),))
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[[table.index(row="a"), table.index(row="b")]] = True
    findings = ts.audit(problem, Release.from_suppression(problem, mask), insiders=False)
    assert findings.verdict.word is Word.OPEN
    assert "some fail a rule" in line(findings, "sums")


def test_cells_published_alone_and_coalitions_not_looked_at_are_told() -> None:
    frame = pl.DataFrame({"row": ["a", "b", "c"], "v": [5.0, 6.0, 7.0]})
    table = Table.from_cells(frame, dimensions=["row"], value="v", missing_totals="none")
    problem = Problem(table, sensitivity=ts.Sensitivity.of(np.array([True, False, False]), 1.0))
    findings = ts.audit(problem, Release.from_suppression(problem, np.array([True, False, False])))
    assert line(findings, "published alone").endswith(table.without_sums)

    problem = Problem(table_of(), (ts.PPercent(p=10),))
    found = ts.audit(problem, ts.protect(problem, ts.Suppress(time_limit_s=2)))
    assert found.insiders is not None
    cut = replace(found, insiders=replace(found.insiders, unsearched=(int(problem.sensitive[0]),)))
    assert cut.verdict.word is Word.NOT_PROVED
    assert "more coalitions than could be looked at" in line(cut, "respondents")
    assert "none comes closer" not in line(cut, "respondents")


def test_nothing_to_judge() -> None:
    problem = Problem(table_of())
    findings = ts.audit(problem, ts.protect(problem, ts.PublishAll()))
    assert findings.verdict.word is Word.NOTHING
    assert "no rule was applied" in line(findings, "outsiders")


def test_intervals_that_leak_make_it_open() -> None:
    problem = Problem(table_of(), (ts.PPercent(p=10),))
    verdict = ts.audit(problem, ts.protect(problem, ts.Suppress(time_limit_s=2))).verdict
    assert verdict.with_intervals(leaking=False).safe
    leaking = verdict.with_intervals(leaking=True)
    assert (leaking.word, leaking.safe) == (Word.OPEN, False)
    assert leaking.lines[:-1] == verdict.lines


# -- possibly open -----------------------------------------------------------------------------------------------------


def test_possibly_open_is_not_safe_unless_accepted(tmp_path: Path) -> None:
    findings = possible()
    assert not findings.open
    assert findings.possible
    assert (findings.verdict.word, findings.safe) == (Word.POSSIBLY_OPEN, False)
    assert "none comes closer" not in line(findings, "respondents")
    assert "possibly open" in line(findings, "respondents")
    (only,) = findings.verdict.possibly
    assert only.cell == "(row=a, column=x)"
    assert "largest = 3" in only.settled_by
    assert only.cell in findings.text()
    assert only.settled_by in findings.text(values=False)
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "open.json")
    assert not verify(tmp_path / "open.json").safe

    accepted = possible(possibly="accept")
    assert (accepted.verdict.word, accepted.safe) == (Word.SAFE, True)
    assert "which was accepted" in line(accepted, "respondents")
    assert accepted.verdict.possibly == findings.verdict.possibly
    assert accepted.certificate is not None
    accepted.certificate.save(tmp_path / "accepted.json")
    assert verify(tmp_path / "accepted.json").safe


def test_what_settles_it_settles_it() -> None:
    table = table_of(3)
    problem = Problem(table, (TwentyTwo(),))
    findings = ts.audit(problem, Release.from_suppression(problem, hidden(table, INNER)))
    assert not findings.possible
    assert findings.open


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOption, match="'open' or 'accept', got 'maybe'"):
        possible(possibly="maybe")
    with pytest.raises(InvalidOption, match="possibly"):
        ts.Attackers(possibly="maybe")  # type: ignore[arg-type]


def crowded(seed: int) -> pl.DataFrame:
    """Firms that report in several cells, of which lists of two show little."""
    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, 13)
    return pl.DataFrame(
        {
            "row": random.choice(["s", "m", "l", "xl"], 700, p=[0.6, 0.25, 0.1, 0.05]),
            "column": random.choice([f"N{i:02}" for i in range(12)], 700, p=weight / weight.sum()),
            "firm": random.integers(0, 450, 700),
            "amount": np.rint(random.lognormal(4, 1.7, 700)) + 1,
        }
    )


@pytest.mark.parametrize("seed", [0])
def test_suppression_closes_what_is_possibly_open(seed: int) -> None:
    """And then nobody at all comes too close: each firm is asked, with all that it really has in every cell."""
    frame = crowded(seed)
    table = ts.tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", largest=2)
    problem = Problem(table, (ts.PPercent(p=15),))
    release = ts.protect(problem, ts.Suppress(time_limit_s=1))
    findings = ts.audit(problem, release)
    assert findings.verdict.word is Word.SAFE
    less = ts.protect(problem, ts.Suppress(time_limit_s=1), ACCEPTED)
    assert ts.audit(problem, less).verdict.word is Word.POSSIBLY_OPEN
    full = ts.tabulate(frame, dimensions=["row", "column"], value="amount", respondent="firm", largest=1_000)
    attacked(full, problem, release)


def attacked(table: Table, problem: Problem, release: Release) -> None:
    """Ask every firm that is not itself in a sensitive cell what it can derive of it, by linear programs alone."""
    assert table.contributors is not None
    assert table.count is not None
    who, own = table.contributors.identity, table.contributors.amount
    unknown, matrix = release.suppressed, table.equations.astype(float)
    for target in problem.sensitive.tolist():
        value, level = table.value[target], problem.sensitivity.upper[target]
        for firm in np.unique(who[unknown][who[unknown] >= 0]).tolist():
            mine = np.where(who == firm, own, 0.0).sum(axis=1)
            if mine[target] or not (mine[unknown] > 0.5 * table.value[unknown]).any():
                continue
            alone = (who == firm).any(axis=1) & (table.count == 1)
            low = np.where(unknown & ~alone, mine, table.value)
            high = np.where(unknown & ~alone, np.inf, table.value)
            cost = np.eye(len(table))[target]
            most = linprog(-cost, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=np.column_stack([low, high]))
            assert most.status == 3 or -most.fun >= value + level - 1e-6, (table.describe(target), firm)


# -- every output repeats it -------------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """A job on records, by default those above."""

    def written(
        largest: int, audit: str = "", method: str = 'name = "suppress"\ntime_limit_s = 2', frame: Any = None
    ) -> Path:
        (firms() if frame is None else frame).write_csv(tmp_path / "firms.csv")
        (tmp_path / "job.toml").write_text(
            f'title = "Firms"\n[source]\nfile = "firms.csv"\nrespondent = "firm"\nlargest = {largest}\n'
            f"[dimensions.row]\n[dimensions.column]\n"
            f'[response]\nvalue = "amount"\n[[rules]]\nrule = "p_percent"\np = 15\n[method]\n{method}\n'
            f'[audit]\n{audit}\n[output]\nrelease = ["public/t.csv"]\n'
            f'report = ["public/r.html", "public/r.json", "public/r.xlsx"]\n'
        )
        return tmp_path / "job.toml"

    return written


def everywhere(result: Any, console: str) -> dict[str, str]:
    """What each output says of the run."""
    folder, internal = result.job.folder, result.internal
    workbook = {
        name: "\n".join(map(str, pl.read_excel(path, sheet_name="legend", has_header=False).to_series(0).to_list()))
        for name, path in (("public workbook", folder / "public/r.xlsx"), ("workbook", internal / "table.xlsx"))
    }
    public = json.loads((folder / "public/r.json").read_text(encoding="utf-8"))
    findings = json.loads(result.findings.to_json())
    return {
        "console": console,
        "log": result.findings.text(values=False),
        "findings": "\n".join([findings["verdict"], *findings["lines"]]),
        "facts": "\n".join([result.facts()["verdict"], *result.facts()["lines"]]),
        "public page": html.unescape((folder / "public/r.html").read_text(encoding="utf-8")),
        "page": html.unescape((internal / "report.html").read_text(encoding="utf-8")),
        "public document": "\n".join([public["verdict"]["word"], *public["verdict"]["lines"]]),
        **workbook,
    }


@pytest.mark.parametrize("audit", ["", "coalition = 2", "insiders = false\nunions = false"])
def test_every_output_says_the_same(
    job: Callable[..., Path], audit: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    path = job(5, audit)
    result = ts.run(path)
    capsys.readouterr()
    assert call(["run", str(path)]) == 0
    console = capsys.readouterr()
    told = everywhere(result, console.out + console.err)
    checked = verify(next(result.internal.glob("certificate*")), release=result.job.folder / "public/t.csv")
    told["verification"] = f"{result.verdict.word}\n{checked}"
    for name, text in told.items():
        assert str(result.verdict.word) in text, name
        for each in result.verdict.lines:
            assert each in text, (name, each)


def test_the_web_app_says_the_same(job: Callable[..., Path]) -> None:
    from types import SimpleNamespace

    from tablesafe.web.long_tasks import facts_of

    result = ts.run(job(5))
    facts = facts_of(SimpleNamespace(folder=result.job.folder), result)  # type: ignore[arg-type]
    assert facts["verdict"] == str(result.verdict.word)
    assert all(each in [str(thawed(line)) for line in facts["lines"]] for each in result.verdict.lines)


def test_a_job_that_is_possibly_open_fails_unless_that_is_accepted(
    job: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    monkeypatch.setattr("tablesafe.pipeline.tables.ROOM", 0)  # a job keeps more contributors than it is asked for
    table = ts.tabulate(crowded(0), dimensions=["row", "column"], value="amount", respondent="firm", largest=2)
    problem = Problem(table, (ts.PPercent(p=15),))
    ts.protect(problem, ts.Suppress(time_limit_s=1), ACCEPTED).frame().write_csv(tmp_path / "pattern.csv")
    pattern = 'name = "pattern"\nfile = "pattern.csv"'
    assert call(["run", str(job(2, 'possibly = "accept"', pattern, crowded(0)))]) == 0
    assert "which was accepted" in capsys.readouterr().out
    (tmp_path / "public/t.csv").unlink()
    given = job(2, "", pattern, crowded(0))
    assert call(["run", str(given)]) == 1
    told = capsys.readouterr().out
    assert "POSSIBLY OPEN: " in told
    assert "to settle them: more contributors listed: largest = " in told
    assert not (tmp_path / "public/t.csv").exists()
    assert call(["run", str(given), "--force"]) == 1
    assert (tmp_path / "public/t.csv").exists()
    capsys.readouterr()
    command = ["audit", str(given), "--pattern", str(tmp_path / "pattern.csv")]
    assert call(command) == 1
    assert capsys.readouterr().out.startswith("POSSIBLY OPEN: ")
    assert call([*command, "--possibly", "accept"]) == 0
    assert capsys.readouterr().out.startswith("SAFE: ")
    assert call([*command, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "POSSIBLY OPEN"
    assert all(each["settled by"] for each in document["possibly open"])
