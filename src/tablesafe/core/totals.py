"""Which code of a dimension is its total, where nobody said so: by its name, and by what it adds up to.

A total that goes unrecognised is the worst mistake a reader of tables can make: everybody who sees the release
subtracts with it, and the audit does not. So a total is never guessed by its name alone, and what equals the sum of all
other codes is never taken for one of them in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tablesafe.core.errors import InvalidTable, Setting
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.language import text as sentence
from tablesafe.files.read import Source

WORDS = frozenset(
    {
        "total", "totals", "totale", "totaal", "totalt", "totales", "tot", "ensemble", "insgesamt", "gesamt",
        "zusammen", "summe", "sum", "somme", "soma", "suma", "all", "alle", "tous", "toutes", "todos", "tutti",
        "yhteensä", "razem", "ogółem", "celkem", "spolu", "összesen", "toplam", "všichni", "kopā", "viso",
        "kokku", "skupaj", "ukupno", "общо", "всего", "итого", "σύνολο", "合計", "总计", "總計", "합계", "σ", "∑",
        "grand-total", "i-alt", "ialt", "both-sexes", "overall",
    }
)  # fmt: skip
"""What offices call a total, in lower case, with hyphens for spaces."""
SHORT_WORDS = frozenset({"t", "tt", "0", "00", "*", "-"})
"""What they call it too, but what is as often the code of a part: only what it adds up to can tell."""
CERTAIN = 20.0
"""How unlikely, as a power of two, a sum must be before it is no coincidence and the code's name no longer matters."""
ROUNDING = 1e-9
"""Relative noise of sums in floating point, as files hold them."""


def looks_like_total(code: str) -> bool:
    """Whether a code is called as totals are."""
    return _plain(code) in WORDS or code.strip().upper() == "_T"


def _plain(code: str) -> str:
    return "-".join(code.strip().strip("_").casefold().split())


@dataclass(frozen=True, slots=True)
class Shown:
    """One table that shows a dimension: its rows, its other dimensions, and its values."""

    source: Source
    others: tuple[str, ...]
    values: tuple[str, ...]


def flat_dimension(name: str, shown: Sequence[Shown], *, total: str, missing: str) -> Hierarchy:
    """The codes of a dimension under their total; under none where `missing` is "none" and no total is there.

    `total` names the total; an empty one says that there is none, as there is none of several years. Otherwise a code
    that is called like a total, and is one in every row, is taken for it.
    """
    codes = list(dict.fromkeys(code for table in shown for code in _codes(table.source, name, total)))
    top = _total_of(name, codes, shown, total, missing)
    parts = [code for code in codes if code != top]
    return Hierarchy.flat(parts or codes, total=top if parts else None, name=f"dimension {name!r}")


def _codes(source: Source, name: str, total: str) -> list[str]:
    source.require(name)
    text = source.text(name)
    codes = text.drop_nulls().unique(maintain_order=True).to_list()
    if "" in codes:
        hint = f"the total is written {total!r}." if total else "each row needs one."
        raise InvalidTable(
            sentence(
                "The code of {name!r} is missing at {where}.",
                name=name,
                where=source.where(int((text == "").arg_max() or 0)),
            ),
            hint=sentence("fill it in; {hint}", hint=hint),
        )
    return codes


def _total_of(name: str, codes: Sequence[str], shown: Sequence[Shown], total: str, missing: str) -> str | None:
    """The code of the total, or None where nothing adds up across the dimension."""
    if total in codes or not total:
        return total or None
    if len(codes) <= 1:
        return total if missing == "compute" else None
    named = [code for code in codes if looks_like_total(code)]
    sums, unlikely = sums_of_the_rest(name, shown)
    several = len(codes) > 2  # of two codes either may be the sum of the other by coincidence
    certain = [code for code in sums if code in named or (several and _plain(code) in SHORT_WORDS)]
    if len(certain) == 1:
        return certain[0]
    if named:
        raise _not_total(name, named[0], total)
    if len(sums) == 1 and len(codes) > 2 and unlikely >= CERTAIN:
        raise InvalidTable(
            sentence(
                "{code!r} of {name!r} is the sum of all other codes in every row, so it is their "
                "total, though it is not called {total!r}.",
                code=sums[0],
                name=name,
                total=total,
            ),
            hint=sentence(
                "say {option}; if that is a coincidence, and nothing adds up across {name!r}, say so "
                "with an empty total for it.",
                option=Setting("total", sums[0]),
                name=name,
            ),
        )
    if missing == "error":
        raise _no_total(name, codes, total, sums)
    return total if missing == "compute" else None


