"""Table redesign: every proposed design is the table that the recoded records make, and does what it promises."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tablesafe as ts
from tablesafe.cli.app import call
from tablesafe.core.errors import InvalidOption
from tablesafe.methods.redesign.candidates import Wishes, candidates
from tablesafe.methods.redesign.collapse import take
from tablesafe.methods.redesign.measure import Scale, front
from tablesafe.methods.redesign.steps import Step, cut, join, joined_name, recode_text
from tablesafe.work.run import OUTSIDERS

REGIONS = ts.Hierarchy.from_pairs(
    [("all", "N"), ("all", "S"), ("N", "n1"), ("N", "n2"), ("N", "n3"), ("S", "s1"), ("S", "s2"), ("S", "s3")]
)
LEAVES = ("n1", "n2", "n3", "s1", "s2", "s3")
SIZES = ("a", "b", "c", "d")

ROWS = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.sampled_from(SIZES), st.integers(1, 50), st.integers(0, 9)),
    min_size=12,
    max_size=60,
)


def records(rows: list[tuple[str, str, int, int]]) -> pl.DataFrame:
    """Records of firms; one firm may stand in several cells."""
    return pl.DataFrame(rows, schema=["region", "size", "value", "firm"], orient="row")


def example() -> pl.DataFrame:
    random = np.random.default_rng(4)
    weights = np.array([30, 20, 4, 15, 4, 3]) / 76
    return pl.DataFrame(
        {
            "region": random.choice(LEAVES, 120, p=weights),
            "size": random.choice(SIZES, 120),
            "value": random.integers(1, 100, 120),
            "firm": np.arange(120),
        }
    )


def by_cell(problem: ts.Problem) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """What is known of each cell, by its codes."""
    table = problem.table
    codes = zip(*(column.to_list() for column in table.code_columns().values()), strict=True)
    count = [None] * len(table) if table.count is None else table.count.tolist()
    largest = table.largest(2).tolist()
    facts = zip(table.value.tolist(), count, problem.sensitivity.mask.tolist(), map(tuple, largest), strict=True)
    return dict(zip(codes, facts, strict=True))


def recoded(frame: pl.DataFrame, steps: tuple[Step, ...]) -> pl.DataFrame:
    """The records with joined codes in the place of their own."""
    for step in steps:
        column = pl.col(step.dimension)
        new = pl.when(column.is_in(step.codes)).then(pl.lit(step.into)).otherwise(column)
        frame = frame.with_columns(new.alias(step.dimension))
    return frame


@settings(max_examples=4)
@given(ROWS, st.booleans(), st.booleans())
def test_each_design_is_what_the_recoded_records_make(
    rows: list[tuple[str, str, int, int]], by_firm: bool, from_cells: bool
) -> None:
    frame = records(rows)
    respondent = "firm" if by_firm else None
    rules = [ts.Threshold(n=3), ts.PPercent(p=20)]
    table = ts.tabulate(frame, dimensions={"region": REGIONS, "size": None}, value="value", respondent=respondent)
    if from_cells and not by_firm:
        object.__setattr__(table, "origin", None)
    found = ts.redesign(ts.Problem(table, rules), steps=3, dimensions=False, margins=False)
    assume(len(found) > 0 and all(step.kind == "join" for step in found.steps))
    new = found.apply()
    old = table.dimensions
    plain = {name: replace(tree, aliases=old[name].aliases) for name, tree in new.table.dimensions.items()}
    again = ts.tabulate(recoded(frame, found.steps), dimensions=plain, value="value", respondent=respondent)
    assert by_cell(new) == by_cell(ts.Problem(again, rules))
    assert all(point.exact for point in found.path)
    risks = [point.design.risk for point in found.path]
    assert all(later < before for before, later in pairwise(risks))
    assert new.table.residual().tolist() == [0] * len(new.table.totals)


@settings(max_examples=4)
@given(ROWS)
def test_candidates_keep_their_promises(rows: list[tuple[str, str, int, int]]) -> None:
    table = ts.tabulate(records(rows), dimensions={"region": REGIONS, "size": None}, value="value")
    problem = ts.Problem(table, [ts.Threshold(n=3), ts.PPercent(p=20)])
    scale = Scale.of(problem, risk="cells", weight="records")
    for each in candidates(problem, scale, Wishes(ordered=("size",))):
        after = scale.measure(take(problem, each.step).problem)
        assert scale.start.risk - after.risk == pytest.approx(each.risk)
        assert scale.start.cells - after.cells == each.cells
        assert scale.start.information - after.information == pytest.approx(each.bits, abs=1e-9)


def test_the_first_steps_join_what_is_small() -> None:
    problem = ts.Problem(
        ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}, value="value"), [ts.Threshold(n=3)]
    )
    found = ts.redesign(problem, keep=("size",), dimensions=False, margins=False)
    assert found.path[-1].design.risk == 0
    assert "s3" in {code for step in found.steps for code in step.codes}
    assert found.apply().table.dimensions["size"] == problem.table.dimensions["size"]
    frame = found.frame()
    assert frame["step"][0] == "as it is"
    assert frame["sensitive"].is_sorted(descending=True)
    assert frame["loss percent"].is_sorted()
    assert frame["sensitive"].to_list()[-1] == 0
    singles = found.singles()
    assert singles["best"].any()
    assert singles.height == len(found.first)
    assert set(found.recodes()["dimension"]) == {"region"}
    assert found.apply(0) is problem
    assert str(found).startswith(f"{len(found)} steps: {len(problem.sensitive)} sensitive cells become 0")


def test_ordered_dimensions_are_joined_in_runs_only() -> None:
    frame = pl.DataFrame({"age": [f"{i}" for i in range(9) for _ in range(1 + i % 3)], "x": ["p", "q", "r"] * 6})
    problem = ts.Problem(ts.tabulate(frame, dimensions=["age", "x"]), [ts.Threshold(n=4)])
    found = ts.redesign(problem, ordered=["age"], keep=["x"], dimensions=False, margins=False, steps=9)
    order = {str(i): i for i in range(9)}
    for step in found.steps:
        if step.kind == "join":
            inner = sorted(order[part] for code in step.codes for part in code.split("+"))
            assert inner == list(range(inner[0], inner[-1] + 1))


def test_what_must_stay_stays() -> None:
    table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None})
    problem = ts.Problem(table, [ts.Threshold(n=6)])
    found = ts.redesign(problem, keep={"region": ["n3", "N", "S"], "size": ["a"]})
    codes = found.apply().table.dimensions
    assert {"n3", "N", "S"} <= set(codes["region"].codes)
    assert "a" in codes["size"].codes
    assert all("n3" not in step.codes for step in found.steps)


def test_joined_codes_get_the_names_that_users_give() -> None:
    table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None})
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    step = Step(kind="join", dimension="region", codes=("s2", "s3"), into="s2+s3")
    named = ts.redesign(problem).apply([step], names={"s2+s3": "rest of S"})
    tree = named.table.dimensions["region"]
    assert "rest of S" in tree.codes
    assert tree.codes[tree.position("s2")] == tree.codes[tree.position("s3")] == "rest of S"
    found = ts.redesign(problem, keep=("size",), names={"s2+s3": "rest of S"}, dimensions=False, margins=False, pace=0)
    if any(set(step.codes) == {"s2", "s3"} for step in found.steps):
        assert any(step.into == "rest of S" for step in found.steps)


def test_a_table_left_out_is_withheld_by_design() -> None:
    table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None})
    problem = ts.Problem(table, [ts.Threshold(n=3)])
    new = ts.redesign(problem, steps=1).apply([Step(kind="leave out", margin=("region", "size"))])
    inner = np.array([code != "Total" for code in table.code_columns()["size"]]) & np.array(
        [code != "all" for code in table.code_columns()["region"]]
    )
    assert (new.withheld == inner).all()
    assert len(new.table) == len(table)
    assert ts.protect(new, ts.Suppress(time_limit_s=2), ts.Run(attackers=OUTSIDERS)).frame().height == (~inner).sum()


def counted(values: list[list[int]]) -> ts.Problem:
    """Two by two counts with their totals."""
    frame = pl.DataFrame({"p": ["a", "a", "b", "b"], "q": ["x", "y", "x", "y"], "n": [*values[0], *values[1]]})
    table = ts.Table.from_cells(frame, dimensions=["p", "q"], value="n", count="n", missing_totals="compute")
    return ts.Problem(table, [ts.Threshold(n=3)])


@pytest.mark.parametrize(
    ("values", "before", "after"),
    [
        ([[2, 4], [5, 6]], 1, 0),  # the margins leave room
        ([[1, 0], [9, 0]], 2, 2),  # nobody is in y, so all of a is in x: the inner cells follow from the margins
    ],
)
def test_leaving_out_what_follows_from_the_rest_removes_no_risk(
    values: list[list[int]], before: int, after: int
) -> None:
    problem = counted(values)
    scale = Scale.of(problem, risk="cells", weight="records")
    assert scale.start.sensitive == before
    left_out = take(problem, Step(kind="leave out", margin=("p", "q"))).problem
    assert scale.measure(left_out).sensitive == after


def test_recodes_can_be_written_for_tau_argus() -> None:
    flat = ts.Hierarchy.flat(["1", "2", "3", "4"], total="Total")
    assert recode_text(flat, join(flat, ["2", "3"], "2+3").hierarchy) == "2+3: 2, 3\n"
    assert recode_text(REGIONS, cut(REGIONS, ["S"]).hierarchy) == "<TREERECODE>\nS\n"
    with pytest.raises(InvalidOption, match="not join its codes"):
        recode_text(REGIONS, join(REGIONS, ["n1", "n2"], "n1+n2").hierarchy)


def test_linked_margins_stay_linked() -> None:
    frame = example().with_columns(kind=pl.Series(np.random.default_rng(1).choice(["p", "q", "r"], 120)))
    margins = [["region", "size"], ["size", "kind"]]
    table = ts.tabulate(frame, dimensions={"region": REGIONS, "size": None, "kind": None}, margins=margins)
    problem = ts.Problem(table, [ts.Threshold(n=4)])
    found = ts.redesign(problem, steps=4)
    for point in found.path:
        assert not point.problem.table.residual().any()
    step = Step(kind="drop level", dimension="region")
    new = found.apply([step])
    assert "n1" not in new.table.dimensions["region"].codes
    again = ts.tabulate(
        frame.with_columns(region=pl.col("region").str.slice(0, 1).str.to_uppercase()),
        dimensions={"region": ts.Hierarchy.from_pairs([("all", "N"), ("all", "S")]), "size": None, "kind": None},
        margins=margins,
    )  # fmt: skip
    assert by_cell(new) == by_cell(ts.Problem(again, [ts.Threshold(n=4)]))


def test_without_records_unlisted_contributors_are_taken_to_be_the_same() -> None:
    """Two cells of two respondents each, of whom one is listed: they may share a respondent, so three are not sure."""
    frame = pl.DataFrame(
        {
            "x": ["a", "b", "c", "Total"],
            "value": [10, 10, 90, 110],
            "n": [2, 2, 9, 10],
            "max": [6, 7, 20, 20],
            "who": ["p", "q", "r", "r"],
        }
    )
    table = ts.Table.from_cells(frame, dimensions=["x"], count="n", largest=["max"], identity=["who"])
    problem = ts.Problem(table, [ts.Threshold(n=4)])
    step = Step(kind="join", dimension="x", codes=("a", "b"), into="a+b")
    new = take(problem, step)
    assert not new.exact
    cell = new.problem.table.index(x="a+b")
    assert new.problem.table.count is not None
    assert new.problem.table.count[cell] == 2
    assert new.problem.sensitivity.mask[cell]
    assert new.problem.table.value[cell] == 20


def test_what_was_said_by_hand_stays_where_a_cell_stays() -> None:
    table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}, value="value")
    rules = [ts.Threshold(n=3)]
    start = ts.Problem(table, rules)
    cell, waived = table.index(region="n1", size="a"), int(start.sensitive[0])
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[cell] = True
    keep = np.ones(len(table), dtype=np.bool_)
    keep[waived] = False
    problem = start.replace(sensitivity=(start.sensitivity | ts.Sensitivity.of(mask, 5.0)).where(keep))
    new = take(problem, Step(kind="drop parts", dimension="region", codes=("S",))).problem
    at = new.table.index(region="n1", size="a")
    assert new.sensitivity.mask[at]
    assert new.sensitivity.upper[at] == 5


def test_levels_without_rules_can_be_dropped_but_not_joined() -> None:
    table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}, value="value")
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[table.index(region="s3")] = True
    problem = ts.Problem(table, sensitivity=ts.Sensitivity.of(mask, 1.0))
    found = ts.redesign(problem)
    assert all(step.kind != "join" for step in found.steps)
    assert found.path[-1].design.risk == 0
    with pytest.raises(InvalidOption, match="no rules"):
        take(problem, Step(kind="join", dimension="region", codes=("s2", "s3"), into="s2+s3"))


# -- hierarchies ---------------------------------------------------------------------------------------------------


def test_old_codes_are_other_names_of_the_new_ones(tmp_path: Path) -> None:
    new = join(REGIONS, ["n1", "n3"], "n1+n3").hierarchy
    assert new.codes == ("all", "N", "n1+n3", "n2", "S", "s1", "s2", "s3")
    assert new.position("n1") == new.position("n3") == 2
    short = cut(new, ["S"]).hierarchy
    assert short.codes == ("all", "N", "n1+n3", "n2", "S")
    assert short.position("s2") == 4
    short.to_hrc(tmp_path / "regions.hrc")
    read = ts.Hierarchy.from_hrc(tmp_path / "regions.hrc", total="all")
    assert read == short
    assert all(read.position(code) == short.position(code) for code in LEAVES)


def test_branches_can_be_joined_with_what_is_below_them() -> None:
    tree = ts.Hierarchy.from_pairs(
        [("t", "A"), ("t", "B"), ("t", "C"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2")]
    )
    new = join(tree, ["A", "B"], "A+B").hierarchy
    assert [str(equation) for equation in new.as_equations()] == ["t = A+B + C", "A+B = a1 + a2 + b1 + b2"]
    with pytest.raises(InvalidOption, match="one of them has parts"):
        join(tree, ["A", "C"], "A+C")


@pytest.mark.parametrize(
    ("codes", "into", "message"),
    [
        (["n1"], "x", "At least two"),
        (["n1", "s1"], "x", "not parts of the same code"),
        (["n1", "n2", "n3"], "x", "all parts of 'N'"),
        (["n1", "n2"], "s1", "has a code 's1' already"),
        (["all", "N"], "x", "not parts of the same code"),
    ],
)
def test_joins_that_make_no_sense_are_refused(codes: list[str], into: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        join(REGIONS, codes, into)


def test_long_names_are_shortened_and_never_clash() -> None:
    assert joined_name(["a", "b"]) == "a+b"
    assert joined_name([f"code {i}" for i in range(9)]) == "code 0+…+code 8"
    assert joined_name(["a", "b"], ["a+b"]) == "a+b'"


def test_the_front_keeps_what_nothing_beats() -> None:
    assert front([5, 3, 3, 1], [0.0, 0.1, 0.2, 0.2]).tolist() == [True, True, False, True]


# -- bad input, and the command ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be"),
        ({"target": -1}, "target must be"),
        ({"pace": 1}, "pace must be"),
        ({"risk": "cell"}, "risk must be one of"),
        ({"weight": "cells"}, "weight must be one of"),
        ({"ordered": ["sise"]}, "did you mean 'size'"),
        ({"keep": ["regions"]}, "did you mean 'region'"),
        ({"complementary_s": 0}, "complementary_s must be"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    problem = ts.Problem(ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}), [ts.Threshold(n=3)])
    with pytest.raises(InvalidOption, match=message):
        ts.redesign(problem, **options)


def test_a_table_without_dimensions_is_refused() -> None:
    table = ts.Table.from_equations("t = a + b", {"t": 3, "a": 1, "b": 2})
    with pytest.raises(InvalidOption, match="without dimensions"):
        ts.redesign(ts.Problem(table))


def test_steps_that_are_not_there_cannot_be_applied() -> None:
    problem = ts.Problem(ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}), [ts.Threshold(n=3)])
    found = ts.redesign(problem, steps=2)
    with pytest.raises(InvalidOption, match=f"has {len(found)} steps, so 9"):
        found.apply(9)
    with pytest.raises(InvalidOption, match="no dimension 'colour'"):
        found.apply([Step(kind="drop dimension", dimension="colour")])
    with pytest.raises(InvalidOption, match="no published table by size"):
        found.apply(
            [Step(kind="leave out", margin=("region", "size")), Step(kind="leave out", margin=("size", "region"))]
        )


def write_job(folder: Path, kind: str) -> Path:
    REGIONS.to_hrc(folder / "regions.hrc")
    if kind == "records":
        example().write_csv(folder / "data.csv")
        source = '[source]\nfile = "data.csv"\nrespondent = "firm"\n'
    else:
        table = ts.tabulate(example(), dimensions={"region": REGIONS, "size": None}, value="value", largest=3)
        amounts = {f"max{i}": table.largest(3)[:, i] for i in range(3)}
        table.cells().drop("records", strict=False).with_columns(
            **{k: pl.Series(v) for k, v in amounts.items()}
        ).write_csv(folder / "data.csv")
        source = (
            '[source]\nfile = "data.csv"\nkind = "cells"\ncount = "count"\ncontributions = ["max0", "max1", "max2"]\n'
        )
    (folder / "job.toml").write_text(
        source + '[dimensions.region]\nhierarchy = "regions.hrc"\ntotal = "all"\n[dimensions.size]\n'
        '[response]\nvalue = "value"\n[[rules]]\nrule = "threshold"\nn = 3\n[[rules]]\nrule = "p_percent"\np = 10\n',
        encoding="utf-8",
    )
    return folder / "job.toml"


@pytest.mark.parametrize("kind", ["records", "cells"])
def test_the_command_writes_a_job_with_fewer_sensitive_cells(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tablesafe.job import load_job
    from tablesafe.pipeline import build_problem

    job = write_job(tmp_path, kind)
    new, steps, recodes = tmp_path / "elsewhere" / "new.toml", tmp_path / "steps.csv", tmp_path / "recodes.csv"
    assert call(
        ["redesign", str(job), "--steps", "4", "--job", str(new), "-o", str(steps), "--recodes", str(recodes)]
    ) == 0  # fmt: skip
    assert "sensitive cells become" in capsys.readouterr().out
    last = pl.read_csv(steps).to_dicts()[-1]
    problem = build_problem(load_job(new))
    public = ~problem.withheld
    assert int((problem.sensitivity.mask & public).sum()) == last["sensitive"]
    assert int(public.sum()) == last["cells"]
    assert pl.read_csv(recodes).columns == ["dimension", "code", "new code"]
    assert tomllib.loads(new.read_text(encoding="utf-8"))["source"]["kind" if kind == "cells" else "respondent"]


def test_the_command_names_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_job(tmp_path, "records")
    assert call(["redesign", str(job), "--name", "A+B"]) == 2
    assert "--name 'A+B=North'" in capsys.readouterr().err
    assert call(["redesign", str(job), "--keep", "colour"]) == 2


@settings(max_examples=4)
@given(rows=ROWS)
def test_single_steps_promise_what_they_keep_where_groups_are_judged(rows: list[tuple[str, str, int, int]]) -> None:
    """A group is a row with its parts, so joined cells cannot be judged by themselves."""
    table = ts.tabulate(records(rows), dimensions={"region": REGIONS, "size": None}, zeros=True)
    problem = ts.Problem(table, rules=[ts.Levels(of=ts.GroupDisclosure(over=("size",)))])
    found = ts.redesign(problem, steps=4)
    assert all(after.design.risk < before.design.risk for before, after in pairwise(found.path))
    for each in found.first:
        left = found.scale.measure(take(problem, each.step).problem).risk
        assert each.risk == found.scale.start.risk - left > 0


def test_records_are_counted_where_firms_stand_in_several_cells() -> None:
    frame = example().with_columns(firm=pl.col("firm") % 7)
    problem = ts.Problem(
        ts.tabulate(frame, dimensions={"region": REGIONS, "size": None}, respondent="firm"), rules=[ts.Threshold(n=3)]
    )
    found = ts.redesign(problem, steps=1)
    assert found.first
    for each in found.first:
        now = found.scale.measure(take(problem, each.step).problem)
        assert each.bits == pytest.approx(found.scale.start.information - now.information)


@pytest.mark.parametrize("options", [{"target": "none"}, {"pace": "slow"}, {"complementary_s": "long"}])
def test_text_where_numbers_are_due_is_refused(options: dict[str, Any]) -> None:
    problem = ts.Problem(ts.tabulate(example(), dimensions=["region", "size"]), rules=[ts.Threshold(n=3)])
    with pytest.raises(InvalidOption, match=next(iter(options))):
        ts.redesign(problem, **options)


def asking() -> pl.DataFrame:
    """A firm that asked for protection is the second largest in two codes, and the largest of both together."""
    rows = [("x", "F", 100, 1), ("x", "G", 101, 0), ("x", "H", 1, 0), ("y", "F", 100, 1), ("y", "K", 101, 0),
            ("y", "L", 1, 0), *(("z", f"m{i}", 50, 0) for i in range(5))]  # fmt: skip
    one = pl.DataFrame(rows, schema=["region", "firm", "amount", "asked"], orient="row").with_columns(size=pl.lit("a"))
    return pl.concat([one, one.with_columns(size=pl.lit("b"), firm=pl.col("firm") + "'")])


def test_requests_for_joined_codes_are_those_of_their_own_largest_contributors() -> None:
    table = ts.tabulate(asking(), dimensions=["region", "size"], value="amount", respondent="firm", request="asked")
    rule = ts.RequestRule(of=ts.PPercent(p=60), request="asked")
    joined = take(
        ts.Problem(table, [rule]), Step(kind="join", dimension="region", codes=("x", "y"), into="x+y")
    ).problem
    flagged = {joined.table.describe(int(cell)) for cell in joined.sensitive}
    assert {"(region=x+y, size=a)", "(region=x+y, size=b)"} <= flagged


def test_codes_of_requests_are_not_added_up_as_numbers() -> None:
    """Where nobody is in two cells these are put together without the records: 1 and 1 are 1, 1 and 2 both of them."""
    rows = [("x", 1), ("y", 1), ("z", 2), ("w", 0)]
    frame = pl.DataFrame(
        [(code, f"{code}{size}{i}", 10 + i, asked * (i == 2), size)
         for code, asked in rows for size in "ab" for i in range(3)],
        schema=["region", "firm", "amount", "asked", "size"], orient="row",
    )  # fmt: skip
    table = ts.tabulate(frame, dimensions=["region", "size"], value="amount", respondent="firm", request="asked")
    for codes, first, second in ((("x", "y"), True, False), (("x", "z"), True, True), (("z", "w"), False, True)):
        new = take(
            ts.Problem(table, [ts.Threshold(n=3)]),
            Step(kind="join", dimension="region", codes=codes, into="new"),
        ).problem.table
        at = new.index(region="new", size="a")
        for code, asked in ((1, first), (2, second), (3, False)):
            rule = ts.RequestRule(of=ts.Threshold(n=99), request="asked", code=code)
            assert bool(ts.Problem(new, [rule]).sensitivity.mask[at]) is asked, (codes, code)


@pytest.mark.parametrize("firms", [60, 9], ids=["one firm a record", "firms in several cells"])
@pytest.mark.parametrize("known", [True, False], ids=["records", "without records"])
def test_margins_of_a_cube_keep_their_unseen_cells(firms: int, known: bool) -> None:
    """Joined codes of linked margins make the same cells, shown and unseen, as the recoded records."""
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        [(*(f"{name}{draw.integers(0, n)}" for name, n in (("a", 4), ("b", 3), ("c", 3))), f"f{i % firms}",
          int(draw.integers(1, 50))) for i in range(60)],
        schema=["a", "b", "c", "firm", "value"], orient="row",
    )  # fmt: skip
    options: dict[str, Any] = {
        "dimensions": ["a", "b", "c"], "value": "value", "respondent": "firm", "largest": 60,
        "margins": [["a", "b"], ["a", "c"], ["b", "c"]],
    }  # fmt: skip
    table = ts.tabulate(frame, **options)
    rules = [ts.PPercent(p=20)]
    given = table if known else replace(table, origin=None)
    found = take(ts.Problem(given, rules), Step(kind="join", dimension="a", codes=("a0", "a1"), into="X")).problem
    fresh = ts.Problem(ts.tabulate(frame.with_columns(pl.col("a").replace({"a0": "X", "a1": "X"})), **options), rules)
    assert found.table.unseen is not None
    assert found.table.seen == fresh.table.seen < len(fresh.table) == len(found.table)

    def told(problem: ts.Problem, mask: np.ndarray[Any, Any]) -> set[tuple[str, ...]]:
        codes = zip(*(column.to_list() for column in problem.table.code_columns().values()), strict=True)
        return {code for code, here in zip(codes, mask, strict=True) if here}

    assert told(found, found.table.unseen) == told(fresh, fresh.table.unseen)  # type: ignore[arg-type]
    assert told(found, found.sensitivity.mask) >= told(fresh, fresh.sensitivity.mask)
    assert ts.audit(found, ts.protect(found, ts.Suppress(time_limit_s=4))).safe
