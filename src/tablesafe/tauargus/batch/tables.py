"""What SPECIFYTABLE specifies: the variables of a table, its costs, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidFile, InvalidJob, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.tabulate import Columns, tabulate
from tablesafe.tauargus.batch.commands import Batch, Command, ReadTable, Recode, RuleCall, SpecifyTable, WriteTable
from tablesafe.tauargus.batch.journal import Journal
from tablesafe.tauargus.batch.rules import ASKED, COUNTING, Rules, build_rules, contributors_of, refuse_for_counts
from tablesafe.tauargus.codes import Recoding, read_recode, recode_codes, recode_level, recode_tree
from tablesafe.tauargus.metadata import Metadata, Role, Variable, find_beside
from tablesafe.tauargus.microdata import Microdata, read_microdata
from tablesafe.tauargus.table import read_tab


@dataclass(frozen=True, eq=False)
class Specified:
    """One table as the batch file specifies it."""

    number: int
    spec: SpecifyTable
    rules: Rules
    data: Path
    metadata: Metadata = field(repr=False)

    @property
    def title(self) -> str:
        """The table in a line: what spans it, and what it adds up."""
        return f"{' × '.join(self.spec.explanatory)} | {self.spec.response or 'count'}"

    def variables(self) -> tuple[Variable, ...]:
        """The variables that span the table, spelled as the metadata do."""
        found = tuple(self.metadata.variable(name) for name in self.spec.explanatory)
        for variable in found:
            if not variable.is_dimension:
                role = "nothing" if variable.role is Role.OTHER else variable.role.value
                raise InvalidJob(
                    f"{variable.name!r} cannot span a table: {self.metadata.path.name}, line {variable.line} marks it "
                    f"as {role}.",
                    hint="add <RECODEABLE> to it.",
                )
        return found


@dataclass(frozen=True, eq=False)
class Made:
    """The problem of a table, and what the user should know about it."""

    problem: Problem
    missing: Mapping[str, tuple[str, ...]]
    """Missing codes of each dimension."""
    remarks: tuple[str, ...] = ()


def cost_of(table: Specified, made: Table) -> Floats | None:
    """What withholding costs; None for the value itself. The distance is computed by the method."""
    match table.spec.cost:
        case "frequency":
            if made.count is None:
                raise InvalidTable(
                    f"The cost is the frequency (-1), but {table.metadata.path.name} marks no column as <FREQUENCY>.",
                    hint="mark it, or take another cost.",
                )
            return made.count.astype(np.float64)
        case "unity":
            return np.ones(len(made))
        case "variable" if "cost" in made.columns:
            return np.abs(np.asarray(made.columns["cost"], dtype=np.float64))
        case _:
            return None


def cells_with(table: Table, codes: Mapping[str, tuple[str, ...]]) -> Mask:
    """The cells that have one of some codes."""
    mask = np.zeros(len(table), dtype=np.bool_)
    for d, (name, tree) in enumerate(table.dimensions.items()):
        bare = {code.strip() for code in codes.get(name, ()) if code.strip()}
        at = [i for i, code in enumerate(tree.codes) if code.strip() in bare]
        mask |= np.isin(table.codes[:, d], at)
    return mask


# -- from cells --------------------------------------------------------------------------------------------------------


def refuse_impossible(table: Specified) -> None:
    """Fail, with the remedy, where the file of a table lacks what the rules need."""
    rules, metadata = table.rules, table.metadata
    if rules.holdings:
        raise InvalidJob(
            f"{rules.holdings[0]} is about holdings, but a finished table does not tell them.",
            hint="the first two P and NK and the first FREQ are about respondents: use these.",
        )
    if rules.weighted:
        raise InvalidJob("WGT(1) uses sampling weights, but a finished table has none.", hint="write WGT(0).")
    if rules.requests:
        raise InvalidJob("REQ needs to know who asked, but a finished table does not tell.", hint="leave it out.")
    if table.spec.response is None:
        refuse_for_counts(rules)
    largest, counted = len(metadata.having(Role.LARGEST)), bool(metadata.having(Role.COUNT))
    for call in rules.respondents:
        if call.name in {"P", "NK"} and contributors_of((call,)) > largest:
            raise InvalidJob(
                f"{call} looks at the {contributors_of((call,))} largest contributions to a cell, but "
                f"{metadata.path.name} marks {largest or 'no'} columns as <MAXSCORE>.",
                hint="add the columns that hold them, the largest first, or change the rule.",
            )
        if call.name in {"FREQ", "ZERO"} and not counted:
            raise InvalidJob(
                f"{call} counts contributors, but {metadata.path.name} marks no column as <FREQUENCY>.",
                hint="mark it, or leave the rule out.",
            )


def read_cells(table: Specified, command: ReadTable, *, any_sums: bool = False) -> Made:
    """The problem of a table read from a file."""
    rules, spec, metadata = table.rules, table.spec, table.metadata
    response = spec.response if spec.response is not None else _counts(metadata)
    compute = command.totals != "check" or any_sums
    given = read_tab(
        table.data,
        metadata,
        response=response,
        cost=spec.cost_variable if spec.cost == "variable" else response,
        shadow=spec.shadow or response,
        dimensions=[variable.name for variable in table.variables()],
        totals="compute" if compute else "check",
        manual_range=rules.manual_range,
    )
    cost = cost_of(table, given.table)
    problem = given if cost is None else given.replace(cost=cost)
    missing = {variable.name: variable.missing for variable in table.variables()}
    remarks = []
    if command.totals == "any" or (any_sums and command.totals == "check"):
        remarks.append(
            "the table need not add up in τ-ARGUS, here it must: totals are the sums of the innermost cells."
        )
    if rules.flags:
        problem, told = _ruled(table, problem, missing)
        remarks += told
    elif not metadata.having(Role.STATUS):
        remarks.append("there is neither a rule nor a status column: no cell is sensitive.")
    return Made(problem, missing, tuple(remarks))


def _counts(metadata: Metadata) -> str:
    found = metadata.having(Role.COUNT)
    if not found:
        raise InvalidJob(
            f"The response is <freq>, but {metadata.path.name} marks no column as <FREQUENCY>.", hint="mark it."
        )
    return found[0].name


def _ruled(
    table: Specified, problem: Problem, missing: Mapping[str, tuple[str, ...]]
) -> tuple[Problem, tuple[str, ...]]:
    """The problem with what the rules flag; what the file marks as unsafe stays so."""
    rules = table.rules
    safe = cells_with(problem.table, missing) if rules.missing_is_safe else None
    built = build_rules((), rules.respondents, problem.table, weighted=False, safe=safe)
    found = Problem(problem.table, built).sensitivity
    marked = problem.sensitivity.mask & ~found.mask
    told = []
    if marked.any():
        told.append(
            f"{int(marked.sum()):,} cells are unsafe by their status in {table.data.name}, not by the rules: they stay "
            f"unsafe (τ-ARGUS would go by the rules alone)."
        )
    frozen = problem.frozen & found.mask
    if frozen.any():
        told.append(f"{int(frozen.sum()):,} cells are protected by their status, but sensitive by the rules.")
    joint = problem.sensitivity | found
    return problem.replace(sensitivity=joint, frozen=problem.frozen & ~joint.mask, rules=built), tuple(told)


# -- recodings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recodes:
    """The recodes of one table."""

    batch: Batch
    journal: Journal
    table: Specified
    records: Microdata

    def of(self, commands: Sequence[Command]) -> dict[str, Recoding]:
        """How each variable is recoded: by every RECODE of the session, in their order."""
        found: dict[str, Recoding] = {}
        written = any(isinstance(each, WriteTable) and each.table == self.table.number for each in commands)
        for command in commands:
            if isinstance(command, Recode) and command.table == self.table.number:
                with self.journal.at(command.line):
                    self._apply(command, found, written=written)
        return found

    def _apply(self, command: Recode, found: dict[str, Recoding], *, written: bool) -> None:
        variable = self._variable(command)
        before = found.get(variable.name)
        tree = self.records.dimensions[variable.name] if before is None else before.tree
        new = self._recoded(command, variable, tree, written=written)
        if new is None:
            return
        for remark in new.remarks:
            self.journal.warn(command.line, remark)
        becomes = dict(new.becomes)
        if before is not None:
            becomes = {old: new.becomes.get(code, code) for old, code in before.becomes.items()}
        found[variable.name] = replace(new, remarks=(), becomes=becomes)

    def _variable(self, command: Recode) -> Variable:
        variable, own = self.table.metadata.variable(command.variable), self.table.variables()
        if variable not in own:
            raise InvalidFile(
                f"{variable.name!r} does not span table {self.table.number} ({self.table.title}).",
                hint=f"name one of {', '.join(each.name for each in own)}.",
            )
        return variable

    def _recoded(self, command: Recode, variable: Variable, tree: Hierarchy, *, written: bool) -> Recoding | None:
        if command.level is not None:
            return recode_level(tree, command.level, variable.name)
        path = self._file(command, written=written)
        if path is None:
            return None
        file = read_recode(path)
        if file.collapsed is not None:
            return recode_tree(tree, file, variable.name)
        return recode_codes(tree, file, variable.name, variable.missing)

    def _file(self, command: Recode, *, written: bool) -> Path | None:
        """The file of a recode. Where it is not there and nothing is written, the table is looked at as it is."""
        assert command.file is not None
        try:
            return find_beside(command.file, self.batch.path)
        except InvalidFile as error:
            if written:
                raise
            self.journal.warn(
                command.line, f"{error.message} {command.variable} is not recoded; no file of it is written."
            )
            return None


# -- from records ------------------------------------------------------------------------------------------------------


LEAST_LARGEST, ROOM = 3, 1
"""Contributors kept in any case, and beyond those that the rules look at: an insider is one of them."""


def read_records(tables: Sequence[Specified]) -> Microdata:
    """The records, with the hierarchies of all variables that span a table."""
    wanted = dict.fromkeys(variable.name for table in tables for variable in table.variables())
    return read_microdata(tables[0].data, tables[0].metadata, dimensions=list(wanted))


def tabulated(
    table: Specified, records: Microdata, recodings: Mapping[str, Recoding] | None = None, *, holdings: bool = False
) -> Made:
    """The problem of a table made from records; with `holdings` its contributors are holdings in any case."""
    recodings = recodings or {}
    rules, spec = table.rules, table.spec
    _refuse_impossible(table, records)
    merged = holdings or bool(rules.holdings)
    plan = _Plan(table, records, recodings)
    shares = _Shares.of(rules, merged, plan.shadow is not None)
    own = plan.tabulated((*shares.holdings, *shares.respondents), holding=merged, ranked=False)
    missing = plan.missing
    safe = cells_with(own, missing) if rules.missing_is_safe else None
    request = records.request if rules.requests else None

    def build(by_holding: tuple[RuleCall, ...], by_respondent: tuple[RuleCall, ...], made: Table) -> tuple[Rule, ...]:
        return build_rules(by_holding, by_respondent, made, weighted=rules.weighted, request=request, safe=safe)

    built = build(shares.holdings, shares.respondents, own)
    given = Sensitivity.none(len(own))
    for calls, holding in ((shares.apart_holdings, True), (shares.apart_respondents, False)):
        if calls:
            other = plan.tabulated(calls, holding=holding, ranked=True)
            _refuse_other_cells(own, other)
            found = build(calls, (), other) if holding else build((), calls, other)
            given = given | Problem(other, found).sensitivity
    problem = Problem(own, built, sensitivity=given, cost=cost_of(table, own))
    remarks = plan.remarks + _shadow_remarks(spec)
    if not rules.flags:
        remarks += ("no rule says what is sensitive: no cell is, unless an a-priori file says so.",)
    return Made(problem, missing, remarks)


@dataclass(frozen=True, slots=True)
class _Shares:
    """Which rules the table itself can answer, and which only one that is made for them.

    A table by holdings still counts its respondents, but does not know what each of them contributes. Where a shadow
    variable ranks the contributors, what they contribute to the value itself, which is what they know, stays in the
    table, and rules that compare contributions look at another one.
    """

    holdings: tuple[RuleCall, ...]
    respondents: tuple[RuleCall, ...]
    apart_holdings: tuple[RuleCall, ...]
    apart_respondents: tuple[RuleCall, ...]

    @classmethod
    def of(cls, rules: Rules, merged: bool, shadow: bool) -> _Shares:
        """Share the rules out."""

        def shared(calls: tuple[RuleCall, ...], apart: bool) -> tuple[tuple[RuleCall, ...], tuple[RuleCall, ...]]:
            counting = tuple(call for call in calls if call.name in COUNTING or not apart)
            return counting, tuple(call for call in calls if call not in counting)

        holdings, apart_holdings = shared(rules.holdings, shadow)
        respondents, apart_respondents = shared(rules.respondents, shadow or merged)
        return cls(holdings, respondents, apart_holdings, apart_respondents)


@dataclass(frozen=True, eq=False)
class _Plan:
    """How the records of one table are tabulated."""

    table: Specified
    records: Microdata
    recodings: Mapping[str, Recoding]

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """The missing codes of each dimension, after recoding."""
        found = {variable.name: variable.missing for variable in self.table.variables()}
        for name, recoding in self.recodings.items():
            left = tuple(code for code in found[name] if recoding.becomes.get(code, code) == code)
            found[name] = (*left, *recoding.missing)
        return found

    @property
    def response(self) -> str | None:
        """The column that is added up; None where records are counted."""
        name = self.table.spec.response
        return None if name is None else self.records.response(name)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to the records."""
        found = [remark for recoding in self.recodings.values() for remark in recoding.remarks]
        for column in self._numbers():
            gone = int(self.records.frame[column].null_count())
            if gone:
                found.append(f"{gone:,} records of {self.records.name} have no {column}: it counts as 0 there.")
        return tuple(found)

    def _numbers(self) -> tuple[str, ...]:
        """The columns that are added up."""
        spec, records = self.table.spec, self.records
        named = (spec.response, spec.shadow, spec.cost_variable)
        return tuple(dict.fromkeys(records.response(name) for name in named if name is not None))

    @property
    def shadow(self) -> str | None:
        """The column that ranks the contributors, where that is not the response."""
        spec = self.table.spec
        if spec.shadow is None or spec.response is None:
            return None
        column = self.records.response(spec.shadow)
        return None if column == self.response else column

    def tabulated(self, calls: tuple[RuleCall, ...], *, holding: bool, ranked: bool) -> Table:
        """Add up the records; contributors are holdings or respondents, `ranked` by the shadow variable if there is."""
        spec, records, rules = self.table.spec, self.records, self.table.rules
        names = [variable.name for variable in self.table.variables()]
        cost = None if spec.cost_variable is None else records.response(spec.cost_variable)
        return tabulate(
            self._frame(),
            dimensions={name: self._tree(name) for name in names},
            columns=Columns(
                value=self.response,
                holding=records.holding if holding else None,
                weight=records.weight if rules.weighted else None,
                shadow=self.shadow if ranked else None,
                cost=cost,
                further=[ASKED] if rules.requests else [],
                request=records.request if rules.requests else None,
            ),
            largest=max(LEAST_LARGEST, contributors_of(calls) + ROOM),
        )

    def _tree(self, name: str) -> Hierarchy:
        return self.recodings[name].tree if name in self.recodings else self.records.dimensions[name]

    def _frame(self) -> pl.DataFrame:
        """The records with new codes, zeros for numbers that are missing, and requests as numbers."""
        records = self.records
        changed = [
            records.frame[name].replace(list(recoding.becomes), list(recoding.becomes.values()))
            for name, recoding in self.recodings.items()
        ]
        changed += [records.frame[name].fill_null(0.0) for name in self._numbers()]
        if self.table.rules.requests and records.request is not None:
            variable = records.metadata.variable(records.request)
            text = records.frame[records.request].fill_null("").str.strip_chars()
            codes = [code.strip() for code in variable.request[:2]]
            asked = text.replace_strict(codes, [1, 2][: len(codes)], default=0, return_dtype=pl.Int64)
            changed += [asked, (asked > 0).cast(pl.Int64).alias(ASKED)]
        return records.frame.with_columns(changed)


