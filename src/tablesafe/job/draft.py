"""A first job for a data file, from a look at its columns: which hold codes, which amounts, which respondents?"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from tablesafe.core.errors import InvalidFile, InvalidHierarchy, TablesafeError
from tablesafe.core.hierarchy import TOTAL, Hierarchy
from tablesafe.core.sensitivity import Rule
from tablesafe.core.statuses import Scheme, recognised_scheme, schemes_of
from tablesafe.core.totals import looks_like_total
from tablesafe.files.read import Source as Rows
from tablesafe.job.dump import dump_job
from tablesafe.job.model import Dimension, Job, Output, Response, Source
from tablesafe.job.questions import MISSING, questions
from tablesafe.job.toml import read_toml
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate.counted import FEWEST_COUNTED, looks_like_frequency

MOST_CODES = 300
"""A column with more distinct entries is no dimension that anybody would print."""
MOST_DIMENSIONS = 3
"""Dimensions that a first draft of a job has at most; the others are offered."""
MOST_TOTAL_CODES = 20_000
"""Distinct codes of a column that has a code for the total, and so surely is a dimension."""
MOST_TREES = 40
"""Hierarchies beside the data that are looked at."""
SAMPLE = 200_000
"""Rows that are looked at."""
MANY_GROUPS, MEMBERS = 20, 5
"""A column called 'group' with more entries than the first, of fewer rows each than the second, names holdings."""

_RESPONDENT = re.compile(
    r"(^|[_ ])(firm|enterprise|company|respondent|business|siren|firma|unternehmen|betrieb|entreprise|empresa|impresa|"
    r"bedrijf|foretak|företag|virksomhed)($|[_ ])",
    re.I,
)
_IDENTITY = re.compile(r"(^|[_ ])(id|ident|person|unit)($|[_ ])|id$", re.I)
_HOLDING = re.compile(r"(^|[_ ])(group|holding|parent|owner|konzern|groupe|gruppe|konsern|koncern)($|[_ ])", re.I)
_SURELY_HOLDING = re.compile(r"(^|[_ ])(holding|konzern|konsern|koncern)($|[_ ])", re.I)
_WEIGHT = re.compile(r"(^|[_ ])(w|wt|wgt|weight|weights|pond|poids|peso|gewicht|vekt)($|[_ ])|weight$", re.I)
_STATUS = re.compile(
    r"status|flag|confiden|suppress|sensitiv|withheld|secre|geheim|gesperrt|secreto|confidencial|primary", re.I
)
MARKS = frozenset({".", "..", "...", "na", "n/a", "#n/a", "nan", "null", "none", "missing"})
"""What programs write for an amount that is missing, in small letters."""
_LARGEST = re.compile(r"max|largest|^top", re.I)
_YEAR = re.compile(r"year|date|period", re.I)


@dataclass(frozen=True, slots=True)
class Look:
    """What a column looks like."""

    name: str
    rows: int
    distinct: int
    numeric: bool
    whole: bool
    empty: int
    total: str | None
    """A code that looks like a total, if there is one."""
    negative: int = 0
    """How many entries are negative."""
    hierarchy: str | None = None
    """The file beside the data, in its folder, whose leaves are the codes of this column."""
    marks: tuple[str, ...] = ()
    """Texts in a column of numbers that stand for nothing."""

    @property
    def is_code(self) -> bool:
        """Whether it could span a table: few distinct entries, each used again and again."""
        if self.hierarchy is not None:
            return True
        if self.is_holding or (self.numeric and _WEIGHT.search(self.name)):
            return False
        few = 2 <= self.distinct <= min(MOST_CODES, max(2, self.rows // 2))
        return few and (not self.numeric or (self.whole and self.distinct <= 60)) and not _YEAR.search(self.name)

    @property
    def is_holding(self) -> bool:
        """Whether it says who belongs together: by its name alone, or with many entries of few members each."""
        small = self.distinct > MANY_GROUPS and self.rows - self.empty < MEMBERS * self.distinct
        return bool(_SURELY_HOLDING.search(self.name)) or (bool(_HOLDING.search(self.name)) and small)

    @property
    def is_amount(self) -> bool:
        """Whether it could be added up."""
        return self.numeric and not self.is_identity and self.distinct > 2

    @property
    def is_identity(self) -> bool:
        """Whether its name says that it tells respondents apart."""
        return bool(_RESPONDENT.search(self.name)) or (bool(_IDENTITY.search(self.name)) and self.distinct > 10)


def look_at(source: Rows, folder: Path | None = None) -> list[Look]:
    """Look at the columns of a file, and at the hierarchies in its folder."""
    frame = source.frame.head(SAMPLE)
    looks = [_look(frame[name], frame.height) for name in frame.columns]
    trees = {} if folder is None else _trees(folder)
    return [replace(look, hierarchy=_fitting(frame[look.name], look, trees)) for look in looks]


def _trees(folder: Path) -> dict[str, frozenset[str]]:
    """The leaves of every `.hrc` file in a folder that can be read."""
    found = {}
    for path in sorted(folder.glob("*.hrc"))[:MOST_TREES]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = Hierarchy.from_hrc(path)
            except (TablesafeError, OSError):
                continue
        leaves = set(tree.leaves)
        leaves |= {alias for alias, code in tree.aliases.items() if code in leaves}
        found[path.name] = frozenset(code.strip() for code in leaves)
    return found


def _fitting(column: pl.Series, look: Look, trees: dict[str, frozenset[str]]) -> str | None:
    """The hierarchy that has every code of a column among its leaves: the one of its name, or else the only one."""
    if not trees or look.distinct < 2 or look.distinct > MOST_TOTAL_CODES:
        return None
    text = column.cast(pl.String).str.strip_chars()
    codes = set(text.filter(text.is_not_null() & (text != "")).unique().to_list())
    fits = [name for name, leaves in trees.items() if codes <= leaves]
    own = [name for name in fits if Path(name).stem.casefold() == look.name.casefold()]
    return own[0] if own else fits[0] if len(fits) == 1 else None


def _look(column: pl.Series, rows: int) -> Look:
    text = column.cast(pl.String).str.strip_chars()
    filled = text.filter(text.is_not_null() & (text != ""))
    marked = filled.str.to_lowercase().is_in(list(MARKS))
    marks = filled.filter(marked).unique().sort().to_list()
    number = filled.filter(~marked).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    numeric = len(number) > 0 and number.null_count() == 0
    if numeric:
        filled = filled.filter(~marked)
    whole = numeric and bool((number == number.floor()).all())
    codes = set(filled.unique().to_list())
    total = next((code for code in sorted(codes) if looks_like_total(code)), None) if not numeric else None
    negative = int((number < 0).sum()) if numeric else 0
    return Look(
        column.name, rows, len(codes), numeric, whole, rows - len(filled), total, negative,
        marks=tuple(marks) if numeric else (),
    )  # fmt: skip


def draft_text(
    path: Path, source: Rows, folder: Path, *, sheet: str | None = None, crosstab: Sequence[str] | None = None
) -> tuple[str, str]:
    """A commented job file for the data, to stand in `folder`, and what was guessed in one sentence.

    Of a workbook it names the `sheet`; of a crosstab the dimensions are known.
    """
    if crosstab is None:
        job, looks = draft_job(path, source, folder=folder)
        job = replace(job, source=replace(job.source, sheet=sheet))
    else:
        job, looks = _of_crosstab(path, source, folder, sheet, crosstab)
    decided = [str(each) for each in questions(read_toml(dump_job(job)), {look.name: look for look in looks})]
    head = [
        f"# A job for {path.name}, from a look at its columns. Everything here is a guess: check it.",
        "#",
        *describe_looks(looks),
        *(["#", *(f"#   {line}" for line in decided)] if decided else []),
        "",
    ]
    what = "cells" if job.source.kind == "cells" else "records"
    if job.source.frequency is not None:
        what = f"rows, each of them {job.source.frequency!r} respondents"
    who = f", respondents in {job.source.respondent!r}" if job.source.respondent else ""
    number = "the number of records" if job.source.frequency is None else "the number of respondents"
    value = ", ".join(map(repr, job.response.value)) or number
    summary = f"{source.frame.height:,} {what}: {value} by {', '.join(map(repr, job.dimensions))}{who}."
    summary = "\n".join([summary, *decided])
    return "\n".join(head) + "\n" + dump_job(job, explain=True), summary


def draft_job(path: Path, source: Rows, *, folder: Path) -> tuple[Job, list[Look]]:
    """A job for the file that runs as it is where the file allows it, and what was seen of each column."""
    looks = look_at(source, path.parent)
    totals = [look for look in looks if look.total is not None and look.distinct <= MOST_TOTAL_CODES]
    respondent = next((look for look in looks if look.is_identity), None)
    codes = totals or [
        look for look in looks if look.is_code and not look.is_identity and not _names(source, look, respondent)
    ]
    if not codes:
        raise InvalidFile(
            f"No column of {source.name} looks like codes: "
            + ", ".join(f"{look.name!r} ({look.distinct:,} distinct)" for look in looks[:8])
            + ".",
            hint="check the delimiter and the header line.",
        )
    file = _relative(path, folder)
    if totals:
        return _of_cells(file, source, looks, totals), looks
    frequency = _frequency(source, looks, codes)
    beside = {
        look.name: _relative(path.parent / look.hierarchy, folder) for look in codes if look.hierarchy is not None
    }
    if frequency is not None:
        spanning = [look for look in codes if look.name != frequency]
        return (
            _of_counts(file, looks, _dimensions(source, file, spanning, beside, most=len(spanning)), frequency),
            looks,
        )
    return _of_records(file, looks, codes, _dimensions(source, file, codes, beside, most=MOST_DIMENSIONS)), looks


def _names(source: Rows, look: Look, respondent: Look | None) -> bool:
    """Whether a column only names the respondents once more."""
    if respondent is None or look.distinct * 2 < respondent.distinct:
        return False
    return source.frame.head(SAMPLE).select(respondent.name, look.name).unique().height == respondent.distinct


def _dimensions(
    source: Rows, file: str, codes: list[Look], beside: dict[str, str], *, most: int
) -> dict[str, Dimension]:
    """Dimensions from the columns with codes; a column that another one refines becomes a level above it.

    `beside` are the files with the hierarchies of some of them, which come first.
    """
    frame = source.frame.head(SAMPLE)
    finest = sorted(codes, key=lambda look: (look.name not in beside, look.numeric, codes.index(look)))
    above = {look.name: [other for other in codes if _refines(frame, look, other)] for look in finest}
    coarse = {other.name for others in above.values() for other in others}
    dimensions: dict[str, Dimension] = {}
    for look in [look for look in finest if look.name not in coarse][:most]:
        levels = _chain(frame, above[look.name])
        missing = MISSING if look.empty else "error"
        dimensions[look.name] = Dimension(missing=missing, hierarchy=beside.get(look.name))
        if look.name not in beside and levels and not look.empty and _is_tree(source, [*levels, look.name]):
            dimensions[look.name] = Dimension(hierarchy=file, kind="levels", columns=(*levels, look.name))
    return dimensions


def _chain(frame: pl.DataFrame, above: list[Look]) -> list[str]:
    """As many of the columns above a dimension as refine each other, the coarsest first."""
    chain: list[Look] = []
    for look in sorted(above, key=lambda look: -look.distinct):
        if not chain or _refines(frame, chain[0], look):
            chain.insert(0, look)
    return [look.name for look in chain]


def _refines(frame: pl.DataFrame, fine: Look, coarse: Look) -> bool:
    """Whether every code of one column belongs to a single code of the other, which has fewer."""
    if fine.distinct <= coarse.distinct or coarse.empty or fine.empty:
        return False
    return frame.select(fine.name, coarse.name).unique().height == fine.distinct


def _is_tree(source: Rows, columns: list[str]) -> bool:
    try:
        Hierarchy.from_levels(source.frame.head(SAMPLE).select(columns).unique(maintain_order=True), columns=columns)
    except InvalidHierarchy:
        return False
    return True


def _frequency(source: Rows, looks: list[Look], codes: list[Look]) -> str | None:
    """The column with the number of respondents, when every row stands for a combination of codes."""
    if source.frame.height < FEWEST_COUNTED or any(look.is_identity for look in looks):
        return None
    named = [look.name for look in looks if look.whole and not look.negative and look_like_counts(look)]
    names = [look.name for look in codes if look.name not in named]
    if not named or not names or source.frame.select(names).is_duplicated().any():
        return None
    return named[0]


def look_like_counts(look: Look) -> bool:
    """Whether a column may say how many respondents a row stands for."""
    return look.distinct > 1 and looks_like_frequency(look.name)


def _of_records(file: str, looks: list[Look], codes: list[Look], dimensions: dict[str, Dimension]) -> Job:
    respondent = next((look.name for look in looks if look.is_identity), None)
    holding = next((look.name for look in looks if _HOLDING.search(look.name) and look not in codes), None)
    weight = next((look.name for look in looks if look.numeric and _WEIGHT.search(look.name)), None)
    used = {*dimensions, weight, respondent, holding}
    amounts = [look for look in looks if look.is_amount and look.name not in used and not _YEAR.search(look.name)]
    amounts.sort(key=lambda look: -look.distinct)
    gaps = f'"{amounts[0].name}" IS NOT NULL' if amounts and amounts[0].empty and '"' not in amounts[0].name else None
    return Job(
        title=f"{amounts[0].name if amounts else 'Records'} by {' and '.join(dimensions)}",
        source=Source(
            file=file,
            kind="records",
            respondent=respondent,
            holding=holding,
            weight=weight,
            where=gaps,
            empty=amounts[0].marks if amounts else (),
        ),
        dimensions=dimensions,
        response=Response(value=(amounts[0].name,) if amounts else ()),
        rules=(Threshold(), PPercent()) if amounts else (Threshold(),),
        output=_output(),
    )


def _of_counts(file: str, looks: list[Look], dimensions: dict[str, Dimension], frequency: str) -> Job:
    """A job for rows that stand for several respondents each: nobody knows how much each of them reported."""
    weight = next((look.name for look in looks if look.numeric and _WEIGHT.search(look.name)), None)
    used = {*dimensions, weight, frequency}
    amounts = [
        look
        for look in looks
        if look.is_amount and look.name not in used and not look.whole and not _YEAR.search(look.name)
    ]
    amounts.sort(key=lambda look: -look.distinct)
    return Job(
        title=f"{amounts[0].name if amounts else frequency} by {' and '.join(dimensions)}",
        source=Source(file=file, kind="records", frequency=frequency, weight=weight),
        dimensions=dimensions,
        response=Response(value=(amounts[0].name,) if amounts else ()),
        rules=(Threshold(),),
        output=_output(),
    )


def _of_cells(file: str, rows: Rows, looks: list[Look], codes: list[Look]) -> Job:
    count = next(
        (look.name for look in looks if look.whole and looks_like_frequency(look.name) and look not in codes), None
    )
    largest = [look.name for look in looks if look.numeric and _LARGEST.search(look.name) and look not in codes]
    used = {look.name for look in codes} | {count, *largest}
    amounts = [look for look in looks if look.is_amount and look.name not in used]
    value = next((look.name for look in amounts), count or looks[-1].name)
    status, scheme = _status(rows, [look for look in looks if look.name not in used | {value}])
    rules: tuple[Rule, ...] = (Threshold(), PPercent()) if len(largest) >= 2 else (Threshold(),)
    return Job(
        title=f"{value} by {' and '.join(look.name for look in codes)}",
        source=Source(
            file=file,
            kind="cells",
            count=count,
            contributions=tuple(largest) if len(largest) >= 2 else (),
            status=status,
            scheme=scheme,
        ),
        dimensions={look.name: Dimension(total=look.total or TOTAL) for look in codes},
        response=Response(value=(value,)),
        rules=rules if count is not None else rules[1:] or rules,
        output=_output(),
    )


def _status(rows: Rows, looks: list[Look]) -> tuple[str | None, Scheme | None]:
    """The column with the status that each cell has already, and its vocabulary where nothing else can be meant.

    Where several can be, a run asks which it is: what somebody else found out about cells is never passed over.
    """
    for look in looks:
        if _STATUS.search(look.name) and schemes_of(rows, look.name):
            try:
                return look.name, recognised_scheme(rows, look.name)
            except InvalidFile:
                return look.name, None
    return None, None


def _of_crosstab(
    path: Path, source: Rows, folder: Path, sheet: str | None, dimensions: Sequence[str]
) -> tuple[Job, list[Look]]:
    """A job for a sheet with codes down its side and across its top."""
    looks = look_at(source, path.parent)
    codes = [look for look in looks if look.name in dimensions]
    job = _of_cells(_relative(path, folder), source, looks, codes)
    lacking = any(look.total is None for look in codes)
    given = replace(job.source, sheet=sheet, layout="crosstab", missing_totals="compute" if lacking else "error")
    return replace(job, source=given), looks


def _output() -> Output:
    """Files that are not called after the source: its name may be as confidential as what is in it."""
    return Output(release=("public/release.csv",), report="public/report.html", internal="internal")


def _relative(path: Path, folder: Path) -> str:
    """The path as the job file should name it: relative to its folder where that is short; links keep their names."""
    path, folder = (Path(os.path.abspath(each)) for each in (path, folder))  # noqa: PTH100
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def describe_looks(looks: list[Look]) -> list[str]:
    """What was seen, as comment lines."""
    width = max(len(look.name) for look in looks)
    lines = []
    for look in looks:
        kind = "whole numbers" if look.whole else "numbers" if look.numeric else "text"
        empty = f", {look.empty:,} empty" if look.empty else ""
        below = f", {look.negative:,} negative" if look.negative else ""
        tree = f", codes of {look.hierarchy}" if look.hierarchy else ""
        lines.append(f"#   {look.name:<{width}}  {kind}, {look.distinct:,} distinct{empty}{below}{tree}")
    return lines
