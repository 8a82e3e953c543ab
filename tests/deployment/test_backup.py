"""Backup and restore of an ensemble as docs/deployment.md has it, with records and a partition moved in between."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import define, field

from klamm.cli.demo.clusters import log_dir
from tests.cli.test_starting import running
from tests.cluster.running import RealCluster
from tests.deployment.page import PACKAGING, commands, replaced, typed
from tests.kit.zookeeper_ensemble import Ensemble, Server, zookeeper_ensemble
from transport.metadata import TopicPartition
from transport.zookeeper_server import free_port

BROKERS: Final = (1, 2, 3)
CHROOT: Final = "/klamm"


@define
class Hosts:
    """Three hosts: an ensemble, a controller and brokers, with a folder in which commands are typed."""

    ensemble: Ensemble
    folder: Path
    check_port: int = field(factory=free_port)

    @property
    def address(self) -> str:
        return ",".join(f"127.0.0.1:{server.port}" for server in self.ensemble.servers) + CHROOT

    async def type(self, command: str, server: Server | None = None, broker: int = 1) -> str:
        """Type a command on the host of a server and a broker."""
        home = (server or self.ensemble.servers[0]).directory
        places = {
            "source/packaging": str(PACKAGING),
            "/var/lib/zookeeper": str(home),
            "/backup/": f"{self.folder}/",
            "/var/lib/klamm/broker": str(log_dir(self.folder, broker)),
            "index(1)": f"index({broker})",
            "2999": str(self.check_port),
        }
        return await typed(command, places, self.folder)

    async def lose_and_restore(self) -> None:
        """Lose all servers with their data, and put the backup in place."""
        for server in self.ensemble.servers:
            await self.ensemble.kill(server)
        [move, make, unpack, own] = [line for line in commands("Restore") if "/var/lib/zookeeper/version-2" in line]
        for server in self.ensemble.servers:
            for command in (move, make, unpack, own):
                await self.type(command, server)

    async def differences(self, broker: int) -> tuple[list[str], list[str]]:
        """Return the logs that a broker lacks, and those that the backup does not expect, as the page finds them."""
        found = [command for command in commands("Restore") if command.startswith(("jq", "find", "comm"))]
        said = [await self.type(command, broker=broker) for command in found]
        return said[2].split(), said[3].split()

    async def start_again(self) -> None:
        async with trio.open_nursery() as nursery:
            for server in self.ensemble.servers:
                nursery.start_soon(self.ensemble.start_again, server)


async def write(hosts: Hosts, cluster: RealCluster, topic: str, *lines: str) -> None:
    at = ",".join(f"{one.host}:{one.port}" for one in (await cluster.admin.read_metadata([])).brokers)
    text = "".join(f"{line}\\n" for line in lines)
    await typed(f"printf '{text}' | klamm produce {topic} --bootstrap-server {at}", {}, hosts.folder)


async def records(hosts: Hosts, cluster: RealCluster, topic: str) -> list[str]:
    at = ",".join(f"{one.host}:{one.port}" for one in (await cluster.admin.read_metadata([])).brokers)
    return (await typed(f"klamm consume {topic} --bootstrap-server {at}", {}, hosts.folder)).splitlines()


async def fill_and_back_up(hosts: Hosts, cluster: RealCluster) -> None:
    """Write records, make a backup, and change what the backup then does not know."""
    await cluster.create_topic("orders", (1, 2, 3))
    await cluster.create_topic("moved", (1, 2))
    await write(hosts, cluster, "orders", "one", "two")
    await write(hosts, cluster, "moved", "here", "and there")
    [back_up, make, unpack, run, dump] = commands("What to back up")
    await hosts.type(back_up)
    for command in (make, unpack):
        await hosts.type(command)
    places = {"2999": str(hosts.check_port), "check": str(hosts.folder / "check")}
    async with running(*replaced(run, places).split()[1:]) as server:
        await server.says(str(hosts.check_port))
        await hosts.type(dump)
    await write(hosts, cluster, "orders", "three")
    await cluster.create_topic("later", (1, 2))
    await write(hosts, cluster, "later", "lost from sight")
    await move(cluster, TopicPartition("moved", 0), (2, 3))


async def move(cluster: RealCluster, tp: TopicPartition, replicas: Sequence[int]) -> None:
    file = cluster.data_dir / "move.json"
    entry = f'{{"topic":"{tp.topic}","partition":{tp.partition},"replicas":{list(replicas)}}}'
    file.write_text(f'{{"version":1,"partitions":[{entry}]}}')
    code, said = await cluster.klamm("reassignment", "execute", "--reassignment-json-file", str(file))
    assert code == 0, said


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("jq") is None, reason="the page uses jq")
async def test_what_was_backed_up_comes_back_with_all_records(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run an ensemble"
    async with zookeeper_ensemble(tmp_path / "zookeeper") as ensemble:
        hosts = Hosts(ensemble, tmp_path)
        async with RealCluster.running(hosts.address, tmp_path, brokers=BROKERS) as cluster:
            await fill_and_back_up(hosts, cluster)
        await hosts.lose_and_restore()
        assert await hosts.differences(1) == (["moved-0"], ["later-0"])
        assert await hosts.differences(2) == ([], ["later-0"])
        assert await hosts.differences(3) == ([], ["moved-0"])
        shutil.copytree(log_dir(tmp_path, 2) / "moved-0", log_dir(tmp_path, 1) / "moved-0")
        await hosts.start_again()
        async with RealCluster.running(hosts.address, tmp_path, brokers=BROKERS) as cluster:
            assert sorted({state.topic for state in (await cluster.admin.read_metadata()).partitions}) == [
                "moved",
                "orders",
            ]
            assert await records(hosts, cluster, "orders") == ["one", "two", "three"]
            await write(hosts, cluster, "orders", "four")
            assert await records(hosts, cluster, "orders") == ["one", "two", "three", "four"]
            assert await records(hosts, cluster, "moved") == ["here", "and there"]
            assert (log_dir(tmp_path, 1) / "later-0").is_dir()
