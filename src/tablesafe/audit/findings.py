"""What the audit found: as arrays, as a frame, as JSON, and as text for the terminal. Confidential throughout."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.audit.certificate import Certificate, exact_limits
from tablesafe.audit.exact import ExactLimits, exact
from tablesafe.audit.explain import Explanation, Side, explain
from tablesafe.audit.system import System
from tablesafe.audit.verdict import OUTSIDER, How, Opening, Verdict, verdict_of
from tablesafe.core.cube import untied
from tablesafe.core.display import shown
from tablesafe.core.equations import Floats, Mask
from tablesafe.core.errors import InvalidInput
from tablesafe.core.language import Text, text
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release, Status
from tablesafe.core.table import Apart
from tablesafe.files.native import to_library
from tablesafe.files.write import json_lines
from tablesafe.solve.program import Price
from tablesafe.work.run import Possibly

if TYPE_CHECKING:
    from tablesafe.audit.insiders import Insider, Insiders
    from tablesafe.audit.proved import Settled
    from tablesafe.audit.unions import Union, Unions

NEVER_NARROWER = 1e-6
"""Units of width below which an interval is a point: what comes from a table is whole."""
MOST_SHOWN = 20
"""Cells that a text names and explains, unless more are asked for."""
PROOF = "The proof has {many:,} witness tables."
TOO_MANY = "coalitions, of which there are more than could be looked at"
TOO_LATE = "respondents, whom there was no time to look at"
SUMS_LATE = "Sums of withheld cells that can be derived were not all searched for: the time was over."
UNSEEN_PARTS = "What respondents know of their own part of unseen cells is not told by linked tables, only by records."
UNSEEN_KNOWN = "Unseen cells of which nobody knows who contributes to them can, or may, be worked out from the release."

UNSEEN_UNPROVED = "Very many unseen cells are sensitive, and not all of them were shown to be hidden."


@shown
@dataclass(frozen=True, eq=False)
class Findings:
    """Per sensitive cell what an attacker can derive, and whether that covers its protection interval."""

    problem: Problem = field(repr=False)
    release: Release = field(repr=False)
    system: System = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    """The cells judged: the sensitive ones; with cells="all" the unknown ones too."""
    lower: Floats = field(repr=False)
    """The least each cell can be, as far as an outsider can tell."""
    upper: Floats = field(repr=False)
    protected: Mask = field(repr=False)
    """Whether the interval reaches as far as the levels ask; decided in exact arithmetic."""
    exact: bool = True
    """Whether the intervals are exact; otherwise they reach at least as far as shown where a cell is protected."""
    certificate: Certificate | None = field(default=None, repr=False)
    insiders: Insiders | None = field(default=None, repr=False)
    """What respondents learn about each other; None when nobody asked."""
    unions: Unions | None = field(default=None, repr=False)
    """Sums of withheld cells that are published in effect; None when nobody asked."""
    possibly: Possibly = "open"
    """Whether cells that are only possibly open count as open, or are accepted."""
    late: bool = False
    """Whether the time was over before all was decided: what is not protected was perhaps only not looked at."""
    settled: Settled | None = field(default=None, repr=False)
    """What no respondent comes too close to, and what shows it: so that another release is asked about the rest."""
    worked_out: int | None = 0
    """How many unseen cells can be worked out though nobody knows who contributes to them; None: not looked at."""
    unproved: int = 0
    """How many sensitive unseen cells, where these are very many, nothing shows to be hidden as far as rules ask."""

    @property
    def safe(self) -> bool:
        """Whether every sensitive cell is protected from every attacker looked at; the verdict says who that is."""
        return self.verdict.safe

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict in a word, and in lines that say what was examined; every output repeats them."""
        return verdict_of(self)

    @property
    def failing(self) -> tuple[Opening, ...]:
        """What is open, and what is possibly open unless that was accepted."""
        return self._openings if self.possibly == "open" else self.open

    @property
    def not_proved(self) -> tuple[str, ...]:
        """What was not examined though nobody chose that, beside single cells: tables together, all sums, own parts."""
        apart = tuple(str(each) for each in self.apart if each.why != "ignored")
        parts = (UNSEEN_PARTS,) if self.unseen_parts and self.possibly == "open" else ()
        known = (UNSEEN_KNOWN,) if self.worked_out != 0 and self.possibly == "open" else ()
        unproved = (UNSEEN_UNPROVED,) if self.unproved and self.possibly == "open" else ()
        return (*apart, *((SUMS_LATE,) if self.sums_late else ()), *parts, *known, *unproved)

    @property
    def sums_late(self) -> bool:
        """Whether the time was over before all sums were searched for."""
        return self.unions is not None and self.unions.late

    @property
    def unseen_parts(self) -> bool:
        """Whether respondents were examined of whom nobody knows what they have in unseen cells."""
        table = self.problem.table
        asked = self.insiders is not None and self.insiders.examined and bool(len(self.problem.sensitive))
        return asked and table.unseen is not None and not table.judged

    @cached_property
    def apart(self) -> tuple[Apart, ...]:
        """Tables of the same records that were looked at one by one, and why."""
        return untied(self.problem.table)

    @property
    def prices(self) -> tuple[Price, ...]:
        """What each attacker costs, one after another, as far as the method tells."""
        return () if self.release.solution is None else self.release.solution.prices

    @property
    def value(self) -> Floats:
        """The true value of each cell."""
        return self.problem.table.value[self.cells]

    @cached_property
    def known(self) -> Mask:
        """Cells of which an outsider knows the exact value: published, or given away."""
        width = (self.upper - self.lower) * 10.0**self.problem.table.decimals
        return np.asarray(width <= NEVER_NARROWER + 1e-12 * np.abs(self.value), np.bool_)

    @property
    def disclosed_exactly(self) -> NDArray[np.intp]:
        """The cells that the release withholds, or hides in an interval, and yet gives away."""
        return self.cells[self.known & self._hidden[self.cells]]

    @cached_property
    def _hidden(self) -> Mask:
        return self.release.suppressed | (self.release.lower < self.release.upper)

    @property
    def open(self) -> tuple[Opening, ...]:
        """Every way in which a sensitive cell is open: by how much, from which side, to whom."""
        return tuple(opening for opening in self._openings if opening.certain)

    @property
    def possible(self) -> tuple[Opening, ...]:
        """What would be open if contributors that the table does not list were as large as they can be."""
        return tuple(opening for opening in self._openings if not opening.certain)

    @property
    def beyond_outsiders(self) -> tuple[Opening, ...]:
        """What is open to insiders, or by a sum, although every single cell may be protected from outsiders."""
        return tuple(opening for opening in self.open if opening.attacker != OUTSIDER or opening.how is How.SUM)

    @cached_property
    def _openings(self) -> tuple[Opening, ...]:
        found = [opening for at in np.flatnonzero(~self.protected).tolist() for opening in self._to_outsiders(at)]
        if self.insiders is not None:
            found += [opening for insider in self.insiders.found for opening in self._to_insider(insider)]
            found += [self._unsearched(cell, TOO_MANY) for cell in self.insiders.unsearched]
            found += [self._unsearched(cell, TOO_LATE) for cell in self.insiders.late]
        if self.unions is not None:
            found += [_to_all(union) for union in self.unions.failed]
        return tuple(found)

    def _to_outsiders(self, at: int) -> list[Opening]:
        cell, name = int(self.cells[at]), self.problem.table.describe(int(self.cells[at]))
        levels = self.problem.sensitivity
        below, above, wide = float(levels.lower[cell]), float(levels.upper[cell]), float(levels.sliding[cell])
        low, high = float(self.lower[at]), float(self.upper[at])
        if self.late and self._hidden[cell]:
            return [Opening(cell, name, How.UNPROVED, 0.0, low, high)]
        if self.known[at]:
            how = How.EXACT if self._hidden[cell] else How.PUBLISHED
            return [Opening(cell, name, how, max(below, above, wide), low, high)]
        value = float(self.value[at])
        shorts = {
            How.LOWER: _sum(low, -value, below),
            How.UPPER: _sum(value, above, -high),
            How.WIDTH: _sum(wide, -high, low),
        }
        noise = 1e-12 * max(1.0, abs(value))
        found = [Opening(cell, name, how, short, low, high) for how, short in shorts.items() if short > noise]
        return found or [Opening(cell, name, How.UNPROVED, 0.0, low, high)]

    def _to_insider(self, insider: Insider) -> list[Opening]:
        name = self.problem.table.describe(insider.cell)
        who = f"{insider.role}{': ' + ', '.join(insider.names) if insider.names else ''}"
        shorts = {How.LOWER: insider.short_below, How.UPPER: insider.short_above, How.WIDTH: insider.short_width}
        if insider.exact:
            shorts = {How.EXACT: max(shorts.values())}
        return [
            Opening(insider.cell, name, how, short, insider.lower, insider.upper, who, insider.certain)
            for how, short in shorts.items()
            if short > 0 or insider.exact
        ]

    def _unsearched(self, cell: int, who: str) -> Opening:
        at = int(np.flatnonzero(self.cells == cell)[0])
        name, low, high = self.problem.table.describe(cell), float(self.lower[at]), float(self.upper[at])
        return Opening(cell, name, How.UNPROVED, 0.0, low, high, who)

    @cached_property
    def _limits(self) -> ExactLimits:
        return exact_limits(self.problem, self.release, self.system)

    def explain(self, cell: int, side: Side | None = None) -> Explanation | None:
        """How an attacker gets the bound of a cell: the few equations that, combined, fix or narrow it.

        Without `side`, the side from which the cell is open. None for a published cell, and where a side has no bound.
        """
        found = np.flatnonzero(self.cells == cell)
        if not found.size:
            raise InvalidInput(
                f"Cell {self.problem.table.describe(cell)} was not audited.", hint="audit(..., cells='all')"
            )
        at = int(found[0])
        place = np.flatnonzero(self.system.cells == cell)
        if not place.size:
            return None
        side = side or self._worst_side(at)
        bound = float(self.upper[at] if side == "upper" else self.lower[at]) * 10.0**self.problem.table.decimals
        if not np.isfinite(bound):
            return None
        return explain(self.system, self._limits, int(place[0]), side=side, bound=bound)

    def _worst_side(self, at: int) -> Side:
        cell, levels = int(self.cells[at]), self.problem.sensitivity
        below = float(self.lower[at]) - (float(self.value[at]) - float(levels.lower[cell]))
        above = float(self.value[at]) + float(levels.upper[cell]) - float(self.upper[at])
        return "lower" if below > above else "upper"

    # -- how it is shown -----------------------------------------------------------------------------------------------

    def frame(self) -> pl.DataFrame:
        """One row per audited cell: its codes, true value, interval, what is required, and the verdict."""
        table, levels = self.problem.table, self.problem.sensitivity
        codes = {name: series.gather(self.cells.astype(np.uint32)) for name, series in table.code_columns().items()}
        first = {opening.cell: opening for opening in reversed(self.open) if opening.how is not How.SUM}
        worst = [first.get(int(cell)) for cell in self.cells]
        return pl.DataFrame(
            {
                **codes,
                "value": self.value,
                "sensitive": levels.mask[self.cells],
                "from": self.lower,
                "to": self.upper,
                "required from": self.value - levels.lower[self.cells],
                "required to": self.value + levels.upper[self.cells],
                "required width": levels.sliding[self.cells],
                "protected": self.protected,
                "known exactly": self.known,
                "open": pl.Series([None if w is None else str(w.how) for w in worst], dtype=pl.String),
                "short": pl.Series([None if w is None else w.short for w in worst], dtype=pl.Float64),
                "attacker": pl.Series([None if w is None else w.attacker for w in worst], dtype=pl.String),
            }
        )

    def to_pandas(self) -> Any:
        """The frame in pandas, codes as categories in the order of their hierarchies."""
        return to_library(self.frame(), "pandas", self.problem.table.orders)

    def to_native(self) -> Any:
        """The frame in the library that the data came from."""
        return to_library(self.frame(), self.problem.table.library, self.problem.table.orders)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The frame, for whatever reads Arrow: `pd.DataFrame.from_arrow(findings)`."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def to_json(self, *, explanations: int = MOST_SHOWN) -> str:
        """The findings as JSON; the first open cells come with how they are given away."""
        table = self.problem.table
        return json_lines(
            {
                "notice": "CONFIDENTIAL: holds true values of withheld cells.",
                "safe": self.safe,
                "verdict": str(self.verdict.word),
                "lines": list(self.verdict.lines),
                "possibly": self.possibly,
                "attackers": [
                    {"attacker": price.attacker, "cells": price.cells, "cost": price.cost, "proved": price.proved}
                    for price in self.prices
                ],
                "exact intervals": self.exact,
                "sensitive cells": int(self.problem.sensitivity.mask.sum()),
                "withheld cells": int(self.release.suppressed[: table.seen].sum()),
                "protected": int(self.protected[self._sensitive].sum()),
                "witness tables": None if self.certificate is None else self.certificate.witnesses,
                "disclosed exactly": [table.describe(int(cell)) for cell in self.disclosed_exactly],
                "open": [self._told(opening, number < explanations) for number, opening in enumerate(self.open)],
                "possible": [self._told(opening, False) for opening in self.possible],
                "possibly open": [
                    {"cell": each.cell, "attacker": each.attacker, "settled by": each.settled_by}
                    for each in self.verdict.possibly
                ],
                "cells": [
                    {name: _finite(value) for name, value in row.items()} for row in self.frame().iter_rows(named=True)
                ],
            }
        )

    def _told(self, opening: Opening, explained: bool) -> dict[str, Any]:
        return {
            "cell": opening.name,
            "how": str(opening.how),
            "short": opening.short,
            "from": _finite(opening.lower),
            "to": _finite(opening.upper),
            "attacker": opening.attacker,
            **(self._explained(opening) if explained else {}),
        }

    def _explained(self, opening: Opening) -> dict[str, Any]:
        if opening.because or opening.attacker != OUTSIDER:
            return {"because": opening.because} if opening.because else {}
        why = self.explain(opening.cell, _side(opening.how))
        return {} if why is None else {"because": why.text, "equations": list(why.steps)}

    @property
    def _sensitive(self) -> Mask:
        return self.problem.sensitivity.mask[self.cells]

    def text(self, *, shown: int = MOST_SHOWN, values: bool = True, verdict: Verdict | None = None) -> str:
        """A summary for the terminal; the first open cells are spelled out.

        Without `values` it says which cells are open but no number and no respondent, so that it may stand in a log.
        `verdict` is that of a release that was attacked in other ways as well.
        """
        return "\n".join(map(str, self.sentences(shown=shown, values=values, verdict=verdict)))

    def sentences(
        self, *, shown: int = MOST_SHOWN, values: bool = True, verdict: Verdict | None = None
    ) -> list[Text | str]:
        """The lines of `text`, those of them that can be said in another language as such."""
        verdict = verdict or self.verdict
        table = self.problem.table
        sensitive, withheld = int(self._sensitive.sum()), int(self.release.suppressed[: table.seen].sum())
        good = int(self.protected[self._sensitive].sum())
        changed = int((self.release.status == Status.CHANGED).sum())
        told = text(
            "{good:,} of {sensitive:,} sensitive cells are protected from outsiders", good=good, sensitive=sensitive
        )
        lines: list[Text | str] = [
            text(
                "{word}: {told} ({withheld:,} of {cells:,} cells are withheld, {changed:,} changed)."
                if changed
                else "{word}: {told} ({withheld:,} of {cells:,} cells are withheld).",
                word=text(str(verdict.word)),
                told=told if sensitive else text("no cell is sensitive"),
                withheld=withheld,
                cells=table.seen,
                changed=changed,
            ),
            *verdict.texts,
        ]
        if self.certificate is not None and good:
            many = self.certificate.witnesses
            lines.append(text("The proof has {many:,} witness table." if many == 1 else PROOF, many=many))
        if self.beyond_outsiders:
            sums = sum(opening.how is How.SUM for opening in self.beyond_outsiders)
            cells = len({opening.cell for opening in self.beyond_outsiders if opening.how is not How.SUM})
            beyond = "{cells:,} cells are open to insiders, {sums:,} sums of withheld cells fail a rule."
            lines.append(text(beyond, cells=cells, sums=sums))
        given_away = int(np.isin(self.disclosed_exactly, self.problem.sensitive).sum())
        if given_away:
            lines.append(text("{many:,} withheld sensitive cells are given away exactly.", many=given_away))
        for opening in self.open[:shown]:
            lines.extend(self._lines(opening) if values else [f"  {opening.name}: {_in_words(opening)}"])
        if len(self.open) > shown:
            lines.append(text("  ... and {many:,} more.", many=len(self.open) - shown))
        if self.possible:
            lines.extend(self._about_possible(shown, values=values))
        return lines

    def __str__(self) -> str:
        return self.text()

    def _about_possible(self, shown: int, *, values: bool) -> list[str]:
        """The possibly open cells, and what would settle them."""
        possibly = self.verdict.possibly
        lines = [f"{len(possibly):,} possibly open; to settle them: {possibly[0].settled_by}:"]
        some = possibly[:shown]
        lines += [f"  {each.cell}: possibly open to {each.attacker if values else 'a respondent'}" for each in some]
        return [*lines, f"  ... and {len(possibly) - shown:,} more."] if len(possibly) > shown else lines

    def _lines(self, opening: Opening) -> list[str]:
        show = self._show
        interval = f"{opening.attacker} derives [{show(opening.lower)}, {show(opening.upper)}]"
        what = {
            How.PUBLISHED: "published",
            How.EXACT: f"given away exactly to {opening.attacker}",
            How.LOWER: f"{interval}, but it must reach down to {show(opening.lower - opening.short)}",
            How.UPPER: f"{interval}, but it must reach up to {show(opening.upper + opening.short)}",
            How.WIDTH: f"{interval}, but it must be {show(opening.upper - opening.lower + opening.short)} wide",
            How.UNPROVED: f"{interval}; nothing proves that it reaches far enough",
            How.SUM: f"derived by {opening.attacker}",
        }[opening.how]
        short = f", {show(opening.short)} short" if opening.how in {How.LOWER, How.UPPER, How.WIDTH} else ""
        because = self._explained(opening).get("because")
        lines = [f"  {opening.name}: {what}{short}"]
        return [*lines, f"    because {because}"] if because else lines

    def _show(self, number: float) -> str:
        if not np.isfinite(number):
            return "∞" if number > 0 else "-∞"
        return f"{number:,.{max(self.problem.table.decimals, 1)}f}".removesuffix(".0")


def _in_words(opening: Opening) -> str:
    """How a cell is open, without any number, and without the name of a respondent who can open it."""
    whom = opening.attacker if opening.attacker == OUTSIDER else "a respondent"
    return {
        How.PUBLISHED: "published",
        How.EXACT: f"given away exactly to {whom}",
        How.UNPROVED: f"nothing proves that {whom} stays far enough away",
        How.SUM: f"derived by {whom}",
    }.get(opening.how, f"{whom} comes too close")


def _to_all(union: Union) -> Opening:
    rules = ", ".join(union.rules)
    return Opening(
        union.cells[0], f"a sum of {len(union.cells)} withheld cells that fails {rules}", How.SUM, 0.0, union.value,
        union.value, OUTSIDER, union.certain, union.text,
    )  # fmt: skip


def _sum(*terms: float) -> float:
    """A sum of decimal numbers without the noise of floating point."""
    return float(sum(map(exact, terms))) if np.isfinite(terms).all() else sum(terms)


def _side(how: How) -> Side | None:
    return "lower" if how is How.LOWER else "upper" if how is How.UPPER else None


def _finite(value: Any) -> Any:
    """Infinite bounds as null: JSON has no infinity."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
