"""`klamm controller release` and `klamm controller take-over`: the office between Kafka's controllers and ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import click
import trio
from msgspec import Struct

from controller.admin import handover
from controller.admin.handover import HandoverRefused, Release, TakeOver, TakeOverCheck
from klamm.cli.connect import print_cluster, zookeeper_option
from klamm.cli.formats import DRY_RUN, Note, Table, View, dry_run_option, output_options
from klamm.cli.running import patience_option, run, until_interrupted
from transport.host import Host
from transport.store.cluster_id import ClusterId
from transport.store.existing import open_existing
from transport.store.protocol import MetadataStore
from transport.store.security import security_of_environment

T = TypeVar("T")
Handing = Callable[[MetadataStore, int, float], Awaitable[T]]

_SECONDS: Final = 30.0


class NamedTopic(Struct):
    """A topic, and its partitions with a replica on one of Klamm's controllers."""

    topic: str
    partitions: tuple[int, ...]


class ReleasedOffice(Struct):
    """The end of a release, or of its dry run: Kafka's controller, and ours before it; null for what is not there."""

    kafka_controller: int | None
    released: int | None
    topics_that_name_it: list[NamedTopic]
    is_dry_run: bool = False


@click.command()
@dry_run_option
@output_options(ReleasedOffice)
@zookeeper_option
@patience_option(_SECONDS, "The time to wait for Kafka's controller.")
def release(zookeeper: str, timeout: float, dry_run: bool) -> View:
    """Give the office back to Apache Kafka's brokers.

    Waits until one of them is the controller. From then on no controller of Klamm's stands for election, running or
    started later, until `klamm controller take-over`. Works as well when none of Klamm's controllers is alive. Lists
    the topics with a replica on one of these: move such partitions to brokers, because Kafka's controller regards it
    as a dead one.
    """
    if dry_run:
        checked = _ask(_checking_release, zookeeper, timeout)
        return _released(checked, _release_would(checked), dry_run=True)
    done = _ask(_releasing, zookeeper, timeout)
    return _released(done, f"the office is released, and Kafka's controller {done.kafka_controller} is in office")


def _released(done: Release, line: str, *, dry_run: bool = False) -> View:
    named = [NamedTopic(name, numbers) for name, numbers in done.named.items()]
    parts: list[Table | str] = [line]
    if named:
        parts += ["", "move these partitions to brokers, they have replicas on Klamm's controllers:"]
        parts.append(Table(("topic", "partitions"), [(one.topic, one.partitions) for one in named]))
    if dry_run:
        parts.append(DRY_RUN)
    return View(ReleasedOffice(done.kafka_controller, done.our_id, named, dry_run), parts)


def _release_would(checked: Release) -> str:
    if checked.kafka_controller is not None:
        return f"the office is released already: Kafka's controller {checked.kafka_controller} is in office"
    ours = "" if checked.our_id is None else f", and controller {checked.our_id} would leave it"
    return f"the office can be released{ours}"


async def _checking_release(store: MetadataStore, _now_ms: int, _timeout: float) -> Release:
    return await handover.check_release(store)


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


class TakenOffice(Struct):
    """Our controller in office, and its epoch; in a dry run, null where none is in office, with the `candidates`.

    `findings` are what it found about its settings and took office in spite of; with `forced`, they were ignored.
    """

    controller: int | None
    epoch: int | None
    was_in_office: bool
    findings: tuple[str, ...] = ()
    forced: bool = False
    candidates: tuple[int, ...] = ()
    is_dry_run: bool = False


@click.command(name="take-over")
@dry_run_option
@output_options(TakenOffice)
@zookeeper_option
@patience_option(_SECONDS, "The time to wait for a controller of Klamm's.")
@click.option("--force", is_flag=True, help="Take office whatever the controllers find about their settings.")
def take_over(zookeeper: str, timeout: float, force: bool, dry_run: bool) -> View:
    """Take office from Apache Kafka's controller.

    Orders one of Klamm's controllers that run with --kafka to do so, and waits until it has. The order also ends what
    `klamm controller release` began. It is carried out once, and withdrawn if no controller does so in time.

    Each controller first makes the checks of `klamm controller check`. If all of them find a danger, or something that
    they could not tell, nothing changes, and the command ends with the reasons. With --force, it names what it ignores.

    With --dry-run, no order is given: what a controller checks about its own settings, `klamm controller check` does.
    """
    if dry_run:
        checked = _ask(_checking_take_over, zookeeper, timeout)
        return _taken(checked, is_dry_run=True) if isinstance(checked, TakeOver) else _would_take(checked)
    return _taken(_ask(partial(handover.take_over, is_forced=force), zookeeper, timeout), force=force)


def _taken(done: TakeOver, *, force: bool = False, is_dry_run: bool = False) -> View:
    was = "was" if done.is_old else "is"
    line = f"controller {done.controller_id} {was} in office, with epoch {done.epoch}"
    notes = [Note(f"{'ignored: ' if force else ''}{finding}") for finding in done.findings]
    office = TakenOffice(done.controller_id, done.epoch, done.is_old, done.findings, force, is_dry_run=is_dry_run)
    return View(office, [line, *notes, *([DRY_RUN] if is_dry_run else [])])


def _would_take(checked: TakeOverCheck) -> View:
    ids = ", ".join(map(str, checked.candidates))
    place = "" if checked.kafka_controller is None else f" from Kafka's controller {checked.kafka_controller}"
    line = f"an order to take office{place} can go to controller {ids}"
    note = Note("each controller then checks its own settings: `klamm controller check` does so now")
    office = TakenOffice(None, None, was_in_office=False, candidates=checked.candidates, is_dry_run=True)
    return View(office, [line, note, DRY_RUN])


async def _checking_take_over(store: MetadataStore, _now_ms: int, _timeout: float) -> TakeOver | TakeOverCheck:
    return await handover.check_take_over(store)


def _ask(handing: Handing[T], zookeeper: str, timeout: float) -> T:
    async def work() -> T:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            print_cluster(await ClusterId(store).read(), zookeeper)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_interrupted)
                done = await handing(store, Host().now_ms(), timeout)
                nursery.cancel_scope.cancel()
            return done

    return run(work, HandoverRefused)
