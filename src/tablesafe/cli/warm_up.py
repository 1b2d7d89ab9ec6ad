"""`tablesafe warm-up`: compile what the first table would otherwise wait for."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit


def warm_up(
    *,
    workers: Annotated[int | None, Parameter(help="how many processes; without it one for each core")] = None,
    quiet: Annotated[bool, Parameter(help="print nothing")] = False,
) -> int:
    """Compile the inner loops now, on all cores: once on a machine, so that the first table need not wait for it.

    Small made-up tables are tabulated, suppressed, audited, rounded and adjusted. What is compiled is kept beside the
    program, or in the folder that NUMBA_CACHE_DIR names.
    """
    from tablesafe.cli.warming import warm_up as compile_all

    def tell(what: str, done: int, of: int) -> None:
        if not quiet:
            sys.stderr.write(f"[{done}/{of}] {what}\n")
            sys.stderr.flush()

    if not quiet:
        sys.stderr.write("tablesafe compiles its inner loops, which takes a minute or so, once on this machine.\n")
    compile_all(tell, workers)
    return Exit.OK
