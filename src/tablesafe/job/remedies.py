"""What can be done about an error by setting keys of a job: each a sentence for a button, and what it sets.

Errors name the options that would help as data; an interface that edits a job can do what it advises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tablesafe.core.errors import About, Setting, Words
from tablesafe.core.language import Text, text
from tablesafe.job.decode import options
from tablesafe.job.questions import Answer
from tablesafe.job.toml import KeyPath
from tablesafe.job.words import key_of
from tablesafe.methods import METHODS

HIERARCHIES = (".hrc",)
WORDS: dict[tuple[str, Any], str] = {
    ("missing", "drop"): "Leave out the records without a code of {of}",
    ("missing_totals", "compute"): "Add up the totals that are missing",
    ("missing_totals", "none"): "No such sum is published anywhere",
    ("negative", "never"): "No amount may be negative",
    ("zeros", True): "Cells of value zero may be withheld or changed too",
    ("relax_capacity", True): "Let capacities give way",
    ("fixed", "none"): "Fix no totals",
    ("algorithm", "auto"): "Let the method choose its algorithm",
    ("margin", 0.01): "Protect a little further than the rules ask",
}
"""What a button says; of other options that they are set."""
SOURCE = ("missing_totals", "frequency", "largest", "tolerance", "scheme")
"""Options that are keys of the source."""


def settings(words: Words) -> tuple[Setting, ...]:
    """The options of a hint that say what to set them to."""
    return tuple(each for each in _options(words) if each.value is not ... and each.value is not None)


def _options(words: Any) -> Iterator[Setting]:
    """All options that a text speaks of."""
    if isinstance(words, Setting):
        yield words
    elif isinstance(words, Text):
        for _, part in words.parts:
            yield from _options(part)
    elif isinstance(words, tuple):
        for part in words:
            yield from _options(part)


def as_field(setting: Setting) -> Text:
    """An option as a form calls it: by its name, and what to choose there."""
    name, value, of = setting.name, setting.value, setting.of
    if value is ... or value is None:
        return text("the option {name!r} of {of!r}", name=name, of=of) if of else text("the option {name!r}", name=name)
    return text("{name}: {value} for {of!r}", name=name, value=value, of=of) if of else text(f"{name}: {value}")


def remedies(
    draft: Mapping[str, Any], about: About, advised: Sequence[Setting], files: Sequence[str] = ()
) -> tuple[Answer, ...]:
    """What the job could say instead, given the options that an error names, what it is about, and files at hand."""
    if about[:1] == ("dimension",) and about[2:] == ("missing",):
        advised = [Setting("missing", "drop", str(about[1])), *advised]
    found = [*_hierarchies(draft, about, files), *_advised(draft, about, advised), *_without_rule(draft, about)]
    return tuple({(*each.path, repr(each.value)): each for each in found}.values())


def _hierarchies(draft: Mapping[str, Any], about: About, files: Sequence[str]) -> Iterator[Answer]:
    match about:
        case ("dimension", str(name), *rest) if name in draft.get("dimensions", {}) and rest in ([], ["hierarchy"]):
            given = draft["dimensions"][name].get("hierarchy")
            for file in files:
                if file.lower().endswith(HIERARCHIES) and file != given and not _of_another(draft, name, file):
                    words = text("Use the hierarchy file {file} for {name}", file=file, name=name)
                    yield Answer(words, ("dimensions", name, "hierarchy"), file)


def _of_another(draft: Mapping[str, Any], name: str, file: str) -> bool:
    """Whether a hierarchy file is that of another dimension: the job reads it there, or it is called like that one."""
    others = {other: part for other, part in draft["dimensions"].items() if other != name}
    if file in [part.get("hierarchy") for part in others.values()]:
        return True
    stem = file.rpartition("/")[2].casefold()
    return not stem.startswith(name.casefold()) and any(stem.startswith(other.casefold()) for other in others)


def _without_rule(draft: Mapping[str, Any], about: About) -> Iterator[Answer]:
    """A rule that the table cannot answer can be left out."""
    key = key_of(draft, about, ()) if about[:1] in [("contributors",), ("counts",)] else ()
    match key:
        case ("rules", int(at)):
            rules = draft["rules"]
            words = text("Do without rule {number}, {rule}", number=at + 1, rule=str(rules[at].get("rule")))
            yield Answer(words, ("rules",), [rule for number, rule in enumerate(rules) if number != at])
        case _:
            return


def _advised(draft: Mapping[str, Any], about: About, advised: Sequence[Setting]) -> Iterator[Answer]:
    for each in advised:
        path = _path(draft, about, each)
        if path is None:
            continue
        dimension = each.of or (str(path[1]) if path[0] == "dimensions" else "")
        if each.name == "total":
            words = text("{code!r} is the total of {of}", code=each.value, of=dimension)
        else:
            plain = WORDS.get((each.name, each.value if isinstance(each.value, (str, bool, int, float)) else None))
            words = text(plain or "Set {name} to {value}", of=dimension, name=each.name, value=str(each.value))
        yield Answer(words, path, each.value)


def _path(draft: Mapping[str, Any], about: About, setting: Setting) -> KeyPath | None:
    """The key of a job that an option is; None where none is meant for sure."""
    name = setting.name
    if name in {"missing", "total", "hierarchy"}:
        which = setting.of or (str(about[1]) if about[:1] == ("dimension",) else "")
        return ("dimensions", which, name) if which in draft.get("dimensions", {}) else None
    if name == "negative":
        return ("response", "negative")
    method = METHODS.get(str(draft.get("method", {}).get("name", "suppress")))
    own = set() if method is None else set(options(method))
    if about[:1] in [("method",), ("option",)] and name in own:
        return ("method", name)
    if name in SOURCE or name == "zeros":
        return ("source", name)
    return None
