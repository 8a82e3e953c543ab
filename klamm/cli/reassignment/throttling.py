"""`--throttle`: slow moves down, and lift the throttle when they are over."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import click

from controller.admin import move_throttles, recorded_throttles
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.move_record import MoveRecord
from klamm.cli.names import RATE
from klamm.cli.reassignment.files import Targets
from klamm.cli.reassignment.record_file import Keeping, RecordFile
from klamm.cli.streams import line_of
from transport.messages import PartitionState
from transport.metadata import TopicPartition

throttle_option = click.option(
    "--throttle",
    type=RATE,
    metavar="BYTES_PER_SECOND",
    help="The most that each broker may send and fetch for the moves; lifted when they are over.",
)
_LIFTED: Final = "the throttle of moves that are over was lifted"
_VERIFY: Final = "`klamm reassignment verify --reassignment-json-file {1}` removes it"
_ABSENT: Final = f"broker {{0}} does not answer, and keeps the throttle: {_VERIFY} once it is back"
_IN_USE: Final = f"broker {{0}} keeps the throttle for other moves: {_VERIFY} once they are over"

preserve_option = click.option("--preserve-throttles", is_flag=True, help="Keep the throttles of moves that are over.")


async def begin(
    admin: MoveAdmin, states: Iterable[PartitionState], targets: Targets, rate: int, keeping: Keeping | None
) -> None:
    """Throttle the moves to `targets`, before they begin; `keeping` keeps the record where the cluster does not.

    Raises click.ClickException if Kafka's own controller is active, or the record cannot be written.
    """
    if not isinstance(admin, ClusterAdmin):
        raise click.ClickException("Kafka's own controller is active: throttle its brokers with kafka-configs")
    if keeping is None:
        await move_throttles.throttle(admin, states, targets, rate)
        return
    throttling = await recorded_throttles.throttling(admin, states, targets, rate, keeping.record)
    keeping.keep(throttling.record)
    for broker in throttling.absent:
        click.echo(f"broker {broker} does not answer: it is not throttled", err=True)
    await move_throttles.alter(admin, throttling.changes)


async def end(admin: MoveAdmin, partitions: Collection[TopicPartition], file: RecordFile | None = None) -> None:
    """Lift the throttles of those partitions whose moves are over; by the record of the moves in a file if it is there.

    Raises click.ClickException for a record that cannot be read, or not be brought up to date.
    """
    if not isinstance(admin, ClusterAdmin):
        return
    if not isinstance(admin, ForeignAdmin):
        if await move_throttles.lift(admin, partitions):
            click.echo(_LIFTED, err=True)
        return
    record = None if file is None else file.read()
    lifted = await recorded_throttles.lift(admin, partitions, record or MoveRecord())
    if lifted.is_changed:
        click.echo(_LIFTED, err=True)
    if record is None or file is None:
        return
    try:
        file.replace(record, lifted.left)
    except OSError as error:
        raise click.ClickException(f"what was restored is still recorded: {line_of(error)}") from None
    for broker in lifted.absent:
        click.echo(_ABSENT.format(broker, file.moves), err=True)
    for broker in lifted.in_use:
        click.echo(_IN_USE.format(broker, file.moves), err=True)
