"""The R package: it builds and installs, its vignette and tests run, and every exported name has a page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "r" / "tablesafe"
needs_r = pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
LIMIT_S = 900


def run_r(library: Path, *arguments: str) -> str:
    """What R says; it must end well."""
    command = f"options(tablesafe.command = c({json.dumps(sys.executable)}, '-m', 'tablesafe'))\n"
    (library / "profile.R").write_text(command)
    settings = {"R_LIBS": str(library), "R_PROFILE_USER": str(library / "profile.R"), "LC_ALL": "C.UTF-8"}
    surroundings = {**os.environ, **settings}
    done = subprocess.run(arguments, env=surroundings, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the package, installed with its pages checked."""
    place = tmp_path_factory.mktemp("library")
    if subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True).returncode:
        pytest.skip("R lacks jsonlite (Debian: r-cran-jsonlite)")
    run_r(place, "R", "CMD", "INSTALL", "--no-test-load", f"--library={place}", str(PACKAGE))
    return place


def exported() -> list[str]:
    return re.findall(r"^export\((\w+)\)", (PACKAGE / "NAMESPACE").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("name", exported())
def test_every_exported_function_has_a_page_with_its_arguments(name: str) -> None:
    page = (PACKAGE / "man" / f"{name}.Rd").read_text(encoding="utf-8")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "R").glob("*.R"))
    header = re.search(rf"^{name} <- function\((.*?)\) \{{", sources, flags=re.DOTALL | re.MULTILINE)
    assert header is not None
    for argument in re.findall(r"(\w+)(?: = [^,]+)?(?:,|$)", header[1]):
        assert re.search(rf"\\item{{[^}}]*\b{argument}\b", page), argument


def test_the_version_is_that_of_the_program() -> None:
    import tablesafe

    assert f"Version: {tablesafe.__version__}\n" in (PACKAGE / "DESCRIPTION").read_text()


@needs_r
def test_its_pages_are_well_formed_and_say_what_the_code_does(library: Path) -> None:
    folder = json.dumps(str(PACKAGE / "man"))
    pages = f"for (page in list.files({folder}, full.names = TRUE)) print(tools::checkRd(page))"
    program = f"{pages}; print(tools::codoc('tablesafe'))"
    assert run_r(library, "Rscript", "-e", program).split() == []


@needs_r
def test_mistakes_are_told_before_the_program_is_called(library: Path) -> None:
    run_r(library, "Rscript", str(PACKAGE / "tests" / "errors.R"))


@needs_r
def test_the_vignette_runs(library: Path) -> None:
    said = run_r(library, "Rscript", str(PACKAGE / "inst" / "vignette" / "turnover.R"))
    assert "NOT safe" in said
    assert "activity" in said
