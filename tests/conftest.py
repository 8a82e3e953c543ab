"""Fixtures for tests of every feature: ZooKeeper, as a process for the whole run and in memory, and controllers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from tests.kit.service import Controllers
from transport import zookeeper_server
from transport.host import Host
from transport.store.memory import MemoryZooKeeper
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper, find_jars, find_java

# A shell lets what it starts in the background ignore Ctrl-C, and whatever the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Stop = tuple[trio.lowlevel.TrioToken, trio.Event]


def pytest_configure(config: pytest.Config) -> None:
    """Let the JVMs of ZooKeeper compile with little effort: most of them end before more of it pays."""
    patch = pytest.MonkeyPatch()
    options = (*zookeeper_server._JVM_OPTIONS, "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")  # noqa: SLF001
    patch.setattr(zookeeper_server, "_JVM_OPTIONS", options)
    config.add_cleanup(patch.undo)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a ZooKeeper and give its address, host:port; skip where there is no Java or no PySpark."""
    try:
        find_java(), find_jars()
    except DevelopmentServerError as error:
        pytest.skip(f"no ZooKeeper to test on: {error}")
    # A thread with a trio of its own, because each test runs its own too.
    started: Future[tuple[str, Stop]] = Future()
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(trio.run, _serve, tmp_path_factory.mktemp("zookeeper"), started)
        futures: list[Future[Any]] = [started, served]
        wait(futures, return_when=FIRST_COMPLETED)
        if served.done():
            served.result()
        address, (token, stop) = started.result()
        try:
            yield address
        finally:
            token.run_sync_soon(stop.set)


@pytest.fixture(autouse=True)
def silent_logs() -> Iterator[None]:
    """Let the next test log nothing: structlog's own configuration, which `capture_logs` leaves, prints all locals."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def memory() -> MemoryZooKeeper:
    """Give the test a ZooKeeper of its own in memory."""
    return MemoryZooKeeper(Host().now_ms)


@pytest.fixture
def controllers(memory: MemoryZooKeeper, nursery: trio.Nursery) -> Controllers:
    """Give the test what starts controllers on `memory`."""
    return Controllers(memory, nursery)


async def _serve(data_dir: Path, started: Future[tuple[str, Stop]]) -> None:
    async with development_zookeeper(data_dir) as server:
        stop = trio.Event()
        started.set_result((server.address, (trio.lowlevel.current_trio_token(), stop)))
        await stop.wait()
