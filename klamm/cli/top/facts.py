"""Conclusions from a reading: the partitions at risk, the bytes that moves copy, and a few lines about all. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from attrs import frozen

from klamm.cli.top.reading import Reading
from klamm.cli.top.tables import Tone
from klamm.cli.units import counted, duration, rate, size
from transport.messages import UNKNOWN, PartitionState, ReassignmentDescription, ReplicaProgress
from transport.metadata import LEADER_DURING_DELETE


class Risk(IntEnum):
    """The conditions of a partition at risk, the worst first."""

    OFFLINE = 0
    UNDER_MIN_ISR = 1
    UNDER_REPLICATED = 2

    @property
    def tone(self) -> Tone:
        """The tone in which it is shown."""
        return Tone.WARNING if self is Risk.UNDER_REPLICATED else Tone.BAD

    def __str__(self) -> str:
        return {Risk.OFFLINE: "offline", Risk.UNDER_MIN_ISR: "under min ISR"}.get(self, "under-replicated")


class AtRisk(NamedTuple):
    """A partition at risk. `missing` are the replicas of which no live broker has all records."""

    state: PartitionState
    risk: Risk
    least: int | None
    missing: tuple[int, ...]


def at_risk(reading: Reading) -> list[AtRisk]:
    """Return the partitions at risk, the worst first; those that are being deleted are at none."""
    live = {broker.endpoint.id for broker in reading.cluster.brokers}
    found = []
    for state in reading.partitions:
        risk = _risk_of(state, live, reading.least.get(state.topic))
        if risk is not None:
            missing = tuple(r for r in state.origin_replicas if r not in state.isr or r not in live)
            found.append(AtRisk(state, risk, reading.least.get(state.topic), missing))
    return sorted(found, key=lambda one: (one.risk, one.state.tp))


def _risk_of(state: PartitionState, live: set[int], least: int | None) -> Risk | None:
    if state.leader == LEADER_DURING_DELETE:
        return None
    if state.leader not in live:
        return Risk.OFFLINE
    if least is not None and len(state.isr) < least:
        return Risk.UNDER_MIN_ISR
    return Risk.UNDER_REPLICATED if state.is_under_replicated else None


@frozen
class Copying:
    """The bytes that the new replicas of a move have, and need; UNKNOWN where a broker did not tell."""

    has: int
    of: int

    @classmethod
    def by(cls, move: ReassignmentDescription) -> Copying:
        """Return what a move copies."""
        items = [item for item in move.progress if item.broker in move.adding_replicas]
        if not items or any(UNKNOWN in _bytes(item) for item in items):
            return cls(UNKNOWN, UNKNOWN)
        has, of = map(sum, zip(*map(_bytes, items), strict=True))
        return cls(has, of)

    @property
    def left(self) -> int:
        """The bytes to copy, UNKNOWN if they are."""
        return UNKNOWN if self.of == UNKNOWN else self.of - self.has


def _bytes(item: ReplicaProgress) -> tuple[int, int]:
    of = item.leader_bytes
    if item.in_sync or of == UNKNOWN:
        return of, of
    return (UNKNOWN if item.log_bytes == UNKNOWN else min(item.log_bytes, of)), of


@frozen
class Count:
    """A number of the cluster in words, and how it wants to be seen."""

    text: str
    tone: Tone = Tone.PLAIN


def counts(reading: Reading) -> list[Count]:
    """Return what there is, and how much of it is at risk."""
    cluster = reading.cluster
    found = [Count(counted(len(cluster.brokers), "broker")), Count(counted(cluster.partitions, "partition"))]
    worries, is_partial = list(_worries(reading)), reading.visibility.lacking_topics is not None
    found += worries or [Count("nothing visible is at risk") if is_partial else Count("nothing at risk", Tone.GOOD)]
    if is_partial:
        found.append(Count("some topics are hidden", Tone.WARNING))
    if cluster.under_min_isr == UNKNOWN:
        found.append(Count("min ISR unknown", Tone.FAINT))
    if cluster.topics_being_deleted > 0:
        found.append(Count(f"{counted(cluster.topics_being_deleted, 'topic')} being deleted"))
    return found


def _worries(reading: Reading) -> Iterator[Count]:
    cluster = reading.cluster
    if cluster.offline > 0:
        yield Count(f"{cluster.offline:,} offline", Tone.BAD)
    if cluster.under_min_isr > 0:
        yield Count(f"{cluster.under_min_isr:,} under min ISR", Tone.BAD)
    if cluster.under_replicated > 0:
        yield Count(f"{cluster.under_replicated:,} under-replicated", Tone.WARNING)
    if cluster.quarantined:
        yield Count(f"quarantined: {', '.join(cluster.quarantined)}", Tone.BAD)


def moving(reading: Reading) -> str:
    """Return how far all moves together are, in a line."""
    if not reading.moves:
        return "nothing moves" if reading.visibility.sees_moves else "moves are not known"
    parts = [f"{counted(len(reading.moves), 'move')} in flight"]
    copies = [copy for copy in map(Copying.by, reading.moves) if copy.left != UNKNOWN]
    if copies:
        parts.append(f"{size(sum(copy.has for copy in copies))} of {size(sum(copy.of for copy in copies))}")
    if reading.rate > 0:
        parts.append(rate(reading.rate))
    if reading.eta_ms != UNKNOWN:
        parts.append(f"{duration(reading.eta_ms)} left")
    return ", ".join(parts)


def controller_of(reading: Reading) -> str:
    """Return the controller in words."""
    controller, epoch = reading.cluster.controller, reading.cluster.controller_epoch
    if controller.id == UNKNOWN:
        return "controller unknown"
    return f"controller {controller.id}" + ("" if epoch == UNKNOWN else f", epoch {epoch}")
