"""While loops are compiled for the first time, a line says so, and only where somebody is looking."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from tablesafe.work import compiling

PROGRAM = """
from tablesafe.work.compiling import njit

def double(x): return 2 * x
double.__module__ = "tablesafe.made.up"
print(njit(double)(21))
print(njit(double)(22))
"""


def test_a_terminal_sees_the_line_once_and_data_never() -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=theirs, text=True)
        said = os.read(ours, 10_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.stdout.split() == ["42", "44"]
    assert said.splitlines() == [compiling.LINE.format(module="made.up")]


def test_a_pipe_sees_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["42", "44"]
    assert done.stderr == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_who_looks_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    screen, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    compiling.tell("one")
    monkeypatch.setattr(sys, "stderr", pipe)
    with caplog.at_level("INFO", logger="tablesafe"):
        compiling.tell("two")
    assert screen.getvalue() == "one\n"
    assert pipe.getvalue() == ""
    assert [record.message for record in caplog.records] == ["two"]
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    compiling.tell("three")
    assert pipe.getvalue() == "three\n"
