"""`python -m tablesafe` is the command line."""

from __future__ import annotations

from tablesafe.cli import main

if __name__ == "__main__":  # worker processes import this file too
    main()
