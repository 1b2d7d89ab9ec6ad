"""The page of file formats: who reads and writes each, its columns or lines, and a file that was really written."""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from reference.pages import NOTE
from tablesafe.audit.audit import audit
from tablesafe.batch_jobs.export import export_tauargus
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.io.frames import write_cells, write_release
from tablesafe.io.jj import write_jj
from tablesafe.io.ptable import write_perturbation
from tablesafe.methods.cell_key.design import design_perturbation
from tablesafe.methods.suppress import Suppress
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate
from tablesafe.tauargus.apriori import write_hst
from tablesafe.tauargus.table import write_tab
from tablesafe.tauargus.write_table import write_table

JOB = """\
[source]
file = "firms.csv"
respondent = "firm"
[dimensions.nace]
hierarchy = "nace.hrc"
[dimensions.region]
[response]
value = "turnover"
[[rules]]
rule = "p_percent"
p = 10
"""
LINES = 14
"""Lines shown of each example."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its name, who reads and writes it, the modules whose words describe it, and how to write one."""

    title: str
    endings: str
    read: str
    write: str
    modules: tuple[str, ...]
    examples: tuple[str, ...] = ()
    notes: str = ""


def formats_reference() -> str:
    """Every format, in Markdown."""
    lines = [
        NOTE, "", "# File formats", "",
        "Text files may be UTF-8, with or without a byte-order mark, or Windows-1252; CSV files may have commas,",
        "semicolons, tabs or bars between their columns, and decimal points or commas. Files are written whole or not",
        "at all. The examples are of one small table: turnover of fourteen firms by activity and region,",
        "with the rules threshold and p%.", "",
        "| format | endings | read by | written by |", "|---|---|---|---|",
        *(f"| [{f.title}](#{_anchor(f.title)}) | {f.endings} | {f.read} | {f.write} |" for f in FORMATS),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        files = _written(Path(folder))
        for form in FORMATS:
            lines += _entry(form, files)
    return "\n".join(lines) + "\n"


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _entry(form: Format, files: dict[str, str]) -> Iterator[str]:
    yield from ("", f"## {form.title}", "", f"Endings: {form.endings}. Read by {form.read}. Written by {form.write}.")
    for module in form.modules:
        yield from ("", _words(module))
    if form.notes:
        yield from ("", form.notes)
    for name in form.examples:
        text = files[name].rstrip("\n").splitlines()
        most = len(text) if name.endswith(".json") else LINES
        more = ["…"] if len(text) > most else []
        yield from ("", f"`{name}`:", "", "```text", *(_cut(line) for line in text[:most]), *more, "```")


def _cut(line: str) -> str:
    return line if len(line) <= 110 else line[:109] + "…"


def _words(module: str) -> str:
    """What a module says about its format."""
    return inspect.cleandoc(import_module(f"tablesafe.{module}").__doc__ or "")


# -- the files


def _records() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "firm": [f"f{i:02}" for i in range(1, 15)],
            "nace": [*["A1"] * 4, *["A2"] * 5, *["B"] * 5],
            "region": [*["north"] * 2, *["south"] * 2, *["north"] * 3, *["south"] * 2, *["north"] * 3, *["south"] * 2],
            "turnover": [120, 80, 200, 15, 70, 65, 50, 55, 60, 40, 45, 50, 90, 85],
        }
    )


def _problem() -> Problem:
    nace = _activities()
    dimensions = {"nace": nace, "region": None}
    table = tabulate(_records(), dimensions=dimensions, value="turnover", respondent="firm", largest=3)
    return Problem(table, rules=[Threshold(n=3, range_percent=10), PPercent(p=10)])


def _activities() -> Hierarchy:
    return Hierarchy.from_pairs([("Total", "A"), ("A", "A1"), ("A", "A2"), ("Total", "B")], name="nace.hrc")


def _written(folder: Path) -> dict[str, str]:
    """The text of every example, by name."""
    problem = _problem()
    release = Suppress(time_limit_s=600).protect(problem)  # a busy machine must not change the page
    for write in _writers(problem, release):
        write(folder)
    (folder / "argus").mkdir()
    export_tauargus(problem, folder / "argus", name="table")
    _records().write_csv(folder / "firms.csv")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    export_tauargus(folder / "job.toml", folder / "argus", name="micro")
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}
    found |= {p.name: p.read_text(encoding="utf-8") for p in (folder / "argus").iterdir() if p.name not in found}
    found["ptable.csv"] = re.sub(r"0\.\d{7,}", lambda digits: f"{float(digits[0]):.6f}", found["ptable.csv"])
    found["certificate.json"] = _shortened(json.loads(found["certificate.json"]))
    return found


