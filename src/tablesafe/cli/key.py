"""`tablesafe key`: a pair of keys to sign certificates with, and to check them."""

from __future__ import annotations

from pathlib import Path

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import say


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
