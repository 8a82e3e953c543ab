"""`klamm controller release` and `klamm controller take-over`: the office between Kafka's controllers and ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import click
import trio

from controller.admin import handover
from controller.admin.handover import HandoverRefused, Release, TakeOver
from klamm.cli.connect import output_option, zookeeper_option
from klamm.cli.output import print_document, print_table
from klamm.cli.running import patience_option, run, until_interrupted
from transport.host import Host
from transport.store.existing import open_existing
from transport.store.protocol import MetadataStore
from transport.store.security import security_of_environment

T = TypeVar("T")
Handing = Callable[[MetadataStore, int, float], Awaitable[T]]

_SECONDS: Final = 30.0


@click.command()
@output_option
@zookeeper_option
@patience_option(_SECONDS, "The time to wait for Kafka's controller.")
def release(zookeeper: str, timeout: float, output: str) -> None:
    """Give the office back to Apache Kafka's brokers.

    Waits until one of them is the controller. From then on no controller of Klamm's stands for election, running or
    started later, until `klamm controller take-over`. Works as well when none of Klamm's controllers is alive. Lists
    the topics with a replica on one of these: move such partitions to brokers, because Kafka's controller regards it
    as a dead one.
    """
    done = _hand_over(_releasing, zookeeper, timeout)
    if output != "table":
        print_document(_document(done), output)
        return
    click.echo(f"the office is released, and Kafka's controller {done.kafka_controller} is in office")
    if done.named:
        click.echo("\nmove these partitions to brokers, they have replicas on Klamm's controllers:")
        print_table(("topic", "partitions"), [(name, _listed(numbers)) for name, numbers in done.named.items()])


async def _releasing(store: MetadataStore, now_ms: int, timeout: float) -> Release:  # noqa: ASYNC109  see `handover`
    """Release the office, and say at Ctrl-C what has been done by then."""
    is_announced = False

    def announced() -> None:
        nonlocal is_announced
        is_announced = True

    try:
        return await handover.release(store, now_ms, timeout, announced)
    except trio.Cancelled:
        if is_announced:
            click.echo("the release stands: repeat the command to wait for Kafka's controller", err=True)
        raise


def _document(done: Release) -> dict[str, object]:
    named = [{"topic": name, "partitions": numbers} for name, numbers in done.named.items()]
    return {"kafka_controller": done.kafka_controller, "released": done.our_id, "topics_that_name_it": named}


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


@click.command(name="take-over")
@output_option
@zookeeper_option
@patience_option(_SECONDS, "The time to wait for a controller of Klamm's.")
@click.option("--force", is_flag=True, help="Take office whatever the controllers find about their settings.")
def take_over(zookeeper: str, timeout: float, output: str, force: bool) -> None:
    """Take office from Apache Kafka's controller.

    Orders one of Klamm's controllers that run with --kafka to do so, and waits until it has. The order also ends what
    `klamm controller release` began. It is carried out once, and withdrawn if no controller does so in time.

    Each controller first makes the checks of `klamm controller check`. If all of them find a danger, or something that
    they could not tell, nothing changes, and the command ends with the reasons. With --force, it names what it ignores.
    """
    done = _hand_over(partial(handover.take_over, is_forced=force), zookeeper, timeout)
    if output != "table":
        found = {"findings": done.findings, "forced": force} if done.findings else {}
        print_document(
            {"controller": done.controller_id, "epoch": done.epoch, "was_in_office": done.is_old} | found, output
        )
        return
    click.echo(_said(done))
    for finding in done.findings:
        click.echo(f"{'ignored: ' if force else ''}{finding}", err=True)


def _said(done: TakeOver) -> str:
    return f"controller {done.controller_id} {'was' if done.is_old else 'is'} in office, with epoch {done.epoch}"


def _hand_over(handing: Handing[T], zookeeper: str, timeout: float) -> T:
    async def work() -> T:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_interrupted)
                done = await handing(store, Host().now_ms(), timeout)
                nursery.cancel_scope.cancel()
            return done

    return run(work, HandoverRefused)
