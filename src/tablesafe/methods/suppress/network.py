"""Tables that are networks: the cheapest deviation of a cell is a minimum-cost flow over the whole table.

Two dimensions, at most one of them with a hierarchy (Kelly, Golden & Assad; Cox). No neighbourhood is cut out, so what
a flow does not find is not there.
"""

from __future__ import annotations

import numpy as np

from tablesafe.core.equations import Floats, Mask
from tablesafe.methods.suppress.deviations import FAR, NEGLIGIBLE, Deviation
from tablesafe.methods.suppress.instance import Instance
from tablesafe.solve.network import Network, cheapest_circulation, network_of
from tablesafe.work.budget import Budget


class Flows:
    """Finds the cheapest deviation of a target by flows; the network is that of all equations."""

    def __init__(self, instance: Instance, network: Network, work: Budget) -> None:
        self._instance = instance
        self._network = network
        self._work = work

    @classmethod
    def of(cls, instance: Instance, work: Budget) -> Flows | None:
        """The flows of a table, if it is a network; `work` counts them."""
        network = network_of(instance.rows)
        return None if network is None else cls(instance, network, work)

    def __call__(self, target: int, price: Floats, banned: Mask | None) -> Deviation | None:
        """Move a target as far as it must, at the least price of the cells that move with it; None where it cannot.

        A cell pays in proportion to the share of the move that it carries, as in the linear programs.
        """
        instance = self._instance
        level, cell, sign = instance.level[target], int(instance.cell[target]), int(instance.sign[target])
        open_ = instance.live if banned is None else instance.live & ~banned
        up, down = (np.where(open_, np.minimum(room / level, FAR), 0.0) for room in (instance.up, instance.down))
        if (up if sign > 0 else down)[cell] < 1:
            return None
        per_unit = (price / np.maximum(np.minimum(room, 1.0), 1e-9) for room in (up, down))
        self._work.flow(len(up))
        flow = cheapest_circulation(self._network, cell, float(sign), up, down, *per_unit)
        if flow is None:
            return None
        cells = np.flatnonzero(np.abs(flow) > NEGLIGIBLE)
        return Deviation(cells.astype(np.int64), flow[cells] * level)
