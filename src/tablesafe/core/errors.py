"""What can go wrong, as one tree of exceptions.

TablesafeError
├── InvalidInput               something the user gave is wrong; the message says what, where, and what to do
│   ├── InvalidFile            a file that cannot be read as what it claims to be
│   ├── InvalidHierarchy       codes that form no hierarchy: cycles, orphans, duplicates
│   ├── InvalidTable           cells that form no table: unknown codes, duplicates, sums that do not add up
│   ├── InvalidProblem         levels, bounds, costs or statuses that contradict the table or each other
│   ├── InvalidRelease         a pattern or values that do not belong to the problem
│   ├── InvalidOption          an option outside its range
│   ├── InvalidJob             a job file; lists all its errors at once
│   └── InvalidCertificate     a certificate that does not prove what it claims
├── MissingExtra               an optional dependency is not installed
├── SolverFailure              the solver stopped without an answer that passes our own check
│   └── OutOfTime              it was given too little time to find one
├── UnsafeRelease              a release failed its audit and was therefore not written
└── Interrupted                the user stopped the run

Terminated stands outside the tree, as KeyboardInterrupt does: the process is to end, and nothing may hold that up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

from tablesafe.core.language import Text
from tablesafe.core.language import joined as in_one

Error = TypeVar("Error", bound="TablesafeError")
LONGEST_LINE, MOST_LINES = 1_000, 60
"""What is shown of a message that quotes a file without line breaks, or that lists hundreds of mistakes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that an error speaks of. Each interface calls it by the name that it has there.

    `value` is what to set it to; without one, `…` stands for it, and None is the option as such. `of` is what the
    option is given for, where it is given for several.
    """

    name: str
    value: Any = ...
    of: str = ""

    def __str__(self) -> str:
        """As an argument in Python."""
        value = "…" if self.value is ... else "" if self.value is None else repr(self.value)
        return f"{self.name}={{{self.of!r}: {value}}}" if self.of else f"{self.name}={value}"


Words: TypeAlias = str | Text | tuple[str | Text | Setting, ...]
"""A text, or its parts where it speaks of options. A `Text` can be said in other languages, options among its parts."""
About: TypeAlias = tuple[str | int, ...]
"""A key of a job, from its section on; or what it is, and its name."""
Speech: TypeAlias = Callable[[Setting], str | Text]
"""How an interface calls an option."""


class TablesafeError(Exception):
    """Root of all errors that tablesafe raises on purpose. A message is for people: one beyond all measure is cut.

    An error is data; its text is how one interface says it, as Python does unless another `speech` is set.
    """

    def __init__(self, message: Words = "", *, hint: Words = "", about: About = (), where: str = "") -> None:
        super().__init__(message)
        self.told, self.advice, self.about, self.where = message, hint, about, where
        self.speech: Speech = str

    @property
    def words(self) -> tuple[Text, Text]:
        """What is wrong and where, and what to do about it, to be said in any language; the latter may be empty."""
        told = worded(self.told, self.speech)
        return in_one(": ", [self.where, told]) if self.where else told, worded(self.advice, self.speech)

    @property
    def message(self) -> str:
        """What is wrong, and where, in English."""
        return readable(str(self.words[0]))

    @property
    def hint(self) -> str:
        """What to do about it, in English; may be empty."""
        return str(self.words[1])

    def __str__(self) -> str:
        hint = self.hint
        return readable(f"{self.message}\n\nHint: {hint}" if hint else self.message)

    def __reduce__(self) -> Any:
        """As data, whatever the arguments of its class: errors come back from other processes."""
        return _again, (type(self), {**self.__dict__, "speech": str})

    def at(self, where: str) -> Self:
        """The same error, found at this place."""
        error = _again(type(self), dict(self.__dict__))
        error.where = f"{where}: {self.where}" if self.where else where
        return error


def _again(kind: type[Error], fields: dict[str, Any]) -> Error:
    error = kind.__new__(kind)
    Exception.__init__(error, fields["told"])
    error.__dict__.update(fields)
    return error


def worded(words: Words, speech: Speech = str) -> Text:
    """A text that can be said in any language, with its options as an interface calls them."""
    if isinstance(words, str):
        return Text(words)
    if isinstance(words, Text):
        return Text(words.template, tuple((name, _called(part, speech)) for name, part in words.parts))
    return in_one("", [_called(part, speech) for part in words])


def _called(part: Any, speech: Speech) -> Any:
    if isinstance(part, Setting):
        return speech(part)
    return worded(part, speech) if isinstance(part, Text) else part


def and_more(many: int) -> str:
    """How many others there are besides the first, where a message names one of many."""
    return f" (and {many - 1:,} more)" if many > 1 else ""


def joined(by: str, several: Iterable[Words]) -> Words:
    """Several texts as one."""
    out: list[str | Text | Setting] = []
    for words in several:
        out += [by] if out else []
        out += words if isinstance(words, tuple) else [words]
    return tuple(out)


@contextmanager
def speaking(speech: Speech) -> Iterator[None]:
    """Let errors that leave the block call options as an interface does."""
    try:
        yield
    except TablesafeError as error:
        error.speech = speech
        raise


@contextmanager
def concerning(*about: str | int) -> Iterator[None]:
    """Say of errors that leave the block what they are about, unless they know better."""
    try:
        yield
    except TablesafeError as error:
        error.about = error.about or about
        raise


def readable(message: str) -> str:
    """The message with the middle left out of long lines, and of many lines."""
    if len(message) <= LONGEST_LINE:
        return message
    half = LONGEST_LINE // 2
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}" for line in message.split("\n")]
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        lines = [*lines[: MOST_LINES - 4], f"  … and {left:,} lines more", *lines[-4:]]
    return "\n".join(lines)


class InvalidInput(TablesafeError, ValueError):
    """Something the user gave is wrong.

    `about` says what: a key of a job (`"source", "where"`); or `"column"`, `"dimension"`, `"file"` or `"option"` and
    its name; or `"contributors"` or `"counts"`, where a table does not tell enough of them; or `"cells"` and their
    numbers in the table, the one that cannot be protected first. An interface shows the error there.
    """


class InvalidFile(InvalidInput):
    """A file cannot be read as what it claims to be."""


class InvalidHierarchy(InvalidInput):
    """Codes and parents do not form a hierarchy."""


class InvalidTable(InvalidInput):
    """Cells do not form a table."""


class InvalidProblem(InvalidInput):
    """Levels, bounds, costs or statuses contradict the table or each other."""


class InvalidRelease(InvalidInput):
    """A pattern or published values do not belong to the problem."""


class InvalidOption(InvalidInput):
    """An option lies outside its range."""


class InvalidJob(InvalidInput):
    """A job file is wrong; the message lists every error with its line."""


class InvalidCertificate(InvalidInput):
    """A certificate does not prove what it claims."""


class MissingExtra(TablesafeError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency.", hint=f"pip install 'tablesafe[{extra}]'")


class SolverFailure(TablesafeError, RuntimeError):
    """The solver stopped without an answer that passes our own check."""


class OutOfTime(SolverFailure):
    """The time given was too short for an answer."""


class UnsafeRelease(TablesafeError):
    """A release failed its audit and was therefore not written."""


class Interrupted(TablesafeError):
    """The user stopped the run; what was finished and safe is kept."""


class Terminated(BaseException):
    """The process was asked to end: nothing more is written, and all that is temporary is removed on the way out."""
