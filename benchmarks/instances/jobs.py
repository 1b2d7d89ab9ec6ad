"""Batch jobs of τ-ARGUS: its own samples, and firms made here from a seed, with hierarchies."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.instances.files import shared
from benchmarks.registry import Made, NotHere, instance

SINGLETONS = "MOD(1,5,1,1,1)"


@dataclass(frozen=True, slots=True)
class JobText:
    """What a job opens, tabulates and asks for."""

    data: str
    metadata: str
    table: str
    rules: str
    suppress: str = SINGLETONS
    tabular: bool = False

    def write(self, folder: Path) -> None:
        """`job.arb`, which writes every value with its status, and `read.arb`, which stops after reading."""
        opened, read = ("OPENTABLEDATA", "READTABLE") if self.tabular else ("OPENMICRODATA", "READMICRODATA")
        reading = [
            f'<{opened}> "{self.data}"',
            f'<OPENMETADATA> "{self.metadata}"',
            f"<SPECIFYTABLE> {self.table}",
            f"<SAFETYRULE> {self.rules}",
            f"<{read}>",
        ]
        protecting = [f"<SUPPRESS> {self.suppress}", '<WRITETABLE> (1,3,AS+,"peer.txt")']
        (folder / "read.arb").write_text("\n".join(reading) + "\n")
        (folder / "job.arb").write_text("\n".join(reading + protecting) + "\n")


def sample(part: str, job: JobText, folder: Path) -> Made:
    """A job on τ-ARGUS's own sample files."""
    source = shared() / "tauargus" / part
    if not source.is_dir():
        raise NotHere(f"the shared instances have no tauargus/{part}")
    for file in source.iterdir():
        if file.is_file():
            shutil.copy(file, folder / file.name)
    metadata = folder / job.metadata
    metadata.chmod(0o644)  # hierarchies are named by paths of another machine, which pytauargus does not look beside
    text = re.sub(r'"\\\\[^"]*\\([^"\\]+)"', r'"\1"', metadata.read_text(encoding="latin-1"))
    metadata.write_text(text, encoding="latin-1")
    job.write(folder)
    return Made()


def made(sizes: tuple[int, ...], records: int, seed: int, suppress: str, folder: Path) -> Made:
    """A job on made-up firms: `sizes` are the leaves of each dimension, in groups of four; skewed amounts."""
    random = np.random.default_rng(seed)
    fields, described, names, start = [], [], [], 1
    for d, leaves in enumerate(sizes):
        name, codes = f"d{d + 1}", [f"{i:03d}" for i in range(leaves)]
        (folder / f"{name}.hrc").write_text(_tree(codes))
        share = random.dirichlet(np.full(leaves, 0.8))
        fields.append(np.array(codes)[random.choice(leaves, records, p=share)])
        described += [f"{name} {start} 3", "  <RECODEABLE>", '  <TOTCODE> "Total"', "  <HIERARCHICAL>",
                      f'  <HIERCODELIST> "{name}.hrc"', '  <HIERLEADSTRING> "@"']  # fmt: skip
        names.append(name)
        start += 3
    amount = np.rint(random.lognormal(4, 1.5, records)).astype(int).clip(1, 99_999_999)
    described += [f"amount {start} 8", "  <NUMERIC>"]
    rows = ["".join(codes) + f"{value:8d}" for *codes, value in zip(*fields, amount, strict=True)]
    (folder / "made.asc").write_text("\n".join(rows) + "\n")
    (folder / "made.rda").write_text("\n".join(described) + "\n")
    table = "".join(f'"{name}"' for name in names) + '|"amount"||'
    JobText("made.asc", "made.rda", table, "P(10,1)|FREQ(3,10)", suppress).write(folder)
    return Made(facts={"records": records})


def _tree(codes: list[str]) -> str:
    """A hierarchy file with groups of four."""
    lines = []
    for group in range(0, len(codes), 4):
        lines += [f"G{group // 4:02d}", *(f"@{code}" for code in codes[group : group + 4])]
    return "\n".join(lines) + "\n"


TESTW, ENTERPRISE = ("tau_testW.asc", "Tau_TestW.rda"), ("example_enterprise.asc", "example_enterprise.rda")
TABULAR = ("tabdata_ex1.tab", "metadata_ex1.rda", '"region""gender"|"freq"||', "MAN(20)", "OPT(1,1)", True)
SAMPLES: dict[str, tuple[str, JobText, int]] = {
    "job_ex1": ("batch/ex1", JobText(*TABULAR), 30),
    "job_Simple2D": ("testW", JobText(*TESTW, '"Size""Region"|"Var2"||', "P(15,1)"), 162),
    "job_Simple2D_optimal": ("testW", JobText(*TESTW, '"Size""Region"|"Var2"||', "P(15,1)", "OPT(1,1)"), 162),
    "job_region_industry": ("testW", JobText(*TESTW, '"Region""IndustryCode"|"Var2"||', "NK(2,75)"), 1_500),
    "job_size_region_year": ("testW", JobText(*TESTW, '"Size""Region""Year"|"Var2"||', "P(15,1)"), 400),
    "job_enterprise": (
        "enterprise", JobText(*ENTERPRISE, '"act""product"|"turnover"||', "P(0,0)|P(0,0)|P(10,1)"), 1_500
    ),
}  # fmt: skip
MADE: dict[str, tuple[tuple[int, ...], int, int, str]] = {
    "job_2d": ((24, 16), 6_000, 1, SINGLETONS),
    "job_2d_large": ((120, 60), 60_000, 2, SINGLETONS),
    "job_3d": ((12, 8, 6), 6_000, 3, SINGLETONS),
    "job_3d_large": ((24, 12, 8), 30_000, 4, SINGLETONS),
    "job_3d_optimal": ((8, 8, 4), 3_000, 5, "OPT(1,1)"),
}
for _name, (_part, _job, _cells) in SAMPLES.items():
    instance(_name, f"a batch job on τ-ARGUS's sample {_part}", _cells, partial(sample, _part, _job))
for _name, (_sizes, _records, _seed, _way) in MADE.items():
    _about = f"a batch job of τ-ARGUS on made-up firms, {' × '.join(map(str, _sizes))} leaves"
    instance(_name, _about, _records, partial(made, _sizes, _records, _seed, _way))
