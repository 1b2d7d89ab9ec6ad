"""Statuses that other programs give to cells: which vocabulary a column is written in, and what its entries mean.

| scheme       | published             | sensitive           | withheld                 | frozen    | empty |
|--------------|-----------------------|---------------------|--------------------------|-----------|-------|
| `tauargus`   | 1, 2, 13              | 3 to 9              | 11, 12                   | 10        | 14    |
|              | S                     | U                   | M, ML, X                 | P, Z      | E     |
| `sbs`        | V                     | A, B, C, F          | D                        |           |       |
| `sdmx-conf`  | F, E                  | A, C, G, M, O, T, X | D, N, S                  |           |       |
| `obs-status` | A, B, D, E, F, G, I,  |                     | H, L, O, Q               |           | M     |
|              | N, P, R, S, U, V      |                     |                          |           |       |
| `words`      | published, safe,      | sensitive, unsafe,  | complementary, given,    | frozen,   | empty |
|              | open, changed         | primary             | secondary, suppressed,   | protected |       |
|              |                       |                     | withheld, by design,     |           |       |
|              |                       |                     | confidential             |           |       |
| `0/1`        | 0, false, no, n       |                     | 1, true, yes, y          |           |       |

The scheme `0/1` says only whether a cell is withheld, and in a column that is called `sensitive`, `unsafe` or `primary`
that it is sensitive. A column whose name says the opposite (`published`, `open`) is refused, for its 1 would be read as
withheld. An empty entry is a published cell.

The same letters mean different things: S is *safe* in τ-ARGUS, *secondary* in SDMX's CONF_STATUS and *strike* in its
OBS_STATUS; F is *free* in CONF_STATUS and *sensitive by the p% rule* in SBS. So a column has one vocabulary. Either it
is named (`scheme=`, `--scheme`, `scheme` in a job), or the column's own name is that of SDMX (`CONF_STATUS`,
`OBS_STATUS`), or every vocabulary that knows all entries makes the same of them. Otherwise the column is refused, and
the message shows its entries and what each vocabulary makes of them.

The numbers are those of τ-ARGUS: 1 safe, 2 safe by hand, 3 unsafe by a rule on shares, 4 on request, 5 too few
contributors, 6 zero, 7 and 8 singletons, 9 by hand, 10 protected, 11 secondary, 12 secondary by hand, 13 empty so far,
14 empty. The letters are those of its tables (S, U, P, M, E), of a-priori files (also ML), of JJ files (Z) and of
sdcTable (X). SBS are Eurostat's flags: A too few contributors, B one contributor dominates, C two dominate, D
secondary, F the p% rule, V value may be published.

CONF_STATUS: F free, E embargo, A small counts, O dominated by one unit, T by two, G by one or two, M another measure of
concentration, C confidential, X military secrecy, D secondary set by the sender, S by the receiver, N internal use. A
value under embargo is published when the embargo ends: it hides nothing, and counts as published. OBS_STATUS says of
what kind a value is: Q missing because suppressed, H, L, O missing, M cannot exist. Its A, a normal value, is no
permission to publish, and what is included in another category (K, W) has no place in a table that adds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.errors import InvalidFile, InvalidOption, Setting, joined
from tablesafe.files.read import Source, did_you_mean

if TYPE_CHECKING:
    from tablesafe.core.release import Status

Scheme = Literal["tauargus", "sbs", "sdmx-conf", "obs-status", "words", "0/1"]


class Meaning(IntEnum):
    """What a status of another program asks for or reports."""

    PUBLISHED = 0
    SENSITIVE = 1
    SUPPRESSED = 2
    FROZEN = 3
    EMPTY = 4

    @property
    def status(self) -> Status:
        """What a release calls it."""
        from tablesafe.core.release import Status

        return Status[_STATUS_OF[self]]

    @property
    def hidden(self) -> bool:
        """Whether a pattern of such a cell shows no value."""
        return self in {Meaning.SENSITIVE, Meaning.SUPPRESSED}


_STATUS_OF = {
    Meaning.PUBLISHED: "PUBLISHED",
    Meaning.SENSITIVE: "SENSITIVE",
    Meaning.SUPPRESSED: "COMPLEMENTARY",
    Meaning.FROZEN: "PUBLISHED",
    Meaning.EMPTY: "PUBLISHED",
}
_WORD_OF = {
    Meaning.PUBLISHED: "published",
    Meaning.SENSITIVE: "withheld, sensitive",
    Meaning.SUPPRESSED: "withheld",
    Meaning.FROZEN: "published, frozen",
    Meaning.EMPTY: "empty",
}


def _meaning(**letters: str) -> dict[str, Meaning]:
    """Entries by what they mean, as words separated by blanks."""
    return {word: Meaning[name.upper()] for name, words in letters.items() for word in words.split()}


NUMBERS = _meaning(published="1 2 13", sensitive="3 4 5 6 7 8 9", frozen="10", suppressed="11 12", empty="14")
"""The statuses of τ-ARGUS as it writes them."""
LETTERS = _meaning(published="s", sensitive="u", frozen="p z", suppressed="m ml x", empty="e")
"""The statuses of τ-ARGUS as its tables and a-priori files have them, with those of JJ files and of sdcTable."""
SBS = _meaning(published="v", sensitive="a b c f", suppressed="d")
SDMX_CONF = _meaning(published="f e", sensitive="a c g m o t x", suppressed="d n s")
"""CL_CONF_STATUS of SDMX, version 1.3."""
OBS_STATUS = _meaning(published="a b d e f g i n p r s u v", suppressed="h l o q", empty="m")
"""CL_OBS_STATUS of SDMX, version 2.2, without what has no place in a table that adds up."""
WORDS = _meaning(
    published="published safe open changed",
    sensitive="sensitive unsafe primary",
    frozen="frozen protected",
    suppressed="complementary secondary given suppressed confidential withheld",
    empty="empty",
) | {"by design": Meaning.SUPPRESSED}
FLAGS = _meaning(suppressed="1 true yes y", published="0 false no n")

VOCABULARIES: dict[Scheme, tuple[Mapping[str, Meaning], ...]] = {
    "tauargus": (NUMBERS, LETTERS),
    "sbs": (SBS,),
    "sdmx-conf": (SDMX_CONF,),
    "obs-status": (OBS_STATUS,),
    "words": (WORDS,),
    "0/1": (FLAGS,),
}
"""The spellings of each scheme; a column keeps to one of them."""
NAMED: dict[str, Scheme] = {"conf_status": "sdmx-conf", "obs_conf": "sdmx-conf", "obs_status": "obs-status"}
"""Columns whose name is that of a vocabulary."""
NO_DECISION: tuple[Scheme, ...] = ("obs-status", "0/1")
"""Schemes that only describe what is shown: a cell that they call published was not found to be safe by anyone."""
PRIMARY_COLUMNS = ("sensitive", "unsafe", "primary")
"""Columns named after what is sensitive: there yes says more than that a cell is withheld."""
FLAG_COLUMNS = (*PRIMARY_COLUMNS, "suppressed", "confidential", "suppress", "withheld", "hidden")
"""Columns named after what is withheld: there 1 alone is not the `safe` of τ-ARGUS."""
PUBLISHING = (
    "published", "publish", "publishable", "public", "open", "shown", "show", "visible", "released", "release", "safe",
    "free", "disclosed", "displayed", "available",
)  # fmt: skip
"""Columns named after what is *not* withheld."""
SHOWN = 12
"""Most entries in a message."""


def check_scheme(scheme: str | None) -> None:
    """Refuse a scheme that does not exist."""
    if scheme is not None and scheme not in VOCABULARIES:
        hint = did_you_mean(scheme, list(VOCABULARIES)) or f"schemes are {', '.join(get_args(Scheme))}."
        raise InvalidOption(f"There is no scheme {scheme!r} of statuses.", hint=hint)


def read_statuses(
    source: Source,
    column: str,
    *,
    scheme: Scheme | None = None,
    empty: Meaning = Meaning.PUBLISHED,
    pattern: bool = False,
) -> NDArray[np.uint8]:
    """The `Meaning` of each entry of a column; an entry that means nothing is an error that names its line.

    Without a scheme the column must tell it. `empty` is what an empty entry means. For a `pattern` vocabularies that
    agree on what is withheld agree.
    """
    text = _entries(source, column)
    chosen, known = _vocabulary(source, column, text, scheme, pattern=pattern)
    if chosen == "0/1" and _plain_name(column) in PRIMARY_COLUMNS:
        known = {word: Meaning.SENSITIVE if means.hidden else means for word, means in known.items()}
    meaning = {"": int(empty), **{word: int(means) for word, means in known.items()}}
    return text.replace_strict(list(meaning), list(meaning.values()), return_dtype=pl.UInt8).to_numpy()


def recognised_scheme(source: Source, column: str) -> Scheme:
    """The vocabulary of a column, if its name or its entries leave no doubt."""
    return _vocabulary(source, column, _entries(source, column), None, pattern=False)[0]


def schemes_of(source: Source, column: str) -> tuple[Scheme, ...]:
    """The vocabularies that know every entry of a column; none for a column without entries."""
    words = [word for word in _entries(source, column).unique().to_list() if word]
    return tuple(_fitting(words, list(VOCABULARIES))) if words else ()


def _plain_name(column: str) -> str:
    return column.strip().lower().removeprefix("is_")


def _entries(source: Source, column: str) -> pl.Series:
    return source.text(column).str.to_lowercase().str.replace(r"^(\d+)\.0+$", "$1").fill_null("")


def _vocabulary(
    source: Source, column: str, text: pl.Series, scheme: Scheme | None, *, pattern: bool
) -> tuple[Scheme, Mapping[str, Meaning]]:
    """The scheme of a column and its spelling there; every entry is in it."""
    check_scheme(scheme)
    words = [word for word in text.unique(maintain_order=True).to_list() if word]
    name = column.strip().lower()
    if scheme is None:
        scheme = NAMED.get(name)
    if scheme is None and name in FLAG_COLUMNS and words and set(words) <= {"0", "1"}:
        scheme = "0/1"
    fitting = _fitting(words, [scheme] if scheme is not None else list(VOCABULARIES))
    if len(fitting) > 1 and "s" in words and "a" not in words and (text != "").all():
        fitting.pop("obs-status", None)  # strikes, and not one normal value
    if not fitting:
        raise _unknown(source, column, text, words, scheme)
    makes = {tuple(k[word].hidden if pattern else k[word] for word in words) for k in fitting.values()}
    if len(makes) > 1:
        raise _ambiguous(source, column, text, words, fitting)
    chosen, known = next(iter(fitting.items()))
    if chosen == "0/1" and words and _plain_name(column) in PUBLISHING:
        raise InvalidFile(
            f"Column {column!r} of {source.name} says yes for what is published, but a status of 1 or yes is read as "
            f"withheld.",
            hint="turn it around and call it 'suppressed', or write words: published, suppressed.",
        )
    return chosen, known


def _fitting(words: list[str], schemes: list[Scheme]) -> dict[Scheme, Mapping[str, Meaning]]:
    """The schemes with a spelling that has all the words."""
    found: dict[Scheme, Mapping[str, Meaning]] = {}
    for scheme in schemes:
        for known in VOCABULARIES[scheme]:
            if set(words) <= known.keys():
                found.setdefault(scheme, known)
    return found


def _ambiguous(
    source: Source, column: str, text: pl.Series, words: list[str], fitting: Mapping[Scheme, Mapping[str, Meaning]]
) -> InvalidFile:
    """What to tell when vocabularies disagree about a column."""
    lines = [f"Column {column!r} of {source.name} can be read in more than one way:"]
    lines += [_line(source, column, text, word, fitting) for word in words[:SHOWN]]
    if len(words) > SHOWN:
        lines.append(f"  and {len(words) - SHOWN} more")
    either = joined(" or ", [(Setting("scheme", scheme),) for scheme in fitting])
    return InvalidFile(
        "\n".join(lines),
        hint=joined(
            "", ["say which vocabulary it is: ", either, " (--scheme on the command line, scheme = in a job file)."]
        ),
        about=("column", column),
    )


def _line(
    source: Source, column: str, text: pl.Series, word: str, fitting: Mapping[Scheme, Mapping[str, Meaning]]
) -> str:
    """One entry as it is written, how often it is there, and what each vocabulary makes of it."""
    here = text == word
    spelled = str(source.frame[column][int(here.arg_max() or 0)]).strip()[:20]
    times = int(here.sum())
    makes = "; ".join(
        f"{scheme} {_WORD_OF[known[word]] if word in known else 'not known'}" for scheme, known in fitting.items()
    )
    return f"  {spelled} ({times:,} {'cell' if times == 1 else 'cells'}): {makes}"


def _unknown(source: Source, column: str, text: pl.Series, words: list[str], scheme: Scheme | None) -> InvalidFile:
    """What to tell when no vocabulary has all entries: the first that the nearest one lacks."""
    spellings = [
        (name, known) for name, each in VOCABULARIES.items() for known in each if scheme is None or name == scheme
    ]
    nearest = min(spellings, key=lambda each: sum(word not in each[1] for word in words))[1]
    unknown = next(word for word in words if word not in nearest)
    row = int((text == unknown).arg_max() or 0)
    about = ("column", column)
    told = f"{source.where(row)} has the status {source.frame[column][row]!r}"
    close = did_you_mean(
        unknown, sorted({word for _, known in spellings for word in known}) if len(unknown) > 2 else []
    )
    if scheme is not None:
        return InvalidFile(f"{told}.", hint=close or f"statuses of {scheme} are {_spelled(scheme)}.", about=about)
    partly = {name: known for name, known in reversed(spellings) if any(word in known for word in words)}
    if close or not partly:
        hint = close or f"schemes are {', '.join(VOCABULARIES)}; see the page on formats."
        return InvalidFile(f"{told}.", hint=hint, about=about)
    lines = [f"{told}, and no vocabulary knows every status of column {column!r}:"]
    lines += [_line(source, column, text, word, dict(reversed(partly.items()))) for word in words[:SHOWN]]
    which = ("correct it, or say which vocabulary it is: ", Setting("scheme"), ".")
    return InvalidFile("\n".join(lines), hint=which, about=about)


def _spelled(scheme: Scheme) -> str:
    return "; ".join(
        ", ".join(word.upper() if len(word) < 3 else word for word in each) for each in VOCABULARIES[scheme]
    )
