"""Instances for those who do not have the folder of benchmark instances: small ones kept here, others made by seed.

The samples of τ-ARGUS may not be copied. What tests only run on, and do not compare with its printed answers, has
a stand-in of the same form; whatever has none is skipped by name.
"""

from __future__ import annotations

import gzip
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import tablesafe as ts

KEPT = Path(__file__).resolve().parent / "instances"


class StandIns(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A folder of stand-ins: a test that asks for what it does not hold is skipped."""

    def __truediv__(self, name: str) -> Path:
        found = super().__truediv__(name)
        if not found.exists():
            pytest.skip(f"{name} is not among the small instances: set TABLESAFE_INSTANCES")
        return found  # type: ignore[no-any-return]


def stand_ins(folder: Path) -> Path:
    """Fill a folder as that of the benchmark instances is filled, as far as that goes."""
    for kept in KEPT.rglob("*.*"):
        place = folder / kept.relative_to(KEPT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if kept.parent.name == "jj" and kept.suffix == ".gz":
            place.with_suffix("").write_bytes(gzip.decompress(kept.read_bytes()))
        else:
            shutil.copyfile(kept, place)
    utilities = folder / "microdata" / "eia_utilities_1996.csv"
    utilities.parent.mkdir()
    utilities.write_bytes((resources.files("tablesafe") / "demo" / utilities.name).read_bytes())
    _firms(folder / "microdata" / "firms")
    _keyed(folder / "tauargus" / "cellkey")
    return StandIns(folder)


def _firms(folder: Path) -> None:
    """Records of firms as an office has them: three trees, some losses, some gaps."""
    folder.mkdir()
    random, n = np.random.default_rng(22), 1_500
    regions = [f"{a}{b}{c}" for a in "NS" for b in "12" for c in "123"]
    branches = [f"{a}{b}{c}" for a in "123" for b in "012" for c in "12"]
    _tree(folder / "region.hrc", regions)
    _tree(folder / "nace.hrc", branches)
    sizes = ("1-9", "10-49", "50-249", "250+")
    lines = ["firm_id;group_id;region;nace;size;turnover;employees"]
    for i in range(n):
        turnover = float(np.round(random.lognormal(2.5, 1.5) * (-1 if random.random() < 0.01 else 1), 1))
        region, branch = (str(random.choice(codes)) for codes in (regions, branches))
        size = sizes[min(3, int(random.exponential(0.9)))]
        told = "" if i % 150 == 7 else f"{turnover}"
        lines.append(
            f"F{i:06};G{random.integers(n)};{'' if i % 200 == 3 else region};{branch};{size};{told};{1 + i % 90}"
        )
    (folder / "firms.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tree(path: Path, leaves: list[str]) -> None:
    """A hierarchy in which a code lies below the code that it begins with."""
    codes = sorted({leaf[:length] for leaf in leaves for length in (1, 2, 3)})
    path.write_text("".join(f"{'@' * (len(code) - 1)}{code}\n" for code in codes), encoding="utf-8")


META = """<SEPARATOR> ";"
Sex 1
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "dim_sex.hrc"
  <HIERLEADSTRING> "@"
Age 1
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "dim_age.hrc"
  <HIERLEADSTRING> "@"
HighIncome 1
  <NUMERIC>
  <CKM> N
Savings 4
  <NUMERIC>
  <CKM> T(3)
  <INCLUDEZEROS> N
  <SEPARATION> Y
  <PARITY> N
  <SCALING> F(0.03,0.30,1000,3,0.5,0.2)
Weight 3
  <WEIGHT>
Key 10
  <RECORDKEY>
  <DECIMALS> 8
  <PFILE> "ptab_freq.txt"
  <PFILE_CONT> "ptab_savings_all.txt"
  <PFILE_SEP> "ptab_savings_smallcells.txt"
"""


def _keyed(folder: Path) -> None:
    """Records with keys, their metadata and the table of the noise, in the files of τ-ARGUS."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(7)
    lines = [
        f"{random.integers(1, 3)};{random.integers(1, 7)};{random.integers(2)};{random.integers(1, 1_000)};"
        f"{random.integers(10, 99)};{random.integers(10**8) / 10**8:.8f}"
        for _ in range(400)
    ]
    (folder / "microdata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "microdata.rda").write_text(META, encoding="utf-8")
    (folder / "dim_sex.hrc").write_text("male\n@2\nfemale\n@1\n", encoding="utf-8")
    (folder / "dim_age.hrc").write_text("A1\n@1\nA2\n@2\n3\n4\n5\n6\n", encoding="utf-8")
    noise = ts.design_perturbation(maximum_change=5, variance=3, smallest=3, stay=0.5)
    ts.write_perturbation(noise, folder / "ptab_freq.txt")
