"""A rolling upgrade and the way back, under load and with work in progress, and the judgement of the result.

What is in progress, and by which tree it is begun (old) or (new):

1. (old) The rollout `flying` copies more than the whole run takes, and has a topic that is deleted (new) while most of
   its moves wait. It is paused by one tree and resumed by the other, both ways.
2. (old) The rollout `held` waits behind it, paused by its operator until everything is old again, and has a partition
   of such a topic, too.
3. (new) The rollout `fresh` is started while everything is new, and carried out when everything is old.
4. (new) Broker 4 fails to lead the partition of the topic `touchy`, until everything is old again.

Each restart must leave every partition whole, raise the controller epoch only if it was the active controller that was
restarted, and quarantine nothing. At the end all is old, and checked: records, replicas, rollouts, throttles, logs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import trio
from attrs import define, field

from broker.client import GaveUp, Producer
from broker.reference.log_dir import records_on_disk
from controller.admin.active_controller import ClusterUnreachable
from controller.admin.client import AdminClient
from controller.monitoring.state_dump import dump
from klamm.cli.demo.clusters import log_dir
from tests.cluster.kills_and_pauses import checks
from tests.cluster.kills_and_pauses.load import Load
from tests.cluster.kills_and_pauses.nodes import controller_name
from tests.cluster.kills_and_pauses.picture import Picture, look
from tests.cluster.rolling_upgrade.fleet import BROKERS, NAMES, Fleet
from tests.cluster.rolling_upgrade.trees import Tree
from tests.cluster.waiting import until_live
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import (
    UNKNOWN,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewTopic,
    PartitionState,
    RolloutDescription,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store.protocol import MetadataStore, StoreError
from transport.store.zookeeper import open_zookeeper
from transport.wire import WireError

FLYING, HELD, FRESH = "flying", "held", "fresh"
BIG: Final = 40
"""The partitions that `flying` moves; two at a time, at the throttle, they take more than six minutes."""

BIG_RECORDS: Final = 100
BIG_RECORD_BYTES: Final = 10_000
THROTTLE: Final = 50_000
FAST: Final = 500_000_000
SMALL: Final = 4
"""The partitions of the other topics that are moved or written to."""

MANY: Final = 20
"""The partitions of the topic that is deleted while its moves wait."""

STEADY, LATER, NEWER, TOUCHY, DOOMED, FATED = "steady", "later", "newer", "touchy", "doomed", "fated"
ADMIN_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 90.0
END_SECONDS: Final = 300.0
NOBODY: Final = ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED


def ring(number: int, *places: int) -> tuple[int, ...]:
    """Return brokers of a ring, counted from the one at `number`."""
    return tuple(BROKERS[(number + place) % len(BROKERS)] for place in places)


class CutShort(Exception):
    """The run could not be continued."""


@define
class Upgrade:
    """The run: its cluster, its clients, and the faults found so far."""

    fleet: Fleet
    old: Tree
    new: Tree
    admin: AdminClient
    store: MetadataStore
    load: Load
    faults: list[str] = field(factory=list)
    began: float = field(factory=trio.current_time)
    flown: list[int] = field(factory=list)
    """The moves in flight right after each restart."""

    throttles: dict[str, dict[str, str | None]] = field(factory=dict)
    """The replication throttles before the first rollout."""

    read_back: int = 0

    # --- the course ---------------------------------------------------------------------------------------------

    async def run(self, order: Sequence[str], way_back: Sequence[str]) -> None:
        """Upgrade and go back, one process after the other in this order, with the work of the module's docstring."""
        await self.prepare()
        await self.klamm(self.old, "pause", FLYING)
        upgraded = [name for name in order if name.startswith("controller")]
        for name in order:
            await self.restart(name, self.new)
            if name == upgraded[-1]:
                await self.klamm(self.new, "resume", FLYING)
                await self.admin.delete_topics([DOOMED, FATED])
                await self.let_leading_fail()
        await self.start_rollout(self.new, FRESH, self.small_moves(NEWER))
        await self.klamm(self.new, "pause", FLYING)
        for name in way_back:
            await self.restart(name, self.old)
            if name == [each for each in way_back if each.startswith("controller")][-1]:
                await self.klamm(self.old, "resume", FLYING)
        # The last broker that went back did so after this file was gone, or else it is ordered to lead again here.
        self.fleet.flag.unlink()
        await self.restart(NAMES[-1], self.old)
        await self.klamm(self.old, "set", FLYING, "--throttle", str(FAST))
        await self.klamm(self.old, "resume", HELD)
        await self.finish()

    async def prepare(self) -> None:
        """Create the topics, write to them, and begin the first two rollouts."""
        await until_live(self.admin, BROKERS)
        await self.create("big", [ring(number, 0, 1, 2) for number in range(BIG)])
        for name in (STEADY, LATER, NEWER):
            await self.create(name, [ring(number, 0, 1, 2) for number in range(SMALL)])
        await self.create(DOOMED, [ring(number, 0, 1, 2) for number in range(MANY)])
        await self.create(FATED, [ring(0, 0, 1, 2)])
        await self.create(TOUCHY, [(1, BROKERS[-1], 2)])
        await self.fill()
        written = [*((name, SMALL) for name in (STEADY, LATER, NEWER)), (TOUCHY, 1), ("big", 2)]
        for name, count in written:
            for number in range(count):
                self.load.write_to(TopicPartition(name, number))
        self.throttles = await self.read_throttles()
        flying = [*self.moves("big", BIG), *self.moves(DOOMED, MANY)]
        await self.start_rollout(self.old, FLYING, flying, "--in-flight", "2", "--throttle", str(THROTTLE))
        await self.start_rollout(self.old, HELD, [*self.small_moves(LATER), *self.moves(FATED, 1)])
        await self.klamm(self.old, "pause", HELD)
        await self.until("moves in flight", self._is_flying, WHOLE_SECONDS)

    async def create(self, name: str, replicas: Sequence[tuple[int, ...]]) -> None:
        """Create a topic. Raises ApiError."""
        [created] = (await self.admin.create_topics([NewTopic(name, len(replicas), 3, tuple(replicas))])).topics
        if created.error is not ErrorCode.NONE:
            raise ApiError(created.error, created.message)

    async def fill(self) -> None:
        """Write the records that `flying` copies."""
        values = [bytes(BIG_RECORD_BYTES)] * BIG_RECORDS
        async with Producer(TcpNetwork(), self.fleet.bootstrap, host=Host()) as producer:
            for number in range(BIG):
                await producer.send("big", number, values, give_up_after=ADMIN_SECONDS)

    async def let_leading_fail(self) -> None:
        """Order broker 4 to lead the partition of `touchy`, at which it fails from now on."""
        self.fleet.flag.write_text(TOUCHY, encoding="utf-8")
        order = {TopicPartition(TOUCHY, 0): (BROKERS[-1], 1, 2)}
        for result in await self.admin.elect_leaders(ElectionType.PREFERRED, None, orders=order):
            if result.error not in NOBODY:
                self.faults.append(f"the election of {result.tp}: {result.error.name} {result.message}")

    async def restart(self, name: str, tree: Tree) -> None:
        """Restart a process with a tree, wait until all is whole, and judge the controllership and the quarantine."""
        controller, epoch = await self.office()
        await self.fleet.restart(name, tree)
        await self.until(f"every partition whole after {name}", self._is_whole, WHOLE_SECONDS)
        now_active, now_epoch = await self.office()
        was_active = controller is not None and name == controller_name(controller)
        if now_epoch != epoch + was_active:
            self.faults.append(
                f"the restart of {name} as {tree.name} raised the epoch from {epoch} to {now_epoch}, and controller "
                f"{controller} was active before"
            )
        quarantined = (await self.admin.describe_cluster()).quarantined
        if quarantined:
            self.faults.append(f"with {name} as {tree.name}, controller {now_active} quarantined {quarantined}")
        undecodable = (await dump(self.store))["undecodable"]
        self.faults += [f"with {name} as {tree.name}, undecodable: {fault}" for fault in undecodable]
        self.flown.append(len(await self.admin.list_reassignments()))
        self.show(
            f"{name} is {tree.name}; controller {now_active}, epoch {now_epoch}, {self.flown[-1]} moves in flight"
        )

    async def finish(self) -> None:
        """Wait for the end of the rollouts, and judge everything."""
        await self.until("the end of the rollouts", self._are_over, END_SECONDS)
        self.judge_rollouts(await self.rollouts())
        await self.load.stop()
        picture = await self.settle()
        await self.judge_throttles()
        await self.judge_records()
        for name in reversed(NAMES):
            await self.fleet.stop(name)
        if picture is not None:
            for tp, state in picture.states.items():
                logs = {id_: records_on_disk(log_dir(self.fleet.folder, id_), tp) for id_ in state.replicas}
                self.faults += checks.differing_logs(tp, logs)

    # --- rollouts -----------------------------------------------------------------------------------------------

    def moves(self, topic: str, count: int) -> list[dict[str, Any]]:
        """Return moves of a topic's first partitions, each of one replica to the fourth broker of the ring."""
        return [
            {"topic": topic, "partition": n, "replicas": ring(n, 1, 2, 3), "before": ring(n, 0, 1, 2)}
            for n in range(count)
        ]

    def small_moves(self, topic: str) -> list[dict[str, Any]]:
        """Return the moves of all partitions of a small topic."""
        return self.moves(topic, SMALL)

    async def start_rollout(self, tree: Tree, name: str, moves: Iterable[dict[str, Any]], *options: str) -> None:
        """Start a rollout with the command of a tree."""
        plan = self.fleet.folder / f"{name}.json"
        plan.write_text(json.dumps({"version": 1, "partitions": list(moves)}), encoding="utf-8")
        await self.klamm(tree, "start", str(plan), "--name", name, *options)

    async def klamm(self, tree: Tree, *arguments: str) -> None:
        """Run `klamm rollout` of a tree; that it fails is a fault."""
        where = ",".join(f"{host}:{port}" for host, port in self.fleet.bootstrap)
        command = tree.command(self.fleet.folder / "never", "rollout", *arguments, "--bootstrap-server", where)
        done = await trio.run_process(command, check=False, capture_stdout=True, capture_stderr=True)
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        self.show(f"{tree.name} klamm rollout {' '.join(arguments)}: {said}")
        if done.returncode:
            self.faults.append(f"`klamm rollout {' '.join(arguments)}` of the {tree.name} tree failed: {said}")

    async def rollouts(self) -> Sequence[RolloutDescription]:
        """Return the rollouts as the active controller describes them."""
        return await self.admin.describe_rollouts()

    async def _is_flying(self) -> bool:
        return bool(await self.admin.list_reassignments())

    async def _are_over(self) -> bool:
        return all(rollout.place == UNKNOWN for rollout in await self.rollouts())

    # --- the judgement ------------------------------------------------------------------------------------------

    async def office(self) -> tuple[int | None, int]:
        """Return the active controller and its epoch, as the store has them."""
        controller = (await dump(self.store))["controller"]
        return controller["id"], controller["epoch"] or 0

    async def _is_whole(self) -> bool:
        """Return whether all brokers live, and all replicas that are not added just now are in their ISRs.

        The failing replica may be outside.
        """
        metadata = await self.admin.read_metadata()
        missing = [state for state in metadata.partitions if state.topic != TOUCHY and _lacks_replicas(state)]
        return [broker.id for broker in metadata.brokers] == list(BROKERS) and not missing

    async def settle(self) -> Picture | None:
        """Wait until the cluster is as it should be, and return it; None if it takes too long."""
        unsettled = ["the store did not answer"]
        with trio.move_on_after(WHOLE_SECONDS):
            while True:
                try:
                    picture = await look(self.store, self.fleet.folder, BROKERS)
                except StoreError as error:
                    unsettled = [str(error)]
                else:
                    unsettled = checks.unsettled(picture, BROKERS)
                    if not unsettled:
                        return picture
                await trio.sleep(0.25)
        self.faults += [f"{WHOLE_SECONDS:g} s after the end: {text}" for text in unsettled]
        return None

    def judge_rollouts(self, rollouts: Sequence[RolloutDescription]) -> None:
        """Compare how the rollouts ended with what they had to do."""
        # Of the deleted topics, some moves may have been made before; the others must not hold anything up.
        expected = {FLYING: (BIG, BIG + MANY - 1), HELD: (SMALL, SMALL), FRESH: (SMALL, SMALL)}
        for rollout in rollouts:
            counts = {state: count for state, count in rollout.counts if count}
            self.show(f"rollout {rollout.name}: {rollout.phase}, {counts}")
            least, most = expected.pop(rollout.name, (0, 0))
            if rollout.phase != "done" or not least <= counts.get("done", 0) <= most:
                self.faults.append(
                    f"rollout {rollout.name} ended as {rollout.phase} with {counts} instead of {least} to {most} done"
                )
        self.faults += [f"rollout {name} is gone" for name in expected]

    async def read_throttles(self) -> dict[str, dict[str, str | None]]:
        """Return the replication throttles of brokers and of topics that are moved."""
        brokers = [ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in BROKERS]
        topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in ("big", LATER, NEWER)]
        return {
            f"{described.resource.type.name} {described.resource.name}": {
                entry.name: entry.value for entry in described.entries if "throttled" in entry.name
            }
            for described in await self.admin.describe_configs([*brokers, *topics])
        }

    async def judge_throttles(self) -> None:
        """Look for replication throttles that a rollout has left."""
        for name, throttles in (await self.read_throttles()).items():
            if throttles != self.throttles[name]:
                self.faults.append(f"{name} has {throttles}, and had {self.throttles[name]} before")

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

    def all_faults(self) -> list[str]:
        """Return all faults."""
        return [*self.faults, *self.fleet.faults, *self.load.faults]

    # --- waiting and showing ------------------------------------------------------------------------------------

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Wait until a condition holds. Raises TooSlowError."""
        with trio.move_on_after(seconds):
            while True:
                try:
                    if await holds():
                        return
                except (ApiError, WireError):
                    pass
                await trio.sleep(0.25)
        raise trio.TooSlowError(f"{what}: not within {seconds:g} s")

    def show(self, text: str) -> None:
        """Print a line with the time."""
        click.echo(f"{trio.current_time() - self.began:5.0f} s  {self.load.total():6} acknowledged  {text}")


def _lacks_replicas(state: PartitionState) -> bool:
    return not set(state.isr).issuperset(set(state.replicas) - set(state.adding_replicas))


def drawn(seed: int | None) -> tuple[list[str], list[str]]:
    """Return the orders of the upgrade and of the way back: those of docs/deployment.md, or others, from a seed."""
    if seed is None:
        return list(NAMES), list(NAMES)
    rng = random.Random(seed)
    return rng.sample(NAMES, len(NAMES)), rng.sample(NAMES, len(NAMES))


async def upgrade_and_back(folder: Path, old: Tree, new: Tree, seed: int | None = None) -> Upgrade:
    """Run a cluster in a folder, upgrade it and go back.

    Raises DevelopmentServerError, and CutShort, with what the logs say, if the cluster does not answer in time.
    """
    fleet = Fleet.of(folder, old)
    try:
        await fleet.start()
        async with open_zookeeper(fleet.zookeeper) as store, trio.open_nursery() as nursery:
            admin = AdminClient(TcpNetwork(), fleet.bootstrap, None, ADMIN_SECONDS)
            upgrade = Upgrade(fleet, old, new, admin, store, Load(nursery, fleet.bootstrap))
            await upgrade.run(*drawn(seed))
            nursery.cancel_scope.cancel()
    except* (trio.TooSlowError, ClusterUnreachable, ApiError, GaveUp, StoreError) as group:
        fleet.kill()
        fleet.judge_logs()
        raise CutShort("\n".join([str(group.exceptions[0]), *dict.fromkeys(fleet.faults)])) from group
    finally:
        fleet.kill()
    fleet.judge_logs()
    return upgrade
