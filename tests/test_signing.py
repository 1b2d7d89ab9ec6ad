"""Signed certificates: whoever edits one can compute its checksum again, but not its signature."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tablesafe.audit.audit import audit
from tablesafe.audit.signing import PASSPHRASE, make_key, read_private_key
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidCertificate, InvalidFile, InvalidOption, MissingExtra
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.verify import main, verify

pytest.importorskip("cryptography")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a key, a certificate signed by it, and the release."""
    frame = {
        "row": ["u", "u", "u", "v", "v", "v", "Total", "Total", "Total"],
        "column": ["a", "b", "Total"] * 3,
        "value": [10, 5, 15, 7, 8, 15, 17, 13, 30],
    }
    table = Table.from_cells(frame, dimensions=["row", "column"], value="value")
    problem = Problem(table, sensitivity=Sensitivity.of(np.arange(9) == 0, 1.0))
    release = Release.from_suppression(problem, np.isin(np.arange(9), [0, 1, 3, 4]))
    certificate = audit(problem, release).certificate
    assert certificate is not None
    make_key(tmp_path / "office")
    certificate.save(tmp_path / "signed.json", key=tmp_path / "office.key")
    certificate.save(tmp_path / "packed.json.gz", key=tmp_path / "office.key")
    certificate.save(tmp_path / "plain.json")
    release.frame().write_csv(tmp_path / "release.csv")
    return tmp_path


def resealed(document: dict[str, Any]) -> bytes:
    """The document with a checksum that fits, as anyone can make it."""
    content = {key: value for key, value in document.items() if key not in {"sha256", "signature"}}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return json.dumps({**document, "sha256": digest}).encode()


@pytest.mark.parametrize("name", ["signed.json", "packed.json.gz"])
def test_a_signed_certificate_is_accepted_by_its_key(folder: Path, name: str) -> None:
    found = verify(folder / name, key=folder / "office.pub", release=folder / "release.csv")
    assert found.safe
    assert found.signature_checked
    assert found.signer is not None
    assert found.signer in str(found)


def test_without_a_key_nobody_says_that_it_was_checked(folder: Path) -> None:
    signed, plain = verify(folder / "signed.json"), verify(folder / "plain.json")
    assert signed.signer is not None
    assert not signed.signature_checked
    assert "was not checked" in str(signed)
    assert plain.signer is None
    assert "not signed" in str(plain)


def test_a_key_demands_a_signature(folder: Path) -> None:
    with pytest.raises(
        InvalidCertificate, match=r"plain.json is not signed, but a signature of office.pub is asked for"
    ):
        verify(folder / "plain.json", key=folder / "office.pub")
    document = json.loads((folder / "signed.json").read_bytes())
    document.pop("signature")
    (folder / "stripped.json").write_bytes(resealed(document))
    with pytest.raises(InvalidCertificate, match="is not signed"):
        verify(folder / "stripped.json", key=folder / "office.pub")


def test_another_key_is_refused(folder: Path) -> None:
    make_key(folder / "other")
    with pytest.raises(InvalidCertificate, match="is signed with another key"):
        verify(folder / "signed.json", key=folder / "other.pub")
    document = json.loads((folder / "signed.json").read_bytes())
    other = read_private_key(folder / "other.key").public_key().public_bytes_raw()
    document["signature"]["public_key"] = other.hex()  # the name of a key is no signature of it
    (folder / "claimed.json").write_bytes(resealed(document))
    for key in ("other.pub", "office.pub"):
        with pytest.raises(InvalidCertificate):
            verify(folder / "claimed.json", key=folder / key)


def refused(path: Path, key: Path) -> bool:
    try:
        verify(path, key=key)
    except InvalidCertificate:
        return True
    return False


