"""An executor that remembers: what was worked out before a run was stopped is not worked out again.

A task is known by all that it consists of. Since every method asks the same questions in the same order, a run that
begins again finds its way through the answers of the first, to where that was stopped, and the end is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from hashlib import sha256
from typing import Any, Protocol

from tablesafe.files.serialization import CannotKeep, freeze, thaw

WORTH_S = 0.2
"""Seconds of work from which on an answer is kept."""


class Store(Protocol):
    """Where answers are kept."""

    def get(self, key: str) -> bytes | None:
        """What was kept under a key."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Keep something under a key."""
        ...


class Remembering(Executor):
    """Another executor, or this process, with a memory."""

    def __init__(self, inner: Executor | None, store: Store) -> None:
        self.inner = inner
        self._store = store

    def over(self, inner: Executor) -> Remembering:
        """The same memory over another executor."""
        return Remembering(inner, self._store)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called, without remembering what came of it."""
        if self.inner is not None:
            return self.inner.submit(function, *args, **kwargs)
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future

    def key(self, function: Callable[..., Any], tasks: list[Any]) -> str:
        """What tasks are known by; nothing where they cannot be told from others."""
        try:
            return sha256(f"{function.__module__}.{function.__qualname__}\0".encode() + freeze(tasks)).hexdigest()
        except CannotKeep:
            return ""

    def recall(self, key: str) -> Any:
        """The answer to tasks; None when it is not known."""
        data = self._store.get(key) if key else None
        try:
            return None if data is None else thaw(data)
        except ValueError:
            return None

    def keep(self, key: str, answer: Any, seconds: float) -> None:
        """Remember an answer, if it was work to find."""
        if key and seconds >= WORTH_S:
            try:
                self._store.put(key, freeze(answer))
            except CannotKeep:
                return
