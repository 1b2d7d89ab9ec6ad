"""Results of a suite: rows with the machine they belong to, as JSON and as Markdown; ratios within one comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from benchmarks import machine
from benchmarks.registry import Entry, Row

FOLDER = Path(__file__).resolve().parent / "results"
COLUMNS: dict[str, str] = {
    "program": "program", "cpu_s": "CPU s", "cpu_ratio": "ratio", "wall_s": "wall s", "peak_mb": "peak MB",
    "memory_ratio": "ratio", "added_mb": "added MB", "complementary": "complementary",
    "complementary_value": "their value", "value_ratio": "ratio", "changed": "changed", "open_by_audit": "open (audit)",
    "open_to_respondents": "open to respondents", "open": "open (programs)", "objective": "objective", "bound": "bound",
    "gap": "gap",
    "note": "note",
}  # fmt: skip
"""What the tables show of a row, where any row of a comparison has it."""
RATIOS = {"cpu_ratio": "cpu_s", "memory_ratio": "peak_mb", "value_ratio": "complementary_value"}


def compared(rows: list[Row]) -> list[Row]:
    """Rows with their ratios to our own program: the first of ours that came to an end."""
    base = next((row for row in rows if row["role"] == "tablesafe" and row["status"] == "ok"), None)
    if base is None:
        return rows
    return [
        row | {name: found for name, key in RATIOS.items() if (found := _ratio(row, base, key)) is not None}
        for row in rows
    ]


def _ratio(row: Row, base: Row, key: str) -> float | None:
    """How many times ours; figures printed elsewhere on other days say nothing about seconds and memory."""
    if row is base or row["status"] != "ok" or (row["role"] == "printed" and key != "complementary_value"):
        return None
    mine, theirs = base.get(key), row.get(key)
    return round(theirs / mine, 3) if mine and theirs is not None else None


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a suite, in the order of its entries."""

    suite: str
    machine: dict[str, Any]
    rows: tuple[Row, ...] = ()
    finished: bool = False

    @classmethod
    def read(cls, path: Path) -> Self:
        """Results that were written."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["suite"], data["machine"], tuple(data["rows"]), data["finished"])

    @classmethod
    def resumed(cls, path: Path, suite: str, here: dict[str, Any], *, fresh: bool, keep_finished: bool) -> Self:
        """What is there of an unfinished run on this machine with these versions; otherwise nothing."""
        if not path.exists() or fresh:
            return cls(suite, here)
        before = cls.read(path)
        same = {**before.machine, "commit": ""} == {**here, "commit": ""}
        if same and (keep_finished or not before.finished):
            return replace(before, machine=here, finished=False)
        return cls(suite, here)

    def has(self, entry: Entry) -> bool:
        """Whether a comparison is there with all its programs."""
        there = {row["program"] for row in self.of(entry.task, entry.instance)}
        printed = {row["role"] == "printed" for row in self.of(entry.task, entry.instance)}
        missing = set(entry.programs) - there
        return bool(there) and (not missing or (missing == {"printed"} and True in printed))

    def of(self, task: str, instance: str) -> list[Row]:
        """The rows of one comparison."""
        return [row for row in self.rows if row["task"] == task and row["instance"] == instance]

    def with_rows(self, entry: Entry, rows: Iterable[Row]) -> Self:
        """With a comparison in the place of what was there of it."""
        mine = (entry.task, entry.instance)
        kept = [row for row in self.rows if (row["task"], row["instance"]) != mine]
        return replace(self, rows=(*kept, *rows))

    def ordered(self, entries: Iterable[Entry]) -> Self:
        """With the comparisons in the order of the suite; what the suite no longer has is left out."""
        pairs = dict.fromkeys((entry.task, entry.instance) for entry in entries)
        return replace(self, rows=tuple(row for task, name in pairs for row in self.of(task, name)))

    def write(self, path: Path, *, finished: bool) -> None:
        """The JSON file and the Markdown table beside it."""
        from tablesafe.files.write import whole_file

        done = replace(self, finished=finished)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"suite": done.suite, "finished": finished, "machine": done.machine, "rows": list(done.rows)}
        with whole_file(path) as file:
            file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        with whole_file(path.with_suffix(".md")) as file:
            file.write_text(done.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """All comparisons as tables, one under the other."""
        parts = [f"# Suite {self.suite}", machine.sentence(self.machine)]
        for (task, name), rows in groupby(self.rows, key=lambda row: (row["task"], row["instance"])):
            group = list(rows)
            parts += [f"## {task}: {name}", f"{size(group)}.", table(group)]
        return "\n\n".join(parts) + "\n"


def size(rows: list[Row]) -> str:
    """How large the instance of a comparison is, in words."""
    merged: Row = {}
    for row in rows:
        merged |= {key: row[key] for key in ("records", "cells", "sensitive", "unknown", "size") if key in row}
    words = {"size": ""}
    return ", ".join(f"{merged[key]:,} {words.get(key, key)}".strip() for key in merged) or "Size unknown"


def table(rows: list[Row]) -> str:
    """A comparison as a Markdown table."""
    shown = [_shown(row) for row in rows]
    columns = [key for key in COLUMNS if any(row.get(key, "") != "" for row in shown)]
    lines = ["| " + " | ".join(COLUMNS[key] for key in columns) + " |"]
    lines.append("|" + "|".join("---" if key in {"program", "note"} else "--:" for key in columns) + "|")
    lines += ["| " + " | ".join(row.get(key, "") for key in columns) + " |" for row in shown]
    return "\n".join(lines)


def _shown(row: Row) -> dict[str, str]:
    """The texts of a row."""
    texts = {key: number(row[key], key) for key in COLUMNS if row.get(key) is not None}
    if row["status"] != "ok":
        texts["note"] = f"{row['status']}: {row['reason']}".replace("|", "/")
    if row.get("open_by_programs") is not None:
        texts["open"] = f"{row['open_by_programs']} of {row['programs_asked']}"
    return texts


def number(value: Any, key: str = "") -> str:
    """A figure as people read it: three digits below a hundred, none after the point above."""
    if isinstance(value, str):
        return value
    if key == "gap":
        return f"{value:.2%}"
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text}×" if key.endswith("ratio") else text
