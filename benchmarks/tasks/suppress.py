"""Suppression: ours by every algorithm, two cells per sum, the engine of τ-ARGUS, and what others printed."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
from scipy import sparse

from benchmarks.instances.files import lines
from benchmarks.peers import asked, outcome
from benchmarks.registry import Case, NotHere, Outcome, Row, program
from tablesafe.batch_jobs.exported_files import Commands, problem_files
from tablesafe.core.equations import Mask
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.io.jj import write_jj
from tablesafe.methods.suppress import Algorithm, Suppress
from tablesafe.tauargus.table import read_code_value
from tablesafe.work.run import OUTSIDERS, Attackers, Run

TASK, WARM = "suppress", "firms_2d_100"
HIDDEN = (3, 4, 5, 6, 7, 8, 9, 11, 12)
"""τ-ARGUS's numbers for cells that are withheld: sensitive by some rule, or to protect others."""


def ours(case: Case, algorithm: Algorithm = "auto", *, alike: bool = False) -> Outcome:
    """One run of our own; `alike` protects from outsiders only, as the peers do."""
    method = Suppress(algorithm=algorithm, time_limit_s=case.seconds)
    release = method.protect(case.made.table_problem, Run(attackers=OUTSIDERS if alike else Attackers()))
    found = release.solution
    assert found is not None
    measures = {"objective": found.objective, "gap": found.gap}
    if isfinite(found.bound) and found.bound > 0:
        measures["bound"] = found.bound
    return Outcome(release=release, measures=measures)


program(TASK, "tablesafe", "tablesafe", warm=WARM)(ours)
program(TASK, "tablesafe alike", "tablesafe", warm=WARM)(partial(ours, alike=True))
program(TASK, "tablesafe optimal", "tablesafe", warm=WARM)(partial(ours, algorithm="optimal"))
program(TASK, "tablesafe sequential", "tablesafe", warm=WARM)(partial(ours, algorithm="sequential"))
program(TASK, "tablesafe modular", "tablesafe", warm=WARM)(partial(ours, algorithm="modular"))
program(TASK, "tablesafe network", "tablesafe", warm=WARM)(partial(ours, algorithm="network"))


@program(TASK, "two per sum", "naive")
def two_per_sum(case: Case) -> Outcome:
    """What is done by hand: where a sum withholds one cell alone, withhold its cheapest other cell, and look again."""
    problem = case.made.table_problem
    hidden = problem.sensitivity.mask | problem.suppressed
    free = ~problem.frozen & (problem.table.value != 0)
    rows = sparse.csr_array(problem.table.equations)
    while True:
        alone = np.flatnonzero(abs(rows) @ hidden.astype(np.int64) == 1)
        before = int(hidden.sum())
        for row in alone.tolist():
            cells = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
            others = cells[free[cells] & ~hidden[cells]]
            if hidden[cells].sum() == 1 and others.size:
                hidden[others[np.argmin(problem.cost[others])]] = True
        if int(hidden.sum()) == before:
            return Outcome(release=Release.from_suppression(problem, hidden))


@program(TASK, "pytauargus optimal", "peer")
def optimal(case: Case) -> Outcome:
    """τ-ARGUS's exact method on the same JJ file."""
    problem = case.made.table_problem
    file, answer = case.scratch / "in.jj", case.scratch / "out"
    write_jj(problem, file)
    limit = max(1, round(case.seconds))
    found = asked(case, "optimal", file, answer, str(limit), most_s=1.5 * limit + 10)
    if not answer.exists():
        raise RuntimeError(f"no pattern: {found['said']}")
    hidden = problem.sensitivity.mask | problem.suppressed
    hidden[[int(line) for line in answer.read_text().split()]] = True
    return outcome(found, release=Release.from_suppression(problem, hidden), measures={"note": found["said"]})


def batch(case: Case, suppress: str) -> Outcome:
    """A method of τ-ARGUS that needs the codes of the table: a batch job on the same cells."""
    problem = case.made.table_problem
    if not problem.table.dimensions:
        raise NotHere("a JJ file has no codes, which this method needs")
    texts = problem_files(problem, "table", Commands(suppress=suppress, writes=()))
    for name, text in texts.texts.items():
        (case.scratch / name).write_text(text, encoding="utf-8")
    arb = case.scratch / "table.arb"
    arb.write_text(arb.read_text() + '<WRITETABLE> (1,3,AS+,"peer.txt")\n')
    found = asked(case, "batch", arb)
    hidden = pattern_of(problem, case.scratch / "peer.txt")[1] | problem.sensitivity.mask
    return outcome(found, release=Release.from_suppression(problem, hidden))


program(TASK, "pytauargus modular", "peer")(partial(batch, suppress="MOD({},5,1,1,1)"))
program(TASK, "pytauargus hypercube", "peer")(partial(batch, suppress="GH({},0,0)"))


def pattern_of(problem: Problem, written: object) -> tuple[Mask, Mask]:
    """Which of our cells τ-ARGUS found sensitive, and which it withholds. Cells under two names count once."""
    table = problem.table
    frame = read_code_value(str(written), dimensions=list(table.dimensions))
    at = [tree.positions(frame[name]) for name, tree in table.dimensions.items()]
    cell = np.full([len(tree) for tree in table.dimensions.values()], -1, dtype=np.int64)
    cell[tuple(table.codes.T)] = np.arange(len(table))
    rows, status = cell[tuple(at)], frame["status"].cast(int).to_numpy()
    primary, hidden = np.zeros(len(table), np.bool_), np.zeros(len(table), np.bool_)
    primary[rows[(status >= 3) & (status <= 9) & (rows >= 0)]] = True
    hidden[rows[np.isin(status, HIDDEN) & (rows >= 0)]] = True
    return primary, hidden


@program(TASK, "printed", "printed")
def printed(case: Case) -> Outcome:
    """What `peers.csv` says of an instance: runs of other days, by the wall, on a noisy machine."""
    folder, _, name = str(case.made.facts.get("file", "")).partition("/")
    found = lines("bench/peers.csv", instance=name) if folder == "bench" else []
    rows = tuple(_printed(line) for line in found)
    if not rows:
        raise NotHere("nothing is printed about this instance")
    return Outcome(rows=rows)


def _printed(line: dict[str, str]) -> Row:
    row: Row = {"program": f"{line['program']} (printed)"}
    if not line["complementary_value"]:
        return row | {"status": "out of time", "reason": line["seconds_wall_noisy"]}
    return row | {
        "status": "ok",
        "wall_s": float(line["seconds_wall_noisy"]),
        "complementary": int(line["complementary_cells"]),
        "complementary_value": float(line["complementary_value"]),
        "open_by_programs": int(line["sensitive_open"]),
        "programs_asked": int(line["sensitive"]),
        "sampled": False,
    }
