"""`klamm topic delete`: delete topics, and wait until no broker has any of their data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final, Literal

import click
import trio
from msgspec import Struct

from controller.admin.cluster_admin import ClusterAdmin
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import DRY_RUN, Note, View, confirm, dry_run_option, output_options, yes_option
from klamm.cli.names import TOPIC
from klamm.cli.running import stoppable
from klamm.cli.topic_changes import if_exists_option
from klamm.cli.topic_filters import has_patterns, matching, require_topics
from klamm.interrupts import INTERRUPTED
from transport.errors import ErrorCode, reason_of
from transport.messages import MetadataResponse, PartitionState, TopicError
from transport.metadata import LEADER_DURING_DELETE

POLL_SECONDS: Final = 0.2
"""The interval between looks at a deletion."""

_NAMED: Final = 10
"""The topics that a question names."""


class DeletedTopic(Struct):
    """The outcome of a deletion: `deleting` continues by itself, `checked` is that of a dry run."""

    topic: str
    outcome: Literal["deleted", "deleting", "missing", "refused", "checked"]
    message: str | None = None


@click.command()
@click.argument("names", nargs=-1, required=True, type=TOPIC)
@click.option("--no-wait", is_flag=True, help="Return as soon as the deletion is certain to happen.")
@if_exists_option
@dry_run_option
@yes_option
@output_options(list[DeletedTopic])
@changed_cluster_options
def delete(cluster: Cluster, names: tuple[str, ...], no_wait: bool, if_exists: bool, dry_run: bool, yes: bool) -> View:
    """Delete the topics NAMES. Wait until no broker has any of their data.

    A name may be a pattern such as 'orders-*'; then the command lists the topics, and asks before it deletes them.
    """
    named = list(dict.fromkeys(names))
    if dry_run or has_patterns(named):
        states = cluster.ask(lambda admin: admin.read_metadata()).partitions
        if not if_exists:
            require_topics(named, states)
        there = sorted({state.topic for state in matching(named, states)})
        if dry_run:
            lines = [f"would delete topic {name}" for name in there] or ["no topic would be deleted"]
            return View(
                [DeletedTopic(name, "checked") for name in there], [*(lines or ["no topic would be deleted"]), DRY_RUN]
            )
        if not there:
            return View([], [Note(f"no topic matches {' '.join(named)}: nothing was deleted")])
        confirm(_question(there), yes=yes)
        named = [*there, *(name for name in named if name not in there and not has_patterns([name]))]
    return cluster.ask(partial(_delete, names=named, waits=not no_wait, if_exists=if_exists))


def _question(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
    return f"Delete {len(names):,} topic{'' if len(names) == 1 else 's'} with all records: {listed}?"


async def _delete(admin: ClusterAdmin, names: Sequence[str], *, waits: bool, if_exists: bool) -> View:
    results = (await admin.delete_topics(names)).topics if names else ()
    begun = [result.name for result in results if result.error is ErrorCode.NONE]
    left: set[str] = set()
    if waits and begun:
        read = partial(admin.read_metadata, begun)
        await stoppable(partial(until_gone, read))
        left = {state.topic for state in _being_deleted(await read())}
    rows = [_outcome(result, left, waits=waits, if_exists=if_exists) for result in results]
    code = INTERRUPTED if left else int(any(row.outcome == "refused" for row in rows))
    return View(rows, [_line(row) for row in rows], code)


def _outcome(result: TopicError, left: Collection[str], *, waits: bool, if_exists: bool) -> DeletedTopic:
    if if_exists and result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return DeletedTopic(result.name, "missing")
    if result.error is not ErrorCode.NONE:
        return DeletedTopic(result.name, "refused", reason_of(result.error, result.message))
    if not waits:
        return DeletedTopic(result.name, "deleting")
    if result.name in left:
        return DeletedTopic(result.name, "deleting", "not deleted yet, the deletion continues by itself")
    return DeletedTopic(result.name, "deleted")


def _line(row: DeletedTopic) -> str | Note:
    match row.outcome:
        case "missing":
            return f"there is no topic {row.topic}"
        case "refused":
            return Note(f"{row.topic}: refused: {row.message}")
        case "deleting" if row.message is not None:
            return Note(f"{row.topic}: {row.message}: see `klamm topic list`")
        case "deleting":
            return f"deleting topic {row.topic}"
        case _:
            return f"deleted topic {row.topic}"


async def until_gone(read: Callable[[], Awaitable[MetadataResponse]]) -> None:
    """Wait for the end of deletions; print on stderr what they wait for, whenever that changes."""
    told = ""
    # One answer names deletions and live brokers. Between two, a broker may come back, and would seem to fail.
    while states := _being_deleted(metadata := await read()):
        news = waits_for(states, [broker.id for broker in metadata.brokers])
        if news and news != told:
            click.echo(news, err=True)
        told = news
        await trio.sleep(POLL_SECONDS)


def _being_deleted(metadata: MetadataResponse) -> list[PartitionState]:
    return [state for state in metadata.partitions if state.leader == LEADER_DURING_DELETE]


def waits_for(states: Iterable[PartitionState], live: Collection[int]) -> str:
    """Return what the first topic being deleted waits for; empty if no deletion waits for a broker."""
    states = [state for state in states if state.offline_replicas]
    if not states:
        return ""
    name = states[0].topic
    missing = sorted({r for state in states if state.topic == name for r in state.offline_replicas})
    dead = [r for r in missing if r not in live]
    if dead:
        return f"{name} waits for {_brokers(dead)} to come back and delete its replicas"
    return f"{name} waits for {_brokers(missing)} to delete replicas: this failed and is retried, see the broker's log"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
