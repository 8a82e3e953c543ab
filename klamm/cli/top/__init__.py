"""`klamm top`: a cluster watched live in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import trio

from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Format, View, printing_options, show
from klamm.cli.running import run
from klamm.cli.streams import is_dumb_terminal
from klamm.cli.top.document import TopLook, document_of
from klamm.cli.top.following import Following, Look
from klamm.cli.top.plain import print_look
from klamm.cli.top.rollouts import followed
from klamm.cli.visibility import note

_SHORTEST, _LONGEST = 0.2, 3600.0


@click.command()
@click.argument("plans", nargs=-1, metavar="[PLAN]...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--interval",
    type=click.FloatRange(_SHORTEST, _LONGEST),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="The time between two looks; a cluster that takes long to answer is asked less often.",
)
@click.option("--once", is_flag=True, help="Print one look as lines, or as a document with -o, and end.")
@printing_options(TopLook)
@cluster_options
def top(
    cluster: Cluster, plans: tuple[Path, ...], interval: float, once: bool, output: Format, no_headers: bool
) -> None:
    """Watch brokers, moves in flight and partitions at risk, and the rollouts of PLANs.

    A PLAN is what `klamm rollout run` carries out. Press ? for the keys.
    """
    if not once:
        if output is not Format.TABLE:
            raise click.UsageError(f"-o {output} is for one look: add --once")
        _require_terminal()
    following = Following(cluster, interval, partial(print_look, where=cluster.where), followed(plans))
    first = run(following.first)
    if once:
        _print_once(first, cluster.where, output, headers=not no_headers)
    elif is_dumb_terminal():
        print_look(first, cluster.where)
        run(partial(_print_on, following))
    else:
        _open_screen(following, first)


def _require_terminal() -> None:
    for stream, name in ((sys.stdout, "stdout"), (sys.stdin, "stdin")):
        if not stream.isatty():
            raise click.ClickException(f"{name} is not a terminal: print one look with --once")


def _print_once(look: Look, where: str, output: Format, *, headers: bool) -> None:
    if output.is_document:
        document = document_of(look, where)
        show(View(document, note(document.partial)), output)
    else:
        print_look(look, where, is_wide=output is Format.WIDE, headers=headers)


async def _print_on(following: Following) -> None:
    await trio.sleep(following.interval)
    await following.run()


def _open_screen(following: Following, first: Look) -> None:
    from actors.guest_run import run_in_trio
    from klamm.cli.top.screen import TopApp

    async def follow(take: Callable[[Look], None]) -> None:
        following.tell = take
        await run_in_trio(following.run)

    TopApp(following.cluster.where, first, follow, following.hurry).run(mouse=False)
