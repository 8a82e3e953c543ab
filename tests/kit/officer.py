"""The parties of an election among Kafka's brokers: a controller of ours that does nothing in office, and a broker."""

from __future__ import annotations

import trio
from attrs import define, field

from controller.model.election_results import Standby, Won
from controller.node.candidacy import AmongKafka
from controller.node.controller_election import register_endpoint
from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.protocol import Conflict, Create, MetadataStore, Set, StoreEvent, ensure_paths


class News:
    """Wakes a task at every event of a store."""

    def __init__(self, store: MetadataStore) -> None:
        self._event = trio.Event()
        store.subscribe(self._on_event)

    async def wait(self) -> None:
        """Wait for an event since the last call."""
        await self._event.wait()
        self._event = trio.Event()

    def _on_event(self, _: StoreEvent) -> None:
        self._event.set()


@define
class Officer:
    """A controller of ours that stands for election whenever the office may have changed."""

    store: MetadataStore
    controller_id: int = 1001
    outcome: Won | Standby | None = None
    is_deaf: bool = False
    """Whether it does not notice that the office has changed."""

    elections: list[Won] = field(factory=list)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stand for election until cancelled; reports started after the first election."""
        candidacy, news = AmongKafka(self.controller_id, lambda: 0), News(self.store)
        await candidacy.require_eligible(self.store)
        await ensure_paths(self.store, paths.PERSISTENT)
        await register_endpoint(self.store, BrokerEndpoint(self.controller_id, "127.0.0.1", 1))
        while True:
            held = self.outcome if isinstance(self.outcome, Won) else None
            if not self.is_deaf:
                self.outcome = await candidacy.elect(self.store, held)
            if isinstance(self.outcome, Won) and self.outcome != held:
                self.elections.append(self.outcome)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await news.wait()


async def stand_as_kafka(store: MetadataStore, broker_id: int = 3) -> None:
    """Take office as a broker of Kafka's whenever `/controller` is missing."""
    news = News(store)
    while True:
        holder, epoch = await store.read([paths.CONTROLLER, paths.CONTROLLER_EPOCH], watch=True)
        if holder is None and epoch is not None:
            claim = Create(paths.CONTROLLER, formats.encode_controller(broker_id, 0), ephemeral=True)
            raised = formats.encode_controller_epoch(formats.decode_controller_epoch(epoch.data) + 1)
            try:
                await store.multi([claim, Set(paths.CONTROLLER_EPOCH, raised, epoch.stat.version)])
            except Conflict:
                continue
        await news.wait()
