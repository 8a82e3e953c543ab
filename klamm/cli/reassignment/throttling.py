"""`--throttle`: slow moves down, and lift the throttle when they are over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Final

import click
import trio
from attrs import define

from controller.admin import move_throttles, recorded_throttles
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.move_record import MoveRecord
from controller.admin.move_throttles import Alter, alter
from controller.admin.moves import CANNOT_SEE
from controller.admin.recorded_throttles import Lifted, Throttling
from klamm.cli.names import RATE
from klamm.cli.reassignment.files import Targets
from klamm.cli.reassignment.record_file import Keeping, RecordFile
from klamm.cli.streams import line_of
from transport.errors import ApiError, ErrorCode, in_words
from transport.messages import AlterConfigsResource, ConfigResourceType, PartitionState
from transport.metadata import TopicPartition

throttle_option = click.option(
    "--throttle",
    type=RATE,
    metavar="RATE",
    help="The most that each broker may send and fetch for the moves, such as 20MB/s; lifted when they are over.",
)
LOOK_SECONDS: Final = 1.0
"""The pause between two looks at whether a broker is back."""

_LIFTED: Final = "the throttle of moves that are over was lifted"
_WOULD_LIFT: Final = "would lift the throttle of moves that are over: of {}"
_MOST_NAMED: Final = 10
_VERIFY: Final = "`klamm reassignment verify --reassignment-json-file {1}` removes it"
_LATE: Final = "broker {} does not answer, and is not throttled: it will be if it is back while this command waits"
_ABSENT: Final = f"broker {{0}} does not answer, and keeps the throttle: {_VERIFY} once it is back"
_IN_USE: Final = f"broker {{0}} keeps the throttle for other moves: {_VERIFY} once they are over"

preserve_option = click.option("--preserve-throttles", is_flag=True, help="Keep the throttles of moves that are over.")


async def begin(
    admin: MoveAdmin, states: Iterable[PartitionState], targets: Targets, rate: int, keeping: Keeping | None
) -> Latecomers | None:
    """Throttle the moves to `targets`, before they begin; `keeping` keeps the record where the cluster does not.

    Return the brokers that could not be throttled, if there are any. Raises click.ClickException if Kafka's own
    controller is active, or the record cannot be written.
    """
    if not isinstance(admin, ClusterAdmin):
        raise click.ClickException("Kafka's own controller is active: throttle its brokers with kafka-configs")
    if keeping is None:
        await move_throttles.throttle(admin, states, targets, rate)
        return None
    plan = partial(recorded_throttles.throttling, admin, tuple(states), targets, rate)
    throttling = await plan(keeping.record)
    keeping.keep(throttling.record)
    for broker in throttling.absent:
        click.echo(_LATE.format(broker), err=True)
    await move_throttles.alter(admin, throttling.changes)
    return Latecomers(admin, plan, keeping, set(throttling.absent)) if throttling.absent else None


@define
class Latecomers:
    """Brokers that did not answer when moves were throttled: each is throttled as soon as it is back."""

    admin: ClusterAdmin
    plan: Callable[[MoveRecord, Collection[int]], Awaitable[Throttling]]
    keeping: Keeping
    absent: set[int]
    _looks_at: float = -inf

    async def look(self) -> list[str]:
        """Throttle those that are back, and return what there is to say of them."""
        if not self.absent or trio.current_time() < self._looks_at:
            return []
        self._looks_at = trio.current_time() + LOOK_SECONDS
        try:
            live = {broker.id for broker in (await self.admin.read_metadata(())).brokers}
            return [line for broker in sorted(self.absent & live) for line in await self._throttle(broker)]
        except CANNOT_SEE:
            return []

    async def _throttle(self, broker: int) -> list[str]:
        """Throttle a broker; one that does not answer yet stays among the absent."""
        try:
            throttling = await self.plan(self.keeping.record, [broker])
            if throttling.absent:
                return []
            self.keeping.update(throttling.record)
            await move_throttles.alter(self.admin, throttling.changes)
        except (ApiError, OSError) as error:
            if isinstance(error, ApiError) and error.code is ErrorCode.BROKER_NOT_AVAILABLE:
                return []
            self.absent.remove(broker)
            text = line_of(error) if isinstance(error, OSError) else in_words(error)
            return [f"broker {broker} is back, but cannot be throttled: {text}"]
        self.absent.remove(broker)
        return [f"broker {broker} is back, and is throttled from now on"]


async def end(
    admin: MoveAdmin,
    partitions: Collection[TopicPartition],
    file: RecordFile | None = None,
    targets: Targets = MappingProxyType({}),
    change: Alter = alter,
) -> None:
    """Lift the throttles of those partitions whose moves are over; by the record of the moves in a file if it is there.

    `targets` are those of the moves in the file, as far as they are known. Raises click.ClickException for a record
    that cannot be read, or not be brought up to date.
    """
    if not isinstance(admin, ClusterAdmin):
        return
    record = _record(admin, file)
    lifted = await _lift(admin, partitions, record, targets, change)
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


async def check_end(
    admin: MoveAdmin, partitions: Collection[TopicPartition], file: RecordFile | None, targets: Targets
) -> str | None:
    """Check what `end` would do, and return which throttles it would lift; None if there are none."""
    if not isinstance(admin, ClusterAdmin):
        return None
    changes: list[AlterConfigsResource] = []

    async def check(admin: ClusterAdmin, wanted: Sequence[AlterConfigsResource]) -> None:
        await alter(admin, wanted, validate_only=True)
        changes.extend(wanted)

    await _lift(admin, partitions, _record(admin, file), targets, check)
    topics = sorted({each.resource.name for each in changes if each.resource.type is ConfigResourceType.TOPIC})
    brokers = {int(each.resource.name) for each in changes if each.resource.type is ConfigResourceType.BROKER}
    named = [*_listed("topic", topics), *_listed("broker", list(map(str, sorted(brokers))))]
    return _WOULD_LIFT.format(" and ".join(named)) if named else None


def _listed(noun: str, names: Sequence[str]) -> list[str]:
    """Return the words for some topics or brokers, none if there are none."""
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return [f"{noun}{'s' if len(names) > 1 else ''} {', '.join(names[:_MOST_NAMED])}{more}"]


def _record(admin: ClusterAdmin, file: RecordFile | None) -> MoveRecord | None:
    return file.read() if file is not None and isinstance(admin, ForeignAdmin) else None


async def _lift(
    admin: ClusterAdmin,
    partitions: Collection[TopicPartition],
    record: MoveRecord | None,
    targets: Targets,
    change: Alter,
) -> Lifted:
    if isinstance(admin, ForeignAdmin):
        return await recorded_throttles.lift(admin, partitions, record or MoveRecord(), targets, change)
    return Lifted(await move_throttles.lift(admin, partitions, change), left=None)
