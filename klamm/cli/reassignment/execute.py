"""`klamm reassignment execute`: Kafka's reassignment JSON in, progress and the way back out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import click
import trio
from attrs import define, evolve, field, frozen

from controller.admin.client import AdminClient, OutcomeUnknown
from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import CANNOT_SEE, MoveStatus, MoveWatch
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.output_files import is_stream, write_output
from klamm.cli.reassignment import preview, starts, throttling
from klamm.cli.reassignment.cancelling import Cancelling
from klamm.cli.reassignment.files import Document, Targets, encode_targets, json_file, read_document
from klamm.cli.reassignment.outcomes import Outcome, PartitionOutcome, judge, report
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.reassignment.watching import show_until_over
from klamm.cli.running import run, stoppable
from klamm.cli.streams import line_of
from klamm.interrupts import INTERRUPTED
from transport.errors import ErrorCode
from transport.messages import MetadataResponse, ReassignablePartition
from transport.metadata import TopicPartition

LAST_LOOK_SECONDS: Final = 5.0
KAFKAS_ELECTION: Final = "kafka-leader-election --election-type PREFERRED"


@frozen
class Wishes:
    """The file to execute, and the options for it."""

    file: Path
    dry_run: bool
    rollback_file: Path | None
    waits: bool
    cancels: bool
    output: str
    throttle: int | None
    forced: bool


@click.command()
@json_file(required=True)
@click.option("--dry-run", is_flag=True, help="Only show what would change in each partition, and how much is to move.")
@click.option(
    "--rollback-json-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the assignment as it was to this file instead of printing it; another one is not overwritten.",
)
@click.option("--no-wait", is_flag=True, help="Return as soon as the moves are sure to come about.")
@click.option("--cancel-on-interrupt", is_flag=True, help="Let Ctrl-C cancel the moves, and wait until that is done.")
@click.option("--force", is_flag=True, help="Begin although partitions are not as they were when this was planned.")
@throttle_option
@output_option
@cluster_options
def execute(  # noqa: PLR0913  one for each option
    cluster: Cluster,
    file: Path,
    rollback_json_file: Path | None,
    throttle: int | None,
    output: str,
    *,
    dry_run: bool,
    no_wait: bool,
    cancel_on_interrupt: bool,
    force: bool,
) -> None:
    """Begin the moves in a file and wait until they are done. Ctrl-C stops the waiting, not the moves.

    If one of them cannot be done, or a plan starts from replicas that are no longer there, none is begun. The exit
    code is 0 only if all of them are complete.
    """
    if no_wait and cancel_on_interrupt:
        raise click.UsageError("--no-wait leaves nothing to interrupt: drop it, or --cancel-on-interrupt")
    wishes = Wishes(file, dry_run, rollback_json_file, not no_wait, cancel_on_interrupt, output, throttle, force)
    sys.exit(run(partial(_execute, cluster, read_document(file), wishes)))


async def _execute(cluster: Cluster, document: Document, wishes: Wishes) -> int:
    async with cluster.open_moves() as admin:
        execution = Execution(admin, document.targets, document.starts, wishes)
        if await stoppable(execution.prepare):
            click.echo("interrupted: nothing was begun", err=True)
            return INTERRUPTED
        if execution.exit_code is not None:
            return execution.exit_code
        interrupted = await stoppable(execution.carry_out)
        if interrupted and wishes.cancels:
            await stoppable(execution.take_back)
        code = await execution.report()
        return INTERRUPTED if code and interrupted else code


@define
class Execution:
    """One file on its way."""

    admin: MoveAdmin
    targets: Targets
    starts: Targets
    wishes: Wishes
    exit_code: int | None = None
    """Set when there is nothing left to do."""

    _before: MetadataResponse = field(init=False)
    _refused: dict[TopicPartition, str] = field(factory=dict)
    _is_answered: bool = False
    _watch: MoveWatch = field(init=False)
    _cancelling: Cancelling | None = None

    async def prepare(self) -> None:
        """Check every target before anything is begun; show the difference, or the way back."""
        self._before = await self.admin.read_metadata(sorted({tp.topic for tp in self.targets}))
        faults = preview.faults(self._before, self.targets)
        if faults:
            for tp, fault in faults.items():
                click.echo(f"{tp}: refused: {fault}", err=True)
            if len(self.targets) > 1:
                click.echo(f"none of the {len(self.targets):,} moves was begun: correct the file first", err=True)
            self.exit_code = 1
            return
        self._refuse_stale()
        if self.wishes.dry_run:
            planned = await preview.changes(self.admin, self._before, self.targets)
            preview.print_changes(planned, self.wishes.output)
            self.exit_code = 0
        else:
            try:
                # A pipe may be one that nobody reads yet.
                await trio.to_thread.run_sync(self._show_way_back, abandon_on_cancel=True)
            except OSError as error:
                text = f"nothing was begun, for the way back could not be told: {line_of(error)}"
                raise click.ClickException(text) from None
            for tp, state in preview.moving_elsewhere(self._before, self.targets).items():
                now = [r for r in state.replicas if r not in state.removing_replicas]
                click.echo(f"{tp}: is being moved to {now}, goes to {list(self.targets[tp])} instead", err=True)

    def _refuse_stale(self) -> None:
        """Raise click.ClickException if partitions are not where the plan starts, unless `--force` is given."""
        stale = starts.faults_of(preview.states_of(self._before), self.targets, self.starts)
        if stale and not self.wishes.forced:
            raise click.ClickException(starts.refusal(stale))

    def _show_way_back(self) -> None:
        text = encode_targets(preview.way_back(self._before, self.targets))
        file = self.wishes.rollback_file
        # A document on stdout is to stay one.
        to_stderr = self.wishes.output != "table"
        if file is None:
            click.echo(f"Current partition replica assignment\n\n{text}\n", err=to_stderr)
            click.echo("Save this to use as the --reassignment-json-file option during rollback", err=to_stderr)
            return
        data = f"{text}\n".encode()
        if not file.exists() or is_stream(file):
            write_output(file, [data])
        elif not _holds(file, data):
            raise click.ClickException(
                f"{file} exists, and may be the way back of an earlier move: name another with --rollback-json-file"
            )

    async def carry_out(self) -> None:
        """Begin, and wait if that is wished."""
        self._watch = MoveWatch(self.admin, self.targets)
        wanted = [ReassignablePartition(tp.topic, tp.partition, replicas) for tp, replicas in self.targets.items()]
        if self.wishes.throttle is not None:
            await throttling.begin(self.admin, self._before.partitions, self.targets, self.wishes.throttle)
        try:
            answer = await self.admin.alter_partition_reassignments(wanted)
        except OutcomeUnknown as error:
            click.echo(f"{error}: looking", err=True)
        else:
            self._is_answered = True
            refused = [item for item in answer.partitions if item.error is not ErrorCode.NONE]
            self._refused = {item.tp: item.message or item.error.name for item in refused}
        begun = {tp: target for tp, target in self.targets.items() if tp not in self._refused}
        self._watch = MoveWatch(self.admin, begun)
        if self.wishes.waits and begun:
            await show_until_over(self._watch)

    async def take_back(self) -> None:
        """Cancel what is not complete, and wait until it is back."""
        left = [item.tp for item in judge(await self._last_look()) if item.outcome is Outcome.IN_PROGRESS]
        if not left:
            return
        click.echo(f"cancelling {len(left):,} of {len(self.targets):,} moves; Ctrl-C stops the waiting", err=True)
        self._cancelling = Cancelling(self.admin, left)
        try:
            await self._cancelling.begin()
        except CANNOT_SEE as error:
            click.echo(f"not cancelled: {error}", err=True)
        else:
            await self._cancelling.wait()

    async def report(self) -> int:
        """Say for each move what became of it; return the exit code."""
        found = await self._outcomes()
        outcomes = [found[tp] for tp in self.targets]
        # The cluster comes first: printing may fail because nobody reads the output any more.
        if self.wishes.throttle is not None:
            await throttling.end(self.admin, list(self.targets))
        report(outcomes, self.wishes.output, Outcome.COMPLETE, Outcome.BEGUN)
        self._tell_of_election(outcomes)
        goes_on = any(item.outcome in {Outcome.IN_PROGRESS, Outcome.BEGUN} for item in outcomes)
        if self.wishes.throttle is not None and goes_on:
            click.echo("what goes on stays throttled: `klamm reassignment verify` lifts that when it is over", err=True)
        return int(any(item.outcome not in {Outcome.COMPLETE, Outcome.BEGUN} for item in outcomes))

    def _tell_of_election(self, outcomes: Sequence[PartitionOutcome]) -> None:
        """Print how to elect the first of the new replicas where a move keeps another leader."""
        states = preview.states_of(self._before)
        moved = [item.tp for item in outcomes if item.outcome in {Outcome.COMPLETE, Outcome.BEGUN}]
        kept = [tp for tp in moved if states[tp].leader in self.targets[tp][1:]]
        if kept:
            ours = isinstance(self.admin, AdminClient)
            elect = "klamm leader elect --election-type preferred" if ours else KAFKAS_ELECTION
            click.echo(
                f"{len(kept):,} of {len(outcomes):,} partitions keep a leader that is not the first of their new "
                f"replicas: `{elect} --path-to-json-file {self.wishes.file}` lets that lead, once they are complete",
                err=True,
            )

    async def _outcomes(self) -> dict[TopicPartition, PartitionOutcome]:
        refused = {
            tp: PartitionOutcome(tp, Outcome.REFUSED, self._replicas_before(tp), f"refused: {text}")
            for tp, text in self._refused.items()
        }
        if not self.wishes.waits:
            begun = [tp for tp in self.targets if tp not in refused]
            return refused | {tp: PartitionOutcome(tp, Outcome.BEGUN, self.targets[tp], "begun") for tp in begun}
        judged = {item.tp: self._in_hindsight(item) for item in judge(await self._last_look())}
        cancelled: list[PartitionOutcome] = []
        if self._cancelling is not None:
            with suppress(*CANNOT_SEE):
                cancelled = await self._cancelling.outcomes()
        # What was over before it could be cancelled is complete all the same.
        complete = {tp for tp, item in judged.items() if item.outcome is Outcome.COMPLETE}
        return refused | judged | {item.tp: item for item in cancelled if item.tp not in complete}

    async def _last_look(self) -> MoveStatus:
        """Look once more, but not for long: who pressed Ctrl-C waits for the answer."""
        with trio.move_on_after(LAST_LOOK_SECONDS):
            with suppress(*CANNOT_SEE):
                return await self._watch.look()
        status = self._watch.recall("nobody answers")
        click.echo("nobody answers: this is what was seen last", err=True)
        return status

    def _in_hindsight(self, item: PartitionOutcome) -> PartitionOutcome:
        """Tell what was never begun from what somebody took elsewhere."""
        if item.outcome is Outcome.IN_PROGRESS:
            return evolve(item, text=f"not complete, goes on by itself: {item.text}")
        if item.outcome is not Outcome.NOT_AS_ASKED or not item.replicas:
            return item
        if not self._is_answered and item.replicas == self._replicas_before(item.tp):
            return evolve(item, outcome=Outcome.NOT_BEGUN, text="was not begun: run this again")
        text = f"ended with replicas {list(item.replicas)}: cancelled, or moved elsewhere by somebody else"
        return evolve(item, text=text)

    def _replicas_before(self, tp: TopicPartition) -> tuple[int, ...]:
        state = preview.states_of(self._before).get(tp)
        return () if state is None else state.replicas


def _holds(file: Path, data: bytes) -> bool:
    """Return whether a file holds exactly these bytes. Raises OSError."""
    with file.open("rb") as stream:
        return stream.read(len(data) + 1) == data
