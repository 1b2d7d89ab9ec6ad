"""`tablesafe suppress`: choose what to withhold, or repair a pattern somebody made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.run import show_result
from tablesafe.cli.show import print_json, say
from tablesafe.cli.sources import SchemeName, Tolerance, problem_job

if TYPE_CHECKING:
    from tablesafe.job import Job
    from tablesafe.pipeline import Result


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of the method; what is not given stays as the job file, or the method itself, has it."""

    algorithm: Annotated[str | None, Parameter(help="auto, optimal, sequential, modular, network or slices")] = None
    cost: Annotated[
        str | None,
        Parameter(
            help="what a cell costs: problem (its own cost, by default its value), unit, value, count, log, "
            "distance (from the nearest sensitive cell), inverse (1/(1+value)), log_over_value, or a column"
        ),
    ] = None
    power: Annotated[float | None, Parameter(help="Box–Cox λ: costs are raised to this power, 0 means log(1+cost)")] = (
        None
    )
    prefer: Annotated[
        str | None,
        Parameter(
            help="column with degrees of preference: each degree halves the cost of withholding a cell, each "
            "negative one doubles it"
        ),
    ] = None
    keep: Annotated[
        Path | None,
        Parameter(
            help="file with a pattern somebody made: it is audited and repaired, what it withholds stays withheld"
        ),
    ] = None
    clean_up: Annotated[
        bool | None,
        Parameter(
            help="publish again what the pattern `keep` withholds needlessly, the dearest first; the office's own "
            "choices (cells suppressed in the problem) stay"
        ),
    ] = None
    unprotectable: Annotated[
        str | None,
        Parameter(
            help="a cell that nothing protects while frozen cells and zeros are published: error; withhold totals, the "
            "fewest of these that give it away; or merge, in a job: its code with one beside it. Both are told"
        ),
    ] = None
    previous: Annotated[
        Path | None,
        Parameter(help="file with last period's pattern: its cells are preferred, and how many are kept is reported"),
    ] = None
    scheme: Annotated[
        SchemeName | None,
        Parameter(help="the vocabulary of the statuses in these files; when not given, they must leave no doubt"),
    ] = None
    previous_discount: Annotated[
        float | None, Parameter(help="by which share of its cost a cell is cheaper that was withheld last period")
    ] = None
    same_pattern: Annotated[
        bool | None, Parameter(help="withhold the same cells in every response variable; else what is best in each")
    ] = None
    margin: Annotated[
        float | None, Parameter(help="further protection where there is room, as a share of the levels")
    ] = None
    zeros: Annotated[bool | None, Parameter(help="cells of value zero may be withheld too")] = None
    randomise: Annotated[
        float | None,
        Parameter(
            help="disturb costs at random by up to this share (1e-6 only breaks ties), so that nobody who knows "
            "the algorithm can retrace its choices; needs a seed of your own, kept secret"
        ),
    ] = None
    time_limit_s: Annotated[
        float | None,
        Parameter(
            help="end after this many seconds, with repair and audit; where that is too short for a first safe "
            "pattern, as soon as there is one"
        ),
    ] = None
    seed: Annotated[int | None, Parameter(help="seed of the random choices; equal seed, equal pattern")] = None

    def given(self) -> dict[str, Any]:
        """The options that were given, as the method wants them."""
        chosen = {spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)}
        return {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in chosen.items()
            if value is not None
        }


NO_CHOICES = Choices()


