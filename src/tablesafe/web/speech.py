"""What pages say, in the language that their user has chosen: the same catalogue as that of the reports."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from nicegui import context

from tablesafe.core.language import CODES, ENGLISH, Language, Text, language
from tablesafe.web.answers import SCOPE

if TYPE_CHECKING:
    from fastapi import Request

    from tablesafe.web.sessions import Session

NAMES = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español"}
"""Languages by what they call themselves."""
CHOSEN = "language"
"""Where the state of a session keeps the choice."""


def say(what: Text | str, /, **parts: Any) -> str:
    """A text in the language of the page that is being drawn."""
    return spoken_here().say(what, **parts)


def aria(what: str, /, **parts: Any) -> str:
    """The name of an element for those who cannot see it, as a property of it."""
    return f'aria-label="{escape(say(what, **parts))}"'


def numeral(value: float, how: str = ",") -> str:
    """A number as the language of the page writes it; `how` is its format."""
    return spoken_here().number(format(value, how))


def spoken_here() -> Language:
    """The language of the page that is being drawn; English where none is."""
    try:
        request = context.client._request
    except RuntimeError:  # nothing is drawn
        return ENGLISH
    session = None if request is None else request.scope.get(SCOPE)
    return ENGLISH if session is None or request is None else spoken_by(session, request)


def spoken_by(session: Session, request: Request) -> Language:
    """The language of a session: what its user has chosen, or what the browser asks for."""
    return language(session.state.setdefault(CHOSEN, preferred(request.headers.get("accept-language", ""))))


def preferred(header: str) -> str:
    """The first of our languages that a browser asks for; English where it asks for none."""
    asked = []
    for place, part in enumerate(header.split(",")[:20]):
        code, _, quality = part.strip().partition(";q=")
        try:
            asked.append((-float(quality or 1), place, code[:2].lower()))
        except ValueError:
            continue
    return next((code for _, _, code in sorted(asked) if code in CODES), "en")
