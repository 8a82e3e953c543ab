"""`klamm topic delete`: request the deletion, and wait until it is complete, saying what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

import click
import trio

from controller.admin.client import AdminClient
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.names import TOPIC
from klamm.cli.running import run, until_signal
from klamm.interrupts import INTERRUPTED
from transport.errors import ErrorCode
from transport.messages import PartitionState
from transport.metadata import LEADER_DURING_DELETE

POLL_SECONDS: Final = 0.2


@click.command()
@click.argument("names", nargs=-1, required=True, type=TOPIC)
@click.option("--no-wait", is_flag=True, help="Return as soon as the deletion is certain to happen.")
@cluster_options
def delete(cluster: Cluster, names: tuple[str, ...], no_wait: bool) -> None:
    """Delete the topics NAMES, and wait until no broker has any data of them."""
    sys.exit(run(partial(_delete, cluster, tuple(dict.fromkeys(names)), waits=not no_wait)))


async def _delete(cluster: Cluster, names: Sequence[str], *, waits: bool) -> int:
    async with cluster.open_admin() as admin:
        results = (await admin.delete_topics(names)).topics
        refused = [result for result in results if result.error is not ErrorCode.NONE]
        for result in refused:
            click.echo(f"{result.name}: refused: {result.message or result.error.name}", err=True)
        begun = [result.name for result in results if result not in refused]
        left: list[str] = []
        if waits:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_signal, nursery.cancel_scope)
                await _until_gone(admin, begun)
                nursery.cancel_scope.cancel()
            left = sorted({state.topic for state in await _being_deleted(admin, begun)})
        return _report(begun, left, waits=waits) or (1 if refused else 0)


def _report(begun: Iterable[str], left: Collection[str], *, waits: bool) -> int:
    for name in begun:
        if not waits:
            click.echo(f"deleting topic {name}")
        elif name in left:
            click.echo(f"{name}: not deleted yet, the deletion continues by itself: see `klamm topic list`", err=True)
        else:
            click.echo(f"deleted topic {name}")
    return INTERRUPTED if left else 0


async def _until_gone(admin: AdminClient, names: Sequence[str]) -> None:
    """Wait for the end of deletions; print on stderr what they wait for, whenever that changes."""
    told = ""
    while states := await _being_deleted(admin, names):
        live = [broker.id for broker in (await admin.read_metadata([])).brokers]
        news = waits_for(states, live)
        if news and news != told:
            click.echo(news, err=True)
        told = news
        await trio.sleep(POLL_SECONDS)


async def _being_deleted(admin: AdminClient, names: Sequence[str]) -> list[PartitionState]:
    states = (await admin.read_metadata(names)).partitions if names else ()
    return [state for state in states if state.leader == LEADER_DURING_DELETE]


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
