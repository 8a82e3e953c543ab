"""`klamm state dump` in each of its formats, against a ZooKeeper without a controller."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from klamm.cli import main
from klamm.cli.state import open_writer
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.brokers import Broker, BrokerState
from tests.cli.shell import register_deaf_broker, run_klamm
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create
from transport.store.zookeeper import open_zookeeper

FORMATS = ("json", "jsonl", "parquet")


async def test_planning_reads_each_format(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/dump-formats"
    moving = ReplicaAssignment((3, 1, 2), (3,), (2,))
    topic = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1, 2)), 1: moving}, "id-of-orders"))
    async with open_zookeeper(address) as store:
        parents = ("/brokers", paths.BROKER_IDS, paths.TOPICS, "/cluster")
        await store.multi([*map(Create, parents), Create(paths.topic("orders"), topic)])
        await store.multi([Create(paths.CLUSTER_ID, b'{"version":"1","id":"ours"}')])
        await register_deaf_broker(store, 1)
        for form in FORMATS:
            output = ("--format", form, "--out", str(tmp_path / form))
            done = await run_klamm("state", "dump", "--zookeeper", address, *output)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        printed = await run_klamm("state", "dump", "--zookeeper", address, "--format", "jsonl")
    assert printed.stdout == (tmp_path / "jsonl").read_bytes()
    assert json.loads((tmp_path / "json").read_bytes())["brokers"][0]["id"] == 1
    clusters = [await trio.to_thread.run_sync(read_cluster, Sources(tmp_path / form)) for form in FORMATS]
    dead = [Broker(id_, state=BrokerState.DEAD) for id_ in (2, 3)]
    for cluster in clusters:
        assert cluster.brokers.rows == (Broker(1), dead[0], dead[1])
        assert cluster.partitions["replicas"].to_pylist() == [[1, 2], [3, 1]]
        assert cluster.partitions == clusters[0].partitions
        assert cluster.partitions["topic_id"].to_pylist() == ["id-of-orders"] * 2
        assert cluster.cluster_id == "ours"


@pytest.mark.parametrize("form", FORMATS)
def test_a_dump_that_breaks_off_leaves_nothing(form: str, tmp_path: Path) -> None:
    def break_off() -> None:
        with open_writer(form, str(tmp_path / "dump")) as writer:
            writer.partitions([])
            raise ConnectionError

    with pytest.raises(ConnectionError):
        break_off()
    assert not list(tmp_path.iterdir())


async def test_a_file_after_o_is_the_old_spelling(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/dump-old"
    async with open_zookeeper(address) as store:
        await store.multi([*map(Create, ("/brokers", paths.BROKER_IDS, paths.TOPICS))])
        for option, name in (("-o", f"{tmp_path}/old.json"), ("--output", f"{tmp_path}/json")):
            done = await run_klamm("state", "dump", "--zookeeper", address, option, name)
            warning = f"-o {name} is an old spelling, which later releases refuse: use --out {name}\n"
            assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"", warning)
        done = await run_klamm("state", "dump", "--zookeeper", address, "-o", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("old.json", "json"):
        assert (tmp_path / name).read_bytes() == done.stdout


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "a folder of Parquet cannot go to stdout: name one with --out"),
        (("--out", "."), ". exists already: name another folder"),
        (("--out", "/proc/dump"), "/proc/dump.part: No such file or directory"),
    ],
)
def test_parquet_has_a_new_folder(options: tuple[str, ...], line: str) -> None:
    done = CliRunner().invoke(main, ["state", "dump", "--zookeeper", "localhost:1", "--format", "parquet", *options])
    assert (done.exit_code, done.stderr) == (1, f"Error: {line}\n")


async def test_parquet_without_pyarrow(tmp_path: Path) -> None:
    script = "import sys\nsys.modules['pyarrow'] = None\nfrom klamm.cli import main\nmain(sys.argv[1:])\n"
    arguments = ("state", "dump", "--zookeeper", "localhost:1", "--format", "parquet", "--out", str(tmp_path / "dump"))
    done = await trio.run_process(
        [sys.executable, "-c", script, *arguments], capture_stderr=True, check=False, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (1, b"Error: Parquet needs PyArrow: pip install 'klamm[plan]'\n")
