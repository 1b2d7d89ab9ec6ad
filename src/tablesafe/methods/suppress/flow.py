"""Tables that are networks: the cheapest deviation of a cell is a minimum-cost flow over the whole table.

Two dimensions, at most one of them with a hierarchy (Kelly, Golden & Assad; Cox). No neighbourhood is cut out, so what
a flow does not find is not there.
"""

from __future__ import annotations

import numpy as np

from tablesafe.methods.suppress.deviations import NEGLIGIBLE, Deviation, Wanted
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.neighbourhood import FAR
from tablesafe.solve.network import Network, cheapest_circulation, network_of
from tablesafe.work.budget import Budget


class Flows:
    """Finds the cheapest deviation of a target by flows; the network is that of all equations."""

    def __init__(self, network: Network, work: Budget) -> None:
        self._network, self._work = network, work

    @classmethod
    def of(cls, instance: Instance, work: Budget) -> Flows | None:
        """The flows of a table, if it is a network; `work` counts them."""
        network = network_of(instance.rows)
        return None if network is None else cls(network, work)

    def cheapest(self, wanted: Wanted) -> Deviation | None:
        """The cheapest deviation; a cell pays in proportion to the share of the move that it carries, as in programs.

        It is looked for in the whole table at once, so nothing comes first.
        """
        allowed = wanted.price < np.inf
        up, down = (np.where(allowed, np.minimum(room / wanted.level, FAR), 0.0) for room in wanted.room)
        if (up if wanted.sign > 0 else down)[wanted.cell] < 1:
            return None
        price = np.where(allowed, wanted.price, 0.0)
        per_unit = (price / np.maximum(np.minimum(room, 1.0), 1e-9) for room in (up, down))
        self._work.flow(len(up))
        flow = cheapest_circulation(self._network, wanted.cell, float(wanted.sign), up, down, *per_unit)
        if flow is None:
            return None
        cells = np.flatnonzero(np.abs(flow) > NEGLIGIBLE)
        return Deviation(cells.astype(np.int64), flow[cells] * wanted.level)
