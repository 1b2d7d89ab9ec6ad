"""The pages of the documentation, and the examples on them.

A block of `python` or `sh` is run as it stands. A block of `console` holds commands after `$ ` and what they print,
which must be the same but for times; a line of `...` stands for any lines. Marks before a block:

- `<!-- file: NAME -->`: the block is a file, which the next blocks read;
- `<!-- shown: NAME -->`: a file of that name must have been written, equal to the block;
- `<!-- output -->`: what the Python block before it printed;
- `<!-- not run: REASON -->`: the block is not run, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
MADE = {"api.md", "cli.md", "errors.md", "formats.md", "job-file.md"}
"""Pages that are made from the code: what they show was run when they were made."""
BLOCK = re.compile(
    r"(?:<!-- (file|shown|output|not run)(?:: ([^\n]*?))? -->\n\s*)?^```(\w*)\n(.*?)^```",
    flags=re.DOTALL | re.MULTILINE,
)
RUN = {"python", "sh", "console"}


@dataclass(frozen=True, slots=True)
class Block:
    """One example: its language, its text, what it is, and the file that it is or shows."""

    language: str
    text: str
    kind: str
    file: str


def pages() -> list[str]:
    """Every page, by its path below the folder of the documentation."""
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def text_of(page: str) -> str:
    """The text of a page."""
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(language, body, kind, file) for kind, file, language, body in BLOCK.findall(text_of(page))]


def has_examples(page: str) -> bool:
    """Whether a page has anything to run."""
    return page not in MADE and not page.startswith("papers/") and any(b.language in RUN for b in blocks(page))
