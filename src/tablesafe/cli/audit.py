"""`tablesafe audit`: attack a table and its pattern."""

from __future__ import annotations

import shlex
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.show import print_json_text, say
from tablesafe.cli.sources import SchemeOption, Tolerance, read_problem


def audit(
    problem: Path,
    /,
    *,
    pattern: Annotated[Path | None, Parameter(help="file that says which cells are withheld")] = None,
    column: Annotated[str | None, Parameter(help="column of the pattern with the statuses")] = None,
    scheme: SchemeOption = None,
    complete: Annotated[
        Literal["yes", "no"], Parameter(help="whether the pattern names every cell; no: the rest is published")
    ] = "yes",
    cells: Annotated[Literal["sensitive", "all"], Parameter(help="which cells to bound exactly")] = "sensitive",
    fast: Annotated[bool, Parameter(help="only decide what is protected; intervals are then not exact")] = False,
    outsiders_only: Annotated[bool, Parameter(help="do not ask what respondents learn about each other")] = False,
    coalition: Annotated[int, Parameter(help="how many respondents may put together what they know")] = 1,
    possibly: Annotated[
        Literal["open", "accept"],
        Parameter(help="cells that are open only if contributors not listed are large: count them as open, or accept"),
    ] = "open",
    integers: Annotated[bool, Parameter(help="the attacker knows that values are whole numbers")] = False,
    certificate: Annotated[Path | None, Parameter(help="write the proof here; it is an internal document")] = None,
    sign: Annotated[Path | None, Parameter(help="private key (.key) that signs the certificate")] = None,
    output: Annotated[Path | None, Parameter(alias="-o", help="write the findings here: .csv, .xlsx or .json")] = None,
    report: Annotated[Path | None, Parameter(help="write a report for the office here: .html, .json or .xlsx")] = None,
    record: Annotated[
        Path | None, Parameter(help="folder for all that a run keeps in the office: report, findings, cells and proof")
    ] = None,
    tolerance: Tolerance = 0.0,
    json: Annotated[bool, Parameter(help="print the findings as one JSON document")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing when all is safe")] = False,
) -> int:
    """Attack a table with its pattern of withheld cells, and say what can be derived.

    A pattern may be the table as it was published: blank, c, x, .. and : stand for withheld values. The exit code is 1
    when a sensitive cell is open, possibly open (unless that is accepted), or not proved to be protected. Without a
    pattern, the cells that the file itself marks as sensitive or suppressed are withheld.

    Parameters
    ----------
    problem
        a JJ file, a .tab file with its .rda, or a job file
    """
    from tablesafe.audit.audit import audit as attack
    from tablesafe.core.release import Release
    from tablesafe.files.write import write_text
    from tablesafe.io.frames import write_frame
    from tablesafe.io.patterns import read_pattern
    from tablesafe.methods import Withhold
    from tablesafe.pipeline.outputs import together
    from tablesafe.pipeline.running import write_record
    from tablesafe.report.progress import Event, progress_bar
    from tablesafe.report.summary import Origin
    from tablesafe.report.writing import Subject

    with progress_bar(enabled=not (json or quiet)) as listen:
        given = read_problem(problem, listen, tolerance)
        if pattern is None:
            release = Withhold().protect(given)
        else:
            mask = read_pattern(pattern, given, column=column, scheme=scheme, complete=complete == "yes")
            release = Release.from_suppression(given, mask, method=pattern.name)
        findings = attack(
            given,
            release,
            cells=cells,
            exact=not fast,
            insiders=not outsiders_only,
            coalition=coalition,
            possibly=possibly,
            integers=True if integers else None,
            progress=lambda done: listen(Event("audit", "Attacking the release", round(100 * done), 100)),
        )
    if report is not None or record is not None:
        hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in (problem, pattern) if path is not None}
        command = shlex.join(["tablesafe", "audit", problem.name, *(["--pattern", pattern.name] if pattern else [])])
        origin = Origin(
            f"Audit of {problem.name}", problem.name, command, files=hashes, made=datetime.now().astimezone()
        )
        subject = Subject(problem=given, release=release, findings=findings, origin=origin)
        with together() as outputs:
            if report is not None:
                subject.write(outputs.place(report, private=True), internal=True)
            if record is not None:
                write_record(record, outputs, subject, {}, key=sign)
    if certificate is not None and findings.certificate is not None:
        findings.certificate.save(certificate, key=sign)
    if output is not None:
        if output.suffix.lower() == ".json":
            write_text(output, findings.to_json())
        else:
            write_frame(findings.frame(), output)
    if json:
        print_json_text(findings.to_json())
    elif not (quiet and findings.safe):
        say(findings.text(), style="green" if findings.safe else "red")
    return Exit.OK if findings.safe else Exit.UNSAFE
