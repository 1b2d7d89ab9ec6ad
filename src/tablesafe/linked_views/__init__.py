"""Linked views: margins of a cube that are published, and confidential ones that they may give away, as one problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablesafe.core.registry import loader

if TYPE_CHECKING:
    from tablesafe.linked_views.problem import views

__all__ = ["views"]

__getattr__ = loader(__name__, {"views": "tablesafe.linked_views.problem"})
