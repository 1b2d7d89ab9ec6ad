"""The league table: every pattern checked, against the best bound that is proved, as a page of the documentation."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.arena.check import Bound, check, read_instance, read_pattern, text_of
from benchmarks.arena.enter import BOUNDS, PATTERNS, folder_of
from benchmarks.arena.instances import HERE, MADE, NAMED, checksum, file_of, gzipped

KEPT = HERE / "league.json"
DOCS = HERE.parent.parent / "docs" / "benchmarks" / "arena.md"
HEAD = """# The arena

Patterns of several programs for the same tables, each checked by a program that is none of them. Written by
`python -m benchmarks.arena league`; [how to enter](arena-enter.md) your own.

- *cost*: what the withheld cells cost beyond the sensitive ones, by the instance's own costs.
- *open*: sensitive cells that do not have their protection interval although they are withheld, by linear programs
  (SciPy) over all withheld cells. A pattern with open cells is no answer; its cost is shown and not ranked.
- *proved*: no safe pattern can cost less, by a certificate that the checker derives anew in exact fractions.
- *above*: how far the cost lies above that bound, at most.
- CPU seconds are as the entrants say; they ran on different machines and are no race.

Only outsiders are looked at: who contributed to a cell is not part of these files.
"""


def league(*, again: bool = False) -> dict[str, Any]:
    """Check what is new or was changed since the last time; the rest is kept."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() and not again else {}
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in (*MADE, *NAMED):
            patterns = sorted((PATTERNS / folder_of(name)).glob("*.txt"))
            if patterns:
                found[name] = _judged(name, patterns, kept.get(name, {}), Path(scratch))
    return found


def _judged(name: str, patterns: list[Path], before: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """All entries of an instance; those of a file that is not here stay as they are."""
    path = file_of(name, scratch)
    if path is None:
        return before
    certificate = BOUNDS / f"{folder_of(name)}.json.gz"
    marks = {each.stem: checksum(text_of(each)) for each in patterns}
    proof = checksum(text_of(certificate)) if certificate.exists() else ""
    sha = checksum(text_of(path))
    known = {stem: entry["sha256"] for stem, entry in before.get("entries", {}).items()}
    if (before.get("sha256"), before.get("proof"), known) == (sha, proof, marks):
        return before
    instance = read_instance(path)
    entries = {}
    for each in patterns:
        pattern = read_pattern(each, instance)
        entries[each.stem] = {"sha256": marks[each.stem]} | check(instance, pattern) | {"said": pattern.said}
    bound = float(Bound(instance, json.loads(text_of(certificate))).value()) if proof else None
    return {
        "sha256": sha, "proof": proof, "cells": len(instance.ids), "sensitive": int(instance.sensitive.sum()),
        "bound": bound, "entries": entries,
    }  # fmt: skip


def page(found: dict[str, Any]) -> str:
    """The page: instance by instance, safe patterns first, the cheapest at the top."""
    parts = [HEAD.strip()]
    for name, judged in found.items():
        about = MADE[name][0] if name in MADE else NAMED[name]
        bound = f" Proved: at least {judged['bound']:,.10g}." if judged["bound"] is not None else ""
        head = f"{about}: {judged['cells']:,} cells, {judged['sensitive']:,} sensitive.{bound}"
        lines = ["| program | cells | cost | above | open | CPU s | version |", "|---|--:|--:|--:|--:|--:|---|"]
        ranked = sorted(judged["entries"].items(), key=lambda pair: (bool(pair[1]["open"]), pair[1]["cost"], pair[0]))
        lines += [_line(stem, entry, judged["bound"]) for stem, entry in ranked]
        parts += [f"## {name}", head, "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _line(stem: str, entry: dict[str, Any], bound: float | None) -> str:
    said = entry["said"]
    above = "–"
    if bound and not entry["open"]:
        above = "**0**" if entry["cost"] <= bound else f"{entry['cost'] / bound - 1:.2%}"
    cells = [
        said.get("program", stem), f"{entry['cells']:,}", f"{entry['cost']:,.10g}", above,
        f"{len(entry['open'])} of {entry['sensitive']:,}" if entry["open"] else "0", said.get("cpu_s", "–"),
        said.get("version", "–"),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def write(*, again: bool = False) -> dict[str, Any]:
    """Check, keep the verdicts, write the page."""
    found = league(again=again)
    KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    DOCS.parent.mkdir(parents=True, exist_ok=True)
    DOCS.write_text(page(found), encoding="utf-8")
    return found


def keep_bound(name: str, certificate: dict[str, Any]) -> bool:
    """Keep a certificate if it proves more than the one that is there."""
    path = BOUNDS / f"{folder_of(name)}.json.gz"
    if path.exists() and float(_said(json.loads(text_of(path)))) >= float(_said(certificate)):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzipped(json.dumps(certificate)))
    return True


def _said(certificate: dict[str, Any]) -> float:
    from fractions import Fraction

    return float(Fraction(certificate["bound"]))
