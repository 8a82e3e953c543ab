"""What can be seen of a simulated cluster: its durable state, its brokers' metadata, its leaders' proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, frozen

from controller.monitoring import state_dump
from simulator.administration import Administered, partition_named
from simulator.broker_process import BrokerProcess
from simulator.process import ControllerProcess, Process
from simulator.safety.leadership import IsrProposal
from simulator.steps import Steps
from simulator.store.durable import Durable
from transport.messages import MetadataRequest, MetadataResponse, PartitionState
from transport.store.protocol import Znode
from transport.store.tree import Tree


@frozen
class _LeadersTree:
    """The tree of the ensemble's leader as a store that can be read, whatever happens to the others and the network."""

    _tree: Tree

    async def read(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many znodes."""
        return [self._tree.read(path) for path in paths]

    async def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """List the children of many znodes."""
        return [self._tree.children(path) for path in paths]


@define(eq=False)
class Inspected(Administered):
    """The part of a simulated cluster that only shows its state. None of it takes virtual time."""

    controllers: dict[int, ControllerProcess]
    brokers: dict[int, BrokerProcess]
    durable: Durable

    @property
    def steps(self) -> Steps:
        """The controllers' steps, for watchers."""
        return self.world.steps

    @property
    def active_controller(self) -> int | None:
        """The controller in `/controller`, alive or not; None if there is none."""
        return self.durable.controller()

    def process(self, node_id: int) -> Process:
        """Return a node's process. Raises KeyError."""
        return self.controllers[node_id] if node_id in self.controllers else self.brokers[node_id]

    def processes(self) -> tuple[Process, ...]:
        """Return all processes, controllers first."""
        return (*self.controllers.values(), *self.brokers.values())

    def partition(self, name: str) -> PartitionState | None:
        """Return the durable state of a partition; None before it is first elected a leader."""
        return self.durable.state(partition_named(name))

    async def dump_state(self) -> dict[str, Any]:
        """Return the durable state of the whole cluster, in the form of `klamm state dump`.

        The keys are `controller`, `brokers`, `partitions`, `reassign_partitions`, `delete_topics` and `undecodable`.
        """
        return await state_dump.dump(_LeadersTree(self.durable.tree))

    def metadata(self, broker_id: int) -> MetadataResponse | None:
        """Return the metadata that a broker holds, which may be older than the durable state; None if it is dead.

        A paused broker keeps what it had. Raises KeyError if there is no such broker.
        """
        handle = self.brokers[broker_id].handle_of_process()
        return None if handle is None else handle.metadata.describe(MetadataRequest(None))

    def proposed_isrs(self, name: str) -> tuple[IsrProposal, ...]:
        """Return the ISRs that the leaders of a partition have proposed, each once, in order.

        These are the requests that a controller has received, whatever it answered.
        """
        return self.world.safety.proposed_isrs(partition_named(name))
