"""All pages, and which of them take more than a few seconds."""

from __future__ import annotations

from collections.abc import Callable

from reproduce import (
    cox_kelly,
    cox_vulnerability,
    dandekar_cox,
    dandekar_patterns,
    myth_and_reality,
    roehrig,
    working_paper_22,
)

PAGES: dict[str, Callable[[], str]] = {
    module.NAME: module.page
    for module in (
        working_paper_22,
        dandekar_cox,
        dandekar_patterns,
        myth_and_reality,
        cox_kelly,
        cox_vulnerability,
        roehrig,
    )
}
SLOW = frozenset({"dandekar-patterns", "cox-kelly"})
"""Pages that take more than five seconds to make: the tests make the others again and compare."""
