"""`klamm reassignment cancel`: cancel some or all moves, wait until the partitions are restored, and report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click
from attrs import define, evolve, field, frozen

from controller.admin.active_controller import OutcomeUnknown
from controller.admin.log_mover import Directories
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.move_record import out_of_order
from controller.admin.moves import MoveStatus, MoveWatch, waits_for
from controller.admin.znode_moves import NO_CANCEL, ZnodeMoves
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import DRY_RUN, Note, View, confirm, dry_run_option, output_options, yes_option
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.files import MoveFile, Targets, json_file, read_document
from klamm.cli.reassignment.log_copies import LogCopies, copies_anywhere, copies_of_file
from klamm.cli.reassignment.naming import Naming, naming_options
from klamm.cli.reassignment.outcomes import MoveOutcome, OutcomeRow, PartitionOutcome, view
from klamm.cli.reassignment.record_file import RecordFile, find_record
from klamm.cli.reassignment.watching import show_until_over
from klamm.cli.running import stoppable
from klamm.interrupts import INTERRUPTED
from transport.errors import ErrorCode, reason_of
from transport.messages import PartitionError, ReassignablePartition, ReassignmentDescription
from transport.metadata import TopicPartition

_NAMED: Final = 10
"""The partitions that a question names."""


@frozen
class Options:
    """The moves to cancel, and the options for it.

    `document` is the content of the file that names them, if there is one, and `executed` the file beside which
    `execute` has recorded what was before.
    """

    document: MoveFile | None
    executed: Path | None
    naming: Naming
    waits: bool
    dry_run: bool
    confirmed: tuple[TopicPartition, ...] | None = None
    """The partitions that a pattern has matched, and an operator has confirmed."""


@click.command()
@json_file(required=False)
@naming_options
@click.option("--all", "every", is_flag=True, help="Cancel all moves in progress.")
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file that `execute` was given, if it is another one: the record beside it tells what to restore.",
)
@click.option("--no-wait", is_flag=True, help="Return as soon as the cancels are certain to happen.")
@dry_run_option
@yes_option
@output_options(list[OutcomeRow])
@changed_cluster_options
def cancel(  # noqa: PLR0913  one for each option
    cluster: Cluster,
    file: Path | None,
    naming: Naming,
    plan: Path | None,
    *,
    every: bool,
    no_wait: bool,
    dry_run: bool,
    yes: bool,
) -> View:
    """Cancel moves. Wait until the partitions have their original replicas again.

    With a pattern of topics, the command names the partitions, and asks before it cancels their moves.
    """
    if [file is not None, naming.topic is not None, every].count(True) != 1:
        raise click.UsageError("give either --reassignment-json-file, --topic and --partition, or --all")
    document = None if file is None else read_document(file)
    options = Options(document, plan or file, naming, not no_wait, dry_run)
    if naming.is_pattern and not dry_run:
        partitions, _ = cluster.ask_moves(partial(_meant, options=options))
        if not partitions:
            return _nothing(naming)
        confirm(_question(partitions), yes=yes)
        options = evolve(options, confirmed=partitions)
    return cluster.ask_moves(partial(_cancel, options=options))


def _question(partitions: Sequence[TopicPartition]) -> str:
    listed = ", ".join(map(str, partitions[:_NAMED]))
    more = len(partitions) - _NAMED
    listed += f" and {more:,} more" if more > 0 else ""
    return f"Cancel the move{'' if len(partitions) == 1 else 's'} of {listed}?"


def _nothing(naming: Naming) -> View:
    """Return the view if there is no move to cancel: an error only for a topic or partition that is named."""
    is_named = naming.topic is not None and not naming.is_pattern
    return View([], [Note(f"{naming.nothing}: there is nothing to cancel")], int(is_named))


async def _cancel(admin: MoveAdmin, options: Options) -> View:
    record = None if options.executed is None else await find_record(admin, options.executed)
    document = options.document or MoveFile({})
    partitions, copies = await _meant(admin, options)
    if not partitions:
        return _nothing(options.naming)
    if options.dry_run:
        return await _checked(admin, partitions, copies)
    cancelling = Cancelling(admin, partitions, _orders(admin, document.starts, record), copies)
    await cancelling.begin()
    interrupted = options.waits and await stoppable(cancelling.wait)
    await cancelling.restore_order()
    outcomes = await cancelling.outcomes()
    good = (MoveOutcome.CANCELLED,) if options.waits else (MoveOutcome.CANCELLED, MoveOutcome.IN_PROGRESS)
    await throttling.end(admin, partitions, record, document.targets)
    is_good = all(item.outcome in good for item in outcomes)
    bad_code = INTERRUPTED if interrupted else 1
    return view(outcomes, *good, code=0 if is_good else bad_code)


async def _meant(admin: MoveAdmin, options: Options) -> tuple[tuple[TopicPartition, ...], LogCopies | None]:
    """Return the partitions whose moves are to be cancelled, and the copies of logs that are to be stopped."""
    document = options.document or MoveFile({})
    copies = await _copies(admin, document.log_dirs, options)
    named = options.confirmed or tuple(document.targets)
    return named or await _in_progress(admin, options.naming, copies), copies


async def _checked(admin: MoveAdmin, partitions: Sequence[TopicPartition], copies: LogCopies | None) -> View:
    """Return what a cancel would do, as far as it can be known before."""
    under_way = {move.tp: move for move in (await admin.describe_reassignments()).values()}
    copied = () if copies is None else copies.partitions

    def check(tp: TopicPartition) -> PartitionOutcome:
        move = under_way.get(tp)
        if isinstance(admin, ZnodeMoves):
            return PartitionOutcome(tp, MoveOutcome.REFUSED, (), f"refused: {NO_CANCEL}")
        if move is not None:
            origin = move.origin_replicas
            text = f"would be cancelled, and have replicas {list(origin)} again"
            return PartitionOutcome(tp, MoveOutcome.CHECKED, origin, text)
        if tp in copied:
            return PartitionOutcome(tp, MoveOutcome.CHECKED, (), "the copies of its logs would be stopped")
        text = f"refused: {tp} is not being reassigned: there is nothing to cancel"
        return PartitionOutcome(tp, MoveOutcome.REFUSED, (), text)

    outcomes = list(map(check, partitions))
    is_good = all(item.outcome is MoveOutcome.CHECKED for item in outcomes)
    shown = view(outcomes, MoveOutcome.CHECKED, code=int(not is_good))
    return evolve(shown, parts=[*shown.parts, DRY_RUN])


def _orders(admin: MoveAdmin, before: Targets, file: RecordFile | None) -> Targets:
    """Return the replicas in the order in which they are to be again, where a cluster does not know it."""
    if not isinstance(admin, ForeignAdmin):
        return {}
    record = None if file is None else file.read()
    return before if record is None else {**before, **record.replicas}


async def _copies(admin: MoveAdmin, directories: Directories, options: Options) -> LogCopies | None:
    """Return the copies of logs that are to be stopped; None in clusters whose brokers make none."""
    if not isinstance(admin, ForeignAdmin):
        return None
    if options.document is not None:
        return await copies_of_file(admin, directories) if directories else None
    naming = options.naming
    if options.confirmed is not None:
        return await copies_anywhere(admin, options.confirmed)
    if naming.topic is None:
        return await copies_anywhere(admin, None)
    states = (await admin.read_metadata(None if naming.is_pattern else [naming.topic])).partitions
    return await copies_anywhere(admin, [state.tp for state in states if naming.has(state.tp)])


async def _in_progress(admin: MoveAdmin, naming: Naming, copies: LogCopies | None) -> tuple[TopicPartition, ...]:
    if naming.one is not None:
        return (naming.one,)
    in_progress = (await admin.describe_reassignments()).values()
    moving = {move.tp for move in in_progress if naming.has(move.tp)}
    return tuple(sorted(moving.union(() if copies is None else copies.partitions)))


@define
class Cancelling:
    """Partitions whose moves are cancelled, so that their original replicas are restored.

    Kafka restores them in the order of the move: `orders` has the original one, as far as it is known.
    """

    admin: MoveAdmin
    partitions: Sequence[TopicPartition]
    orders: Targets = field(factory=dict)
    copies: LogCopies | None = None
    """Copies of logs between directories of a broker, which are stopped as well."""

    _refused: list[PartitionOutcome] = field(factory=list)
    _reordered: set[TopicPartition] = field(factory=set)
    """The partitions that may have had another order of replicas, which nothing tells any more."""

    _watch: MoveWatch | None = None

    async def begin(self) -> None:
        """Cancel all moves in one request, and stop copies of logs."""
        under_way = {move.tp: move for move in (await self.admin.describe_reassignments()).values()}
        wanted = [ReassignablePartition(tp.topic, tp.partition, None) for tp in self.partitions]
        try:
            answered = (await self.admin.alter_partition_reassignments(wanted)).partitions
        except OutcomeUnknown as error:
            click.echo(f"{error}: checking the cluster", err=True)
            answered = tuple(PartitionError(*tp) for tp in self.partitions)
        begun: dict[TopicPartition, tuple[int, ...]] = {}
        is_over = {item.tp for item in answered if item.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
        cancelled_before = await self._out_of_order(is_over)
        copied = set() if self.copies is None else {tp for tp in self.copies.partitions if tp not in under_way}
        for item in answered:
            tp = item.tp
            if tp in cancelled_before:
                begun[tp] = cancelled_before[tp]
                continue
            if tp in copied and item.error in {ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}:
                continue
            if item.error is ErrorCode.NONE:
                begun[tp] = under_way[tp].origin_replicas if tp in under_way else ()
                continue
            now = under_way[tp].new_replicas if tp in under_way else ()
            text = f"refused: {reason_of(item.error, item.message)}"
            self._refused.append(PartitionOutcome(tp, MoveOutcome.REFUSED, now, text))
        self._watch = MoveWatch(self.admin, begun)
        if isinstance(self.admin, ForeignAdmin):
            moves = [under_way[tp] for tp in begun if tp in under_way and tp not in self.orders]
            self._reordered = {move.tp for move in moves if _may_reorder(move)}
        if self.copies is not None:
            await self.copies.stop()

    async def wait(self) -> None:
        """Show the progress until all partitions are restored."""
        if self._watch is not None and self._watch.targets:
            await show_until_over(self._watch)

    async def restore_order(self) -> None:
        """Give replicas that are restored their original order, if it is known and not theirs."""
        if self._watch is None:
            return
        wrong = await self._out_of_order(self._watch.targets)
        if not wrong:
            return
        wanted = [ReassignablePartition(tp.topic, tp.partition, order) for tp, order in wrong.items()]
        try:
            answered = (await self.admin.alter_partition_reassignments(wanted)).partitions
        except OutcomeUnknown as error:
            click.echo(f"{error}: checking the cluster", err=True)
            answered = ()
        for item in answered:
            if item.error is not ErrorCode.NONE:
                text = reason_of(item.error, item.message)
                click.echo(f"{item.tp}: the order {list(wrong[item.tp])} is not restored: {text}", err=True)
        # What it has seen are the replicas in the other order.
        self._watch = MoveWatch(self.admin, self._watch.targets)

    async def _out_of_order(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return those partitions that have their original replicas in another order, and the original one."""
        orders = {tp: self.orders[tp] for tp in partitions if tp in self.orders}
        if not orders:
            return {}
        states = (await self.admin.read_metadata(sorted({tp.topic for tp in orders}))).partitions
        return out_of_order(states, orders)

    async def outcomes(self) -> list[PartitionOutcome]:
        """Return the outcome for each partition that was part of the request."""
        if self._watch is None:
            return []
        status = await self._watch.look()
        found = {item.tp: item for item in self._refused}
        found |= {tp: self._outcome(tp, origin, status) for tp, origin in self._watch.targets.items()}
        if self.copies is not None and self.copies.partitions:
            states = (await self.admin.read_metadata(sorted({tp.topic for tp in self.copies.partitions}))).partitions
            found |= self.copies.judge(found, {state.tp: state.replicas for state in states})
        return [found[tp] for tp in self.partitions if tp in found]

    def _outcome(self, tp: TopicPartition, origin: tuple[int, ...], status: MoveStatus) -> PartitionOutcome:
        """Judge by the set of replicas, and tell of their order."""
        if tp not in status.ended:
            move = next((move for move in status.ongoing if move.tp == tp), None)
            if move is not None and set(move.new_replicas) != set(origin):
                text = f"not cancelled, is being moved to {list(move.new_replicas)}: try again"
                return PartitionOutcome(tp, MoveOutcome.NOT_AS_ASKED, move.new_replicas, text)
            waits = "" if move is None else f", waits for {waits_for(move)}"
            return PartitionOutcome(
                tp, MoveOutcome.IN_PROGRESS, origin, f"still moving back, continues by itself{waits}"
            )
        replicas = status.ended[tp]
        if replicas and set(replicas) == set(origin):
            return PartitionOutcome(tp, MoveOutcome.CANCELLED, replicas, self._restored(tp, replicas))
        text = f"ended with replicas {list(replicas)}" if replicas else "the partition no longer exists"
        return PartitionOutcome(tp, MoveOutcome.NOT_AS_ASKED, replicas, text)

    def _restored(self, tp: TopicPartition, replicas: tuple[int, ...]) -> str:
        """Return what to say of a partition that has the same replicas as before its move."""
        text = f"cancelled, has replicas {list(replicas)}"
        order = self.orders.get(tp, replicas)
        if order != replicas and sorted(order) == sorted(replicas):
            return f"{text}, not in their order before, {list(order)}"
        return f"{text}, perhaps in another order than before" if tp in self._reordered else f"{text} again"


def _may_reorder(move: ReassignmentDescription) -> bool:
    """Return whether a cancel may leave a partition of Kafka's with another order of its replicas.

    Kafka keeps those that stay in the order of the target, before the others.
    """
    return len(move.origin_replicas) > 1 and not set(move.origin_replicas).isdisjoint(move.new_replicas)
