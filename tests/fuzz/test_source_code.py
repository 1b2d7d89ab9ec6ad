"""What no reader may ever do: run what a file says. Seen in the code itself, so that no later change brings it in."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tablesafe

SOURCE = Path(tablesafe.__file__).parent
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml", "xml"}
ALLOWED = {"verify.py": {"xml.etree"}, "metered.py": {"compile"}}
"""The parts of a workbook are read as XML only after declarations (`<!`), and so entities, were refused. What the meter
compiles is the source of our own loops, with a counter put into it."""
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {"os.system", "os.popen", "pl.Expr.deserialize", "LazyFrame.deserialize", "pd.read_pickle",
                     "np.fromfile", "tempfile.mktemp"}  # fmt: skip


def dotted(node: ast.expr) -> str:
    """A name with its dots, as it is written."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def faults(code: str) -> list[str]:
    """What a module does that no reader may do, with the lines."""
    found = []
    for node in ast.walk(ast.parse(code)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            found += [f"{line}: {name.name}" for name in node.names if name.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            found.append(f"{line}: {node.module}")
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            words = {word.arg: word.value for word in node.keywords if word.arg}
            if name in FORBIDDEN_CALLS or name in FORBIDDEN_METHODS or name.endswith((".deserialize", ".read_pickle")):
                found.append(f"{line}: {name}")
            if name.endswith("np.load") and not _is(words.get("allow_pickle"), False):
                found.append(f"{line}: np.load without allow_pickle=False")
            if name.startswith("subprocess.") and "shell" in words:
                found.append(f"{line}: a shell")
    return found


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_runs_what_a_file_says(path: Path) -> None:
    allowed = ALLOWED.get(path.name, set())
    assert [each for each in faults(path.read_text(encoding="utf-8")) if each.split(": ")[1] not in allowed] == []


@pytest.mark.parametrize(
    "code",
    ["import pickle", "from pickle import loads", "import yaml", "np.load(path)", "np.load(path, allow_pickle=True)",
     "eval(text)", "exec(text)", "subprocess.run(text, shell=True)", "pl.LazyFrame.deserialize(x)", "os.system(x)",
     "import xml.etree.ElementTree"],
)  # fmt: skip
def test_the_check_sees_it(code: str) -> None:
    assert faults(code)
