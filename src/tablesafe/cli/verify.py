"""`tablesafe verify`: recheck a certificate."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json, say


def verify(
    certificate: Path,
    /,
    *,
    release: Annotated[
        Path | None, Parameter(help="the published file (.csv, .xlsx, .parquet), to compare it with the certificate")
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
