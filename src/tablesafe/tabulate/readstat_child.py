"""The process that opens a file of Stata, SPSS or SAS for `readstat`: run by its path, imports nothing of tablesafe.

It writes one line of JSON, `{"labels": {column: [[value, label], ...]}}` or `{"error": "..."}`, and after it the
records as an Arrow stream.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from importlib import import_module


def main(reader: str, path: str, metadataonly: bool) -> None:
    """Write what a file holds to standard output; say what is wrong otherwise."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        resource = import_module("resource")  # not on Windows
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pyreadstat

    data, head = io.BytesIO(), dict[str, object]()
    try:
        given, meta = getattr(pyreadstat, reader)(path, output_format="polars", metadataonly=metadataonly)
        given.write_ipc_stream(data)
        head["labels"] = {column: list(own.items()) for column, own in (meta.variable_value_labels or {}).items()}
    except BaseException as error:  # a panic of compiled code is no Exception
        head["error"] = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
    sys.stdout.buffer.write(data.getbuffer())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "metadata")
