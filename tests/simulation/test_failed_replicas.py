"""The matrix of services that fail orders: which order, how often, on how many replicas, and what happens meanwhile.

In each story a cluster of four brokers has topics on the first three, led by broker 1. For each topic but one, the
services of some brokers fail one kind of order, once or always. Something makes the controller order the replicas anew;
later the services obey again. The topic without failures must end as it does in the same story without any.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Final

import pytest
import trio
from attrs import define, evolve, field, frozen

from simulator import scheduling
from simulator.actions.processes import Crash, FailOrders, ObeyOrders, Restart
from simulator.actions.requests import CreateTopic, CreateTopics, Elect
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.process import ProcessState
from simulator.settings import Settings
from simulator.steps import ControllerStep
from transport.messages import ElectionType, PartitionState
from transport.metadata import TopicPartition

BROKERS: Final = (1, 2, 3, 4)
SETTINGS: Final = Settings(
    brokers=4, first_controller=101, request_timeout=2.0, controller_timeout=2.0, leader_rebalance_interval=3
)
OTHER: Final = "other"
"""The topic of which no service fails an order."""

LEADS_WITHIN: Final = 30.0
"""Seconds within which a live member of the ISR leads, where one can."""

FAULT_SECONDS: Final = 75.0
"""The seconds for which a service fails that always fails."""

RETURN_SECONDS: Final = 75.0
"""Seconds within which all replicas are in the ISR once the services obey: the longest back-off, and some more."""

MINUTE: Final = 60.0
MOST_ELECTIONS: Final = 6

CALLS: Final = ("become_leader", "become_follower", "stop_replica")
SOME: Final = {"one": (2,), "leader": (1,), "some": (1, 2), "all": BROKERS}
TIMES: Final = {"once": 1, "always": None}
FAULTS: Final = {f"{who}-{often}": (SOME[who], TIMES[often]) for who, often in product(SOME, TIMES)}
"""The brokers that fail, and how often, by topic."""


@define
class Witness:
    """Watches the partition of a topic: who leads it, and how often that changes."""

    cluster: SimulatedCluster
    topic: str
    elections: list[tuple[int, float]] = field(factory=list)
    """The controller epoch and the time of each."""

    _epoch: int = 0
    _led_at: float = 0.0
    """When the partition had a working leader last, or no member of the ISR could lead."""

    def __attrs_post_init__(self) -> None:
        self._epoch, self._led_at = self.state.leader_epoch, trio.current_time()
        self.cluster.steps.watch(self._stepped)

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, 0)

    @property
    def state(self) -> PartitionState:
        """The partition's state in the store."""
        state = self.cluster.partition(str(self.tp))
        assert state is not None
        return state

    def _stepped(self, _: ControllerStep) -> bool:
        state = self.state
        self.elections += [(state.controller_epoch, trio.current_time())] * (state.leader_epoch - self._epoch)
        self._epoch = state.leader_epoch
        return False

    def can_be_led(self) -> bool:
        """Return whether a member of the ISR is alive and does not always fail to lead."""
        return any(map(self._can_lead, self.state.isr))

    def _can_lead(self, broker_id: int) -> bool:
        broker = self.cluster.brokers[broker_id]
        always_fails = broker.neglect.raising.get((self.tp, "become_leader"), 0) is None
        return broker.state is ProcessState.RUNNING and broker.started.is_set() and not always_fails

    def _is_led(self) -> bool:
        state = self.state
        service = self.cluster.brokers[state.leader].service if state.leader in BROKERS else None
        return service is not None and service.role(self.tp) == (state.leader_epoch, True)

    def look(self) -> None:
        """Require that the partition was led not long ago if a member of its ISR can lead."""
        if self._is_led() or not self.can_be_led():
            self._led_at = trio.current_time()
        assert trio.current_time() - self._led_at <= LEADS_WITHIN, f"no working leader: {self.state}"

    async def take_records(self) -> None:
        """Require that the partition takes a record in time if a member of its ISR can lead."""
        if self.can_be_led():
            with trio.fail_after(LEADS_WITHIN):
                await self.cluster.produce(str(self.tp), [b"a record"])

    @property
    def most_elections(self) -> int:
        """The most elections within a minute by one controller: the next one knows nothing of failures."""
        most = 0
        for epoch, start in self.elections:
            times = [time for by, time in self.elections if by == epoch]
            most = max(most, sum(0 <= time - start < MINUTE for time in times))
        return most

    def are_all_in_isr(self) -> bool:
        """Return whether all replicas are in the ISR."""
        return set(self.state.isr) == set(self.state.replicas)

    @property
    def outcome(self) -> Outcome:
        """The end of the story for the partition."""
        state = self.state
        return Outcome(state.leader, tuple(sorted(state.isr)), state.leader_epoch, self.most_elections)


