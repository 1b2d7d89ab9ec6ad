"""Tasks: cells one by one. Find and sort them, tell all about one, ask what if it were published.

They run in the worker process of a session; all of it is for the office only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.language import language
from tablesafe.core.problem import Problem
from tablesafe.report.cells import KINDS, NUMBER, Kind, OfficeCells, interval
from tablesafe.report.layout import Layout
from tablesafe.web.child import Desk
from tablesafe.web.desk import result_of
from tablesafe.web.tasks.data import codes_of, why
from tablesafe.web.tasks.windows import MOST_LINES, View, kinds_of, shows_truth, whole_of

if TYPE_CHECKING:
    from tablesafe.audit.audit import Audit
    from tablesafe.audit.findings import Findings

MOST_NAMED = 12
"""Cells that protect another, or are protected, that are named."""
MOST_CHOSEN = 10_000
"""Cells that can be decided on at a time."""
KEPT_FOUND = 8
"""Searches for cells whose answers are kept."""
WHAT_IF_S = 20.0
"""Seconds for what if a cell were published."""
READY_S = 5.0
"""Seconds for what can be known before that is asked."""
COLUMNS = {
    "status": "Status", "value": "True value", "count": "Contributors", "why": "Sensitive by",
    "hide": "To be hidden from", "derives": "An attacker derives",
}  # fmt: skip
TRUTHS = {"value", "hide"}
"""Columns that give the true value away."""


def found(desk: Desk, view: View, span: Sequence[int]) -> dict[str, Any]:
    """Some lines of the cells that a search finds, as a grid draws them: `list` of a view has text, kind and order."""
    whole = whole_of(desk, view["of"])
    cells = _found(desk, view)
    heads = [key for key in COLUMNS if _there(whole, key) and (key not in TRUTHS or shows_truth(view))]
    first = min(max(int(span[0]), 0), max(len(cells) - 1, 0))
    part = cells[first : min(int(span[1]), first + MOST_LINES)]
    asked = view.get("list") or {}
    return {
        "first": first, "left": 0, "count": [len(cells), len(heads)], "corner": _corner(whole),
        "heads": [_head(key, asked) for key in heads], "order": "" if asked.get("sort") else _arrow(asked),
        "rows": [_row(whole, cell, heads) for cell in part.tolist()],
    }  # fmt: skip


def _corner(whole: Layout) -> str:
    """What the names of cells are made of."""
    return "Cell" if whole.table.names is not None else " · ".join(whole.table.dimensions)


def _there(whole: Layout, key: str) -> bool:
    view = whole.view
    if key == "count":
        return whole.table.count is not None
    return key != "derives" or (isinstance(view, OfficeCells) and view.findings is not None)


def _arrow(asked: Mapping[str, Any]) -> str:
    return " ▼" if asked.get("descending") else " ▲"


def _head(key: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    sorted_by = asked.get("sort") == key
    arrow = _arrow(asked) if sorted_by else ""
    return {"text": COLUMNS[key] + arrow, "arrow": arrow, "title": "", "fold": "", "key": key, "sort": key}


def _row(whole: Layout, cell: int, heads: Sequence[str]) -> dict[str, Any]:
    view, kind = whole.view, KINDS[whole.view.kind[cell]]
    assert isinstance(view, OfficeCells)
    name, title = codes_of(view.problem, cell), whole.describe(cell)
    signs = {"status": (kind.css, kind.sign)}
    cells = [(_told(view, cell, key), *signs.get(key, ("", "")), "", cell) for key in heads]
    return {"text": name, "title": title, "depth": 0, "fold": "", "key": cell, "cells": cells}


def _told(view: OfficeCells, cell: int, key: str) -> str:
    problem = view.problem
    levels, value, speech = problem.sensitivity, float(problem.table.value[cell]), view.language
    match key:
        case "status":
            return str(KINDS[view.kind[cell]].word)
        case "value":
            return view.truths(np.array([cell]))[0]
        case "count":
            return "" if problem.table.count is None else speech.number(f"{int(problem.table.count[cell]):,}")
        case "why":
            return why(problem, cell) if levels.mask[cell] else ""
        case "hide" if levels.mask[cell]:
            ends = value - float(levels.lower[cell]), value + float(levels.upper[cell])
            return interval(*ends, view.decimals, speech)
        case "derives":
            derived = _ends(view, cell)
            return "" if derived is None else interval(*derived, view.decimals, speech)
        case _:
            return ""


def _ends(view: OfficeCells, cell: int) -> tuple[float, float] | None:
    """What an attacker derives of a cell, where the audit looked."""
    at = int(view.place[cell])
    return None if at < 0 or view.findings is None else (float(view.findings.lower[at]), float(view.findings.upper[at]))


# -- finding -----------------------------------------------------------------------------------------------------------


def _found(desk: Desk, view: View) -> Integers:
    """The cells that a search finds, in its order; a few answers are kept."""
    asked = view.get("list") or {}
    key = repr((view["of"], asked))
    kept: dict[str, Integers] = desk.loaded.setdefault("found", {})
    if key not in kept:
        kept[key] = find(whole_of(desk, view["of"]), asked)
        while len(kept) > KEPT_FOUND:
            kept.pop(next(iter(kept)))
    return kept[key]


def find(whole: Layout, asked: Mapping[str, Any]) -> Integers:
    """The numbers of the cells that match a text and a kind, sorted; cells that are not part of the table are not."""
    view = whole.view
    mask = np.not_equal(view.kind, NUMBER[Kind.ABSENT]) & (np.arange(len(whole.table)) < whole.table.seen)
    if asked.get("kind"):
        mask &= np.isin(view.kind, [NUMBER[kind] for kind in kinds_of(str(asked["kind"]))])
    for word in str(asked.get("text") or "").casefold().split():
        mask &= _holds(whole, word)
    cells = np.flatnonzero(mask)
    if asked.get("sort"):
        by = _order(whole, cells, str(asked["sort"]))
        cells = cells[np.argsort(-by if asked.get("descending") else by, kind="stable")]
    elif asked.get("descending"):
        cells = cells[::-1]
    return cells.astype(np.int64)


def _holds(whole: Layout, word: str) -> Mask:
    """Which cells have a word in a code or in a label of it, or in their name."""
    table = whole.table
    if table.names is not None or not table.dimensions:
        names = whole.table.code_columns()["cell"].cast(pl.String).str.to_lowercase()
        return names.str.contains(word, literal=True).to_numpy().astype(np.bool_)
    mask = np.zeros(len(table), dtype=np.bool_)
    for number, tree in enumerate(table.dimensions.values()):
        here = np.array([word in f"{code} {tree.labels.get(code, '')}".casefold() for code in tree.codes])
        mask |= here[table.codes[:, number]]
    return mask


def _order(whole: Layout, cells: Integers, key: str) -> Floats:
    """What cells are sorted by, as numbers."""
    view, table = whole.view, whole.table
    assert isinstance(view, OfficeCells)
    if key == "value":
        return table.value[cells].astype(np.float64)
    if key == "count" and table.count is not None:
        return table.count[cells].astype(np.float64)
    if key == "why":
        return view.problem.sensitivity.reason[cells].astype(np.float64)
    if key == "hide":
        levels = view.problem.sensitivity
        return (levels.lower + levels.upper)[cells]
    if key == "derives" and view.findings is not None:
        at = view.place[cells]
        width = np.full(len(cells), np.inf)
        width[at >= 0] = (view.findings.upper - view.findings.lower)[at[at >= 0]]
        return width
    return view.kind[cells].astype(np.float64)


def numbers(desk: Desk, view: View) -> list[int]:
    """The numbers of the cells that a search finds, as many as anybody decides on at a time."""
    chosen: list[int] = _found(desk, view)[:MOST_CHOSEN].tolist()
    return chosen


# -- one cell ----------------------------------------------------------------------------------------------------------


def panel(desk: Desk, of: Mapping[str, str], cell: int) -> dict[str, Any]:
    """All that is known of a cell, as plain data; largest contributors only on request."""
    whole = whole_of(desk, of)
    view = whole.view
    if not isinstance(view, OfficeCells) or not 0 <= cell < len(whole.table):
        return {}
    problem, levels = view.problem, view.problem.sensitivity
    kind, value = KINDS[view.kind[cell]], float(problem.table.value[cell])
    ends = _ends(view, cell)
    needed = None
    if levels.mask[cell]:
        needed = (value - float(levels.lower[cell]), value + float(levels.upper[cell]))
    told = {
        "name": whole.describe(cell),
        "kind": (kind.word, kind.sign, kind.css, kind.meaning),
        "value": view.truths(np.array([cell]))[0],
        "public": "" if view.release is None else view.texts(np.array([cell]))[0],
        "count": None if problem.table.count is None else int(problem.table.count[cell]),
        "why": why(problem, cell) if levels.mask[cell] else "",
        "levels": (float(levels.lower[cell]), float(levels.upper[cell])) if levels.mask[cell] else None,
        "hide": "" if needed is None else interval(*needed, view.decimals, view.language),
        "derives": "" if ends is None else interval(*ends, view.decimals, view.language),
        "may_ask": bool(view.may_be_asked(np.array([cell]))[0]),
        "bar": _bar(value, needed, ends),
        "listed": problem.table.contributors is not None,
        "withheld": view.release is not None and bool(view.release.suppressed[cell]),
    }  # fmt: skip
    return {**told, **_neighbours(whole, view, cell)}


def _bar(
    value: float, needed: tuple[float, float] | None, ends: tuple[float, float] | None
) -> list[float | None] | None:
    """Where the required interval and the attacker's begin and end, as shares of what is drawn; None for no end."""
    if needed is None or ends is None:
        return None
    known = [end for end in (*needed, *ends, value) if np.isfinite(end)]
    low, high = min(known), max(known)
    room = (high - low) * 0.1 or 1.0
    low, high = low - room, high + room
    return [(end - low) / (high - low) if np.isfinite(end) else None for end in (*needed, *ends, value)]


