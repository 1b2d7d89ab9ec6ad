"""How results are shown: text for people on a terminal, one JSON document for machines."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tablesafe.files.limits import UNSEEN, visible

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Where to print; output that nobody reads any more is left to the caller, who knows the exit code."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Quiet(stderr=stderr, width=width, soft_wrap=True)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print_json_text(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


def print_json_text(text: str) -> None:
    """A JSON document that is text already; what would steer a terminal is escaped in it, as JSON allows."""
    text = UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal without these characters
        text = re.sub(r"[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], text)
    print(text)


def say(text: str = "", *, style: str | None = None, quiet: bool = False) -> None:
    """A line for people on standard output."""
    if quiet:
        return
    from rich.text import Text

    console().print(Text(visible(text), style=style or ""))


def warn(text: str) -> None:
    """A warning for people on standard error."""
    from rich.text import Text

    console(stderr=True).print(Text("Warning: ", style="bold yellow") + Text(visible(text)))
    sys.stderr.flush()


def grid(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = ()) -> Table:
    """A table for the terminal; columns named in `right` hold numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(Text(visible(column)), justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*(Text(visible(str(entry))) for entry in row))
    return table


def show(table: Table) -> None:
    """Print a table of `grid`; wide ones are not cut off when standard output is no terminal."""
    terminal = console()
    (terminal if terminal.is_terminal else console(width=200)).print(table, soft_wrap=False)


def print_frame(frame: pl.DataFrame, *, rows: int = 20) -> None:
    """The first rows of a frame."""
    numeric = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    shown = [
        [
            "" if v is None else f"{v:,.12g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else v
            for v in row
        ]
        for row in frame.head(rows).iter_rows()
    ]
    show(grid(frame.columns, shown, right=numeric))
    if frame.height > rows:
        say(f"… and {frame.height - rows:,} more: write them to a file with -o.")
