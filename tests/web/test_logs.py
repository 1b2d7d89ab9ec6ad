"""Logs of the server and of its libraries: who speaks and where, never what may hold a value."""

from __future__ import annotations

import logging
import sys

import pytest

from tablesafe.web.logs import LOG, Terse, note_error, note_request, quiet_logging

SECRET = "73519.24680"


def record(name: str, message: object, error: BaseException | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord(name, logging.ERROR, "/x/app.py", 12, message, (), info)


def raised() -> ValueError:
    try:
        raise ValueError(f"the value {SECRET} is wrong")
    except ValueError as error:
        return error


@pytest.mark.parametrize("name", ["nicegui", "uvicorn.error", "asyncio", "root", "tablesafe.job"])
def test_others_say_only_where(name: str) -> None:
    lines = [
        Terse().format(record(name, f"http://127.0.0.1/?token={SECRET} not found")),
        Terse().format(record(name, raised())),
        Terse().format(record(name, "it failed", raised())),
    ]
    for line in lines:
        assert SECRET not in line
        assert "\n" not in line
        assert name in line
    assert "ValueError in test_logs.py line" in lines[1]


def test_errors_are_told_by_kind_and_place(caplog: pytest.LogCaptureFixture) -> None:
    note_error(raised())
    assert "ValueError in test_logs.py line" in caplog.text
    assert SECRET not in caplog.text


def test_requests_are_told_without_what_they_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=LOG.name):
        note_request("GET", f"/files/run-1/{SECRET}.csv", 200, 0.001)
        note_request("GET", f"/{SECRET}\nerror: made up", 404, 0.001)
    assert SECRET not in caplog.text
    assert "made up" not in caplog.text
    assert "GET /files 200 1 ms" in caplog.text


def test_every_logger_is_quietened(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    chatty = logging.getLogger("nicegui.test")
    chatty.addHandler(logging.StreamHandler(sys.stdout))
    quiet_logging()
    chatty.error("the value %s is wrong", SECRET)
    chatty.exception("again", exc_info=raised())
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert "Traceback" not in shown.err
    assert shown.err.count("nicegui.test") == 2
