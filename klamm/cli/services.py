"""`klamm controller`, `klamm broker run`, `klamm broker list` and `klamm zookeeper run`."""

from __future__ import annotations

import errno
import socket
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click
import trio
from msgspec import Struct
from msgspec.structs import astuple

import klamm
from broker.config import BrokerConfig
from broker.kit import BrokerHandle
from broker.meta_properties import WrongLogDir
from broker.reference.log_dirs import AllLogDirsFailed
from broker.reference.run import run_reference_broker
from broker.registration import BrokerIdInUse
from controller.admin.cluster_admin import ClusterAdmin
from controller.config import ControllerConfig
from controller.monitoring.http_pages import CannotServeMetrics
from controller.node.controller_election import refuse_foreign
from controller.node.kafka_listeners import kafka_listeners
from controller.node.kafka_node import CannotListen
from klamm.cli import handover
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.controller_check import check_controller
from klamm.cli.formats import Table, View, output_options
from klamm.cli.names import Integer
from klamm.cli.running import configure_logs, log_level_option, run, until_stopped
from klamm.cli.settings import given, setting_options
from klamm.cli.streams import print_if_possible
from klamm.cli.visibility import note
from transport.addresses import address_text
from transport.host import Host
from transport.messages import MetadataResponse
from transport.metadata import MAX_PORT, Listener
from transport.network import TcpNetwork
from transport.settings import InvalidSetting
from transport.store.reachability import until_answered
from transport.store.security import security_of
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

FIRST_BROKER_PORT = 9091
PORT = Integer(0, 65_535)


# --- klamm controller -------------------------------------------------------------------------------------------


@click.group()
def controller() -> None:
    """Run or check a controller, or hand its office over."""


controller.add_command(check_controller)
controller.add_command(handover.release)
controller.add_command(handover.take_over)


@controller.command(name="run")
@setting_options("controller", port="any free port")
@log_level_option
def run_controller(config: Path | None, log_level: int, **flags: object) -> None:
    """Run a controller, which becomes the active one or stands by."""
    settings = ControllerConfig(**given("controller", config, flags))
    _require_advertised(settings)
    _require_listeners(settings)
    _require_protocol(settings)
    configure_logs(log_level)
    print_if_possible()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_stopped, nursery.cancel_scope)
            service = await nursery.start(klamm.run, settings)
            _print_address(f"controller {settings.controller_id}", settings, service.port)
            _print_listeners(() if service.node is None else service.node.listeners)
            if service.metrics_port is not None:
                address = f"http://{address_text(settings.metrics_host, service.metrics_port)}"
                click.echo(f"metrics: {address}/metrics")
                click.echo(f"page: {address}/")

    _serve(work, settings.host, settings.port, klamm.ControllerIdInUse, CannotListen, CannotServeMetrics)


def _print_listeners(listeners: Sequence[Listener]) -> None:
    """Print where brokers of Kafka's find a controller, and whether those on other hosts cannot."""
    for listener in listeners:
        click.echo(f"brokers of Kafka find it at {listener.name}://{address_text(listener.host, listener.port)}")
    local = next((listener.host for listener in listeners if _is_local(listener.host)), None)
    if local is not None:
        click.echo(f"brokers on other hosts cannot reach {local}: name an address with --host", err=True)


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _require_advertised(settings: ControllerConfig | BrokerConfig) -> None:
    """Raise click.ClickException for an advertised address that other hosts could not use."""
    try:
        settings.advertised(settings.host, settings.port)
    except InvalidSetting as invalid:
        raise click.ClickException(str(invalid)) from None


def _require_listeners(settings: ControllerConfig) -> None:
    """Raise click.ClickException for listeners that brokers of Kafka's could not use."""
    try:
        kafka_listeners(settings)
    except InvalidSetting as invalid:
        raise click.ClickException(str(invalid)) from None


def _require_protocol(settings: ControllerConfig) -> None:
    """Raise click.ClickException for a version that is none."""
    try:
        settings.check_protocol()
    except InvalidSetting as invalid:
        raise click.ClickException(str(invalid)) from None


def _print_address(name: str, settings: ControllerConfig | BrokerConfig, port: int) -> None:
    click.echo(f"{name} listens on {address_text(settings.host, port)}")
    advertised = settings.advertised(settings.host, port)
    if advertised != (settings.host, port):
        click.echo(f"advertised as {address_text(*advertised)}")


