"""PX files (PC-Axis), as the statistical offices of the north and many others exchange tables: in and out.

A PX file is a list of `KEYWORD("dimension")="text","text";`, the last of which is `DATA`: one number for each
combination of codes, the last dimension of `HEADING` running fastest. Text in quotes among the numbers (`".."`, `"."`)
stands for a value that is not shown; `"-"` is nothing, which is zero. With `KEYS` only some combinations are there,
each behind its codes. `ELIMINATION` names the code that is the total of a dimension, `HIERARCHIES` which codes are
parts of which. (PX file format specification, Statistics Sweden, 2013.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.files.limits import unpacked
from tablesafe.files.read import Source, decode, read_bytes
from tablesafe.files.write import write_text
from tablesafe.io.dataset import STATUS, Dataset

HIDDEN, NOTHING = '".."', '"-"'
_KEYWORD = re.compile(r'\s*([A-Za-z][A-Za-z0-9_-]*)(?:\[(\w+)\])?(?:\(\s*((?:"[^"]*"\s*,?\s*)+)\))?\s*=')
_TEXT = re.compile(r'"([^"]*)"')
_LINE = 200
"""Letters of a text after which a PX file begins a new line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One keyword with what it is about, its texts, and the line it stands on."""

    about: tuple[str, ...]
    texts: tuple[str, ...]
    raw: str
    line: int


def read_px(path: str | Path) -> Dataset:
    """Read a PX file: codes, labels, totals, notes, and every value with the sign that stands for a hidden one."""
    path = Path(path)
    text = _text(unpacked(read_bytes(path), path.name), path.name)
    entries, data, line = _entries(text, path.name)
    stub, heading = (_names(entries, key) for key in ("STUB", "HEADING"))
    names = [*stub, *heading]
    if not names:
        raise InvalidFile(f"{path.name} names no dimensions.", hint="a PX file has STUB or HEADING.")
    values = {name: _about(entries, "VALUES", name) for name in names}
    for name in names:
        if not values[name]:
            raise InvalidFile(f"{path.name} has no VALUES for dimension {name!r}.", hint="is the file complete?")
    codes = {name: _about(entries, "CODES", name) or values[name] for name in names}
    for name in names:
        _refuse_repeats(path.name, name, codes[name], values[name])
    frame = _cells(path.name, names, codes, values, entries, data, line)
    labels = {name: dict(zip(codes[name], values[name], strict=True)) for name in names if codes[name] != values[name]}
    by_label = {name: dict(zip(values[name], codes[name], strict=True)) for name in names}
    totals = {
        name: by_label[name].get(total, total)
        for name in names
        if (total := next(iter(_about(entries, "ELIMINATION", name)), "")) and total.upper() not in {"YES", "NO"}
    }
    return Dataset(
        rows=Source(frame, path.name),
        dimensions={name: _hierarchy(path.name, name, entries, codes[name], by_label[name]) for name in names},
        codes=codes,
        labels=labels,
        totals={name: total for name, total in totals.items() if total in codes[name]},
        status=STATUS,
        title=_one(entries, "TITLE") or _one(entries, "CONTENTS"),
        unit=_one(entries, "UNITS"),
        notes=tuple(text for key in ("NOTE", "NOTEX") for entry in entries.get(key, ()) for text in entry.texts),
    )


def write_px(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as a PX file in UTF-8; withheld values as `".."`."""
    write_text(path, px_text(dataset))


