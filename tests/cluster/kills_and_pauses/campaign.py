"""A cluster of processes that works while faults happen to it, and the judgement of the result."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
import trio
from attrs import define, field

from broker.client import GaveUp
from broker.reference.log_dir import records_on_disk
from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import log_dir
from tests.cluster.kills_and_pauses import checks
from tests.cluster.kills_and_pauses.chores import Chores
from tests.cluster.kills_and_pauses.load import Load
from tests.cluster.kills_and_pauses.memory import Memory
from tests.cluster.kills_and_pauses.nodes import BROKERS, CONTROLLERS, ZOOKEEPER, Node, Nodes, State, controller_name
from tests.cluster.kills_and_pauses.picture import Picture, look
from tests.cluster.kills_and_pauses.schedule import ACTIVE, ONLY_PAUSED, Fault, Kind
from tests.cluster.waiting import until_live
from transport.errors import ApiError
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore, StoreError
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import wait_until_serving

SETTLE_SECONDS: Final = 180.0
"""The time that the cluster may take after the last fault."""

SHOW_SECONDS: Final = 5.0
WATCH_SECONDS: Final = 0.5
ADMIN_SECONDS: Final = 10.0
ADMINISTRATORS: Final = 2
SKIPPED: Final = "skipped because that one was still away"


@define
class Campaign:
    """A run: its processes, its clients, and the faults found so far."""

    nodes: Nodes
    load: Load
    chores: Chores
    store: MetadataStore
    memory: Memory = field(factory=Memory)
    faults: list[str] = field(factory=list)
    happened: Counter[str] = field(factory=Counter)
    settled_after: float | None = None
    epoch: int = 0
    read_back: int = 0
    _active: int = CONTROLLERS[0]
    _suffering: set[str] = field(factory=set)

    # --- faults of the processes --------------------------------------------------------------------------------

    async def suffer(self, schedule: Sequence[Fault]) -> None:
        """Inject the planned faults, each at its time; a node with a fault under way gets no second one."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for fault in schedule:
                await trio.sleep_until(began + fault.at)
                node, kind = self._meant(fault)
                if node.name in self._suffering:
                    self.happened[SKIPPED] += 1
                    continue
                self._suffering.add(node.name)
                self.happened[f"{kind.value} of {node.name.partition('-')[0]}"] += 1
                nursery.start_soon(self._happen, node, kind, fault.seconds)

    def _meant(self, fault: Fault) -> tuple[Node, Kind]:
        """Return the node and the kind of a fault: the active controller may be the one that is only ever paused."""
        name = controller_name(self._active) if fault.node == ACTIVE else fault.node
        return self.nodes.by_name[name], Kind.PAUSE if name in ONLY_PAUSED else fault.kind

    async def _happen(self, node: Node, kind: Kind, seconds: float) -> None:
        match kind:
            case Kind.PAUSE:
                node.pause()
                await trio.sleep(seconds)
                node.resume()
            case Kind.KILL:
                await node.kill()
                await trio.sleep(seconds)
                node.start()
            case Kind.TERM:
                await self.stop(node)
                await trio.sleep(seconds)
                node.start()
        self._suffering.remove(node.name)

    async def stop(self, node: Node) -> None:
        """Stop a process with SIGTERM, and judge how it ends."""
        code = await node.stop()
        fault = checks.exit_fault(node.name, code, node.said(), signal.SIGTERM)
        if fault is not None and node.name != ZOOKEEPER:
            self.faults.append(fault)

    async def watch(self) -> None:
        """Record each process that ends unasked, which is a fault, and start it again; record who is in office."""
        while True:
            await trio.sleep(WATCH_SECONDS)
            for node in self.nodes.by_name.values():
                if node.state is State.RUNNING and node.process.poll() is not None:
                    fault = checks.exit_fault(node.name, node.process.returncode, node.said())
                    self.faults.append(str(fault))
                    click.echo(str(fault))
                    node.start()
            with suppress(StoreError, formats.UndecodableZnode), trio.move_on_after(WATCH_SECONDS):
                [znode] = await self.store.read([paths.CONTROLLER])
                self._active = self._active if znode is None else formats.decode_controller(znode.data)

    async def show(self) -> None:
        """Print a line every few seconds."""
        began = trio.current_time()
        while True:
            away = [node for node in self.nodes.by_name.values() if node.state is not State.RUNNING]
            who = ", ".join(f"{node.name} {node.state.name.lower()}" for node in away)
            happened = self.happened.total() - self.happened[SKIPPED]
            click.echo(
                f"{trio.current_time() - began:5.0f} s  {happened:3} faults  {self.load.total():6} acknowledged  "
                f"{self.chores.answers.total():4} chores  {len(self.all_faults())} wrong  {who or 'all are there'}"
            )
            await trio.sleep(SHOW_SECONDS)

    # --- the judgement ------------------------------------------------------------------------------------------

    async def settle(self, began: float) -> Picture | None:
        """Wait until the cluster is as it should be, and return it; None if it takes too long since `began`."""
        unsettled = ["nobody could look"]
        with trio.move_on_at(began + SETTLE_SECONDS):
            while True:
                with suppress(StoreError):
                    picture = await look(self.store, self.nodes.folder)
                    self.epoch = picture.epoch or 0
                    unsettled = checks.unsettled(picture, BROKERS)
                    if not unsettled:
                        self.settled_after = trio.current_time() - began
                        return picture
                await trio.sleep(0.25)
        self.faults += [f"{SETTLE_SECONDS:g} s after the last fault: {text}" for text in unsettled]
        return None

    async def judge_records(self) -> None:
        """Read all records and compare them with what was acknowledged."""
        try:
            read = await self.load.read_back()
        except (ApiError, GaveUp) as error:
            self.faults.append(f"the records cannot be read: {error}")
            return
        self.read_back = sum(map(len, read.values()))
        for tp, batches in self.load.acknowledged.items():
            self.faults += checks.record_faults(tp, batches, read[tp])

    async def stop_all(self) -> None:
        """Stop brokers, then controllers, in good order."""
        for sort in ("broker", "controller"):
            async with trio.open_nursery() as nursery:
                for node in self.nodes.by_name.values():
                    if node.name.startswith(sort):
                        nursery.start_soon(self.stop, node)

    def judge_replicas(self, picture: Picture) -> None:
        """Compare the logs of the replicas of each partition, when all brokers have stopped."""
        for tp, state in picture.states.items():
            logs = {id_: records_on_disk(log_dir(self.nodes.folder, id_), tp) for id_ in state.replicas}
            self.faults += checks.differing_logs(tp, logs)

    def judge_logs(self) -> None:
        """Look for tracebacks in what brokers and controllers said."""
        for node in self.nodes.by_name.values():
            if node.name != ZOOKEEPER:  # Java logs lost connections with tracebacks of its own
                self.faults += checks.crashes(node.name, node.log.read_text(encoding="utf-8", errors="replace"))

    def all_faults(self) -> list[str]:
        """Return the faults found, each once, with its count."""
        counts = Counter([*self.faults, *self.load.faults, *self.chores.faults])
        return [f"{count} x {fault}" if count > 1 else fault for fault, count in counts.items()]


