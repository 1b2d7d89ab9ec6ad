"""Coverage-guided fuzzing of one reader, where atheris is installed.

    PYTHONPATH=tests python -m fuzz.coverage_guided jj -max_total_time=300

The first argument is a name from `TARGETS`; the rest goes to libFuzzer. It begins from the valid file and from damaged
ones, and stops at the first thing that is neither read nor refused as it should be. The input that did it is kept in
the working folder, and goes into a test.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

READERS = ["errors", "untrusted", "files", "hierarchy", "io", "job", "verify", "table"]
"""What is watched; compiled code cannot be."""

os.environ["NUMBA_DISABLE_JIT"] = "1"  # numba cannot compile what is instrumented
with atheris.instrument_imports(include=[f"tablesafe.{name}" for name in READERS]):
    from fuzz.bounds import refusal
    from fuzz.mutations import DAMAGES, damage
    from fuzz.targets import TARGETS, sealed

SEEDS = 200


def seeds(folder: Path, content: bytes) -> None:
    """The valid file and damaged ones, for the fuzzer to begin from."""
    (folder / "valid").write_bytes(content)
    for i in range(SEEDS):
        chance = Random(i)
        steps = [(chance.randrange(len(DAMAGES)), chance.randrange(2**32)) for _ in range(chance.randrange(1, 4))]
        harmed = damage(content, steps)
        if len(harmed) < 100_000:
            (folder / f"damaged-{i}").write_bytes(harmed)


def main() -> None:
    """Fuzz the reader that the command line names."""
    target = TARGETS[sys.argv.pop(1)]
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as corpus:
        seeds(Path(corpus), target.seed())

        def one(content: bytes) -> None:
            path = target.lay_out(Path(work), sealed(content) if target.sealed else content)
            refusal(target.read, path)

        limit = 3_000 + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # some damages are large themselves
        atheris.Setup([*sys.argv, f"-rss_limit_mb={limit}", "-timeout=30", corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
