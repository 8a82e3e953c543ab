"""`klamm produce` and `klamm consume`: write and read lines through the reference brokers."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import click

from broker.client import Consumer, GaveUp, Producer
from controller.admin.active_controller import ATTEMPT_SECONDS, Address, ClusterUnreachable
from controller.admin.client import AdminClient
from controller.admin.recognition import Protocol, recognize
from klamm.cli.connect import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, command_config_option, network_of
from klamm.cli.names import OFFSET, PARTITION, TOPIC
from klamm.cli.running import parse_addresses, patience_option, run
from klamm.cli.standard_input import Lines
from transport.errors import ApiError
from transport.host import Host
from transport.network import Network
from transport.wire import WireError

T = TypeVar("T")

_FOR_OURS: Final = "this command is for Klamm's brokers, use a client of Kafka's"


def bootstrap_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for the brokers to contact first."""
    return click.option(
        "--bootstrap-server",
        default=DEFAULT_BOOTSTRAP,
        envvar=BOOTSTRAP_VARIABLE,
        show_envvar=True,
        show_default=True,
        metavar="HOST:PORT,...",
        help="Brokers to contact first.",
    )(command)


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
@bootstrap_option
@command_config_option
@timeout_option
def produce(
    topic: str, partition: int, acks: str, bootstrap_server: str, command_config: str | None, timeout: float
) -> None:
    """Write each line of standard input to TOPIC as a record, as soon as it arrives."""
    if sys.stdin is None:
        raise click.ClickException("standard input is closed: there is nothing to write")

    async def work(network: Network, bootstrap: Sequence[Address]) -> int:
        async with Producer(network, bootstrap, host=Host()) as producer:
            sent, standard_input = 0, Lines()
            while lines := await standard_input.take():
                await producer.send(topic, partition, lines, acks=-1 if acks == "all" else 1, give_up_after=timeout)
                sent += len(lines)
            return sent

    click.echo(f"{_run(work, bootstrap_server, command_config)} records acknowledged", err=True)


def _run(
    work: Callable[[Network, Sequence[Address]], Awaitable[T]], bootstrap_server: str, command_config: str | None
) -> T:
    """Run `work` with the addresses of brokers, as soon as one of them answers or may still do so."""
    network = network_of(command_config)

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
@bootstrap_option
@command_config_option
@timeout_option
def consume(
    topic: str,
    partition: int,
    from_offset: int,
    follow: bool,
    bootstrap_server: str,
    command_config: str | None,
    timeout: float,
) -> None:
    """Print the records of TOPIC as lines."""

    async def work(network: Network, bootstrap: Sequence[Address]) -> None:
        async with Consumer(network, bootstrap, host=Host()) as consumer:
            if follow:
                async for _, value in consumer.records(topic, partition, from_offset, give_up_after=timeout):
                    click.echo(value)
            else:
                for value in await consumer.read_all(topic, partition, from_offset, give_up_after=timeout):
                    click.echo(value)

    _run(work, bootstrap_server, command_config)
