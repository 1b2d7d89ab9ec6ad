"""An interrupt ends a search, not the run: what was found so far is kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tablesafe.work.budget import Budget


class Ending(Protocol):
    """A search that ends by itself when its time is up."""

    budget: Budget
    stopped: bool
    """Whether the user has interrupted it."""


@contextmanager
def until_interrupted(search: Ending) -> Iterator[None]:
    """Leave at the first interrupt, with no time left for what follows; the second one goes on to the caller."""
    try:
        yield
    except KeyboardInterrupt:
        if search.stopped:
            raise
        warnings.warn("Interrupted: the best change so far is kept. Interrupt again to stop.", stacklevel=4)
        search.stopped = True
        search.budget.stop()
