"""Plain values as TOML text, and back; and where each key of a text stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, TypeAlias

# -- values ------------------------------------------------------------------------------------------------------------


_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_ENDLESS = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){40}""")
"""Keys in keys in keys: the parser of the standard library needs memory by the square of their number."""


def read_toml(text: str) -> dict[str, Any]:
    """Plain data of TOML text; raises `ValueError` or `RecursionError` for what is none."""
    found = _ENDLESS.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise tomllib.TOMLDecodeError(f"Keys are nested without end (at line {line}, column 1)")
    return tomllib.loads(text)


def toml_value(value: Any) -> str:
    """A plain value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    return repr(value) if isinstance(value, float) else str(value)


def toml_string(text: str) -> str:
    """Text as a TOML basic string."""
    return '"' + "".join(_NAMED.get(c, f"\\u{ord(c):04X}" if ord(c) < 32 or ord(c) == 127 else c) for c in text) + '"'


def toml_key(key: str) -> str:
    """A key, quoted where TOML needs it."""
    bare = bool(key) and all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if bare else toml_string(key)


# -- lines -------------------------------------------------------------------------------------------------------------
#
# `tomllib` gives values without lines, but an error in a job file must name its line. The text was parsed by `tomllib`
# already, so this scan may take it to be valid TOML: it only finds the keys again.


KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys that lead to a value; whole numbers count the elements of an array."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line (from 1) of every key, table and array element of a valid TOML text."""
    scan = _Scan(text.replace("\r\n", "\n"))
    scan.document()
    return scan.lines


class _Scan:
    """A walk over valid TOML that notes the line of each key."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.elements: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        while self.skip(newlines=True):
            line = self.line()
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.resolve(self.key(), append=True)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.resolve(self.key(), append=False)
                self.at += 1
            else:
                self.pair(table)
                continue
            self.note(table, line)

    def resolve(self, keys: KeyPath, *, append: bool) -> KeyPath:
        """The path of a table header: inside the latest element of every array of tables on the way."""
        path: KeyPath = ()
        for i, key in enumerate(keys):
            path = (*path, key)
            if append and i == len(keys) - 1:
                self.elements[path] = self.elements.get(path, -1) + 1
                self.lines.setdefault(path, self.line())
            if path in self.elements:
                path = (*path, self.elements[path])
        return path

    def pair(self, table: KeyPath) -> None:
        line = self.line()
        path = (*table, *self.key())
        self.note(path, line)
        self.at += 1  # the equals sign
        self.value(path)

    def note(self, path: KeyPath, line: int) -> None:
        for i in range(1, len(path) + 1):
            self.lines.setdefault(path[:i], line)

    def key(self) -> KeyPath:
        parts: list[str] = []
        while True:
            self.skip()
            if self.text[self.at] in "\"'":
                parts.append(self.string())
            else:
                match = _BARE.match(self.text, self.at)
                assert match is not None, "tomllib accepted a key that this scan does not know"
                parts.append(match[0])
                self.at = match.end()
            self.skip()
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def value(self, path: KeyPath) -> None:
        self.skip()
        start = self.text[self.at]
        if start in "\"'":
            self.string()
        elif start == "[":
            self.array(path)
        elif start == "{":
            self.inline_table(path)
        else:
            match = _SCALAR.match(self.text, self.at)
            assert match is not None
            self.at = match.end()

    def array(self, path: KeyPath) -> None:
        self.at += 1
        element = 0
        while self.skip(newlines=True) and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.lines[(*path, element)] = self.line()
            self.value((*path, element))
            element += 1
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self.skip(newlines=True) and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.pair(path)
        self.at += 1

    def string(self) -> str:
        """Step over a string; its content, when it stands on one line as a key must."""
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            end = self.text.index(quote * 3, self.at + 3)
            while quote == '"' and self.escaped(end):
                end = self.text.index(quote * 3, end + 1)
            self.at = end + 3
            while self.at < len(self.text) and self.text[self.at] == quote:  # quotes may end a multi-line string
                self.at += 1
            return ""
        end = self.text.index(quote, self.at + 1)
        while quote == '"' and self.escaped(end):
            end = self.text.index(quote, end + 1)
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        if quote == "'" or "\\" not in inside:
            return inside
        long = re.sub(r"\\U([0-9A-Fa-f]{8})", lambda m: chr(int(m[1], 16)), inside)
        return str(json.loads(f'"{long}"'))

    def escaped(self, at: int) -> bool:
        before = self.text[:at]
        return (len(before) - len(before.rstrip("\\"))) % 2 == 1

    def skip(self, *, newlines: bool = False) -> bool:
        """Step over blanks, and over comments and line ends where asked; say whether anything is left."""
        blanks = " \t\n" if newlines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] in blanks:
                self.at += 1
            elif newlines and self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1
