"""Table redesign: propose collapses of codes and levels, and tables to leave out, before anything is withheld."""

from __future__ import annotations

from tablesafe.methods.redesign.proposals import Proposals, merging, redesign
from tablesafe.methods.redesign.steps import Step

__all__ = ["Proposals", "Step", "merging", "redesign"]
