"""The verifier, tested with certificates written by hand: it knows the format and addition, nothing of the audit."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablesafe.core.errors import InvalidCertificate, InvalidInput
from tablesafe.verify import main, verify

# A table of two rows (u, v) and two columns (a, b) with totals: cells 0..3 inner, 4 and 5 row totals, 6 and 7 column
# totals, 8 the grand total. The four inner cells are withheld; cell 0 is 10 and must be hidden by 2 on both sides.
BY_HAND: dict[str, Any] = {
    "format": "tablesafe certificate",
    "version": 1,
    "notice": "CONFIDENTIAL",
    "method": "suppression",
    "response": "value",
    "decimals": 0,
    "whole": False,
    "dimensions": ["row", "column"],
    "labels": [["u", "v", "T"], ["a", "b", "T"]],
    "codes": [[0, 0, 1, 1, 0, 1, 2, 2, 2], [0, 1, 0, 1, 2, 2, 0, 1, 2]],
    "published": [None, None, None, None, 15, 15, 17, 13, 30],
    "absent": [],
    "changed": [],
    "unknown": {"cells": [0, 1, 2, 3], "truth": [10, 5, 7, 8], "lower": [0, 0, 0, 0], "upper": [None] * 4},
    "equations": [[4, 0, 1], [5, 2, 3], [6, 0, 2], [7, 1, 3]],
    "sensitive": {"cells": [0], "lower": [2], "upper": [2], "sliding": [0]},
    "open": [],
    "others": [],
    "attackers": ["outsiders"],
    "proofs": [[0, 1, 2]],
    "chains": [
        {"over": 1, "witnesses": [{"cells": [0, 1, 2, 3], "values": [8, 7, 9, 6]}]},
        {"over": 2, "witnesses": [{"cells": [0, 1, 2, 3], "values": [25, 5, 9, 21]}]},
    ],
}
RELEASE = "row,column,value,status\nu,a,,c\nu,b,,c\nv,a,,c\nv,b,,c\nu,T,15,\nv,T,15,\nT,a,17,\nT,b,13.0,\nT,T,3e1,\n"


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """Checksums as the format defines them, written out once more here."""
    document = {key: value for key, value in document.items() if key not in {"sha256", "release"}}
    lines = [
        "\x1f".join(
            [document["labels"][d][document["codes"][d][cell]] for d in range(len(document["dimensions"]))]
            + ["" if value is None else str(value)]
        )
        for cell, value in enumerate(document["published"])
        if cell not in document["absent"]
    ]
    header = "\x1f".join([*document["dimensions"], document["response"], str(document["decimals"])])
    document["release"] = hashlib.sha256("\n".join([header, *sorted(lines)]).encode()).hexdigest()
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**document, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def edited(edit: Callable[[dict[str, Any]], Any], folder: Path) -> Path:
    """A copy of the certificate by hand with one edit, sealed again."""
    document = copy.deepcopy(BY_HAND)
    edit(document)
    try:
        document = sealed(document)
    except IndexError:  # codes so broken that there is nothing to seal: the form is checked first
        document = {**sealed(BY_HAND), "codes": document["codes"]}
        canonical = json.dumps(
            {k: v for k, v in document.items() if k != "sha256"}, sort_keys=True, separators=(",", ":")
        )
        document["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    path = folder / "certificate.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return edited(lambda document: None, tmp_path)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "release.csv"
    path.write_text(RELEASE, encoding="utf-8")
    return path


def test_a_certificate_written_by_hand_is_accepted(path: Path, published: Path) -> None:
    found = verify(path, release=published)
    assert found.safe
    assert (found.cells, found.protected, found.open, found.witnesses) == (1, 1, (), 2)
    assert (found.equations, found.unknown, found.changed, found.release_checked) == (4, 4, 0, True)
    assert "1 of 1 sensitive cells are protected" in str(found)
    assert not verify(path).release_checked


def test_a_witness_is_stored_as_changes_since_the_one_before(tmp_path: Path) -> None:
    def third(document: dict[str, Any]) -> None:
        document["chains"][0]["witnesses"] = [
            {"cells": [0, 1, 2, 3], "values": [8, 7, 9, 6]},
            {"cells": [], "values": []},
            {"cells": [3, 2, 1, 0], "values": [10, 5, 3, 12]},
        ]
        document["proofs"] = [[0, 2, 3]]

    assert verify(edited(third, tmp_path)).safe


def test_an_admitted_open_cell_is_valid_but_not_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def admit(document: dict[str, Any]) -> None:
        document["proofs"], document["chains"], document["open"] = [], [], [0]

    path = edited(admit, tmp_path)
    found = verify(path)
    assert not found.safe
    assert found.open == ("(row=u, column=a)",)
    assert main([str(path)]) == 1
    assert "1 sensitive cell is open: (row=u, column=a)" in capsys.readouterr().out


def test_what_the_audit_found_beyond_its_proofs_is_passed_on(tmp_path: Path) -> None:
    found = verify(edited(put("others", ["cell X: open to an insider"]), tmp_path))
    assert found.protected == found.cells
    assert not found.safe
    assert "cell X: open to an insider" in str(found)


def put(*place: Any) -> Callable[[dict[str, Any]], None]:
    """An edit that sets one entry."""

    def edit(document: dict[str, Any]) -> None:
        *way, last, value = place
        into: Any = document
        for key in way:
            into = into[key]
        into[last] = value

    return edit


def both(*edits: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for one in edits:
            one(document)

    return edit


REASONS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "not additive": (put("chains", 0, "witnesses", 0, "values", 0, 7), r"does not add up to cell \(row=u, column=T\)"),
    "below a bound": (put("unknown", "lower", 3, 7), r"cell \(row=v, column=b\) lies outside what an attacker knows"),
    "above a bound": (put("unknown", "upper", 0, 12), r"cell \(row=u, column=a\) lies outside what an attacker knows"),
    "truth out of bounds": (put("unknown", "lower", 0, 11), "the true value of cell"),
    "level below": (put("sensitive", "lower", 0, "5/2"), r"not protected downwards"),
    "level above": (put("sensitive", "upper", 0, "26/10"), r"not protected upwards"),
    "width": (put("sensitive", "sliding", 0, "46/10"), "narrower than its level asks"),
    "negative level": (put("sensitive", "lower", 0, -1), "negative"),
    "same witness twice": (
        both(put("sensitive", {"cells": [0], **{key: [0] for key in ("lower", "upper", "sliding")}}),
             put("proofs", 0, [0, 0, 0])),
        "same value",
    ),
    "witness missing": (put("proofs", 0, [0, 1, 3]), "names a witness that is missing"),
    "not proved": (put("proofs", []), "neither proved nor listed as open"),
    "open and protected": (put("open", [0]), "both open and protected"),
    "open but not sensitive": (put("open", [1]), "open that is not sensitive"),
    "proved twice": (put("proofs", [[0, 1, 2], [0, 1, 2]]), "twice"),
    "proof of another cell": (put("proofs", [[0, 1, 2], [1, 2, 1]]), "does not list as sensitive"),
    "truth not additive": (put("unknown", "truth", 0, 11), "true values do not add up"),
    "published cell moved": (
        put("chains", 0, "witnesses", 0, {"cells": [4, 0], "values": [14, 9]}), "which is published",
    ),
    "published but unknown": (put("published", 0, 10), "does not list it as changed"),
    "withheld but known": (put("published", 4, None), "does not treat it as unknown"),
    "absent but published": (put("absent", [4]), "both as published and as left out"),
    "unknown code": (put("codes", 0, 0, 3), "a code that it does not list"),
    "same codes twice": (put("codes", 0, 0, 1), "two of its cells have the same codes"),
    "too few codes": (put("codes", 0, [0]), "codes for 1 cells"),
    "cell out of range": (put("open", [99]), "a cell that the table does not have"),
    "negative cell": (put("chains", 0, "witnesses", 0, "cells", [-1, 1, 2, 3]), "a cell that the table does not have"),
    "cell twice": (put("chains", 0, "witnesses", 0, "cells", [0, 0, 2, 3]), "same cell twice"),
    "equation without total": (put("equations", 0, [-5, 0, 1]), "no total"),
    "equation twice the cell": (put("equations", 0, [4, 0, 0]), "equation 1 is damaged"),
    "equation out of range": (put("equations", 0, [4, 0, 100]), "equation 1 is damaged"),
    "empty equation": (put("equations", 0, []), "damaged"),
    "text for a number": (put("sensitive", "lower", 0, "two"), "neither a whole number nor a fraction"),
    "a truth value": (put("sensitive", "lower", 0, True), "neither a whole number nor a fraction"),
    "zero below the line": (put("sensitive", "lower", 0, "1/0"), "neither a whole number nor a fraction"),
    "lists of different length": (put("unknown", "truth", [10, 5, 7]), "damaged"),
    "missing part": (lambda document: document.pop("unknown"), "damaged"),
    "not whole": (put("whole", True), "is not a table of whole numbers"),
    "no denominator": (put("chains", 0, "over", 0), "is not a table of whole numbers"),
    "fraction in a witness": (put("chains", 0, "witnesses", 0, "values", 0, "8/1"), "which is not a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_a_wrong_certificate_is_rejected_with_the_reason(name: str, tmp_path: Path) -> None:
    edit, reason = REASONS[name]
    with pytest.raises(InvalidCertificate, match=reason) as error:
        verify(edited(edit, tmp_path))
    assert str(error.value).startswith("certificate.json is not a valid certificate: ")


def test_whole_witnesses_are_asked_for_only_when_values_are_whole(tmp_path: Path) -> None:
    def whole(document: dict[str, Any]) -> None:
        document["whole"] = True
        document["chains"][1] = {"over": 1, "witnesses": [{"cells": [0, 1, 2, 3], "values": [12, 3, 5, 10]}]}

    assert verify(edited(whole, tmp_path)).safe


def test_subtracted_parts_are_written_as_complements(tmp_path: Path) -> None:
    """The same table with one equation turned round: u,a = u,T − u,b."""
    assert verify(edited(put("equations", 0, [0, 4, -1 - 1]), tmp_path)).safe


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "damaged or cut short"),
        (b"{", "damaged or cut short"),
        (b"[1, 2]", "is not a certificate of tablesafe"),
        (b'{"format": "something else"}', "is not a certificate of tablesafe"),
        (b'{"format": "tablesafe certificate", "version": 2}', "version 2"),
        (b"\xff\xfe\x00", "damaged or cut short"),
        (gzip.compress(b"{}" * 1000, mtime=0)[:-9], "damaged or cut short"),
        (b'{"format": "tablesafe certificate", "version": 1, "decimals": 0.5}', "only whole numbers and fractions"),
        (b'{"format": "tablesafe certificate", "version": 1, "decimals": NaN}', "only whole numbers and fractions"),
        (b'{"format": "tablesafe certificate", "version": 1}', "changed after it was made"),
    ],
)
def test_what_is_no_certificate_is_rejected(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(data)
    with pytest.raises(InvalidCertificate, match=reason):
        verify(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no certificate"):
        verify(tmp_path / "nowhere.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        verify(tmp_path)


def test_a_missing_release_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.csv cannot be read"):
        verify(path, release=tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("u,a,,c", "u,a,10,", "line 2: cell .row=u, column=a. is published there, but the certificate takes"),
        ("u,T,15,", "u,T,16,", "line 6: cell .row=u, column=T. is published there with another value"),
        ("u,T,15,", "u,T,,c", "is withheld there"),
        ("u,T,15,\n", "", "is not in the file"),
        ("u,T,15,", "u,T,15,\nu,T,15,", "line 7 repeats cell"),
        ("u,T,15,", "u,T,15,\nw,T,1,", "line 7: the table has no cell .w, T."),
        ("u,T,15,", "u,T,15?,", "neither a number nor a mark"),
        ("u,T,15,", "u,T,1/2,", "neither a number nor a mark"),
        ("u,T,15,", "u,T", "cut short"),
        ("row,column", "row,spalte", "does not have the columns"),
    ],
)
def test_a_foreign_release_is_noticed(path: Path, published: Path, old: str, new: str, reason: str) -> None:
    assert RELEASE.count(old) == 1
    published.write_text(RELEASE.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidCertificate, match=reason):
        verify(path, release=published)


@pytest.mark.parametrize(
    "text",
    [
        RELEASE.replace(",", ";"),
        RELEASE.replace(",", ";").replace("13.0", "13,0"),
        RELEASE.replace(",", "\t"),
        "\ufeff" + RELEASE,
        RELEASE.replace("\n", "\r\n"),
        RELEASE.replace(",,c", ",...,c"),
        RELEASE.replace(",,c", ",,confidential"),
        RELEASE + "\n",
        "\n".join([RELEASE.splitlines()[0], *sorted(RELEASE.splitlines()[1:])]),
    ],
)
def test_the_same_release_in_another_file_is_accepted(path: Path, published: Path, text: str) -> None:
    published.write_text(text, encoding="utf-8", newline="")
    assert verify(path, release=published).release_checked


def test_the_command_needs_nothing_but_python(path: Path, published: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tablesafe.verify", str(path), str(published)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 sensitive cells are protected" in done.stdout
    path.write_text("{}", encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not a certificate" in done.stderr


def test_the_verifier_loads_neither_numpy_nor_a_solver() -> None:
    program = "import sys, tablesafe.verify; print(*sorted({'numpy', 'polars', 'highspy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main([]) == 2
    assert capsys.readouterr().out.count("usage:") == 2