async def run(folder: Path, schedule: Sequence[Fault], rng: random.Random, session_ms: int) -> Campaign:
    """Run a cluster in a folder, inject the planned faults while it works, and judge the result.

    Raises DevelopmentServerError, or TooSlowError if the cluster does not start.
    """
    nodes = Nodes(folder, session_ms)
    try:
        await _start(nodes)
        async with open_zookeeper(nodes.zookeeper) as store, trio.open_nursery() as nursery:
            admin = AdminClient(TcpNetwork(), nodes.bootstrap, None, ADMIN_SECONDS)
            load = Load(nursery, nodes.bootstrap)
            campaign = Campaign(nodes, load, Chores(admin, load, rng), store)
            await until_live(admin, BROKERS)
            await _work(campaign, schedule)
            nursery.cancel_scope.cancel()
    finally:
        nodes.end()
    campaign.judge_logs()
    return campaign


async def _start(nodes: Nodes) -> None:
    zookeeper, *others = nodes.by_name.values()
    zookeeper.start()
    await wait_until_serving(zookeeper.process, nodes.ports[ZOOKEEPER], zookeeper.log)
    for node in others:
        node.start()


async def _work(campaign: Campaign, schedule: Sequence[Fault]) -> None:
    async with trio.open_nursery() as beside:
        for task in (campaign.watch, campaign.show):
            beside.start_soon(task)
        beside.start_soon(campaign.memory.watch, campaign.nodes.by_name.values())
        await campaign.chores.create_steady_topics()
        async with trio.open_nursery() as chores:
            for _ in range(ADMINISTRATORS):
                chores.start_soon(campaign.chores.work)
            await campaign.suffer(schedule)
            chores.cancel_scope.cancel()
        ended = trio.current_time()
        await campaign.load.stop()
        picture = await campaign.settle(ended)
        await campaign.judge_records()
        beside.cancel_scope.cancel()
    await campaign.stop_all()
    if picture is not None:
        campaign.judge_replicas(picture)
