"""A new controller loads the cluster, notifies brokers in the right order, and repairs what changed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import define, field
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.handlers.failover import failover
from controller.handlers.leadership import ControllerMoved
from controller.model.context import ControllerContext
from controller.model.rounds import TellMetadata
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import TP, Bench, states_of
from tests.kit.passing_store import PassingStore
from tests.kit.told import Order
from transport.messages import BrokerEndpoint
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set, Znode

SECOND = TopicPartition("orders", 1)


@pytest.mark.requirement("D2")
async def test_an_empty_cluster_has_nothing_to_do(bench: Bench) -> None:
    await bench.run(failover(bench.context, iter(())))
    assert bench.seen.commits == []
    assert bench.seen.published[0] == TellMetadata(None, (), ())
    assert not any(states_of(publication) for publication in bench.seen.published)


@pytest.mark.requirement("D2")
async def test_everything_is_loaded(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3))
    await bench.alter_isr(SECOND, 2)
    await bench.move(TP, (4, 1))
    await bench.kill(2)
    before = bench.context
    await bench.fail_over()

    context = bench.context
    assert context.brokers == before.brokers
    assert context.topics == before.topics
    assert list(context.reassigning) == [TP]
    assert context.partition_phases == {TP: PartitionPhase.ONLINE, SECOND: PartitionPhase.OFFLINE}
    assert {(tp.partition, r): phase for (tp, r), phase in context.replica_phases.items()} == {
        (0, 4): ReplicaPhase.ONLINE,
        (0, 1): ReplicaPhase.ONLINE,
        (0, 2): ReplicaPhase.OFFLINE,
        (1, 2): ReplicaPhase.OFFLINE,
        (1, 3): ReplicaPhase.ONLINE,
    }
    for tp in (TP, SECOND):
        assert context.leadership[tp] == await bench.read_state(tp)


@pytest.mark.requirement("D10")
async def test_brokers_hear_who_is_alive_before_they_hear_of_any_leader(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3), brokers=(1, 2, 3))
    await bench.fail_over()
    first, *rest = bench.seen.published
    live = tuple(BrokerEndpoint(id_, "127.0.0.1", 9000 + id_) for id_ in (1, 2, 3))
    assert first == TellMetadata(None, (), live)
    told = [(tell.state.partition, tell.brokers) for tell in rest if isinstance(tell, Order) and tell.brokers]
    assert told == [(0, (1, 2)), (1, (2, 3))]
    everything = [tell.partitions for tell in rest if isinstance(tell, TellMetadata)]
    assert everything == [tuple(bench.context.describe(tp) for tp in (TP, SECOND))]
    # Nothing was wrong: nothing is written.
    assert bench.seen.commits == []


@pytest.mark.requirement("D5")
async def test_what_died_while_nobody_looked_leaves_isr_and_leadership(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    epoch = (await bench.read_state(TP)).leader_epoch
    await bench.unregister(1, 3)
    await bench.fail_over()
    state = await bench.read_state(TP)
    # KAFKA-3143. One epoch: 2 is elected as the dead leave.
    assert (state.leader, state.isr, state.leader_epoch, state.controller_epoch) == (2, (2,), epoch + 1, 2)
    assert bench.seen.latest_metadata(TP) == bench.context.describe(TP)


@pytest.mark.requirement("D4", "A10")
async def test_a_partition_whose_isr_is_dead_stays_offline_and_keeps_its_last_member(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.unregister(1)
    await bench.fail_over()
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (NO_LEADER, (1,))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    await bench.fail_over()
    assert await bench.read_state(TP) == state, "a partition that is Offline already costs no epoch"


async def test_a_partition_without_a_state_gets_one(bench: Bench) -> None:
    await bench.register(1, 2)
    await bench.write_topic("orders", (1, 2))
    await bench.run(failover(bench.context, iter(())))
    assert await bench.read_state(TP) == LeaderAndIsr(1, 0, (1, 2), 0, 1)


@pytest.mark.requirement("D1")
async def test_a_state_of_a_later_controller_ends_this_one(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.write_state(TP, replace(await bench.read_state(TP), controller_epoch=3))
    await bench.store.multi([Set(paths.CONTROLLER_EPOCH, b"3", -1)])
    bench.runner.context = ControllerContext(bench.context.controller, 1, 1)
    with pytest.raises(ControllerMoved, match="orders-0 was written at controller epoch 3"):
        await bench.run(failover(bench.runner.context, iter(())))


async def test_a_controller_epoch_that_nobody_had_neither_ends_an_office_nor_outranks_it(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.write_state(TP, replace(await bench.read_state(TP), controller_epoch=1_000_000))
    await bench.fail_over()
    assert bench.context.leadership[TP].controller_epoch == 2
    await bench.kill(1)
    state = await bench.read_state(TP)
    assert (state.leader, state.controller_epoch) == (2, 2)


async def test_data_that_cannot_be_decoded_is_set_aside_with_its_fault(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    await bench.store.multi(
        [
            Create(paths.broker(7), b'{"endpoints":["PLAINTEXT://h:1"]}', ephemeral=True),
            Create(paths.topic("broken"), b"{"),
            Set(paths.partition_state(SECOND), b'{"leader":"one"}', -1),
        ]
    )
    with capture_logs() as logs:
        await bench.fail_over()
    faults = {log["fault"] for log in logs if log["log_level"] == "error"}
    assert {fault.split(":")[0] for fault in faults} == {
        paths.broker(7),
        paths.topic("broken"),
        paths.partition_state(SECOND),
    }
    assert 7 not in bench.context.brokers
    assert "broken" not in bench.context.topics
    assert bench.context.partition_phases == {TP: PartitionPhase.ONLINE, SECOND: PartitionPhase.NEW}
    znode = await bench.znode(paths.partition_state(SECOND))
    assert znode.data == b'{"leader":"one"}', "what cannot be read is not overwritten"


async def test_topics_without_an_id_get_one_and_keep_the_rest_of_their_znode(bench: Bench) -> None:
    await bench.register(1)
    data = b'{"version":1,"partitions":{"0":[1]},"written_by":"an old tool"}'
    await bench.store.multi([Create(paths.topic("orders"), data)])
    await bench.run(failover(bench.context, iter(["first-id", "second-id"])))
    znode = await bench.znode(paths.topic("orders"))
    topic = formats.decode_topic("orders", znode.data)
    assert (topic.topic_id, topic.unknown) == ("first-id", {"written_by": "an old tool"})
    assert bench.context.describe(TP).topic_id == "first-id"
    await bench.fail_over()
    assert bench.context.describe(TP).topic_id == "first-id"


@pytest.mark.requirement("A7")
async def test_the_trace_of_a_new_controller_begins_with_what_moves(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    await bench.move(TP, (4, 5))
    zxid = bench.seen.commits[-1].zxid
    bench.seen.clear()
    await bench.fail_over()
    loaded = bench.seen.commits[0]
    assert (loaded.round, loaded.controller_epoch, loaded.zxid) == ("loaded", 2, zxid)
    assert [state.partition for state in loaded.partitions] == [0]
    assert loaded.topic_versions == (("orders", 1),)


async def test_a_move_requested_while_nobody_was_in_office_begins_once(bench: Bench) -> None:
    await bench.start((1,), (2,))
    await bench.move(SECOND, (5,))
    await bench.request_moves({TP: (4,)})
    await bench.fail_over()
    # U1 adds one, and A1 one more to a move that is resumed.
    assert (await bench.read_state(TP)).leader_epoch == 1
    assert (await bench.read_state(SECOND)).leader_epoch == 2


@define
class Foresighted(PassingStore):
    """A session that keeps which paths were read, and which were announced for the next read."""

    calls: list[tuple[str, Sequence[str]]] = field(factory=list)

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes."""
        self.calls.append(("read", paths))
        return await self.store.read(paths, watch=watch)

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Begin to read znodes."""
        self.calls.append(("ahead", paths))


async def test_the_next_states_are_looked_for_while_topics_or_states_are_applied(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.failover.READ_AT_ONCE", 2)
    await bench.start(*[(1, 2)] * 5)
    bench.runner.store = store = Foresighted(bench.store)
    await bench.fail_over()
    states = paths.partition_states(TopicPartition("orders", number) for number in range(5))
    one, two, three = tuple(states[:2]), tuple(states[2:4]), tuple(states[4:])
    first = store.calls.index(("ahead", one))
    assert store.calls[first : first + 6] == [
        ("ahead", one),
        ("read", one),
        ("ahead", two),
        ("read", two),
        ("ahead", three),
        ("read", three),
    ]
    assert [call for call, _ in store.calls].count("ahead") == 3
    assert len(bench.context.leadership) == 5
