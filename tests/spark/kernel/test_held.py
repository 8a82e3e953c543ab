"""The replicas that each broker holds in a block."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.kernel.held import Held
from spark_bridge.model.block import NOBODY


@pytest.mark.parametrize("brokers", [4, 65_534, 65_535, 65_536, 70_000])
def test_every_broker_has_its_replicas_in_the_order_of_the_lists(brokers: int) -> None:
    last = brokers - 1
    lists = np.array([[last, 0, NOBODY], [1, last, 2], [0, NOBODY, NOBODY]], np.int32)
    held = Held.of(lists, brokers)
    for broker in (0, 1, 2, last):
        rows, columns = held.by(broker)
        assert np.stack([rows, columns], axis=1).tolist() == np.argwhere(lists == broker).tolist()
