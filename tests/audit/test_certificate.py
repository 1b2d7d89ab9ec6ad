"""Certificates: what is in them, how they are written, and that every kind of release can be proved."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.audit.audit import audit
from tablesafe.audit.certificate import Certificate, release_hash
from tablesafe.audit.verdict import How
from tablesafe.core.errors import InvalidCertificate
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.jj import read_jj
from tablesafe.verify import Verification, verify

CODES = ["plain", 'with "quotes"', "with, comma; and semicolon", "Größe × Ω", " padded "]


def odd_table(decimals: int = 0, scale: float = 1.0) -> Table:
    """Five rows whose codes try to break a file, by three columns."""
    values = np.round(np.arange(1, 16) * 7.77 * scale, decimals)
    frame = pl.DataFrame(
        {"what": [code for code in CODES for _ in range(3)], "column": list("abc") * 5, "value": values}
    )
    what = Hierarchy.flat(CODES, total="all")
    return Table.from_cells(
        frame, dimensions={"what": what, "column": Hierarchy.flat(list("abc"), total="all")}, missing_totals="compute"
    )


def inner(table: Table) -> np.ndarray[Any, Any]:
    return ~table.is_total


def certified(problem: Problem, release: Release) -> Certificate:
    findings = audit(problem, release)
    assert findings.certificate is not None
    return findings.certificate


def checked(problem: Problem, release: Release, folder: Path) -> Verification:
    """Audit, save, publish, verify both."""
    certified(problem, release).save(folder / "internal" / "certificate.json")
    release.frame(intervals=release.method != "suppression").write_csv(folder / "release.csv")
    return verify(folder / "internal" / "certificate.json", release=folder / "release.csv")


@pytest.mark.parametrize(("decimals", "scale"), [(0, 1.0), (2, 1.0), (0, 1e11), (3, 1e-2)])
def test_a_suppressed_release_is_proved(tmp_path: Path, decimals: int, scale: float) -> None:
    table = odd_table(decimals, scale)
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 0.01 * table.value))
    found = checked(problem, Release.from_suppression(problem, inner(table)), tmp_path)
    assert found.safe
    assert found.cells == 15
    assert found.unknown == 15
    assert found.release_checked


def test_negative_values_and_unbounded_attackers_are_proved(tmp_path: Path) -> None:
    table = Table.from_equations(
        ["profit = income - cost", "all = profit + other"],
        {"profit": -3.5, "income": 10.25, "cost": 13.75, "all": 6.5, "other": 10.0},
    )
    sensitive = np.array([True, True, True, False, True])
    problem = Problem(table, sensitivity=Sensitivity.of(sensitive, 100.0))
    found = checked(problem, Release.from_suppression(problem, sensitive), tmp_path)
    assert found.safe
    assert found.equations == 2


def test_cells_withheld_by_design_are_unknown_and_not_in_the_release(tmp_path: Path) -> None:
    table = odd_table()
    secret = np.zeros(len(table), dtype=np.bool_)
    secret[table.index(what="plain", column="a")] = True
    problem = Problem(table, sensitivity=Sensitivity.of(secret, 2.0), withheld=inner(table))
    release = Release.from_suppression(problem, np.zeros(len(table), dtype=np.bool_))
    found = checked(problem, release, tmp_path)
    assert found.safe
    assert (release.status == Status.BY_DESIGN).sum() == 15
    text = (tmp_path / "release.csv").read_text(encoding="utf-8")
    (tmp_path / "release.csv").write_text(text + "plain,a,8,published\n", encoding="utf-8")
    with pytest.raises(InvalidCertificate, match="published there"):
        verify(tmp_path / "internal" / "certificate.json", release=tmp_path / "release.csv")


def rounded(problem: Problem, base: float) -> Release:
    table = problem.table
    shown = base * np.rint(table.value / base)
    low, high = np.maximum(shown - base / 2, 0.0), shown + base / 2
    return Release(table, shown, low, high, np.full(len(table), Status.CHANGED, np.uint8), "rounding")


def test_a_rounded_release_is_proved_and_its_announced_intervals_are_compared(tmp_path: Path) -> None:
    table = odd_table(1)
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 0.5))
    release = rounded(problem, 5.0)
    found = checked(problem, release, tmp_path)
    assert found.changed == len(table)
    narrower = Release(table, release.values, release.values - 1, release.values + 1, release.status, "rounding")
    narrower.frame(intervals=True).write_csv(tmp_path / "release.csv")
    with pytest.raises(InvalidCertificate, match="says more than the certificate assumes"):
        verify(tmp_path / "internal" / "certificate.json", release=tmp_path / "release.csv")


def test_a_withheld_cell_that_the_prior_bounds_fix_is_not_taken_as_unknown(tmp_path: Path) -> None:
    table = odd_table()
    mask = inner(table)
    known = table.index(what="plain", column="a")
    lower, upper = np.zeros(len(table)), np.full(len(table), np.inf)
    lower[known] = upper[known] = table.value[known]
    problem = Problem(table, sensitivity=Sensitivity.of(mask, 1.0), lower=lower, upper=upper)
    found = checked(problem, Release.from_suppression(problem, mask), tmp_path)
    assert found.open == ("(what=plain, column=a)",)
    assert found.protected == 14


def test_the_file_says_what_it_is_and_is_the_same_every_time(tmp_path: Path) -> None:
    table = odd_table()
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 1.0))
    release = Release.from_suppression(problem, inner(table))
    paths = [tmp_path / name for name in ("one.json", "two.json", "three.json.gz")]
    for path in paths:
        certified(problem, release).save(path)
    one = paths[0].read_bytes()
    assert one == paths[1].read_bytes() == gzip.decompress(paths[2].read_bytes())
    document = json.loads(one)
    assert document["notice"].startswith("CONFIDENTIAL")
    assert document["release"] == release_hash(release)
    assert b"." not in json.dumps([document["chains"], document["unknown"], document["sensitive"]]).encode()
    assert verify(paths[2]) == verify(paths[0])


def test_nothing_is_written_until_it_is_saved_somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = odd_table()
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 1.0))
    certified(problem, Release.from_suppression(problem, inner(table)))
    assert not list(tmp_path.iterdir())


def test_the_hash_of_a_release_depends_on_what_it_shows_and_on_nothing_else() -> None:
    table = odd_table()
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 1.0))
    other = problem.replace(sensitivity=Sensitivity.of(~inner(table), 3.0))
    mask = inner(table)
    assert release_hash(Release.from_suppression(problem, mask)) == release_hash(Release.from_suppression(other, mask))
    more = mask.copy()
    more[table.index()] = True
    assert release_hash(Release.from_suppression(problem, mask)) != release_hash(
        Release.from_suppression(problem, more)
    )


def test_few_witnesses_serve_many_cells() -> None:
    """Witnesses are shared: far fewer than the two per cell that a proof names."""
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {"r": [str(i) for i in range(12) for _ in range(12)], "c": [str(i) for _ in range(12) for i in range(12)],
         "value": random.integers(50, 100, 144).astype(float)}
    )  # fmt: skip
    table = Table.from_cells(frame, dimensions=["r", "c"], missing_totals="compute")
    problem = Problem(table, sensitivity=Sensitivity.of(inner(table), 5.0))
    certificate = certified(problem, Release.from_suppression(problem, inner(table)))
    assert not certificate.open.size
    assert certificate.witnesses < 144


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("jj/targus.jj", 0.3), ("jj/targus.jj", 0.6), ("jj/targus.jj", 0.97), ("jj/table1.jj", 0.8),
        ("jj/table7.jj", 0.6), ("jj/hier13.jj", 0.6), ("bench/3d_10.jj.gz", 0.3),
    ],
)  # fmt: skip
def test_what_is_protected_on_the_benchmark_instances_is_proved(
    instances: Path, tmp_path: Path, name: str, share: float
) -> None:
    """Whatever the pattern: both ways of asking agree, nothing stays unproved, and the verifier agrees."""
    problem = read_jj(instances / name)
    random = np.random.default_rng(int(100 * share))
    mask = problem.sensitivity.mask | ((random.random(len(problem.table)) < share) & ~problem.frozen)
    release = Release.from_suppression(problem, mask)
    findings = audit(problem, release, insiders=False, unions=False)
    assert How.UNPROVED not in {opening.how for opening in findings.open}
    assert audit(problem, release, exact=False, insiders=False, unions=False).protected.tolist() == (
        findings.protected.tolist()
    )
    assert findings.certificate is not None
    findings.certificate.save(tmp_path / "certificate.json.gz")
    release.frame().write_csv(tmp_path / "release.csv")
    found = verify(tmp_path / "certificate.json.gz", release=tmp_path / "release.csv")
    assert found.protected == int(findings.protected.sum())