def px_text(dataset: Dataset) -> str:
    """The text of a PX file."""
    names = list(dataset.dimensions)
    stub, heading = (names[:-1], names[-1:]) if len(names) > 1 else (names, [])
    title = dataset.title or f"{dataset.value} by {', '.join(names)}"
    lines = [
        'CHARSET="ANSI";', 'AXIS-VERSION="2013";', 'CODEPAGE="utf-8";', 'LANGUAGE="en";', "DECIMALS=15;",
        _line("SHOWDECIMALS", None, raw=str(_decimals(dataset))), _line("MATRIX", ["tablesafe"]),
        _line("SUBJECT-CODE", ["tablesafe"]), _line("SUBJECT-AREA", ["tablesafe"]), _line("TITLE", [title]),
        _line("CONTENTS", [dataset.value]), _line("UNITS", [dataset.unit or "unit"]),
    ]  # fmt: skip
    lines += [_line(key, own) for key, own in (("STUB", stub), ("HEADING", heading)) if own]
    for name in names:
        labels = dataset.labels.get(name, {})
        lines.append(_line("VALUES", [labels.get(code, code) for code in dataset.codes[name]], about=name))
        lines.append(_line("CODES", list(dataset.codes[name]), about=name))
        if name in dataset.totals:
            lines.append(_line("ELIMINATION", [labels.get(dataset.totals[name], dataset.totals[name])], about=name))
        if pairs := _pairs(dataset.dimensions[name]):
            lines.append(_hierarchy_line(name, dataset.totals.get(name), pairs))
    lines += [_line("NOTE", [note]) for note in dataset.notes]
    return "\n".join([*lines, "DATA=", *_data(dataset)]) + "\n"


# Reading.


def _text(data: bytes, name: str) -> str:
    """The text, by the code page that the file names; a byte-order mark or valid UTF-8 says it too."""
    named = re.search(rb'CODEPAGE\s*=\s*"([^"]+)"', data[:4096], re.IGNORECASE)
    if named is None or data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return decode(data, name)
    page = named[1].decode("ascii", errors="replace").strip()
    try:
        return data.decode(page)
    except (LookupError, UnicodeDecodeError):
        return decode(data, name)


def _entries(text: str, name: str) -> tuple[dict[str, list[Entry]], str, int]:
    """Every keyword but DATA, the text of DATA, and the line where that begins."""
    found: dict[str, list[Entry]] = {}
    default = re.search(r'(?m)^\s*LANGUAGE\s*=\s*"(\w+)"', text)
    at = 0
    while True:
        match = _KEYWORD.match(text, at)
        line = text.count("\n", 0, at) + 1
        if match is None:
            rest = text[at:].strip()
            if rest:
                raise InvalidFile(
                    f"{name}, line {line}: no keyword of a PX file begins here: {rest[:40]!r}.", hint="is it a PX file?"
                )
            raise InvalidFile(f"{name} has no DATA.", hint="is the file complete?")
        keyword, language, about = match[1].upper(), match[2], tuple(_TEXT.findall(match[3] or ""))
        if keyword == "DATA":
            data = text[match.end() :]
            return found, data[: data.rindex(";")] if ";" in data else data, text.count("\n", 0, match.end()) + 1
        end = _end(text, match.end())
        if end is None:
            raise InvalidFile(f"{name}, line {line}: {keyword} does not end.", hint="a semicolon is missing after it.")
        raw = text[match.end() : end]
        if language is None or (default is not None and language == default[1]):
            found.setdefault(keyword, []).append(Entry(about, _joined(raw), raw.strip(), line))
        at = end + 1


def _end(text: str, at: int) -> int | None:
    """The semicolon that ends an entry: the first outside of quotes."""
    quoted = False
    for match in re.compile(r'["; ]').finditer(text, at):
        if match[0] == '"':
            quoted = not quoted
        elif match[0] == ";" and not quoted:
            return match.start()
    return None


def _joined(raw: str) -> tuple[str, ...]:
    """The texts of an entry: parts of one text follow each other without a comma."""
    texts: list[str] = []
    joined = False
    for part in re.finditer(r'"([^"]*)"|,', raw):
        if part[0] == ",":
            joined = False
        elif joined:
            texts[-1] += part[1]
        else:
            texts.append(part[1])
            joined = True
    return tuple(texts)


def _names(entries: Mapping[str, Sequence[Entry]], key: str) -> list[str]:
    return [text for entry in entries.get(key, ()) for text in entry.texts]


def _about(entries: Mapping[str, Sequence[Entry]], key: str, dimension: str) -> list[str]:
    return [
        text
        for entry in entries.get(key, ())
        if entry.about[:1] == (dimension,)
        for text in entry.texts or (entry.raw,)
    ]


