"""`klamm rollout start`: hand a plan over to the controller, which carries it out by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import click
from attrs import frozen
from rich.console import Console
from rich.progress import Progress as Bar

from controller.admin.client import AdminClient
from controller.admin.rollouts import rollout_moves
from controller.rollout.moves import Move
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import Note, View, output_options
from klamm.cli.plan_ids import tell_unchecked
from klamm.cli.progress import is_animated
from klamm.cli.reassignment import preview
from klamm.cli.reassignment.files import NOTHING_TO_DO
from klamm.cli.rollout.checking import (
    check_room,
    checked,
    compared,
    judged,
    moves_of,
    needs_in_words,
    needs_of,
    refuse_changed,
    tell_left_out,
    unmade,
)
from klamm.cli.rollout.described import complete, look, state_of
from klamm.cli.rollout.documents import ChangedRollout
from klamm.cli.rollout.naming import NAME, asked, name_of, operator
from klamm.cli.rollout.options import Options, run_options
from klamm.cli.rollout.plan_files import Plan, PlanFiles, plan_argument
from klamm.cli.units import counted
from transport.messages import UNTHROTTLED, RolloutSettings, StartRolloutResponse
from transport.metadata import TopicPartition

_LOOK: Final = "`klamm rollout status {0} --watch`"


@click.command()
@plan_argument
@click.option("--name", metavar="NAME", help="The name of the rollout; by default that of the folder or file.")
@run_options
@output_options(ChangedRollout)
@changed_cluster_options
def start(cluster: Cluster, plan: Path, name: str | None, options: Options) -> View:
    """Let the controller carry out PLAN, a few moves at a time.

    PLAN is the folder that `klamm plan --out` writes, or a file of Kafka's reassignment JSON. The controller keeps all
    that has to be known: nothing has to run here. Several rollouts are carried out one after another. Only Klamm's
    controllers do that: in other clusters, use `klamm rollout run`.
    """
    name = name_of(plan) if name is None else name
    if not NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} cannot be the name of a rollout: it takes up to 100 letters, digits, '.', '_' and '-'",
            param_hint="--name",
        )
    files = PlanFiles(plan)
    if files.journal.exists():
        raise click.ClickException(f"a rollout of {plan} has begun from outside: `klamm rollout run` continues it")
    if options.pause_file is not None and not options.pause_file.is_absolute():
        raise click.BadParameter(
            "the controllers look for it on their hosts: give the whole path", param_hint="--pause-file"
        )
    if options.replan:
        # Planning takes a while to import.
        from klamm.cli.rollout.replanning import nothing_left, replanned

        if not replanned(cluster, files, other_cluster=options.other_cluster, partial=options.partial):
            return nothing_left(name)
    content = files.read()
    if not content.file.targets:
        return View(ChangedRollout(name, "nothing_to_move"), [Note(NOTHING_TO_DO)])
    handing = Handing(name, content, options)
    return cluster.ask_moves(partial(asked, question=handing.hand_over))


@frozen
class Handing:
    """Hands a plan over to a controller, as the rollout `name`."""

    name: str
    plan: Plan
    options: Options

    async def hand_over(self, admin: AdminClient) -> View:
        """Check the plan, upload it and start it. Raises click.ClickException if it is refused."""
        file, options = self.plan.file, self.options
        metadata = await admin.read_metadata(sorted({tp.topic for tp in file.targets}))
        found = await compared(admin, metadata, file, other_cluster=options.other_cluster)
        there = await self._there(admin)
        if there is not None:
            return there
        changed = judged(admin, metadata, file, options, found)
        states = preview.states_of(metadata)
        planned = await moves_of(admin, states, file, [tp for tp in file.targets if tp not in changed], {})
        if not planned:
            raise click.ClickException("all partitions of the plan have changed since it was made: plan again")
        # What somebody else has moved is left out: an undo takes back only what this rollout moves.
        moves = unmade(planned, states)
        if len(moves) < len(planned):
            _tell_made(len(planned) - len(moves))
        if not moves:
            return View(ChangedRollout(self.name, "nothing_to_move"), ["nothing is left to carry out"])
        await check_room(admin, moves, file, options)
        needs = needs_of(moves, states, options)
        if not options.dry_run:
            click.echo(needs_in_words(needs), err=True)
        tell_unchecked(found, is_plan=bool(file.starts))
        if options.dry_run:
            return checked(self.name, needs)
        ids = {state.topic: state.topic_id for state in metadata.partitions}
        await self._upload(admin, moves, ids, changed)
        started = await admin.start_rollout(self.name, self.plan.digest, len(moves), settings_of(options), operator())
        document = ChangedRollout(self.name, "started", needs, (await look(admin, self.name)).document)
        return View(document, [self._in_words(started)])

    async def _there(self, admin: AdminClient) -> View | None:
        """Return the rollout if it has started already; a second request finds what the first one has begun."""
        found = await admin.describe_rollouts([self.name])
        if not found:
            return None
        if found[0].fault:
            raise click.ClickException(
                f"rollout {self.name} is set aside: {found[0].fault}: `klamm rollout remove {self.name}` removes it"
            )
        if found[0].digest != self.plan.digest:
            raise click.ClickException(
                f"there is a rollout {self.name} of another plan: give this one another name with --name"
            )
        if state_of(found[0]).is_over:
            raise click.ClickException(
                f"rollout {self.name} is over, {found[0].phase}: plan again, or start the plan under another name with "
                "--name"
            )
        document = ChangedRollout(self.name, "exists", status=(await complete(admin, found[0])).document)
        return View(document, [f"rollout {self.name} has started before: see {_LOOK.format(self.name)}"])

    async def _upload(
        self, admin: AdminClient, moves: tuple[Move, ...], ids: Mapping[str, str], changed: Mapping[TopicPartition, str]
    ) -> None:
        console = Console(stderr=True)
        with Bar(console=console, transient=True, disable=not is_animated(console)) as bar:
            task = bar.add_task("handing over", total=len(moves))
            refused = await admin.upload_rollout(
                self.name,
                self.plan.digest,
                rollout_moves(moves, lambda topic: ids.get(topic, "")),
                skips=self.options.skip_changed,
                progress=lambda count: bar.update(task, completed=count),
            )
        left_out = {item.tp: item.message for item in refused}
        if left_out and not self.options.skip_changed:
            refuse_changed(left_out)
        if changed or left_out:
            tell_left_out({**changed, **left_out})

    def _in_words(self, started: StartRolloutResponse) -> str:
        waits = f", after {started.place:,} other{'s' if started.place > 1 else ''}" if started.place > 0 else ""
        moves = counted(started.moves, "move")
        return f"rollout {self.name}: the controller carries out {moves}{waits}: {_LOOK.format(self.name)}"


def _tell_made(count: int) -> None:
    have = "partition has" if count == 1 else "partitions have"
    click.echo(f"{count:,} {have} the new replicas already", err=True)


def settings_of(options: Options) -> RolloutSettings:
    """Return the settings of a rollout as the controller takes them."""
    limits = options.limits
    return RolloutSettings(
        limits.into,
        limits.out_of,
        limits.leaders,
        limits.in_all,
        UNTHROTTLED if limits.bytes is None else limits.bytes,
        UNTHROTTLED if options.throttle is None else options.throttle,
        "" if options.pause_file is None else str(options.pause_file),
        options.go_url or "",
        options.ignore_min_isr,
        options.elects,
        options.adapts,
        options.ignore_room,
    )
