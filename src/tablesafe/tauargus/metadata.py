r"""τ-ARGUS metadata (`.rda`): which variable stands where in the data, what it is, and its hierarchy.

A variable begins a line with its name; indented lines in angle brackets describe it. Three kinds of file:

- microdata of fixed format: `name start width [missing codes]`;
- microdata of free format: the file begins with `<SEPARATOR>`, then `name width [missing codes]`;
- tables, which are always of free format: `name [missing codes]`.

| keyword | meaning |
|---|---|
| `<RECODEABLE>` (or `<RECODABLE>`) | a dimension |
| `<TOTCODE> "Total"` | the code of its total |
| `<HIERARCHICAL>` | it has a hierarchy: in a file, or in the digits of its codes |
| `<HIERCODELIST> "nace.hrc"`, `<HIERLEADSTRING> "@"` | the file, and what indents its lines |
| `<HIERLEVELS> 3 1 1` | digits of each level |
| `<CODELIST> "region.cdl"` | labels |
| `<DISTANCE> 1 2 3 4 5` | distances between levels, for costs |
| `<TRUNCABLE>` | codes may be cut short to recode |
| `<NUMERIC>`, `<DECIMALS> 2` | a response; decimals to show |
| `<WEIGHT>`, `<HOLDING>` | the sampling weight; the group of respondents |
| `<REQUEST> "1" "2"` | codes of respondents who ask for protection |
| `<RECORDKEY>`, `<PFILE>` (`_FREQ`, `_CONT`, `_SEP`) | cell-key method: the record key and its perturbation tables |
| `<CKM> T(3)`, `<INCLUDEZEROS> N`, `<PARITY> N`, `<SEPARATION> Y`, `<SCALING> F(…)` | cell-key method for a response |
| `<FREQUENCY>`, `<SHADOW>`, `<COST>` (`<COSTVAR>`), `<MAXSCORE>` | columns of a table: counts, costs, largest |
| `<STATUS>`, `<LOWERPL>`, `<UPPERPL>` | columns of a table: statuses and protection levels |
| `<SAFE> "S"`, `<UNSAFE> "U"`, `<PROTECT> "P"` | the letters of its status column |

Files are often named by the path they had on another machine (`\\File1\users\…\nace.hrc`): a file of the same name
beside the `.rda`, in upper or lower case, stands in for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import TOTAL
from tablesafe.core.machine import last_part
from tablesafe.files.read import did_you_mean, read_text
from tablesafe.files.write import write_text

Kind = Literal["micro", "table"]


class Role(StrEnum):
    """What a variable is for."""

    DIMENSION = "dimension"
    RESPONSE = "response"
    DIMENSION_AND_RESPONSE = "dimension and response"
    WEIGHT = "weight"
    HOLDING = "holding"
    REQUEST = "request"
    RECORD_KEY = "record key"
    COUNT = "count"
    SHADOW = "shadow"
    COST = "cost"
    LOWER_LEVEL = "lower level"
    UPPER_LEVEL = "upper level"
    LARGEST = "largest contribution"
    STATUS = "status"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """How a response is perturbed by the cell-key method."""

    method: str = "N"
    """N none, T the largest contributions, M mean, D difference, V value."""
    top: int = 1
    include_zeros: bool = False
    parity: bool = False
    separation: bool = False
    scaling: str | None = None
    """F a flex function, N a constant factor."""
    parameters: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable of a `.rda` file."""

    name: str
    role: Role = Role.OTHER
    start: int | None = None
    """First column in a file of fixed format, from 1."""
    width: int | None = None
    missing: tuple[str, ...] = ()
    decimals: int = 0
    total: str = TOTAL
    hierarchical: bool = False
    hierarchy_file: str | None = None
    indent: str = "."
    levels: tuple[int, ...] = ()
    code_list: str | None = None
    distance: tuple[int, ...] = ()
    truncable: bool = False
    request: tuple[str, ...] = ()
    cell_key: CellKey | None = None
    perturbation: Mapping[str, str] = field(default_factory=dict)
    """Perturbation tables of the cell-key method: for `frequency`, `continuous`, `separate`."""
    line: int = field(default=0, compare=False)

    @property
    def is_dimension(self) -> bool:
        """Whether its codes span a table."""
        return self.role in {Role.DIMENSION, Role.DIMENSION_AND_RESPONSE}

    @property
    def is_response(self) -> bool:
        """Whether its values can be added up in cells."""
        return self.role in {Role.RESPONSE, Role.DIMENSION_AND_RESPONSE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a `.rda` file says."""

    variables: tuple[Variable, ...]
    kind: Kind = "micro"
    separator: str | None = None
    """None: fixed format."""
    safe: str = "S"
    unsafe: str = "U"
    protect: str = "P"
    path: Path = field(default=Path("metadata.rda"), compare=False)

    def variable(self, name: str) -> Variable:
        """A variable by its name, in upper or lower case."""
        for variable in self.variables:
            if variable.name.lower() == name.lower():
                return variable
        names = [variable.name for variable in self.variables]
        raise InvalidFile(
            f"{self.path.name} has no variable {name!r}.",
            hint=f"{did_you_mean(name, names) or 'it has ' + ', '.join(map(repr, names)) + '.'}",
        )

    def having(self, *roles: Role) -> tuple[Variable, ...]:
        """The variables of some roles, in the order of the file."""
        return tuple(variable for variable in self.variables if variable.role in roles)

    @property
    def dimensions(self) -> tuple[Variable, ...]:
        """The variables that can span a table."""
        return self.having(Role.DIMENSION, Role.DIMENSION_AND_RESPONSE)

    @property
    def responses(self) -> tuple[Variable, ...]:
        """The variables that can be added up in cells."""
        return self.having(Role.RESPONSE, Role.DIMENSION_AND_RESPONSE)

    @property
    def named(self) -> tuple[tuple[str, int], ...]:
        """The files that it names, each with its line."""
        found = [
            (name, variable.line)
            for variable in self.variables
            for name in (variable.hierarchy_file, variable.code_list, *variable.perturbation.values())
            if name is not None
        ]
        return tuple(found)

    def file(self, name: str, line: int = 0) -> Path:
        """A file that the metadata names, where it is or of the same name beside the metadata."""
        return find_beside(name, self.path, line)


def find_beside(name: str, path: Path, line: int = 0) -> Path:
    """The file `name` as seen from the file `path` that names it; any case, and paths of other machines."""
    where = f" ({path.name}, line {line})" if line else f" (named in {path.name})"
    last = last_part(name)
    if not last or "\x00" in name:
        raise InvalidFile(f"{name!r} is no file name{where}.", hint="put the name in double quotes.")
    try:
        for candidate in (path.parent / name, path.parent / name.replace("\\", "/"), path.parent / last):
            if candidate.is_file():
                return candidate
        beside = sorted(entry for entry in path.parent.iterdir() if entry.is_file())
    except OSError as error:
        raise InvalidFile(
            f"{name!r} cannot be looked up{where}: {error.strerror}.", hint="put the name in double quotes."
        ) from error
    for candidate in beside:
        if candidate.name.lower() == last.lower():
            return candidate
    hint = str(did_you_mean(last, [entry.name for entry in beside])) or f"put {last!r} into the folder of {path.name}."
    beside_it = "" if last == name else f", nor {last!r} beside it"
    raise InvalidFile(f"There is no file {name!r}{where}{beside_it}.", hint=hint)


# -- reading -----------------------------------------------------------------------------------------------------------

_TABLE_ROLES = {
    "FREQUENCY": Role.COUNT,
    "SHADOW": Role.SHADOW,
    "COST": Role.COST,
    "COSTVAR": Role.COST,
    "LOWERPL": Role.LOWER_LEVEL,
    "UPPERPL": Role.UPPER_LEVEL,
    "MAXSCORE": Role.LARGEST,
    "STATUS": Role.STATUS,
}
_MICRO_ROLES = {"WEIGHT": Role.WEIGHT, "HOLDING": Role.HOLDING, "RECORDKEY": Role.RECORD_KEY}
_TEXT_FIELDS = {
    "TOTCODE": "total",
    "HIERCODELIST": "hierarchy_file",
    "HIERLEADSTRING": "indent",
    "CODELIST": "code_list",
}
_PATHS = {"HIERCODELIST", "CODELIST", "PFILE", "PFILE_FREQ", "PFILE_CONT", "PFILE_SEP"}
_PERTURBATION = {"PFILE": "frequency", "PFILE_FREQ": "frequency", "PFILE_CONT": "continuous", "PFILE_SEP": "separate"}
_CELL_KEY_SWITCHES = {"INCLUDEZEROS": "include_zeros", "PARITY": "parity", "SEPARATION": "separation"}
_FILE_WIDE = {"SEPARATOR", "SAFE", "UNSAFE", "PROTECT", "SPSS"}
_ONLY_IN_TABLES = {*_TABLE_ROLES, "SAFE", "UNSAFE", "PROTECT"}
_ONLY_IN_MICRODATA = {*_MICRO_ROLES, "REQUEST", "CKM", "SCALING", "TRUNCABLE", *_PERTURBATION, *_CELL_KEY_SWITCHES}
KEYWORDS = sorted(
    _FILE_WIDE | _ONLY_IN_TABLES | _ONLY_IN_MICRODATA
    | {*_TEXT_FIELDS, "RECODEABLE", "RECODABLE", "HIERARCHICAL", "HIERLEVELS", "DISTANCE", "NUMERIC", "DECIMALS"}
)  # fmt: skip
_TOKEN = re.compile(r'"([^"]*)"|<([^<>"\s]*)>|([^\s"<]+)')


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file: the words before the first keyword, and the keywords with their words."""

    name: str
    number: int
    words: tuple[str, ...]
    keywords: tuple[tuple[str, tuple[str, ...]], ...]

    def error(self, what: str, hint: str) -> InvalidFile:
        return InvalidFile(f"{self.name}, line {self.number}: {what}.", hint=hint)


def read_metadata(path: str | Path, *, kind: Kind | None = None) -> Metadata:
    """Read a `.rda` file of microdata or of a table; without `kind` the keywords in it tell which."""
    path = Path(path)
    text = read_text(path).replace("\r\r\n", "\n")
    lines = [_split(raw, path.name, i) for i, raw in enumerate(text.splitlines(), start=1) if raw.strip(" \t\x1a")]
    if not lines:
        raise InvalidFile(f"{path.name} is empty.", hint="is it the right file, and complete?")
    kind = kind or _guess_kind(lines)
    metadata = Metadata(variables=(), kind=kind, separator=";" if kind == "table" else None, path=path)
    variables: list[Variable] = []
    for line in lines:
        if line.words:
            variables.append(_declared(line, kind, metadata.separator is not None))
        for keyword, words in line.keywords:
            _refuse_misplaced(keyword, kind, line)
            if keyword in _FILE_WIDE:
                metadata = _file_wide(metadata, keyword, words, line, first=not variables)
            elif not variables:
                raise line.error(f"<{keyword}> stands before the first variable", "begin with the variable's name.")
            else:
                variables[-1] = _described(variables[-1], keyword, words, line)
    metadata = replace(metadata, variables=tuple(variables))
    _check(metadata)
    return metadata


def _split(raw: str, name: str, number: int) -> _Line:
    words: list[str] = []
    keywords: list[tuple[str, list[str]]] = []
    position = 0
    raw = raw.replace("\x1a", " ").rstrip()
    while position < len(raw):
        if raw[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(raw, position)
        if match is None:
            raise InvalidFile(
                f"{name}, line {number}: cannot read {raw.strip()!r}.", hint="are all quotes and brackets closed?"
            )
        quoted, keyword, word = match.groups()
        position = match.end()
        if keyword is not None:
            keywords.append((keyword.upper(), []))
            rest = re.match(r'\s*([^"<]*?)\s*(?=<|$)', raw[position:])
            if keyword.upper() in _PATHS and rest is not None and rest[1]:  # an unquoted path may hold spaces
                keywords[-1][1].append(rest[1])
                position += rest.end()
        else:
            (keywords[-1][1] if keywords else words).append(quoted if quoted is not None else word)
    return _Line(name, number, tuple(words), tuple((keyword, tuple(found)) for keyword, found in keywords))


def _guess_kind(lines: list[_Line]) -> Kind:
    used = {keyword for line in lines for keyword, _ in line.keywords}
    if used & _ONLY_IN_TABLES:
        return "table"
    if used & _ONLY_IN_MICRODATA or "SEPARATOR" not in used:
        return "micro"
    numbered = [line.words[1].isdigit() for line in lines if len(line.words) > 1]
    return "micro" if numbered and all(numbered) else "table"


def _declared(line: _Line, kind: Kind, free: bool) -> Variable:
    name, *rest = line.words
    if not name.strip():
        raise line.error("the name of the variable is empty", "give it a name.")
    if kind == "table":
        return Variable(name=name, missing=tuple(rest), line=line.number)
    expected = "name width [missing codes]" if free else "name start width [missing codes]"
    places = 1 if free else 2
    numbers = [_whole(word) for word in rest[:places]]
    if len(numbers) < places or any(number is None or number < 1 for number in numbers):
        raise line.error(
            f"variable {name!r} should be declared as '{expected}'",
            "is it the metadata of microdata, and is <SEPARATOR> missing at the top?",
        )
    start, width = (None, numbers[0]) if free else numbers
    return Variable(name=name, start=start, width=width, missing=tuple(rest[places:]), line=line.number)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _refuse_misplaced(keyword: str, kind: Kind, line: _Line) -> None:
    if keyword not in KEYWORDS:
        hint = str(did_you_mean(keyword, KEYWORDS)) or f"keywords are {', '.join(KEYWORDS)}."
        raise line.error(f"there is no keyword <{keyword}>", hint)
    misplaced = _ONLY_IN_MICRODATA if kind == "table" else _ONLY_IN_TABLES
    if keyword in misplaced:
        this, other = ("a table", "microdata") if kind == "table" else ("microdata", "a table")
        raise line.error(f"<{keyword}> belongs to the metadata of {other}, this is that of {this}", "remove it.")


def _file_wide(metadata: Metadata, keyword: str, words: tuple[str, ...], line: _Line, *, first: bool) -> Metadata:
    if keyword == "SPSS":
        raise line.error("SPSS system files are not read", "export the data as text and describe that.")
    if not first and keyword == "SEPARATOR":
        raise line.error("<SEPARATOR> stands after the first variable", "move it to the first line.")
    word = _one(words, keyword, line)
    if keyword == "SEPARATOR":
        word = "\t" if word.lower() in {"\\t", "tab"} else word
        if len(word) != 1 or word in '"\n\r':
            raise line.error(f"the separator {word!r} is not one character", 'write <SEPARATOR> ";"')
        return replace(metadata, separator=word)
    changes: dict[str, Any] = {keyword.lower(): word}
    return replace(metadata, **changes)


def _described(variable: Variable, keyword: str, words: tuple[str, ...], line: _Line) -> Variable:
    """The variable with what one keyword says of it."""
    if keyword in _TEXT_FIELDS:
        changes: dict[str, Any] = {_TEXT_FIELDS[keyword]: _one(words, keyword, line)}
    elif keyword in {"RECODEABLE", "RECODABLE", "NUMERIC"}:
        changes = {"role": _combined(variable.role, Role.RESPONSE if keyword == "NUMERIC" else Role.DIMENSION)}
    elif keyword in _TABLE_ROLES or keyword in _MICRO_ROLES:
        changes = {"role": {**_TABLE_ROLES, **_MICRO_ROLES}[keyword]}
    elif keyword == "REQUEST":
        changes = {"role": Role.REQUEST, "request": words}
    elif keyword == "HIERARCHICAL":
        changes = {"hierarchical": True}
    elif keyword == "TRUNCABLE":
        changes = {"truncable": True}
    elif keyword == "HIERLEVELS":
        changes = {"hierarchical": True, "levels": _numbers(words, keyword, line)}
    elif keyword == "DISTANCE":
        changes = {"distance": _numbers(words, keyword, line)}
    elif keyword == "DECIMALS":
        (decimals,) = _numbers((_one(words, keyword, line),), keyword, line)
        if decimals > 15:
            raise line.error(f"{decimals} decimals are more than numbers have", "15 are the most.")
        changes = {"decimals": decimals}
    elif keyword in _PERTURBATION:
        file = _one(words, keyword, line)
        changes = {"perturbation": {**variable.perturbation, _PERTURBATION[keyword]: file}}
    else:
        changes = {"cell_key": _cell_key(variable.cell_key or CellKey(), keyword, words, line)}
    return replace(variable, **changes)


def _combined(old: Role, new: Role) -> Role:
    """A variable can be a dimension and a response; a weight that is numeric stays a weight."""
    if {old, new} == {Role.DIMENSION, Role.RESPONSE} or old is Role.DIMENSION_AND_RESPONSE:
        return Role.DIMENSION_AND_RESPONSE
    return new if old in {Role.OTHER, new} else old


def _cell_key(key: CellKey, keyword: str, words: tuple[str, ...], line: _Line) -> CellKey:
    text = "".join(words).upper()
    if keyword in _CELL_KEY_SWITCHES:
        if text not in {"Y", "N"}:
            raise line.error(f"<{keyword}> is followed by {text!r}", "write Y or N.")
        changes: dict[str, Any] = {_CELL_KEY_SWITCHES[keyword]: text == "Y"}
        return replace(key, **changes)
    match = re.fullmatch(r"([A-Z])(?:\(([^()]*)\))?", text)
    numbers = [] if match is None or match[2] is None else match[2].split(",")
    if match is None or not all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(E[+-]?\d+)?", number) for number in numbers):
        example = "T(3)" if keyword == "CKM" else "F(0.03,0.30,1000,3)"
        raise line.error(f"cannot read {text!r} after <{keyword}>", f"write <{keyword}> {example}")
    if keyword == "SCALING":
        if match[1] not in "FN":
            raise line.error(f"<SCALING> {match[1]} is unknown", "F is a flex function, N a constant factor.")
        return replace(key, scaling=match[1], parameters=tuple(map(float, numbers)))
    if match[1] not in "NTMDV" or (match[1] == "T" and not (len(numbers) == 1 and numbers[0].isdigit())):
        raise line.error(f"<CKM> {text} is unknown", "N none, T(k) the k largest, M, D or V.")
    return replace(key, method=match[1], top=int(numbers[0]) if match[1] == "T" else 1)


def _one(words: tuple[str, ...], keyword: str, line: _Line) -> str:
    if len(words) != 1 or not words[0]:
        hint = "put text with spaces in double quotes." if len(words) > 1 else f'write <{keyword}> "…"'
        raise line.error(f"<{keyword}> should be followed by one entry, not {len(words)}", hint)
    return words[0]


def _numbers(words: tuple[str, ...], keyword: str, line: _Line) -> tuple[int, ...]:
    numbers = [_whole(word) for word in words]
    if not numbers or None in numbers:
        raise line.error(f"<{keyword}> should be followed by whole numbers, not {' '.join(words)!r}", "correct them.")
    return tuple(number for number in numbers if number is not None)


def _check(metadata: Metadata) -> None:
    """Contradictions that only the whole file shows."""
    name = metadata.path.name
    if not metadata.variables:
        raise InvalidFile(f"{name} declares no variable.", hint="a variable begins a line with its name.")
    seen: dict[str, int] = {}
    for variable in metadata.variables:
        where = f"{name}, line {variable.line}"
        if variable.name.lower() in seen:
            first = seen[variable.name.lower()]
            raise InvalidFile(
                f"{where}: variable {variable.name!r} was declared on line {first} already.", hint="rename one."
            )
        seen[variable.name.lower()] = variable.line
        if variable.hierarchical and variable.hierarchy_file is None and not variable.levels:
            raise InvalidFile(
                f"{where}: {variable.name!r} is hierarchical, but its hierarchy is not given.",
                hint="add <HIERCODELIST> with the .hrc file, or <HIERLEVELS> with the digits of each level.",
            )
        if variable.levels and variable.width and sum(variable.levels) != variable.width:
            raise InvalidFile(
                f"{where}: the levels of {variable.name!r} have {sum(variable.levels)} digits, "
                f"but it is {variable.width} wide.",
                hint="correct <HIERLEVELS> or the width.",
            )
    for role in (
        Role.WEIGHT,
        Role.HOLDING,
        Role.RECORD_KEY,
        Role.STATUS,
        Role.COUNT,
        Role.LOWER_LEVEL,
        Role.UPPER_LEVEL,
    ):
        found = metadata.having(role)
        if len(found) > 1:
            raise InvalidFile(
                f"{name}, line {found[1].line}: {found[1].name!r} is a second {role.value}; "
                f"{found[0].name!r} is one already.",
                hint="there can be only one.",
            )


# -- writing -----------------------------------------------------------------------------------------------------------


def write_metadata(metadata: Metadata, path: str | Path) -> None:
    """Write a `.rda` file that reads back as the same metadata."""
    write_text(path, metadata_text(metadata))


def metadata_text(metadata: Metadata) -> str:
    """The text of a `.rda` file that reads back as the same metadata."""
    lines = [] if metadata.separator is None else [f'<SEPARATOR> "{metadata.separator}"']
    if metadata.kind == "table":
        letters = {"SAFE": metadata.safe, "UNSAFE": metadata.unsafe, "PROTECT": metadata.protect}
        lines += [f'<{keyword}> "{letter}"' for keyword, letter in letters.items()]
    for variable in metadata.variables:
        lines += _variable_lines(variable, metadata)
    return "\n".join(lines) + "\n"


def _variable_lines(variable: Variable, metadata: Metadata) -> Iterable[str]:
    position: list[str] = []
    if metadata.kind == "micro":
        position = [str(n) for n in (variable.start, variable.width) if n is not None]
    yield " ".join([_quoted(variable.name, always=False), *position, *map(_quoted, variable.missing)])
    for keyword in _ROLE_KEYWORDS.get(variable.role, ()):
        yield f"  {keyword}" + (" " + " ".join(map(_quoted, variable.request)) if keyword == "<REQUEST>" else "")
    if variable.is_dimension:
        yield f"  <TOTCODE> {_quoted(variable.total)}"
    if variable.distance:
        yield f"  <DISTANCE> {' '.join(map(str, variable.distance))}"
    if variable.code_list is not None:
        yield f"  <CODELIST> {_quoted(variable.code_list)}"
    if variable.truncable:
        yield "  <TRUNCABLE>"
    if variable.hierarchical:
        yield "  <HIERARCHICAL>"
    if variable.levels:
        yield f"  <HIERLEVELS> {' '.join(map(str, variable.levels))}"
    if variable.hierarchy_file is not None:
        yield f"  <HIERCODELIST> {_quoted(variable.hierarchy_file)}"
    if variable.hierarchy_file is not None or variable.indent != ".":
        yield f"  <HIERLEADSTRING> {_quoted(variable.indent)}"
    if variable.decimals:
        yield f"  <DECIMALS> {variable.decimals}"
    if variable.cell_key is not None:
        yield from _cell_key_lines(variable.cell_key)
    for purpose, file in variable.perturbation.items():
        keyword = {"frequency": "PFILE", "continuous": "PFILE_CONT", "separate": "PFILE_SEP"}[purpose]
        yield f"  <{keyword}> {_quoted(file)}"


_ROLE_KEYWORDS: dict[Role, tuple[str, ...]] = {
    Role.DIMENSION: ("<RECODEABLE>",),
    Role.RESPONSE: ("<NUMERIC>",),
    Role.DIMENSION_AND_RESPONSE: ("<RECODEABLE>", "<NUMERIC>"),
    Role.WEIGHT: ("<WEIGHT>",),
    Role.HOLDING: ("<HOLDING>",),
    Role.REQUEST: ("<REQUEST>",),
    Role.RECORD_KEY: ("<RECORDKEY>",),
    Role.COUNT: ("<FREQUENCY>",),
    Role.SHADOW: ("<NUMERIC> <SHADOW>",),
    Role.COST: ("<NUMERIC> <COST>",),
    Role.LOWER_LEVEL: ("<NUMERIC> <LOWERPL>",),
    Role.UPPER_LEVEL: ("<NUMERIC> <UPPERPL>",),
    Role.LARGEST: ("<MAXSCORE>",),
    Role.STATUS: ("<STATUS>",),
}


def _cell_key_lines(key: CellKey) -> Iterable[str]:
    yield f"  <CKM> {key.method}" + (f"({key.top})" if key.method == "T" else "")
    for keyword, name in _CELL_KEY_SWITCHES.items():
        if getattr(key, name):
            yield f"  <{keyword}> Y"
    if key.scaling is not None:
        yield f"  <SCALING> {key.scaling}({','.join(map(repr, key.parameters))})"


def _quoted(text: str, *, always: bool = True) -> str:
    if '"' in text or "\n" in text or "\r" in text:
        raise InvalidFile(f"{text!r} cannot be written to a .rda file.", hint="remove the double quotes from it.")
    plain = not always and bool(re.fullmatch(r"[^\s<]+", text))
    return text if plain else f'"{text}"'
