"""The throttle of a rollout: set for the moves that begin, and lifted from those that are over, window by window."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click
from attrs import define, field

from controller.admin import move_throttles, recorded_throttles
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.admin.move_record import MoveRecord
from controller.admin.move_throttles import NotThrottled
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.files import Targets
from klamm.cli.reassignment.record_file import Keeping, RecordFile
from klamm.cli.streams import line_of
from transport.messages import ConfigResourceType, PartitionState
from transport.metadata import TopicPartition


@define
class Slowing:
    """The throttle of moves. `rate` is in bytes per second, None for none; earlier moves may have one nevertheless."""

    admin: MoveAdmin
    file: RecordFile | None
    """The place of the record, None if the cluster keeps what was before moves."""

    rate: int | None
    _keeping: Keeping | None = None
    _told: set[int] = field(factory=set)
    _absent: set[int] = field(factory=set)
    """The brokers that did not answer when their moves were throttled."""

    def __attrs_post_init__(self) -> None:
        """Pick up the record of an earlier process."""
        record = None if self.file is None else self.file.read()
        if self.file is not None and record is not None:
            self._keeping = Keeping(self.file, record, needs_place=True)

    async def begin(self, states: Iterable[PartitionState], targets: Targets) -> dict[int | str, str]:
        """Throttle moves before they begin, or in progress. Raises click.ClickException.

        Return the live brokers, or the topic, that cannot be throttled, and why: moves with replicas there would copy
        at full speed. A broker that is not alive copies nothing, and is throttled once it is back.
        """
        if self.rate is None or not targets:
            return {}
        if self._keeping is None and self.file is not None:
            self._keeping = Keeping(self.file, MoveRecord(), needs_place=True)
        try:
            late = await throttling.begin(self.admin, states, targets, self.rate, self._keeping)
        except NotThrottled as fault:
            is_broker = fault.resource.type is ConfigResourceType.BROKER
            subject: int | str = int(fault.resource.name) if is_broker else fault.resource.name
            text = f"{'broker' if is_broker else 'topic'} {subject} cannot be throttled: {fault.message}"
            if is_broker and subject not in await self._live():
                raise
            return {subject: text}
        if late is None:
            return {}
        silent = late.absent & await self._live()
        self._absent |= late.absent - silent
        return {broker: f"broker {broker} cannot be throttled: it does not answer" for broker in sorted(silent)}

    async def renew(self, states: Iterable[PartitionState], targets: Targets) -> None:
        """Throttle moves in flight; say what cannot be. Raises click.ClickException."""
        for text in (await self.begin(states, targets)).values():
            click.echo(f"{text}: moves in flight copy there as before", err=True)

    async def _live(self) -> set[int]:
        return {broker.id for broker in (await self.admin.read_metadata(())).brokers}

    async def is_anyone_back(self) -> bool:
        """Return, once, whether a broker is back that could not be throttled: moves in flight then are to be, again.

        Raises WireError or ClusterUnreachable.
        """
        if not self._absent:
            return False
        back = self._absent & await self._live()
        self._absent -= back
        return bool(back)

    async def end(self, over: Collection[TopicPartition]) -> None:
        """Lift the throttles of moves that are over, and restore the rates of brokers that have none left.

        Raises click.ClickException.
        """
        if not isinstance(self.admin, ClusterAdmin):
            return
        if self._keeping is None:
            if self.file is None:
                await move_throttles.lift(self.admin, over)
            return
        lifted = await recorded_throttles.lift(self.admin, over, self._keeping.record)
        try:
            self._keeping.file.replace(self._keeping.record, lifted.left)
        except OSError as error:
            raise click.ClickException(f"what was restored is still recorded: {line_of(error)}") from None
        self._keeping.record = lifted.left or MoveRecord()
        for broker in set(lifted.absent) - self._told:
            click.echo(f"broker {broker} does not answer, and keeps the throttle until it is back", err=True)
        self._told = set(lifted.absent)

    @property
    def left(self) -> tuple[int, ...]:
        """The brokers whose earlier rates are still to be restored."""
        if self._keeping is None:
            return ()
        return tuple(sorted({broker for broker, _ in self._keeping.record.rates}))