def _refuse_impossible(table: Specified, records: Microdata) -> None:
    """Fail, with the remedy, where the metadata lack what the rules need."""
    rules, name = table.rules, table.metadata.path.name
    if table.spec.response is None:
        refuse_for_counts(rules)
    lacking = {
        "WEIGHT": (rules.weighted and records.weight is None, "WGT(1) uses sampling weights"),
        "HOLDING": (
            bool(rules.holdings) and records.holding is None,
            f"{next(iter(rules.holdings), None)} is about holdings",
        ),
        "REQUEST": (rules.requests and records.request is None, "REQ needs to know who asked for protection"),
    }
    for keyword, (lacks, what) in lacking.items():
        if lacks:
            raise InvalidJob(
                f"{what}, but {name} marks no variable as <{keyword}>.", hint="mark it, or change the rule."
            )
    if rules.weighted and records.weight is not None:
        weight = records.frame[records.weight]
        bad = (weight.is_null() | (weight < 0)).fill_null(True)
        if bad.any():
            line = int(bad.arg_max() or 0) + 1
            raise InvalidTable(
                f"{records.name}, line {line}: the weight {records.weight!r} is missing or negative.",
                hint="correct it, or leave the weights out: WGT(0).",
            )


def _shadow_remarks(spec: SpecifyTable) -> tuple[str, ...]:
    if spec.shadow is None or spec.response is not None:
        return ()
    return (f"the shadow variable {spec.shadow!r} has no use in a table of counts.",)


def _refuse_other_cells(one: Table, other: Table) -> None:
    if len(one) != len(other) or bool((one.codes != other.codes).any()):
        raise InvalidTable("The table by holdings has other cells than the table by respondents: this is a bug.")
