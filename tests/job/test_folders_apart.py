"""What stays in the office lies apart from what is published, however the folders are written."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from tablesafe.core.errors import InvalidJob
from tablesafe.job import load_job

JOB = """\
[source]
file = "firms.csv"
[dimensions.region]
[[rules]]
rule = "threshold"
n = 4
[output]
"""


def faults(folder: Path, output: str, *, before: str = "", place: str = "job.toml") -> str:
    """What is wrong with a job that writes so; nothing if it is taken."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "firms.csv").write_text("region\na\n")
    path.write_text(before + JOB + output, encoding="utf-8")
    try:
        load_job(path)
    except InvalidJob as error:
        return str(error)
    return ""


INSIDE = {
    "below it": ("public/t.csv", "public/internal"),
    "deep below it": ("public/t.csv", "public/a/b/internal"),
    "the same": ("public/t.csv", "public"),
    "with dots": ("public/t.csv", "other/../public/internal"),
    "with dots on both sides": ("x/../public/t.csv", "./public/./internal"),
    "in another case": ("public/t.csv", "Public/internal"),
    "in capitals": ("PUBLIC/t.csv", "public/INTERNAL"),
    "below the folder above": ("../t.csv", "internal"),
    "a public folder deeper down": ("public/2024/t.csv", "public/2024/internal"),
}


@pytest.mark.parametrize(("release", "internal"), INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("what", ["release", "report"])
def test_a_confidential_folder_inside_a_public_one_is_refused(
    tmp_path: Path, release: str, internal: str, what: str
) -> None:
    named = release if what == "release" else release.replace(".csv", ".html")
    said = faults(tmp_path, f'{what} = "{named}"\ninternal = "{internal}"\n', place="office/job.toml")
    assert ("stays in the office" if internal == "public" else "would be published with it") in said


APART = {
    "side by side": ("public/t.csv", "internal"),
    "names that only begin alike": ("public/t.csv", "public-internal"),
    "the folder of the job": ("public/t.csv", "."),
    "below the folder of the job, named": ("t.csv", "internal"),
    "elsewhere": ("public/t.csv", "../internal"),
    "a public folder beside it": ("out/public/t.csv", "out/internal"),
}


@pytest.mark.parametrize(("release", "internal"), APART.values(), ids=APART)
def test_folders_that_lie_apart_are_taken(tmp_path: Path, release: str, internal: str) -> None:
    assert faults(tmp_path, f'release = "{release}"\ninternal = "{internal}"\n', place="office/job.toml") == ""


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "public" / "hidden").mkdir(parents=True)
    (tmp_path / "internal").symlink_to(tmp_path / "public" / "hidden", target_is_directory=True)
    assert "would be published" in faults(tmp_path, 'release = "public/t.csv"\ninternal = "internal"\n')
    (tmp_path / "www").symlink_to(tmp_path / "public", target_is_directory=True)
    assert "would be published" in faults(tmp_path, 'release = "www/t.csv"\ninternal = "public/hidden/deep"\n')
    (tmp_path / "kept").mkdir()
    (tmp_path / "public" / "t.csv").symlink_to(tmp_path / "kept" / "t.csv")  # replaced, not followed
    assert "would be published" in faults(tmp_path, 'release = "public/t.csv"\ninternal = "public/x"\n')
    assert faults(tmp_path, 'release = "public/t.csv"\ninternal = "kept"\n') == ""


def test_accents_may_be_written_in_two_ways(tmp_path: Path) -> None:
    one, two = (unicodedata.normalize(form, "öffentlich") for form in ("NFC", "NFD"))
    assert "would be published" in faults(tmp_path, f'release = "{one}/t.csv"\ninternal = "{two}/internal"\n')


def test_a_release_inside_the_confidential_folder_is_refused(tmp_path: Path) -> None:
    for release in ("office/t.csv", "office/public/t.csv", "office/a/../b/t.csv"):
        said = faults(tmp_path, f'release = "{release}"\ninternal = "office"\n')
        assert "lie inside 'office'" in said or "stays in the office" in said
    assert faults(tmp_path, f'release = "{tmp_path}/public/t.csv"\ninternal = "{tmp_path}"\n') == ""


def test_without_a_name_the_default_lies_apart_too(tmp_path: Path) -> None:
    assert "same folder as 'internal'" in faults(tmp_path, 'release = "t.csv"\n')
    assert "same folder as 'internal'" in faults(tmp_path, 'report = "r.html"\n')
    assert faults(tmp_path, 'release = "public/t.csv"\nreport = "public/r.html"\n') == ""


@pytest.mark.parametrize(
    ("table", "key", "what"),
    [("run", "checkpoint", "worked out so far"), ("audit", "key", "private key")],
)
def test_other_secrets_do_not_lie_in_public_folders(tmp_path: Path, table: str, key: str, what: str) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "secret").write_text("")
    (tmp_path / "secret").write_text("")
    output = 'release = "public/t.csv"\n[{}]\n{} = "{}"\n'
    assert what in faults(tmp_path, output.format(table, key, "public/secret"))
    assert what not in faults(tmp_path, output.format(table, key, "secret"))


@pytest.mark.skipif(os.name != "posix", reason="links to folders are not for everyone elsewhere")
def test_a_link_to_itself_is_an_error_and_no_endless_search(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "would be published" in faults(tmp_path, 'release = "loop/t.csv"\ninternal = "loop/internal"\n')
