"""The start of a rollout: the plan is held against the cluster, and refused as a whole or begun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import click
from attrs import frozen

from controller.admin.client import AdminClient
from controller.admin.move_admin import MoveAdmin
from controller.admin.plan_ids import Comparison, PlanIds
from controller.rollout.moves import Move
from controller.rollout.states import MoveState, Phase
from klamm.cli.plan_ids import OTHERWISE, tell_unchecked
from klamm.cli.reassignment import preview
from klamm.cli.reassignment.files import MoveFile
from klamm.cli.rollout import described
from klamm.cli.rollout.brakes import named
from klamm.cli.rollout.checking import check_room, compared, judged, moves_of, needs_of, unmade
from klamm.cli.rollout.documents import PlanNeeds
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options
from klamm.cli.rollout.plan_files import Plan, PlanFiles
from transport.messages import MetadataResponse
from transport.metadata import TopicPartition

_LEFT: Final = frozenset({MoveState.PENDING, MoveState.IN_FLIGHT})


@frozen
class Start:
    """The moves of a plan, with their sizes, and what was found when they were read."""

    moves: tuple[Move, ...]
    metadata: MetadataResponse
    needs: PlanNeeds | None
    """What the moves need that are left, None if they are not carried out but taken back."""

    partial: str | None
    """What is hidden from us, None if nothing is."""


async def start(admin: MoveAdmin, plan: Plan, options: Options, journal: Journal, history: History) -> Start:
    """Return the moves of a plan once its rollout is in the journal; a dry run enters nothing there.

    Raises click.ClickException for a plan that is refused.
    """
    cluster_id = await admin.cluster_id()
    if history.digest not in {None, plan.digest}:
        raise click.ClickException(
            "the plan has changed since its rollout began: restore it, or carry the other one out from another folder"
        )
    metadata = await admin.read_metadata(sorted({tp.topic for tp in plan.file.targets}))
    partial = (await admin.visibility()).partial
    if partial is not None:
        click.echo(f"{partial}: pause conditions see no more", err=True)
    changed: dict[TopicPartition, str] = {}
    ids = Comparison()
    if history.digest is not None:
        _require_same(history, cluster_id, metadata, options)
    else:
        ids = await compared(admin, metadata, plan.file, other_cluster=options.other_cluster)
        changed = judged(admin, metadata, plan.file, options, ids)
        await _refuse_foreign(admin, plan.file)
    states = preview.states_of(metadata)
    wanted = [tp for tp in plan.file.targets if tp not in changed]
    moves = await moves_of(admin, states, plan.file, wanted, history.before)
    left = [move for move in unmade(moves, states) if history.state_of(move.tp) in _LEFT]
    if history.digest is None:
        await check_room(admin, left, plan.file, options)
        tell_unchecked(ids, is_plan=bool(plan.file.starts))
    needs = needs_of(left, states, options) if history.state.phase is Phase.RUNNING else None
    if history.digest is None and not options.dry_run:
        _enter(journal, plan, moves, metadata, changed, cluster_id)
    return Start(moves, metadata, needs, partial)


async def require_same(admin: MoveAdmin, files: PlanFiles, plan: Plan, options: Options) -> None:
    """Raise click.ClickException if the rollout of a plan began on another cluster."""
    history = History()
    history.take(Journal(files.journal).read())
    metadata = await admin.read_metadata(sorted({tp.topic for tp in plan.file.targets}))
    _require_same(history, await admin.cluster_id(), metadata, options)


def _require_same(history: History, cluster_id: str | None, metadata: MetadataResponse, options: Options) -> None:
    """Refuse to go on with a rollout on another cluster: it would find its moves overridden there.

    Topics that were created again on its own cluster are left to the rollout, which leaves them out. If the ids of
    the clusters are not known, it is taken for another one where no topic is the one of then.
    """
    if options.other_cluster:
        return
    then, began = PlanIds(history.cluster_id, history.topics), "the rollout of this plan began"
    if None not in {cluster_id, history.cluster_id}:
        if cluster_id != history.cluster_id:
            raise click.ClickException(
                f"{began} on cluster {history.cluster_id}, and this is cluster {cluster_id}: {OTHERWISE}"
            )
        return
    found = then.compare(cluster_id, metadata.partitions)
    if found.created_again and found.created_again == tuple(sorted({state.topic for state in metadata.partitions})):
        raise click.ClickException(
            f"since {began}, all of its topics were deleted and created again, or this is another cluster: {OTHERWISE}"
        )


async def _refuse_foreign(admin: MoveAdmin, file: MoveFile) -> None:
    """Refuse to begin while somebody else moves partitions; a move that is in the plan may be in flight."""
    if isinstance(admin, AdminClient):
        await described.refuse_running(admin)
    moving = await admin.list_partition_reassignments()
    foreign = [move.tp for move in moving if file.targets.get(move.tp) != move.target_replicas]
    if foreign:
        are = "is" if len(foreign) == 1 else "are"
        raise click.ClickException(
            f"{named(foreign)} {are} being moved by somebody else: wait until `klamm reassignment list` shows no more"
        )


def _enter(
    journal: Journal,
    plan: Plan,
    moves: Iterable[Move],
    metadata: MetadataResponse,
    changed: Mapping[TopicPartition, str],
    cluster_id: str | None,
) -> None:
    """Put the start into the journal, with what is needed to continue from there."""
    journal.add(
        "started",
        plan=plan.digest,
        cluster_id=cluster_id,
        moves=len(plan.file.targets),
        topics={state.topic: state.topic_id for state in metadata.partitions},
        brokers=sorted(broker.id for broker in metadata.brokers),
        before=[[*move.tp, move.before] for move in moves if move.tp not in plan.file.starts],
        skipped=[[*tp, fault] for tp, fault in changed.items()],
    )
