"""Suppression beside its peers: CPU seconds, what is withheld, and what two attackers find open.

python benchmarks/suppress.py                              # the nine instances of bench/, auto, 60 s each
python benchmarks/suppress.py 2d_20 targus --algorithms auto network --seconds 10
python benchmarks/suppress.py --peer-python /path/to/python    # an interpreter that has pytauargus

The instances are looked for where the tests look (TABLESAFE_INSTANCES). pytauargus, the engine of τ-ARGUS, is run by
its exact method on the same JJ file, in a process of its own; without it that row is left out, and said so. Rows of
`peers.csv`, which lies beside the instances, are printed as they are.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from tablesafe.audit.audit import audit
from tablesafe.errors import TablesafeError
from tablesafe.io.jj import read_jj, write_jj
from tablesafe.methods.suppress.method import Suppress
from tablesafe.problem import Problem
from tablesafe.release import Release

REPOSITORY = Path(__file__).resolve().parent.parent
BENCH = ("2d_20", "2d_50", "2d_100", "3d_10", "3d_20", "h_2k", "h3_5k", "h_10k", "h_50k")
PEER = """
import sys, time
from pytauargus import HiTaSCtrl
engine, begin = HiTaSCtrl(), time.process_time()
code = engine.full_jj(in_file_jj=sys.argv[1], out_file=sys.argv[2], max_time=int(sys.argv[3]))
print(code, time.process_time() - begin)
"""
COLUMNS = (
    "program", "seconds", "complementary", "value", "cost", "gap", "open_by_audit", "open_by_programs", "said",
)  # fmt: skip
Row = dict[str, object]


def cpu_seconds() -> float:
    """CPU seconds of this process and of the ones it started."""
    spent = os.times()
    return process_time() + spent.children_user + spent.children_system


def instance(folder: Path, name: str) -> Path:
    """The file of an instance, of bench/ or of jj/."""
    for path in (folder / "bench" / f"{name}.jj.gz", folder / "jj" / f"{name}.jj"):
        if path.is_file():
            return path
    raise SystemExit(f"There is no instance {name!r} in {folder}.")


def open_by_programs(problem: Problem, pattern: np.ndarray, sample: int) -> str:
    """Of a sample of sensitive cells, how many two fresh programs of another library find open."""
    table, hidden = problem.table, np.flatnonzero(pattern)
    matrix = csr_array(table.equations)[:, hidden].astype(np.float64)
    matrix = matrix[np.diff(matrix.indptr) > 0]
    rhs, bounds = matrix @ table.value[hidden], np.column_stack([problem.lower, problem.upper])[hidden]
    cells = problem.sensitive
    if len(cells) > sample:
        cells = np.random.default_rng(1).choice(cells, sample, replace=False)
    found = 0
    for cell in cells.tolist():
        cost = (hidden == cell).astype(float)
        ends = [linprog(s * cost, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs") for s in (1, -1)]
        low, high = (-s * np.inf if end.status == 3 else s * end.fun for s, end in zip((1, -1), ends, strict=True))
        value, slack = table.value[cell], 1e-6 * max(1.0, abs(table.value[cell]))
        levels = problem.sensitivity
        found += bool(
            low > value - levels.lower[cell] + slack
            or high < value + levels.upper[cell] - slack
            or high - low < levels.sliding[cell] - slack
        )
    return f"{found} of {len(cells)}"


def judged(problem: Problem, pattern: np.ndarray, sample: int) -> Row:
    """What a pattern withholds, and what is open."""
    findings = audit(problem, Release.from_suppression(problem, pattern), exact=False)
    more = pattern & ~problem.sensitivity.mask
    return {
        "complementary": int(more.sum()),
        "value": float(np.abs(problem.table.value[more]).sum()),
        "cost": float(problem.cost[more].sum()),
        "open_by_audit": len({opening.cell for opening in findings.open}),
        "open_by_programs": open_by_programs(problem, pattern, sample),
    }


def ours(problem: Problem, algorithm: str, seconds: float, sample: int) -> Row:
    """One run of our own."""
    begin = cpu_seconds()
    try:
        release = Suppress(algorithm=algorithm, time_limit_s=seconds).protect(problem)  # type: ignore[arg-type]
    except TablesafeError as error:
        return {"program": f"tablesafe {algorithm}", "said": str(error).partition("\n")[0]}
    spent = cpu_seconds() - begin
    gap = "" if release.solution is None else f"{release.solution.gap:.2%}"
    row: Row = {"program": f"tablesafe {algorithm}", "seconds": round(spent, 2), "gap": gap}
    return row | judged(problem, release.suppressed, sample)


def peer(problem: Problem, python: str, seconds: float, sample: int) -> Row:
    """τ-ARGUS's exact method on the same file, by pytauargus."""
    row: Row = {"program": "pytauargus optimal"}
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder) / "in.jj", Path(folder) / "out"
        write_jj(problem, file)
        command = [python, "-c", PEER, str(file), str(answer), str(max(1, round(seconds)))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=4 * seconds + 60, cwd=folder)
        except subprocess.TimeoutExpired:
            return row | {"said": f"no answer in {4 * seconds + 60:.0f} s"}
        if "No module named 'pytauargus'" in done.stderr:
            return row | {"said": "skipped: pytauargus is not installed"}
        if done.returncode or not answer.exists():
            return row | {"said": f"failed ({done.returncode}): {done.stderr.strip()[-80:]}"}
        code, spent = done.stdout.split()[-2:]
        pattern = problem.sensitivity.mask | problem.suppressed
        pattern[[int(line) for line in answer.read_text().split()]] = True
    return row | {"seconds": round(float(spent), 2), "said": f"code {code}"} | judged(problem, pattern, sample)


