"""`klamm reassignment list` and `describe`: the moves in progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import asdict

from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import waits_for
from controller.admin.reassignments import ReassignmentDescriptions
from controller.admin.visibility import Visibility
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Table, Time, View, known, output_options, seconds_of, time_of
from klamm.cli.output import known_leader
from klamm.cli.reassignment.naming import Naming, naming_options
from klamm.cli.running import is_given
from klamm.cli.units import duration, moment, rate, size
from klamm.cli.visibility import note
from transport.acls import Operation, needs
from transport.host import Host
from transport.messages import UNKNOWN, UNTHROTTLED, ReassignmentDescription, ReplicaProgress

_LIST_COLUMNS: Final = ("partition", "replicas", "adding", "removing", "isr", "leader", "waits for", "started")
_PROGRESS_COLUMNS: Final = ("broker", "in sync", "has", "of", "records behind", "throttle", "log end offset")


class MoveRow(Struct):
    """A move in progress, and its partition; the leader is null if there is none."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    start_time: Time | None


class ListedMove(MoveRow):
    """A move in progress. `partial` says what the list lacks because topics are hidden; null for a complete one."""

    partial: str | None = None


class ReplicaRow(Struct):
    """How far a replica is. The throttle is in bytes per second, null without one or if it is not known."""

    broker: int
    in_sync: bool
    log_bytes: int | None
    leader_bytes: int | None
    log_end_offset: int | None
    offset_lag: int | None
    throttle: int | None


class DescribedMove(MoveRow):
    """A move in progress, and how far it is. Rates and throttles are in bytes per second; null stands for no throttle.

    `stalled_since` is null if the move is not stalled. `partial` says what the list lacks because topics are hidden;
    null for a complete one.
    """

    new_replicas: tuple[int, ...]
    waits_for: str | None
    rate: int | None
    eta_seconds: float | None
    stalled_since: Time | None
    leader_throttle: int | None
    progress: list[ReplicaRow]
    partial: str | None = None


@click.command(name="list")
@naming_options
@output_options(list[ListedMove], watch=True)
@cluster_options
def list_(cluster: Cluster, naming: Naming) -> View:
    """List the moves in progress."""
    found, partial = _in_progress(cluster, naming)
    rows = [ListedMove(**asdict(_row(move)), partial=partial) for move in found]
    if not found:
        return View(rows, [naming.nothing, *note(partial)])
    cells = [
        (
            *(str(m.tp), m.replicas, m.adding_replicas, m.removing_replicas, m.isr),
            *(known_leader(m.leader), waits_for(m), _started(m)),
        )
        for m in found
    ]
    return View(rows, [Table(_LIST_COLUMNS, cells, wide=("leader", "waits for")), *note(partial)])


@click.command()
@naming_options
@output_options(list[DescribedMove], watch=True)
@cluster_options
def describe(cluster: Cluster, naming: Naming) -> View:
    """Show the progress of moves. This includes what they wait for, and whether they are stalled."""
    found, partial = _in_progress(cluster, naming)
    # A move that is watched may end; a pattern may match none.
    is_named = naming.topic is not None and not naming.is_pattern
    if is_named and not found and not is_given("watch"):
        raise click.ClickException(f"{naming.nothing}: see `klamm reassignment list`")
    rows = [_described(move, partial) for move in found]
    if not found:
        return View(rows, [naming.nothing, *note(partial)], is_over=is_named)
    return View(rows, [*_parts(found, Host().now_ms()), *note(partial)])


def _in_progress(cluster: Cluster, naming: Naming) -> tuple[list[ReassignmentDescription], str | None]:
    """Return the moves that are named, and what the list lacks. Raises click.ClickException for a hidden topic."""
    named = {} if naming.topic is None or naming.is_pattern else {naming.topic: 1}

    async def work(admin: MoveAdmin) -> tuple[ReassignmentDescriptions, Visibility]:
        return await admin.describe_reassignments(), await admin.visibility(named)

    found, visibility = cluster.ask_moves(work)
    for topic in visibility.hidden:
        raise click.ClickException(f"topic {topic} is hidden: {needs(Operation.DESCRIBE, topic)}")
    moves = sorted((move for move in found.values() if naming.has(move.tp)), key=lambda move: move.tp)
    return moves, None if named else visibility.lacking_topics


def _started(move: ReassignmentDescription) -> str:
    return moment(move.start_time_ms)


def _row(move: ReassignmentDescription) -> MoveRow:
    of_replicas = (move.replicas, move.adding_replicas, move.removing_replicas)
    return MoveRow(*move.tp, *of_replicas, known_leader(move.leader), move.isr, time_of(move.start_time_ms))


def _described(move: ReassignmentDescription, partial: str | None) -> DescribedMove:
    """Return a description with null for unknown values and for a throttle that is not set."""
    return DescribedMove(
        **asdict(_row(move)),
        new_replicas=move.new_replicas,
        waits_for=move.waits_for or None,
        rate=known(move.rate),
        eta_seconds=seconds_of(move.eta_ms),
        stalled_since=time_of(move.stalled_since_ms),
        leader_throttle=_throttle(move.leader_throttle),
        progress=list(map(_replica, move.progress)),
        partial=partial,
    )


def _replica(item: ReplicaProgress) -> ReplicaRow:
    return ReplicaRow(
        item.broker,
        item.in_sync,
        known(item.log_bytes),
        known(item.leader_bytes),
        known(item.log_end_offset),
        known(item.offset_lag),
        _throttle(item.throttle),
    )


def _throttle(bytes_per_second: int) -> int | None:
    return None if bytes_per_second == UNTHROTTLED else known(bytes_per_second)


# --- tables -----------------------------------------------------------------------------------------------------


def _parts(found: Sequence[ReassignmentDescription], now_ms: int) -> Iterator[Table | str]:
    for number, move in enumerate(found):
        if number:
            yield ""
        yield Table([str(move.tp), ""], _facts(move, now_ms))
        yield ""
        cells = list(map(_progress_cells, move.progress))
        numbers = ("has", "of", "records behind", "log end offset")
        yield Table(_PROGRESS_COLUMNS, cells, wide=("log end offset",), numbers=numbers)


def _facts(move: ReassignmentDescription, now_ms: int) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("replicas", move.replicas),
        ("new replicas", move.new_replicas),
        ("adding", move.adding_replicas),
        ("removing", move.removing_replicas),
        ("isr", move.isr),
        ("leader", f"{_broker(move.leader)}, {rate(move.leader_throttle)}"),
        ("started", _ago(move.start_time_ms, now_ms)),
        ("waits for", waits_for(move)),
    ]
    if move.stalled_since_ms != UNKNOWN:
        facts.append(("stalled since", _ago(move.stalled_since_ms, now_ms)))
    return [*facts, ("rate", rate(move.rate)), ("left", duration(move.eta_ms))]


def _broker(broker_id: int) -> str:
    return "none" if broker_id < 0 else str(broker_id)


def _ago(time_ms: int, now_ms: int) -> str:
    return moment(time_ms) if time_ms == UNKNOWN else f"{moment(time_ms)}, {duration(max(now_ms - time_ms, 0))} ago"


def _progress_cells(item: ReplicaProgress) -> tuple[object, ...]:
    lag = "unknown" if item.offset_lag == UNKNOWN else f"{item.offset_lag:,}"
    in_sync = "yes" if item.in_sync else "no"
    has, of = size(item.log_bytes), size(item.leader_bytes)
    return item.broker, in_sync, has, of, lag, rate(item.throttle), known(item.log_end_offset)
