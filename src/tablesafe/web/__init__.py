"""The local web app: `tablesafe serve`. It parses what people enter, runs jobs in processes of their own, and shows.

The server is loaded when it is asked for: options of it are known without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.core.registry import loader

if TYPE_CHECKING:
    from tablesafe.web.server import serve

__all__ = ["serve"]

__getattr__ = loader(__name__, {"serve": "tablesafe.web.server"})
