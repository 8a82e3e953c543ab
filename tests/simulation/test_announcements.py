"""Orders with wrong news of brokers, offline replicas and new ones are reported, and no others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from simulator.steps import ControllerStep, Moment
from tests.simulation.histories import FIRST, SECOND, TOPIC_ID, TP, History
from transport.messages import (
    BrokerEndpoint,
    ControlledShutdownRequest,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import NO_LEADER
from transport.store import paths

pytestmark = pytest.mark.usefixtures("autojump_clock")

ALL = (1, 2, 3, 4, 5, 6)


class Channels(History):
    """A history in which controllers number their requests."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0

    def list_live(self, broker_id: int, *live: int, epoch: int = 1) -> None:
        """Tell a broker who is alive."""
        brokers = tuple(BrokerEndpoint(id_, f"broker-{id_}", 9092) for id_ in live)
        self.send(broker_id, epoch, brokers, ())

    def describe(self, broker_id: int, state: PartitionState) -> None:
        """Tell a broker the metadata of the partition."""
        self.send(broker_id, 1, None, (state,))

    def send(
        self, broker_id: int, epoch: int, live: tuple[BrokerEndpoint, ...] | None, states: tuple[PartitionState, ...]
    ) -> None:
        host = FIRST if epoch == 1 else SECOND
        controller = BrokerEndpoint(int(host[-3:]), host, 9092)
        broker_epoch, number = self._next(broker_id)
        request = UpdateMetadataRequest(controller.id, epoch, broker_epoch, controller, live, states, number=number)
        self.safety.ordered(host, broker_id, request)

    def order(self, broker_id: int, state: PartitionState, *, is_new: bool = False, epoch: int = 1) -> None:
        """Tell a broker to lead or follow."""
        broker_epoch, number = self._next(broker_id)
        items = (LeaderAndIsrPartition(state, is_new),)
        host = FIRST if epoch == 1 else SECOND
        self.safety.ordered(host, broker_id, LeaderAndIsrRequest(int(host[-3:]), epoch, broker_epoch, items, number))

    def stop(self, broker_id: int) -> None:
        """Tell a broker to delete its replica."""
        broker_epoch, number = self._next(broker_id)
        item = StopReplicaPartition(*TP[:1], TOPIC_ID, TP.partition, self.state.leader_epoch, delete=True)
        self.safety.ordered(FIRST, broker_id, StopReplicaRequest(101, 1, broker_epoch, (item,), number))

    def doubt(self) -> None:
        """Let a broker report that it cannot use its log."""
        self.safety.announcements.stepped(ControllerStep(101, "x", "failures", Moment.DECIDED, (TP,)))

    def _next(self, broker_id: int) -> tuple[int, int]:
        self._number += 1
        znode = self.tree.read(paths.broker(broker_id))
        return 0 if znode is None else znode.stat.czxid, self._number


Story = Callable[[Channels], None]


async def judged(story: Story) -> str:
    """Return what is found in a story that begins when the controller has been in office for a while."""
    history = Channels()
    await trio.sleep(1.0)
    story(history)
    return history.found or ""


# --- who is alive -----------------------------------------------------------------------------------------------


def leaders_come_first(h: Channels) -> None:
    h.order(1, h.told())


def leaders_come_first_after_a_failover(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.elect(SECOND)
    h.bump(SECOND, controller_epoch=2)
    h.order(1, h.told(controller_epoch=2), epoch=2)


def leaders_come_first_to_a_broker_that_returns(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.expire(1)
    h.register(1)
    h.order(1, h.told())


def leader_that_nobody_announced(h: Channels) -> None:
    h.list_live(1, 1, 2)
    h.bump(leader=3)
    h.order(1, h.told())


def leader_that_nobody_announced_in_metadata(h: Channels) -> None:
    h.list_live(1, 1, 2)
    h.bump(leader=3)
    h.describe(1, h.told())


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (leaders_come_first, "broker 1 was told of leaders before it was told who is alive"),
        (leaders_come_first_after_a_failover, "broker 1 was told of leaders before it was told who is alive"),
        (leaders_come_first_to_a_broker_that_returns, "broker 1 was told of leaders before it was told who is alive"),
        (leader_that_nobody_announced, "broker 1 was told that 3 leads orders-0, not that 3 is alive"),
        (leader_that_nobody_announced_in_metadata, "broker 1 was told that 3 leads orders-0, not that 3 is alive"),
    ],
)
async def test_a_leader_before_who_is_alive_is_seen(story: Story, text: str) -> None:
    assert text in await judged(story)


