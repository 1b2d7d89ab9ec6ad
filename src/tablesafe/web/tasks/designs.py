"""Tasks: a coarser design of the table of a job. They run in the worker process of a session; confidential.

What is proposed, taken and measured is that of `tablesafe.methods.redesign`; here it becomes plain data, and the text
of the hierarchy file that the job reads from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tablesafe.core.language import ENGLISH, Language, language
from tablesafe.web.child import Desk
from tablesafe.web.desk import problem_of

if TYPE_CHECKING:
    from tablesafe.core.hierarchy import Hierarchy
    from tablesafe.methods.redesign.measure import Scale
    from tablesafe.methods.redesign.steps import Step
    from tablesafe.report.axis import Axis

RANGE = re.compile(r"[<>≤≥]\s*\d.*|\d[\d .,]*\s*(([-–—]|to|bis|à)\s*\d.*|\+.*|and (more|over).*)")
"""A code such as 50-249, 250+, ≥ 65 or 0–4 years."""
MOST_PROPOSED = 8
"""First steps that are shown, the best."""
MOST_NAMED = 4
"""Codes that a button names."""


def proposals(desk: Desk, job: str) -> list[dict[str, Any]]:
    """The steps to a coarser table that remove most sensitive cells for what they lose, each taken alone."""
    from tablesafe.methods.redesign.proposals import redesign

    problem = problem_of(desk, job)
    ranges = [name for name, tree in problem.table.dimensions.items() if are_ranges(tree)]
    found = redesign(problem, steps=1, dimensions=False, margins=False, ordered=ranges)
    return [
        {
            "step": {"kind": each.step.kind, "dimension": each.step.dimension, "codes": list(each.step.codes)},
            "words": words(each.step, language(desk.language)), "removed": round(each.risk), "loss": each.loss,
        }
        for each in found.first[:MOST_PROPOSED]
    ]  # fmt: skip


def are_ranges(tree: Hierarchy) -> bool:
    """Whether codes are ranges of numbers, as ages and sizes are: of these only neighbours are merged."""
    numbers = [RANGE.fullmatch(code) is not None for code in tree.leaves]
    return tree.is_tree and len(numbers) > 2 and sum(numbers) >= len(numbers) - 1  # one may be "unknown"


def coarser(desk: Desk, job: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """What a step makes of the hierarchy of its dimension, as the text of a file that the job can read."""
    from tablesafe.core.errors import InvalidOption
    from tablesafe.methods.redesign.steps import Step, joined_name

    trees = problem_of(desk, job).table.dimensions
    name, codes = str(step["dimension"]), tuple(str(code) for code in step["codes"])
    if name not in trees:
        raise InvalidOption(f"There is no dimension {name!r} in the table.")
    into = str(step.get("into") or "") or joined_name(codes, trees[name].codes)
    taken = Step(kind=step["kind"], dimension=name, codes=codes, into=into if step["kind"] == "join" else "")
    tree = taken.recode(trees[name]).hierarchy
    return {"text": tree.hrc_text(), "total": tree.roots[0], "words": words(taken, language(desk.language))}


def words(step: Step, speech: Language = ENGLISH) -> str:
    """What a step does, as a button says it."""
    named = [*step.codes[:MOST_NAMED], *(["…"] if len(step.codes) > MOST_NAMED else [])]
    match step.kind:
        case "join":
            several = speech.say("{some} and {last}", some=", ".join(named[1:-1]), last=named[-1])
            rest = named[1] if len(named) == 2 else several
            return speech.say(
                "Merge {dimension} {code} with {rest}", dimension=step.dimension, code=named[0], rest=rest
            )
        case "drop parts":
            codes = ", ".join(named)
            return speech.say("Drop the parts of {codes} of {dimension}", codes=codes, dimension=step.dimension)
        case _:
            return speech.say("Drop the finest level of {dimension}", dimension=step.dimension)


def codes(desk: Desk, job: str) -> dict[str, list[tuple[str, str, int, str]]]:
    """The codes of each dimension that is a tree, below its total: code, heading, level, and the one above it."""
    from tablesafe.core.linking import RESPONSE
    from tablesafe.report.axis import Axis

    trees = problem_of(desk, job).table.dimensions
    axes = {name: Axis.of(name, tree) for name, tree in trees.items() if tree.is_tree and name != RESPONSE}
    return {name: _below_the_total(axis) for name, axis in axes.items()}


def _below_the_total(axis: Axis) -> list[tuple[str, str, int, str]]:
    found, path = [], [""]
    for i, depth in enumerate(axis.depth.tolist()):
        path[depth:] = [axis.heading(i)]
        if depth > 0:
            found.append((str(axis.codes[i]), axis.heading(i), depth - 1, path[depth - 1]))
    return found


def compared(desk: Desk, before: str, now: str) -> dict[str, Any]:
    """The table of a job as it is now beside that of the job before its codes were merged."""
    kept: dict[str, Scale] = desk.loaded.setdefault("scales", {})
    if before not in kept:
        from tablesafe.methods.redesign.measure import Scale

        kept.clear()
        kept[before] = Scale.of(problem_of(desk, before), risk="cells", weight="records")
    scale = kept[before]
    design = scale.measure(problem_of(desk, now))
    return {
        "sensitive": (scale.start.sensitive, design.sensitive), "cells": (scale.start.cells, design.cells),
        "loss": scale.loss(design),
    }  # fmt: skip


# -- codes that a hierarchy does not have ------------------------------------------------------------------------------


ALONE, IN, BELOW = "", "=", ">"
"""Where a code can count: by itself below the total; in another code (`=C10`); by itself below another (`>C`)."""
ALIKE = 0.85
"""How much alike two names must be to be taken for one that was misspelt; codes of few letters never are."""


def strangers(tree: Hierarchy, found: Sequence[str], most: int) -> dict[str, Any]:
    """Codes of the data that a hierarchy does not have, each with where it may belong."""
    known = {*tree.codes, *tree.aliases}
    strange = [code for code in found if code not in known]
    if not strange or not tree.is_tree:
        return {"strange": [], "many": len(strange), "none": False, "offered": [], "above": []}
    above = _above(tree)
    first = [(code, _place(tree, above, code)) for code in strange[:most]]
    offered = list(tree.leaves)
    return {
        "strange": first,
        "many": len(strange),
        "none": len(strange) == len(found),
        "offered": offered,
        "above": above,
    }


def _above(tree: Hierarchy) -> list[str]:
    """The codes that further codes can stand below: those with parts, and those that have one part only."""
    leaves, shared = set(tree.leaves), set(tree.aliases.values())
    return [code for code in tree.codes if code not in tree.roots and (code not in leaves or code in shared)]


def _place(tree: Hierarchy, above: Sequence[str], code: str) -> str:
    """Where a code may belong: in one that is written a little differently, or below the one that it begins with."""
    from difflib import get_close_matches

    same = {_plain(leaf): leaf for leaf in tree.leaves}.get(_plain(code))
    near = [leaf for leaf in tree.leaves if _may_be(leaf, code)]
    same = same or next(iter(get_close_matches(code, near, 1, ALIKE)), None)
    if same:
        return IN + same
    begins = [other for other in above if code.startswith(other) and code != other]
    return BELOW + max(begins, key=len) if begins else ALONE


def _may_be(leaf: str, code: str) -> bool:
    """Whether a code may be a misspelt one: with other digits it is another code, and a longer one may stand below."""
    numbers = ["".join(letter for letter in each if letter.isdigit()) for each in (leaf, code)]
    return numbers[0] == numbers[1] and not code.startswith(leaf)


def _plain(code: str) -> str:
    """A code without what people write differently: case, blanks, points, and zeros in front."""
    return "".join(letter for letter in code.casefold() if letter.isalnum()).lstrip("0")


def mapped(desk: Desk, draft: Mapping[str, Any], name: str, where: Mapping[str, str]) -> dict[str, Any]:
    """The hierarchy of a dimension with further codes, each where `ALONE`, `IN` or `BELOW` says."""
    from tablesafe.job.load import examine
    from tablesafe.web.drafts import JOB_FILE
    from tablesafe.web.tasks.data import hierarchy_of

    job, _ = examine(draft, desk.folder / JOB_FILE, {})
    assert job is not None
    tree = hierarchy_of(desk, job, name)
    meant = {code: to.removeprefix(IN) for code, to in where.items() if to.startswith(IN)}
    tree = replace(tree, aliases={**tree.aliases, **meant})
    above = sum(1 for code in tree.aliases.values() if code == tree.roots[0])
    lines = tree.hrc_text().splitlines()
    for code, to in where.items():
        if to.startswith(BELOW):
            lines = _with_part(lines, to.removeprefix(BELOW), code)
    alone = [f"{'@' * above}{code}" for code, to in where.items() if to == ALONE]
    told = "{dimension}: {many:,} codes mapped" if len(where) > 1 else "{dimension}: {code} mapped"
    told = language(desk.language).say(told, dimension=name, many=len(where), code=next(iter(where)))
    return {
        "text": "\n".join([*lines, *alone]) + "\n", "total": tree.roots[0], "words": told,
    }  # fmt: skip


def _with_part(lines: Sequence[str], above: str, code: str) -> list[str]:
    """The lines of a `.hrc` file with one more code, the last below another."""
    depths = [len(line) - len(line.lstrip("@")) for line in lines]
    at = next(i for i, line in enumerate(lines) if line.lstrip("@") == above)
    end = next((i for i in range(at + 1, len(lines)) if depths[i] <= depths[at]), len(lines))
    return [*lines[:end], "@" * (depths[at] + 1) + code, *lines[end:]]