def _serve(work: Callable[[], Awaitable[None]], host: str, port: int, *expected: type[Exception]) -> None:
    """Run a service. Raises click.ClickException if its address is in use or cannot be used."""

    async def listening() -> None:
        try:
            await work()
        except* OSError as group:
            if group.subgroup(lambda error: getattr(error, "errno", None) == errno.EADDRINUSE):
                raise click.ClickException(f"port {port} of {host} is in use: choose another with --port") from None
            if group.subgroup(
                lambda error: isinstance(error, socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL
            ):
                raise click.ClickException(
                    f"{host} is not an address of this machine: choose one with --host"
                ) from None
            raise

    run(listening, *expected)


def _require_directories(paths: Sequence[Path], option: str) -> None:
    """Create directories for data. Raises click.ClickException if none of them can be used."""
    if not paths:
        raise click.ClickException(f"{option} needs at least one directory: separate several with commas")
    faults = [fault for path in paths if (fault := _fault_of(path))]
    if len(faults) == len(paths):
        raise click.ClickException(f"cannot write to {faults[0]}: choose another directory with {option}")


def _fault_of(path: Path) -> str:
    """Create a directory; return it with the reason why it cannot be used, empty if it can."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return ""
    except OSError as error:
        return f"{path} ({error.strerror})"


# --- klamm broker -----------------------------------------------------------------------------------------------


@click.group()
def broker() -> None:
    """Run a broker, or list brokers."""


@broker.command(name="run")
@setting_options("broker", port="9091 + id", log_dir="klamm-data/broker-ID")
def run_broker(config: Path | None, **flags: object) -> None:
    """Run a reference broker.

    SIGTERM and Ctrl-C stop it cleanly, after its leaderships have moved to other brokers; a second one stops it at
    once.
    """
    values = given("broker", config, flags)
    broker_id = values["broker_id"]
    log_dir = Path(values.pop("log_dir", f"klamm-data/broker-{broker_id}"))
    settings = BrokerConfig(log_dir=log_dir, **{"port": _default_port(broker_id, values), **values})
    _require_advertised(settings)
    configure_logs()
    print_if_possible()

    async def work() -> None:
        _require_directories(settings.directories, "--log-dir" if settings.log_dirs is None else "--log-dirs")
        async with trio.open_nursery() as nursery:
            started: list[BrokerHandle] = []
            nursery.start_soon(until_stopped, nursery.cancel_scope, partial(_leave, started))
            started.append(await nursery.start(_run_on_zookeeper, settings))
            _print_address(f"broker {broker_id}", settings, started[0].port)

    _serve(work, settings.host, settings.port, BrokerIdInUse, WrongLogDir, AllLogDirsFailed)


def _default_port(broker_id: int, values: Mapping[str, Any]) -> int:
    """Return the default port of a broker, 9091 + id. Raises click.ClickException if the id is too large."""
    port = FIRST_BROKER_PORT + broker_id
    if port > MAX_PORT and "port" not in values:
        raise click.ClickException(
            f"broker {broker_id} needs --port: only ids up to {MAX_PORT - FIRST_BROKER_PORT} have a default, 9091 + id"
        )
    return port


async def _run_on_zookeeper(settings: BrokerConfig, *, task_status: trio.TaskStatus[BrokerHandle]) -> None:
    opening = open_zookeeper(
        settings.zookeeper_connect,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connect_timeout=settings.zookeeper_patience,
        waits=True,
        security=security_of(settings),
    )
    async with opening as store:
        # Kafka's controller could not read the registration of such a broker.
        await until_answered(partial(refuse_foreign, store, is_broker=True))
        await run_reference_broker(settings, store=store, network=TcpNetwork(), host=Host(), task_status=task_status)


async def _leave(started: Sequence[BrokerHandle]) -> None:
    """Shut a broker down cleanly if it has started, and report partitions that lose their leader nevertheless."""
    for handle in started:
        outcome = await handle.shut_down()
        name = f"broker {handle.broker_id} stops"
        if outcome.failure:
            click.echo(f"{name}, but its leaderships were not moved: {outcome.failure}", err=True)
        elif outcome.remaining:
            led = ", ".join(map(str, outcome.remaining))
            click.echo(f"{name}, but no other member of the ISR can lead {led}", err=True)


class BrokerRow(Struct):
    """A live broker, with its numbers of leaders and replicas.

    `partial` says what is not counted because it is hidden from the user; null if everything is.
    """

    id: int
    address: str
    rack: str | None
    leaders: int
    replicas: int
    partial: str | None = None


@broker.command(name="list")
@output_options(list[BrokerRow], watch=True)
@cluster_options
def list_brokers(cluster: Cluster) -> View:
    """List the live brokers, with their numbers of leaders and replicas."""

    async def work(admin: ClusterAdmin) -> tuple[MetadataResponse, str | None]:
        return await admin.read_metadata(), (await admin.visibility()).lacking_topics

    metadata, partial = cluster.ask(work)
    leaders = Counter(state.leader for state in metadata.partitions)
    replicas = Counter(broker_id for state in metadata.partitions for broker_id in state.replicas)
    rows = [
        BrokerRow(b.id, address_text(b.host, b.port), b.rack, leaders[b.id], replicas[b.id], partial)
        for b in metadata.brokers
    ]
    columns = ("id", "address", "rack", "leaders", "replicas")
    return View(rows, [Table(columns, [astuple(row)[: len(columns)] for row in rows]), *note(partial)])


# --- klamm zookeeper --------------------------------------------------------------------------------------------


@click.group()
def zookeeper() -> None:
    """Run a development ZooKeeper."""


@zookeeper.command(name="run")
@click.option("--port", type=PORT, default=2181, show_default=True)
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path("klamm-data/zookeeper"), show_default=True)
def run_zookeeper(port: int, data_dir: Path) -> None:
    """Run the ZooKeeper that comes with PySpark. It is for development only: it does not sync its log to disk."""
    configure_logs()
    print_if_possible()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_stopped, nursery.cancel_scope)
            async with development_zookeeper(data_dir, port) as server:
                click.echo(f"ZooKeeper listens on {address_text(server.host, server.port)}")
                await trio.sleep_forever()

    run(work)
