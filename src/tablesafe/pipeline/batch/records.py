"""Tables made from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tablesafe.core.errors import InvalidJob, InvalidTable
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.sensitivity import Rule, Sensitivity
from tablesafe.core.table import Table
from tablesafe.io.tauargus_micro import Microdata, read_microdata
from tablesafe.io.tauargus_recode import Recoding
from tablesafe.job.arb.model import RuleCall, SpecifyTable
from tablesafe.pipeline.batch.rules import ASKED, COUNTING, Rules, build_rules, contributors_of, refuse_for_counts
from tablesafe.pipeline.batch.tables import Made, Specified, cells_with, cost_of
from tablesafe.tabulate import tabulate

LEAST_LARGEST = 3
ROOM = 1
"""Contributors kept beyond those that the rules look at: an insider is one of them."""


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
            value=self.response,
            holding=records.holding if holding else None,
            weight=records.weight if rules.weighted else None,
            shadow=self.shadow if ranked else None,
            cost=cost,
            columns=[ASKED] if rules.requests else [],
            request=records.request if rules.requests else None,
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
                f"{what}, but {name} marks no variable as <{keyword}>.\n\nHint: mark it, or change the rule."
            )
    if rules.weighted and records.weight is not None:
        weight = records.frame[records.weight]
        bad = (weight.is_null() | (weight < 0)).fill_null(True)
        if bad.any():
            line = int(bad.arg_max() or 0) + 1
            raise InvalidTable(
                f"{records.name}, line {line}: the weight {records.weight!r} is missing or negative.\n\n"
                f"Hint: correct it, or leave the weights out: WGT(0)."
            )


def _shadow_remarks(spec: SpecifyTable) -> tuple[str, ...]:
    if spec.shadow is None or spec.response is not None:
        return ()
    return (f"the shadow variable {spec.shadow!r} has no use in a table of counts.",)


def _refuse_other_cells(one: Table, other: Table) -> None:
    if len(one) != len(other) or bool((one.codes != other.codes).any()):
        raise InvalidTable("The table by holdings has other cells than the table by respondents: this is a bug.")
