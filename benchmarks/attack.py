"""The attacks at ten thousand unknown cells: CPU seconds of each, and what it found.

python benchmarks/attack.py                        # a generated table of 100,000 cells, and one of scattered cells
python benchmarks/attack.py INSTANCE.jj.gz 0.18    # an instance: its sensitive cells and a random share of the others
"""

from __future__ import annotations

import json
import sys
from time import process_time

import numpy as np

from audit import instance  # beside this file
from tablesafe.attack import ATTACKS
from tablesafe.attack.suite import estimate_by
from tablesafe.attack.view import View
from tablesafe.io.jj import read_jj
from tablesafe.problem import Problem
from tablesafe.release import Release
from tablesafe.rules.sensitivity import Sensitivity

LIMIT_S, SAMPLING_LIMIT_S = 60.0, 300.0


def generated(seed: int = 1) -> tuple[Problem, Release]:
    """A hierarchical table of 100,000 cells of which a seventh is withheld, a tenth of these sensitive."""
    problem, release = instance(100_000, seed)
    chosen = release.suppressed & (np.random.default_rng(seed).random(len(problem.table)) < 0.1)
    sensitivity = Sensitivity.of(chosen, 0.1 * problem.table.value)
    problem = problem.replace(sensitivity=sensitivity)
    return problem, Release.from_suppression(problem, release.suppressed)


def scattered(path: str, share: float, seed: int = 1) -> tuple[Problem, Release]:
    """An instance with its sensitive cells withheld, and a random share of the others."""
    problem = read_jj(path)
    random = np.random.default_rng(seed)
    mask = (problem.sensitivity.mask | (random.random(len(problem.table)) < share)) & ~problem.frozen
    return problem, Release.from_suppression(problem, mask)


def measure(problem: Problem, release: Release, names: list[str]) -> list[dict[str, object]]:
    """One row for what all share, one per attack."""
    begin = process_time()
    view = View.of(problem, release)
    parts = [len(cells) for cells in view.room.members()]
    rows: list[dict[str, object]] = [
        {
            "attack": f"exact intervals of {len(view.system):,} unknown cells",
            "cpu_seconds": round(process_time() - begin, 2),
            "note": f"{len(view.room):,} free in {len(parts):,} components, the largest {max(parts, default=0):,}",
        }
    ]
    for name in names:
        begin = process_time()
        limit = SAMPLING_LIMIT_S if name == "hit-and-run" else LIMIT_S
        found = estimate_by(ATTACKS[name](), problem, view, limit)
        rows.append(
            {
                "attack": name,
                "cpu_seconds": round(process_time() - begin, 2),
                "disclosed": f"{int(found.disclosed.sum()):,} of {len(found.cells):,}",
                "note": found.note,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Print JSON and a Markdown table."""
    given = scattered(sys.argv[1], float(sys.argv[2])) if len(sys.argv) > 2 else generated()
    rows = measure(*given, sys.argv[3:] or list(ATTACKS))
    print(json.dumps(rows))
    columns = ("attack", "cpu_seconds", "disclosed", "note")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |")


if __name__ == "__main__":
    main()