def edits(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The document with each of its values changed in turn."""

    def walk(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, (*path, key))
        elif isinstance(value, list) and value:
            for at, inner in enumerate(value):
                yield from walk(inner, (*path, at))
        elif isinstance(value, bool):
            yield path, not value
        elif isinstance(value, int):
            yield path, value + 1
        elif value is None:
            yield path, 0
        elif isinstance(value, str):
            yield path, value + "0"
        else:
            yield path, ["more"]

    for path, new in walk(document, ()):
        if path[0] in {"sha256", "format", "version"}:
            continue
        changed = copy.deepcopy(document)
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = new
        yield "/".join(map(str, path)), changed


def test_every_field_is_covered_by_the_signature(folder: Path) -> None:
    document = json.loads((folder / "signed.json").read_bytes())
    (folder / "again.json").write_bytes(resealed(document))
    assert verify(folder / "again.json", key=folder / "office.pub").safe
    tried = 0
    for name, changed in edits(document):
        (folder / "edited.json").write_bytes(resealed(changed))
        assert refused(folder / "edited.json", folder / "office.pub"), f"{name} can be changed"
        tried += 1
    assert tried > 100
    for more in ({"extra": 1}, {"captions": {"row": {"u": "10"}}}):
        (folder / "edited.json").write_bytes(resealed({**document, **more}))
        with pytest.raises(InvalidCertificate, match="signature does not fit"):
            verify(folder / "edited.json", key=folder / "office.pub")


def test_an_edit_that_is_sealed_again_passes_without_a_key_and_not_with_one(folder: Path) -> None:
    """What an unsigned certificate proves: itself, and not who made it. The claim about insiders is only its word."""
    document = json.loads((folder / "signed.json").read_bytes())
    document["attackers"] = ["Everybody, and all of them together."]
    (folder / "edited.json").write_bytes(resealed(document))
    assert verify(folder / "edited.json").safe
    with pytest.raises(InvalidCertificate, match="changed after it was signed"):
        verify(folder / "edited.json", key=folder / "office.pub")


def test_a_file_that_is_cut_short_is_refused(folder: Path) -> None:
    for name in ("signed.json", "packed.json.gz"):
        data = (folder / name).read_bytes()
        for length in range(0, len(data) - 2, max(1, len(data) // 40)):
            (folder / f"cut-{name}").write_bytes(data[:length])
            with pytest.raises(InvalidCertificate):
                verify(folder / f"cut-{name}", key=folder / "office.pub")


BROKEN = {
    "no object": "yes",
    "another algorithm": {"algorithm": "none", "public_key": "00" * 32, "value": "00" * 64},
    "too short": {"algorithm": "Ed25519", "public_key": "00", "value": "00"},
    "not hexadecimal": {"algorithm": "Ed25519", "public_key": "zz" * 32, "value": "00" * 64},
    "a further entry": {"algorithm": "Ed25519", "public_key": "00" * 32, "value": "00" * 64, "truth": 10},
    "numbers": {"algorithm": "Ed25519", "public_key": 1, "value": 2},
    "of nobody": {"algorithm": "Ed25519", "public_key": "00" * 32, "value": "00" * 64},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_signature_is_refused(folder: Path, name: str) -> None:
    document = {**json.loads((folder / "signed.json").read_bytes()), "signature": BROKEN[name]}
    (folder / "broken.json").write_bytes(resealed(document))
    with pytest.raises(InvalidCertificate):
        verify(folder / "broken.json", key=folder / "office.pub")
    if name != "of nobody":
        with pytest.raises(InvalidCertificate):
            verify(folder / "broken.json")


def test_what_is_no_public_key_is_named(folder: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    with pytest.raises(InvalidCertificate, match="holds a private key"):
        verify(folder / "signed.json", key=folder / "office.key")
    (folder / "text.pub").write_text("no key")
    with pytest.raises(InvalidCertificate, match="holds no public key"):
        verify(folder / "signed.json", key=folder / "text.pub")
    with pytest.raises(InvalidCertificate, match="cannot be read"):
        verify(folder / "signed.json", key=folder / "nowhere.pub")
    other = X25519PrivateKey.generate().public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "other.pub").write_bytes(other.public_bytes(serialization.Encoding.PEM, form))
    with pytest.raises(InvalidCertificate, match="another kind"):
        verify(folder / "signed.json", key=folder / "other.pub")


def test_keys_are_private_and_never_replaced(folder: Path) -> None:
    if os.name == "posix":
        assert stat.S_IMODE((folder / "office.key").stat().st_mode) == 0o600
    before = (folder / "office.key").read_bytes()
    for name in ("office", "office.key", "office.pub"):
        with pytest.raises(InvalidOption, match="already"):
            make_key(folder / name)
    (folder / "new.pub").write_text("here first")
    with pytest.raises(InvalidOption, match="already"):
        make_key(folder / "new")
    assert not (folder / "new.key").exists()
    assert (folder / "office.key").read_bytes() == before
    with pytest.raises(InvalidFile, match="Cannot write"):
        make_key(folder / "no folder" / "new")


def test_a_key_that_others_can_read_is_warned_of(folder: Path) -> None:
    (folder / "office.key").chmod(0o644)
    with pytest.warns(UserWarning, match="can be read by others"):
        read_private_key(folder / "office.key")


def test_a_passphrase_protects_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSPHRASE, "a long one")
    make_key(folder / "closed")
    assert b"ENCRYPTED" in (folder / "closed.key").read_bytes()
    read_private_key(folder / "closed.key")
    read_private_key(folder / "office.key")
    monkeypatch.setenv(PASSPHRASE, "a wrong one")
    with pytest.raises(InvalidFile, match="passphrase is another one"):
        read_private_key(folder / "closed.key")
    monkeypatch.delenv(PASSPHRASE)
    with pytest.raises(InvalidFile, match=f"(?s)is encrypted.*{PASSPHRASE}"):
        read_private_key(folder / "closed.key")
    with pytest.raises(InvalidFile, match="holds no private key"):
        read_private_key(folder / "office.pub")


def test_without_the_extra_it_says_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(MissingExtra, match=r"tablesafe\[sign\]"):
        verify(folder / "signed.json", key=folder / "office.pub")
    with pytest.raises(MissingExtra, match=r"tablesafe\[sign\]"):
        make_key(folder / "more")
    assert verify(folder / "signed.json").signer is not None


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["key", str(folder / "desk")]) == 0
    assert (folder / "desk.pub").exists()
    assert call(["verify", str(folder / "signed.json"), "--key", str(folder / "office.pub")]) == 0
    assert call(["verify", str(folder / "signed.json"), "--key", str(folder / "desk.pub")]) == 1
    assert call(["verify", str(folder / "plain.json"), "--key", str(folder / "office.pub")]) == 1
    assert "is not signed" in capsys.readouterr().err
    assert main([str(folder / "signed.json"), str(folder / "release.csv"), "--key", str(folder / "office.pub")]) == 0
    assert main([str(folder / "plain.json"), "--key", str(folder / "office.pub")]) == 2


def test_a_job_signs_its_certificate(tmp_path: Path) -> None:
    make_key(tmp_path / "office")
    (tmp_path / "cells.csv").write_text("r,value,n\nTotal,60,40\na,10,2\nb,20,18\nc,30,20\n")
    job = (
        '[source]\nfile = "cells.csv"\nkind = "cells"\ncount = "n"\n[dimensions.r]\n[response]\nvalue = "value"\n'
        '[[rules]]\nrule = "threshold"\nn = 3\n[audit]\nkey = "office.key"\n[output]\nrelease = ["public/t.csv"]\n'
    )
    (tmp_path / "job.toml").write_text(job)
    assert call(["run", str(tmp_path / "job.toml"), "--quiet"]) == 0
    proof = tmp_path / "internal" / "certificate.json.gz"
    assert verify(proof, key=tmp_path / "office.pub", release=tmp_path / "public" / "t.csv").signature_checked
    secret = (tmp_path / "office.key").read_bytes()
    digest = hashlib.sha256(secret).hexdigest().encode()
    for file in [*tmp_path.rglob("public/*"), *tmp_path.rglob("internal/*")]:
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        assert digest not in data, file.name
        assert secret.splitlines()[1] not in data, file.name
    (tmp_path / "job.toml").write_text(job.replace("office.key", "office.pub"))
    assert call(["run", str(tmp_path / "job.toml"), "--quiet"]) == 2


def test_the_verifier_loads_cryptography_only_for_a_signature(folder: Path) -> None:
    program = (
        "import sys; from tablesafe.verify import verify; verify(sys.argv[1]); "
        "print(*sorted({'cryptography', 'polars', 'numpy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(folder / "signed.json")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == ""
