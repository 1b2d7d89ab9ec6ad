"""Linked views: margins of a cube that are published, and confidential ones that they may give away."""

from __future__ import annotations

from tablesafe.methods.views.suppress_views import SuppressViews

__all__ = ["SuppressViews"]
