"""How CPU seconds grow with size: the slope of a line through the points on logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from benchmarks.registry import Row

LEAST_S = 0.01
"""Seconds below which a point says more about the clock than about the work."""
AXES = {"tabulate": ("records",), "audit": ("unknown",)}
"""What a task's size is counted in; cells for all others, records and sensitive cells where a table is of microdata."""


@dataclass(frozen=True, slots=True)
class Curve:
    """CPU seconds and peak memory of one program by size."""

    task: str
    program: str
    family: str
    axis: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    megabytes: tuple[float, ...]

    @property
    def slope(self) -> float | None:
        """The exponent: 1 is proportional to the size. None with fewer than two points that count."""
        return slope(self._counted(self.seconds))

    @property
    def last_slope(self) -> float | None:
        """The exponent between the two largest sizes."""
        return slope(self._counted(self.seconds)[-2:])

    def _counted(self, values: tuple[float, ...]) -> list[tuple[float, float]]:
        pairs = zip(self.sizes, values, strict=True)
        return [(size, value) for size, value in pairs if value >= LEAST_S]


def slope(points: list[tuple[float, float]]) -> float | None:
    """The slope of the least-squares line through the logarithms."""
    logs = [(log(x), log(y)) for x, y in points]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    return float(above / sum((x - mean_x) ** 2 for x, _ in logs))


def axes_of(row: Row) -> tuple[str, ...]:
    """What the size of a row is counted in."""
    return AXES.get(row["task"], ("records", "sensitive") if row["instance"].startswith("micro/") else ("cells",))


def family(row: Row) -> str:
    """Instances that differ in nothing but their size: their name without its last part."""
    return str(row["instance"]).rpartition("_")[0]


def curves(rows: Iterable[Row]) -> list[Curve]:
    """The curves of the programs of ours that were run on several sizes of one kind of instance."""
    points: dict[tuple[str, str, str, str], list[tuple[float, float, float]]] = {}
    for row in rows:
        for axis in axes_of(row):
            if row["status"] == "ok" and row["role"] == "tablesafe" and row.get(axis):
                key = (row["task"], row["program"], family(row), axis)
                points.setdefault(key, []).append((row[axis], row["cpu_s"], row["peak_mb"]))
    return [
        Curve(task, program, kind, axis, *zip(*sorted(found), strict=True))
        for (task, program, kind, axis), found in points.items()
        if len({size for size, _, _ in found}) > 1
    ]
