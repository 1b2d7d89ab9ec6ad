"""Coarser hierarchies: proposals in words, files that the job reads, codes that count elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import firms

from tablesafe.core.errors import TablesafeError
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.methods.redesign.steps import Step
from tablesafe.web.child import Desk
from tablesafe.web.desk import problem_of
from tablesafe.web.folders import Folder
from tablesafe.web.tasks.data import tree
from tablesafe.web.tasks.designs import are_ranges, coarser, codes, compared, mapped, proposals, strangers, words
from tablesafe.web.workspace import Quota, Workspace

JOB = """[source]
file = "firms.csv"
respondent = "firm"
[dimensions.nace]
[dimensions.region]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
n = 5
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    firms(tmp_path / "firms.csv")
    return Desk(tmp_path, lambda event: None)


def test_a_proposal_keeps_its_promise(desk: Desk) -> None:
    first = proposals(desk, JOB)[0]
    before = len(problem_of(desk, JOB).sensitive)
    assert first["words"].startswith("Merge ")
    found = coarser(desk, JOB, first["step"])
    (desk.folder / "new.hrc").write_text(found["text"])
    name = first["step"]["dimension"]
    now = JOB.replace(f"[dimensions.{name}]", f'[dimensions.{name}]\nhierarchy = "new.hrc"')
    assert before - len(problem_of(desk, now).sensitive) == first["removed"] > 0
    told = compared(desk, JOB, now)
    assert told["sensitive"] == (before, before - first["removed"])
    assert told["loss"] == pytest.approx(first["loss"])


def test_what_cannot_be_merged_is_said(desk: Desk) -> None:
    assert [code for code, *_ in codes(desk, JOB)["region"]] == ["North", "South", "West"]
    with pytest.raises(TablesafeError, match="At least two"):
        coarser(desk, JOB, {"kind": "join", "dimension": "region", "codes": ["North"]})
    with pytest.raises(TablesafeError, match="no dimension"):
        coarser(desk, JOB, {"kind": "join", "dimension": "country", "codes": ["a", "b"]})


def test_steps_in_words() -> None:
    assert words(Step(kind="join", dimension="size", codes=("50–249", "250+"))) == "Merge size 50–249 with 250+"
    assert words(Step(kind="join", dimension="d", codes=("a", "b", "c"))) == "Merge d a with b and c"
    assert words(Step(kind="join", dimension="d", codes=tuple("abcdef"))) == "Merge d a with b, c, d and …"
    assert words(Step(kind="drop parts", dimension="d", codes=("a",))) == "Drop the parts of a of d"
    assert words(Step(kind="drop level", dimension="d")) == "Drop the finest level of d"


@pytest.mark.parametrize(
    ("found", "ranges"),
    [(["0-9", "10-49", "50+"], True), (["< 1", "1 to 4", "5 and more", "unknown"], True), (["10", "11", "12"], False)],
)
def test_only_neighbouring_ranges_are_merged(found: list[str], ranges: bool) -> None:
    assert are_ranges(Hierarchy.flat(found)) is ranges


def test_codes_that_a_hierarchy_lacks_are_mapped(desk: Desk) -> None:
    (desk.folder / "nace.hrc").write_text("A\n@a.01\n@A02\nB\n@B05\n@B06\n@C10\n")
    draft = {"source": {"file": "firms.csv"}, "dimensions": {"nace": {"hierarchy": "nace.hrc"}}, "rules": []}
    found = tree(desk, draft, "nace")
    assert found["strange"] == [("A01", "=a.01"), ("C11", "")]  # C11 is not C10, and there is no C
    told = mapped(desk, draft, "nace", {"A01": "=a.01", "C11": ""})
    (desk.folder / "nace-2.hrc").write_text(told["text"])
    new = Hierarchy.from_hrc(desk.folder / "nace-2.hrc")
    assert new.codes[new.position("A01")] == "a.01"
    assert "C11" in new.leaves
    draft["dimensions"] = {"nace": {"hierarchy": "nace-2.hrc"}}
    assert tree(desk, draft, "nace")["many"] == 0


def test_a_code_that_a_hierarchy_lacks_goes_below_the_one_that_it_begins_with(desk: Desk) -> None:
    (desk.folder / "nace.hrc").write_text("A\n@A01\n@A02\nB\n@B05\nC\n@C10\n@C11\n")
    draft = {"source": {"file": "firms.csv"}, "dimensions": {"nace": {"hierarchy": "nace.hrc"}}, "rules": []}
    assert tree(desk, draft, "nace")["strange"] == [("B06", ">B")]
    (desk.folder / "nace-2.hrc").write_text(mapped(desk, draft, "nace", {"B06": ">B"})["text"])
    new = Hierarchy.from_hrc(desk.folder / "nace-2.hrc")
    assert {"B05", "B06"} <= set(new.leaves)  # B had one part only, and was that
    assert "B = B05 + B06" in {str(each) for each in new.as_equations()}


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("4932", ">493"),  # 493 had one part, 4931, and stands for it: the new one is no misspelt 493
        ("5631012", ""),  # all digits but one are the same as in 5631013, but it is another code
        ("Nordrhein Westfalen", "=Nordrhein-Westfalen"),
        ("Nordrhein-Westfahlen", "=Nordrhein-Westfalen"),
    ],
)
def test_another_number_is_another_code_but_a_name_may_be_misspelt(code: str, place: str) -> None:
    tree = Hierarchy.from_pairs(
        [
            ("All", "49"),
            ("All", "5631013"),
            ("All", "Nordrhein-Westfalen"),
            ("49", "491"),
            ("49", "493"),
            ("493", "4931"),
        ]
    )
    assert strangers(tree, [*tree.leaves, code], 10)["strange"] == [(code, place)]


def test_a_hierarchy_made_here_is_a_file_of_the_job_and_can_be_undone(tmp_path: Path) -> None:
    workspace = Workspace.make(tmp_path / "w", Folder(), Quota())
    before = {"labels": "l.csv", "lengths": [1], "kind": "prefixes"}
    workspace.draft = {"source": {"file": "f.csv"}, "dimensions": {"nace": dict(before)}}
    workspace.store("NACE.hrc", "x\n")
    workspace.recode("nace", "a\n@b\n", "All", "Merge", merged=True)
    now = workspace.draft["dimensions"]["nace"]
    assert now == {"labels": "l.csv", "hierarchy": "nace-2.hrc", "kind": "hrc", "total": "All"}
    assert (workspace.path / "nace-2.hrc").read_text() == "a\n@b\n"
    workspace.undo_recode()
    assert workspace.draft["dimensions"]["nace"] == before
    assert list(workspace.files) == ["NACE.hrc"]
