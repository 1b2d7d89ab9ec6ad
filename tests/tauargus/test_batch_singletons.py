"""The singleton and minimum-frequency options of MOD: what each adds, on tables small enough to see it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablesafe as ts
from tablesafe.batch_jobs import BatchResult

META = '<SEPARATOR> ";"\na 1\n  <RECODEABLE>\nb 1\n  <RECODEABLE>\nv 5\n  <NUMERIC>\n'
BIG = [30, 28, 26, 25, 24]


def run(folder: Path, small: dict[tuple[str, str], list[int]], rule: str, options: str) -> BatchResult:
    """A table of 5 × 5 cells with five even contributors each, but for those given."""
    lines = [
        f"{a};{b};{value}"
        for a in "pqrst"
        for b in "vwxyz"
        for value in small.get((a, b), [x + 3 * "pqrst".index(a) + 2 * "vwxyz".index(b) for x in BIG])
    ]
    (folder / "d.asc").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "d.rda").write_text(META, encoding="utf-8")
    text = f'<OPENMICRODATA> "d.asc"\n<OPENMETADATA> "d.rda"\n<SPECIFYTABLE> "a""b"|"v"||-2\n<SAFETYRULE> {rule}\n'
    (folder / "j.arb").write_text(f"{text}<READMICRODATA>\n<SUPPRESS> MOD(1,1,{options})\n", encoding="utf-8")
    found = ts.run(folder / "j.arb")
    assert isinstance(found, BatchResult)
    assert found.safe
    return found


def withheld(result: BatchResult, row: str) -> int:
    """How many inner cells of a row are withheld."""
    table = result.problem.table
    return sum(bool(result.release.suppressed[table.index(a=row, b=b)]) for b in "vwxyz")


ALONE = {("p", "v"): [40], ("p", "w"): [50], ("q", "v"): [45], ("q", "w"): [35]}


@pytest.mark.parametrize(("options", "fewest"), [("0,0,0", 2), ("1,0,0", 3), ("0,1,0", 3), ("1,1,1", 3)])
def test_two_singletons_protect_each_other_only_from_outsiders(tmp_path: Path, options: str, fewest: int) -> None:
    """Each knows its own value, so with the row total it would know the other's."""
    result = run(tmp_path, ALONE, "FREQ(2,10)", options)
    assert withheld(result, "p") >= fewest
    if options == "0,0,0":
        assert withheld(result, "p") == 2
    else:
        assert ts.audit(result.problem, result.release).insiders is not None
        assert ts.audit(result.problem, result.release, unions=False).safe


FEW = {("p", "v"): [20, 22], ("p", "w"): [21, 23], ("q", "v"): [24, 26], ("q", "w"): [25, 27]}


@pytest.mark.parametrize(("options", "alone"), [("0,0,0", True), ("0,0,1", False), ("1,1,1", False)])
def test_withheld_cells_of_a_row_together_have_enough_contributors(tmp_path: Path, options: str, alone: bool) -> None:
    """Two cells of two contributors each are four, below the minimum of five: their sum can be derived."""
    result = run(tmp_path, FEW, "FREQ(5,10)", options)
    assert (withheld(result, "p") == 2) == alone
