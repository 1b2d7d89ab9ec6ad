"""Every command, with every kind of damaged file: an exit code of ours, no traceback, nothing written over an input."""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.bounds import examples, watched
from fuzz.mutations import damaged
from fuzz.targets import ARB, BESIDE, CELLS, HRC, JOB, PATTERN, certificate, problem, published, sealed
from tablesafe.cli.app import call
from tablesafe.cli.exits import Exit
from tablesafe.io.jj import jj_text

FILES: dict[str, bytes] = {
    **{name: content.encode() for name, content in BESIDE.items()},
    "cells.csv": CELLS.encode(),
    "table.jj": jj_text(problem()).encode(),
    "pattern.csv": PATTERN.encode(),
    "job.toml": JOB.encode(),
    "cells.toml": (
        b'[source]\nfile = "cells.csv"\nkind = "cells"\ncount = "n"\n[dimensions.region]\n[dimensions.size]\n'
        b'[response]\nvalue = "value"\n[[rules]]\nrule = "threshold"\nn = 3\n[output]\nrelease = "public/t.csv"\n'
    ),
    "job.arb": ARB.encode(),
    "certificate.json": certificate(),
    "published.csv": published(),
    "other.hrc": HRC.encode(),
}
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (("run", "job.toml"), ("job.toml", "records.csv", "tree.hrc")),
    "run cells": (("run", "cells.toml", "--json"), ("cells.toml", "cells.csv")),
    "run arb": (("run", "job.arb"), ("job.arb", "micro.rda", "micro.asc", "tree.hrc")),
    "init": (("init", "records.csv", "-o", "new.toml"), ("records.csv",)),
    "tabulate": (("tabulate", "records.csv", "--by", "region", "--value", "turnover"), ("records.csv",)),
    "flag": (("flag", "job.toml"), ("job.toml", "records.csv", "tree.hrc")),
    "suppress": (("suppress", "table.jj", "-o", "new.csv", "--time-limit-s", "1"), ("table.jj",)),
    "audit": (("audit", "table.jj", "--pattern", "made.csv"), ("table.jj", "made.csv")),
    "audit tab": (("audit", "table.tab"), ("table.tab", "table.rda")),
    "attack": (("attack", "table.jj", "--pattern", "made.csv", "--attacks", "midpoint"), ("table.jj", "made.csv")),
    "verify": (("verify", "certificate.json", "--release", "published.csv"), ("certificate.json", "published.csv")),
    "convert": (("convert", "table.jj", "new.csv"), ("table.jj",)),
    "convert hrc": (("convert", "other.hrc", "new.csv"), ("other.hrc",)),
    "convert asc": (("convert", "micro.asc", "new.csv"), ("micro.asc", "micro.rda", "tree.hrc")),
    "redesign": (("redesign", "cells.toml"), ("cells.toml", "cells.csv")),
}  # fmt: skip


def lay_out(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    lines = "".join(f"{cell},{'u' if cell in (4, 5, 7, 8) else 's'}\n" for cell in range(9))
    (folder / "made.csv").write_text("cell,status\n" + lines, encoding="utf-8")


def ran(folder: Path, words: tuple[str, ...]) -> tuple[int, str]:
    """Run a command as a user in a folder would; its exit code and all that it says."""
    before, out = Path.cwd(), io.StringIO()
    os.chdir(folder)
    try:
        with watched(), warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(out):
            warnings.simplefilter("always")
            code = call(words)
    finally:
        os.chdir(before)
    return code, out.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_sound_files_work(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path)
    code, said = ran(tmp_path, COMMANDS[name][0])
    assert code in {Exit.OK, Exit.UNSAFE}, said


@pytest.mark.draws
@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_file_ends_in_a_message(name: str) -> None:
    words, inputs = COMMANDS[name]

    @settings(
        max_examples=examples(4), suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate],
        database=None,
    )  # fmt: skip
    @given(
        st.sampled_from(inputs).flatmap(
            lambda file: st.tuples(st.just(file), damaged(FILES.get(file, b"cell,status\n0,u\n")))
        )
    )
    def run(given: tuple[str, bytes]) -> None:
        file, content = given
        with tempfile.TemporaryDirectory() as folder:
            lay_out(Path(folder))
            (Path(folder) / file).write_bytes(sealed(content) if file == "certificate.json" else content)
            before = {path: path.read_bytes() for path in Path(folder).iterdir()}
            code, said = ran(Path(folder), words)
            assert code in {Exit.OK, Exit.UNSAFE, Exit.BAD_INPUT}, said
            assert "Traceback" not in said
            assert "tablesafe failed" not in said
            assert all(path.read_bytes() == content for path, content in before.items()), "an input was changed"
            assert not any("\x1b" in line or "\x00" in line for line in said.splitlines()), "it steers the terminal"
            if "--json" in words:
                assert json.loads(said)["exit_code"] == code

    run()


OVERWRITING = [
    ("init", "records.csv", "-o", "records.csv"),
    ("tabulate", "records.csv", "--by", "region", "-o", "records.csv"),
    ("flag", "job.toml", "-o", "records.csv"),
    ("flag", "job.toml", "-o", "tree.hrc"),
    ("suppress", "table.jj", "-o", "table.jj"),
    ("audit", "table.jj", "-o", "table.csv"),
    ("audit", "table.jj", "--certificate", "table.jj"),
    ("attack", "table.jj", "--pattern", "made.csv", "-o", "made.csv"),
    ("convert", "table.jj", "table.jj"),
    ("convert", "table.tab", "table.rda"),
    ("redesign", "cells.toml", "-o", "cells.csv"),
]


@pytest.mark.parametrize("words", OVERWRITING, ids=" ".join)
def test_no_command_writes_over_what_it_reads(tmp_path: Path, words: tuple[str, ...]) -> None:
    lay_out(tmp_path)
    (tmp_path / "table.csv").symlink_to("table.jj")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, said = ran(tmp_path, words)
    assert all(path.read_bytes() == content for path, content in before.items() if path.name != "table.csv"), said
    if words[-1] != "table.csv":  # a link is replaced, and what it leads to is kept
        assert code == Exit.BAD_INPUT, said
