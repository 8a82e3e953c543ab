"""`klamm produce` and `klamm consume`: write and read lines through the reference brokers."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Final, TypeVar

import click
import msgspec
from msgspec import Struct

from broker.client import Consumer, GaveUp, Producer
from controller.admin.active_controller import ATTEMPT_SECONDS, ClusterUnreachable
from controller.admin.client import AdminClient
from controller.admin.recognition import Protocol, recognize
from klamm.cli.connect import (
    BOOTSTRAP_VARIABLE,
    DEFAULT_BOOTSTRAP,
    command_config_option,
    network_of,
    print_cluster,
)
from klamm.cli.decorators import with_options
from klamm.cli.formats import Format, Note, View, output_options, printing_options
from klamm.cli.names import OFFSET, PARTITION, TOPIC
from klamm.cli.output import print_yaml
from klamm.cli.profiles import Place, profile_option, settled
from klamm.cli.running import parse_addresses, patience_option, run
from klamm.cli.standard_input import Lines
from transport.addresses import Address
from transport.errors import ApiError
from transport.host import Host
from transport.network import Network
from transport.wire import WireError

T = TypeVar("T")

_FOR_OURS: Final = "this command is for Klamm's brokers, use a client of Kafka's"


_OPTIONS: Final = (
    click.option(
        "--bootstrap-server",
        envvar=BOOTSTRAP_VARIABLE,
        show_envvar=True,
        show_default=DEFAULT_BOOTSTRAP,
        metavar="HOST:PORT,...",
        help="Brokers to contact first.",
    ),
    command_config_option,
    profile_option,
)


def brokers_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of the brokers to contact first; the command receives them as `brokers`."""

    @wraps(command)
    def with_brokers(
        *, bootstrap_server: str | None, command_config: str | None, profile: Place | None, **options: object
    ) -> T:
        place = settled(profile, Place(bootstrap_server, None, command_config))
        if place.zookeeper is not None:
            raise click.ClickException("the profile names a ZooKeeper: name brokers with --bootstrap-server")
        return command(brokers=place, **options)

    return with_options(with_brokers, _OPTIONS)


class Produced(Struct):
    """The number of records that were written and acknowledged."""

    acknowledged: int


class ConsumedRecord(Struct, omit_defaults=True):
    """A record. The value of one that is not UTF-8 is null, and `base64` has it."""

    offset: int
    value: str | None
    base64: str | None = None

    @classmethod
    def of(cls, offset: int, value: bytes) -> ConsumedRecord:
        """Return the document of a record."""
        try:
            return cls(offset, value.decode())
        except UnicodeDecodeError:
            return cls(offset, None, b64encode(value).decode())


timeout_option = patience_option(10.0, "The time to keep trying while there is no leader.")


@click.command()
@click.argument("topic", type=TOPIC)
@click.option("--partition", type=PARTITION, default=0, show_default=True)
@click.option(
    "--acks",
    type=click.Choice(["all", "1"]),
    default="all",
    show_default=True,
    help="Wait for the whole ISR, or only for the leader.",
)
@output_options(Produced)
@brokers_options
@timeout_option
def produce(topic: str, partition: int, acks: str, brokers: Place, timeout: float) -> View:
    """Write each line of standard input to TOPIC as a record, as soon as it arrives."""
    if sys.stdin is None:
        raise click.ClickException("standard input is closed: there is nothing to write")

    async def work(network: Network, bootstrap: Sequence[Address]) -> int:
        # Clusters of Klamm's brokers have no id.
        print_cluster(None, brokers.bootstrap_server or DEFAULT_BOOTSTRAP, brokers.profile)
        async with Producer(network, bootstrap, host=Host()) as producer:
            sent, standard_input = 0, Lines()
            while lines := await standard_input.take():
                await producer.send(topic, partition, lines, acks=-1 if acks == "all" else 1, give_up_after=timeout)
                sent += len(lines)
            return sent

    acknowledged = _run(work, brokers)
    return View(Produced(acknowledged), [Note(f"{acknowledged} records acknowledged")])


def _run(work: Callable[[Network, Sequence[Address]], Awaitable[T]], brokers: Place) -> T:
    """Run `work` with the addresses of brokers, as soon as one of them answers or may still do so."""
    network = network_of(brokers.command_config)
    bootstrap_server = DEFAULT_BOOTSTRAP if brokers.bootstrap_server is None else brokers.bootstrap_server

    async def with_brokers() -> T:
        bootstrap = parse_addresses(bootstrap_server)
        if await recognize(bootstrap, network) is Protocol.KAFKA:
            raise click.ClickException(f"{bootstrap_server} is Apache Kafka: {_FOR_OURS}")
        try:
            return await work(network, bootstrap)
        except GaveUp as error:
            if await _are_kafkas(network, bootstrap):
                raise click.ClickException(f"the brokers are Apache Kafka's: {_FOR_OURS}") from None
            raise click.ClickException(f"{error}: see `klamm topic list` and `klamm broker list`") from None

    return run(with_brokers)


async def _are_kafkas(network: Network, bootstrap: Sequence[Address]) -> bool:
    """Return whether a controller of ours says that its brokers are Apache Kafka's."""
    with suppress(ApiError, ClusterUnreachable, WireError):
        return (await AdminClient(network, bootstrap, None, ATTEMPT_SECONDS).read_metadata(())).are_kafkas
    return False


@click.command()
@click.argument("topic", type=TOPIC)
@click.option("--partition", type=PARTITION, default=0, show_default=True)
@click.option("--from-offset", type=OFFSET, default=0, show_default=True)
@click.option("--follow", is_flag=True, help="Wait for more records at the end.")
@printing_options(ConsumedRecord)
@brokers_options
@timeout_option
def consume(  # noqa: PLR0913, PLR0917  one for each option
    topic: str,
    partition: int,
    from_offset: int,
    follow: bool,
    brokers: Place,
    timeout: float,
    output: Format,
    no_headers: bool,
) -> None:
    """Print the records of TOPIC as lines; with -o json, a document on each line."""
    del no_headers  # lines have none

    def show(offset: int, value: bytes) -> None:
        if not output.is_document:
            click.echo(value)
        elif output is Format.JSON:
            click.echo(msgspec.json.encode(ConsumedRecord.of(offset, value)))
        else:
            print_yaml([msgspec.to_builtins(ConsumedRecord.of(offset, value))])

    async def work(network: Network, bootstrap: Sequence[Address]) -> None:
        async with Consumer(network, bootstrap, host=Host()) as consumer:
            if follow:
                async for offset, value in consumer.records(topic, partition, from_offset, give_up_after=timeout):
                    show(offset, value)
            else:
                values = await consumer.read_all(topic, partition, from_offset, give_up_after=timeout)
                for offset, value in enumerate(values, from_offset):
                    show(offset, value)

    _run(work, brokers)
