"""The conditions after the last fault: a healthy cluster has no faults, and each fault is reported."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from klamm.testing import run_scenario
from simulator import liveness, scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.settings import Settings
from transport.messages import BrokerEndpoint, Record, UpdateMetadataRequest
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Create, Set

TP = TopicPartition("orders", 0)
IDENTITIES = paths.topic_reassignments("orders")
Story = Callable[[SimulatedCluster], Awaitable[None]]


async def at_rest(story: Story) -> None:
    """Run a story on a healthy cluster."""
    async with simulated_cluster(Settings(brokers=4)) as cluster:
        await cluster.create_topic("orders", [(1, 2, 3)])
        await cluster.produce("orders-0", [b"a", b"b"])
        await cluster.until(lambda: not liveness.faults(cluster))
        await story(cluster)


def seen_after(disturb: Callable[[SimulatedCluster], object]) -> list[str]:
    """Return the faults right after a disturbance; ACTIVE stands for the active controller before it."""
    found: list[str] = []

    async def story(cluster: SimulatedCluster) -> None:
        active = cluster.active_controller
        disturb(cluster)
        found.extend(re.sub(rf"\b{active}(?=\]| at epoch)", "ACTIVE", line) for line in liveness.faults(cluster))
        await trio.lowlevel.checkpoint()

    scheduling.run(partial(at_rest, story), seed=1)
    return found


def write_state(cluster: SimulatedCluster, **changes: Any) -> None:
    leadership = cluster.durable.leadership(TP)
    assert leadership is not None
    data = formats.encode_partition_state(replace(leadership, **changes))
    cluster.world.ensemble.commit_by_hand([Set(paths.partition_state(TP), data, ANY_VERSION)])


def write_assignment(cluster: SimulatedCluster, assignment: ReplicaAssignment) -> None:
    topic = cluster.durable.topic("orders")
    assert topic is not None
    data = formats.encode_topic(TopicZnode({0: assignment}, topic.topic_id))
    cluster.world.ensemble.commit_by_hand([Set(paths.topic("orders"), data, ANY_VERSION)])


def moving_without_identity(cluster: SimulatedCluster) -> None:
    write_assignment(cluster, ReplicaAssignment((4, 1, 2, 3), (4,), (1, 2, 3)))


def identity(cluster: SimulatedCluster, *numbers: int) -> None:
    tps = [TopicPartition("orders", number) for number in numbers]
    creates = [Create(paths.topic_reassignments("orders")), *(Create(paths.reassignment(tp)) for tp in tps)]
    cluster.world.ensemble.commit_by_hand(creates)


def moving(cluster: SimulatedCluster) -> None:
    moving_without_identity(cluster)
    identity(cluster, 0)


def stray(cluster: SimulatedCluster) -> None:
    cluster.world.ensemble.commit_by_hand([Create(f"{paths.STRAYS}/id:orders:0:4")])


def requested(cluster: SimulatedCluster) -> None:
    data = formats.encode_reassign_partitions({TP: (4,)})
    cluster.world.ensemble.commit_by_hand([Create(paths.REASSIGN_PARTITIONS, data)])


def topic_without_state(cluster: SimulatedCluster) -> None:
    data = formats.encode_topic(TopicZnode({0: ReplicaAssignment((1,))}, "id"))
    cluster.world.ensemble.commit_by_hand([Create(paths.topic("new"), data)])


def leftover_data(cluster: SimulatedCluster) -> None:
    cluster.brokers[4].disk.open(TP, "id")


def other_topic_id(cluster: SimulatedCluster) -> None:
    cluster.brokers[1].disk.logs[TP].topic_id = "an earlier id"


def believed(cluster: SimulatedCluster, **changes: Any) -> None:
    """Give broker 4 different metadata."""
    handle = cluster.brokers[4].handle
    assert handle is not None
    metadata = handle.metadata
    assert metadata.controller is not None
    known = UpdateMetadataRequest(101, metadata.controller_epoch, 0, metadata.controller, None, ())
    metadata.update(replace(known, **changes))


def believed_isr(cluster: SimulatedCluster) -> None:
    state = cluster.partition("orders-0")
    assert state is not None
    believed(cluster, partitions=(replace(state, isr=(1,)),))


def believed_offline(cluster: SimulatedCluster) -> None:
    state = cluster.partition("orders-0")
    assert state is not None
    believed(cluster, partitions=(replace(state, offline_replicas=(3,)),))


def lost_record(cluster: SimulatedCluster) -> None:
    cluster.brokers[2].disk.logs[TP].records[1] = Record(0, b"x")


@pytest.mark.parametrize(
    ("disturb", "line"),
    [
        (partial(SimulatedCluster.crash, node_id=4), "broker-4 is dead"),
        (partial(SimulatedCluster.pause, node_id=102), "controller-102 is paused"),
        (partial(SimulatedCluster.restart, node_id=4), "broker-4 is not in service yet"),
        (partial(SimulatedCluster.expire, node_id=4), "brokers [1, 2, 3] are registered, not [1, 2, 3, 4]"),
        (SimulatedCluster.depose, "controllers [ACTIVE] are active while None holds /controller"),
        (partial(write_state, leader=-1), "orders-0 is led by -1, though some of (1, 2, 3) could lead"),
        (partial(write_state, isr=(1, 2)), "orders-0: live replicas (3,) are not in the ISR (1, 2)"),
        (moving, "orders-0 is still being reassigned: adding (4,), removing (1, 2, 3), ISR (1, 2, 3)"),
        (topic_without_state, "new-0 has no state, though it has live replicas in (1,)"),
        (moving_without_identity, f"{IDENTITIES} has None, although partitions ['0'] of the topic are being moved"),
        (
            lambda cluster: identity(cluster, 0, 1),
            f"{IDENTITIES} has ['0', '1'], although partitions None of the topic are being moved",
        ),
        (identity, f"{IDENTITIES} has [], although partitions None of the topic are being moved"),
        (stray, "/klamm/strays/id:orders:0:4 still exists"),
        (requested, "orders-0 is still in /admin/reassign_partitions"),
        (leftover_data, "broker 4 has data of orders-0 (topic id id), which it must not have"),
        (other_topic_id, "broker 1 has data of orders-0 (topic id an earlier id), which it must not have"),
        (partial(believed, live_brokers=()), "broker 4 considers brokers () alive, not (1, 2, 3, 4)"),
        (
            partial(
                believed, live_brokers=tuple(BrokerEndpoint(id_, f"broker-{id_}", 9092 + id_) for id_ in range(1, 5))
            ),
            "broker 4 takes broker 3 to be at ('broker-3', 9095), not ('broker-3', 9092)",
        ),
        (partial(believed, controller_epoch=9), "broker 4 obeys controller ACTIVE at epoch 9, not ACTIVE at epoch 1"),
        (
            believed_isr,
            (
                "broker 4 believes RS (1, 2, 3) +() -(), leader 1, ISR (1,), leader epoch 0, partition epoch 0 of "
                "orders-0, not RS (1, 2, 3) +() -(), leader 1, ISR (1, 2, 3), leader epoch 0, partition epoch 0"
            ),
        ),
        (
            believed_offline,
            (
                "broker 4 believes RS (1, 2, 3) +() -(), leader 1, ISR (1, 2, 3), (3,) offline, leader epoch 0, "
                "partition epoch 0 of orders-0, not RS (1, 2, 3) +() -(), leader 1, ISR (1, 2, 3), leader epoch 0, "
                "partition epoch 0"
            ),
        ),
        (lost_record, "broker 2 in the ISR of orders-0 lacks the acknowledged record at offset 1"),
    ],
)
def test_each_fault_is_seen(disturb: Callable[[SimulatedCluster], object], line: str) -> None:
    found = seen_after(disturb)
    # Either of the two controllers may be active.
    assert any(line.replace("102", str(active)) in found for active in (101, 102))


def test_a_cluster_at_rest_has_no_faults() -> None:
    assert seen_after(lambda _: None) == []


def test_a_partition_whose_isr_is_empty_waits_without_a_fault() -> None:
    def disturb(cluster: SimulatedCluster) -> None:
        write_state(cluster, leader=-1, isr=())
        moving(cluster)
        requested(cluster)

    informed = [line for line in seen_after(disturb) if " believes " in line or " was last told " in line]
    assert informed == seen_after(disturb)


@pytest.mark.parametrize("damaged", [True, False])
def test_partitions_of_damaged_topics_count_for_their_preferred_leader(damaged: bool) -> None:
    async def story() -> None:
        async with simulated_cluster(Settings(brokers=3, leader_rebalance_interval=60)) as cluster:
            await cluster.create_topic("orders", [(1, 2, 3)])
            await cluster.create_topic("others", [(2, 3, 1)] + [(1, 2, 3)] * 9)
            await cluster.until(lambda: not liveness.faults(cluster))
            write_state(cluster, leader=2)
            if damaged:
                cluster.world.safety.exempt.add(paths.topic("others"))
            assert not [line for line in liveness.faults(cluster) if "preferred" in line]

    scheduling.run(story, seed=1)


def test_a_request_for_a_damaged_topic_may_stay() -> None:
    def disturb(cluster: SimulatedCluster) -> None:
        requested(cluster)
        cluster.world.safety.exempt.add(paths.topic("orders"))

    assert seen_after(disturb) == []


def test_a_move_to_a_dead_broker_waits_without_a_fault() -> None:
    def disturb(cluster: SimulatedCluster) -> None:
        cluster.crash(4)
        moving(cluster)

    assert not any("still being reassigned" in line for line in seen_after(disturb))


def test_a_failed_disk_is_mended_with_the_other_faults() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.brokers[4].disk.fail()
        await cluster.reassign({"orders-0": (2, 3, 4)})
        await trio.sleep(20.0)
        assert any("still being reassigned" in fault for fault in liveness.faults(cluster))
        await cluster.settle()
        assert not liveness.faults(cluster)
        assert TP in cluster.brokers[4].disk.logs

    scheduling.run(partial(at_rest, story), seed=1)


UNREADABLE_DEFAULT = """
seed: 2114
in_order: false
cluster: {brokers: 1, controllers: 1, unclean_leader_election: true}
topics: {t0: [[1]]}
lasts: 3
events:
  - at: 1
    damage: {/config/brokers/<default>: '0'}
  - at: 1
    fail_disk: 1
    for: 1
    then: [{crash: same}, {start: {nodes: same, wipe: true}}]
