"""`python docs/reference`: write all reference pages."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    sys.path[0] = str(DOCS)
    from reference.writing import write_reference

    write_reference(DOCS)
