"""`tablesafe key`: a pair of keys to sign certificates with, and to check them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json, say


def key(name: Path, /) -> int:
    """Make a pair of keys: NAME.key signs certificates and stays secret, NAME.pub checks them and goes to readers.

    A passphrase in the variable TABLESAFE_KEY_PASSPHRASE encrypts the private key. Files that exist are not replaced.

    Parameters
    ----------
    name
        where the files go, without an ending, such as keys/office
    """
    from tablesafe.audit.signing import make_key

    private, public = make_key(name)
    say(f"{private} signs: keep it secret, and keep a copy. {public} checks: give it to whoever relies on releases.")
    return Exit.OK


# `tablesafe verify`: recheck a certificate.


def verify(
    certificate: Path,
    /,
    *,
    release: Annotated[
        Path | None,
        Parameter(help="the published file, in any format that a job writes, to compare it with the certificate"),
    ] = None,
    key: Annotated[Path | None, Parameter(help="public key (.pub) by which the certificate must be signed")] = None,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing when the proof holds")] = False,
) -> int:
    """Recheck a certificate with addition only: no solver, no floating point.

    The exit code is 1 when the certificate is damaged, edited, not signed by the key given, made for another release,
    or leaves a cell open. Without --key nobody knows who made it.

    Parameters
    ----------
    certificate
        the certificate, as the audit wrote it
    """
    from tablesafe.verify import verify as recheck

    found = recheck(certificate, release=release, key=key)
    code = Exit.OK if found.safe else Exit.UNSAFE
    if json:
        status = "safe" if found.safe else "open"
        print_json({"status": status, "exit_code": int(code), **dataclasses.asdict(found)})
    elif not (quiet and found.safe):
        say(("PROVED" if found.safe else "OPEN") + f": {found}", style="green" if found.safe else "red")
    return code
