"""The command line: list, run, page."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path

from benchmarks import registry
from benchmarks.results import FOLDER


def main() -> None:
    """Do what the command says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure tablesafe beside its peers.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run a suite; an unfinished run goes on where it stopped")
    running.add_argument("suite", help="one of those that `list` shows")
    running.add_argument("--fresh", action="store_true", help="forget what an unfinished run has measured")
    running.add_argument("--only", default="", help="only comparisons whose task and instance contain this text")
    running.add_argument("--minutes", type=float, default=inf, help="begin no further comparison after this many")
    running.add_argument("--into", type=Path, default=FOLDER, help="folder of the results")
    commands.add_parser("list", help="show the instances, the programs of each task, and the suites")
    showing = commands.add_parser("page", help="write the page of the documentation from the results")
    showing.add_argument("--into", type=Path, default=None, help="folder of the page; by default docs/")
    asking = commands.add_parser("fresh", help="say whether the results are of the engine that is here")
    asking.add_argument("--strict", action="store_true", help="end with 1 when some are not: before a release")
    given = parser.parse_args()
    if given.command == "run":
        run(given)
    elif given.command == "page":
        from benchmarks.page import write

        print("\n".join(path.name for path in write(given.into)))
    elif given.command == "fresh":
        fresh(strict=given.strict)
    else:
        registry.load()
        print(listing())


def run(given: argparse.Namespace) -> None:
    """Run a suite and say where its results are."""
    from benchmarks.runner import run as run_suite

    registry.load()
    if given.suite not in registry.SUITES:
        raise SystemExit(f"There is no suite {given.suite!r}. There are: {', '.join(registry.SUITES)}.")
    path = given.into / f"{given.suite}.json"
    run_suite(registry.SUITES[given.suite], path, fresh=given.fresh, only=given.only, minutes=given.minutes)
    print(f"written: {path.name}, {path.with_suffix('.md').name}")


def fresh(*, strict: bool) -> None:
    """Say of each kept suite whether it is of this engine."""
    from benchmarks.fresh import stale, told
    from benchmarks.page import suites

    kept = suites()
    print("\n".join(told(results) for results in kept))
    if strict and any(stale(results) for results in kept):
        raise SystemExit(1)


def listing() -> str:
    """What can be measured."""
    lines = ["Instances"]
    lines += [f"  {each.name:24} {each.size:>12,}  {each.about}" for each in registry.INSTANCES.values()]
    lines += ["", "Programs"]
    lines += [f"  {task:16} {', '.join(programs)}" for task, programs in registry.PROGRAMS.items()]
    lines += ["", "Suites"]
    lines += [f"  {each.name:16} {len(each.entries):>3} comparisons: {each.about}" for each in registry.SUITES.values()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
