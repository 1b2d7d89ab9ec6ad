"""Exit codes, and how errors are shown: a message and a hint on standard error, never a traceback unless asked for."""

from __future__ import annotations

import sys
import traceback
from enum import IntEnum
from pathlib import Path

from tablesafe.cli.show import console, print_json
from tablesafe.core.errors import (
    Interrupted,
    InvalidCertificate,
    InvalidInput,
    MissingExtra,
    TablesafeError,
    Terminated,
    UnsafeRelease,
)
from tablesafe.files.limits import visible


class Exit(IntEnum):
    """What the exit code of a command says."""

    OK = 0
    UNSAFE = 1
    BAD_INPUT = 2
    FAILED = 3
    INTERRUPTED = 130


EXIT_HELP = """\
Exit codes:
  0    all is well
  1    something is open: a release is not safe, a certificate does not prove it
  2    bad input: a file, a job or an option
  3    the solver or the program failed
  130  interrupted
Add --debug to any command for a traceback when it fails."""


def exit_of(error: BaseException) -> Exit:
    """The exit code that an error leads to."""
    if isinstance(error, (UnsafeRelease, InvalidCertificate)):
        return Exit.UNSAFE
    if isinstance(error, (InvalidInput, MissingExtra)):
        return Exit.BAD_INPUT
    if isinstance(error, (KeyboardInterrupt, Interrupted, Terminated)):
        return Exit.INTERRUPTED
    return Exit.FAILED


def message_of(error: BaseException) -> tuple[str, str]:
    """An error's message and its hint, in words for the user."""
    if isinstance(error, (KeyboardInterrupt, Interrupted, Terminated)):
        return "Interrupted: nothing was written.", ""
    if isinstance(error, TablesafeError):
        return error.message, error.hint
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table.", "try fewer dimensions, or a machine with more memory."
    message = f"tablesafe failed: {type(error).__name__}{_place(error)}."
    return message, (
        "this is a bug. The same command with --debug prints more; it may quote your data, so look before you send it."
    )


def _place(error: BaseException) -> str:
    """Where our own code failed. What the error says is left out: it may quote confidential values."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "tablesafe" in Path(frame.filename).parts]
    return f" in {Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else ""


def report_error(error: BaseException, *, as_json: bool, debug: bool) -> Exit:
    """Show an error, and say which exit code goes with it."""
    code = exit_of(error)
    message, hint = message_of(error)
    if debug:
        traceback.print_exception(error)
    if as_json:
        about = {"kind": type(error).__name__, "message": message, "hint": hint}
        print_json({"status": "error", "exit_code": int(code), "error": about})
        return code
    from rich.text import Text

    terminal = console(stderr=True)
    terminal.print(Text("Error: ", style="bold red") + Text(visible(message), style="red"))
    if hint:
        terminal.print(Text("Hint: ", style="bold") + Text(visible(hint)))
    sys.stderr.flush()
    return code
