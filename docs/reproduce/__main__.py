"""`python docs/reproduce [page …]`: run the code and write the pages of the papers."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS))

from reproduce.pages import PAGES  # noqa: E402


def main() -> None:
    """Write the pages that are named, or all of them."""
    for name in sys.argv[1:] or PAGES:
        print(name)
        (DOCS / "papers" / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")


if __name__ == "__main__":
    main()