def list_first(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.order(1, h.told())


def list_with_the_metadata(h: Channels) -> None:
    endpoint = BrokerEndpoint(1, "broker-1", 9092)
    h.bump()
    h.send(2, 1, (endpoint,), (h.told(),))


def leader_that_died_meanwhile(h: Channels) -> None:
    h.bump(leader=3)
    told = h.told()
    h.expire(3)
    h.list_live(1, 1, 2, 4, 5, 6)
    h.order(1, told)


def leader_of_an_earlier_controller(h: Channels) -> None:
    h.bump(leader=3)
    h.elect(SECOND)
    h.list_live(1, 1, 2, epoch=2)
    h.order(1, h.told(), epoch=2)


def death_of_a_broker_that_returned_since(h: Channels) -> None:
    h.list_live(2, *ALL)
    h.expire(1)
    h.bump(leader=2, isr=(2, 3))
    told = h.told(offline_replicas=(1,))
    h.register(1)
    h.order(2, told)


def departure_before_the_end(h: Channels) -> None:
    h.list_live(2, *ALL)
    h.safety.asked(ControlledShutdownRequest(1, 0))
    h.expire(1)
    h.bump(leader=2, isr=(2, 3))
    h.order(2, h.told(offline_replicas=(1,)))


@pytest.mark.parametrize(
    "story",
    [
        list_first,
        list_with_the_metadata,
        leader_that_died_meanwhile,
        leader_of_an_earlier_controller,
        death_of_a_broker_that_returned_since,
        departure_before_the_end,
    ],
)
async def test_a_right_order_is_not_reported(story: Story) -> None:
    assert await judged(story) == ""


async def after_a_death(*, is_announced: bool) -> str | None:
    """Order what follows from the death of broker 1."""
    history = Channels()
    history.list_live(2, *ALL)
    history.expire(1)
    if is_announced:
        history.list_live(2, 2, 3, 4, 5, 6)
    await trio.sleep(1.0)
    history.bump(leader=2, isr=(2, 3))
    history.order(2, history.told(offline_replicas=(1,)))
    return history.found


async def test_a_death_is_announced_before_what_follows_from_it() -> None:
    assert await after_a_death(is_announced=True) is None
    assert await after_a_death(is_announced=False) == (
        "broker 2 was told of orders-0 without 1 before it was told that it is dead"
    )


# --- offline replicas -------------------------------------------------------------------------------------------


def lists_a_live_replica(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.describe(1, h.told(offline_replicas=(3,)))


async def test_a_live_replica_told_to_be_offline_is_seen() -> None:
    assert "broker 1 was told that orders-0 is offline on broker 3, which is alive" in await judged(
        lists_a_live_replica
    )


async def test_a_replica_that_was_dead_when_the_controller_was_elected_must_be_offline() -> None:
    history = Channels()
    history.expire(3)
    await trio.sleep(1.0)
    history.elect(SECOND)
    history.list_live(1, 1, 2, 4, 5, 6, epoch=2)
    history.send(1, 2, None, (history.told(),))
    assert history.found == "broker 1 was not told that orders-0 is offline on broker 3, long dead"


async def known_to_have_died(offline: tuple[int, ...], *, is_back: bool = False) -> str | None:
    """Publish a state that was committed after the controller had announced the death of broker 3."""
    history = Channels()
    await trio.sleep(1.0)
    history.list_live(2, *ALL)
    history.expire(3)
    history.list_live(2, 1, 2, 4, 5, 6)
    await trio.sleep(1.0)
    history.bump(isr=(1, 2))
    if is_back:
        history.register(3)
    history.describe(2, history.told(offline_replicas=offline))
    return history.found


async def test_a_replica_that_is_known_to_have_died_must_be_offline() -> None:
    assert await known_to_have_died(()) == "broker 2 was not told that orders-0 is offline on broker 3, known dead"
    assert await known_to_have_died((3,)) is None
    assert await known_to_have_died((), is_back=True) is None


def lists_one_that_shuts_down(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.safety.asked(ControlledShutdownRequest(3, 0))
    h.describe(1, h.told(offline_replicas=(3,)))


def lists_one_without_its_log(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.doubt()
    h.describe(1, h.told(offline_replicas=(3,)))


def lists_one_that_has_just_returned(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.expire(3)
    h.register(3)
    h.describe(1, h.told(offline_replicas=(3,)))


def leaves_out_one_that_has_just_died(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.expire(3)
    h.describe(1, h.told())


def tells_of_a_topic_that_is_being_deleted(h: Channels) -> None:
    h.list_live(1, *ALL)
    h.describe(1, h.told(leader=-2, offline_replicas=(3,)))


@pytest.mark.parametrize(
    "story",
    [
        lists_one_that_shuts_down,
        lists_one_without_its_log,
        lists_one_that_has_just_returned,
        leaves_out_one_that_has_just_died,
        tells_of_a_topic_that_is_being_deleted,
    ],
)
async def test_what_a_controller_may_say_of_offline_replicas(story: Story) -> None:
    assert await judged(story) == ""


# --- new replicas -----------------------------------------------------------------------------------------------


def hear_much(h: Channels) -> None:
    for _ in range(13):
        h.list_live(2, *ALL)


async def new_to_a_member(before: Callable[[Channels], None]) -> str | None:
    """Send isNew to broker 2, which is in the ISR of a later leader epoch."""
    history = Channels()
    await trio.sleep(1.0)
    history.list_live(2, *ALL)
    history.order(2, history.told())
    history.bump()
    hear_much(history)
    before(history)
    history.order(2, history.told(), is_new=True)
    return history.found


async def test_a_member_of_the_isr_is_not_new() -> None:
    assert await new_to_a_member(lambda _: None) == (
        "broker 2 was told that its replica of orders-0 is new, which is in the ISR (1, 2, 3)"
    )


async def test_a_replica_of_a_damaged_topic_may_be_new() -> None:
    assert await new_to_a_member(lambda h: h.safety.exempt.add(paths.partition_state(TP))) is None


def leave_and_join(h: Channels) -> None:
    h.bump(isr=(1, 3))
    h.ask(1, 3, 2)
    h.write(isr=(1, 3, 2))


def join_and_hear_much(h: Channels) -> None:
    leave_and_join(h)
    hear_much(h)


async def test_a_member_of_the_isr_is_not_new_to_another_controller() -> None:
    history = Channels()
    history.list_live(2, *ALL)
    history.order(2, history.told())
    history.bump()
    await trio.sleep(1.0)
    history.elect(SECOND)
    history.list_live(2, *ALL, epoch=2)
    history.order(2, history.told(), is_new=True, epoch=2)
    assert "broker 2 was told that its replica of orders-0 is new" in (history.found or "")


async def test_an_order_that_waited_while_its_replica_joined_stays_new() -> None:
    assert await new_to_a_member(leave_and_join) is None
    assert "is new, which is in the ISR (1, 3, 2)" in (await new_to_a_member(join_and_hear_much) or "")


@pytest.mark.parametrize("before", [lambda h: h.wipe(2), lambda h: h.bump(isr=(1, 3)), lambda h: h.stop(2)])
async def test_a_replica_without_data_may_be_new(before: Callable[[Channels], None]) -> None:
    assert await new_to_a_member(before) is None


async def test_the_first_order_to_a_replica_may_be_new() -> None:
    history = Channels()
    history.list_live(2, *ALL)
    history.bump(leader=NO_LEADER)
    history.order(2, history.told(), is_new=True)
    assert history.found is None


# --- what was told last -----------------------------------------------------------------------------------------


def differences(history: Channels) -> list[str]:
    return list(history.safety.told.differences((2, 4), {TP: history.told()}))


async def test_what_was_told_last_is_compared() -> None:
    history = Channels()
    for broker_id in (2, 4):
        history.list_live(broker_id, *ALL)
    nothing = "RS (1, 2, 3) +() -(), leader 1, leader epoch 0, id-of-orders of orders-0, not"
    assert "broker 2 was last told nothing of orders-0, not RS (1, 2, 3)" in differences(history)[0]
    history.order(2, history.told())
    assert differences(history) == []
    history.bump()
    assert nothing in differences(history)[0]
    history.order(2, history.told())
    assert differences(history) == []
    history.order(4, history.told())
    assert "broker 4 was last told RS (1, 2, 3)" in differences(history)[0]
    history.stop(4)
    assert differences(history) == []


async def test_what_was_told_of_a_damaged_topic_is_not_compared() -> None:
    history = Channels()
    history.list_live(4, *ALL)
    history.order(4, history.told())
    history.safety.exempt.add(paths.topic(TP.topic))
    assert list(history.safety.told.differences((4,), {})) == []


async def test_a_broker_that_was_told_to_stop_does_not_hold_its_replica() -> None:
    history = Channels()
    history.list_live(2, *ALL)
    history.order(2, history.told())
    history.stop(2)
    assert "broker 2 was last told nothing" in differences(history)[0]


async def test_what_the_fence_turns_away_does_not_count() -> None:
    history = Channels()
    history.list_live(2, *ALL)
    order = LeaderAndIsrRequest(101, 1, 0, (LeaderAndIsrPartition(history.told(), is_new=False),), 99)
    history.safety.ordered(FIRST, 2, order)
    assert "broker 2 was last told nothing" in differences(history)[0]
