"""Whatever is changed in a release or a certificate, so that it no longer tells the truth, is noticed.

Certificates are edited and then *resealed*: their checksums are made right again, so that only the addition of the
verifier can tell.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tablesafe.audit.audit import audit
from tablesafe.audit.findings import Findings
from tablesafe.core.errors import InvalidCertificate
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.verify import verify

TRIALS = 40
"""Random releases; each meets every mutation below several times."""

REGIONS = Hierarchy.from_pairs(
    [("T", "N"), ("T", "S"), *(("N", f"n{i}") for i in range(3)), *(("S", f"s{i}") for i in range(3))]
)
SIZES = Hierarchy.flat(["a", "b", "c", "d"], total="T")
KINDS = Hierarchy.flat(["x", "y"], total="T")


def random_problem(random: np.random.Generator) -> tuple[Problem, Release]:
    """A table of two or three dimensions with fractional levels, and a pattern that protects some of it."""
    dimensions = {"region": REGIONS, "size": SIZES}
    if random.random() < 0.5:
        dimensions["kind"] = KINDS
    leaves = [[code for code in h.codes if not h.is_total[h.position(code)]] for h in dimensions.values()]
    rows = list(product(*leaves))
    decimals = int(random.integers(0, 3))
    values = np.round(random.gamma(0.8, 300.0, len(rows)), decimals)
    frame = pl.DataFrame({d: [row[i] for row in rows] for i, d in enumerate(dimensions)} | {"value": values})
    table = Table.from_cells(frame, dimensions=dimensions, missing_totals="compute")
    n = len(table)
    sensitive = (random.random(n) < 0.12) & (table.value > 0)
    levels = np.where(random.random(n) < 0.2, 0.0, 0.1 * table.value)
    sliding = np.where(random.random(n) < 0.2, 0.25 * table.value, 0.0)
    upper = np.inf if random.random() < 0.5 else table.value * 1.5 + 3.3
    problem = Problem(table, sensitivity=Sensitivity.of(sensitive, levels, sliding=sliding), upper=upper)
    return problem, Release.from_suppression(problem, sensitive | (random.random(n) < 0.45))


@dataclass(frozen=True)
class Case:
    """One audited release and the document that proves it."""

    problem: Problem
    release: Release
    findings: Findings
    document: dict[str, Any]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Releases in which at least one cell is protected by a witness."""
    random = np.random.default_rng(20260314)
    found: list[Case] = []
    while len(found) < TRIALS:
        problem, release = random_problem(random)
        findings = audit(problem, release, insiders=False, unions=False)
        assert findings.certificate is not None
        document = findings.certificate.document()
        if document["chains"]:
            found.append(Case(problem, release, findings, document))
    return found


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with both of its checksums made right, as the format defines them."""
    document = {key: value for key, value in document.items() if key != "sha256"}
    lines = sorted(
        "\x1f".join(
            [
                *(names[at[cell]] for names, at in zip(document["labels"], document["codes"], strict=True)),
                "" if value is None else str(value),
            ]
        )
        for cell, value in enumerate(document["published"])
        if cell not in set(document["absent"])
    )
    header = "\x1f".join([*document["dimensions"], document["response"], str(document["decimals"])])
    document["release"] = hashlib.sha256("\n".join([header, *lines]).encode()).hexdigest()
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**document, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def written(document: dict[str, Any], folder: Path) -> Path:
    path = folder / "certificate.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_what_is_not_changed_passes(cases: list[Case], tmp_path: Path) -> None:
    for case in cases:
        assert sealed(case.document) == case.document
        found = verify(written(case.document, tmp_path))
        sensitive = case.problem.sensitivity.mask[case.findings.cells]
        assert found.protected == int(case.findings.protected[sensitive].sum())
        assert len(found.open) == int((~case.findings.protected).sum())


# -- edits of a certificate ------------------------------------------------------------------------------------------

Edit = Callable[[dict[str, Any], np.random.Generator], None]


def number(value: Any) -> Fraction:
    return Fraction(value)


def text(value: Fraction) -> int | str:
    return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def some_witness(document: dict[str, Any], random: np.random.Generator) -> dict[str, list[int]]:
    chain = document["chains"][random.integers(len(document["chains"]))]["witnesses"]
    return dict(chain[random.integers(len(chain))])


def edit_witness(document: dict[str, Any], random: np.random.Generator) -> None:
    values = some_witness(document, random)["values"]
    values[random.integers(len(values))] += int(random.choice([1, -1, 7, 10**9]))


def forget_an_entry(document: dict[str, Any], random: np.random.Generator) -> None:
    witness = some_witness(document, random)
    at = int(random.integers(len(witness["values"])))
    del witness["values"][at], witness["cells"][at]


def change_a_denominator(document: dict[str, Any], random: np.random.Generator) -> None:
    chain = document["chains"][random.integers(len(document["chains"]))]
    chain["over"] += 1


def drop_a_witness(document: dict[str, Any], random: np.random.Generator) -> None:
    document["chains"][-1]["witnesses"].pop()


def reached(document: dict[str, Any], cell: int) -> list[Fraction]:
    """The value of a cell in the truth and in every witness."""
    truth = number(document["unknown"]["truth"][document["unknown"]["cells"].index(cell)])
    values = [truth]
    for chain in document["chains"]:
        here = truth
        for witness in chain["witnesses"]:
            there = dict(zip(witness["cells"], witness["values"], strict=True))
            here = Fraction(there[cell], chain["over"]) if cell in there else here
            values.append(here)
    return values


def raise_a_level(document: dict[str, Any], random: np.random.Generator) -> None:
    cell, low, high = document["proofs"][random.integers(len(document["proofs"]))]
    values = reached(document, cell)
    room = {"lower": values[0] - values[low], "upper": values[high] - values[0], "sliding": values[high] - values[low]}
    side = str(random.choice(list(room)))
    place = document["sensitive"]["cells"].index(cell)
    document["sensitive"][side][place] = text(room[side] + Fraction(1, 10**12))


def narrow_a_bound(document: dict[str, Any], random: np.random.Generator) -> None:
    cell = int(random.choice(some_witness(document, random)["cells"]))
    values = reached(document, cell)
    place = document["unknown"]["cells"].index(cell)
    if min(values) < values[0]:
        document["unknown"]["lower"][place] = text(min(values) + Fraction(1, 10**12))
    else:
        document["unknown"]["upper"][place] = text(max(values) - Fraction(1, 10**12))


def publish_a_cell(document: dict[str, Any], random: np.random.Generator) -> None:
    at = int(random.integers(len(document["unknown"]["cells"])))
    document["published"][document["unknown"]["cells"][at]] = document["unknown"]["truth"][at]


def publish_a_moving_cell_consistently(document: dict[str, Any], random: np.random.Generator) -> None:
    cell = int(random.choice(some_witness(document, random)["cells"]))
    place = document["unknown"]["cells"].index(cell)
    document["published"][cell] = document["unknown"]["truth"][place]
    for column in document["unknown"].values():
        del column[place]


def change_a_published_value(document: dict[str, Any], random: np.random.Generator) -> None:
    unknown = set(document["unknown"]["cells"])
    used = {part if part >= 0 else -1 - part for equation in document["equations"] for part in equation} - unknown
    if not used:  # no published cell matters: change a true value instead
        document["unknown"]["truth"][0] = text(number(document["unknown"]["truth"][0]) + 1)
        return
    cell = sorted(used)[random.integers(len(used))]
    document["published"][cell] = text(number(document["published"][cell]) + 1)


def change_a_true_value(document: dict[str, Any], random: np.random.Generator) -> None:
    cells = document["unknown"]["cells"]
    used = {part if part >= 0 else -1 - part for equation in document["equations"] for part in equation}
    at = cells.index(random.choice(sorted(used & set(cells))))
    document["unknown"]["truth"][at] = text(number(document["unknown"]["truth"][at]) - 1)


def swap_the_witnesses_of_a_proof(document: dict[str, Any], random: np.random.Generator) -> None:
    proof = document["proofs"][random.integers(len(document["proofs"]))]
    proof[1], proof[2] = proof[2], proof[1]


def prove_by_the_truth_alone(document: dict[str, Any], random: np.random.Generator) -> None:
    document["proofs"][random.integers(len(document["proofs"]))][1:] = [0, 0]


def forget_a_proof(document: dict[str, Any], random: np.random.Generator) -> None:
    del document["proofs"][random.integers(len(document["proofs"]))]


def deny_an_open_cell(document: dict[str, Any], random: np.random.Generator) -> None:
    if document["open"]:
        document["open"].pop()
    else:
        forget_a_proof(document, random)


def change_an_equation(document: dict[str, Any], random: np.random.Generator) -> None:
    values = dict(zip(document["unknown"]["cells"], document["unknown"]["truth"], strict=True))
    for equation in document["equations"]:
        for at, part in enumerate(equation[1:], start=1):
            cell = part if part >= 0 else -1 - part
            if values.get(cell, document["published"][cell]) != 0:
                equation[at] = -1 - part
                return


def write_a_decimal_number(document: dict[str, Any], random: np.random.Generator) -> None:
    document["sensitive"]["lower"][0] = 0.5


EDITS: dict[str, Edit] = {
    edit.__name__.replace("_", " "): edit
    for edit in (
        edit_witness, forget_an_entry, change_a_denominator, drop_a_witness, raise_a_level, narrow_a_bound,
        publish_a_cell, publish_a_moving_cell_consistently, change_a_published_value, change_a_true_value,
        swap_the_witnesses_of_a_proof, prove_by_the_truth_alone, forget_a_proof, deny_an_open_cell, change_an_equation,
        write_a_decimal_number,
    )
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_of_a_resealed_certificate_is_noticed(cases: list[Case], tmp_path: Path, edit: str) -> None:
    random = np.random.default_rng(7)
    for case in cases:
        for _ in range(5):
            document = copy.deepcopy(case.document)
            EDITS[edit](document, random)
            assert document != case.document
            path = written(sealed(document), tmp_path)
            with pytest.raises(InvalidCertificate):
                verify(path)


def test_an_edit_without_the_right_checksum_is_noticed_as_such(cases: list[Case], tmp_path: Path) -> None:
    document = copy.deepcopy(cases[0].document)
    document["notice"] = "Nothing to see here."
    with pytest.raises(InvalidCertificate, match="changed after it was made"):
        verify(written(document, tmp_path))


@pytest.mark.parametrize("name", ["certificate.json", "certificate.json.gz"])
def test_damage_anywhere_in_the_file_is_noticed(cases: list[Case], tmp_path: Path, name: str) -> None:
    random = np.random.default_rng(11)
    path, damaged = tmp_path / name, tmp_path / f"damaged-{name}"
    for case in cases[:8]:
        assert case.findings.certificate is not None
        case.findings.certificate.save(path)
        data = path.read_bytes()
        body = data.rstrip()
        for _ in range(25):
            at = int(random.integers(10 if name.endswith(".gz") else 0, len(body)))  # the header of gzip may vary
            if random.random() < 0.5:
                broken = data[:at]
            else:
                broken = data[:at] + bytes([data[at] ^ (1 << int(random.integers(8)))]) + data[at + 1 :]
            damaged.write_bytes(broken)
            try:
                verify(damaged)
            except InvalidCertificate:
                continue
            plain = gzip.decompress if name.endswith(".gz") else bytes  # the last bits of a packed block mean nothing
            assert json.loads(plain(broken)) == json.loads(plain(data)), "damage of the content must be noticed"


# -- changes of a release --------------------------------------------------------------------------------------------


def test_a_release_that_shows_one_cell_more_is_noticed(cases: list[Case], tmp_path: Path) -> None:
    random = np.random.default_rng(13)
    for case in cases:
        path = written(case.document, tmp_path)
        published = tmp_path / "release.csv"
        case.release.frame().write_csv(published)
        assert verify(path, release=published).release_checked
        for cell in random.permutation(np.flatnonzero(case.release.suppressed))[:5]:
            mask = case.release.suppressed.copy()
            mask[cell] = False
            more = Release.from_suppression(case.problem, mask)
            more.frame().write_csv(published)
            with pytest.raises(InvalidCertificate, match=r"published there, but the certificate takes it as withheld"):
                verify(path, release=published)


def test_a_release_that_shows_another_value_or_row_is_noticed(cases: list[Case], tmp_path: Path) -> None:
    random = np.random.default_rng(17)
    published = tmp_path / "release.csv"
    for case in cases:
        path = written(case.document, tmp_path)
        frame = case.release.frame().with_row_index("at")
        shown = frame.filter(pl.col("value").is_not_null())["at"].to_numpy()
        row = int(random.choice(shown))
        this = pl.col("at") == row
        for changed in (
            frame.with_columns(pl.when(this).then(pl.col("value") + 0.001).otherwise("value").alias("value")),
            frame.with_columns(pl.when(this).then(None).otherwise("value").alias("value")),
            frame.filter(~this),
            pl.concat([frame, frame.filter(this)]),
            frame.with_columns(pl.when(this).then(pl.lit("elsewhere")).otherwise("region").alias("region")),
        ):
            changed.drop("at").write_csv(published)
            with pytest.raises(InvalidCertificate):
                verify(path, release=published)
        frame.drop("at").sample(fraction=1.0, shuffle=True, seed=row).write_csv(published, separator=";")
        assert verify(path, release=published).release_checked


def test_the_release_of_another_problem_is_noticed(cases: list[Case], tmp_path: Path) -> None:
    published = tmp_path / "release.csv"
    for case, other in pairwise(cases):
        other.release.frame().write_csv(published)
        with pytest.raises(InvalidCertificate):
            verify(written(case.document, tmp_path), release=published)


def test_publishing_one_cell_more_never_widens_an_interval_and_opens_what_it_shows(cases: list[Case]) -> None:
    random = np.random.default_rng(19)
    for case in cases[:15]:
        before = case.findings
        for cell in random.permutation(np.flatnonzero(case.release.suppressed))[:4].tolist():
            mask = case.release.suppressed.copy()
            mask[cell] = False
            after = audit(case.problem, Release.from_suppression(case.problem, mask))
            assert (after.lower >= before.lower - 1e-6).all()
            assert (after.upper <= before.upper + 1e-6).all()
            assert not (after.protected & ~before.protected).any()
            if case.problem.sensitivity.mask[cell]:
                assert not after.protected[after.cells == cell].any()
