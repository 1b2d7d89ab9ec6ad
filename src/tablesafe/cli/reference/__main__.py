"""`python -m tablesafe.cli.reference docs`: write all reference pages."""

import sys
from pathlib import Path

from tablesafe.cli.reference.writing import write_reference

if __name__ == "__main__":
    write_reference(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