"""

NOBODY_TO_COPY_FROM = """
seed: 2193
in_order: false
cluster: {brokers: 2}
topics: {t0: [[2]]}
lasts: 3
events:
  - at: 1
    crash: 2
    for: 2
    then: [{start: {nodes: same, wipe: true}}]
  - at: 1
    reassign: {t0-0: [1]}
"""


@pytest.mark.parametrize("scenario", [UNREADABLE_DEFAULT, NOBODY_TO_COPY_FROM])
def test_a_partition_without_an_isr_may_have_to_wait(scenario: str) -> None:
    """An unclean election that a default nobody can read may forbid; a move that no leader can begin."""
    assert run_scenario(scenario) == []


DAMAGED_AFTER_A_MOVE = """
seed: 14798
in_order: false
cluster: {brokers: 2, latency: 0.01}
topics: {t0: [[1]]}
lasts: 2
events:
  - at: 0
    when: anything commits B6
    damage: {/brokers/topics/t0/partitions/0/state: '{"leader_epoch": " "}'}
    for: 1
    then:
      - damage:
          /brokers/topics/t0/partitions/0/state:
            '{"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1, 2]}'
  - at: 0
    when: anything commits B3
    after: 0.01
    crash: controller
  - at: 0
    reassign: {t0-0: [2]}
