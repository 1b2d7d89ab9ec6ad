"""The same τ-ARGUS job by tablesafe and by pytauargus: primaries, what is withheld, what is open, CPU seconds.

python benchmarks/tauargus_jobs.py --peer-python /path/to/python    # an interpreter that has pytauargus
python benchmarks/tauargus_jobs.py Simple2D made_3d --seconds 1 5

Each job is a folder with an .arb file: τ-ARGUS's own samples (looked for where the tests look, TABLESAFE_INSTANCES)
and microdata made here from a seed, with hierarchies. pytauargus runs the .arb in a process of its own. tablesafe reads
the same .arb with its own reader, applies the rules, and protects; for each time limit there is a row. Seconds are CPU
seconds of the process and its children without start-up: reading, tabulating, rules, and protection, ours with the
audit that the protection ends with. The rows `alike` protect from outsiders, as pytauargus does; they stop at the first
time limit that withholds no more value than pytauargus. The rows `guarded` protect also from respondents, who know what
they contributed, and from sums that can be derived: that is what a job does here unless it says otherwise. Open cells
are counted by the audit, as an outsider sees it and as every respondent does, and by linear programs of another library
on a sample of cells.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

from suppress import open_by_programs
from tablesafe.audit.audit import audit
from tablesafe.errors import TablesafeError
from tablesafe.io.tauargus_output import read_code_value
from tablesafe.methods.suppress.method import Suppress
from tablesafe.pipeline.batch import run_batch
from tablesafe.problem import Problem
from tablesafe.release import Release

REPOSITORY = Path(__file__).resolve().parent.parent
PEER = """
import json, resource, sys
from pytauargus.engine import run_batch
def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
begin = spent()
run_batch(sys.argv[1])
print(json.dumps({"seconds": spent() - begin}))
"""
SINGLETONS = "MOD(1,5,1,1,1)"
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class JobText:
    """What a job opens, tabulates and asks for."""

    data: str
    metadata: str
    table: str
    rules: str
    suppress: str = SINGLETONS
    tabular: bool = False

    def arb(self) -> str:
        """The batch file, which writes every value with its status."""
        opened, read = ("OPENTABLEDATA", "READTABLE") if self.tabular else ("OPENMICRODATA", "READMICRODATA")
        return "\n".join(
            [
                f'<{opened}> "{self.data}"',
                f'<OPENMETADATA> "{self.metadata}"',
                f"<SPECIFYTABLE> {self.table}",
                f"<SAFETYRULE> {self.rules}",
                f"<{read}>",
                f"<SUPPRESS> {self.suppress}",
                '<WRITETABLE> (1,3,AS+,"peer.txt")',
                "",
            ]
        )


# -- jobs --------------------------------------------------------------------------------------------------------------


def sample(part: str, job: JobText) -> Callable[[Path, Path], JobText]:
    """A job on τ-ARGUS's own sample files."""

    def make(folder: Path, instances: Path) -> JobText:
        for file in (instances / "tauargus" / part).iterdir():
            if file.is_file():
                shutil.copy(file, folder / file.name)
        rda = folder / job.metadata
        rda.chmod(0o644)  # hierarchies are named by paths of another machine, which pytauargus does not look beside
        text = re.sub(r'"\\\\[^"]*\\([^"\\]+)"', r'"\1"', rda.read_text(encoding="latin-1"))
        rda.write_text(text, encoding="latin-1")
        return job

    return make


def made(sizes: tuple[int, ...], records: int, *, seed: int, suppress: str = SINGLETONS) -> Callable[..., JobText]:
    """A job on made-up firms: `sizes` are the leaves of each dimension, in groups of about four; skewed amounts."""

    def make(folder: Path, instances: Path) -> JobText:
        random = np.random.default_rng(seed)
        fields, described, names, start = [], [], [], 1
        for d, leaves in enumerate(sizes):
            name, codes = f"d{d + 1}", [f"{i:03d}" for i in range(leaves)]
            lines = []
            for group in range(0, leaves, 4):
                lines.append(f"G{group // 4:02d}")
                lines += [f"@{code}" for code in codes[group : group + 4]]
            (folder / f"{name}.hrc").write_text("\n".join(lines) + "\n")
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
        return JobText("made.asc", "made.rda", table, "P(10,1)|FREQ(3,10)", suppress)

    return make


