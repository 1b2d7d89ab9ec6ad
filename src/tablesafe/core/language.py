"""What is said to readers in their own language: English texts are the keys, and a catalogue has the others.

A sentence that is made of parts remembers them (`Text`): it reads in English as it always did, and can be said in
another language where it is shown. Nobody takes a text apart. What a catalogue lacks stays English; tests find it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any, Literal, TypeAlias, get_args

Code: TypeAlias = Literal["en", "de", "fr", "es"]
CODES: tuple[str, ...] = get_args(Code)
THOUSANDS = "\N{NARROW NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence with its parts, which may be sentences, words or numbers."""

    template: str
    parts: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return ENGLISH.say(self)


def text(template: str, /, **parts: Any) -> Text:
    """A sentence, with the parts that stand in its braces."""
    return Text(template, tuple(parts.items()))


def joined(separator: str, sentences: Sequence[Text | str]) -> Text:
    """Several sentences in one, with something between them that is the same in all languages."""
    names = [f"part{number}" for number in range(len(sentences))]
    return Text(separator.join(f"{{{name}}}" for name in names), tuple(zip(names, sentences, strict=True)))


def frozen(what: Text | str) -> Any:
    """A sentence as plain data, to be said elsewhere."""
    if not isinstance(what, Text):
        return what
    return {"text": what.template, "parts": {name: frozen(part) for name, part in what.parts}}


def thawed(data: Any) -> Any:
    """The sentence that plain data was."""
    if not isinstance(data, dict):
        return data
    return Text(data["text"], tuple((name, thawed(part)) for name, part in data["parts"].items()))


class Language(Formatter):
    """One language: what texts are in it, and how its numbers are written."""

    def __init__(self, code: str, texts: Mapping[str, str]) -> None:
        self.code, self.texts = code, texts

    def say(self, what: Text | str, /, **parts: Any) -> str:
        """A text in this language, with its parts in their places."""
        if isinstance(what, Text):
            return self.say(what.template, **dict(what.parts))
        known = self.texts.get(what, what)
        return self.vformat(known, (), parts) if parts else known

    def format_field(self, value: Any, format_spec: str) -> str:
        """A part as this language writes it: sentences said, numbers with their own separators."""
        if isinstance(value, Text):
            return self.say(value)
        written = format(value, format_spec)
        return self.number(written) if isinstance(value, (int, float)) else written

    def number(self, written: str) -> str:
        """A number that was written with commas between thousands and a decimal point."""
        return written if self.code == "en" else written.replace(",", THOUSANDS).replace(".", ",")


ENGLISH = Language("en", {})


@cache
def language(code: str) -> Language:
    """A language by its code."""
    if code == "en":
        return ENGLISH
    import tomllib
    from importlib.resources import files

    catalogue = files("tablesafe").joinpath("texts", f"{code}.toml").read_text(encoding="utf-8")
    return Language(code, tomllib.loads(catalogue))
