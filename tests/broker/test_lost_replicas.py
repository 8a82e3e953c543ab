"""A broker that loses a log directory notifies the controller, refuses the lost replicas, and continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.reference.log_dirs import AllLogDirsFailed
from tests.broker.cluster import Cluster, break_down, running_cluster, state_of, until
from transport.errors import ErrorCode
from transport.messages import PartitionState
from transport.store import formats, paths

STATES = (state_of((1,)), state_of((1,), partition=1))


async def order(cluster: Cluster, state: PartitionState, *, is_new: bool = False) -> ErrorCode:
    [outcome] = (await cluster.order(1, state, is_new=is_new)).partitions
    return outcome.error


def calls(cluster: Cluster) -> list[int]:
    """Return whose log directories were said to have failed."""
    tree = cluster.zookeeper.tree
    entries = [
        f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in tree.children(paths.LOG_DIR_EVENT_NOTIFICATION) or ()
    ]
    return [formats.decode_log_dir_event(path, znode.data) for path in entries if (znode := tree.read(path))]


@pytest.mark.requirement("D9")
async def test_a_lost_directory_costs_its_own_replicas_only(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    async with running_cluster(tmp_path, 1, log_dirs=f"{a},{b}") as cluster:
        for state in STATES:
            await cluster.lead_and_follow(state, is_new=True)
        assert ((a / "t-0").exists(), (b / "t-1").exists()) == (True, True)
        break_down(a)
        await until(lambda: calls(cluster) == [1])
        # The same orders again, with epochs that are known.
        assert [await order(cluster, state) for state in STATES] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        assert await order(cluster, STATES[0], is_new=True) is ErrorCode.KAFKA_STORAGE_ERROR
        async with cluster.producer() as producer:
            assert await producer.send("t", 1, [b"x"]) == 0
        stopped = await cluster.stop(1, STATES[0], delete=False)
        assert [outcome.error for outcome in stopped.partitions] == [ErrorCode.NONE]
        assert await order(cluster, state_of((1,), partition=2), is_new=True) is ErrorCode.NONE
        assert (b / "t-2").exists()


@pytest.mark.requirement("D9")
async def test_a_broker_that_loses_its_last_directory_ends(tmp_path: Path) -> None:
    with pytest.RaisesGroup(AllLogDirsFailed, flatten_subgroups=True):
        async with running_cluster(tmp_path, 1) as cluster:
            break_down(cluster.log_dir(1))
            await until(lambda: False)
