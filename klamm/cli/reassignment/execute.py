"""`klamm reassignment execute`: carry out Kafka's reassignment JSON, show the progress, and write a rollback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import click
import trio
from attrs import define, evolve, field, frozen

from controller.admin.active_controller import OutcomeUnknown
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.log_mover import Directories
from controller.admin.move_admin import MoveAdmin
from controller.admin.move_record import MoveRecord, replicas_before
from controller.admin.moves import CANNOT_SEE, MoveStatus, MoveWatch
from controller.admin.plan_ids import Comparison, PlanIds
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import Format, Note, View, output_options
from klamm.cli.plan_ids import ids_of, other_cluster_option, require_cluster, require_topics, tell_unchecked
from klamm.cli.reassignment import preview, throttling
from klamm.cli.reassignment.cancel import Cancelling
from klamm.cli.reassignment.files import NOTHING_TO_DO, MoveFile, Targets, json_file, read_document
from klamm.cli.reassignment.log_copies import LogCopies, copies_of_file
from klamm.cli.reassignment.log_moves import LogMoves, log_moves
from klamm.cli.reassignment.outcomes import MoveOutcome, OutcomeRow, PartitionOutcome, judge, view
from klamm.cli.reassignment.record_file import Keeping, RecordFile, find_record
from klamm.cli.reassignment.rollback import write_rollback
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.reassignment.watching import show_until_over
from klamm.cli.running import stoppable
from klamm.cli.streams import line_of
from klamm.interrupts import INTERRUPTED
from transport.errors import ApiError, ErrorCode, in_words, reason_of
from transport.messages import MetadataResponse, ReassignablePartition
from transport.metadata import TopicPartition

LAST_LOOK_SECONDS: Final = 5.0
_GOOD: Final = frozenset({MoveOutcome.COMPLETE, MoveOutcome.BEGUN})
KAFKAS_ELECTION: Final = "kafka-leader-election --election-type PREFERRED"


@frozen
class Options:
    """The file to execute, and the options for it."""

    file: Path
    dry_run: bool
    rollback_file: Path | None
    waits: bool
    cancels: bool
    output: Format
    throttle: int | None
    forced: bool
    other_cluster: bool


@click.command()
@json_file(required=True)
@click.option(
    "--dry-run", is_flag=True, help="Only show how each partition would change, and how much would be copied."
)
@click.option(
    "--rollback-json-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the current assignment to this file instead of printing it; a different one is not overwritten.",
)
@click.option("--no-wait", is_flag=True, help="Return as soon as the moves are certain to happen.")
@click.option(
    "--cancel-on-interrupt", is_flag=True, help="Cancel the moves on Ctrl-C, and wait until they are cancelled."
)
@click.option("--force", is_flag=True, help="Begin even if partitions have changed since the plan was made.")
@other_cluster_option
@throttle_option
@output_options(list[OutcomeRow] | list[preview.ChangeRow], knows_format=True)
@changed_cluster_options
def execute(  # noqa: PLR0913  one for each option
    cluster: Cluster,
    file: Path,
    rollback_json_file: Path | None,
    throttle: int | None,
    output: Format,
    *,
    dry_run: bool,
    no_wait: bool,
    cancel_on_interrupt: bool,
    force: bool,
    other_cluster: bool,
) -> View:
    """Begin the moves in a file and wait until they are complete.

    Ctrl-C stops waiting; the moves continue, and the command lists those still running. If one of the moves is
    impossible, or a plan starts from replicas that have changed since, was made on another cluster or for topics that
    were created again, none begins. The exit code is 0 only if all
    moves are complete.
    """
    if no_wait and cancel_on_interrupt:
        raise click.UsageError("--no-wait leaves nothing to interrupt: omit it, or --cancel-on-interrupt")
    waits, cancels = not no_wait, cancel_on_interrupt
    options = Options(file, dry_run, rollback_json_file, waits, cancels, output, throttle, force, other_cluster)
    document = read_document(file, may_be_empty=True)
    if not document.targets:
        return View([], [Note(NOTHING_TO_DO)])
    return cluster.ask_moves(partial(_execute, document=document, options=options))


async def _execute(admin: MoveAdmin, document: MoveFile, options: Options) -> View:
    logs = log_moves(admin, document.log_dirs)
    execution = Execution(admin, document.targets, document.starts, options, logs, document.ids)
    if await stoppable(execution.prepare):
        return View([], [Note("interrupted: nothing was begun")], INTERRUPTED)
    if execution.over is not None:
        return execution.over
    interrupted = await stoppable(execution.carry_out)
    if interrupted and options.cancels:
        await stoppable(execution.cancel)
    found = await execution.report()
    return evolve(found, code=INTERRUPTED) if found.code and interrupted else found


@define
class Execution:
    """The execution of one file."""

    admin: MoveAdmin
    targets: Targets
    starts: Targets
    options: Options
    logs: LogMoves | None = None
    """The log directories that the file names."""

    ids: PlanIds = field(factory=PlanIds)
    """Those that the file has of its cluster and topics."""

    over: View | None = None
    """What there is to show when there is nothing more to do."""

    _before: MetadataResponse = field(init=False)
    _cluster_id: str | None = None
    _refused: dict[TopicPartition, str] = field(factory=dict)
    _is_answered: bool = False
    _is_unseen: bool = False
    """Whether no controller answered in the end."""

    _watch: MoveWatch = field(init=False)
    _cancelling: Cancelling | None = None
    _record: RecordFile | None = None
    _keeping: Keeping | None = None
    """The record of what was before, in clusters that do not keep it."""

    _log_dirs_before: Directories = field(factory=dict)
    """Where the logs are for whose replicas the file names directories."""

    async def prepare(self) -> None:
        """Check every target before any move begins; show the changes, or write the rollback."""
        self._record = await find_record(self.admin, self.options.file)
        self._before = await self.admin.read_metadata(sorted({tp.topic for tp in self.targets}))
        self._cluster_id = await self.admin.cluster_id()
        ids = self._compared_ids()
        faults = preview.faults(self._before, self.targets)
        if self.logs is not None and not faults:
            places = await self.logs.look(preview.rollback(self._before, self.targets))
            faults = {tp: text for (tp, _), text in places.faults(self.logs.wanted).items()}
            self._log_dirs_before = places.paths
        if faults:
            self.over = self._refusals(faults)
            return
        self._refuse_stale()
        tell_unchecked(ids, is_plan=bool(self.starts))
        if self.options.dry_run:
            planned = await preview.changes(self.admin, self._before, self.targets)
            partial = (await self.admin.visibility()).lacking_sizes
            self.over = preview.view(planned, {} if self.logs is None else self.logs.wanted, partial)
        else:
            self._keeping = self._recorded()
            try:
                # Opening a pipe blocks until something reads it.
                await trio.to_thread.run_sync(self._write_rollback, abandon_on_cancel=True)
            except OSError as error:
                text = f"nothing was begun, because the rollback could not be written: {line_of(error)}"
                raise click.ClickException(text) from None
            for tp, state in preview.moving_elsewhere(self._before, self.targets).items():
                now = list(state.target_replicas)
                click.echo(f"{tp}: is being moved to {now}, goes to {list(self.targets[tp])} instead", err=True)

    def _refusals(self, faults: Mapping[TopicPartition, str]) -> View:
        """Return the moves that are impossible, because of which none of the file is begun."""
        refused = [self._refused_one(tp, text) for tp, text in faults.items()]
        others = [tp for tp in self.targets if tp not in faults]
        text = "not begun, as other moves of the file are impossible"
        kept = [PartitionOutcome(tp, MoveOutcome.NOT_BEGUN, self._replicas_before(tp), text) for tp in others]
        lines = [Note(item.line) for item in refused]
        if len(self.targets) > 1:
            lines.append(Note(f"none of the {len(self.targets):,} moves was begun: correct the file first"))
        return View([item.row for item in (*refused, *kept)], lines, 1)

    def _refused_one(self, tp: TopicPartition, text: str) -> PartitionOutcome:
        return PartitionOutcome(tp, MoveOutcome.REFUSED, self._replicas_before(tp), f"refused: {text}")

    def _compared_ids(self) -> Comparison:
        """Raise click.ClickException if the file is a plan of another cluster, or of topics that were created again."""
        other = self.options.other_cluster
        found = self.ids.compare(self._cluster_id, self._before.partitions, other_cluster=other)
        require_cluster(found)
        require_topics(found)
        return found

    def _refuse_stale(self) -> None:
        """Raise click.ClickException if partitions have changed since the plan was made, unless `--force` is given."""
        stale = preview.stale(preview.states_of(self._before), self.targets, self.starts)
        if stale and not self.options.forced:
            raise click.ClickException(preview.stale_refusal(stale))

    def _recorded(self) -> Keeping | None:
        """Return the record of what is there, or was before an earlier execution. Raises click.ClickException."""
        file = self._record
        if file is None:
            return None
        earlier = file.read() or MoveRecord()
        states = preview.states_of(self._before)
        replicas = {**earlier.replicas, **replicas_before(states, self.targets, earlier.replicas)}
        return Keeping(file, evolve(earlier, replicas=replicas), needs_place=self.options.throttle is not None)

    def _write_rollback(self) -> None:
        origins = preview.rollback(self._before, self.targets)
        if self._keeping is not None:
            origins = {tp: self._keeping.record.replicas[tp] for tp in origins}
        ids = ids_of(self._cluster_id, self._before.partitions)
        rollback = MoveFile(origins, log_dirs=self._log_dirs_before, ids=ids)
        # With JSON or YAML, stdout carries only the document.
        write_rollback(rollback, self.options.rollback_file, to_stderr=self.options.output.is_document)

    async def carry_out(self) -> None:
        """Begin the moves, and wait for them if requested."""
        self._watch = MoveWatch(self.admin, self.targets)
        wanted = [ReassignablePartition(tp.topic, tp.partition, replicas) for tp, replicas in self.targets.items()]
        late = None
        if self.options.throttle is not None:
            states, rate = self._before.partitions, self.options.throttle
            late = await throttling.begin(self.admin, states, self.targets, rate, self._keeping)
        elif self._keeping is not None:
            self._keeping.keep(self._keeping.record)
        if self.logs is not None:
            self._refused = {tp: f"no log directory: {text}" for tp, text in (await self.logs.begin()).items()}
        await self._request([item for item in wanted if item.tp not in self._refused])
        begun = {tp: target for tp, target in self.targets.items() if tp not in self._refused}
        self._watch = MoveWatch(self.admin, begun)
        if self.options.waits and begun:
            await show_until_over(self._watch, None if late is None else late.look)
            if self.logs is not None:
                await self.logs.wait()

    async def _request(self, wanted: Sequence[ReassignablePartition]) -> None:
        """Request the moves, and note which of them are refused."""
        if not wanted:
            return
        try:
            answer = await self.admin.alter_partition_reassignments(wanted)
        except OutcomeUnknown as error:
            click.echo(f"{error}: checking the cluster", err=True)
        else:
            self._is_answered = True
            refused = [item for item in answer.partitions if item.error is not ErrorCode.NONE]
            self._refused |= {item.tp: reason_of(item.error, item.message) for item in refused}

    async def cancel(self) -> None:
        """Cancel the moves that are not complete, and wait until the partitions are restored."""
        left = [item.tp for item in judge(await self._last_look()) if item.outcome is MoveOutcome.IN_PROGRESS]
        copies = await self._copies()
        if copies is not None:
            left += [tp for tp in copies.partitions if tp not in left]
        if not left:
            return
        click.echo(f"cancelling {len(left):,} of {len(self.targets):,} moves; Ctrl-C stops waiting", err=True)
        orders = {} if self._keeping is None else self._keeping.record.replicas
        self._cancelling = Cancelling(self.admin, left, orders, copies)
        try:
            await self._cancelling.begin()
        except CANNOT_SEE as error:
            click.echo(f"not cancelled: {error}", err=True)
        else:
            await self._cancelling.wait()
            await self._cancelling.restore_order()

    async def _copies(self) -> LogCopies | None:
        if self.logs is not None and not self._is_unseen:
            with suppress(*CANNOT_SEE):
                return await copies_of_file(self.logs.mover, self.logs.wanted)
        return None

    async def report(self) -> View:
        """Return the outcome of each move."""
        found = await self._outcomes()
        outcomes = [found[tp] for tp in self.targets]
        # Throttles are removed first: printing fails if the reader of the output is gone.
        is_lifted = await self._end_throttle()
        is_good = all(item.outcome in _GOOD for item in outcomes)
        shown = view(outcomes, *_GOOD, code=int(not (is_good and is_lifted)))
        hints = list(self._hints(outcomes))
        if self.options.output.is_document:
            for text in hints:
                click.echo(text, err=True)
        return evolve(shown, parts=[*shown.parts, *map(Note, hints)])

    def _hints(self, outcomes: Sequence[PartitionOutcome]) -> Iterator[str]:
        yield from self._suggested_election(outcomes)
        in_progress = any(item.outcome in {MoveOutcome.IN_PROGRESS, MoveOutcome.BEGUN} for item in outcomes)
        if self._throttles and in_progress:
            yield "moves in progress stay throttled: `klamm reassignment verify` lifts that at their end"

    @property
    def _throttles(self) -> bool:
        """Whether this or an earlier execution of the file throttles its moves."""
        return self.options.throttle is not None if self._keeping is None else self._keeping.record.throttles

    async def _end_throttle(self) -> bool:
        """Lift the throttles of moves that are over; return False if there are some and that failed."""
        is_kept = self._keeping is not None and self._keeping.is_kept
        if not is_kept and self.options.throttle is None:
            return True
        file = self._keeping.file if self._keeping is not None and is_kept else None
        try:
            with trio.fail_after(LAST_LOOK_SECONDS if self._is_unseen else inf):
                await throttling.end(self.admin, list(self.targets), file, self.targets)
        except (*CANNOT_SEE, ApiError, trio.TooSlowError) as error:
            if not self._throttles:
                return True
            click.echo(
                f"throttles stay, {in_words(error) or 'no controller answers'}: `klamm reassignment verify "
                f"--reassignment-json-file {self.options.file}` lifts those of moves that are over",
                err=True,
            )
            return False
        return True

    def _suggested_election(self, outcomes: Sequence[PartitionOutcome]) -> Iterator[str]:
        """Yield how to elect the first of the new replicas of partitions that keep another leader."""
        states = preview.states_of(self._before)
        moved = [item.tp for item in outcomes if item.outcome in _GOOD]
        kept = [tp for tp in moved if states[tp].leader in self.targets[tp][1:]]
        if kept:
            ours = isinstance(self.admin, ClusterAdmin)
            elect = "klamm leader elect --election-type preferred" if ours else KAFKAS_ELECTION
            yield (
                f"{len(kept):,} of {len(outcomes):,} partitions keep a leader that is not the first of their new "
                f"replicas: `{elect} --path-to-json-file {self.options.file}` elects the first once they are complete"
            )

    async def _outcomes(self) -> dict[TopicPartition, PartitionOutcome]:
        refused = {tp: self._refused_one(tp, text) for tp, text in self._refused.items()}
        if not self.options.waits:
            begun = [tp for tp in self.targets if tp not in refused]
            return refused | {tp: PartitionOutcome(tp, MoveOutcome.BEGUN, self.targets[tp], "begun") for tp in begun}
        looked = judge(await self._last_look())
        if self.logs is not None:
            looked = self.logs.judge(looked, await self.logs.last_look(LAST_LOOK_SECONDS))
        judged = {item.tp: self._in_hindsight(item) for item in looked}
        cancelled: list[PartitionOutcome] = []
        if self._cancelling is not None:
            with suppress(*CANNOT_SEE):
                cancelled = await self._cancelling.outcomes()
        # A move that ended before it could be cancelled is complete.
        complete = {tp for tp, item in judged.items() if item.outcome is MoveOutcome.COMPLETE}
        return refused | judged | {item.tp: item for item in cancelled if item.tp not in complete}

    async def _last_look(self) -> MoveStatus:
        """Look once more, with a short time limit: after Ctrl-C a person waits for the answer."""
        with trio.move_on_after(LAST_LOOK_SECONDS):
            with suppress(*CANNOT_SEE):
                return await self._watch.look()
        self._is_unseen = True
        status = self._watch.recall("no controller answers")
        click.echo("no controller answers: this is the last known state", err=True)
        return status

    def _in_hindsight(self, item: PartitionOutcome) -> PartitionOutcome:
        """Distinguish moves that never began from partitions that were moved elsewhere."""
        if item.outcome is MoveOutcome.IN_PROGRESS:
            return evolve(item, text=f"not complete, continues by itself: {item.text}")
        if item.outcome is not MoveOutcome.NOT_AS_ASKED or not item.replicas:
            return item
        if not self._is_answered and item.replicas == self._replicas_before(item.tp):
            return evolve(item, outcome=MoveOutcome.NOT_BEGUN, text="was not begun: run this again")
        text = f"ended with replicas {list(item.replicas)}: cancelled, or moved elsewhere by somebody else"
        return evolve(item, text=text)

    def _replicas_before(self, tp: TopicPartition) -> tuple[int, ...]:
        state = preview.states_of(self._before).get(tp)
        return () if state is None else state.replicas
