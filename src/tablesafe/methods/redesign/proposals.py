"""What a redesign proposes: a path of steps with what each leaves of risk and of the table; and the steps apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.display import shown
from tablesafe.core.errors import InvalidOption, TablesafeError
from tablesafe.core.linking import RESPONSE
from tablesafe.core.options import is_number
from tablesafe.core.problem import Problem
from tablesafe.core.release import Status
from tablesafe.core.sensitivity import Rule
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean
from tablesafe.methods.redesign.candidates import Candidate, Wishes, candidates
from tablesafe.methods.redesign.collapse import Redesigned, take
from tablesafe.methods.redesign.measure import Design, Risk, Scale, Weight, front
from tablesafe.methods.redesign.steps import Step, joined_name, parts_of
from tablesafe.methods.suppress import Suppress
from tablesafe.rules.groups import GroupDisclosure
from tablesafe.work.run import OUTSIDERS, Run


@dataclass(frozen=True, eq=False)
class Point:
    """One design on the way."""

    step: Step | None
    """What led to it; None for the first."""
    problem: Problem = field(repr=False)
    design: Design
    exact: bool
    """False where contributors that the table does not list may make a joined cell safer than it is taken to be."""
    complementary: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One step taken alone from the first design: what it removes, and its share of loss."""

    step: Step
    risk: float
    cells: int
    bits: float
    loss: float


