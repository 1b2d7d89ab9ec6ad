"""The process that opens a workbook for `workbook`: it is run by its path and imports nothing of tablesafe.

It writes one line of JSON, `{"sheets": [...]}` or `{"error": "..."}`, and after it the chosen sheet as an Arrow stream:
its rows below the first, which names the columns, or with `raw` every cell as text, as it stands, from row 1 on.
"""

from __future__ import annotations

import contextlib
import json
import sys
from importlib import import_module
from typing import Literal


def main(path: str, sheet: str, limit: int, raw: bool) -> None:
    """Write the sheet, or the only one if none is named, to standard output; say what is wrong otherwise."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        resource = import_module("resource")  # not on Windows
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import fastexcel
    import pyarrow as pa

    try:
        workbook = fastexcel.read_excel(path)
        sheets = list(workbook.sheet_names)
        chosen = sheet or (sheets[0] if len(sheets) == 1 else "")
        loaded = None
        if chosen in sheets:
            header = None if raw else 0
            text: Literal["string"] | None = "string" if raw else None
            loaded = workbook.load_sheet(chosen, header_row=header, skip_rows=0 if raw else None, dtypes=text)
        batch = None if loaded is None else loaded.to_arrow()
        first = 0 if loaded is None else min((c.absolute_index for c in loaded.available_columns()), default=0)
    except BaseException as error:  # a panic of compiled code is no Exception
        _say({"error": (str(error).strip().splitlines() or [type(error).__name__])[0][:200]})
        return
    _say({"sheets": sheets, "rows": None if batch is None else batch.num_rows, "first_column": first})
    if batch is not None:
        with pa.ipc.new_stream(sys.stdout.buffer, batch.schema) as stream:
            stream.write_batch(batch)


def _say(document: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(document).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "raw")
