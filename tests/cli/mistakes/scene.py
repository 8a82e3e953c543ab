"""The cluster for mistakes, and everything else that listens on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import frozen

from broker.client import Producer
from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import BROKERS
from klamm.cli.demo.task_cluster import TaskCluster, task_cluster
from tests.cli.shell import bootstrap_of, register_deaf_broker
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import MetadataResponse, NewTopic, ReassignablePartition
from transport.metadata import LEADER_DURING_DELETE
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.protocol import Delete
from transport.store.tree import Tree

DEAF: Final = 7
"""A broker that is registered, and answers nobody."""

DEAD: Final = 8
"""A broker that was there, with replicas, and is gone."""

TOPICS: Final[Mapping[str, tuple[tuple[int, ...], ...]]] = {
    "orders": ((1, 2, 3), (2, 3, 4)),
    "single": ((1,),),
    "filled": ((1, 2),),
    "moving": ((1, 2),),
    "dying": ((1, DEAF),),
    "lost": ((DEAD,),),
}
"""`filled` has records; `moving` goes to the deaf broker, which `dying` waits for; nobody can lead `lost`."""

RECORDS: Final = 20_000
"""More than a pipe holds."""

Znodes = dict[str, tuple[bytes, int]]


@frozen
class Scene:
    """A running cluster: its addresses by the names that the playbook has for them, and what is in its store."""

    names: Mapping[str, str]
    _token: trio.lowlevel.TrioToken
    _tree: Tree
    data_dir: Path

    def znodes(self) -> Znodes:
        """Return the data and the version of every znode."""
        return trio.from_thread.run_sync(lambda: dict(_walk(self._tree, "/")), trio_token=self._token)

    def logs(self) -> dict[Path, int]:
        """Return how many bytes of records every replica has."""
        return {log: log.stat().st_size for log in self.data_dir.rglob("*.log")}


def _walk(tree: Tree, path: str) -> Iterator[tuple[str, tuple[bytes, int]]]:
    znode = tree.read(path)
    if znode is not None:
        yield path, (znode.data, znode.stat.version)
    for child in tree.children(path) or ():
        yield from _walk(tree, f"{path.rstrip('/')}/{child}")


@contextmanager
def scene(data_dir: Path) -> Iterator[Scene]:
    """Run the cluster in a thread with a trio of its own."""
    started: Future[Scene] = Future()
    stopped: Future[trio.Event] = Future()
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(trio.run, _serve, data_dir, started, stopped)
        futures: list[Future[Any]] = [started, served]
        wait(futures, return_when=FIRST_COMPLETED)
        if served.done():
            served.result()
        ready = started.result()
        try:
            yield ready
        finally:
            ready._token.run_sync_soon(stopped.result().set)  # noqa: SLF001  of the class above


async def _serve(data_dir: Path, started: Future[Scene], stopped: Future[trio.Event]) -> None:
    async with task_cluster(data_dir, auto_leader_rebalance_enable=False) as cluster, trio.open_nursery() as nursery:
        assert isinstance(cluster, TaskCluster)
        bootstrap = await bootstrap_of(cluster.store)
        web = await nursery.start(partial(trio.serve_tcp, _be_web_server, 0, host="127.0.0.1"))
        silent = await nursery.start(partial(trio.serve_tcp, _say_nothing, 0, host="127.0.0.1"))
        await _fill(cluster)
        names = {
            "BOOTSTRAP": bootstrap,
            "BROKER": bootstrap.partition(",")[0],
            "WEB": _address(web),
            "SILENT": _address(silent),
            "REFUSED": "127.0.0.1:1",
        }
        stop = trio.Event()
        stopped.set_result(stop)
        started.set_result(Scene(names, trio.lowlevel.current_trio_token(), cluster.zookeeper.tree, data_dir))
        await stop.wait()
        nursery.cancel_scope.cancel()


def _address(listeners: list[trio.SocketListener]) -> str:
    host, port = listeners[0].socket.getsockname()
    return f"{host}:{port}"


async def _be_web_server(stream: trio.SocketStream) -> None:
    await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


async def _say_nothing(stream: trio.SocketStream) -> None:
    async for _ in stream:
        pass


async def _fill(cluster: TaskCluster) -> None:
    """Make the topics and leave each as its name says."""
    admin = AdminClient(TcpNetwork(), (), cluster.store, 30)
    for broker_id in (DEAF, DEAD):
        await register_deaf_broker(cluster.store, broker_id)
    while len(brokers := (await admin.read_metadata([])).brokers) < len((*BROKERS, DEAF, DEAD)):
        await trio.sleep(0.01)
    addresses = [(broker.host, broker.port) for broker in brokers if broker.id in BROKERS]
    topics = [NewTopic(name, -1, -1, brokers) for name, brokers in TOPICS.items()]
    created = await admin.create_topics(topics)
    assert all(topic.error is ErrorCode.NONE for topic in created.topics), created
    await cluster.store.multi([Delete(paths.broker(DEAD))])
    async with Producer(TcpNetwork(), addresses, host=Host()) as producer:
        await producer.send("filled", 0, [b"a record"] * RECORDS, give_up_after=30)
    await admin.alter_partition_reassignments([ReassignablePartition("moving", 0, (1, DEAF))])
    await admin.delete_topics(["dying"])
    while not _is_settled(await admin.read_metadata()):
        await trio.sleep(0.01)


def _is_settled(found: MetadataResponse) -> bool:
    leaders = {state.topic: state.leader for state in found.partitions}
    in_sync = [state.isr for state in found.partitions if state.topic == "orders"]
    return (
        DEAD not in {broker.id for broker in found.brokers}
        and leaders["lost"] < 0
        and leaders["dying"] == LEADER_DURING_DELETE
        and all(len(isr) == len(TOPICS["orders"][0]) for isr in in_sync)
    )
