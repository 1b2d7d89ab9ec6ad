"""A release, or all that the office knows of a table, as `<WRITETABLE>` of τ-ARGUS would write it.

| type | file | holds |
|---|---|---|
| 1 | CSV | the release as a grid of rows and columns |
| 2 | CSV for a pivot table | the release, one line per cell, names on the first line |
| 3 | code-value | the release, one line per cell |
| 4 | SBS | every true value with its count and flag: **confidential**, for Eurostat only |
| 5 | intermediate (`.tab`, `.rda`, `.hrc`, `.cdl`) | values, costs, statuses, levels, contributors: **confidential** |
| 6 | JJ | values, costs, statuses, bounds, levels, equations: **confidential** |
| 7 | cell key | the perturbed values; **confidential** with AO+ (original), AD+ (difference), AC+ (key) |

In a release what is withheld is `x` and what is empty is `-`; nothing tells a sensitive cell from another. With `AS+`
types 2 and 3 are no release: as in τ-ARGUS they then hold the status and the true value of every cell. Whatever is
confidential is marked so, and written for its owner's eyes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidOption, InvalidRelease
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.files.write import write_text
from tablesafe.io import tauargus_write_internal as internal
from tablesafe.io.tauargus_write_options import Kind, WriteOptions, parse_kind, parse_options, unused
from tablesafe.io.tauargus_write_public import grid, listed, status_notes
from tablesafe.io.tauargus_write_sheet import Protected, Sheet, protected_how
from tablesafe.io.tauargus_write_tab import intermediate


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file: its name, its text, and whether it must stay in the office."""

    name: str
    text: str = field(repr=False)
    confidential: bool


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one `<WRITETABLE>`, the one it names first, and what could not be put into them."""

    files: tuple[TableFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def confidential(self) -> bool:
        """Whether any of them must stay in the office."""
        return any(file.confidential for file in self.files)


def write_table(
    release: Release,
    problem: Problem,
    path: str | Path,
    kind: int | str,
    options: str | WriteOptions = "",
    *,
    findings: Findings | None = None,
    decimals: int | None = None,
    widths: Mapping[str, int] | None = None,
) -> TableFiles:
    """Write a table to a file, and to others beside it where its type has them; see `table_files`.

    Confidential files are readable by their owner only. Nothing is written unless everything can be.
    """
    path = Path(path)
    written = table_files(
        release, problem, path.name, kind, options, findings=findings, decimals=decimals, widths=widths
    )
    for file in written.files:
        write_text(path.parent / file.name, file.text, private=file.confidential)
    return written


def table_files(
    release: Release,
    problem: Problem,
    name: str,
    kind: int | str,
    options: str | WriteOptions = "",
    *,
    findings: Findings | None = None,
    decimals: int | None = None,
    widths: Mapping[str, int] | None = None,
) -> TableFiles:
    """The files of a table as text: `kind` is the type of τ-ARGUS (1 to 7), `options` are such as `AS+SE+`.

    `findings` are those of `audit(problem, release, cells="all")`, for `AR+`; without them the table is audited.
    `decimals` are shown of every value; by default as many as the table has. `widths` gives the width of codes by
    dimension: τ-ARGUS puts spaces before shorter codes of a variable that has no hierarchy file.
    """
    if release.table is not problem.table and len(release.table) != len(problem.table):
        raise InvalidRelease("The release is not one of this problem: they have different cells.")
    form = parse_kind(kind)
    wanted = options if isinstance(options, WriteOptions) else parse_options(options)
    _refuse_unsuited(form, protected_how(release))
    sheet = Sheet(problem, release, wanted, decimals, widths)
    asked = "" if isinstance(options, WriteOptions) else options
    notes = [f"{letters}+ says nothing to a file of type {form.value}." for letters in unused(form, asked)]
    match form:
        case Kind.CSV:
            files = [TableFile(name, grid(sheet), False)]
        case Kind.PIVOT | Kind.CODE_VALUE:
            files = [TableFile(name, listed(sheet, names=form is Kind.PIVOT or wanted.FL), sheet.tells_the_truth)]
            notes += status_notes(sheet)
        case Kind.SBS:
            files = [TableFile(name, internal.sbs(sheet), True)]
        case Kind.INTERMEDIATE:
            written = intermediate(sheet, name, findings)
            files, more = [TableFile(file, text, True) for file, text in written.texts.items()], written.notes
            notes += more
        case Kind.JJ:
            files = [TableFile(name, internal.jj(sheet), True)]
        case Kind.CELL_KEY:
            told = wanted.AO or wanted.AD or wanted.AC
            files = [TableFile(file, text, told) for file, text in internal.cell_key(sheet, name).items()]
            if wanted.AC:
                notes.append("AC+: a release does not hold the keys of its cells; they are not written.")
    if release.intervals is not None and form in {Kind.CSV, Kind.PIVOT, Kind.CODE_VALUE}:
        notes.append("The intervals that the release publishes have no place in this format.")
    return TableFiles(tuple(files), tuple(notes))


def _refuse_unsuited(kind: Kind, how: Protected) -> None:
    """The combinations that τ-ARGUS refuses too."""
    wrong = (
        (kind in {Kind.SBS, Kind.INTERMEDIATE} and how in {"adjusted", "perturbed"})
        or (kind is Kind.JJ and how == "rounded")
        or (kind is Kind.CELL_KEY and how != "perturbed")
    )
    if wrong:
        raise InvalidOption(
            f"A table that is {how} cannot be written as type {kind.value} ({kind.name.lower().replace('_', ' ')})."
            f"\n\nHint: types 1, 2 and 3 hold any release."
        )