def _one(entries: Mapping[str, Sequence[Entry]], key: str) -> str:
    return next((entry.texts[0] for entry in entries.get(key, ()) if entry.texts), "")


def _refuse_repeats(file: str, name: str, codes: Sequence[str], values: Sequence[str]) -> None:
    if len(codes) != len(values):
        raise InvalidFile(
            f"{file}: dimension {name!r} has {len(codes):,} CODES and {len(values):,} VALUES.",
            hint="there is one code for each value.",
        )
    if len(set(codes)) < len(codes):
        twice = next(code for i, code in enumerate(codes) if code in codes[:i])
        raise InvalidFile(f"{file}: code {twice!r} stands twice in dimension {name!r}.", hint="codes must differ.")


def _cells(
    file: str,
    names: Sequence[str],
    codes: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[str]],
    entries: Mapping[str, Sequence[Entry]],
    data: str,
    line: int,
) -> pl.DataFrame:
    """One row for each number of DATA."""
    if "KEYS" in entries:
        return _keyed(file, names, codes, values, entries, data, line)
    words = data.replace(",", " ").split()
    sizes = [len(codes[name]) for name in names]
    expected = int(np.prod(sizes, dtype=np.int64))
    if len(words) != expected:
        raise InvalidFile(
            f"{file}: DATA has {len(words):,} values, but {' × '.join(map(str, sizes))} codes make {expected:,} cells.",
            hint="is the file complete?",
        )
    at = np.unravel_index(np.arange(expected), sizes)
    columns = {
        name: pl.Series(codes[name]).gather(index.astype(np.uint32)) for name, index in zip(names, at, strict=True)
    }
    return pl.DataFrame(columns | _numbers(file, words, line))


