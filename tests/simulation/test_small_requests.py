"""Stores that accept only small requests: what does not fit into one is written in several."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from klamm.testing import open_cluster
from klamm.testing.actions import CreateTopic, DeleteTopic, Reassign
from simulator.cluster import SimulatedCluster
from simulator.random_run.features import FEATURES
from simulator.scheduling import generator
from simulator.settings import Settings
from simulator.store import session
from tests.simulation.planted.bugs import planted
from transport.errors import ApiError, ErrorCode
from transport.store.limits import LEAST_MAX_BUFFER, RequestLimits
from transport.store.protocol import Op
from transport.store.requests import require_sendable, weight_of

pytestmark = pytest.mark.usefixtures("autojump_clock")

PARTITIONS = 60
LIMITS = RequestLimits(LEAST_MAX_BUFFER)


async def create_and_move(cluster: SimulatedCluster) -> None:
    await CreateTopic("wide", ((1, 2),) * PARTITIONS).on(cluster)
    await cluster.until(lambda: cluster.partition(f"wide-{PARTITIONS - 1}") is not None)
    await Reassign({f"wide-{number}": (2, 3) for number in range(PARTITIONS)}).on(cluster)
    await cluster.settle()


async def test_moves_and_a_deletion_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[int] = []

    def weighed(ops: Sequence[Op], limits: RequestLimits) -> None:
        weights.append(weight_of(ops))
        require_sendable(ops, limits)

    monkeypatch.setattr(session, "require_sendable", weighed)
    async with open_cluster(jute_maxbuffer=LEAST_MAX_BUFFER) as cluster:
        await create_and_move(cluster)
        topic = cluster.durable.topic("wide")
        assert topic is not None
        assert {assignment.replicas for assignment in topic.partitions.values()} == {(2, 3)}
        await DeleteTopic("wide").on(cluster)
        await cluster.settle()
        assert cluster.durable.topic("wide") is None
    assert LIMITS.request // 2 < max(weights) <= LIMITS.request


async def test_a_store_with_larger_requests_takes_all_at_once() -> None:
    async with open_cluster() as cluster:
        await create_and_move(cluster)
        topic = cluster.durable.topic("wide")
        assert topic is not None
        assert {assignment.replicas for assignment in topic.partitions.values()} == {(2, 3)}


async def test_partitions_that_would_outgrow_a_znode_are_refused() -> None:
    async with open_cluster(jute_maxbuffer=LEAST_MAX_BUFFER) as cluster:
        with pytest.raises(ApiError, match="too many for one topic") as refused:
            await CreateTopic("wide", ((1, 2),) * 500).on(cluster)
        assert refused.value.code is ErrorCode.INVALID_PARTITIONS


async def test_a_partition_that_is_forgotten_is_found_out() -> None:
    with planted("what_did_not_fit_is_cut_short"), pytest.raises(ApiError, match="was deleted meanwhile"):
        async with open_cluster(jute_maxbuffer=LEAST_MAX_BUFFER) as cluster:
            await create_and_move(cluster)


def test_a_feature_may_draw_the_settings_that_it_needs() -> None:
    drawn = {each.name: each.settings(generator(1, "x"), Settings()) for each in FEATURES if each.settings}
    assert drawn["small requests"].jute_maxbuffer == LEAST_MAX_BUFFER
    assert drawn["touched rounds"].chunk_operations < Settings().chunk_operations
