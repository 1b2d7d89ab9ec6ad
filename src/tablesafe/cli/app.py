"""All commands. Their modules load tables and solvers only when a command is run, so that `--help` is quick."""

from __future__ import annotations

import atexit
import contextlib
import gc
import inspect
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO

from cyclopts import App, Parameter

import tablesafe
from tablesafe.cli.attack import attack
from tablesafe.cli.audit import audit
from tablesafe.cli.convert import convert
from tablesafe.cli.demo import demo
from tablesafe.cli.difference import difference
from tablesafe.cli.exits import EXIT_HELP, Exit, report_error
from tablesafe.cli.init import init, look
from tablesafe.cli.listing import methods, rules
from tablesafe.cli.redesign import redesign
from tablesafe.cli.run import run
from tablesafe.cli.serve import serve
from tablesafe.cli.show import warn
from tablesafe.cli.suppress import suppress
from tablesafe.cli.tabulate import flag, tabulate
from tablesafe.cli.verify import key, verify
from tablesafe.cli.warm_up import warm_up
from tablesafe.core.errors import InvalidOption, Terminated
from tablesafe.core.machine import leave_no_core_dump
from tablesafe.files.limits import inputs_kept

RARELY = 50_000, 20, 20
"""How many new objects make Python look for circles among them: to load modules makes many, and no circle."""
CLOSED_PIPE = 141
"""What a shell reports for a program whose output nobody reads any more."""


def flowing(text: str) -> str:
    """The paragraphs of a docstring without the breaks of its lines, which are no terminal's, or its parameters."""
    text = inspect.cleandoc(text).partition("\nParameters\n---")[0]
    return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n")).strip()


app = App(
    name="tablesafe",
    help="Make statistical tables safe to publish, and prove it.",
    help_epilogue=EXIT_HELP,
    version=tablesafe.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)

_PLAIN: tuple[Callable[..., int], ...] = (
    run, init, look, demo, tabulate, flag, suppress, audit, attack, verify, redesign, difference,
    serve, key, warm_up,
)  # fmt: skip
for _number, _command in enumerate(_PLAIN):
    app.command(_command, sort_key=_number, help=flowing(_command.__doc__ or ""))
app.command(rules)
app.command(methods, sort_key=10, help=flowing(methods.__doc__ or ""))
app.command(convert, sort_key=11, help=flowing(convert.__doc__ or ""))
app.register_install_completion_command(help="Let the shell complete commands and options (bash, zsh, fish).")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    leave_no_core_dump()
    if arguments is None:
        gc.set_threshold(*RARELY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a code or a path that the terminal cannot show
    try:
        code = call(sys.argv[1:] if arguments is None else arguments)
    except (KeyboardInterrupt, Terminated):  # once more, while the first was being told
        code = int(Exit.INTERRUPTED)
    if arguments is None:
        leave(code)
    sys.exit(code)


def leave(code: int) -> NoReturn:
    """End this process as it is: to take apart what it has in memory takes 0.4 s after a table of 24,000 cells."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a further Ctrl-C asks for nothing else
        signal.signal(number, signal.SIG_IGN)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def call(arguments: Sequence[str]) -> int:
    """Run a command; errors become a message, a hint and an exit code."""
    from cyclopts import CycloptsError

    tokens = [token for token in arguments if token != "--debug"]
    debug, as_json = len(tokens) < len(arguments), "--json" in tokens
    asked: list[int] = []

    def terminated(number: int, frame: object) -> None:
        """As Ctrl-C: a search keeps what it has found and goes on to its files; all else ends, and cleans up."""
        from tablesafe.work.stopping import ask_once

        if ask_once():
            return
        asked.append(number)
        raise Terminated

    try:
        with _hearing(terminated, signal.SIGTERM), warnings.catch_warnings(), inputs_kept():
            warnings.showwarning = _show_warning
            code = app(tokens, exit_on_error=False, print_error=not as_json, result_action="return_value")
            sys.stdout.flush()
    except CycloptsError as error:
        return report_error(InvalidOption(str(error)), as_json=True, debug=debug) if as_json else Exit.BAD_INPUT
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else Exit.OK
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except BaseException as error:  # a library that calls back may have made another error of the wish to end
        with _hearing(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM):  # to its end, whoever asks once more
            return report_error(Terminated() if asked else error, as_json=as_json, debug=debug)
    return code if isinstance(code, int) else Exit.OK


@contextmanager
def _hearing(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    """Let a handler hear the wish that the process may end, in the first thread, for the time being."""
    first = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers if first}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show what the library warns of as a line for people, without the line of code that it comes from."""
    warn(str(message))
