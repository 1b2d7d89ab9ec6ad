"""`tablesafe demo`: the packaged example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tablesafe.cli.exits import Exit
from tablesafe.cli.run import show_result
from tablesafe.cli.show import print_json, say


def demo(
    *,
    output: Annotated[Path, Parameter(alias="-o", help="folder to put it in")] = Path("tablesafe-demo"),
    json: Annotated[bool, Parameter(help="print one JSON document and nothing else")] = False,
    quiet: Annotated[bool, Parameter(help="print nothing when all is well")] = False,
) -> int:
    """Run the packaged example from end to end: revenue of US electric utilities by state, month and sector.

    The data, the hierarchies and the job file are copied into a folder, and the job is run there: change it and run it
    again with `tablesafe run`.
    """
    from tablesafe.pipeline import run

    job = copy_demo(output)
    result = run(job, progress=not (json or quiet))
    code = Exit.OK if result.safe else Exit.UNSAFE
    if json:
        print_json({**result.facts(), "exit_code": int(code), "job": str(job)})
        return code
    show_result(result, quiet=quiet)
    if not quiet:
        say(f"\nNext: open {result.internal / 'report.html'} in a browser, change {job}, and run it again:")
        say(f"  tablesafe run {job}")
    return code


def copy_demo(folder: Path) -> Path:
    """Copy the packaged example into a folder, but never over what is there; its job file is returned."""
    from importlib.resources import files

    from tablesafe.core.errors import InvalidFile

    if folder.exists() and not folder.is_dir():
        raise InvalidFile(f"{str(folder)!r} is a file; the demo needs a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item in files("tablesafe").joinpath("demo").iterdir():
            target = folder / item.name
            if item.is_file() and item.name.endswith((".csv", ".toml")) and not target.exists():
                target.write_bytes(item.read_bytes())
    except OSError as error:
        raise InvalidFile(f"Cannot write to {str(folder)!r}: {error.strerror}.") from error
    return folder / "job.toml"
