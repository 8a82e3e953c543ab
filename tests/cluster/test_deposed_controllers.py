"""Offices that end before the session of their holder: resigned, or deleted by hand; real ZooKeeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest
import trio

import klamm
from controller.admin.active_controller import OutcomeUnknown
from controller.admin.client import AdminClient
from controller.node.service import ControllerService
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import has_stepped_down, until, until_controller
from transport.child_process import spawn
from transport.errors import ErrorCode
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.controllers import find_controller
from transport.store.protocol import Create, Delete, MetadataStore
from transport.store.zookeeper import open_zookeeper

FIRST, SECOND = CONTROLLERS
SESSION_MS = 60_000
TOPIC = "orders"


@pytest.mark.requirement("D12")
async def test_a_controller_that_stops_resigns_though_its_session_goes_on(zookeeper: str) -> None:
    async with open_zookeeper(f"{zookeeper}/resigning") as store, open_zookeeper(f"{zookeeper}/resigning") as session:

        def open_store() -> AbstractAsyncContextManager[MetadataStore]:
            return nullcontext(session)

        async with trio.open_nursery() as nursery:
            config = klamm.ControllerConfig(FIRST)

            async def run(*, task_status: trio.TaskStatus[ControllerService]) -> None:
                await klamm.run(config, open_store=open_store, task_status=task_status)

            await nursery.start(run)
            await until_controller(store, FIRST)
            nursery.cancel_scope.cancel()
        [office, endpoint] = await store.read([paths.CONTROLLER, paths.controller_endpoint(FIRST)])
        assert office is None
        assert endpoint is not None, "the session is over"


@pytest.mark.requirement("D1")
async def test_a_deposed_controller_whose_session_goes_on_gets_no_write_in(zookeeper: str, tmp_path: Path) -> None:
    """Nothing but the fence is in the way: what it is about to create nobody else has changed."""
    address = f"{zookeeper}/deposed"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        first = start_pausing(cluster)
        await until_controller(store, FIRST)
        endpoint = await find_controller(store)
        assert endpoint is not None
        cluster.start(SECOND, "klamm", "controller", "run")
        topic = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1,))}, "id"))
        await store.multi([Create(paths.topic(TOPIC), topic)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_to_delete, AdminClient(TcpNetwork(), [], store, 60))
            await until(lambda: is_paused(first))
            await store.multi([Delete(paths.CONTROLLER)])
            await until_controller(store, SECOND)
        first.send_signal(signal.SIGCONT)
        await until(lambda: has_stepped_down(endpoint))
        assert await store.children([paths.DELETE_TOPICS]) == [[]]
        [said] = [line for line in (tmp_path / f"{FIRST}.log").read_text().splitlines() if "deposed" in line]
        assert "during=DeleteTopics" in said


def start_pausing(cluster: ProcessCluster) -> subprocess.Popen[bytes]:
    """Start a controller that stops as soon as it has decided to mark a topic for deletion."""
    command = [sys.executable, "-m", "tests.cluster.dying_controller", "--id", str(FIRST), "--port", "0"]
    command += ["--zookeeper", cluster.zookeeper, "--session-timeout", str(SESSION_MS)]
    command += ["--after", "mark", "decide", "--signal", "SIGSTOP"]
    cluster.processes[FIRST] = spawn(command, cluster.data_dir / f"{FIRST}.log")
    return cluster.processes[FIRST]


async def ask_to_delete(admin: AdminClient) -> None:
    """Ask until the controller knows the topic and takes the request, whose outcome nobody is told."""

    async def is_taken() -> bool:
        try:
            [refused] = (await admin.delete_topics([TOPIC])).topics
        except OutcomeUnknown:
            return True
        assert refused.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return False

    await until(is_taken)


async def is_paused(process: subprocess.Popen[bytes]) -> bool:
    return stands_still(process.pid)


def stands_still(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
