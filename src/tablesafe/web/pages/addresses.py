"""Which pages there are, and where."""

from __future__ import annotations

from collections.abc import Callable

from tablesafe.web.pages import compare, data, dimensions, method, result, rules
from tablesafe.web.pages.screen import Screen

STEPS: dict[str, tuple[str, Callable[[Screen], None]]] = {
    "/": ("Data", data.page),
    "/dimensions": ("Dimensions", dimensions.page),
    "/rules": ("Rules", rules.page),
    "/method": ("Method", method.page),
    "/result": ("Result", result.page),
    "/compare": ("Compare", compare.page),
}
"""The pages by their addresses, in the order in which people use them."""
