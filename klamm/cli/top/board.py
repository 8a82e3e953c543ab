"""The tables of `klamm top`: brokers, moves in flight, partitions at risk, rollouts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from controller.admin.moves import waits_for
from controller.rollout.states import MoveState
from klamm.cli.rollout.report import UNUSABLE
from klamm.cli.top.facts import AtRisk, Copying, at_risk
from klamm.cli.top.reading import Reading
from klamm.cli.top.rollouts import Rollout, Untold
from klamm.cli.top.tables import Cell, Column, Row, Table, Tone
from klamm.cli.units import counted, duration, moment, rate, size
from transport.addresses import address_text
from transport.messages import UNKNOWN, UNTHROTTLED, DescribedBroker, ReassignmentDescription, ReplicaProgress

BAR_CELLS: Final = 20
MOST_AT_RISK: Final = 10_000
"""The partitions at risk that are listed, the worst first: more than anybody reads. All are counted above."""

_NOTHING: Final = Cell("-")
_NAME: Final = 14
"""The width that names keep in little room."""

_WORDS: Final = 14
"""The same for sentences, which are told in full when their row is selected."""


def tables(reading: Reading, rollouts: Sequence[Rollout] = ()) -> tuple[Table, ...]:
    """Return all tables."""
    risks = at_risk(reading)
    return _brokers(reading, risks), _moves(reading), _risks(risks), _rollouts(rollouts)


# --- brokers --------------------------------------------------------------------------------------------------------

_BROKERS: Final = (
    Column("id", to_right=True),
    Column("address", spare=3),
    Column("rack", spare=4),
    Column("state"),
    Column("leaders", to_right=True),
    Column("replicas", to_right=True),
    Column("out of ISR", to_right=True),
    Column("moves in", to_right=True),
    Column("out", to_right=True),
    Column("to copy", to_right=True, spare=2),
)


@define
class Traffic:
    """The work of moves on each broker. A move that has no byte left to copy still waits for its broker."""

    coming: Counter[int] = field(factory=Counter)
    going: Counter[int] = field(factory=Counter)
    to_copy: Counter[int] = field(factory=Counter)
    lacking: Counter[int] = field(factory=Counter)

    @classmethod
    def of(cls, reading: Reading, risks: Sequence[AtRisk]) -> Traffic:
        """Return the work of the moves of a reading with these partitions at risk."""
        found = cls()
        for move in reading.moves:
            found.going.update(move.removing_replicas)
            for item in move.progress:
                if item.broker in move.adding_replicas and not item.in_sync:
                    found.coming[item.broker] += 1
                    if UNKNOWN not in (item.leader_bytes, item.log_bytes):
                        found.to_copy[item.broker] += max(item.leader_bytes - item.log_bytes, 0)
        found.lacking.update(broker for one in risks for broker in one.missing)
        return found


def _brokers(reading: Reading, risks: Sequence[AtRisk]) -> Table:
    traffic = Traffic.of(reading, risks)
    live = {broker.endpoint.id: broker for broker in reading.cluster.brokers}
    # Those that are not alive are known by their replicas.
    replicas = Counter(r for state in reading.partitions for r in state.replicas if r not in live)
    rows = [_broker(id_, live.get(id_), replicas[id_], traffic) for id_ in sorted({*live, *replicas})]
    return Table("Brokers", _BROKERS, tuple(rows), "no broker is alive")


def _broker(id_: int, broker: DescribedBroker | None, replicas: int, traffic: Traffic) -> Row:
    address, rack, state, leaders = "-", None, Cell("dead", 0, Tone.BAD), 0
    if broker is not None:
        address, rack = address_text(broker.endpoint.host, broker.endpoint.port), broker.endpoint.rack
        state = Cell("shutting down", 1, Tone.WARNING) if broker.is_shutting_down else Cell("live", 2)
        leaders, replicas = broker.leaders, broker.replicas
    coming, going, lacking = traffic.coming[id_], traffic.going[id_], traffic.lacking[id_]
    to_copy = traffic.to_copy[id_]
    cells = (
        Cell(str(id_), id_),
        Cell(address, address),
        Cell(rack or "-", rack),
        state,
        _number(leaders),
        _number(replicas),
        Cell(f"{lacking:,}", lacking, Tone.WARNING if lacking else Tone.FAINT),
        _few(coming),
        _few(going),
        Cell(size(to_copy), to_copy) if id_ in traffic.to_copy else _NOTHING,
    )
    detail = (
        f"broker {id_} at {address}{f', rack {rack}' if rack else ''}: {state.text}, leads {leaders:,} of "
        f"{counted(replicas, 'replica')}, {lacking:,} out of the ISR; {counted(coming, 'move')} to it, "
        f"{going:,} away from it"
    )
    return Row(id_, cells, detail)


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _few(value: int) -> Cell:
    """Return a number that is usually 0, and then not in the way."""
    return Cell(f"{value:,}", value, Tone.PLAIN if value else Tone.FAINT)


# --- moves ----------------------------------------------------------------------------------------------------------

_MOVES: Final = (
    Column("partition", least=_NAME),
    Column("from"),
    Column("to"),
    Column("done", to_right=True),
    Column("progress", spare=9),
    Column("left", to_right=True, spare=3),
    Column("rate", to_right=True, spare=5),
    Column("time left", to_right=True, spare=4),
    Column("started", spare=8),
    Column("waits for", least=_WORDS),
)


def _moves(reading: Reading) -> Table:
    # What is stalled comes first.
    moves = sorted(reading.moves, key=lambda move: (move.stalled_since_ms == UNKNOWN, move.tp))
    rows = tuple(map(_move, moves))
    return Table("Moves", _MOVES, rows, "no move is in flight")


def _move(move: ReassignmentDescription) -> Row:
    copy, why = Copying.by(move), waits_for(move)
    is_stalled = move.stalled_since_ms != UNKNOWN
    share = None if copy.of == UNKNOWN else copy.has / copy.of if copy.of else 1.0
    cells = (
        Cell(str(move.tp), move.tp),
        _ids(move.removing_replicas),
        _ids(move.adding_replicas),
        _NOTHING if share is None else Cell(f"{int(share * 100)}%", share),
        _NOTHING if share is None else Cell(_bar(share), share, Tone.GOOD),
        _NOTHING if copy.left == UNKNOWN else Cell(size(copy.left), copy.left),
        _NOTHING if move.rate == UNKNOWN else Cell(rate(move.rate), move.rate),
        _NOTHING if move.eta_ms == UNKNOWN else Cell(duration(move.eta_ms), move.eta_ms),
        _NOTHING if move.start_time_ms == UNKNOWN else Cell(moment(move.start_time_ms)[11:], move.start_time_ms),
        Cell(f"stalled: {why}" if is_stalled else why, (not is_stalled, why), _tone_of(move)),
    )
    return Row(move.tp, cells, _of_move(move, why))


def _tone_of(move: ReassignmentDescription) -> Tone:
    return Tone.BAD if move.stalled_since_ms != UNKNOWN else Tone.PLAIN


def _ids(ids: Sequence[int]) -> Cell:
    return Cell(",".join(map(str, ids)), tuple(ids)) if ids else _NOTHING


def _bar(share: float) -> str:
    full = int(share * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)


def _of_move(move: ReassignmentDescription, why: str) -> str:
    at_first, then = (",".join(map(str, ids)) for ids in (move.origin_replicas, move.new_replicas))
    parts = [f"{move.tp}: replicas {at_first} become {then}", f"waits for {why}"]
    if not move.waits_for:
        parts += _of_replicas(move)
    if move.stalled_since_ms != UNKNOWN:
        parts.insert(1, f"stalled since {moment(move.stalled_since_ms)[11:]}")
    if move.setback:
        parts.append(f"had to copy again: {move.setback}")
    return "; ".join(parts)


def _of_replicas(move: ReassignmentDescription) -> Iterator[str]:
    for item in move.progress:
        if item.broker in move.adding_replicas and (item.in_sync or item.leader_bytes != UNKNOWN):
            yield f"broker {item.broker} {_of_replica(item)}"


def _of_replica(item: ReplicaProgress) -> str:
    if item.in_sync:
        return "is in sync"
    slow = "" if item.throttle in (UNTHROTTLED, UNKNOWN) else f" at up to {rate(item.throttle)}"
    return f"has {size(item.log_bytes)} of {size(item.leader_bytes)}{slow}"


# --- partitions at risk ---------------------------------------------------------------------------------------------

_RISKS: Final = (
    Column("partition", least=_NAME),
    Column("risk"),
    Column("leader", to_right=True),
    Column("replicas", spare=1),
    Column("ISR"),
    Column("min", to_right=True, spare=2),
    Column("missing"),
    Column("moving", spare=3),
)


def _risks(risks: Sequence[AtRisk]) -> Table:
    return Table("At risk", _RISKS, tuple(map(_risk, risks[:MOST_AT_RISK])), "no partition is at risk")


def _risk(one: AtRisk) -> Row:
    state = one.state
    cells = (
        Cell(str(state.tp), state.tp),
        Cell(str(one.risk), one.risk, one.risk.tone),
        Cell(str(state.leader), state.leader) if state.leader >= 0 else Cell("none", -1, Tone.BAD),
        _ids(state.replicas),
        _ids(state.isr),
        _NOTHING if one.least is None else _number(one.least),
        _ids(one.missing),
        Cell("yes" if state.is_being_reassigned else "no", state.is_being_reassigned),
    )
    isr, replicas = (",".join(map(str, ids)) or "nobody" for ids in (state.isr, state.origin_replicas))
    leader = f"led by {state.leader}" if state.leader >= 0 else "without a leader"
    least = "" if one.least is None else f", of which min.insync.replicas wants {one.least}"
    missing = f"; missing: {', '.join(map(str, one.missing))}" if one.missing else ""
    return Row(state.tp, cells, f"{state.tp} is {one.risk}: {leader}, in sync {isr} of {replicas}{least}{missing}")


# --- rollouts -------------------------------------------------------------------------------------------------------

_ROLLOUTS: Final = (
    Column("rollout", least=_NAME),
    Column("state", least=_WORDS),
    Column("done", to_right=True),
    Column("of", to_right=True),
    Column("in flight", to_right=True),
    Column("not as planned", to_right=True, spare=6),
    Column("progress", spare=9),
    Column("left", to_right=True, spare=3),
    Column("rate", to_right=True, spare=5),
    Column("time left", to_right=True, spare=2),
    Column("carried out by", spare=8, least=_WORDS),
)
_ODD: Final = (MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED)
_OVER: Final = (MoveState.DONE, *_ODD, MoveState.BACK)
_NONE_GIVEN: Final = "no rollout: one that runs outside the controller is shown if its plan is named: klamm top PLAN"


def _rollouts(rollouts: Sequence[Rollout]) -> Table:
    return Table("Rollouts", _ROLLOUTS, tuple(map(_rollout, rollouts)), _NONE_GIVEN)


def _rollout(one: Rollout) -> Row:
    if isinstance(one, Untold) or one.fault:
        state, tone = (one.why, Tone.PLAIN) if isinstance(one, Untold) else (UNUSABLE, Tone.BAD)
        nothing = (_NOTHING,) * (len(_ROLLOUTS) - 2)
        text = one.why if isinstance(one, Untold) else one.line
        return Row(one.name, (Cell(one.name, one.name), Cell(state, state, tone), *nothing), f"{one.name}: {text}")
    counts, is_over = Counter(one.counts), one.state.is_over
    over, odd = sum(counts[state] for state in _OVER), sum(counts[state] for state in _ODD)
    share = over / one.total if one.total else 0.0
    behind = 0 if is_over else one.others.get("queued_behind", 0)
    state = "in the queue" if behind else str(one.state)
    told = {} if is_over else one.progress
    left, speed, seconds = (told.get(name) for name in ("bytes_left", "bytes_per_second", "seconds_left"))
    runner = "" if is_over else one.carried_out_by
    cells = (
        Cell(one.name, one.name),
        Cell(state, state, Tone.WARNING if one.state.is_paused else Tone.PLAIN),
        _number(counts[MoveState.DONE]),
        _number(one.total),
        _few(counts[MoveState.IN_FLIGHT] + counts[MoveState.GOING_BACK]),
        Cell(f"{odd:,}", odd, Tone.WARNING if odd else Tone.FAINT),
        Cell(_bar(share), share, Tone.GOOD),
        _NOTHING if left is None else Cell(size(left), left),
        _NOTHING if speed is None else Cell(rate(speed), speed),
        _NOTHING if seconds is None else Cell(duration(seconds * 1000), seconds),
        Cell(runner, runner) if runner else Cell("-" if is_over else "nobody", ""),
    )
    place = [f"behind {counted(behind, 'other')}"] if behind else []
    return Row(one.name, cells, "; ".join([f"{one.name}: {one.line}", *place, *_waits(told)]))


def _waits(progress: Mapping[str, Any]) -> Iterator[str]:
    for text, count in progress.get("waits", {}).items():
        yield f"{count:,} wait{'s' if count == 1 else ''}: {text}"