def _neighbours(whole: Layout, view: OfficeCells, cell: int) -> dict[str, Any]:
    """Whom a withheld cell protects, or who protects a sensitive one."""
    from tablesafe.audit.explain import protected_by, protectors_of

    if view.findings is None or view.release is None or not view.release.suppressed[cell]:
        return {"neighbours": [], "many": 0, "how": ""}
    sensitive = bool(view.problem.sensitivity.mask[cell])
    cells = protectors_of(view.findings, cell) if sensitive else protected_by(view.findings, cell)
    named = [(each, whole.describe(each), KINDS[view.kind[each]].sign) for each in cells[:MOST_NAMED].tolist()]
    return {"neighbours": named, "many": len(cells), "how": "protectors" if sensitive else "protected"}


def contributors(desk: Desk, of: Mapping[str, str], cell: int) -> list[dict[str, str]]:
    """The largest contributors of a cell with their shares. Confidential: asked for by itself."""
    problem = _problem(desk, of)
    kept = problem.table.contributors
    if kept is None or not 0 <= cell < len(problem.table):
        return []
    value, amounts, who = float(problem.table.value[cell]), kept.amount[cell], kept.identity[cell]
    speech = language(desk.language)
    named = [f"no. {number + 1}" if kept.names is None else str(kept.names[each]) for number, each in enumerate(who)]
    return [
        {
            "who": name,
            "amount": speech.number(f"{amount:,.{problem.table.decimals}f}"),
            "share": speech.number(f"{100 * amount / value:.1f}%") if value else "",
        }
        for name, amount, each in zip(named, amounts.tolist(), who.tolist(), strict=True)
        if each >= 0
    ]