TESTW, ENTERPRISE = ("tau_testW.asc", "Tau_TestW.rda"), ("example_enterprise.asc", "example_enterprise.rda")
JOBS: dict[str, Callable[[Path, Path], JobText]] = {
    "ex1": sample(
        "batch/ex1",
        JobText("tabdata_ex1.tab", "metadata_ex1.rda", '"region""gender"|"freq"||', "MAN(20)", "OPT(1,1)", True),
    ),
    "Simple2D": sample("testW", JobText(*TESTW, '"Size""Region"|"Var2"||', "P(15,1)")),
    "Simple2D_optimal": sample("testW", JobText(*TESTW, '"Size""Region"|"Var2"||', "P(15,1)", "OPT(1,1)")),
    "region_industry": sample("testW", JobText(*TESTW, '"Region""IndustryCode"|"Var2"||', "NK(2,75)")),
    "size_region_year": sample("testW", JobText(*TESTW, '"Size""Region""Year"|"Var2"||', "P(15,1)")),
    "enterprise": sample("enterprise", JobText(*ENTERPRISE, '"act""product"|"turnover"||', "P(0,0)|P(0,0)|P(10,1)")),
    "made_2d": made((24, 16), 6_000, seed=1),
    "made_2d_large": made((120, 60), 60_000, seed=2),
    "made_3d": made((12, 8, 6), 6_000, seed=3),
    "made_3d_large": made((24, 12, 8), 30_000, seed=4),
    "made_3d_optimal": made((8, 8, 4), 3_000, seed=5, suppress="OPT(1,1)"),
}


# -- programs ----------------------------------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """CPU seconds of this process and of the ones it started."""
    spent = os.times()
    return process_time() + spent.children_user + spent.children_system


def read_only(folder: Path, job: JobText) -> Path:
    """The same batch file without what comes after reading."""
    lines = [line for line in job.arb().splitlines() if not line.startswith(("<SUPPRESS>", "<WRITETABLE>"))]
    path = folder / "read.arb"
    path.write_text("\n".join(lines) + "\n")
    return path


def peer(folder: Path, python: str, limit: float) -> tuple[Row, Path | None]:
    """pytauargus on the batch file; the file it wrote, if it did."""
    command = [python, "-c", PEER, str(folder / "job.arb")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=folder)
    except subprocess.TimeoutExpired:
        return {"program": "pytauargus", "said": f"no answer in {limit:.0f} s"}, None
    except OSError as error:
        return {"program": "pytauargus", "said": f"skipped: {error.strerror}"}, None
    if "No module named 'pytauargus'" in done.stderr:
        return {"program": "pytauargus", "said": "skipped: pytauargus is not installed"}, None
    written = folder / "peer.txt"
    if done.returncode or not written.exists():
        return {"program": "pytauargus", "said": f"failed: {done.stderr.strip()[-100:]}"}, None
    return {"program": "pytauargus", **json.loads(done.stdout.splitlines()[-1])}, written


def peer_pattern(problem: Problem, written: Path) -> tuple[np.ndarray, np.ndarray]:
    """Which of our cells pytauargus found sensitive, and which it withholds. Cells under two names count once."""
    frame = read_code_value(written, dimensions=list(problem.table.dimensions))
    table = problem.table
    at = [tree.positions(frame[name]) for name, tree in table.dimensions.items()]
    sizes = [len(tree) for tree in table.dimensions.values()]
    cell = np.full(sizes, -1, dtype=np.int64)
    cell[tuple(table.codes.T)] = np.arange(len(table))
    rows = cell[tuple(at)]
    status = frame["status"].cast(int).to_numpy()
    primary, hidden = np.zeros(len(table), np.bool_), np.zeros(len(table), np.bool_)
    sensitive = (status >= 3) & (status <= 9)
    primary[rows[sensitive & (rows >= 0)]] = True
    hidden[rows[(sensitive | (status == 11) | (status == 12)) & (rows >= 0)]] = True
    return primary, hidden


