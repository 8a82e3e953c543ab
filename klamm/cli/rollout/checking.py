"""The checks of a plan before its rollout begins: against what the cluster is now, and the room on its disks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import click

from controller.admin.disks import disks_of, places_of
from controller.admin.kafka_progress import Sizes
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.plan_ids import CREATED_AGAIN, Comparison
from controller.rollout.forecast import forecast
from controller.rollout.moves import Move, Replicas, interned
from controller.rollout.room import Shortage, fit
from klamm.cli.formats import DRY_RUN, View
from klamm.cli.plan_ids import PLAN_ANEW, require_cluster, require_topics
from klamm.cli.reassignment import preview
from klamm.cli.reassignment.files import MoveFile, Targets
from klamm.cli.reassignment.log_moves import NOWHERE
from klamm.cli.rollout.brakes import named
from klamm.cli.rollout.documents import ChangedRollout, PlanNeeds, RolloutRow
from klamm.cli.rollout.options import Options
from klamm.cli.units import counted, duration, size
from transport.messages import UNKNOWN, MetadataResponse, PartitionState
from transport.metadata import NO_LEADER, TopicPartition

_NAMED: Final = 10
"""The partitions of a kind that are named, each on a line."""


async def compared(admin: MoveAdmin, metadata: MetadataResponse, file: MoveFile, *, other_cluster: bool) -> Comparison:
    """Compare the ids in a plan with those of the cluster. Raises click.ClickException if it is another cluster."""
    found = file.ids.compare(await admin.cluster_id(), metadata.partitions, other_cluster=other_cluster)
    require_cluster(found)
    return found


def judged(
    admin: MoveAdmin, metadata: MetadataResponse, file: MoveFile, options: Options, ids: Comparison
) -> dict[TopicPartition, str]:
    """Return the partitions that have changed since a plan was made, each with what has changed.

    Raises click.ClickException for a plan that is refused.
    """
    if file.log_dirs and not isinstance(admin, ForeignAdmin):
        raise click.ClickException(NOWHERE)
    if not options.skip_changed:
        require_topics(ids, f"{PLAN_ANEW}, or leave them out with --skip-changed")
    changed = changed_in(preview.states_of(metadata), file, ids.created_again)
    _refuse_faults(metadata, {tp: target for tp, target in file.targets.items() if tp not in changed})
    if changed and not options.skip_changed:
        refuse_changed(changed)
    return changed


def changed_in(
    states: Mapping[TopicPartition, PartitionState], file: MoveFile, created_again: Collection[str]
) -> dict[TopicPartition, str]:
    """Return the partitions that are not as they were when the plan was made, each with what has changed."""
    others = {tp: CREATED_AGAIN for tp in file.targets if tp.topic in created_again}
    gone = {tp: "there is no such partition" for tp in file.starts if tp not in states}
    there = {tp: start for tp, start in file.starts.items() if tp in states}
    return {**gone, **preview.stale(states, file.targets, there), **others}


def _refuse_faults(metadata: MetadataResponse, targets: Targets) -> None:
    faults = preview.faults(metadata, targets)
    for tp, fault in list(faults.items())[:_NAMED]:
        click.echo(f"{tp}: refused: {fault}", err=True)
    if faults and len(targets) == 1:
        raise click.ClickException("the only move was not begun, as it cannot be made: plan again")
    if faults:
        raise click.ClickException(
            f"none of the {len(targets):,} moves was begun, as {len(faults):,} cannot be made: plan again"
        )


def refuse_changed(changed: Mapping[TopicPartition, str]) -> None:
    """Name partitions that have changed. Raises click.ClickException."""
    _name(changed)
    have, them = ("partition has", "it") if len(changed) == 1 else ("partitions have", "them")
    raise click.ClickException(
        f"{len(changed):,} {have} changed since the plan was made: plan again, or leave {them} out with --skip-changed"
    )


def tell_left_out(changed: Mapping[TopicPartition, str]) -> None:
    """Name partitions that are left out because they have changed."""
    _name(changed)
    are, they = ("partition is", "it has") if len(changed) == 1 else ("partitions are", "they have")
    click.echo(f"{len(changed):,} {are} left out, as {they} changed", err=True)


def _name(changed: Mapping[TopicPartition, str]) -> None:
    for tp, fault in sorted(changed.items())[:_NAMED]:
        click.echo(f"{tp}: {fault}", err=True)
    if len(changed) > _NAMED:
        click.echo(f"and {len(changed) - _NAMED:,} more", err=True)


async def moves_of(
    admin: MoveAdmin,
    states: Mapping[TopicPartition, PartitionState],
    file: MoveFile,
    wanted: Iterable[TopicPartition],
    recorded: Mapping[TopicPartition, Replicas],
) -> tuple[Move, ...]:
    """Return the moves of a plan, with the sizes of their replicas; `recorded` are those before a move began."""
    sizes = await _sizes(admin, [states[tp] for tp in file.targets if tp in states])

    def before(tp: TopicPartition) -> Replicas:
        known = recorded.get(tp) or file.starts.get(tp)
        return known or (states[tp].origin_replicas if tp in states else ())

    made = (Move(*tp, before(tp), file.targets[tp], sizes.get(tp, UNKNOWN)) for tp in wanted)
    return tuple(interned(made))


def unmade(moves: Iterable[Move], states: Mapping[TopicPartition, PartitionState]) -> tuple[Move, ...]:
    """Return the moves whose partitions do not have their new replicas yet."""
    settled = {tp: state.replicas for tp, state in states.items() if not state.is_being_reassigned}
    return tuple(move for move in moves if settled.get(move.tp) != move.after)


async def _sizes(admin: MoveAdmin, states: Collection[PartitionState]) -> dict[TopicPartition, int]:
    """Return the sizes of partitions on their leaders, as far as these tell them."""
    leaders = sorted({state.leader for state in states if state.leader != NO_LEADER})
    found = Sizes.of(await admin.describe_log_dirs(leaders, sorted(state.tp for state in states)))
    return {state.tp: found.at(state.leader, state.tp) for state in states if state.leader != NO_LEADER}


async def check_room(admin: MoveAdmin, moves: Collection[Move], file: MoveFile, options: Options) -> None:
    """Raise click.ClickException if the moves do not fit the disks of brokers, as far as these tell."""
    brokers = sorted({broker for move in moves for broker in (*move.before, *move.after)})
    told = await admin.describe_log_dirs(brokers)
    disks = disks_of(told)
    receiving = {broker for move in moves for broker in move.adding}
    unknown = sorted(receiving - disks.keys())
    if unknown:
        click.echo(f"the room on the disks of brokers {named(unknown)} is not known, and not checked", err=True)
    found = fit(moves, disks, file.log_dirs, places_of(told))
    for short in found.shortages:
        click.echo(_shortage(short), err=True)
    if found.shortages and not options.ignore_room:
        worst = max(found.shortages, key=lambda one: one.missing)
        raise click.ClickException(
            f"the plan does not fit: broker {worst.broker} lacks {size(worst.missing)} ({worst.missing:,} bytes); plan "
            "again with the sizes of disks, or use --ignore-room to begin nevertheless"
        )


def _shortage(short: Shortage) -> str:
    where = f" in {short.path}" if short.path else ""
    moves = "move" if short.moves == 1 else "moves"
    return (
        f"broker {short.broker} lacks {size(short.missing)}{where}: {size(short.free)} are free for the last "
        f"{short.moves:,} {moves}, with both copies there while they move"
    )


def needs_of(moves: Collection[Move], states: Mapping[TopicPartition, PartitionState], options: Options) -> PlanNeeds:
    """Return what moves need: bytes, windows, and the time at the throttle."""
    leaders = {tp: state.leader for tp, state in states.items()}
    found = forecast(moves, leaders, options.limits, None if options.adapts else options.throttle)
    unknown = sum(move.size == UNKNOWN and bool(move.adding) for move in moves)
    return PlanNeeds(len(moves), found.bytes, unknown, found.windows, found.seconds, found.busiest)


def needs_in_words(needs: PlanNeeds) -> str:
    """Return what moves need in a line."""
    parts = [f"{counted(needs.moves, 'move')}, {size(needs.bytes)} to copy"]
    if needs.unknown_sizes:
        parts.append(f"not counting {counted(needs.unknown_sizes, 'partition')} of unknown size")
    parts.append(f"at least {counted(needs.windows, 'window')}")
    if needs.seconds is not None:
        busiest = "" if needs.busiest_broker is None else f" (broker {needs.busiest_broker} copies most)"
        parts.append(f"at least {duration(round(needs.seconds * 1000))} at the throttle{busiest}")
    return ", ".join(parts)


def checked(name: str, needs: PlanNeeds | None, status: RolloutRow | None = None, partial: str | None = None) -> View:
    """Return the view of a dry run; `partial` says what is hidden from the user."""
    words = [] if needs is None else [needs_in_words(needs)]
    return View(ChangedRollout(name, "checked", needs, status, partial), [*words, DRY_RUN])