def _problem(desk: Desk, of: Mapping[str, str]) -> Problem:
    view = whole_of(desk, of).view
    assert isinstance(view, OfficeCells)
    return view.problem


def codes_and_costs(desk: Desk, of: Mapping[str, str], cells: Sequence[int]) -> list[dict[str, Any]]:
    """The codes of some cells, what withholding each costs, and whether it is sensitive: what a decision needs."""
    problem = _problem(desk, of)
    table = problem.table
    chosen = np.array([cell for cell in cells if 0 <= cell < table.seen], dtype=np.int64)
    codes = {name: column.gather(chosen) for name, column in table.code_columns().items()}
    rows = pl.DataFrame(codes).to_dicts()
    return [
        {"codes": {name: str(code) for name, code in row.items()}, "cost": float(cost), "sensitive": bool(sensitive)}
        for row, cost, sensitive in zip(
            rows, problem.cost[chosen].tolist(), problem.sensitivity.mask[chosen].tolist(), strict=True
        )
    ]


def _audit(desk: Desk, run: str) -> Audit:
    """The examination of a finished run, to be asked again; an audit holds a whole system, so one is kept."""
    from tablesafe.audit.audit import Audit

    kept: dict[str, Audit] = desk.loaded.setdefault("audits", {})
    if run not in kept:
        result = result_of(desk, run)
        kept.clear()
        kept[run] = Audit.after(result.findings, result.job.audit.attackers)
    return kept[run]


def ready(desk: Desk, run: str) -> None:
    """Have the examination of a run at hand before anybody asks what if: what a first question would wait for."""
    if run not in desk.loaded.get("audits", {}):
        audit = _audit(desk, run)
        audit.judge(audit.release, exact=False, certify=False, time_limit_s=READY_S)


def what_if(desk: Desk, run: str, cell: int, publish: bool) -> dict[str, Any]:
    """What the audit says if a withheld cell were published, or a published one withheld.

    What it finds of outsiders, and then of respondents, is told while it goes on with the others.
    """
    from tablesafe.audit.verdict import Word

    audit, result, whole = _audit(desk, run), result_of(desk, run), whole_of(desk, {"run": run})
    attackers = ["outsiders", *["respondents"] * audit.insiders, *["sums"] * audit.unions]

    def opened(found: Findings, *, possibly: bool = False) -> dict[str, Any]:
        was, now = (((*each.open, *each.possible) if possibly else each.open) for each in (result.findings, found))
        before = {opening.cell for opening in was}
        cells = [each for each in dict.fromkeys(opening.cell for opening in now) if each not in before]
        return {"many": len(cells), "opened": [(each, whole.describe(each)) for each in cells[:MOST_NAMED]]}

    def heard(found: Findings) -> None:
        asked = 1 if found.insiders is None else 2
        if asked < len(attackers):
            desk.tell({"asked": attackers[:asked], "next": attackers[asked], **opened(found)})

    ask = audit.publish if publish else audit.withhold
    found = ask([cell], time_limit_s=WHAT_IF_S, heard=heard)
    word = found.verdict.word
    possibly = word is Word.POSSIBLY_OPEN
    return {
        "word": str(word), "safe": bool(found.safe), "unproved": word is Word.NOT_PROVED, "possibly": possibly,
        **opened(found, possibly=possibly),
    }  # fmt: skip
