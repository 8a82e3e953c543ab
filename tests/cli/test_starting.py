"""The start of services: before ZooKeeper runs, under an id in use, and with an advertised address."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from attrs import define, field

from klamm.interrupts import INTERRUPTED
from tests.cli.shell import run_klamm
from transport.store import formats, paths
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper, free_port

PATIENCE_SECONDS = 60
CONTROLLER = ("controller", "run", "--id", "1001", "--port", "0")


@define
class ServiceCommand:
    """A service as a process, and what it printed so far."""

    process: trio.Process
    said: str = field(default="", init=False)

    async def says(self, pattern: str) -> re.Match[str]:
        """Read what it prints until a line matches; its end is a fault."""
        assert self.process.stdout is not None
        with trio.fail_after(PATIENCE_SECONDS):
            while (match := re.search(pattern, self.said)) is None:
                part = await self.process.stdout.receive_some()
                assert part, self.said
                self.said += part.decode()
        return match

    async def ends(self) -> int:
        """Read what else it prints, and return its exit code."""
        assert self.process.stdout is not None
        with trio.fail_after(PATIENCE_SECONDS):
            self.said += b"".join([part async for part in self.process.stdout]).decode()
            return await self.process.wait()


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[ServiceCommand]:
    command = [sys.executable, "-u", "-m", "klamm", *arguments]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield ServiceCommand(process)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def broker(id_: str, log_dir: Path) -> tuple[str, ...]:
    place = ("--log-dir", str(log_dir / id_))
    return "broker", "run", "--id", id_, "--port", "0", *place, "--no-controlled-shutdown-enable"


def lines(said: str) -> list[str]:
    """Leave out what was logged, which begins with the time."""
    return [line for line in said.splitlines() if not re.match(r"\d\d:\d\d:\d\d", line)]


# --- before ZooKeeper is there ----------------------------------------------------------------------------------


async def test_they_wait_for_zookeeper_and_say_so(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "this one tells that Java is there"
    port = free_port()
    store = ("--zookeeper", f"127.0.0.1:{port}/late")
    async with running(*CONTROLLER, *store) as controller, running(*broker("1", tmp_path), *store) as broker_:
        for service in (controller, broker_):
            await service.says(f"waiting for ZooKeeper +reason='?nothing listens at 127.0.0.1:{port}")
        async with development_zookeeper(tmp_path / "zookeeper", port):
            await controller.says("controller 1001 listens on")
            await broker_.says("broker 1 listens on")
            for service in (broker_, controller):
                assert service.said.count("waiting for ZooKeeper") == 1, service.said
                service.process.send_signal(signal.SIGTERM)
                assert await service.ends() == 0, service.said


@pytest.mark.parametrize(
    ("kind", "signal_", "code"),
    [
        ("controller", signal.SIGINT, INTERRUPTED),
        ("broker", signal.SIGTERM, 0),
        pytest.param("controller", signal.SIGTERM, 0, marks=pytest.mark.soak),
        pytest.param("broker", signal.SIGINT, INTERRUPTED, marks=pytest.mark.soak),
    ],
)
async def test_a_signal_ends_the_waiting(kind: str, signal_: signal.Signals, code: int, tmp_path: Path) -> None:
    command = CONTROLLER if kind == "controller" else broker("1", tmp_path)
    async with running(*command, "--zookeeper", "no-such-host.invalid:2181") as service:
        await service.says(r"waiting for ZooKeeper +reason=.*no-such-host.invalid cannot be found \(")
        service.process.send_signal(signal_)
        assert (await service.ends(), lines(service.said)) == (code, [])


@pytest.mark.parametrize("kind", ["controller", "broker"])
async def test_a_setting_bounds_the_waiting(kind: str, tmp_path: Path) -> None:
    command = CONTROLLER if kind == "controller" else broker("1", tmp_path)
    patience = ("--zookeeper-connection-timeout-ms", "1000")
    async with running(*command, "--zookeeper", "127.0.0.1:1", *patience) as service:
        assert await service.ends() == 1
    assert "waiting for ZooKeeper" in service.said
    assert lines(service.said) == ["Error: nothing listens at 127.0.0.1:1: start one with `klamm zookeeper run`"]


# --- ids --------------------------------------------------------------------------------------------------------


async def test_a_broker_says_at_once_that_another_has_its_id(zookeeper: str, tmp_path: Path) -> None:
    store = ("--zookeeper", f"{zookeeper}/twin-brokers")
    async with running(*broker("1", tmp_path / "a"), *store) as first:
        port = (await first.says(r"listens on 127.0.0.1:(\d+)\n"))[1]
        long = ("--session-timeout", "40000")
        async with running(*broker("1", tmp_path / "b"), *store, *long) as second:
            text = r"another session holds this broker id: waiting for it to end"
            await second.says(rf"{text}.* registered='at 127.0.0.1:{port}' at_most_seconds=60")
            first.process.send_signal(signal.SIGTERM)
            await second.says("broker 1 listens on")


async def test_a_broker_takes_no_controllers_id(zookeeper: str, tmp_path: Path) -> None:
    store = ("--zookeeper", f"{zookeeper}/id-of-a-controller")
    async with running(*CONTROLLER, *store) as controller:
        await controller.says("in office")
        async with running(*broker("1001", tmp_path), *store) as twin:
            assert await twin.ends() == 1
    assert lines(twin.said) == [
        "Error: id 1001 is that of a live controller: a broker needs one that no controller has"
    ]


@pytest.mark.parametrize("id_", ["56445", "70000", "2147483647"])
async def test_an_id_without_a_port_of_its_own(id_: str) -> None:
    done = await run_klamm("broker", "run", "--id", id_, "--zookeeper", "127.0.0.1:1")
    said = f"Error: broker {id_} needs --port: only ids up to 56444 have a default, 9091 + id\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)


# --- the address for others -------------------------------------------------------------------------------------


async def test_others_are_told_the_advertised_address(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/advertised"
    everywhere = ("--host", "0.0.0.0", "--zookeeper", address)  # noqa: S104  what is tested
    async with (
        running(*CONTROLLER, *everywhere, "--advertised-host", "localhost") as controller,
        running(*broker("1", tmp_path), *everywhere, "--advertised-host", "h", "--advertised-port", "7") as broker_,
        open_zookeeper(address) as store,
    ):
        port = (await controller.says(r"listens on 0\.0\.0\.0:(\d+)\nadvertised as localhost:\1\n"))[1]
        await controller.says("in office")
        await broker_.says(r"broker 1 listens on 0\.0\.0\.0:\d+\nadvertised as h:7\n")
        registered, endpoint = await store.read([paths.broker(1), paths.controller_endpoint(1001)])
        assert registered is not None
        assert endpoint is not None
        told = formats.decode_broker(1, registered.data, 0)
        assert (told.host, told.port) == ("h", 7)
        found = formats.decode_controller_endpoint(1001, endpoint.data)
        assert (found.host, found.port) == ("localhost", int(port))


@pytest.mark.parametrize("kind", ["controller", "broker"])
@pytest.mark.parametrize("options", [("--host", "0.0.0.0"), ("--host", "::"), ("--advertised-host", "0")])  # noqa: S104
async def test_an_address_of_every_interface_is_none_for_others(
    kind: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    command = CONTROLLER if kind == "controller" else broker("1", tmp_path)
    done = await run_klamm(*command, *options, "--zookeeper", "127.0.0.1:1")
    fault = f"{options[1]} is a wildcard address, which others cannot connect to"
    said = f"Error: {fault}: set advertised.host\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)
