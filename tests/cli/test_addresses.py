"""Addresses without a cluster: each command reports at once what it found there."""

from __future__ import annotations

import pytest
import trio
from click.testing import CliRunner

from klamm.cli import main
from tests.cli.shell import run_klamm
from transport.messages import MetadataRequest, MetadataResponse
from transport.network import TcpNetwork
from transport.wire import serve

CURE = ": name brokers or controllers with --bootstrap-server\n"
FOREVER = ("--timeout", "3600")
ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"
"""With it a server of TLS answers what is no handshake."""

COMMANDS = ("topic list", "produce t", "consume t --follow")


async def refused(command: str, *arguments: str) -> str:
    with trio.fail_after(60):
        done = await run_klamm(*command.split(), *arguments)
    assert (done.returncode, done.stdout) == (1, b""), done
    return done.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS)
async def test_an_unknown_host_and_a_port_where_nothing_listens(command: str) -> None:
    said = await refused(command, "--bootstrap-server", "no-such-host.invalid:9092,bad..name:1,127.0.0.1:1", *FOREVER)
    unknown, bad, closed = said.split("; ")
    assert unknown.startswith(
        "Error: cannot connect to no-such-host.invalid:9092: the host no-such-host.invalid cannot be found ("
    )
    assert bad == "cannot connect to bad..name:1: the host bad..name cannot be found (not the name of a host)"
    assert closed == f"cannot connect to 127.0.0.1:1: nothing listens there{CURE}"


@pytest.mark.parametrize("command", COMMANDS)
async def test_what_listens_is_zookeeper(command: str, zookeeper: str) -> None:
    said = await refused(command, "--bootstrap-server", zookeeper, *FOREVER)
    assert said.startswith(f"Error: {zookeeper} does not answer as a broker or controller does (")
    assert said.endswith(CURE)


async def test_what_listens_is_a_web_server(nursery: trio.Nursery) -> None:
    async def answer(stream: trio.abc.Stream) -> None:
        await stream.receive_some(1)
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    port = await nursery.start(TcpNetwork().serve, answer, "127.0.0.1", 0)
    said = await refused("topic list", "--bootstrap-server", f"127.0.0.1:{port}", *FOREVER)
    assert said.startswith(f"Error: 127.0.0.1:{port} does not answer as a broker or controller does (the connection")


async def test_what_listens_speaks_tls(nursery: trio.Nursery) -> None:
    async def answer(stream: trio.abc.Stream) -> None:
        await stream.receive_some(1)
        await stream.send_all(ALERT)

    port = await nursery.start(TcpNetwork().serve, answer, "127.0.0.1", 0)
    said = await refused("topic list", "--bootstrap-server", f"127.0.0.1:{port}", *FOREVER)
    assert said == (
        f"Error: cannot connect to 127.0.0.1:{port}: the other end speaks TLS, and this end does not: check "
        "security.protocol: name the security of the cluster with --command-config\n"
    )


async def test_a_broker_that_knows_no_controller(nursery: trio.Nursery) -> None:
    async def describe(_: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(None, -1, (), ())

    port = await nursery.start(serve, TcpNetwork(), {MetadataRequest: describe}, "127.0.0.1", 0)
    # The second may be a broker that starts: it is no reason to give up.
    addresses = f"127.0.0.1:{port},127.0.0.1:1"
    said = await refused("topic list", "--bootstrap-server", addresses, "--timeout", "0.5")
    assert said == "Error: no controller is active: start one with `klamm controller run`\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--bootstrap-server a:0", "Invalid value for --bootstrap-server: 'a:0' is not HOST:PORT"),
        (f"--bootstrap-server a:{'9' * 5000}", "is not HOST:PORT"),
        (
            "--bootstrap-server a:1 --zookeeper b:1",
            "--bootstrap-server and --zookeeper each name a cluster: use only one",
        ),
    ],
)
def test_addresses_that_cannot_be_meant(options: str, said: str) -> None:
    done = CliRunner().invoke(main, ["topic", "list", *options.split()])
    assert (done.exit_code, said in done.output.splitlines()[-1]) == (2, True), done.output


async def test_zookeeper_at_a_port_that_there_is_not_and_a_host_that_there_is_not() -> None:
    for port in ("0", "65536"):
        said = await refused("topic list", "--zookeeper", f"127.0.0.1:{port}", *FOREVER)
        assert said.startswith(f"Error: '127.0.0.1:{port}' does not name a ZooKeeper: write host:port")
    said = await refused("topic list", "--zookeeper", "no-such-host.invalid:2181,127.0.0.1:1", *FOREVER)
    assert said.startswith("Error: ZooKeeper: the host no-such-host.invalid cannot be found (")
    assert said.endswith("); nothing listens at 127.0.0.1:1: start one with `klamm zookeeper run`\n")
