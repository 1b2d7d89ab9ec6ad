"""All that pages say: the texts that a catalogue of translations must have, found in the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import tablesafe as ts
from tablesafe.audit.verdict import OUTSIDER, Word
from tablesafe.io.decisions import MEANINGS, Choice
from tablesafe.job import remedies
from tablesafe.job.model import (
    AttackOptions,
    AuditOptions,
    Dimension,
    Job,
    Output,
    ProblemOptions,
    Response,
    RunOptions,
    Source,
    TableOptions,
)  # fmt: skip
from tablesafe.methods import METHODS
from tablesafe.report.cells import Kind
from tablesafe.report.page import CONTENTS, HOW, _words
from tablesafe.rules import RULES
from tablesafe.solve.program import SolveStatus
from tablesafe.web import background, long_tasks
from tablesafe.web.forms import basic, form_of, method_forms, rule_forms
from tablesafe.web.tasks import windows

SECTIONS = (
    Source, Dimension, Response, TableOptions, ProblemOptions, AuditOptions, AttackOptions, Output, RunOptions,
)  # fmt: skip
"""The parts of a job that have a form, besides rules and method."""
SOURCES = Path(ts.__file__).parent
SAYING = (
    "attack/estimate.py", "attack/suite.py", "audit/findings.py", "audit/unions.py", "audit/verdict.py",
    "job/questions.py", "job/remedies.py", "pipeline/problems.py", "pipeline/running.py", "report/cells.py",
    "report/excerpt.py", "report/page.py", "report/verdict.py", "web/tasks/designs.py", "web/long_tasks.py",
    "web/shell.py",
)  # fmt: skip
CALLS = {"text", "sentence", "Event", "progress", "report", "say", "aria", "_if_large", "_which", "heading", "_against"}
"""Functions whose first arguments are texts."""
ERRORS = (
    "core/hierarchy.py", "core/options.py", "core/table.py", "core/totals.py", "files/limits.py", "files/read.py",
    "io/frames.py", "job/checks.py", "job/decode.py", "job/dump.py", "job/words.py", "tabulate/axes.py",
    "tabulate/csvfile.py", "tabulate/expression.py", "tabulate/scan.py", "tabulate/sources.py", "web/child.py",
    "web/drafts.py", "web/folders.py", "web/routes.py", "web/runs.py", "web/saved.py", "web/tasks/data.py",
    "web/tasks/saving.py", "web/uploads.py", "web/worker.py", "web/workspace.py",
)  # fmt: skip
"""What goes wrong most often in the app is said in these."""
UNSAID = {
    "Ended", "dimensions={'region': None}", "for example PPercent(p=10).",
    "for an Ibis table pass a function, where=lambda t: t.year == 2024, or filter the table itself.",
    "give a path, a pandas, polars or Arrow frame, an Ibis table, or a dict of columns.",
    "give a path, a pandas, polars or Arrow frame, or a dict of columns.",
    "give a path, or an Ibis table on Spark.", "write it like 8GB.",
    "write a limit as '4GB' and threads as a whole number.",
    "raise memory_limit, use fewer threads, or give a temporary folder on a larger disk.",
    "several trees over the same leaves go in as equations: Hierarchy.from_equations.",
}  # fmt: skip
"""What only callers from Python meet: it stays English."""
STAGES = ("read", "tabulate", "rules", "protect", "audit", "attack", "write")


def literals(path: Path) -> Iterator[str]:
    """Texts that a module says: those that are given to what says them, there or by the name of a variable."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in CALLS:
            for argument in node.args[:3]:
                yield from _texts(argument)
                named |= {each.id for each in ast.walk(argument) if isinstance(each, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if targets & named and all(isinstance(each, (ast.Constant, ast.IfExp)) for each in _elements(node.value)):
                yield from _texts(node.value)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts of an expression, but for those of what it asks about and of keys."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, (ast.Tuple, ast.BinOp, ast.BoolOp)):
        for each in ast.iter_child_nodes(node):
            yield from _texts(each)


def of_the_app() -> set[str]:
    """Texts of the app that stand in lists."""
    from tablesafe.web import roles, shell
    from tablesafe.web.pages import (
        addresses,
        bringing,
        compare,
        data,
        dimensions,
        method,
        panel,
        progress,
        result,
        rules,
        tables,
    )  # fmt: skip
    from tablesafe.web.tasks import cells

    return {
        *(name for name, _ in addresses.STEPS.values()), *(words for _, words in shell.SIGNS.values()),
        *shell.SHORTCUTS, *shell.SHORTCUTS.values(), *dimensions.KINDS.values(), *progress.WORDS.values(),
        *method.STOPS.values(), *(title for title, _, _ in method.SECTIONS), *progress.STAGES.values(),
        *(form_of(kind).summary for _, kind, _ in method.SECTIONS),
        *progress.ATTACKERS, *data.HEADS, *data.ROLES, *data.HOLDS, *rules.HEADS.values(), *panel.HEADS,
        *panel.OPENED, *panel.POSSIBLY,
        *panel.FACTS, *result.SECTIONS, *result.PLOTS.values(), *result.FACTS, *result.NAMES.values(),
        *result.BESIDE.values(), *result.INTERNAL.values(), *result.LOSSES, result.PATTERN, result.PUBLIC,
        "release", "efficient", "job", *compare.COLUMNS.values(), *cells.COLUMNS.values(), *tables.AXES.values(),
        *tables.MEASURES, *bringing.FATES, *shell.LOST.values(), *compare.LOSS.values(), *compare.RISK.values(),
        roles.NOTHING, roles.DIMENSION, roles.VALUE, roles.SHADOW, *roles.RECORDS.values(), *roles.CELLS.values(),
        *roles.SEVERAL.values(), *get_args(Choice), *MEANINGS.values(), *map(str, SolveStatus),
    }  # fmt: skip


def of_errors() -> set[str]:
    """What goes wrong in the app, and what to do about it."""
    from tablesafe.core import options
    from tablesafe.files import limits, read
    from tablesafe.io import workbook
    from tablesafe.job import decode, words
    from tablesafe.tabulate import expression, readstat
    from tablesafe.web import child, drafts, worker
    from tablesafe.web.pages import dimensions
    from tablesafe.web.tasks import saving

    found = {
        *options.NUMBER, *options.LIMITS.values(), limits.LARGER, limits.UNPACKS, read.TRUE_VALUES, decode.OTHER,
        read.NO_PARQUET, workbook.NO_SHEET, readstat.UNREADABLE, "copy it again.", "{name} is damaged: {why}",
        decode.OTHER_NEAR, decode.OTHER_SO, *(told for told, _ in words._WORDS.values()), *expression.FAULTS,
        child.STOPPED, child.NO_MEMORY, child.FEWER, child.DEBUG, child.FAILED, drafts.ELSEWHERE, drafts.FOREIGN,
        drafts.BELOW, *worker.ENDED, *worker.BROKEN, *dimensions.LACKS, saving.STRANGE,
        "say beside the tree where they count.", "not decided", "not set",
        "The process for this run could not be started.",
    }  # fmt: skip
    for path in (SOURCES / name for name in ERRORS):
        found |= set(literals(path)) | set(_raised(path))
    return found - UNSAID


def _raised(path: Path) -> Iterator[str]:
    """Texts without parts that errors of a module are made with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        kind = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and (kind.startswith("Invalid") or kind == "Fault"):
            told = node.args[1:2] if kind == "Fault" else node.args[:1]
            for given in (*told, *(each.value for each in node.keywords if each.arg == "hint")):
                if isinstance(given, (ast.Constant, ast.BoolOp, ast.IfExp)):
                    yield from _texts(given)


def helps(*, at_first: bool = False) -> set[str]:
    """What the app says of the options in its forms: of all of them, or of those that are shown before any other."""
    forms = [*rule_forms().values(), *method_forms().values(), *(form_of(kind, kind.__name__) for kind in SECTIONS)]
    title = next(entry.help for entry in form_of(Job).entries if entry.name == "title")
    about = {paragraph for form in forms[: len(RULES) + len(METHODS)] for paragraph in form.about}
    return (
        {title}
        | about
        | {
            entry.help
            for form in forms
            for entry in (basic(form.name, form.entries, {}) if at_first else form.entries)
            if entry.help
        }
    )


def keys() -> set[str]:
    """All that reports and the app can say."""
    template = (SOURCES / "report" / "page.html.jinja").read_text(encoding="utf-8")
    found = set(re.findall(r'say\("([^"]+)"', template))
    for path in (*(SOURCES / name for name in SAYING), *sorted((SOURCES / "web" / "pages").glob("*.py"))):
        found |= set(literals(path))
    for path in sorted((SOURCES / "tabulate").glob("*.py")):
        found |= {each for each in literals(path) if each[:1].isupper()}
    found |= of_errors()
    found |= {windows.ASK, windows.TOO_LONG, long_tasks.WORKING, *background.BEGUN, background.ENDED, background.KEPT}
    found |= {str(word) for word in Word} | {"NOT AUDITED", "Attacker", "Result", OUTSIDER, "suppression"}
    found |= {part for kind in Kind for part in (kind.word, kind.meaning)}
    found |= {*CONTENTS.values(), *HOW.values(), *STAGES, *remedies.WORDS.values(), *of_the_app()}
    for _, kind in [*RULES.items(), *METHODS.items()]:
        found.add((kind.__doc__ or "").strip().partition("\n")[0].replace("`", ""))
    found |= {_words(kind.__name__) for kind in RULES.values()} | {name.replace("_", " ") for name in METHODS}
    found |= helps(at_first=True)
    return {key for key in found if re.search("[a-z]{2}|[A-Z]{3}|%B", re.sub(r"\{[^}]*\}", "", key))}
