"""`tablesafe attack`: guess what a release hides, as an intruder would."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_frame, print_json, say
from tablesafe.cli.sources import SchemeOption, Tolerance, read_problem


def attack(
    problem: Path,
    release: Path | None = None,
    /,
    *,
    pattern: Annotated[
        Path | None, Parameter(help="file that says which cells are withheld; the same as RELEASE")
    ] = None,
    scheme: SchemeOption = None,
    attacks: Annotated[
        tuple[str, ...], Parameter(help="an attack to try, by name, such as hit-and-run; repeat it; all without it")
    ] = (),
    prior: Annotated[
        Path | None, Parameter(help="last period's table, with the same codes: maximum entropy starts from it")
    ] = None,
    time_limit_s: Annotated[float, Parameter(help="most seconds for each attack")] = 60.0,
    seed: Annotated[int, Parameter(help="seed of the attacks that draw at random; equal seed, equal guesses")] = 1,
    output: Annotated[
        Path | None, Parameter(alias="-o", help="write the cells by risk here: .csv, .xlsx or .parquet; internal")
    ] = None,
    scores: Annotated[Path | None, Parameter(help="write one row per attack here: .csv, .xlsx or .parquet")] = None,
    densities: Annotated[
        Path | None, Parameter(help="write here how the solutions of each attack with many are spread; internal")
    ] = None,
    plot: Annotated[Path | None, Parameter(help="draw the densities of the last such attack: .svg, .png, .pdf")] = None,
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print the scores as one JSON document")] = False,
    quiet: Annotated[bool, Parameter(help="print only the headline")] = False,
) -> int:
    """Guess what a release hides by every attack there is, and say how near the guesses come to the truth.

    What is printed and written compares with the truth: it stays in the office. The exit code is 1 when a sensitive
    cell can be one number only. Without a release, the cells that the file itself marks as sensitive or suppressed are
    withheld.

    Parameters
    ----------
    problem
        a JJ file, a .tab file with its .rda, or a job file
    release
        what was released: a pattern of withheld cells, or values with the columns 'from' and 'to'
    """
    from tablesafe.attack.registry import choose
    from tablesafe.attack.suite import Scores, estimate_by
    from tablesafe.attack.view import View
    from tablesafe.core.errors import InvalidOption
    from tablesafe.io.frames import write_frame
    from tablesafe.io.patterns import read_release, read_values
    from tablesafe.methods import Withhold
    from tablesafe.report.progress import Event, progress_bar

    if release is not None and pattern is not None:
        raise InvalidOption("The release is named twice.", hint="leave out --pattern.")
    if not time_limit_s > 0:
        raise InvalidOption(f"--time-limit-s must be above 0, got {time_limit_s}.")
    with progress_bar(enabled=not (json or quiet)) as listen:
        given = read_problem(problem, listen, tolerance)
        source = release or pattern
        shown = Withhold().protect(given) if source is None else read_release(source, given, scheme=scheme)
        chosen = choose(attacks, seed=seed, prior=None if prior is None else read_values(prior, given))
        listen(Event("attack", "Working out what is possible", 0, len(chosen)))
        view, estimates = View.of(given, shown), []
        for number, each in enumerate(chosen):
            listen(Event("attack", f"Trying the {each.name}", number, len(chosen)))
            estimates.append(estimate_by(each, given, view, time_limit_s))
    found = Scores.of(estimates)
    if output is not None:
        write_frame(found.ranking(), output)
    if scores is not None:
        write_frame(found.frame(), scores)
    if densities is not None:
        write_frame(_densities(estimates), densities)
    if plot is not None:
        _plot(estimates, plot)
    if json:
        print_json({"headline": found.headline, "attacks": [_plain(row) for row in found.frame().to_dicts()]})
    else:
        if not quiet:
            print_frame(found.frame(), rows=50)
        say(
            found.headline,
            style="red" if found.worst.exactly.any() else "yellow" if found.worst.disclosed.any() else "green",
        )
    return Exit.UNSAFE if found.worst.exactly.any() else Exit.OK


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON, which has no infinity."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}


def _with_density(estimates: list[Any]) -> list[Any]:
    from tablesafe.core.errors import InvalidOption

    many = [estimate for estimate in estimates if estimate.density is not None]
    if not many:
        raise InvalidOption(
            "None of these attacks has a density.", hint="--attacks mean-of-vertices, or --attacks hit-and-run."
        )
    return many


def _densities(estimates: list[Any]) -> Any:
    import polars as pl

    from tablesafe.attack.suite import density_table

    tables = [
        density_table(each).insert_column(0, pl.lit(each.attack).alias("attack")) for each in _with_density(estimates)
    ]
    return pl.concat(tables)


def _plot(estimates: list[Any], path: Path) -> None:
    from tablesafe.report.plots import densities

    densities(_with_density(estimates)[-1]).save(path)
