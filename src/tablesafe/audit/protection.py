"""The cheaper question: can every wanted cell go as far down and as far up as it must?

It stops where witnesses are known: complete tables that agree with all that is published. Witnesses are held once per
component and shared by the cells they serve; those that move different cells are joined into one table. They are exact:
whole numbers over a common denominator, that satisfy every equation and every bound without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.intervals import EASY_S, Progress, values_at
from tablesafe.audit.pieces import Piece, Shape, pieces
from tablesafe.audit.system import System
from tablesafe.equations import Floats, Integers, Mask
from tablesafe.errors import Interrupted
from tablesafe.solve.executor import spread
from tablesafe.solve.witnesses import NOBODY, TRUTH, Store, find_witnesses
