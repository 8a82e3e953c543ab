"""The active controller is killed in the middle of a move; real ZooKeeper, processes, sockets and SIGKILL."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import trio

from klamm.cli.demo import scenario
from klamm.cli.demo.clusters import BROKERS
from klamm.cli.demo.trace_rows import TraceRow
from tests.cluster.running import FIRST, SECOND, RealCluster
from tests.cluster.waiting import until_controller
from tests.kit.demo import ROWS
from transport.store import paths


def shown(row: TraceRow) -> str:
    """Return a row as the demo prints it: its stage, RS, AR, RR, the leader, and the ISR in any order."""
    state = row.state
    lists = (state.replicas, state.adding_replicas, state.removing_replicas, sorted(state.isr))
    replicas, adding, removing, isr = (f"{{{','.join(map(str, each))}}}" for each in lists)
    return f"{row.stage.value} {replicas} {adding} {removing} {state.leader} {isr}"


@pytest.mark.requirement("A2", "A5", "A6", "A7", "A8", "D1", "D7", "D10", "E2")
@pytest.mark.parametrize(
    ("round_", "moment"),
    [
        ("U1", "commit"),
        pytest.param("U1", "publish", marks=pytest.mark.soak),
        pytest.param("ISR", "commit", marks=pytest.mark.soak),
        ("B3", "publish"),
        pytest.param("B4", "commit", marks=pytest.mark.soak),
        pytest.param("B4", "publish", marks=pytest.mark.soak),
        pytest.param("B6", "commit", marks=pytest.mark.soak),
    ],
)
async def test_the_next_controller_finishes_a_move(zookeeper: str, tmp_path: Path, round_: str, moment: str) -> None:
    dying = ("tests.cluster.dying_controller", "--after", round_, moment)
    async with (
        RealCluster.running(
            f"{zookeeper}/failover-{round_}", tmp_path, *dying, standby=True, brokers=BROKERS
        ) as cluster,
        trio.open_nursery() as nursery,
    ):
        scene = await scenario.set_up(cluster, nursery)
        await scenario.move(scene)
        assert cluster.processes[FIRST].poll() == -signal.SIGKILL
        assert await scene.admin.list_partition_reassignments() == (), "what waits for a move waits for its end"
        outcome = await scenario.judge(scene)
        assert await cluster.store.children([paths.STRAYS, paths.REASSIGNMENTS]) == [[], []]
        nursery.cancel_scope.cancel()

    assert outcome.faults == []
    assert outcome.lost == 0
    # The next controller may have gone on before its trace was found: rows may be missing, and there are no others.
    table = [shown(row) for row in outcome.rows]
    assert table == [row for row in ROWS if row in table]
    assert table[-1] == ROWS[-1]
    assert outcome.rows[-1].controller_id == SECOND


@pytest.mark.requirement("D12")
async def test_a_controller_that_gets_sigterm_resigns(zookeeper: str, tmp_path: Path) -> None:
    async with RealCluster.running(f"{zookeeper}/sigterm", tmp_path, standby=True) as cluster:
        process = cluster.processes[FIRST]
        process.send_signal(signal.SIGTERM)
        await until_controller(cluster.store, SECOND)
        assert await trio.to_thread.run_sync(process.wait) == 0
        assert "resigned" in cluster.log(FIRST)
