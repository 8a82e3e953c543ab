"""A plan of thousands of moves on twelve brokers under load, carried out by controllers that are killed meanwhile.

`python -m tests.cluster.great_rollout MOVES` measures it, with 1000 moves or 10000.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from controller.admin.client import AdminClient
from controller.rollout.choosing import Limits
from controller.rollout.states import Phase
from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.trace_follower import TraceFollower
from klamm.cli.rollout.plan_files import PlanFiles
from tests.cli.shell import run_klamm
from tests.cluster.moving_load import MovingLoad, Writing, log_faults, until_deleted
from tests.cluster.rollout_limits import excesses, gaps
from tests.cluster.waiting import until, until_controller, until_live
from transport.dynamic_configs import FOLLOWER_THROTTLED_RATE, FOLLOWER_THROTTLED_REPLICAS
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    AlterableConfig,
    AlterConfigsResource,
    BrokerEndpoint,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    RolloutDescription,
)
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

BROKERS: Final = range(1, 13)
LEAVING: Final = range(1, 7)
"""The brokers that the plan empties: so each partition moves, and each of its replicas is copied."""

CONTROLLERS: Final = (1001, 1002, 1003)
KILLS: Final = 5
TOPICS: Final = 10
NAME: Final = "monday"
LIMITS: Final = Limits(into=8, out_of=12, leaders=5, in_all=40)
RECORD_BYTES: Final = 1_000
LOOK_SECONDS: Final = 0.25
OWN_RATE: Final = 123_456_789
"""An operator's own throttle, at one broker, for a partition that does not move to it."""


@frozen
class Size:
    """The size of a run: moves, records of a partition before it, the throttle, and batches written in a second."""

    moves: int
    records: int
    throttle: int
    batches: int

    @property
    def partitions(self) -> int:
        """The partitions of each topic."""
        return self.moves // TOPICS


SMALL: Final = Size(moves=1_000, records=10, throttle=400_000, batches=20)
LARGE: Final = Size(moves=10_000, records=5, throttle=400_000, batches=20)


@define
class Watched:
    """A rollout as an operator sees it, look after look, and the commits of all controllers."""

    admin: AdminClient
    follower: TraceFollower
    looks: list[tuple[float, RolloutDescription]] = field(factory=list)

    async def follow(self) -> None:
        """Look until it is over."""
        while True:
            [told] = await self.admin.describe_rollouts([NAME])
            self.looks.append((trio.current_time(), told))
            if told.phase != Phase.RUNNING.value:
                return
            await trio.sleep(LOOK_SECONDS)

    async def until_left(self, share: float) -> None:
        """Wait until no more than a part of the bytes is left."""

        async def is_it() -> bool:
            return bool(self.looks) and self.looks[-1][1].bytes_left <= share * self.looks[-1][1].bytes

        while not await is_it():
            await trio.sleep(LOOK_SECONDS)

    def time_left_at_half_time(self) -> tuple[float, float]:
        """Return how long the rest was to take when half of the time was over, and how long it took, in seconds.

        The first is not a number if no controller was in office for long enough to know it.
        """
        first, last = self.looks[0][0], self.looks[-1][0]
        known = [(at, told) for at, told in self.looks if told.left_ms != UNKNOWN]
        if not known:
            return math.nan, (last - first) / 2
        # A controller that has just taken office does not know it yet: the estimate nearest to the middle counts.
        at, told = min(known, key=lambda look: abs(look[0] - (first + last) / 2))
        return told.left_ms / 1000, last - at


@frozen
class Outcome:
    """The outcome of a rollout. Times are in seconds."""

    counts: Mapping[str, int]
    excesses: list[str]
    most: Mapping[str, int]
    gaps: list[tuple[int, int, int]]
    commits: int
    epochs: int
    faults: list[str]
    throttles: tuple[object, object]
    """Before and after."""

    seconds: float
    told: float
    took: float