def printed(folder: Path, name: str) -> Iterator[Row]:
    """What `peers.csv` says of an instance: runs of other days, on a noisy machine."""
    with (folder / "bench" / "peers.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["instance"] == name and line["complementary_value"]:
                yield {
                    "program": f"{line['program']} (printed)",
                    "seconds": line["seconds_wall_noisy"],
                    "complementary": int(line["complementary_cells"]),
                    "value": float(line["complementary_value"]),
                    "open_by_programs": f"{line['sensitive_open']} of {line['sensitive']}",
                }


def main() -> None:
    """Print a Markdown table per instance, and all rows as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=BENCH, help="instances of bench/ and jj/")
    parser.add_argument("--algorithms", nargs="+", default=["auto"], help="ours to run")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each run")
    parser.add_argument("--sample", type=int, default=60, help="sensitive cells to ask fresh programs about")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has pytauargus")
    given = parser.parse_args()
    folder = Path(os.environ.get("TABLESAFE_INSTANCES", REPOSITORY.parent / "shared" / "instances"))
    if not folder.is_dir():
        raise SystemExit("skipped: the benchmark instances are not here: set TABLESAFE_INSTANCES")
    rows: list[Row] = []
    for name in given.names:
        problem = read_jj(instance(folder, name))
        print(f"\n{name}: {len(problem.table):,} cells, {len(problem.sensitive):,} sensitive\n", flush=True)
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
        found: list[Row] = []
        for algorithm in given.algorithms:
            found.append(ours(problem, algorithm, given.seconds, given.sample))
            show(found[-1])
        found.append(peer(problem, given.peer_python, given.seconds, given.sample))
        show(found[-1])
        for row in printed(folder, name):
            found.append(row)
            show(row)
        rows += [{"instance": name, **row} for row in found]
    print("\n" + json.dumps(rows))


def show(row: Row) -> None:
    """One line of the table."""
    cells = [row.get(column, "") for column in COLUMNS]
    texts = [f"{cell:,.6g}" if isinstance(cell, (int, float)) else str(cell) for cell in cells]
    print("| " + " | ".join(texts) + " |", flush=True)


if __name__ == "__main__":
    main()
