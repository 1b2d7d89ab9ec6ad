"""Dandekar's printed patterns, and the smallest one."""

from __future__ import annotations

from typing import Any

import numpy as np

import tablesafe as ts
from reproduce.cases import dandekar, dandekar_pattern
from reproduce.layout import head, places, table, whole

NAME = "dandekar-patterns"
PAPER = (
    "R. A. Dandekar, *Protecting Sensitive Tabular Data by Complementary Cell Suppression: Myth & Reality*, Tables 1 "
    "and 2."
)


def page() -> str:
    """The page, in Markdown."""
    problem = dandekar()
    best = ts.protect(problem, ts.Suppress(cost="unit", algorithm="optimal", time_limit_s=300))
    patterns = {
        "44 complements, printed": dandekar_pattern(problem, "suppression_44"),
        "39 complements, printed": dandekar_pattern(problem, "suppression_39"),
        "fewest, ours": best.suppressed,
    }
    lines = head(
        NAME, "Dandekar: the printed patterns, and the smallest", PAPER,
        "The same table and levels as [Dandekar & Cox](dandekar-cox.md). Two printed patterns, judged by the audit, "
        "beside the smallest pattern there is.",
    )  # fmt: skip
    rows = []
    for words, mask in patterns.items():
        findings = ts.audit(problem, ts.Release.from_suppression(problem, mask))
        opened = "; ".join(_opening(problem, one) for one in findings.open) or "nothing"
        rows.append(
            [
                words,
                str(int((mask & ~problem.sensitivity.mask).sum())),
                f"{int(findings.protected.sum())} of 24",
                opened,
            ]
        )
    solution = best.solution
    assert solution is not None
    lines += ["", "## What the audit says", *table(["pattern", "complements", "protected", "open"], rows, left=4)]
    lines += [
        f"Ours is {solution.status}: no pattern with fewer than {solution.bound:.0f} complements protects all 24 cells."
    ]
    lines += [
        "The cells that the audit finds open in the printed patterns miss their upper level by a little; the",
        "paper calls them borderline. Which of the two is Table 1 of the paper, our transcript does not say.",
        "", "## The patterns", "",
        "S sensitive, x complementary, a dot is published. Columns 1 to 10 (the last is the total), rows 1 to 6.",
    ]  # fmt: skip
    for level in ("1", "2", "3", "4"):
        lines += ["", f"Level {level}{' (total)' if level == '4' else ''}:", ""]
        lines += [
            "```text",
            *_beside([_grid(problem, mask, level) for mask in patterns.values()], list(patterns)),
            "```",
        ]
    return "\n".join([*lines, *places(NAME)]) + "\n"


def _opening(problem: ts.Problem, opening: Any) -> str:
    value = problem.table.value[opening.cell]
    return f"{whole(value)} can be at most {opening.upper:,.10g}, {opening.short:,.10g} too little"


def _grid(problem: ts.Problem, mask: Any, level: str) -> list[str]:
    """One level of a pattern, a line per row."""
    codes = problem.table.code_columns()
    lines = []
    for row in range(1, 7):
        text = ""
        for column in range(1, 11):
            at = np.flatnonzero(
                (codes["level"] == level).to_numpy()
                & (codes["row"] == str(row)).to_numpy()
                & (codes["col"] == str(column)).to_numpy()
            )[0]
            text += "S " if problem.sensitivity.mask[at] else "x " if mask[at] else ". "
        lines.append(text.rstrip())
    return lines


def _beside(grids: list[list[str]], words: list[str]) -> list[str]:
    lines = ["   ".join(f"{word:<24}" for word in words).rstrip()]
    return lines + ["   ".join(f"{line:<24}" for line in row).rstrip() for row in zip(*grids, strict=True)]
