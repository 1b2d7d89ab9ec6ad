"""Damage to a valid file, as accidents and strangers do it; each kind is a function of the bytes and of chance."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

NASTY = [
    "", " ", "NaN", "inf", "-inf", "1e308", "-1e308", "1e400", "1e999999999", "-1", "0", "-0", "1e-320", "0x10", "1_0",
    "9007199254740993", "2147483648", "-9223372036854775809", "9" * 400, "9" * 5000, "true", "null", "None", "=1+1",
    "@SUM(1)", "+1", "\x1b[31m", "\x07", "'", '"', '""', "\u202e", "٣", "²", "½", "1,5", "1.000,5", "1 000", "Total",
    "\x00", "é", "😀", "\ufeff", "\u2028", "a" * 70_000, "../../x", "/dev/zero", "%s%n", "{}", "[/red]", "\t", "𝟙",
    "<", "<>", "(", ")", "|", "\\", "--", ";", "2026-11-15", "1/3", "1/0", "T", "\r", "\x1a", "\x85",
]  # fmt: skip
NODES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1.5, "", "1/0", "1/3", "x", "٣", "\ud800", [], {}, [None], [[]],
    "9" * 4000 + "/7", -(2**64), "=1+1",
]  # fmt: skip
ENCODINGS = ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp037", "shift_jis"]

Damage = Callable[[bytes, Random], bytes]


def _somewhere(data: bytes, chance: Random) -> int:
    return chance.randrange(len(data) + 1)


def flip(data: bytes, chance: Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def set_bytes(data: bytes, chance: Random) -> bytes:
    at, n = _somewhere(data, chance), chance.choice([1, 2, 4, 8])
    return data[:at] + chance.choice([b"\xff", b"\x00", b"\x7f", b"\x80"]) * n + data[at + n :]


def cut(data: bytes, chance: Random) -> bytes:
    start = _somewhere(data, chance)
    return data[:start] + data[start + chance.randrange(1, 40) :]


def truncate(data: bytes, chance: Random) -> bytes:
    return data[: _somewhere(data, chance)]


def repeat(data: bytes, chance: Random) -> bytes:
    start = _somewhere(data, chance)
    piece = data[start : start + chance.randrange(1, 60)]
    return data[:start] + piece * chance.choice([2, 2, 3, 500]) + data[start:]


def insert(data: bytes, chance: Random) -> bytes:
    at = _somewhere(data, chance)
    return data[:at] + chance.choice(NASTY).encode("utf-8", "surrogatepass") + data[at:]


def lines(data: bytes, chance: Random) -> bytes:
    parts = data.split(b"\n")
    i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
    what = chance.randrange(6)
    if what == 0:
        del parts[i]
    elif what == 1:
        parts.insert(j, parts[i])
    elif what == 2:
        parts[i], parts[j] = parts[j], parts[i]
    elif what == 3:
        parts.insert(i, b"")
    elif what == 4:
        parts[i] = parts[i] * 300
    else:
        parts[i] = b" " * 3 + parts[i]
    return b"\n".join(parts)


def entry(data: bytes, chance: Random) -> bytes:
    found = list(re.finditer(rb"[^\s,;|=\[\]{}()\"]+", data))
    if not found:
        return data
    at, other = chance.choice(found), chance.choice(found)
    new = other[0] if chance.random() < 0.4 else chance.choice(NASTY).encode()
    return data[: at.start()] + new + data[at.end() :]


def number(data: bytes, chance: Random) -> bytes:
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not found:
        return data
    at = chance.choice(found)
    return data[: at.start()] + chance.choice(NASTY).encode() + data[at.end() :]


def separators(data: bytes, chance: Random) -> bytes:
    old, new = chance.sample([b",", b";", b"\t", b"|", b" ", b'"', b"\n", b"\r\n", b"\r", b"=", b":"], 2)
    return data.replace(old, new, chance.choice([-1, 1, 2]))


def encoding(data: bytes, chance: Random) -> bytes:
    text = data.decode("utf-8", "replace").replace("a", "é", chance.choice([0, 1, -1]))
    return text.encode(chance.choice(ENCODINGS), "replace")


def digits(data: bytes, chance: Random) -> bytes:
    zero = ord(chance.choice("٠०０𝟘"))
    return data.decode("utf-8", "replace").translate({48 + i: zero + i for i in range(10)}).encode()


def nesting(data: bytes, chance: Random) -> bytes:
    at = _somewhere(data, chance)
    return data[:at] + chance.choice([b"[", b"{", b"(", b'"', b"@", b'{"a":', b"<", b"[["]) * 6000 + data[at:]


def tree(data: bytes, chance: Random) -> bytes:
    """Change one node of a JSON document; other bytes stay as they are."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    holder, key = None, None
    node: Any = document
    while isinstance(node, (dict, list)) and node and (holder is None or chance.random() < 0.85):
        holder, key = node, chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = holder[key]
    if holder is None:
        return data
    what = chance.randrange(4)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.append(node)
    elif what == 2 and type(node) is int:
        holder[key] = node + chance.choice([-1, 1, 10**9])
    else:
        holder[key] = chance.choice(NODES)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def inside(data: bytes, chance: Random) -> bytes:
    """Damage what is packed, and pack it again."""
    if data.startswith(b"\x1f\x8b"):
        try:
            return gzip.compress(chance.choice(PLAIN)(gzip.decompress(data), chance), mtime=0)
        except (OSError, EOFError, zlib.error):
            return data
    if data.startswith(b"PK"):
        return _inside_zip(data, chance)
    return flip(data, chance)


def _inside_zip(data: bytes, chance: Random) -> bytes:
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            members = old.namelist()
            chosen = chance.choice(members)
            for member in members:
                content = old.read(member)
                if member == chosen:
                    content = chance.choice(PLAIN)(content, chance)
                new.writestr(member, content)
    except Exception:  # damaged before
        return flip(data, chance)
    return out.getvalue()


PLAIN: list[Damage] = [
    flip, set_bytes, cut, truncate, repeat, insert, lines, entry, number, separators, encoding, digits, nesting,
]  # fmt: skip
DAMAGES: list[Damage] = [*PLAIN, lines, entry, entry, number, number, tree, tree, inside, inside]


def damaged(seed: bytes) -> st.SearchStrategy[bytes]:
    """A valid file after a few mishaps."""
    steps = st.tuples(st.integers(0, len(DAMAGES) - 1), st.integers(0, 2**32))
    return st.lists(steps, min_size=1, max_size=4).map(lambda done: damage(seed, done))


def damage(seed: bytes, steps: list[tuple[int, int]]) -> bytes:
    """Apply mishaps in turn; the same steps give the same bytes."""
    for which, chance in steps:
        seed = DAMAGES[which](seed, Random(chance))
    return seed
