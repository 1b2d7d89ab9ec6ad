"""Read a batch file of τ-ARGUS; all its errors are told at once, each with its line."""

from __future__ import annotations

from pathlib import Path

from tablesafe.core.errors import InvalidJob
from tablesafe.files.read import did_you_mean, read_text
from tablesafe.job.arb.arguments import COMMANDS
from tablesafe.job.arb.model import Batch, Command, GoInteractive, Note
from tablesafe.job.arb.order import check_order
from tablesafe.job.arb.scan import Fault, Statement, statements

NOT_HERE = {"ANCO": "a switch of the developers", "JJ": "never finished", "REPORTSTR": "no longer there"}
"""Commands that the source of τ-ARGUS knows and its manual does not."""


def read_arb(path: str | Path) -> Batch:
    """Read a batch file: UTF-8 or Windows-1252, with or without a byte-order mark."""
    return parse_arb(read_text(path), path)


def parse_arb(text: str, path: str | Path = "job.arb") -> Batch:
    """The commands of a batch file's text."""
    path = Path(path)
    commands: list[Command] = []
    faults: list[tuple[int, Fault]] = []
    notes: list[Note] = []
    texts: dict[int, str] = {}
    for found in statements(text):
        if isinstance(found, tuple):
            line, words = found
            faults.append((line, Fault(f"{words!r} is no command", "commands stand in angle brackets: <CLEAR>.")))
            continue
        texts[found.line] = found.text
        try:
            commands.append(_command(found, notes))
        except Fault as fault:
            faults.append((found.line, Fault(f"<{found.name}>: {fault.what}", fault.hint)))
    if not commands and not faults:
        raise InvalidJob(f'{path.name} holds no commands.\n\nHint: commands look like <OPENMICRODATA> "firms.asc".')
    if not faults:
        faults = [(line, Fault(f"{texts[line].split('>')[0]}>: {f.what}", f.hint)) for line, f in check_order(commands)]
    if faults:
        raise InvalidJob(_told(path.name, faults))
    return Batch(commands=tuple(commands), texts=texts, notes=tuple(notes), path=path)


def _command(found: Statement, notes: list[Note]) -> Command:
    if found.name not in COMMANDS:
        if found.name in NOT_HERE:
            raise Fault(f"it is {NOT_HERE[found.name]} and is not run", "remove the line.")
        hint = did_you_mean(found.name, list(COMMANDS)) or f"commands are {', '.join(sorted(COMMANDS))}."
        raise Fault("there is no such command", hint)
    command = COMMANDS[found.name](found.line, found.rest, lambda text: notes.append(Note(found.line, text)))
    if isinstance(command, GoInteractive):
        notes.append(Note(found.line, "there are no windows to go on in: the run ends with what came before it."))
    return command


def _told(name: str, faults: list[tuple[int, Fault]]) -> str:
    """One error with its hint, or all of them, in the order of their lines."""
    faults = sorted(faults, key=lambda fault: fault[0])
    if len(faults) == 1:
        line, fault = faults[0]
        return f"{name}, line {line}: {fault.what}.\n\nHint: {fault.hint}"
    listed = "\n".join(f"  line {line}: {fault.what}. Hint: {fault.hint}" for line, fault in faults)
    return f"{name} has {len(faults)} errors:\n{listed}"
