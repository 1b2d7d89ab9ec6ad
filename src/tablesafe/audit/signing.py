"""Keys that sign certificates: Ed25519, in files that only their owner can read.

`tablesafe key office` makes two files. `office.key` signs, and stays with whoever answers for releases; `office.pub`
checks, and goes to whoever relies on them. `tablesafe.verify` checks signatures, and shares no code with this file.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from tablesafe.core.errors import InvalidFile, InvalidOption, MissingExtra
from tablesafe.core.machine import is_for_owner_only

PASSPHRASE = "TABLESAFE_KEY_PASSPHRASE"
"""Variable of the environment with the passphrase of private keys, where they have one."""


def make_key(path: str | Path) -> tuple[Path, Path]:
    """Make a pair of keys, `path` with .key and with .pub; a file that is there already is never replaced.

    With a passphrase in `TABLESAFE_KEY_PASSPHRASE` the private key is encrypted with it, and signing asks for it there.
    """
    serialization, private_key = _cryptography()
    path = Path(path)
    if path.suffix in {".key", ".pub"}:
        path = path.with_suffix("")
    private, public = (path.with_name(path.name + ending) for ending in (".key", ".pub"))
    for file in (private, public):
        if file.exists() or file.is_symlink():
            raise InvalidOption(
                f"There is a file {str(file)!r} already.",
                hint="what it signed can be checked with it only; keep it, and choose another name.",
            )
    passphrase = os.environ.get(PASSPHRASE, "").encode()
    key = private_key.generate()
    _write_new(
        private,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption(),
        ),
        0o600,
    )
    try:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        _write_new(public, key.public_key().public_bytes(serialization.Encoding.PEM, form), 0o644)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return private, public


def signature(path: str | Path, message: bytes) -> dict[str, str]:
    """A signature of the private key in a file, with the public key that checks it."""
    key = read_private_key(path)
    public = key.public_key().public_bytes_raw()
    return {"algorithm": "Ed25519", "public_key": public.hex(), "value": key.sign(message).hex()}


def read_private_key(path: str | Path) -> Any:
    """The private key in a file; whatever is wrong with it is said before any work is done with it."""
    serialization, private_key = _cryptography()
    path, hint = Path(path), "give the file that ends in .key, as 'tablesafe key' made it."
    passphrase = os.environ.get(PASSPHRASE, "").encode() or None
    try:
        data = path.read_bytes()
        shared = not is_for_owner_only(path.stat())
    except OSError as error:
        raise InvalidFile(f"The key {str(path)!r} cannot be read: {error.strerror}.", hint=hint) from error
    encrypted = b"ENCRYPTED" in data
    if encrypted and passphrase is None:
        raise InvalidFile(f"{path.name} is encrypted.", hint=f"put its passphrase into the variable {PASSPHRASE}.")
    try:
        key = serialization.load_pem_private_key(data, passphrase if encrypted else None)
    except (ValueError, TypeError):
        why = "its passphrase is another one, or it is damaged" if encrypted else "it holds no private key"
        raise InvalidFile(f"{path.name} cannot be used: {why}.", hint=hint) from None
    if not isinstance(key, private_key):
        raise InvalidFile(f"{path.name} holds a key of another kind than Ed25519.", hint=hint)
    if shared:
        warnings.warn(f"{path.name} can be read by others than its owner: chmod 600 {path.name}", stacklevel=2)
    return key


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise MissingExtra("Signing certificates", "sign") from None
    return serialization, Ed25519PrivateKey


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that was not there, with its mode from the first byte on."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidFile(f"Cannot write {str(path)!r}: {error.strerror}.") from error
