"""Check that an acknowledged record is never lost.

The ledger holds the acknowledged records by partition and offset. Every member of an ISR has all of them, unless it
lost its disk after it joined the ISR; once controllers know of the loss, it must not lead. Only an unclean election
that is reported as one may lose records. Topics that are marked for deletion are exempt. So are partitions in whose ISR
a broker lost its disk while nothing could show controllers that it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

import trio
from attrs import define, field

from simulator.disk import Disk
from simulator.safety.leadership import is_unclean
from simulator.safety.partitions import Partition, PartitionChange, Partitions
from simulator.safety.registrations import STALE_SECONDS, Registrations
from transport.messages import Record
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition

_LATE_SECONDS: Final = 60.0
"""Seconds in which producers may still receive acknowledgements of records that are lost.

They begin with an unclean election, or with a topic that takes the name of a deleted one.
"""

_KNOWN_SECONDS: Final = 5.0
"""Seconds after which a controller knows that a broker has registered."""

_Key = tuple[TopicPartition, str]


@define
class _Account:
    """The acknowledged records of one partition of one topic id."""

    values: dict[int, bytes] = field(factory=dict)
    end: int = 0
    """One past the last acknowledged offset."""

    joined: dict[int, str] = field(factory=dict)
    """The members of the ISR, and the storage id that each had when it joined."""

    late_until: float = 0.0
    is_void: bool = False
    """Whether records may have been lost unseen."""


@define
class Ledger:
    """Compares the logs on `disks` with the acknowledged records."""

    disks: Mapping[int, Disk]
    partitions: Partitions
    registrations: Registrations
    unclean_elections: int = field(default=0, init=False)
    written_off: int = field(default=0, init=False)
    """Number of acknowledged records that unclean elections lost."""

    _accounts: dict[_Key, _Account] = field(factory=dict, init=False)

    def changed(self, change: PartitionChange) -> Iterator[str]:
        """Check that brokers that join an ISR or become leader have the acknowledged records on their disks."""
        before, after = change.before, change.after
        if after is None or after.leadership is None or self.partitions.is_exempt(change.tp.topic):
            return
        tp, leader = change.tp, after.leadership.leader
        account = self._opened(tp, after.topic_id)
        if self._is_void(account):
            return
        led_before = before.leadership if before is not None and change.is_of_one_topic else None
        if led_before is not None and change.is_a_controllers:
            yield from self._disregarded(account, tp, led_before, after.leadership)
        if led_before is not None and is_unclean(led_before, after.leadership):
            self._write_off(account, tp, after)
        isr, joined = after.leadership.isr, account.joined
        suspects = dict.fromkeys(r for r in isr if r not in joined)
        # Members were checked when they joined. A new leader is checked again, because its log now decides.
        if leader != NO_LEADER and (led_before is None or led_before.leader != leader):
            suspects[leader] = None
        account.joined = {r: joined.get(r) or self._joined_with(r) for r in isr}
        for broker_id in suspects:
            lost = self._first_lost(account, tp, after.topic_id, broker_id)
            if lost is not None and not self._may_be_empty(broker_id):
                part = "leads" if broker_id == leader else "is in the ISR of"
                yield f"broker {broker_id} {part} {tp} without the acknowledged record at offset {lost}"

    def _disregarded(
        self, account: _Account, tp: TopicPartition, before: LeaderAndIsr, after: LeaderAndIsr
    ) -> Iterator[str]:
        """Check that members of the ISR that have their data are neither all expelled nor passed over."""
        keepers = tuple(r for r in before.isr if not self._is_excused(account, r))
        if not after.isr and keepers:
            yield f"{tp}: the ISR {before.isr} became empty, although {keepers} have their data"
        able = tuple(r for r in keepers if self._is_able(tp, r))
        if is_unclean(before, after) and able:
            yield f"{tp}: broker {after.leader} leads, although {able} of the ISR {before.isr} could"

    def _is_able(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a broker with the data of a partition can lead it, as controllers have known for a while."""
        registrations = self.registrations
        is_live = registrations.has_been_live(broker_id, since=trio.current_time() - _KNOWN_SECONDS)
        disk = self.disks.get(broker_id)
        # A broker that restarts within its session keeps the registration under which its directory was offline.
        is_healthy = disk is not None and disk.is_healthy(tp) and disk.mended_at < registrations.since(broker_id)
        return is_live and is_healthy and not registrations.is_shutting_down(broker_id)

    def acknowledged(self, tp: TopicPartition, base_offset: int, values: Sequence[bytes]) -> Iterator[str]:
        """Enter acknowledged records, and check that every member of the ISR has them."""
        partition = self.partitions.get(tp)
        if partition is None or partition.leadership is None or self.partitions.is_exempt(tp.topic):
            return
        account = self._opened(tp, partition.topic_id)
        if self._is_void(account):
            return
        new = dict(enumerate(values, base_offset))
        for member in partition.leadership.isr:
            lost = self._first_lost_of(new, tp, partition.topic_id, member)
            # It may be from before an unclean election, or of a deleted topic whose leader has not heard of that.
            if lost is not None and trio.current_time() < account.late_until:
                return
            if lost is not None and not self._is_excused(account, member):
                yield f"the record of {tp} at offset {lost} was acknowledged, but broker {member} in the ISR lacks it"
        for offset, value in new.items():
            if account.values.setdefault(offset, value) != value:
                yield f"two records of {tp} were acknowledged at offset {offset}"
        account.end = max(account.end, base_offset + len(values))

    def appended(
        self, broker_id: int, tp: TopicPartition, topic_id: str, base: int, records: Sequence[Record]
    ) -> Iterator[str]:
        """Check that a member of the ISR does not write another record at an acknowledged offset."""
        account = self._account(tp, topic_id, broker_id)
        if account is None or base >= account.end:
            return
        for offset, record in enumerate(records, base):
            if account.values.get(offset, record.value) != record.value:
                yield f"broker {broker_id} in the ISR of {tp} has another record than the acknowledged one at {offset}"

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> Iterator[str]:
        """Check that a member of the ISR does not truncate acknowledged records."""
        account = self._account(tp, topic_id, broker_id)
        if account is None or self._is_excused(account, broker_id):
            return
        if end_offset < account.end:
            end = f"where records up to {account.end - 1} were acknowledged"
            yield f"broker {broker_id} in the ISR of {tp} truncated its log to {end_offset}, {end}"

    def lost(self) -> Iterator[str]:
        """Compare whole logs. Call it only when the cluster is undisturbed."""
        for (tp, topic_id), account in self._accounts.items():
            partition = self.partitions.get(tp)
            is_there = partition is not None and partition.topic_id == topic_id and partition.leadership is not None
            is_judged = not self.partitions.is_exempt(tp.topic) and not self._is_void(account)
            if partition is not None and is_there and is_judged:
                yield from self._differences(account, tp, partition)

    def _opened(self, tp: TopicPartition, topic_id: str) -> _Account:
        """Return the account of a partition of a topic id; a new one if there is none yet."""
        if (tp, topic_id) not in self._accounts:
            has_namesake = any(known == tp for known, _ in self._accounts)
            late_until = trio.current_time() + _LATE_SECONDS if has_namesake else 0.0
            self._accounts[tp, topic_id] = _Account(late_until=late_until)
        return self._accounts[tp, topic_id]

    def _account(self, tp: TopicPartition, topic_id: str, member: int) -> _Account | None:
        """Return the acknowledged records if a broker is in the ISR and must have them, else None."""
        account = self._accounts.get((tp, topic_id))
        if account is None or member not in account.joined or self.partitions.is_exempt(tp.topic):
            return None
        return None if self._is_void(account) else account

    def _is_void(self, account: _Account) -> bool:
        """Return whether a member of the ISR lost its disk, now or before, while controllers had to trust it."""
        trusted = filter(self.partitions.exempt.hides_storage_id, account.joined)
        account.is_void = account.is_void or any(account.joined[r] != self._storage(r) for r in trusted)
        return account.is_void

    def _differences(self, account: _Account, tp: TopicPartition, partition: Partition) -> Iterator[str]:
        leadership = partition.leadership
        if leadership is None or leadership.leader == NO_LEADER:
            return
        leaders = self._records(tp, partition.topic_id, leadership.leader)
        for member in leadership.isr:
            lost = self._first_lost(account, tp, partition.topic_id, member)
            if lost is not None:
                yield f"broker {member} in the ISR of {tp} lacks the acknowledged record at offset {lost}"
            records = self._records(tp, partition.topic_id, member)
            end = min(len(records), len(leaders))
            if records[:end] != leaders[:end]:
                yield f"the log of broker {member} in the ISR of {tp} differs from that of leader {leadership.leader}"

    def _write_off(self, account: _Account, tp: TopicPartition, partition: Partition) -> None:
        """Remove the records that an unclean election lost."""
        leader = partition.leadership.leader if partition.leadership is not None else NO_LEADER
        records = self._records(tp, partition.topic_id, leader)
        kept = {o: v for o, v in account.values.items() if o < len(records) and records[o].value == v}
        self.unclean_elections += 1
        self.written_off += len(account.values) - len(kept)
        account.values, account.end = kept, max(kept, default=-1) + 1
        account.late_until = trio.current_time() + _LATE_SECONDS
        account.joined = {}

    def _first_lost(self, account: _Account, tp: TopicPartition, topic_id: str, broker_id: int) -> int | None:
        return self._first_lost_of(account.values, tp, topic_id, broker_id)

    def _first_lost_of(
        self, values: Mapping[int, bytes], tp: TopicPartition, topic_id: str, broker_id: int
    ) -> int | None:
        """Return the first offset at which a broker's log lacks its acknowledged value, or None."""
        records = self._records(tp, topic_id, broker_id)
        end = len(records)
        lost = (offset for offset, value in values.items() if offset >= end or records[offset].value != value)
        return min(lost, default=None)

    def _records(self, tp: TopicPartition, topic_id: str, broker_id: int) -> list[Record]:
        disk = self.disks.get(broker_id)
        log = disk.logs.get(tp) if disk is not None else None
        return log.records if log is not None and log.topic_id == topic_id else []

    def _storage(self, broker_id: int) -> str:
        return self.disks[broker_id].storage_id if broker_id in self.disks else ""

    def _joined_with(self, broker_id: int) -> str:
        """Return the storage with which a broker joins; "" if controllers may take it for the one that it has lost."""
        return "" if self._may_be_empty(broker_id) else self._storage(broker_id)

    def _is_excused(self, account: _Account, broker_id: int) -> bool:
        """Return whether a member of the ISR lost its disk after it joined, or just before."""
        return account.joined.get(broker_id) != self._storage(broker_id) or self._may_be_empty(broker_id)

    def _may_be_empty(self, broker_id: int) -> bool:
        """Return whether a broker lost its disk and controllers may not know yet, because it came back recently."""
        disk = self.disks.get(broker_id)
        if disk is None or disk.lost_at == -inf:
            return False
        if self.registrations.since(broker_id) <= disk.lost_at:
            return True  # The registration belongs to its previous life, whose session has not ended yet.
        return not self.registrations.has_been_live(broker_id, since=trio.current_time() - STALE_SECONDS)
