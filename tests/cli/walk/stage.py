"""The place of the session: a folder with files, a cluster of six brokers, and what is waited for between two calls."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import trio
from attrs import frozen

from broker.reference import log_dirs
from controller.admin.client import AdminClient
from controller.rollout.states import MoveState
from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import bootstrap_of, register_deaf_broker
from transport.network import TcpNetwork
from transport.store.protocol import MetadataStore

NAME: Final = "a-name-of-249-characters-" + "x" * 224
PROFILE: Final = "walk"
DEAF: Final = 9
"""A broker that is registered and answers nothing, so that what is moved to it stays in flight."""

_SECONDS: Final = 60
_PAUSE: Final = 0.1

_SCENARIO: Final = """\
cluster: {brokers: 3, controllers: 1}
topics: {orders: [[1, 2]]}
events:
  - reassign: {orders-0: [2, 3]}
expect:
  orders-0: {leader: %d}
"""

_PARTITIONS: Final = {NAME: [[1, 2], [1, 2]], "orders": [[1, 3], [1, 3], [1, 4], [2, 3], [1, 2]]}
_RACKS: Final = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
"""The cluster that is planned for: broker 1 leads most, broker 5 is empty, and three partitions are in one rack."""


class DiskUsage(NamedTuple):
    """The size of every disk."""

    total: int
    used: int
    free: int


@frozen
class Stage:
    """A running cluster: the addresses of two brokers, and its store."""

    bootstrap: str
    store: MetadataStore

    @property
    def admin(self) -> AdminClient:
        """A client."""
        return AdminClient(TcpNetwork(), (), self.store, 30)


@asynccontextmanager
async def open_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run the cluster in a folder, which is the working directory meanwhile: paths that are printed are short."""
    with surroundings(folder):
        async with task_cluster(Path("logs"), auto_leader_rebalance_enable=False) as cluster:
            bootstrap = await bootstrap_of(cluster.store)
            write_profile(Path(), PROFILE, bootstrap)
            yield Stage(bootstrap, cluster.store)


@contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """Work in a folder with the files of the session, at 80 columns, and with the same disks everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("KLAMM_")]:
            patch.delenv(name)
        for name, value in {"COLUMNS": "80", "LOGNAME": "operator", "XDG_CONFIG_HOME": str(folder)}.items():
            patch.setenv(name, value)
        patch.setattr(log_dirs, "disk_usage", lambda _: DiskUsage(10**12, 10**11, 9 * 10**11))
        patch.chdir(folder)
        _write_files()
        yield


def write_profile(config: Path, name: str, bootstrap: str) -> None:
    """Write the file of profiles in a folder that is XDG_CONFIG_HOME."""
    (config / "klamm").mkdir()
    (config / "klamm" / "profiles.toml").write_text(f'[{name}]\nbootstrap-server = "{bootstrap}"\n')


def _write_files() -> None:
    _write_moves("move.json", (NAME, 0, [3, 2, 1], None))
    _write_moves("slow.json", (NAME, 0, [3, 4, DEAF], None), ("orders", 0, [1, 4, DEAF], None))
    to_deaf = ("orders", 0, [1, DEAF], [1, 2])
    _write_moves("monday.json", to_deaf, ("orders", 1, [3, 4], [1, 2]), ("orders", 2, [3, 4], [1, 2]))
    _write_moves("tuesday.json", to_deaf)
    _write_moves("friday.json", ("orders", 3, [3, 4], [1, 2]))
    for name, leader in (("move.yaml", 2), ("missed.yaml", 3)):
        Path(name).write_text(_SCENARIO % leader)
    rows = [
        {"topic": topic, "partition": number, "replicas": replicas, "leader": replicas[0]}
        for topic, partitions in _PARTITIONS.items()
        for number, replicas in enumerate(partitions)
    ]
    brokers = [{"id": id_, "rack": rack} for id_, rack in _RACKS.items()]
    Path("snapshot.json").write_text(json.dumps({"brokers": brokers, "partitions": rows}))
    lines = [f"{row['topic']},{row['partition']},1000000000,1000,2000\n" for row in rows]
    Path("loads.csv").write_text("".join(["topic,partition,bytes,bytes_in,bytes_out\n", *lines]))


def _write_moves(name: str, *moves: tuple[str, int, Sequence[int], Sequence[int] | None]) -> None:
    """Write a file of moves; one that begins with the replicas of the plan names them."""
    entries = [
        {"topic": topic, "partition": number, "replicas": after} | ({} if before is None else {"before": before})
        for topic, number, after, before in moves
    ]
    Path(name).write_text(json.dumps({"version": 1, "partitions": entries}))


# --- between two calls ------------------------------------------------------------------------------------------

Step = Callable[[Stage], Awaitable[None]]
"""What happens, or is waited for, before the next call."""


async def deaf_broker_joins(stage: Stage) -> None:
    """Register the broker that answers nothing."""
    await register_deaf_broker(stage.store, DEAF)


async def one_replica_is_copied(stage: Stage) -> None:
    """Wait until the move of `slow.json` has only the deaf broker left."""

    async def is_copied() -> bool:
        moves = list((await stage.admin.describe_reassignments()).values())
        copied = [item.broker for move in moves for item in move.progress if item.in_sync and item.offset_lag == 0]
        # The controller names a silent broker once it has asked it.
        return copied.count(4) == len(moves) and all("does not answer" in move.waits_for for move in moves)

    await _until(is_copied)


def rollout_is(name: str, phase: str, **moves: int) -> Step:
    """Return what waits until a rollout is in a phase, with so many moves in each of their states."""
    expected = {MoveState[state.upper()].value: number for state, number in moves.items()}

    async def wait(stage: Stage) -> None:
        async def is_so() -> bool:
            [found] = await stage.admin.describe_rollouts([name])
            return found.phase == phase and expected.items() <= dict(found.counts).items()

        await _until(is_so)

    return wait


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(_SECONDS):
        while not await holds():
            await trio.sleep(_PAUSE)
