"""Plain values as TOML text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


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
