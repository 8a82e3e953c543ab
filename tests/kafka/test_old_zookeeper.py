"""The ZooKeeper of Kafka 2.8, which cannot read in bulk, is refused by its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka import jars
from transport.child_process import spawn
from transport.store.protocol import StoreUnavailable
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST, find_java, free_port, stop_server, wait_until_serving, write_config

OLD = "2.8.2"


@pytest.mark.real_kafka
async def test_a_zookeeper_of_3_5_is_refused(tmp_path: Path) -> None:
    found = jars.fetched(OLD)
    if found is None:
        pytest.skip(f"no jars of an older Kafka to test on: python -m tests.kafka.jars {OLD}")
    port = free_port()
    command = [find_java(), "-Xmx64m", "-cp", f"{found}/*", "org.apache.zookeeper.server.ZooKeeperServerMain"]
    process = spawn([*command, str(write_config(tmp_path, port, {}))], tmp_path / "log")
    try:
        await wait_until_serving(process, port, tmp_path / "log")
        with pytest.raises(StoreUnavailable, match=r"^this ZooKeeper is older than 3\.6: upgrade its servers first"):
            async with open_zookeeper(f"{HOST}:{port}/kafka", waits=True):
                pass
    finally:
        stop_server(process)
