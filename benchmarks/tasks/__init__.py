"""Tasks and the programs that do them: tablesafe, a naive way, and the peers. Each module registers its own."""

from __future__ import annotations

from importlib import import_module

HOMES: dict[str, tuple[str, ...]] = {
    "tabulate": ("tabulate",),
    "flag": ("flag",),
    "audit": ("audit",),
    "suppress": ("suppress",),
    "adjust": ("adjust", "adjust reference", "adjust percent", "adjust paper"),
    "statistics": ("adjust statistics", "tabu steps"),
    "round": ("round",),
    "small_counts": ("small counts",),
    "cell_key": ("cell key", "cell key lookup", "cell key design"),
    "attack": ("attack",),
    "views": ("views",),
    "edit": ("noise", "swap", "swap households", "impute", "impute nearest", "impute model"),
    "jobs": ("τ-ARGUS job",),
    "start": ("start",),
}
"""The tasks of each module. A worker loads only the one it needs, so that its memory is that of its work."""


def load(task: str | None = None) -> None:
    """Let the programs of a task register themselves, or those of all."""
    for module, tasks in HOMES.items():
        if task is None or task in tasks:
            import_module(f"benchmarks.tasks.{module}")
