"""The lines of a batch file, cut into commands and arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMMAND = re.compile(r"\s*<\s*([A-Za-z]+)\s*>\s*(.*)$", re.DOTALL)
_CALL = re.compile(r"\s*([A-Za-z]*)\s*\((.*)\)\s*$", re.DOTALL)
_COMMENT = ("//", "\\\\")


Say = Callable[[str], None]
"""Told what is not followed to the letter."""


class Fault(Exception):
    """One error of a batch file, on a line that the caller knows."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


@dataclass(frozen=True, slots=True)
class Statement:
    """A command as it is written: its name in capitals, and all that follows it."""

    line: int
    name: str
    rest: str

    @property
    def text(self) -> str:
        """The command on one line, without its comment."""
        return f"<{self.name}> {self.rest}".rstrip()


def statements(text: str) -> Iterator[Statement | tuple[int, str]]:
    """Every command of a batch file; a line that belongs to none comes as its number and its text.

    A line without a command goes on with the one before it. Comments begin with `//`, at the start of a line also with
    two backslashes; not within quotes, and not within a path.
    """
    current: Statement | None = None
    for number, raw in enumerate(text.replace("\r\r\n", "\n").splitlines(), start=1):
        line = _without_comment(raw.replace("\x1a", ""))
        if not line.strip():
            continue
        match = _COMMAND.match(line)
        if match is None and current is not None:
            current = Statement(current.line, current.name, f"{current.rest} {line.strip()}".strip())
        elif match is None:
            yield number, line.strip()
        else:
            if current is not None:
                yield current
            current = Statement(number, match[1].upper(), match[2].strip())
    if current is not None:
        yield current


def _without_comment(line: str) -> str:
    if line.lstrip().startswith(_COMMENT):
        return ""
    quoted = False
    for at, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif not quoted and line.startswith("//", at) and line[at - 1 : at] in {" ", "\t", ">", ")"}:
            return line[:at].rstrip()
    return line.rstrip()


def split(text: str, separator: str) -> list[str]:
    """The pieces between separators that stand outside double quotes, without spaces around them."""
    pieces, start, quoted = [], 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif letter == separator and not quoted:
            pieces.append(text[start:at].strip())
            start = at + 1
    if quoted:
        raise Fault(f"a quote is not closed in {text.strip()!r}", "close it.")
    return [*pieces, text[start:].strip()]


def names(text: str) -> tuple[str, ...]:
    """Names in double quotes one after the other (`"Size""Region"`), or without quotes and with spaces between them."""
    found = re.findall(r'"([^"]*)"|([^\s"]+)', text)
    return tuple(name for name in (quoted.strip() or bare for quoted, bare in found) if name)


def unquoted(text: str) -> str:
    """A text without the quotes around it; one that is only opened or only closed is forgiven."""
    bare = text.strip()
    return bare.removeprefix('"').removesuffix('"').strip() if bare.count('"') <= 2 else bare


def call(text: str) -> tuple[str, list[str]]:
    """A name and what stands in brackets after it, as in `MOD(1,5)`; the name may be empty."""
    match = _CALL.match(text)
    if match is None:
        raise Fault(f"{text.strip()!r} is not a name with parameters in brackets", "write it like MOD(1,5).")
    return match[1].upper(), split(match[2], ",") if match[2].strip() else []


def number(text: str, what: str) -> float:
    """A number, with a decimal point."""
    try:
        found = float(unquoted(text))
    except ValueError:
        raise Fault(f"{what} is {text.strip()!r}, which is no number", "write it with digits and a point.") from None
    if found != found or abs(found) > 1e15:
        raise Fault(f"{what} is {text.strip()!r}", "write an ordinary number.")
    return found


def whole(text: str, what: str, *, least: int = 0, most: int = 10**9) -> int:
    """A whole number within limits."""
    found = number(text, what)
    if found != int(found) or not least <= found <= most:
        limit = f"from {least} to {most:,}" if most < 10**9 else f"of {least} or more"
        raise Fault(f"{what} is {text.strip()!r}", f"it is a whole number {limit}.")
    return int(found)


def switch(text: str, what: str) -> bool:
    """A 0 or a 1."""
    if unquoted(text) not in {"0", "1"}:
        raise Fault(f"{what} is {text.strip()!r}", "it is 1 for yes or 0 for no.")
    return unquoted(text) == "1"


def so_many(n: int) -> str:
    """A number of parameters, in words."""
    return f"{n} parameter" if n == 1 else f"{n or 'no'} parameters"