def sums_of_the_rest(name: str, shown: Sequence[Shown]) -> tuple[list[str], float]:
    """The codes that are, everywhere, the sum of all others of their dimension; and how unlikely that is, in bits.

    Everywhere is in every combination of the other dimensions in which anything is not zero, for every value. That a
    number of n is a given sum by chance happens about once in n.
    """
    found: list[str] | None = None
    unlikely = 0.0
    for table in shown:
        for value in table.values:
            here, bits = _sums_in(table, name, value)
            if here is not None:
                found = here if found is None else [code for code in found if code in here]
                unlikely += bits
    return found or [], unlikely


def _sums_in(table: Shown, name: str, value: str) -> tuple[list[str] | None, float]:
    others = {f"d{i}": table.source.text(other) for i, other in enumerate(table.others)}
    frame = pl.DataFrame({"code": table.source.text(name), "amount": table.source.numbers(value), **others})
    group: list[str | pl.Expr] = [*others] or [pl.lit(0)]
    judged = frame.with_columns(
        pl.col("amount").abs().sum().over(group).alias("size"), pl.col("amount").sum().over(group).alias("whole")
    ).filter(pl.col("size") > 0)
    if not judged.height:
        return None, 0.0
    sums = judged.select(list(others)).unique().height if others else 1
    equal = judged.filter((2 * pl.col("amount") - pl.col("whole")).abs() <= ROUNDING * pl.col("size"))
    tally = equal.group_by("code", maintain_order=True).agg(pl.len(), (pl.col("amount").abs() + 1).log(2).sum())
    tally = tally.filter(pl.col("len") == sums)
    return tally["code"].to_list(), float(tally["amount"].max() or 0.0)  # type: ignore[arg-type]


def _not_total(name: str, code: str, total: str) -> InvalidTable:
    return InvalidTable(
        sentence(
            "No code of {name!r} is called {total!r}. {code!r} looks like its total, but is not "
            "the sum of all other codes.",
            name=name,
            total=total,
            code=code,
        ),
        hint=sentence(
            "say {option}, and give {name!r} its hierarchy if it has codes of several levels. If "
            "nothing adds up across {name!r}, say so with an empty total for it.",
            option=Setting("total", code),
            name=name,
        ),
        about=("dimension", name, "total"),
    )


def _no_total(name: str, codes: Sequence[str], total: str, sums: Sequence[str]) -> InvalidTable:
    some = ", ".join(map(repr, codes[:6])) + (" …" if len(codes) > 6 else "")
    told = f"; {sums[0]!r} is the sum of the others" if len(sums) == 1 and len(codes) > 2 else ""
    return InvalidTable(
        sentence(
            "Dimension {name!r} has no total: none of its codes ({some}) is called "
            "{total!r}{told}. Without sums nothing would be proved about what a reader can "
            "subtract.",
            name=name,
            some=some,
            total=total,
            told=told,
        ),
        hint=sentence(
            "name the total ({option}), let it be added up ({option2}), give {name!r} a "
            "hierarchy, or, if no sum of these cells is published anywhere, say so ({option3}).",
            option=Setting("total", sums[0] if told else codes[-1]),
            option2=Setting("missing_totals", "compute"),
            name=name,
            option3=Setting("missing_totals", "none"),
        ),
        about=("dimension", name, "total"),
    )
