"""The arena's checker objects to broken patterns, believes no certificate, and needs nothing of tablesafe."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import check as checker
from benchmarks.arena.enter import BOUNDS, PATTERNS, folder_of
from benchmarks.arena.instances import HERE, MADE, NAMED, checksum, file_of, values
from benchmarks.arena.league import DOCS, KEPT, page
from benchmarks.arena.prove import proved

from seeds import fresh

SMALL = ("flat_2d_20_unit", "firms_2d_700")


def instance_of(name: str, folder: Path) -> checker.Instance:
    path = file_of(name, folder)
    assert path is not None
    return checker.read_instance(path)


def tiny(seed: int, folder: Path) -> checker.Instance:
    """A 3 × 4 table."""
    path = folder / f"tiny{seed}.jj"
    path.write_text(values(((3,), (4,)), seed).text(), encoding="utf-8")
    return checker.read_instance(path)


def interval_open(instance: checker.Instance, hidden: np.ndarray, cell: int) -> bool:
    """Two plain programs over all cells for one cell: neither parts nor moves of others are made use of."""
    from scipy.optimize import linprog

    bounds = np.column_stack([-instance.room[:, 0], instance.room[:, 1]]) * hidden[:, None]
    lower, upper, _ = instance.levels[cell]
    ends = []
    for sign in (1.0, -1.0):
        goal = np.zeros(len(instance.ids))
        goal[cell] = sign
        right = np.zeros(instance.equations.shape[0])
        ends.append(sign * linprog(goal, A_eq=instance.equations, b_eq=right, bounds=bounds).fun)
    return bool(ends[0] > -lower + 1e-6 or ends[1] < upper - 1e-6)


@pytest.mark.parametrize("seed", fresh(8, "arena, open cells"))
def test_open_cells_are_those_that_plain_programs_find(seed: int, tmp_path: Path) -> None:
    instance = tiny(seed % 10_000, tmp_path)
    draw = np.random.default_rng(seed)
    hidden = (instance.always | (draw.random(len(instance.ids)) < 0.5)) & (instance.status != "z")
    plain = [int(instance.ids[i]) for i in np.flatnonzero(instance.sensitive) if interval_open(instance, hidden, i)]
    assert checker.open_cells(instance, hidden) == plain


def optimum(instance: checker.Instance) -> float | None:
    """The cheapest safe pattern, by trying all, the cheapest first; None where even the whole table is open."""
    free = np.flatnonzero(~instance.always & (instance.status != "z"))
    if checker.open_cells(instance, instance.status != "z"):
        return None
    subsets = np.array(list(product((False, True), repeat=len(free))))
    costs = subsets @ instance.cost[free]
    for k in np.argsort(costs, kind="stable").tolist():
        hidden = instance.always.copy()
        hidden[free[subsets[k]]] = True
        if not checker.open_cells(instance, hidden):
            return float(costs[k])
    raise AssertionError("the whole table is safe")


def small_square(seed: int, folder: Path, columns: int = 2) -> tuple[checker.Instance, float]:
    """A table of two rows that can be protected, and what that costs."""
    for number in range(seed, seed + 200):
        path = folder / "square.jj"
        path.write_text(values(((2,), (columns,)), number).text(), encoding="utf-8")
        instance = checker.read_instance(path)
        if instance.sensitive.any():
            best = optimum(instance)
            if best:
                return instance, best
    raise AssertionError("no table with a sensitive cell that costs something")


@pytest.mark.parametrize("seed", fresh(2, "arena, bounds"))
def test_a_bound_never_exceeds_the_optimum(seed: int, tmp_path: Path) -> None:
    instance, best = small_square(seed % 100_000, tmp_path)
    certificate = proved(instance, seconds=5, known=best)
    assert checker.Bound(instance, certificate).value() == Fraction(certificate["bound"]) <= Fraction(best)
    draw = random.Random(seed)
    for _ in range(40):  # whatever the numbers of a certificate are, what follows from them holds
        assert checker.Bound(instance, invented(instance, draw)).value() <= Fraction(best)


def invented(instance: checker.Instance, draw: random.Random) -> dict[str, Any]:
    """A certificate with random multipliers and weights."""
    rows = range(instance.equations.shape[0])
    cells = instance.ids[instance.sensitive].tolist()

    def multipliers() -> list[tuple[int, str]]:
        return [(row, draw.choice(["1", "-1", "1/2", "3"])) for row in rows if draw.random() < 0.4]

    cuts = [{"target": draw.choice(cells), "side": draw.choice([1, -1]), "equations": multipliers()} for _ in range(4)]
    weights = {str(k): str(draw.choice([0, 1, Fraction(1, 3), 50])) for k in range(len(cuts))}
    leaf = {"weights": weights}
    inner = instance.ids[~instance.always & (instance.status != "z")].tolist()
    tree = {"branch": draw.choice(inner), "zero": leaf, "one": leaf} if draw.random() < 0.5 else leaf
    return {"sha256": instance.sha256, "cuts": cuts, "tree": tree}


def test_certificates_that_cheat_are_refused(tmp_path: Path) -> None:
    instance, best = small_square(1, tmp_path, 3)
    good = proved(instance, seconds=20, known=best)
    assert checker.Bound(instance, good).value() == Fraction(best)
    with pytest.raises(checker.Wrong, match="another instance"):
        checker.Bound(instance, good | {"sha256": "0"})
    with pytest.raises(checker.Wrong, match="negative"):
        checker.Bound(instance, good | {"tree": {"weights": {"0": "-1"}}}).value()
    with pytest.raises(checker.Wrong, match="is not"):
        checker.Bound(instance, good | {"tree": {"weights": {}, "empty": True}}).value()
    published = int(instance.ids[~instance.sensitive][0])
    with pytest.raises(checker.Wrong, match="not sensitive"):
        checker.Bound(instance, good | {"cuts": [{"target": published, "side": 1, "equations": []}]})
    capacity = next(k for k, cut in enumerate(good["cuts"]) if "target" in cut)
    all_of_them = {"cover": capacity, "inside": instance.ids.tolist()}
    with pytest.raises(checker.Wrong, match="too large"):
        checker.Bound(instance, good | {"cuts": [*good["cuts"], all_of_them]})


@pytest.mark.parametrize("name", SMALL)
def test_a_pattern_that_is_broken_leaves_cells_open_and_the_checker_says_which(name: str, tmp_path: Path) -> None:
    instance = instance_of(name, tmp_path)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))[name]["entries"]["pytauargus-optimal"]
    pattern = checker.read_pattern(PATTERNS / folder_of(name) / "pytauargus-optimal.txt", instance)
    found = checker.check(instance, pattern)
    assert (found["open"], found["cost"], found["cells"]) == ([], kept["cost"], kept["cells"])
    further = np.flatnonzero(pattern.hidden & ~instance.always)
    broken = pattern.hidden.copy()
    broken[further[0]] = False
    said = checker.pattern_text(instance, broken, {"program": "broken"})
    (tmp_path / "broken.txt").write_text(said, encoding="utf-8")
    again = checker.read_pattern(tmp_path / "broken.txt", instance)
    assert (again.hidden == broken).all()
    left = checker.check(instance, again)["open"]
    assert left, "an optimal pattern has no cell that is not needed"
    assert all(instance.sensitive[instance.ids == cell][0] for cell in left)


def test_files_that_are_wrong_are_named(tmp_path: Path) -> None:
    instance = instance_of("flat_2d_20", tmp_path)
    frozen = int(instance.ids[instance.status == "z"][0])
    for text, said in ((f"{frozen}\n", "status z"), ("99999\n", "no cell 99999"), ("x\n", "neither")):
        (tmp_path / "p.txt").write_text(text, encoding="utf-8")
        with pytest.raises(checker.Wrong, match=said):
            checker.read_pattern(tmp_path / "p.txt", instance)
    lines = (tmp_path / "flat_2d_20.jj").read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2].replace(lines[2].split()[1], "1", 1)
    (tmp_path / "wrong.jj").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(checker.Wrong, match="does not hold"):
        checker.read_instance(tmp_path / "wrong.jj")


def test_the_one_file_runs_alone_without_tablesafe(tmp_path: Path) -> None:
    shutil.copy(HERE / "check.py", tmp_path / "check.py")
    shutil.copy(HERE / "files" / "flat_2d_20_unit.jj.gz", tmp_path / "table.jj.gz")
    shutil.copy(PATTERNS / "flat_2d_20_unit" / "pytauargus-optimal.txt", tmp_path / "mine.txt")
    shutil.copy(BOUNDS / "flat_2d_20_unit.json.gz", tmp_path / "bound.json.gz")
    code = (
        "import sys; sys.modules['tablesafe'] = None; sys.path.insert(0, '.'); import check;"
        "print(check.main(sys.argv[1:]), sorted(m for m in sys.modules if m.startswith(('benchmarks', 'highspy'))))"
    )
    command = [sys.executable, "-I", "-c", code, "table.jj.gz", "mine.txt", "bound.json.gz"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "open: 0 of 33" in done.stdout
    assert "costs at least" in done.stdout
    assert done.stdout.rstrip().endswith("0 []")


def test_instances_are_those_whose_patterns_are_kept(tmp_path: Path) -> None:
    """The generators and the files agree; a change of either would make every pattern one for another table."""
    for file in (HERE / "files").iterdir():
        assert checker.text_of(file) == MADE[file.name.removesuffix(".jj.gz")][1]()
    for name, judged in json.loads(KEPT.read_text(encoding="utf-8")).items():
        if name in MADE and judged["cells"] < 5_000:
            assert checksum(MADE[name][1]()) == judged["sha256"], name


def test_the_league_is_that_of_the_files_and_the_page_that_of_the_league() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert DOCS.read_text(encoding="utf-8") == page(kept)
    for folder in PATTERNS.iterdir():
        name = next(name for name in (*MADE, *NAMED) if folder_of(name) == folder.name)
        marks = {path.stem: checksum(checker.text_of(path)) for path in folder.glob("*.txt")}
        assert {stem: entry["sha256"] for stem, entry in kept[name]["entries"].items()} == marks, name
        proof = BOUNDS / f"{folder.name}.json.gz"
        assert kept[name]["proof"] == (checksum(checker.text_of(proof)) if proof.exists() else ""), name


@pytest.mark.parametrize("name", SMALL)
def test_the_kept_bounds_hold_below_every_safe_pattern(name: str, tmp_path: Path) -> None:
    instance = instance_of(name, tmp_path)
    certificate = json.loads(checker.text_of(BOUNDS / f"{folder_of(name)}.json.gz"))
    bound = checker.Bound(instance, certificate).value()
    judged = json.loads(KEPT.read_text(encoding="utf-8"))[name]
    assert float(bound) == judged["bound"]
    assert all(entry["open"] or entry["cost"] >= bound for entry in judged["entries"].values())
