"""What is given to others: a wheel that runs by itself, and files about the program that tell the same version."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tablesafe

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LIMIT_S = 1800


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"), ("conda/meta.yaml", r'^  version: "(.+)"$'),
        ("r/tablesafe/DESCRIPTION", r"^Version: (.+)$"),
    ],
)  # fmt: skip
def test_every_file_tells_the_same_version(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert found is not None
    assert found[1] == PROJECT["version"] == tablesafe.__version__


def test_the_recipe_needs_what_the_project_needs() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    needed = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.strip("- ").replace("python-duckdb", "duckdb").replace(" ", "") for line in needed.splitlines()}
    assert listed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_the_project_names_no_address_that_leads_nowhere() -> None:
    assert "example" not in str(PROJECT.get("urls", {}))


def test_the_image_runs_as_a_user_without_rights() -> None:
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    last = [step.split()[1] for step in steps if step.startswith("USER ")][-1]
    assert last != "root"
    assert not any(step.startswith("USER root") for step in steps)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sources and unpacked into an empty folder."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "wheel", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    wheels = list(place.glob("tablesafe-*.whl"))
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip("no package index: the wheel cannot be built without hatchling")
    assert len(wheels) == 1, built.stderr
    subprocess.run([*pip, "install", "--no-deps", "--target", str(place / "site"), str(wheels[0])], check=True)
    return place / "site"


def said(installed: Path, folder: Path, *arguments: str, **variables: str) -> str:
    surroundings = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1", **variables}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=surroundings, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_runs_by_itself(installed: Path, tmp_path: Path) -> None:
    where = said(installed, tmp_path, "-c", "import tablesafe; print(tablesafe.__file__)")
    assert Path(where.strip()).is_relative_to(installed)
    assert said(installed, tmp_path, "-m", "tablesafe", "--version").strip() == PROJECT["version"]
    assert (installed / "bin" / "tablesafe").exists() or (installed / "Scripts" / "tablesafe.exe").exists()
    assert (installed / "tablesafe" / "py.typed").exists()


def test_the_demo_runs_from_the_wheel_where_nothing_is_compiled(installed: Path, tmp_path: Path) -> None:
    """The first thing that a newcomer does, on a machine that has never seen tablesafe."""
    empty = tmp_path / "compiled"
    empty.mkdir()
    told = json.loads(
        said(installed, tmp_path, "-m", "tablesafe", "demo", "-o", "demo", "--json", NUMBA_CACHE_DIR=str(empty))
    )
    assert told["exit_code"] == 0
    assert (tmp_path / "demo" / "job.toml").exists()
    assert any((tmp_path / "demo").rglob("report.html"))
