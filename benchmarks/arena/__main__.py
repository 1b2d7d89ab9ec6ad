"""The commands of the arena: list, make, check, prove, enter, league."""

from __future__ import annotations

import argparse
import json
import tempfile
from math import inf
from pathlib import Path

from benchmarks.arena import check as checker
from benchmarks.arena.instances import MADE, NAMED, file_of


def main() -> None:
    """Do what the command says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description="Patterns side by side, checked.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show the instances, and who has entered a pattern")
    making = commands.add_parser("make", help="write an instance as a JJ file")
    making.add_argument("name")
    making.add_argument("file", type=Path)
    checking = commands.add_parser("check", help="check a pattern")
    checking.add_argument("name", help="an instance of the arena, or a JJ file")
    checking.add_argument("pattern", type=Path)
    checking.add_argument("bound", nargs="?", type=Path, help="a certificate of a lower bound")
    for word, what in (("prove", "prove a lower bound"), ("enter", "let the programs that are here make patterns")):
        working = commands.add_parser(word, help=what)
        working.add_argument("names", nargs="*", help="instances; by default all that are small")
        working.add_argument("--seconds", type=float, default=60.0, help="time for each")
    writing = commands.add_parser("league", help="check what is new, and write the page")
    writing.add_argument("--again", action="store_true", help="check everything anew")
    given = parser.parse_args()
    {"list": _list, "make": _make, "check": _check, "prove": _prove, "enter": _enter, "league": _league}[given.command](
        given
    )


def _list(given: argparse.Namespace) -> None:
    from benchmarks.arena.enter import PATTERNS, folder_of

    for name, about in ({name: words for name, (words, _) in MADE.items()} | NAMED).items():
        entered = ", ".join(sorted(each.stem for each in (PATTERNS / folder_of(name)).glob("*.txt")))
        print(f"{name:18} {about:50} {entered}")


def _make(given: argparse.Namespace) -> None:
    if given.name not in MADE:
        raise SystemExit(f"There is no instance {given.name!r} that is made from a seed. There are: {', '.join(MADE)}.")
    given.file.write_text(MADE[given.name][1](), encoding="utf-8")


def _check(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(given.name) if Path(given.name).is_file() else file_of(given.name, Path(scratch))
        if path is None:
            raise SystemExit(f"{given.name} is neither an instance that is here nor a file.")
        try:
            raise SystemExit(checker.main([str(each) for each in (path, given.pattern, given.bound) if each]))
        except checker.Wrong as wrong:
            raise SystemExit(str(wrong)) from None


def _small() -> list[str]:
    """The instances that a run over all takes: those made here, but for the largest."""
    return [name for name in MADE if name != "firms_3d_20k"]


def _prove(given: argparse.Namespace) -> None:
    from benchmarks.arena.league import KEPT, keep_bound
    from benchmarks.arena.prove import proved

    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in given.names or _small():
        with tempfile.TemporaryDirectory() as scratch:
            path = file_of(name, Path(scratch))
            if path is None:
                print(f"{name}: not here")
                continue
            entries = kept.get(name, {}).get("entries", {}).values()
            known = min((entry["cost"] for entry in entries if not entry["open"]), default=inf)
            certificate = proved(checker.read_instance(path), seconds=given.seconds, known=known)
        better = "kept" if keep_bound(name, certificate) else "no better than what is kept"
        print(f"{name}: every safe pattern costs at least {certificate['bound']} ({better}; best known {known:,.10g})")


def _enter(given: argparse.Namespace) -> None:
    from benchmarks.arena.enter import enter

    for name in given.names or _small():
        print("\n".join(enter(name, seconds=given.seconds)), flush=True)


def _league(given: argparse.Namespace) -> None:
    from benchmarks.arena.league import write

    found = write(again=given.again)
    entries = sum(len(judged["entries"]) for judged in found.values())
    print(f"{len(found)} instances, {entries} patterns: arena.md")


if __name__ == "__main__":
    main()
