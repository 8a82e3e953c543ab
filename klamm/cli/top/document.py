"""The document of one look of `klamm top`, for programs: brokers, moves, partitions at risk and rollouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from controller.admin.moves import waits_for
from klamm.cli.formats import Time, known, seconds_of, time_of
from klamm.cli.output import known_leader
from klamm.cli.rollout.report import UNUSABLE
from klamm.cli.top.board import Traffic
from klamm.cli.top.facts import AtRisk, Copying, at_risk
from klamm.cli.top.following import Look
from klamm.cli.top.reading import Reading
from klamm.cli.top.rollouts import Rollout, Untold
from transport.addresses import address_text
from transport.messages import DescribedBroker, ReassignmentDescription


class TopCounts(Struct):
    """The counts of the cluster, of partitions except for the two of topics; null for those that it does not give."""

    topics: int | None
    topics_being_deleted: int | None
    partitions: int | None
    offline: int | None
    under_replicated: int | None
    under_min_isr: int | None
    without_preferred_leader: int | None
    being_reassigned: int | None


class TopBroker(Struct):
    """A broker with its work; one that is not alive is known by its replicas."""

    id: int
    address: str | None
    rack: str | None
    state: Literal["live", "shutting down", "dead"]
    leaders: int
    replicas: int
    out_of_isr: int
    moves_in: int
    moves_out: int
    bytes_to_copy: int | None


class TopMove(Struct):
    """A move in flight. Null stands for a number or time that is not known yet, and for a move that is not stalled."""

    topic: str
    partition: int
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    new_replicas: tuple[int, ...]
    bytes_copied: int | None
    bytes_left: int | None
    bytes_per_second: int | None
    seconds_left: float | None
    started: Time | None
    stalled_since: Time | None
    waits_for: str
    setback: str | None


class TopRisk(Struct):
    """A partition at risk; `missing` are the replicas of which no live broker has all records."""

    topic: str
    partition: int
    risk: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_insync_replicas: int | None
    missing: tuple[int, ...]
    is_being_reassigned: bool


class TopRollout(Struct):
    """A rollout. `state` is null if it cannot be read, or has not begun; `fault` then says so."""

    rollout: str
    state: str | None
    fault: str | None
    moves: dict[str, int]
    bytes_left: int | None
    bytes_per_second: int | None
    seconds_left: float | None
    carried_out_by: str | None


class TopLook(Struct):
    """A cluster at one moment. `partial` says what is hidden from the user; null if nothing is."""

    cluster: str
    at: Time
    controller: int | None
    controller_epoch: int | None
    counts: TopCounts
    quarantined: tuple[str, ...]
    bytes_per_second: int | None
    seconds_left: float | None
    brokers: list[TopBroker]
    moves: list[TopMove]
    at_risk: list[TopRisk]
    rollouts: list[TopRollout]
    partial: str | None = None


def document_of(look: Look, where: str) -> TopLook:
    """Return the document of a look that has seen the cluster."""
    reading, at = look.reading, time_of(look.at_ms)
    assert reading is not None, "a look that fails raises"
    assert at is not None
    found, risks = reading.cluster, at_risk(reading)
    return TopLook(
        where,
        at,
        known(found.controller.id),
        known(found.controller_epoch),
        TopCounts(*(known(getattr(found, name)) for name in TopCounts.__struct_fields__)),
        found.quarantined,
        known(reading.rate),
        seconds_of(reading.eta_ms),
        _brokers(reading, risks),
        [_move(move) for move in sorted(reading.moves, key=lambda move: move.tp)],
        list(map(_risk, risks)),
        list(map(_rollout, look.rollouts)),
        "; ".join(reading.lacking) or None,
    )


def _brokers(reading: Reading, risks: list[AtRisk]) -> list[TopBroker]:
    traffic = Traffic.of(reading, risks)
    live = {broker.endpoint.id: broker for broker in reading.cluster.brokers}
    dead = Counter(r for state in reading.partitions for r in state.replicas if r not in live)
    return [_broker(id_, live.get(id_), dead[id_], traffic) for id_ in sorted({*live, *dead})]


def _broker(id_: int, broker: DescribedBroker | None, replicas: int, traffic: Traffic) -> TopBroker:
    work = (traffic.lacking[id_], traffic.coming[id_], traffic.going[id_], traffic.to_copy.get(id_))
    if broker is None:
        return TopBroker(id_, None, None, "dead", 0, replicas, *work)
    at = broker.endpoint
    state: Literal["live", "shutting down"] = "shutting down" if broker.is_shutting_down else "live"
    address = address_text(at.host, at.port) if at.host else None
    return TopBroker(id_, address, at.rack, state, broker.leaders, broker.replicas, *work)


def _move(move: ReassignmentDescription) -> TopMove:
    copy = Copying.by(move)
    return TopMove(
        *(move.topic, move.partition, move.removing_replicas, move.adding_replicas, move.new_replicas),
        *(known(copy.has), known(copy.left), known(move.rate), seconds_of(move.eta_ms)),
        *(time_of(move.start_time_ms), time_of(move.stalled_since_ms), waits_for(move), move.setback or None),
    )


def _risk(one: AtRisk) -> TopRisk:
    state = one.state
    of = (str(one.risk), known_leader(state.leader), state.replicas, state.isr, one.least, one.missing)
    return TopRisk(state.topic, state.partition, *of, state.is_being_reassigned)


def _rollout(one: Rollout) -> TopRollout:
    if isinstance(one, Untold):
        return TopRollout(one.name, None, one.why, {}, None, None, None, None)
    state = UNUSABLE if one.fault else str(one.state)
    progress: Mapping[str, float | None] = {} if one.fault or one.state.is_over else one.progress
    left, speed, seconds = (progress.get(name) for name in ("bytes_left", "bytes_per_second", "seconds_left"))
    moves = {move.value: count for move, count in one.counts.items()}
    whole = (None if left is None else int(left), None if speed is None else int(speed))
    return TopRollout(one.name, state, one.fault or None, moves, *whole, seconds, one.carried_out_by)
