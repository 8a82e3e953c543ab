"""Copies of logs between directories of their brokers, and the end that a cancel puts to them.

A broker stops a copy when it is told to keep the log where it is. If the copy is complete by then, the broker would
begin another one in the opposite direction, which is stopped as well: the log stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import click
from attrs import define, evolve, field

from controller.admin.log_mover import Directories, LogMover, LogPlaces, Replica
from klamm.cli.reassignment.outcomes import MoveOutcome, PartitionOutcome
from transport.metadata import TopicPartition

_ATTEMPTS: Final = 3
"""More than enough for a copy that ends while it is being stopped."""


@define
class LogCopies:
    """Copies that are stopped: by replica, the directory of the log and that of the copy.

    `faults` has the replicas of which it is not known whether they are copied, or that are copied on, with the reason.
    """

    mover: LogMover
    sources: Directories
    targets: Directories
    faults: dict[Replica, str] = field(factory=dict)
    _now: Directories = field(factory=dict)
    """The places of the logs in the end."""

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a copy, or may have one."""
        return sorted({tp for tp, _ in (*self.targets, *self.faults)})

    async def stop(self) -> None:
        """Stop the copies, and see what came of that."""
        left: Directories = self.sources
        for _ in range(_ATTEMPTS):
            if not left:
                break
            refused = await self.mover.alter_replica_log_dirs(left)
            places = await _look(self.mover, left)
            self._now = {**self._now, **{replica: places.paths[replica] for replica in left if replica in places.paths}}
            unstopped = [r for r in left if r in places.futures or r not in places.paths]
            texts = {r: refused.get(r) or places.brokers[r[1]].fault for r in unstopped}
            self.faults |= {replica: text for replica, text in texts.items() if text}
            left = {r: places.paths[r] for r in left if r in places.futures and r in places.paths and r not in refused}
        self.faults |= dict.fromkeys(left, "it does not stop")

    def judge(
        self, found: Mapping[TopicPartition, PartitionOutcome], replicas: Mapping[TopicPartition, tuple[int, ...]]
    ) -> dict[TopicPartition, PartitionOutcome]:
        """Return outcomes that also tell of the copies; `replicas` are those of partitions without another outcome."""
        return {tp: self._judged(tp, found.get(tp), replicas.get(tp, ())) for tp in self.partitions}

    def _judged(
        self, tp: TopicPartition, found: PartitionOutcome | None, replicas: tuple[int, ...]
    ) -> PartitionOutcome:
        if found is None:
            found = PartitionOutcome(tp, MoveOutcome.CANCELLED, replicas, "cancelled")
        mine = sorted(replica for replica in {*self.targets, *self.faults} if replica[0] == tp)
        texts = [self._whereabouts(replica) for replica in mine]
        is_stopped = all(self._is_stopped(replica) for replica in mine)
        if found.outcome is MoveOutcome.CANCELLED and not is_stopped:
            without = found.text.removeprefix("cancelled")
            found = evolve(found, outcome=MoveOutcome.NOT_AS_ASKED, text=f"not cancelled in full{without}")
        return evolve(found, text=", ".join((found.text, *texts)))

    def _is_stopped(self, replica: Replica) -> bool:
        return replica not in self.faults and self._now.get(replica) in {None, self.sources[replica]}

    def _whereabouts(self, replica: Replica) -> str:
        broker_id = replica[1]
        if replica not in self.targets:
            return f"the log directories of broker {broker_id} are not known: {self.faults[replica]}"
        source, target = self.sources[replica], self.targets[replica]
        if replica in self.faults:
            return f"broker {broker_id} copies its log from {source} to {target}: {self.faults[replica]}"
        now = self._now.get(replica)
        if now is None:
            return f"broker {broker_id} no longer has its log in {source}"
        return f"broker {broker_id} {'keeps' if now == source else 'has already'} its log in {now}"


async def copies_of_file(mover: LogMover, directories: Directories) -> LogCopies:
    """Find the copies to those directories that a file names."""
    places = await _look(mover, directories)
    copied = [replica for replica, path in directories.items() if places.futures.get(replica) == path]
    faults = {(tp, b): places.brokers[b].fault for tp, b in directories if places.brokers[b].fault}
    return _copies(mover, places, copied, faults)


async def copies_anywhere(mover: LogMover, partitions: Sequence[TopicPartition] | None) -> LogCopies:
    """Find the copies of these partitions, or of all, on all live brokers; those that do not answer are named."""
    places = LogPlaces.of(await mover.describe_log_dirs(None, partitions))
    for broker_id, answer in places.brokers.items():
        if answer.fault:
            click.echo(f"broker {broker_id} does not tell which logs it copies: {answer.fault}", err=True)
    return _copies(mover, places, places.futures, {})


def _copies(mover: LogMover, places: LogPlaces, copied: Collection[Replica], faults: dict[Replica, str]) -> LogCopies:
    sources = {replica: places.paths[replica] for replica in copied if replica in places.paths}
    return LogCopies(mover, sources, {replica: places.futures[replica] for replica in sources}, faults)


async def _look(mover: LogMover, replicas: Collection[Replica]) -> LogPlaces:
    brokers = sorted({broker_id for _, broker_id in replicas})
    return LogPlaces.of(await mover.describe_log_dirs(brokers, sorted({tp for tp, _ in replicas})))
