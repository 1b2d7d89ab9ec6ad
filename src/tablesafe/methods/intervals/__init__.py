"""An interval for every withheld cell."""

from __future__ import annotations

from tablesafe.methods.intervals.publish_intervals import PublishIntervals

__all__ = ["PublishIntervals"]