def _writers(problem: Problem, release: Release) -> Iterator[Callable[[Path], Any]]:
    certificate = audit(problem, release).certificate
    assert certificate is not None
    yield lambda folder: write_cells(problem.table, folder / "cells.csv")
    yield lambda folder: write_release(release, folder / "release.csv")
    yield lambda folder: write_jj(problem, folder / "table.jj")
    yield lambda folder: write_tab(problem, folder / "table.tab")
    yield lambda folder: write_hst(problem, folder / "table.hst")
    yield lambda folder: write_table(release, problem, folder / "code-value.txt", 3, "")
    yield lambda folder: write_table(release, problem, folder / "grid.csv", 1, "")
    yield lambda folder: write_perturbation(design_perturbation(maximum_change=2, variance=1.0), folder / "ptable.csv")
    yield lambda folder: certificate.save(folder / "certificate.json")
    yield lambda folder: (folder / "recode.grc").write_text("1: 01, 02\n2: 03 - 06, 09\n3: 10 -\n", encoding="utf-8")
    pattern = release.frame().select("nace", "region", suppressed=pl.Series(release.suppressed.astype(int)))
    yield lambda folder: pattern.write_csv(folder / "pattern.csv")
    pairs = pl.DataFrame({"parent": ["Total", "A", "A", "Total"], "child": ["A", "A1", "A2", "B"]})
    yield lambda folder: pairs.write_csv(folder / "pairs.csv")
    levels = pl.DataFrame({"section": ["A", "A", "B"], "class": ["A1", "A2", "B"]})
    yield lambda folder: levels.write_csv(folder / "levels.csv")
    yield lambda folder: _activities().to_hrc(folder / "nace.hrc")


def _shortened(document: dict[str, Any]) -> str:
    """The parts of a certificate, each on a line, without what differs from run to run."""
    keys = [f'  "{key}": {_cut(json.dumps(value, ensure_ascii=False))}' for key, value in document.items()]
    return "{\n" + ",\n".join(line for line in keys if '"version' not in line) + "\n}"


FORMATS = (
    Format(
        "Cells and releases", "`.csv`, `.parquet`, `.xlsx`", "`ts.Table.from_cells`, `[source]` of a job",
        "`release.frame()`, `[output] release`, `tablesafe.io.frames`", ("io.frames",), ("cells.csv", "release.csv"),
        "Records need no format of their own: any CSV or Parquet file with one row per record, read by `ts.tabulate`.",
    ),
    Format(
        "Hierarchies", "`.hrc`, `.csv`, `.parquet`", "`ts.Hierarchy.from_hrc`, `.from_pairs`, `.from_levels`",
        "`Hierarchy.to_hrc`, `tablesafe convert`", (), ("pairs.csv", "levels.csv", "nace.hrc"),
        "A CSV file with the columns `parent` and `child` holds pairs; any other holds levels, the coarsest first. An "
        "`.hrc` file has one code a line, indented by `@` once per level; the grand total is left out.",
    ),
    Format("Patterns", "`.csv`, `.parquet`, `.txt`, `.jj`", "`ts.read_pattern`, `tablesafe audit --pattern`",
           "`tablesafe suppress -o`", ("io.patterns",), ("pattern.csv",)),
    Format("Statuses", "a column of any of these", "all readers", "all writers",
           ("core.statuses", "tauargus.statuses")),
    Format("JJ", "`.jj`", "`ts.read_jj`", "`ts.write_jj`", ("io.jj",), ("table.jj",)),
    Format("A-priori information", "`.hst`, `.csv`, `.parquet`",
           "`ts.apply_hst`, `ts.apply_cells`, `[problem] apriori`",
           "`tablesafe.tauargus.apriori.write_hst`", ("io.apriori", "tauargus.apriori"), ("table.hst",)),
    Format("Metadata of τ-ARGUS", "`.rda`", "`tablesafe.tauargus.metadata`", "`ts.export_tauargus`",
           ("tauargus.metadata",), ("table.rda",)),
    Format("Microdata of τ-ARGUS", "`.asc`", "`tablesafe.tauargus.microdata.read_microdata`",
           "`ts.export_tauargus`, `tablesafe convert`", ("tauargus.microdata",), ("micro.asc", "micro.rda")),
    Format("Tables of τ-ARGUS", "`.tab`", "`tablesafe.tauargus.table.read_tab`", "`ts.export_tauargus`",
           ("tauargus.table",), ("table.tab",)),
    Format("Recodings of τ-ARGUS", "`.grc`", "`recode` of a job, `RECODE` of a batch job", "hand", ("tauargus.codes",),
           ("recode.grc",)),
    Format("Batch jobs of τ-ARGUS", "`.arb`", "`ts.run`, `tablesafe run`, `file` of a job", "`ts.export_tauargus`",
           ("tauargus.batch.commands",), ("table.arb",), "See [Batch jobs of τ-ARGUS](batch-jobs.md)."),
    Format("What τ-ARGUS writes", "`.csv`, `.txt`", "`ts.read_pattern`", "`WRITETABLE` of a batch job",
           ("tauargus.write_table",), ("grid.csv", "code-value.txt")),
    Format("Perturbation tables", "`.csv`, `.txt`", "`ts.read_perturbation`, `ts.read_perturbations`",
           "`ts.write_perturbation`", ("io.ptable",), ("ptable.csv",)),
    Format("Job files", "`.toml`", "`ts.run`, `tablesafe run`", "`tablesafe init`", (), (),
           "See [The job file](job-file.md)."),
    Format("Certificates", "`.json`, `.json.gz`", "`ts.verify`, `tablesafe verify`", "`findings.certificate.save`",
           ("verify",), ("certificate.json",)),
)  # fmt: skip
