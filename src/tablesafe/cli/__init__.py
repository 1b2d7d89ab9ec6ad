"""The command line: parse, call the pipeline, show. Commands are loaded when they are used."""

from __future__ import annotations

from tablesafe.cli.app import app, main

__all__ = ["app", "main"]
