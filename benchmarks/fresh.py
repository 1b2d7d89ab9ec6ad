"""Whether figures are of the engine that is here: results keep a mark of its sources, and pages say when it differs.

A mark, not the history: a clean checkout has none, and a commit is not known before it is made.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from benchmarks.results import Results

SOURCES = Path(__file__).resolve().parent.parent / "src" / "tablesafe"
ENGINE = ("methods/suppress", "solve")
CHANGED = "Measured at commit {commit}; the engine (`methods/suppress`, `solve`) has changed since."
_SAID = re.compile(r" Measured at commit \w+; the engine [^.]*? has changed since\.")


def engine(sources: Path = SOURCES) -> str:
    """A mark of the sources that make patterns: of what they say, not of where they lie."""
    texts = (path.read_bytes() for part in ENGINE for path in (sources / part).rglob("*.py"))
    marks = sorted(hashlib.sha256(text).digest() for text in texts)
    return hashlib.sha256(b"".join(marks)).hexdigest()[:12]


def stale(results: Results) -> str:
    """The sentence about results that are of another engine; empty when they are of this one."""
    marks = {row.get("engine") for row in results.rows} or {None}
    if marks == {engine()}:
        return ""
    old = [row.get("commit") or results.machine["commit"] for row in results.rows if row.get("engine") != engine()]
    return CHANGED.format(commit=old[0] if old and old[0] else "unknown")


def without(text: str) -> str:
    """A page without that sentence: what stays the same until something is measured."""
    return _SAID.sub("", text)


def told(results: Results) -> str:
    """One line for people: what to do, if anything."""
    said = stale(results)
    if not said:
        return f"{results.suite}: of the engine that is here."
    return f"{results.suite}: {said} On an idle machine: make benchmark SUITE={results.suite}"
