"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import core, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

import seeds
from seeds import VARIABLE, session_seed
from slow import TESTS, slow_names
from stand_ins import stand_ins
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table
from tablesafe.work import budget

settings.register_profile(  # no test asserts a time: machines are noisy; examples are new in each run, in CI too
    "tablesafe", max_examples=40, deadline=None, derandomize=False, print_blob=True
)
settings.load_profile("tablesafe")
# Hypothesis also draws the numbers and texts that it finds in whatever modules are loaded by then. Which those are
# depends on the tests that the same process ran before: the same seed would draw other examples on another machine.
assert callable(providers._get_local_constants)
providers._get_local_constants = lambda: providers._local_constants  # type: ignore[assignment]

REPOSITORY = TESTS.parent


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis follow the seed of the session, unless --hypothesis-seed asks for another; draw more.

    A shell that starts something in the background tells it to ignore Ctrl-C, and so do all that it starts: the tests
    that press it would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--times"):
        os.environ[seeds.TIMES] = str(config.getoption("--times"))
    if config.getoption("--hypothesis-seed", None) is None:
        core.global_force_seed = session_seed()  # type: ignore[assignment]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out what tests/slow.txt names, take the first case of each test, and draw a tenth of the examples",
    )
    parser.addoption("--times", type=int, default=0, help="property tests only, with so many times as many examples")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A quick run does not even load the folders and files that it leaves out."""
    if not config.getoption("--quick") or not collection_path.is_relative_to(TESTS):
        return None
    return collection_path.relative_to(TESTS).as_posix() in slow_names() or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects are there when all tests are found, and stay: to look through them for garbage, again and
    again, was a tenth of all that the tests took."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow; leave it out of a quick run, which looks at fewer examples; look at more where asked to."""
    slow = slow_names()
    for item in items:
        path = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        names = {path.as_posix(), *(folder.as_posix() for folder in path.parents)}
        if slow & (names | {f"{path.as_posix()}::{item.name.partition('[')[0]}"}):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: _when(item, slow))
    quick, times = config.getoption("--quick"), config.getoption("--times")
    if not quick and not times:
        return
    drawing = {id(test): test for item in items if is_hypothesis_test(test := getattr(item, "obj", None))}
    for test in drawing.values():
        given = test._hypothesis_internal_use_settings
        number = given.max_examples * times if times else max(3, given.max_examples // 10)
        test._hypothesis_internal_use_settings = settings(given, max_examples=number)
    out = {id(item) for item in items if item.get_closest_marker("slow")} | _further_cases(items) if quick else set()
    if times:
        out |= {id(i) for i in items if id(getattr(i, "obj", None)) not in drawing and not _draws_itself(i)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in out])
    items[:] = [item for item in items if id(item) not in out]


def _when(item: pytest.Item, slow: frozenset[str]) -> int:
    """What compiles every loop goes first, for the others load what it leaves; then the long files, and the short ones
    fill the gap that is left when one of several processes is done."""
    path = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
    if path == "pipeline/test_warming.py":
        return 0
    return 1 if slow & {path, path.partition("/")[0]} else 2


def _further_cases(items: list[pytest.Item]) -> set[int]:
    """All cases of a test but the first: what one case finds most others would find too."""
    first: dict[tuple[Path, str], int] = {}
    return {id(item) for item in items if first.setdefault((item.path, _test_of(item)), id(item)) != id(item)}


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2].partition("[")[0]


def _draws_itself(item: pytest.Item) -> bool:
    """Whether a test is given a fresh seed, or draws examples of its own."""
    if item.get_closest_marker("draws"):
        return True
    given = getattr(item, "callspec", None)
    return given is not None and any(type(value) is int and value in seeds.drawn for value in given.params.values())


def pytest_report_header() -> str:
    return f"seed: {session_seed()} ({VARIABLE}={session_seed()} repeats this run)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the seed again below the failures, where people look, and where a quiet run has no header."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"{VARIABLE}={session_seed()} repeats this run.")


@pytest.fixture(scope="session", autouse=True)
def _only_the_processor_has_a_clock() -> Iterator[None]:
    """A user does not wait long for a busy machine; the tests do, so that they say the same there.

    What a clock on the wall ends is tried with clocks that the tests set themselves, and in processes of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "wall", budget.worked)
        yield


DRAWN = {"report", "secrecy", "web", "test_quality.py", "test_progress_told.py", "test_densities.py"}
"""Where pictures in reports are looked at: elsewhere nobody does, and they take longer than all the rest of a run."""


@pytest.fixture(scope="module", autouse=True)
def _pictures_where_they_are_looked_at(request: pytest.FixtureRequest) -> Iterator[None]:
    if DRAWN & set(request.path.parts):
        yield
        return
    from tablesafe.report import writing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "pictures", lambda *args, **options: {})
        yield


@pytest.fixture(scope="session")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of benchmark instances, or small stand-ins; a test that needs what has none is skipped by name."""
    folder = Path(os.environ.get("TABLESAFE_INSTANCES", REPOSITORY.parent / "shared" / "instances"))
    return folder if folder.is_dir() else stand_ins(tmp_path_factory.mktemp("instances"))


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """Published worked examples, copied into the repository with author, title and table number."""
    return Path(__file__).resolve().parent / "papers" / "data"


@pytest.fixture(scope="session")
def dandekar(paper_data: Path) -> Problem:
    """Dandekar & Cox, "Synthetic Tabular Data" (2002), Table 1: 10 × 6 × 4 with totals, 24 sensitive cells."""
    frame = pl.read_csv(paper_data / "dandekar_10x6x4" / "cells.csv").with_columns(
        pl.col("col", "row", "level").cast(pl.String)
    )
    sizes = {"col": 10, "row": 6, "level": 4}
    dimensions = {d: Hierarchy.from_pairs([(str(n), str(i)) for i in range(1, n)]) for d, n in sizes.items()}
    columns = ["sensitive", "protection", "synthetic_value_2002"]
    table = Table.from_cells(frame, dimensions=dimensions, columns=columns)
    mask = table.columns["sensitive"] > 0
    return Problem(table, sensitivity=Sensitivity.of(mask, np.asarray(table.columns["protection"])))
