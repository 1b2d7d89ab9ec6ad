"""The experiments of the papers as single calls: the same table protected many ways, and what each way costs its users.

A file a paper. Everything here compares with the true values: confidential.
"""

from __future__ import annotations

from tablesafe.experiments.dandekar_cox import Experiment, costs, directions
from tablesafe.experiments.working_paper_22 import slices

__all__ = ["Experiment", "costs", "directions", "slices"]