def judged(problem: Problem, pattern: np.ndarray, most: int) -> Row:
    """What a pattern withholds, and what is open."""
    more = pattern & ~problem.sensitivity.mask
    release = Release.from_suppression(problem, pattern)
    outsider = audit(problem, release, exact=False, insiders=False, unions=False, certify=False)
    everyone = audit(problem, release, exact=False, certify=False)
    return {
        "complementary": int(more.sum()),
        "value": round(float(np.abs(problem.table.value[more]).sum()), 2),
        "open": len({opening.cell for opening in outsider.open}),
        "open_to_respondents": len({opening.cell for opening in everyone.open}),
        "open_by_programs": open_by_programs(problem, pattern, most),
    }


def ours(problem: Problem, reading: float, seconds: float, given: argparse.Namespace, *, guarded: bool) -> Row:
    """One run of our own with a time limit."""
    row: Row = {"program": f"tablesafe {given.algorithm} {'guarded' if guarded else 'alike'}, {seconds:g} s"}
    begin = cpu_seconds()
    try:
        with ThreadPoolExecutor(1) as here:  # processes of their own would be paid for by their start
            release = Suppress(
                algorithm=given.algorithm, time_limit_s=seconds, insiders=guarded, unions=guarded, executor=here
            ).protect(problem)
    except TablesafeError as error:
        return row | {"said": str(error).partition("\n")[0]}
    spent = cpu_seconds() - begin
    return row | {"seconds": round(reading + spent, 2)} | judged(problem, release.suppressed, given.sample)


def compared(name: str, instances: Path, given: argparse.Namespace) -> Iterator[Row]:
    """The rows of one job."""
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        job = JOBS[name](folder, instances)
        (folder / "job.arb").write_text(job.arb())
        begin = cpu_seconds()
        problem = run_batch(read_only(folder, job)).problems[0]
        reading = cpu_seconds() - begin
        yield {"program": f"{name}: {len(problem.table):,} cells, {len(problem.sensitive)} sensitive"}
        row, written = peer(folder, given.peer_python, given.peer_seconds)
        best = -np.inf
        if written is not None:
            primary, pattern = peer_pattern(problem, written)
            same = bool((primary == problem.sensitivity.mask).all())
            off = int((primary != problem.sensitivity.mask).sum())
            row |= judged(problem, pattern | problem.sensitivity.mask, given.sample)
            row["said"] = "the same primaries" if same else f"{off} primaries differ"
            best = float(str(row["value"])) + 1e-6
            row["seconds"] = round(float(str(row["seconds"])), 2)
        yield row
        for seconds in given.seconds:
            found = ours(problem, reading, seconds, given, guarded=False)
            yield found
            if "value" in found and float(str(found["value"])) <= best:
                break
        yield ours(problem, reading, seconds, given, guarded=True)


COLUMNS = ("program", "seconds", "complementary", "value", "open", "open_to_respondents", "open_by_programs", "said")


def shown(row: Row) -> str:
    """One line of the table."""
    widths = (44, 9, 14, 16, 6, 20, 17, 30)
    return "".join(f"{row.get(name, '')!s:<{width}}" for name, width in zip(COLUMNS, widths, strict=True)).rstrip()


def main() -> None:
    """Run the jobs named, or all of them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=f"any of {', '.join(JOBS)}")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has pytauargus")
    parser.add_argument("--peer-seconds", type=float, default=600.0, help="how long pytauargus may take, by the wall")
    parser.add_argument("--seconds", type=float, nargs="*", default=[0.2, 1.0, 5.0, 20.0], help="our time limits")
    parser.add_argument("--algorithm", default="auto", help="our algorithm: auto, modular, sequential, optimal")
    parser.add_argument("--sample", type=int, default=40, help="cells that linear programs look at")
    given = parser.parse_args()
    instances = Path(os.environ.get("TABLESAFE_INSTANCES", REPOSITORY.parent / "shared" / "instances"))
    warm = JOBS["made_3d_optimal"]
    with tempfile.TemporaryDirectory() as at:  # compile the kernels before the clock runs
        Suppress(time_limit_s=0.2).protect(run_batch(read_only(Path(at), warm(Path(at), instances))).problems[0])
    print(shown({name: name for name in COLUMNS}))
    for name in given.jobs:
        for row in compared(name, instances, given):
            print(shown(row), flush=True)


if __name__ == "__main__":
    main()
