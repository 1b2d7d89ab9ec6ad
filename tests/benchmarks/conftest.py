"""The benchmarks are a folder of the repository, not part of the package."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
if str(REPOSITORY) not in sys.path:
    sys.path.append(str(REPOSITORY))