def _keyed(
    file: str,
    names: Sequence[str],
    codes: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[str]],
    entries: Mapping[str, Sequence[Entry]],
    data: str,
    line: int,
) -> pl.DataFrame:
    """Rows that begin with the codes of STUB, where only some of their combinations are there."""
    keyed = [name for name in names if any(entry.about[:1] == (name,) for entry in entries["KEYS"])]
    across = [name for name in names if name not in keyed]
    wide = int(np.prod([len(codes[name]) for name in across], dtype=np.int64))
    spelled = {entry.about[0]: entry.raw.strip('" ').upper() for entry in entries["KEYS"] if entry.about}
    rows: dict[str, list[str]] = {name: [] for name in keyed}
    words: list[str] = []
    for number, text in enumerate(data.strip().splitlines(), start=line):
        keys = re.match(r'\s*((?:"[^"]*"\s*,\s*)*)', text)
        own = _TEXT.findall(keys[1]) if keys else []
        numbers = text[keys.end() if keys else 0 :].replace(",", " ").split()
        if len(own) != len(keyed) or len(numbers) != wide:
            raise InvalidFile(
                f"{file}, line {number}: {len(own)} codes and {len(numbers)} values, not {len(keyed)} and {wide}.",
                hint="with KEYS every line begins with its codes, each in quotes with a comma behind it.",
            )
        for name, key in zip(keyed, own, strict=True):
            rows[name].append(key)
        words += numbers
    columns: dict[str, pl.Series] = {}
    for name in keyed:
        known = codes[name] if spelled.get(name) == "CODES" else values[name]
        code = dict(zip(known, codes[name], strict=True))
        strange = next((key for key in rows[name] if key not in code), None)
        if strange is not None:
            raise InvalidFile(f"{file}: {strange!r} is no code of dimension {name!r}.", hint="check VALUES and CODES.")
        columns[name] = pl.Series([code[key] for key in rows[name] for _ in range(wide)])
    for name, index in zip(
        across, np.unravel_index(np.arange(wide), [len(codes[n]) for n in across] or [1]), strict=False
    ):
        columns[name] = pl.Series(list(codes[name])).gather(
            np.tile(index, len(words) // max(wide, 1)).astype(np.uint32)
        )
    return pl.DataFrame({name: columns[name] for name in names} | _numbers(file, words, line))


def _numbers(file: str, words: Sequence[str], line: int) -> dict[str, pl.Series]:
    """Values, and the sign that stands in the place of one; `"-"` is zero."""
    text = pl.Series(words, dtype=pl.String)
    quoted = text.str.starts_with('"')
    sign = pl.select(pl.when(quoted).then(text.str.strip_chars('"')).otherwise(None)).to_series()
    plain = pl.select(pl.when(quoted).then(None).otherwise(text)).to_series()
    value = plain.cast(pl.Float64, strict=False)
    wrong = value.is_null() & ~quoted
    if bool(wrong.any()):
        raise InvalidFile(
            f"{file}: {words[int(wrong.arg_max() or 0)]!r} in DATA (from line {line}) is no number.",
            hint="signs for missing values stand in quotes.",
        )
    nothing = sign == "-"
    value = pl.select(pl.when(nothing).then(0.0).otherwise(value)).to_series()
    sign = pl.select(pl.when(nothing).then(None).otherwise(sign)).to_series()
    return {"value": value, STATUS: sign}


def _hierarchy(
    file: str, name: str, entries: Mapping[str, Sequence[Entry]], codes: Sequence[str], by_label: Mapping[str, str]
) -> Hierarchy | None:
    """The tree of HIERARCHIES: `"top","top":"part","part":"finer"`."""
    raw = next((entry.raw for entry in entries.get("HIERARCHIES", ()) if entry.about[:1] == (name,)), "")
    pairs = [(by_label.get(a, a), by_label.get(b, b)) for a, b in re.findall(r'"([^"]*)"\s*:\s*"([^"]*)"', raw)]
    known = set(codes)
    pairs = [(parent, child) for parent, child in pairs if parent in known and child in known]
    return Hierarchy.from_pairs(pairs, name=f"{file}, HIERARCHIES of {name}") if pairs else None


# Writing.


def _line(keyword: str, texts: Sequence[str] | None, *, about: str | None = None, raw: str = "") -> str:
    key = keyword if about is None else f'{keyword}("{_plain(about)}")'
    return f"{key}={raw if texts is None else ','.join(_quoted(text) for text in texts)};"


def _quoted(text: str) -> str:
    """A text in quotes; a long one in parts, on lines of their own."""
    plain = _plain(text)
    parts = [plain[i : i + _LINE] for i in range(0, len(plain), _LINE)] or [""]
    return "\n".join(f'"{part}"' for part in parts)


def _plain(text: str) -> str:
    """A text that cannot end its own quotes, or its line."""
    return re.sub(r"\s*[\r\n]+\s*", "#", text).replace('"', "'")


def _decimals(dataset: Dataset) -> int:
    values = dataset.rows.frame[dataset.value].drop_nulls().to_numpy()
    return next((d for d in range(6) if np.array_equal(np.round(values, d), values)), 6)


def _pairs(hierarchy: Hierarchy | None) -> list[tuple[str, str]]:
    """Parents and children of a tree with more than one level."""
    if hierarchy is None or not hierarchy.is_tree or len(hierarchy.as_equations()) < 2:
        return []
    return [(equation.total, part) for equation in hierarchy.as_equations() for part in equation.parts]


def _hierarchy_line(name: str, total: str | None, pairs: Sequence[tuple[str, str]]) -> str:
    top = total or pairs[0][0]
    links = ",".join(f"{_quoted(parent)}:{_quoted(child)}" for parent, child in pairs)
    return f'HIERARCHIES("{_plain(name)}")={_quoted(top)},{links};'


def _data(dataset: Dataset) -> Iterator[str]:
    """Lines of DATA: every combination of codes; one that the table does not have is nothing."""
    sizes = [len(dataset.codes[name]) for name in dataset.dimensions]
    words = np.full(int(np.prod(sizes, dtype=np.int64)), NOTHING, dtype=object)
    values = dataset.rows.frame[dataset.value].to_list()
    words[dataset.positions()] = [HIDDEN if v is None else repr(v).removesuffix(".0") for v in values]
    for row in words.reshape(-1, sizes[-1]):
        yield " ".join(row)
    yield ";"
