"""Plain values as TOML text, and back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

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
