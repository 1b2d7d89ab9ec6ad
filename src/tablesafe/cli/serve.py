"""`tablesafe serve`: the web app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import say, warn
from tablesafe.web.options import ServeOptions, is_loopback

DEFAULTS = ServeOptions()


def serve(
    folder: Path | None = None,
    /,
    *,
    options: Annotated[ServeOptions, Parameter(name="*")] = DEFAULTS,
) -> int:
    """Open the web app: load data, choose rules and a method, run, look, compare, attack, download.

    It listens on this machine only and prints an address with a token, without which it answers nobody. Ctrl-C ends it;
    what was uploaded or computed is removed.

    Parameters
    ----------
    folder
        folder whose files may be chosen in the app; without it, only uploads
    """
    from tablesafe.web import serve as serve_app

    if not is_loopback(options.host):
        warn("Other machines can reach the app. They need the token, but nothing on the way is encrypted.")

    def announce(address: str) -> None:
        say("The app is ready. Open this address; the token in it lets you in:")
        print(f"  {address}", flush=True)
        say("Ctrl-C ends the app and removes what was uploaded.")

    serve_app(folder, options, announce=announce)
    return Exit.OK
