"""A summary as JSON, with keys that stay: programs may rely on them.

Every document has these keys; those marked * are null, empty or left out in the public version.

    format            "tablesafe report 1"
    internal          whether it must stay in the office
    title, made       as on the page; made is an ISO time or null
    verdict           word (SAFE, OPEN, POSSIBLY OPEN, NOT PROVED, NOTHING TO JUDGE, NOT AUDITED), passed (true, false,
                      or null where nothing was judged), lines [text], facts {name: text},
                      open* [{cell, how, derived, short, attacker}], more_open*, possibly* [text], more_possibly*
    input             source (public: "" unless the job names it), response, cells, equations, contributors*,
                      dimensions [{name, codes, levels, total}], files* {name: SHA-256}
    rules             [{name, what, parameters*}]
    sensitive*        {cells, reasons {name: cells}}
    statuses          [{status, sign, meaning, cells, share, value_share*}]
    levels            [{dimension, level, codes, example, cells, withheld, may_differ, sensitive*, changed*,
                      withheld_value_share*, average_percent*}]
    table             rows, columns: the dimensions down and across; notes: what is not shown; slices [{filters,
                      columns [code], rows [{code, depth, parent, cells [{text, status, truth*}]}]}]; text is what the
                      public sees, parent the number of the row above it or null, status "" where there is no cell
    margins*          cells, protected, exact, lines [{cell, reason, value, required, derived, reach, protected}]
    attacks*          headline, attacks [{name, disclosed, sensitive, share, median_error, median_variation, seconds,
                      note}], danger [{cell, value, guess, attack, disclosed_by, attacks, exactly}], chance
    changes*          measures {name: number}, distribution [{percent, cells}], sizes, statistics
    method            name, what, additive, solved* {status, objective, bound, gap, seconds, warning}, seconds* {stage:
                      number}
    reproduce         command, job*, remark (what could not be written beside it), versions {name: version}
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tablesafe.files.write import json_lines
from tablesafe.report.excerpt import Slice
from tablesafe.report.losses import Changes, Row
from tablesafe.report.summary import Summary

FORMAT = "tablesafe report 1"
SIZES = (
    "cells", "cells_changed", "average_percent_change", "largest_percent_change", "percent_of_the_quantity"
)  # fmt: skip
STATISTICS = ("cells", "mean", "published_mean", "variance_ratio", "correlation", "slope")


def document(summary: Summary) -> dict[str, Any]:
    """The report as plain values, ready for JSON."""
    origin, verdict = summary.origin, summary.verdict
    return {
        "format": FORMAT,
        "internal": summary.internal,
        "title": origin.title,
        "made": None if origin.made is None else origin.made.isoformat(timespec="seconds"),
        "verdict": {
            "word": verdict.word,
            "passed": verdict.passed,
            "lines": list(verdict.lines),
            "facts": {name: str(fact) for name, fact in verdict.facts},
            "open": [dataclasses.asdict(line) for line in verdict.open],
            "more_open": verdict.more_open,
            "possibly": list(verdict.possibly),
            "more_possibly": verdict.more_possibly,
        },
        "input": {
            "source": origin.source,
            "response": summary.response,
            "cells": summary.cells,
            "equations": int(summary.equations),
            "contributors": summary.contributors,
            "dimensions": [dataclasses.asdict(line) for line in summary.dimensions],
            "files": dict(origin.files),
        },
        "rules": [_told(dataclasses.asdict(rule), summary.internal, "parameters") for rule in summary.rules],
        "sensitive": {"cells": summary.sensitive, "reasons": dict(summary.reasons)} if summary.internal else None,
        "statuses": [_status(line, summary.internal) for line in summary.statuses],
        "levels": [
            {name: value for name, value in dataclasses.asdict(line).items() if value is not None}
            for line in summary.levels
        ],
        "table": _table(summary),
        "margins": _margins(summary),
        "attacks": _attacks(summary),
        "changes": None if summary.changes is None else _changes(summary.changes),
        "method": {
            "name": summary.method,
            "what": summary.what,
            "additive": summary.additive,
            "solved": None if summary.solved is None else dataclasses.asdict(summary.solved),
            "seconds": {stage: round(seconds, 3) for stage, seconds in origin.seconds.items()},
        },
        "reproduce": {
            "command": origin.command,
            "job": origin.job,
            "remark": origin.remark,
            "versions": dict(summary.versions),
        },
    }


def as_json(summary: Summary) -> str:
    """The document as text; it holds no number that JSON does not know."""
    return json_lines(document(summary)) + "\n"


def _told(values: dict[str, Any], internal: bool, *secret: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if internal or name not in secret}


def _status(line: Any, internal: bool) -> dict[str, Any]:
    told = {
        "status": line.kind.word, "sign": line.kind.sign, "meaning": line.kind.meaning, "cells": line.cells,
        "share": line.share, "value_share": line.value_share,
    }  # fmt: skip
    return _told(told, internal, "value_share")


def _table(summary: Summary) -> dict[str, Any]:
    layout = summary.excerpt.slices[0].layout
    return {
        "rows": layout.rows.name,
        "columns": layout.columns.name,
        "notes": list(summary.excerpt.notes),
        "slices": [_slice(each, summary.internal) for each in summary.excerpt.slices],
    }


def _slice(each: Slice, internal: bool) -> dict[str, Any]:
    window, layout = each.window, each.layout
    parent, depth = each.parent.tolist(), each.depth
    return {
        "filters": dict(each.filters),
        "columns": [str(code) for code in layout.columns.codes[window.columns]],
        "rows": [
            {
                "code": str(layout.rows.codes[line]),
                "depth": depth[i],
                "parent": None if parent[i] < 0 else parent[i],
                "cells": [
                    _told({"text": text, "status": kind.word, "truth": truth}, internal, "truth")
                    for text, truth, kind in zip(window.text[i], window.truth[i], window.kind[i], strict=True)
                ],
            }
            for i, line in enumerate(window.rows.tolist())
        ],
    }


def _margins(summary: Summary) -> dict[str, Any] | None:
    found = summary.margins
    if found is None:
        return None
    shown = ("cell", "reason", "value", "required", "derived", "reach", "protected")
    lines = [{name: getattr(line, name) for name in shown} for line in found.lines]
    return {"cells": found.cells, "protected": found.protected, "exact": found.exact, "lines": lines}


def _attacks(summary: Summary) -> dict[str, Any] | None:
    if not summary.attacks and not summary.chance:
        return None
    return {
        "headline": summary.attack,
        "attacks": [dataclasses.asdict(line) for line in summary.attacks],
        "danger": [dataclasses.asdict(line) for line in summary.danger],
        "chance": summary.chance,
    }


def _changes(found: Changes) -> dict[str, Any]:
    return {
        "measures": dict(found.measures),
        "distribution": [{"percent": word, "cells": cells} for word, cells in found.distribution],
        "sizes": [_row("size", row, SIZES) for row in found.sizes],
        "statistics": [_row("group", row, STATISTICS) for row in found.statistics],
    }


def _row(first: str, row: Row, names: tuple[str, ...]) -> dict[str, Any]:
    return {first: row.word, **dict(zip(names, row.numbers, strict=True))}
