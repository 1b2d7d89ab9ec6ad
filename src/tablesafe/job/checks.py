"""What no single key can tell: whether the parts of a job fit together, and whether its files are there."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tablesafe.core.language import text
from tablesafe.files.limits import UNSEEN, kind_of
from tablesafe.files.read import did_you_mean
from tablesafe.job.decode import Fault
from tablesafe.job.model import Job
from tablesafe.job.toml import KeyPath
from tablesafe.rules.needs import contributors_needed

RELEASE_SUFFIXES = (".csv", ".parquet", ".xlsx", ".px", ".json", ".xml")
RECORDS_ONLY = ("respondent", "holding", "weight", "frequency", "request", "where", "zeros", "empty")
CELLS_ONLY = ("count", "holdings", "contributions", "contributors", "status", "scheme", "structural_zero", "tolerance")
REPORT_SUFFIXES = (".html", ".htm", ".json", ".xlsx")
INTERNAL_FILES = (
    "report.html", "report.json", "table.xlsx", "cells.csv", "findings.csv", "findings.json", "attack.csv",
    "certificate.json.gz",
)  # fmt: skip
"""What every run puts into the internal folder, so that no input may be kept there under such a name."""
NEEDS_FILE = {"hrc": "codes.hrc", "pairs": "pairs.csv", "levels": "levels.csv"}
"""Ways of writing a hierarchy that need a file, and what one is called."""
LONGEST_NAME = 180
"""Bytes of a file name; file systems hold 255, and a name is longer until the file is complete."""
INTERNAL = "internal"
"""The default folder, beside the job file, for what stays in the office."""


def check(job: Job) -> list[Fault]:
    """Everything that is wrong with a job whose keys are all of the right type."""
    return [
        *_structure(job),
        *_hierarchies(job),
        *_cells(job),
        *_outputs(job),
    ]


def input_files(job: Job) -> list[tuple[KeyPath, str]]:
    """Every file that the job reads, with the key that names it."""
    return list(_files_in(job, ()))


def _files_in(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if dataclasses.is_dataclass(value):
        for spec in dataclasses.fields(value):
            inner = getattr(value, spec.name)
            if spec.metadata.get("file") and isinstance(inner, str):
                yield (*path, spec.name), inner
            elif spec.metadata.get("file") and isinstance(inner, tuple):
                yield from (((*path, spec.name, i), name) for i, name in enumerate(inner))
            elif not spec.metadata.get("hidden"):
                yield from _files_in(inner, (*path, spec.name))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _files_in(inner, (*path, key))
    elif isinstance(value, tuple):
        for i, inner in enumerate(value):
            yield from _files_in(inner, (*path, i))


def _structure(job: Job) -> Iterator[Fault]:
    holds = job.source.holds
    if holds == "problem":
        return
    if not job.dimensions:
        yield Fault(
            ("dimensions",), "The job has no dimensions: add a [dimensions.NAME] table for each column that spans it."
        )
    if not job.rules and not job.problem.apriori_files and job.source.status is None and not _for_every_cell(job):
        yield Fault(("rules",), "The job has no [[rules]], so nothing would be sensitive: add one, or a status.")
    if job.source.status is not None and (job.tables or len(job.response.value) > 1):
        yield Fault(("source", "status"), "'status' needs a single table with a single value: use an a-priori file.")
    if holds == "cells" and not job.response.value:
        yield Fault(("response",), 'A table of cells needs its value column: [response] value = "turnover".')
    several = list(dict.fromkeys([*job.response.value, *job.response.equations]))
    if holds == "cells" and job.source.contributions and len(several) > 1:
        yield Fault(
            ("source", "contributions"),
            "'contributions' are those to one value, but [response] names several: the other values would be judged by "
            "contributions to something else. Leave them out and say what is sensitive by a threshold or an a-priori "
            "file, or make the table from its records.",
        )
    for i, table in enumerate(job.tables):
        for j, name in enumerate(table.dimensions):
            if name not in job.dimensions:
                near = did_you_mean(name, list(job.dimensions)) or f"there are {', '.join(job.dimensions)}."
                yield Fault(
                    ("tables", i, "dimensions", j), text("There is no dimension {name!r}: {near}", name=name, near=near)
                )
        if table.file is not None and holds == "records":
            yield Fault(("tables", i, "file"), "A table of records takes its file from [source]: leave out 'file'.")
    if holds == "records":
        for key in CELLS_ONLY:
            if getattr(job.source, key):
                yield Fault(("source", key), f'{key!r} describes finished cells: it needs kind = "cells".')
        if job.source.frequency is not None:
            yield from _counted(job)
    if holds == "cells":
        for key in RECORDS_ONLY:
            if getattr(job.source, key):
                yield Fault(("source", key), f"{key!r} describes records, but the source holds cells.")


def _counted(job: Job) -> Iterator[Fault]:
    """What cannot be asked of rows that stand for several respondents each."""
    frequency = job.source.frequency
    single = {key: getattr(job.source, key) for key in ("respondent", "holding", "request")}
    named = [(("source", key), column) for key, column in single.items()]
    for path, column in [*named, (("response", "shadow"), job.response.shadow)]:
        if column is not None:
            yield Fault(
                path,
                text(
                    "{column!r} is about single respondents, but with frequency = {frequency!r} a row "
                    "stands for several: leave out one of the two.",
                    column=column,
                    frequency=frequency,
                ),
            )
    for i, rule in enumerate(job.rules):
        if contributors_needed((rule,)):
            yield Fault(
                ("rules", i),
                text(
                    "{rule} asks how much single respondents reported, which rows with frequency = "
                    "{frequency!r} do not tell: judge them by a threshold, or give one record per "
                    "respondent.",
                    rule=type(rule).__name__,
                    frequency=frequency,
                ),
            )


def _hierarchies(job: Job) -> Iterator[Fault]:
    """What a way of writing hierarchies cannot do without."""
    for name, dimension in job.dimensions.items():
        kind = dimension.kind
        for key in ("recode", "level"):
            if getattr(dimension, key) is not None and job.source.holds != "records":
                yield Fault(
                    ("dimensions", name, key),
                    f"{key!r} makes a coarser table of records, but the source holds a finished one: leave it out, or "
                    f"take the records.",
                )
        if kind in NEEDS_FILE and dimension.hierarchy is None:
            yield Fault(
                ("dimensions", name, "hierarchy"),
                text(
                    "Dimension {name!r} is of kind {kind!r}, but names no file: hierarchy = {file!r}.",
                    name=name,
                    kind=kind,
                    file=NEEDS_FILE[kind],
                ),
            )
        elif kind == "equations" and not dimension.equations:
            yield Fault(
                ("dimensions", name, "equations"),
                text(
                    "Dimension {name!r} is of kind 'equations', but has none: equations = [\"A = B + C\"].", name=name
                ),
            )


def _for_every_cell(job: Job) -> bool:
    """Whether the method changes cells whether or not a rule calls them sensitive."""
    return bool(getattr(job.method, "for_every_cell", False))


def _cells(job: Job) -> Iterator[Fault]:
    """Cells chosen by codes must name dimensions that exist."""
    known = [*job.dimensions, "response"]
    for key in ("frozen", "suppressed", "withheld", "waived"):
        cells = getattr(job.problem, key)
        if isinstance(cells, str) or job.source.holds == "problem":
            continue
        for i, selector in enumerate(cells):
            for name in selector:
                if name not in known:
                    near = did_you_mean(name, known) or f"there are {', '.join(known)}."
                    yield Fault(
                        ("problem", key, i, name), text("There is no dimension {name!r}: {near}", name=name, near=near)
                    )


def _outputs(job: Job) -> Iterator[Fault]:
    if job.output.intervals and job.problem.within_percent is not None:
        yield Fault(
            ("output", "intervals"),
            "'intervals' would show bounds of [problem] within_percent, whose middle is the true value: leave one out.",
        )
    for key in ("lower", "upper"):
        if job.output.intervals and isinstance(getattr(job.problem, key), str):
            yield Fault(
                ("output", "intervals"),
                f"'intervals' would show every reader the bounds of [problem] {key}, which some attackers know: leave "
                f"one out, or make the bound a number for all cells.",
            )
    named: list[tuple[KeyPath, str]] = [(("output", "release", i), name) for i, name in enumerate(job.output.release)]
    unusable = [*_unusable(job, named)]
    if unusable:
        yield from unusable
        return
    for path, name in named:
        if not name.lower().endswith(RELEASE_SUFFIXES):
            yield Fault(path, f"{name!r} must end in {', '.join(RELEASE_SUFFIXES)}: the suffix says the format.")
    for path, name in _reports(job):
        named.append((path, name))
        if not name.lower().endswith(REPORT_SUFFIXES):
            yield Fault(path, f"{name!r} must end in {', '.join(REPORT_SUFFIXES)}: the suffix says the format.")
    inputs = {_real(job, name): name for _, name in input_files(job)}
    if job.path is not None:
        inputs[job.path.resolve()] = job.path.name
    seen: dict[Path, str] = {}
    for path, name in named:
        file = _real(job, name)
        if file in inputs:
            yield Fault(path, f"{name!r} is read by this job: writing it would destroy the original.")
        elif file in seen:
            yield Fault(path, f"{name!r} would be written twice.")
        elif file.parent == _real(job, job.output.internal or INTERNAL) and file.name in INTERNAL_FILES:
            yield Fault(path, f"{name!r} is the name of a file that stays in the office: choose another folder.")
        elif kind_of(file):
            yield Fault(path, f"{name!r} is {kind_of(file)}.")
        seen[file] = name
    yield from _apart(job)
    for path, name in input_files(job):
        if _real(job, name).parent == _real(job, job.output.internal or INTERNAL) and Path(name).name in INTERNAL_FILES:
            yield Fault(path, f"{name!r} would be replaced by this run, which writes a file there: copy it elsewhere.")


def _reports(job: Job) -> list[tuple[KeyPath, str]]:
    """The reports for the public, with the key that names each."""
    single = isinstance(job.output.report, str)
    return [(("output", "report") if single else ("output", "report", i), n) for i, n in enumerate(job.output.reports)]


def _unusable(job: Job, named: list[tuple[KeyPath, str]]) -> Iterator[Fault]:
    """Names of outputs that no file system can hold."""
    others: list[tuple[KeyPath, str | None]] = [*_reports(job), (("output", "internal"), job.output.internal)]
    for path, name in [*named, *others]:
        if name is not None and (UNSEEN.search(name) or "\n" in name or len(Path(name).name.encode()) > LONGEST_NAME):
            yield Fault(path, f"{name[:40]!r} cannot be the name of a file.")


def _apart(job: Job) -> Iterator[Fault]:
    """What stays in the office does not lie where the release is picked up, nor the release among it.

    A folder into which releases or public reports are written counts as public, with all that is below it. The folder
    of the job itself is the office's own: who names another place for what is confidential may publish from it.
    """
    internal = _real(job, job.output.internal or INTERNAL)
    if job.output.internal is not None and internal.exists() and not internal.is_dir():
        yield Fault(("output", "internal"), f"{job.output.internal!r} is a file; it must be a folder.")
        return
    own = job.folder.resolve()
    named: list[tuple[KeyPath, str]] = [(("output", "release", i), name) for i, name in enumerate(job.output.release)]
    for path, name in [*named, *_reports(job)]:
        public = _folder_of(job, name)
        shown = str(Path(name).parent)
        if job.output.internal is None and is_inside(internal, public):
            yield Fault(
                path,
                f"{name!r} would lie in the same folder as {INTERNAL!r}, with the certificate and other secrets: put "
                f'it into a folder of its own ("public/{Path(name).name}"), or say where the secrets go '
                f"(internal = …).",
            )
            return
        if is_same_folder(internal, public):
            yield Fault(path, f"{name!r} would lie among what stays in the office: put it into a folder of its own.")
            return
        if is_inside(public, internal) and not is_inside(own, internal):
            yield Fault(
                path,
                f"{name!r} would lie inside {job.output.internal!r}, which is confidential: nobody can reach it there "
                f"without reaching the certificate too. Put it elsewhere.",
            )
            return
        if is_same_folder(public, own):
            continue
        secrets: list[tuple[KeyPath, str | None, str]] = [
            (("output", "internal"), job.output.internal or INTERNAL, "the certificate and other secrets"),
            (("run", "checkpoint"), job.run.checkpoint, "what a run has worked out so far"),
            (("audit", "key"), job.audit.key, "the private key"),
        ]
        for key, secret, what in secrets:
            if secret is not None and is_inside(_real(job, secret), public):
                yield Fault(
                    key, f"{secret!r} lies inside {shown!r}, which is public: {what} would be published with it."
                )
                return


def _folder_of(job: Job, name: str) -> Path:
    """The folder that a file is written into; a link in its place is replaced, so where it leads does not matter."""
    return _real(job, str(Path(name).parent))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or below it, whatever the spelling: the rest of both was resolved before."""
    return any(is_same_folder(each, folder) for each in (path, *path.parents))


def is_same_folder(one: Path, other: Path) -> bool:
    """Whether two folders are one: on some disks upper and lower case, or ways to write an accent, do not matter."""
    if _folded(one) == _folded(other):
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


def internal_folder(job: Job) -> Path:
    """The folder for what stays in the office."""
    return job.resolve(job.output.internal or INTERNAL)


def _real(job: Job, name: str) -> Path:
    """The file that a name leads to; one that leads nowhere is complained of elsewhere."""
    try:
        return job.resolve(name).resolve()
    except (OSError, ValueError, RuntimeError):  # too long, no name at all, a link to itself
        return job.resolve(name).absolute()