@shown
@dataclass(frozen=True, eq=False)
class Proposals:
    """A path of steps, each the best after those before it, and all steps that were looked at first. Confidential."""

    problem: Problem = field(repr=False)
    scale: Scale = field(repr=False)
    path: tuple[Point, ...]
    """The designs from the first to the last."""
    first: tuple[Proposal, ...] = field(repr=False)
    """Every single step from the first design that removes some risk, the best first."""

    def __len__(self) -> int:
        return len(self.path) - 1

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the path."""
        return tuple(point.step for point in self.path if point.step is not None)

    def frame(self) -> pl.DataFrame:
        """The path: a row per design, the first without a step, with what is left of risk and of the table."""
        designs = [point.design for point in self.path]
        bits = self.scale.start.information
        columns = {
            "number": list(range(len(self.path))),
            "step": ["as it is", *map(str, self.steps)],
            "sensitive": [design.sensitive for design in designs],
            "risk": [design.risk for design in designs],
            "cells": [design.cells for design in designs],
            "information percent": [round(100 * d.information / bits, 3) if bits > 0 else 100.0 for d in designs],
            "loss percent": [round(100 * self.scale.loss(design), 3) for design in designs],
            "exact": [point.exact for point in self.path],
        }
        if any(point.complementary is not None for point in self.path):
            columns["complementary"] = [point.complementary for point in self.path]
        return pl.DataFrame(columns, schema_overrides={"complementary": pl.Int64} if "complementary" in columns else {})

    def singles(self) -> pl.DataFrame:
        """Every step that was looked at, taken alone: what it removes and what it costs, the best first.

        `best` marks those that no other step beats: none removes as much risk for less loss.
        """
        risk, loss = [each.risk for each in self.first], [each.loss for each in self.first]
        return pl.DataFrame(
            {
                "step": pl.Series([str(each.step) for each in self.first], dtype=pl.String),
                "risk removed": pl.Series(risk, dtype=pl.Float64),
                "cells lost": pl.Series([each.cells for each in self.first], dtype=pl.Int64),
                "bits lost": pl.Series([each.bits for each in self.first], dtype=pl.Float64),
                "loss percent": pl.Series([100 * each for each in loss], dtype=pl.Float64),
                "best": pl.Series(front([-each for each in risk], loss), dtype=pl.Boolean),
            }
        )

    def apply(self, steps: int | Sequence[Step] | None = None, *, names: Mapping[str, str] | None = None) -> Problem:
        """The problem in the new design: after so many steps of the path (all, without a number), or after these steps.

        `names` gives joined codes other names than `A+B`.
        """
        if steps is None or (isinstance(steps, int) and not isinstance(steps, bool)):
            upto = len(self) if steps is None else steps
            if not 0 <= upto <= len(self):
                raise InvalidOption(f"The path has {len(self)} steps, so {upto} of them cannot be applied.")
            if not names:
                return self.path[upto].problem
            steps = self.steps[:upto]
        if isinstance(steps, bool) or not all(isinstance(step, Step) for step in steps):
            raise InvalidOption(f"apply takes a number of steps or a list of steps, got {steps!r}.")
        problem = self.problem
        for step in steps:
            problem = take(problem, _renamed(step, names or {})).problem
        return problem

    def recodes(self, steps: int | None = None) -> pl.DataFrame:
        """Where the codes of each dimension went: one row per code that is gone, with the code that counts it now."""
        new = self.apply(steps).table.dimensions
        rows = [
            (name, code, new[name].codes[new[name].position(code)])
            for name, hierarchy in self.problem.table.dimensions.items()
            for code in hierarchy.codes
            if new[name].codes[new[name].position(code)] != code
        ]
        return pl.DataFrame(rows, schema=["dimension", "code", "new code"], orient="row")

    def __str__(self) -> str:
        first, last = self.path[0].design, self.path[-1].design
        steps = "1 step" if len(self) == 1 else f"{len(self)} steps"
        return (
            f"{steps}: {first.sensitive:,} sensitive cells become {last.sensitive:,}, {first.cells:,} cells "
            f"become {last.cells:,}, {100 * self.scale.loss(last):.1f}% of the table is lost."
        )


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    codes = tuple(names.get(code, code) for code in step.codes)
    return replace(step, codes=codes, into=names.get(step.into, step.into))


# Table redesign: the changes that remove the most risk for the least loss, one after another.


TRIALS = 5
"""Candidates whose promise is checked in full before a round gives up."""
LEAST_LOSS = 1e-4
"""Losses below this count as this much: a step that costs nothing must still remove some risk to come first."""


def redesign(
    problem: Problem,
    *,
    steps: int = 20,
    target: float = 0.0,
    pace: float = 0.05,
    ordered: Collection[str] = (),
    keep: Collection[str] | Mapping[str, Collection[str]] = (),
    dimensions: bool = True,
    margins: bool = True,
    risk: Risk = "cells",
    weight: Weight = "records",
    names: Mapping[str, str] | None = None,
    complementary_s: float | None = None,
) -> Proposals:
    """Propose a coarser design of a table: codes to join or drop, levels, dimensions and tables to leave out.

    Each step is the one that removes the most risk for its loss, measured by applying the rules to the table as it
    would be; up to `steps` of them, until no more risk than `target` is left. Steps that remove less than the share
    `pace` of what is left come only when no others are there. The risk is that of the sensitive cells:
    their number, or the `records` or the `value` in them. The loss is the share of cells, and of the information by
    `weight`, that is gone. `ordered` names dimensions of which only neighbouring codes may be joined (ages, sizes);
    `keep` those that must stay as they are, or per dimension the codes that must. Without `dimensions`, no whole
    dimension is dropped; without `margins`, no table is left out. A joined code is called `A+B`, or as `names` says.

    With `complementary_s`, so many seconds of suppression estimate before and after each step how many cells would
    have to be withheld besides the sensitive ones.
    """
    _check(problem, steps, target, pace, risk, weight, complementary_s)
    wishes = Wishes(
        ordered=_known(problem.table, "ordered", ordered),
        keep=_kept(problem.table, keep),
        names=names or {},
        dimensions=dimensions,
        margins=margins,
    )
    scale = Scale.of(problem, risk=risk, weight=weight)
    looked = candidates(problem, scale, wishes)
    first = _ranked(_measured(problem, looked, scale) if _look_around(problem.rules) else looked, scale)
    path = [Point(None, problem, scale.start, True, _complementary(problem, complementary_s))]
    refused: list[Candidate] = []
    while len(path) <= steps and path[-1].design.risk > target:
        best = _next(path[-1], looked, scale, pace, refused)
        if best is None:
            break
        step, new, design = best
        exact = path[-1].exact and new.exact
        path.append(Point(step.step, new.problem, design, exact, _complementary(new.problem, complementary_s)))
        looked = candidates(new.problem, scale, wishes)
    return Proposals(problem, scale, tuple(path), tuple(_proposal(each, scale) for each in first))


def merging(problem: Problem, cell: int) -> tuple[Step, Problem] | None:
    """The change that merges a cell with others and removes the most risk for its loss; None where there is none.

    One of its codes is joined with one or more that stand beside it, or with all of them: then the parts of the code
    above are dropped. What removes no risk by itself is taken only where nothing does. Where all that stand beside it
    have parts and it has none, or the other way round, these parts are dropped: the next change can join them.
    """
    scale = Scale.of(problem, risk="cells", weight="records")
    looked = candidates(problem, scale, Wishes(dimensions=False, margins=False))
    own = problem.table.codes[cell]
    for step in [each.step for each in _ranked(looked, scale)] + _beside(problem, own):
        if _merges(problem, own, step):
            with suppress(InvalidOption):
                return step, take(problem, step).problem
    for step in _made_ready(problem, own):
        with suppress(InvalidOption):
            return step, take(problem, step).problem
    return None


def _merges(problem: Problem, own: NDArray[Any], step: Step) -> bool:
    """Whether a step joins one of the codes of a cell with others, or drops it into the code above."""
    names = list(problem.table.dimensions)
    if step.kind not in ("join", "drop parts") or step.dimension not in names:
        return False
    hierarchy = problem.table.dimensions[step.dimension]
    code = hierarchy.codes[int(own[names.index(step.dimension)])]
    if step.kind == "join":
        return code in step.codes
    return any(code in parts_of(hierarchy).get(top, ()) for top in step.codes)


def _beside(problem: Problem, own: NDArray[Any]) -> list[Step]:
    """Joining each code of a cell with one beside it, the smallest first; or dropping both, where there are but two."""
    out: list[Step] = []
    for d, (name, hierarchy) in enumerate(problem.table.dimensions.items()):
        if name == RESPONSE or not hierarchy.is_tree:
            continue
        code, parts = hierarchy.codes[int(own[d])], parts_of(hierarchy)
        top = next((total for total, members in parts.items() if code in members), None)
        if top is None:
            continue
        others = [each for each in parts[top] if each != code and (each in parts) == (code in parts)]
        size = np.bincount(problem.table.codes[:, d], np.abs(problem.table.value), len(hierarchy))
        others.sort(key=lambda each: float(size[hierarchy.position(each)]))
        if len(parts[top]) > 2:
            out += [
                Step(kind="join", dimension=name, codes=(code, each), into=joined_name((code, each), hierarchy.codes))
                for each in others
            ]
        elif not any(each in parts for each in parts[top]):
            out.append(Step(kind="drop parts", dimension=name, codes=(top,)))
    return out


def _made_ready(problem: Problem, own: NDArray[Any]) -> list[Step]:
    """What lets a code of a cell be joined with one beside it: of two that are no alike, one has parts to be dropped.

    The smallest of those beside it, or the code itself; in whichever dimension that loses the fewest cells.
    """
    found: list[tuple[int, Step]] = []
    for d, (name, hierarchy) in enumerate(problem.table.dimensions.items()):
        if name == RESPONSE or not hierarchy.is_tree:
            continue
        code, parts = hierarchy.codes[int(own[d])], parts_of(hierarchy)
        beside = next((members for members in parts.values() if code in members), ())
        many = np.bincount(problem.table.codes[:, d], minlength=len(hierarchy))
        for each in [code] if code in parts else [other for other in beside if other in parts]:
            if len(beside) > 1:
                lost = sum(int(many[hierarchy.position(part)]) for part in _below(parts, each))
                found.append((lost, Step(kind="drop parts", dimension=name, codes=(each,))))
    return [step for _, step in sorted(found, key=lambda each: each[0])]


def _below(parts: Mapping[str, Sequence[str]], code: str) -> list[str]:
    """All codes below one."""
    return [deeper for part in parts.get(code, ()) for deeper in (part, *_below(parts, part))]


def _next(
    last: Point, looked: list[Candidate], scale: Scale, pace: float, refused: list[Candidate]
) -> tuple[Candidate, Redesigned, Design] | None:
    """The best step of a round that keeps its promise: the rules, applied to the whole table, find less risk."""
    banned = {str(candidate.step) for candidate in refused}
    free = [each for each in looked if str(each.step) not in banned]
    for candidate in _ranked(free, scale, pace * last.design.risk)[:TRIALS]:
        new = take(last.problem, candidate.step)
        design = scale.measure(new.problem)
        if design.risk < last.design.risk:
            return candidate, new, design
        refused.append(candidate)
    return None


def _look_around(rules: Sequence[Rule]) -> bool:
    """Whether a rule judges a cell by the cells around it, so that joined cells cannot be judged by themselves."""
    return any(
        isinstance(rule, GroupDisclosure)
        or _look_around(getattr(rule, "rules", ()))
        or _look_around([rule.of] if hasattr(rule, "of") else [])
        for rule in rules
    )


def _measured(problem: Problem, found: Sequence[Candidate], scale: Scale) -> list[Candidate]:
    """The candidates with what they remove when they are taken, but for those that remove nothing."""
    taken = [
        replace(each, risk=scale.start.risk - scale.measure(take(problem, each.step).problem).risk) for each in found
    ]
    return [each for each in taken if each.risk > 0]


def _ranked(found: list[Candidate], scale: Scale, enough: float = 0.0) -> list[Candidate]:
    """The candidates by what they remove for what they cost; those that do not remove enough come last."""
    gain = np.array([each.risk / max(_loss(each, scale), LEAST_LOSS) for each in found])
    small = np.array([each.risk < enough for each in found], dtype=np.bool_)
    return [found[at] for at in np.lexsort((-gain, small))]


def _loss(candidate: Candidate, scale: Scale) -> float:
    cells = candidate.cells / max(scale.start.cells, 1)
    bits = candidate.bits / scale.start.information if scale.start.information > 0 else 0.0
    return (cells + bits) / 2


def _proposal(candidate: Candidate, scale: Scale) -> Proposal:
    return Proposal(candidate.step, candidate.risk, candidate.cells, candidate.bits, _loss(candidate, scale))


def _complementary(problem: Problem, seconds: float | None) -> int | None:
    """How many cells a quick suppression withholds besides the sensitive ones, against outsiders only.

    None when nobody asked, and when the table cannot be protected.
    """
    if seconds is None:
        return None
    try:
        release = Suppress(time_limit_s=seconds, zeros=True).protect(problem, Run(attackers=OUTSIDERS))
    except TablesafeError:
        return None
    return int((release.status == Status.COMPLEMENTARY).sum())


def _check(
    problem: Problem, steps: int, target: float, pace: float, risk: str, weight: str, complementary_s: float | None
) -> None:
    if problem.table.names is not None or not problem.table.dimensions:
        raise InvalidOption(
            "A table without dimensions cannot be redesigned: there are no codes to join or drop.",
            hint="give the table with its dimensions and hierarchies.",
        )
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidOption(f"steps must be a whole number of at least 1, got {steps!r}.")
    if not is_number(target) or target < 0:
        raise InvalidOption(f"target must be 0 or more, got {target!r}.")
    if not is_number(pace) or not 0 <= pace < 1:
        raise InvalidOption(f"pace must be from 0 to below 1, got {pace!r}.")
    for name, value, words in (("risk", risk, get_args(Risk)), ("weight", weight, get_args(Weight))):
        if value not in words:
            raise InvalidOption(f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}.")
    if complementary_s is not None and not (is_number(complementary_s) and complementary_s > 0):
        raise InvalidOption(f"complementary_s must be above 0, got {complementary_s!r}.")


def _known(table: Table, option: str, given: Collection[str]) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else list(given)
    have = [name for name in table.dimensions if name != RESPONSE]
    for name in names:
        if name not in have:
            hint = did_you_mean(name, have) or f"the dimensions are {', '.join(map(repr, have))}."
            raise InvalidOption(f"{option} names {name!r}, which is no dimension.", hint=hint)
    return tuple(names)


def _kept(table: Table, keep: Collection[str] | Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    if not isinstance(keep, Mapping):
        return dict.fromkeys(_known(table, "keep", keep), ())
    _known(table, "keep", list(keep))
    out: dict[str, tuple[str, ...]] = {}
    for name, codes in keep.items():
        hierarchy = table.dimensions[name]
        listed = [codes] if isinstance(codes, str) else list(codes)
        out[name] = tuple(hierarchy.codes[hierarchy.position(code)] for code in listed)
    return out
