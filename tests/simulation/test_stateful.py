"""Hypothesis disturbs a simulated cluster in any order, and shrinks the failures that it finds.

Requests are started and not awaited, since they may have to wait for the end of a fault. Invariants are checked all
the time; at the end all faults stop, and then the cluster has to recover.
"""

from __future__ import annotations

import hypothesis
import trio
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from klamm.testing import SteppedCluster
from simulator.cluster import SimulatedCluster

BROKERS = 4
NODES = (*range(1, BROKERS + 1), 101, 102)

node_ids = st.sampled_from(NODES)
replica_sets = st.lists(st.sampled_from(range(1, BROKERS + 1)), min_size=1, max_size=3, unique=True)


class ClusterMachine(RuleBasedStateMachine):
    """One simulated run, step by step."""

    partitions: Bundle[str] = Bundle("partitions")
    cluster: SimulatedCluster

    def __init__(self) -> None:
        super().__init__()
        self.stepped: SteppedCluster | None = None
        self.topics = 0

    @initialize(seed=st.integers(0, 2**16), min_insync_replicas=st.integers(1, 2))
    def open(self, seed: int, min_insync_replicas: int) -> None:
        self.stepped = SteppedCluster.open(
            seed=seed, brokers=BROKERS, controllers=2, min_insync_replicas=min_insync_replicas
        )
        self.cluster = self.stepped.cluster

    @invariant()
    def nothing_is_violated(self) -> None:
        self.pass_time(0.001)

    def teardown(self) -> None:
        if self.stepped is not None:
            with self.stepped:
                self.stepped.call(self.cluster.settle)

    # --- requests -----------------------------------------------------------------------------------------------

    @rule(target=partitions, replicas=replica_sets)
    def create_topic(self, replicas: list[int]) -> str:
        name = f"topic{self.topics}"
        self.topics += 1
        self.begun().begin(self.cluster.create_topic, name, [replicas])
        return f"{name}-0"

    @rule(partition=partitions, replicas=replica_sets)
    def reassign(self, partition: str, replicas: list[int]) -> None:
        self.begun().begin(self.cluster.reassign, {partition: replicas})

    @rule(partition=partitions)
    def cancel(self, partition: str) -> None:
        self.begun().begin(self.cluster.cancel, partition)

    @rule(partition=partitions, count=st.integers(1, 3))
    def produce(self, partition: str, count: int) -> None:
        self.begun().begin(self.cluster.produce, partition, [b"%d" % number for number in range(count)])

    # --- time and faults ----------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.01, 0.1, 1.0, 3.0, 8.0]))
    def pass_time(self, seconds: float) -> None:
        if self.stepped is not None:
            self.stepped.call(trio.sleep, seconds)

    @rule(node_id=node_ids)
    def crash(self, node_id: int) -> None:
        self.cluster.crash(node_id)

    @rule(node_id=node_ids)
    def restart(self, node_id: int) -> None:
        self.cluster.restart(node_id)

    @rule(node_id=node_ids)
    def pause(self, node_id: int) -> None:
        self.cluster.pause(node_id)

    @rule(node_id=node_ids)
    def wake(self, node_id: int) -> None:
        self.cluster.wake(node_id)

    @rule(node_id=node_ids)
    def expire(self, node_id: int) -> None:
        self.cluster.expire(node_id)

    @rule(some=node_ids, others=node_ids, one_way=st.booleans())
    def isolate(self, some: int, others: int, one_way: bool) -> None:
        self.cluster.isolate([some], [others], one_way=one_way)

    @rule()
    def heal(self) -> None:
        self.cluster.heal()

    def begun(self) -> SteppedCluster:
        """Return the cluster, which is open when rules run."""
        assert self.stepped is not None
        return self.stepped


TestCluster = ClusterMachine.TestCase
# A tenth of the soak's examples, and ten otherwise: each is a whole cluster.
TestCluster.settings = hypothesis.settings(
    max_examples=max(10, hypothesis.settings().max_examples // 10), stateful_step_count=30
)
