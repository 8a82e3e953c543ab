"""The log directories that a file names for replicas: brokers are told, and followed until the logs are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import click
import trio
from attrs import define, evolve, field

from controller.admin.log_mover import Directories, LogMover, LogPlaces, Replica
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.moves import CANNOT_SEE
from klamm.cli.reassignment.outcomes import MoveOutcome, PartitionOutcome
from transport.metadata import TopicPartition

POLL_SECONDS: Final = 0.5

NOWHERE: Final = (
    'brokers of this cluster do not move logs between directories: leave log_dirs out, or name each "any"; brokers of '
    "Kafka's do, if --bootstrap-server names one of them"
)


def log_moves(admin: MoveAdmin, directories: Directories) -> LogMoves | None:
    """Return the moves of logs that a file asks for, None if it names no directory.

    Raises click.ClickException if the brokers of the cluster do not move logs.
    """
    if not directories:
        return None
    if not isinstance(admin, ForeignAdmin):
        raise click.ClickException(NOWHERE)
    return LogMoves(admin, directories)


@define
class LogMoves:
    """The directories that replicas are to have."""

    mover: LogMover
    wanted: Directories
    refused: dict[Replica, str] = field(factory=dict)
    _seen: LogPlaces = field(init=False)
    """The places of the logs when brokers were asked last."""

    async def look(self, others: Mapping[TopicPartition, Sequence[int]] | None = None) -> LogPlaces:
        """Ask brokers where the logs are; those of `others`, too."""
        asked = {broker_id for _, broker_id in self.wanted}
        asked |= {broker_id for replicas in (others or {}).values() for broker_id in replicas}
        partitions = sorted({tp for tp, _ in self.wanted})
        self._seen = LogPlaces.of(await self.mover.describe_log_dirs(sorted(asked), partitions))
        return self._seen

    async def last_look(self, seconds: float) -> LogPlaces:
        """Ask once more, for so long at most; return what was seen before if no broker answers."""
        seen = self._seen
        with trio.move_on_after(seconds), suppress(*CANNOT_SEE):
            found = await self.look()
            if not all(answer.fault for answer in found.brokers.values()):
                return found
        click.echo("no broker tells where the logs are: this is where they were seen last", err=True)
        return seen

    async def begin(self) -> dict[TopicPartition, str]:
        """Tell the brokers; return the partitions that one of them refuses, with the reason."""
        await self._ask(self.wanted)
        return {tp: f"broker {broker_id}: {text}" for (tp, broker_id), text in self.refused.items()}

    async def wait(self) -> None:
        """Wait until all logs are in their directories, and tell again brokers that have forgotten it."""
        shown = -1
        while True:
            try:
                places = await self.look()
            except CANNOT_SEE as error:
                click.echo(f"cannot see the log directories, trying again: {error}", err=True)
            else:
                wanted = {replica: path for replica, path in self.wanted.items() if replica not in self.refused}
                left = places.unfinished(wanted)
                if len(left) != shown:
                    shown = len(left)
                    click.echo(f"{len(wanted) - shown:,} of {len(wanted):,} logs are in their directories", err=True)
                if not left:
                    return
                await self._ask(places.forgotten(wanted))
            await trio.sleep(POLL_SECONDS)

    def judge(self, outcomes: Iterable[PartitionOutcome], places: LogPlaces) -> list[PartitionOutcome]:
        """Return outcomes where a partition is complete only if its logs are in their directories."""
        left: dict[TopicPartition, str] = {}
        for (tp, _), text in places.unfinished(self.wanted).items():
            left.setdefault(tp, text)
        left |= {tp: f"broker {broker_id} refused: {text}" for (tp, broker_id), text in self.refused.items()}
        return [
            evolve(item, outcome=MoveOutcome.IN_PROGRESS, text=f"in progress: {left[item.tp]}")
            if item.outcome is MoveOutcome.COMPLETE and item.tp in left
            else item
            for item in outcomes
        ]

    async def _ask(self, directories: Directories) -> None:
        if directories:
            self.refused |= await self.mover.alter_replica_log_dirs(directories)
