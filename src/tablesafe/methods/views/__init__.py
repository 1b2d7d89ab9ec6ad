"""Linked views: margins of a cube that are published, and confidential ones that they may give away."""

from __future__ import annotations

from tablesafe.methods.views.bounds import ViewBounds, view_bounds
from tablesafe.methods.views.method import SuppressViews
from tablesafe.methods.views.problem import views
from tablesafe.methods.views.program import view_big_m

__all__ = ["SuppressViews", "ViewBounds", "view_big_m", "view_bounds", "views"]
