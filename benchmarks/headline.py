"""The short table for the README, from the results of the headline suite."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import machine
from benchmarks.fresh import stale
from benchmarks.registry import Row
from benchmarks.results import FOLDER, Results, number

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
HEAD = (
    "| what | beside | CPU s, ours | theirs | ratio | cells withheld, ratio | value withheld, ratio | open, ours | "
    "open, theirs |"
)
COMMAND = "make peers && make benchmark SUITE=headline"

LEGEND = (
    f"`{COMMAND}` repeats it. Ratios are theirs to ours, within one run. Open: sensitive cells that our audit finds "
    "open; then how many of a sample two fresh linear programs each (SciPy, no code of ours) find open; then those "
    "open to respondents who know their own figures, from whom only tablesafe protects unless it runs *alike*. "
    "What is printed was measured on another day."
)
RESPONDENTS = "tablesafe, from respondents and sums too"
"""The name of our second program in a comparison: what it protects from beyond the first."""
MORE = "All figures: [docs/benchmarks.md](docs/benchmarks.md)."


def table(results: Results, chosen: tuple[tuple[str, str, str], ...]) -> str:
    """One line per comparison: our seconds, theirs, and what is open on both sides."""
    lines = [HEAD, "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for task, instance, other in chosen:
        rows = results.of(task, instance)
        ours = next((row for row in rows if row["role"] == "tablesafe"), None)
        theirs = next((row for row in rows if row["program"] == other), None)
        if ours is not None and theirs is not None:
            lines.append(_line(task, instance, ours, theirs))
    return "\n".join(lines)


def _line(task: str, instance: str, ours: Row, theirs: Row) -> str:
    """A line of the table; a program without an answer shows its reason in the place of its seconds."""
    way = ours["program"].removeprefix("tablesafe").strip()
    what = f"{task}{f' ({way})' if way else ''}: {_size(task, ours)} (`{instance}`)"
    other = RESPONDENTS if theirs["role"] == "tablesafe" else theirs["program"].replace(" (printed)", "")
    cells = [
        what, other, _seconds(ours), _seconds(theirs), _ratio(theirs, "cpu_ratio"), _cells(ours, theirs),
        _ratio(theirs, "value_ratio"), _open(ours), _open(theirs),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _size(task: str, row: Row) -> str:
    """Records where records are the work; cells; both where a table is made from microdata."""
    if task in {"tabulate", "flag"}:
        return f"{number(row.get('records', 0))} records"
    cells = f"{number(row.get('cells', 0))} cells"
    return f"{number(row['records'])} records, {cells}" if row.get("records") else cells


def _cells(ours: Row, theirs: Row) -> str:
    """How many times our complementary cells another program withholds."""
    mine, other = ours.get("complementary"), theirs.get("complementary")
    return number(round(other / mine, 3), "ratio") if mine and other is not None else "–"


def _seconds(row: Row) -> str:
    if row["role"] == "printed":
        return "printed"
    return number(row["cpu_s"]) if row["status"] == "ok" else str(row["status"])


def _ratio(row: Row, key: str) -> str:
    return number(row[key], key) if row.get(key) is not None else "–"


def _open(row: Row) -> str:
    """Open cells by the audit and by the independent programs, with how many of these were asked about."""
    if row.get("open_by_programs") is None:
        return "–"
    audit = f"{row['open_by_audit']}; " if row.get("open_by_audit") is not None else ""
    known = row.get("open_to_respondents")
    return f"{audit}{row['open_by_programs']} of {row['programs_asked']}{'' if known is None else f'; {known}'}"


def snippet(path: Path = FOLDER / "headline.json") -> str | None:
    """What stands between the markers of the README; None without results."""
    from benchmarks import registry

    if not path.exists():
        return None
    registry.load()
    results = Results.read(path)
    shown = table(results, registry.SUITES["headline"].headline)
    said = stale(results)
    return f"{shown}\n\n{LEGEND} {machine.sentence(results.machine)}{f' {said}' if said else ''} {MORE}"


def between_markers(text: str) -> str | None:
    """What a README has between the markers; None where it has none."""
    found = re.search(f"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", text, flags=re.DOTALL)
    return found[1] if found else None


def inserted(text: str, table_text: str) -> str:
    """The README with the table between its markers; unchanged where it has none."""
    whole = f"{BEGIN}\n{table_text}\n{END}"
    return re.sub(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", lambda _: whole, text, flags=re.DOTALL)