"""

EMPTIED_BEFORE_IT_WAS_ELECTED = """
seed: 11029
in_order: false
cluster: {brokers: 2, controllers: 1}
topics: {t0: [[1]]}
lasts: 2
events:
  - at: 1
    crash: 2
    for: 1
    then: [{start: {nodes: same, wipe: true}}]
  - at: 1
    alter_topic: {'': {unclean.leader.election.enable: 'true'}}
  - at: 1
    reassign: {t0-0: [2]}
  - at: 2
    crash: {nodes: 1, noticed: true}
"""


REORDERED_WITHOUT_A_LEADER = """
in_order: false
cluster: {brokers: 3}
topics: {t0: [[1, 2]]}
lasts: 12
events:
  - at: 1
    crash: {nodes: [1, 2], noticed: true}
    for: 2
    then: [{start: {nodes: same, wipe: true}}]
  - at: 8
    reassign: {t0-0: [2, 1]}
"""


def test_a_new_order_of_replicas_is_told_with_the_next_leader() -> None:
    assert run_scenario(REORDERED_WITHOUT_A_LEADER) == []


def test_a_stray_of_a_damaged_topic_may_stay() -> None:
    assert run_scenario(DAMAGED_AFTER_A_MOVE) == []


def test_a_broker_that_was_elected_before_its_empty_disk_was_known_leaves_the_isr() -> None:
    assert run_scenario(EMPTIED_BEFORE_IT_WAS_ELECTED) == []