def suppress(
    problem: Path,
    /,
    *,
    choices: Choices = NO_CHOICES,
    apriori: Annotated[
        tuple[Path, ...],
        Parameter(
            help="a-priori file with statuses, costs, levels and bounds: .hst, CSV, Parquet, Excel; repeatable, the "
            "last says what counts"
        ),
    ] = (),
    output: Annotated[
        tuple[Path, ...], Parameter(alias="-o", help="write the release here: .csv, .parquet or .xlsx; repeatable")
    ] = (),
    internal: Annotated[
        Path | None, Parameter(help="folder for what stays in the office: certificate, findings, report")
    ] = None,
    pictures: Annotated[
        bool | None, Parameter(help="pictures in the report; as the job file says, without one only on request")
    ] = None,
    force: Annotated[bool, Parameter(help="write the release even if its audit finds it open")] = False,
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing when all is well")] = False,
) -> int:
    """Withhold as many cells as it takes, as cheap as can be, and prove that nothing sensitive can be derived.

    With --keep it repairs a pattern that somebody made. Ctrl-C ends the search, not the run: the best pattern found so
    far is audited and written.

    Parameters
    ----------
    problem
        a JJ file, a .tab file with its .rda, or a job file
    """
    from tablesafe.pipeline import run

    job = _job(problem, choices, apriori, output, internal, tolerance, pictures=pictures)
    result = run(job, force=True if force else None, progress=not (json or quiet))
    code = Exit.OK if result.safe else Exit.UNSAFE
    if json:
        print_json({**result.facts(), "exit_code": int(code)})
    elif not (quiet and result.safe):
        say(_told(result))
        show_result(result)
    return code


def _job(
    path: Path,
    choices: Choices,
    apriori: tuple[Path, ...],
    output: tuple[Path, ...],
    internal: Path | None,
    tolerance: float,
    *,
    pictures: bool | None = None,
) -> Job:
    """The job file, or one that reads the problem, with what the options say."""
    from tablesafe.core.errors import InvalidFile, InvalidOption, joined
    from tablesafe.job.checks import check
    from tablesafe.methods import Suppress

    for file in (path, *apriori, choices.keep, choices.previous):
        if file is not None and not file.is_file():
            raise InvalidFile(f"There is no file {str(file)!r}.")
    job = problem_job(path, tolerance)
    method = job.method if isinstance(job.method, Suppress) else Suppress()
    outputs = job.output
    if output:
        outputs = dataclasses.replace(outputs, release=tuple(str(file.absolute()) for file in output))
    if internal is not None or job.path is None:
        folder = internal or Path(f"{path.name.partition('.')[0]}-internal")
        outputs = dataclasses.replace(outputs, internal=str(folder.absolute()))
    if pictures is not None or job.path is None:
        outputs = dataclasses.replace(outputs, pictures=bool(pictures))
    options = job.problem
    if apriori:
        known = tuple(str(file.absolute()) for file in apriori)
        options = dataclasses.replace(options, apriori=known, scheme=choices.scheme)
    job = dataclasses.replace(
        job, method=dataclasses.replace(method, **choices.given()), output=outputs, problem=options
    )
    faults = check(job)
    if faults:
        raise InvalidOption(joined("\n", [fault.message for fault in faults]))
    return job


def _told(result: Result) -> str:
    """What was chosen, in a few lines."""
    solution, sensitive = result.release.solution, len(result.problem.sensitive)
    more = result.facts()["by_status"].get("complementary", 0)
    if not sensitive:
        return "No cell is sensitive: nothing needs to be withheld."
    cells = "1 cell is sensitive" if sensitive == 1 else f"{sensitive:,} cells are sensitive"
    whom = "it" if sensitive == 1 else "them"
    lines = [f"{cells}; {more:,} more {'is' if more == 1 else 'are'} withheld to protect {whom}."]
    if solution is not None:
        least = "how far it is from the least is not proven"
        if solution.bound > 0:
            least = f"no pattern costs less than {solution.bound:,.9g} (gap {solution.gap:.1%})"
        word = "proven to be the least" if solution.gap < 1e-9 else least
        lines.append(f"What is withheld besides costs {solution.objective:,.9g}: {word}.")
        lines += [solution.priced] if solution.priced else []
    if result.stability is not None:
        lines.append(str(result.stability))
    return "\n".join(lines)