@frozen
class Outcome:
    """The end of a story for one partition."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    most_elections: int


# --- causes of new orders -----------------------------------------------------------------------------------------


async def leader_restarts(cluster: SimulatedCluster) -> None:
    Restart(1).on(cluster)


async def all_restart(cluster: SimulatedCluster) -> None:
    Restart(BROKERS).on(cluster)


async def leader_dies(cluster: SimulatedCluster) -> None:
    Crash(1, noticed=True).on(cluster)
    await trio.sleep(15)
    Restart(1).on(cluster)


async def leader_leaves(cluster: SimulatedCluster) -> None:
    """Shut its broker down, which stays for a while: so it answers the orders to stop."""
    handle = cluster.brokers[1].handle
    assert handle is not None
    await handle.link.controlled_shutdown()
    await trio.sleep(15)
    Restart(1).on(cluster)


async def replicas_move(cluster: SimulatedCluster) -> None:
    await cluster.reassign({f"{topic}-0": (2, 4, 3) for topic in FAULTS})


async def order_changes(cluster: SimulatedCluster) -> None:
    """Elect another replica, which is preferred from now on: all are ordered under a new leader epoch."""
    await Elect(ElectionType.PREFERRED, (), {f"{topic}-0": (2, 1, 3) for topic in FAULTS}).on(cluster)


async def controller_dies(cluster: SimulatedCluster) -> None:
    """Crash the controller while brokers carry out its orders, or answer."""
    await order_changes(cluster)
    await _replace_controller(cluster)


async def controller_dies_after_answers(cluster: SimulatedCluster) -> None:
    await order_changes(cluster)
    await trio.sleep(5)
    await _replace_controller(cluster)


async def controller_dies_in_election(cluster: SimulatedCluster) -> None:
    """Crash the controller as soon as it has committed the next election, if there is one."""
    await order_changes(cluster)
    cluster.crash_at("elect")


async def old_leader_dies(cluster: SimulatedCluster) -> None:
    """Where broker 2 failed to lead, broker 1 leads again by then."""
    await _dies_later(cluster, 1)


async def last_leader_dies(cluster: SimulatedCluster) -> None:
    """Where brokers 1 and 2 failed to lead, broker 3 leads by then."""
    await _dies_later(cluster, 3)


async def _dies_later(cluster: SimulatedCluster, broker_id: int) -> None:
    await order_changes(cluster)
    await trio.sleep(5)
    Crash(broker_id, noticed=True).on(cluster)
    await trio.sleep(20)
    Restart(broker_id).on(cluster)


async def _replace_controller(cluster: SimulatedCluster) -> None:
    active = cluster.active_controller
    assert active is not None
    Crash(active, noticed=True).on(cluster)
    await trio.sleep(10)
    Restart(active).on(cluster)


Cause = Callable[[SimulatedCluster], Awaitable[None]]
CAUSES: Final[Sequence[Cause]] = (
    leader_restarts,
    all_restart,
    leader_dies,
    leader_leaves,
    replicas_move,
    order_changes,
    controller_dies,
    controller_dies_after_answers,
    controller_dies_in_election,
    old_leader_dies,
    last_leader_dies,
)


# --- the matrix ---------------------------------------------------------------------------------------------------


@frozen
class Row:
    """A row of the matrix; without a call, the same story without failures."""

    cause: Cause
    is_rebalanced: bool
    call: str | None = None


async def tell(cluster: SimulatedCluster, row: Row) -> dict[str, Outcome]:
    """Let a story happen; return how it ends, by topic."""
    await CreateTopics(tuple([CreateTopic(topic, ((1, 2, 3),)) for topic in (OTHER, *FAULTS)])).on(cluster)
    witnesses = [Witness(cluster, topic) for topic in (OTHER, *FAULTS)]
    for witness in witnesses:
        await witness.take_records()
    if row.call is not None:
        for topic, (brokers, times) in FAULTS.items():
            FailOrders(dict.fromkeys(brokers, (f"{topic}-0",)), row.call, times).on(cluster)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(row.cause, cluster)
        for _ in range(round(FAULT_SECONDS)):
            await trio.sleep(1)
            for witness in witnesses:
                witness.look()
    for witness in witnesses:
        await witness.take_records()
        assert witness.state.leader in witness.state.isr, "one stays chosen"
        if row.call == "become_leader" and witness.can_be_led():
            assert witness.are_all_in_isr(), "a replica that fails to lead follows"
    outcomes = {witness.topic: witness.outcome for witness in witnesses}
    ObeyOrders(BROKERS).on(cluster)
    for witness in witnesses:
        await cluster.until(witness.are_all_in_isr, within=RETURN_SECONDS, what=f"the return of {witness.state}")
        await witness.take_records()
    await cluster.settle()
    return {**outcomes, OTHER: witnesses[0].outcome}


def run(row: Row) -> dict[str, Outcome]:
    settings = SETTINGS if row.is_rebalanced else evolve(SETTINGS, leader_rebalance_interval=None)

    async def main() -> dict[str, Outcome]:
        async with simulated_cluster(settings) as cluster:
            return await tell(cluster, row)

    return scheduling.run(main, seed=1)


without_failures = cache(run)


def rows() -> Iterator[object]:
    """Yield the rows: one of each cause, with calls and settings in turn, and the others for `make soak`."""
    for (place, cause), call, is_rebalanced in product(enumerate(CAUSES), CALLS, (True, False)):
        marks = [pytest.mark.soak] if (place + 2 * CALLS.index(call) + is_rebalanced) % 6 else []
        name = f"{call}-{cause.__name__}{'-rebalanced' * is_rebalanced}"
        yield pytest.param(Row(cause, is_rebalanced, call), id=name, marks=marks)


@pytest.mark.parametrize("row", list(rows()))
def test_a_live_member_leads_soon_and_others_are_untouched(row: Row) -> None:
    outcomes, expected = run(row), without_failures(evolve(row, call=None))
    assert outcomes[OTHER] == expected[OTHER]
    for topic in FAULTS:
        by_failures = outcomes[topic].most_elections - expected[topic].most_elections
        assert by_failures <= MOST_ELECTIONS, topic