@define
class GreatRollout:
    """A cluster of processes, and a plan for it."""

    cluster: ProcessCluster
    admin: AdminClient
    size: Size
    plan: Path
    load: MovingLoad = field(init=False)

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        return [f"topic-{number}" for number in range(TOPICS)]

    async def prepare(self) -> None:
        """Start everything, create the topics with their records, and make the plan."""
        store = self.cluster.store
        self.cluster.start(CONTROLLERS[0], "klamm", "controller", "run")
        await until_controller(store, CONTROLLERS[0])
        for broker in BROKERS:
            where = ("--log-dir", str(log_dir(self.cluster.data_dir, broker)))
            more = ("--min-insync-replicas", "1", "--controlled-shutdown-max-retries", "1")
            self.cluster.start(broker, "klamm", "broker", "run", *where, *more)
        await until_live(self.admin, BROKERS)
        for id_ in CONTROLLERS[1:]:
            self.cluster.start(id_, "klamm", "controller", "run")
        await self._create_topics()
        bootstrap = [(one.host, one.port) for one in (await self.admin.read_metadata([])).brokers]
        writing = Writing(self.topics, self.size.partitions, 1, RECORD_BYTES, self.size.batches)
        self.load = MovingLoad(bootstrap, writing)
        await self.load.fill(self.size.records, RECORD_BYTES)
        await self._throttle_by_hand()
        leaving = ",".join(map(str, LEAVING))
        await self.klamm("plan", "remove-brokers", "--brokers", leaving, "--out", str(self.plan))

    async def _create_topics(self) -> None:
        spread = len(LEAVING)
        for at, topic in enumerate(self.topics):
            pairs = [(1 + (at + n) % spread, 1 + (at + n + 1 + n // spread % (spread - 1)) % spread) for n in
                     range(self.size.partitions)]  # fmt: skip
            [created] = (await self.admin.create_topics([NewTopic(topic, len(pairs), 2, tuple(pairs))])).topics
            assert created.error is ErrorCode.NONE, created

    async def _throttle_by_hand(self) -> None:
        def to(name: str, value: object) -> tuple[AlterableConfig, ...]:
            return (AlterableConfig(name, ConfigOperation.SET, str(value)),)

        broker = ConfigResource(ConfigResourceType.BROKER, str(BROKERS[-1]))
        topic = ConfigResource(ConfigResourceType.TOPIC, self.topics[0])
        wanted = [
            AlterConfigsResource(broker, to(FOLLOWER_THROTTLED_RATE, OWN_RATE)),
            AlterConfigsResource(topic, to(FOLLOWER_THROTTLED_REPLICAS, "0:99")),
        ]
        assert {item.error for item in await self.admin.incremental_alter_configs(wanted)} == {ErrorCode.NONE}

    async def klamm(self, *arguments: str) -> str:
        """Run the command on this cluster."""
        where = ",".join(f"{host}:{port}" for host, port in self.load.bootstrap[:3])
        done = await run_klamm(*arguments, "--bootstrap-server", where)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    async def throttles(self) -> dict[tuple[str, str], dict[str, str]]:
        """Return the throttles of all brokers and topics."""
        brokers = [ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in BROKERS]
        topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in self.topics]
        told = await self.admin.describe_configs([*brokers, *topics])
        return {
            (one.resource.type.name, one.resource.name): {e.name: e.value for e in one.entries if "thrott" in e.name}
            for one in told
        }

    async def carry_out(self) -> Outcome:
        """Hand the plan over, kill controllers meanwhile, and look at all that is left when it is over."""
        before = await self.throttles()
        watched = Watched(self.admin, TraceFollower(self.admin, lambda: 0))
        per_broker = ("--in-per-broker", LIMITS.into, "--out-per-broker", LIMITS.out_of)
        limits = map(str, (*per_broker, "--leaders-per-broker", LIMITS.leaders, "--in-flight", LIMITS.in_all))
        async with trio.open_nursery() as nursery:
            self.load.begin(nursery)
            for id_ in CONTROLLERS:
                nursery.start_soon(self._follow, watched, id_)
            began = trio.current_time()
            throttle = ("--throttle", str(self.size.throttle))
            await self.klamm("rollout", "start", str(self.plan), *limits, *throttle)
            nursery.start_soon(self._kill_controllers, watched, nursery)
            await watched.follow()
            took = trio.current_time() - began
            self.load.stop()
            await until_deleted(self.cluster.store)
            nursery.cancel_scope.deadline = trio.current_time() + 2
        after = await self.throttles()
        await self.cluster.stop_brokers()
        commits = [seen.commit for seen in watched.follower.seen]
        found, most = excesses(commits, LIMITS)
        told, rest = watched.time_left_at_half_time()
        epochs = len({commit.controller_epoch for commit in commits})
        counts = {name: number for name, number in watched.looks[-1][1].counts if number}
        return Outcome(
            counts, found, most, gaps(commits), len(commits), epochs, self.faults(), (before, after), took, told, rest
        )  # fmt: skip

    async def _follow(self, watched: Watched, id_: int, old: BrokerEndpoint | None = None) -> None:
        """Follow a controller once it has an address, which is not the old one."""
        found = old

        async def is_there() -> bool:
            nonlocal found
            found = await endpoint(self.cluster.store, id_)
            return found not in {None, old}

        await until(is_there)
        assert found is not None
        await watched.follower.follow(found)

    async def _kill_controllers(self, watched: Watched, nursery: trio.Nursery) -> None:
        """Kill the active controller again and again, and start it anew."""
        for kill in range(1, KILLS + 1):
            await watched.until_left(1 - kill / (KILLS + 1))
            active = await self.admin.find_controller()
            await self.cluster.kill(active.id)
            self.cluster.start(active.id, "klamm", "controller", "run")
            nursery.start_soon(self._follow, watched, active.id, active)

    def faults(self) -> list[str]:
        """Compare the logs on disk with the plan, among each other, and with what was acknowledged."""
        targets = PlanFiles(self.plan).read().file.targets
        found = log_faults(self.cluster.data_dir, BROKERS, targets, self.load.acknowledged)
        return found if len(targets) == self.size.moves else [*found, f"{len(targets)} moves in the plan"]


async def endpoint(store: MetadataStore, id_: int) -> BrokerEndpoint | None:
    """Return the address of a controller, None while it has registered none."""
    [znode] = await store.read([paths.controller_endpoint(id_)])
    return None if znode is None else formats.decode_controller_endpoint(id_, znode.data)


async def great_rollout(zookeeper: str, data_dir: Path, size: Size) -> Outcome:
    """Carry out a plan of this size."""
    async with open_zookeeper(zookeeper) as store, stopping(ProcessCluster(store, data_dir, zookeeper)) as cluster:
        rollout = GreatRollout(cluster, AdminClient(TcpNetwork(), (), store, 60), size, data_dir / NAME)
        await rollout.prepare()
        return await rollout.carry_out()


async def measure(moves: int) -> int:
    """Print what came of it, and return 1 if anything was wrong."""
    size = LARGE if moves > SMALL.moves else SMALL
    with tempfile.TemporaryDirectory() as directory:
        async with development_zookeeper(Path(directory) / "zookeeper") as server:
            found = await great_rollout(server.address, Path(directory), size)
    print(f"{found.counts} in {found.seconds:.0f} s, {found.commits} commits under {found.epochs} controllers in turn")
    print(f"most in flight: {dict(found.most)} of {LIMITS}; exceeded: {found.excesses[:5] or 'never'}")
    print(f"at half time the rest was to take {found.told:.1f} s; it took {found.took:.1f} s")
    before, after = found.throttles
    print(f"faults: {found.faults[:5] or 'none'}; gaps: {found.gaps}; throttles as before: {before == after}")
    is_near = 0.75 <= found.told / found.took <= 1.25
    return int(bool(found.faults or found.excesses or found.gaps) or before != after or not is_near)


if __name__ == "__main__":
    sys.exit(trio.run(measure, int(sys.argv[1])))
