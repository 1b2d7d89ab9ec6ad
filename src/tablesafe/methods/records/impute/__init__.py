"""Values that are blanked and filled in anew."""

from __future__ import annotations

from tablesafe.methods.records.impute.blank_and_impute import BlankAndImpute

__all__ = ["BlankAndImpute"]
