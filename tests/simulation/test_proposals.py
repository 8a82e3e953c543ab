"""Flawed proposals of ISRs are refused, each for its own reason, and change nothing."""

from __future__ import annotations

import pytest

from klamm.testing import open_cluster
from klamm.testing.actions import Flaw, ProposeIsr
from transport.errors import ApiError, ErrorCode

pytestmark = pytest.mark.usefixtures("autojump_clock")

REFUSED = {
    Flaw.STALE_PARTITION_EPOCH: ErrorCode.INVALID_UPDATE_VERSION,
    Flaw.STALE_LEADER_EPOCH: ErrorCode.FENCED_LEADER_EPOCH,
    Flaw.LATER_PARTITION_EPOCH: ErrorCode.NOT_CONTROLLER,
    Flaw.LATER_LEADER_EPOCH: ErrorCode.NOT_CONTROLLER,
    Flaw.STALE_BROKER_EPOCH: ErrorCode.STALE_BROKER_EPOCH,
    Flaw.OTHER_TOPIC: ErrorCode.UNKNOWN_TOPIC_ID,
    Flaw.STRANGER: ErrorCode.INELIGIBLE_REPLICA,
}
"""The flaws that have errors of their own."""


@pytest.mark.parametrize("flaw", Flaw)
async def test_a_flawed_proposal_is_refused_and_changes_nothing(flaw: Flaw) -> None:
    async with open_cluster(brokers=3) as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        before = c.partition("orders-0")
        with pytest.raises(ApiError) as refusal:
            await ProposeIsr("orders-0", flaw).on(c)
        assert refusal.value.code is REFUSED.get(flaw, ErrorCode.INVALID_REQUEST)
        assert c.partition("orders-0") == before


async def test_there_must_be_a_partition_to_propose_for() -> None:
    async with open_cluster(brokers=1) as c:
        with pytest.raises(ApiError):
            await ProposeIsr("orders-0", Flaw.TWICE).on(c)
