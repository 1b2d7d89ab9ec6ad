"""How the app is served: every option, declared once."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any

from tablesafe.core.errors import InvalidOption

SHORTEST_TOKEN = 16
"""Letters of a token that nobody guesses."""


def _option(help: str, default: Any) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How the app is served: declared once, for the command line, the library and the reference."""

    host: str = _option("address to listen on; anything but this machine itself needs --allow-remote", "127.0.0.1")
    allow_remote: bool = _option(
        "let other machines in; they need the token, but nothing is encrypted on the way", False
    )
    port: int | None = _option(
        "port to listen on; 0 takes any that is free; 8080 or the next free one when not given", None
    )
    known_as: tuple[str, ...] = _option(
        "further name by which browsers reach the app, as app.example.org or localhost:9000, behind a proxy or tunnel",
        (),
    )
    token: str | None = _option(
        "token of the address; safer in TABLESAFE_TOKEN, and random when not given",
        None,
    )
    no_browser: bool = _option("do not open the address in the browser", False)
    upload_limit_mb: int = _option("largest upload, in megabytes", 1024)
    most_runs: int = _option("runs at a time; the others wait their turn", 2)
    most_sessions: int = _option("browsers at a time", 16)
    expire_hours: float = _option("hours after which a session that nobody uses is removed with its files", 12.0)
    log_requests: bool = _option("write a line for each request, without what was asked for in it", False)

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port <= 65535:
            raise InvalidOption(f"port must be from 0 to 65535, got {self.port}.")
        for name in self.known_as:
            if not re.fullmatch(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?", name):
                raise InvalidOption(f"known_as must be a name as in an address, such as app.example.org, got {name!r}.")
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise InvalidOption(f"token must have {SHORTEST_TOKEN} letters or more: it is all that keeps others out.")
        for name in ("upload_limit_mb", "most_runs", "most_sessions"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} must be 1 or more, got {getattr(self, name)}.")
        if not self.expire_hours > 0:
            raise InvalidOption(f"expire_hours must be above 0, got {self.expire_hours}.")
        if not self.allow_remote and not is_loopback(self.host):
            raise InvalidOption(
                f"{self.host!r} can be reached from other machines.",
                hint="leave out --host, or add --allow-remote if the network is one that you trust.",
            )


def is_loopback(host: str) -> bool:
    """Whether an address is that of this machine for itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
