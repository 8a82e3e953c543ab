"""`python -m tests.cluster.kills_and_pauses`: a quarter of an hour of kills and pauses of real processes.

Exit code 1 if anything was wrong; then all logs and data stay where the last line says.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
import trio

from tests.cluster.kills_and_pauses import schedule
from tests.cluster.kills_and_pauses.campaign import Campaign, run
from transport.host import Host
from transport.zookeeper_server import DevelopmentServerError

SESSION_MS: Final = 4_000
INTERRUPTED: Final = 130


@click.command()
@click.option("--minutes", default=15.0, show_default=True, type=click.FloatRange(0.1), help="How long faults happen.")
@click.option("--seed", type=int, help="What the faults are drawn from; without it, a new one.")
def main(minutes: float, seed: int | None) -> None:
    """Kill, stop and pause brokers, controllers and ZooKeeper while they work, and see whether anything is lost."""
    seed = Host().rng.randrange(10**6) if seed is None else seed
    rng = random.Random(seed)
    faults = schedule.draw(rng, minutes * 60, SESSION_MS / 1000)
    click.echo(f"{len(faults)} faults in {minutes:g} minutes, drawn from --seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="kills-and-pauses-"))
    try:
        campaign = trio.run(run, folder, faults, rng, SESSION_MS)
    except* (DevelopmentServerError, trio.TooSlowError) as group:
        click.echo(f"the cluster did not start: {group.exceptions[0]}; its logs are in {folder}", err=True)
        sys.exit(1)
    except* KeyboardInterrupt:
        click.echo(f"interrupted: all processes have ended, their logs are in {folder}", err=True)
        sys.exit(INTERRUPTED)
    summarize(campaign)
    wrong = campaign.all_faults()
    if wrong:
        click.echo("\n".join(["", f"{len(wrong)} things are wrong:", *wrong, f"everything is kept in {folder}"]))
        sys.exit(1)
    shutil.rmtree(folder)


def summarize(campaign: Campaign) -> None:
    """Print what happened and what came of it."""
    load = campaign.load
    happened = ", ".join(f"{count} {what}" for what, count in sorted(campaign.happened.items()))
    click.echo(f"\nfaults: {happened}")
    for (chore, answer), count in sorted(campaign.chores.answers.items()):
        click.echo(f"chore {chore:10} {answer:36} {count:5}")
    click.echo(
        f"{load.total()} records acknowledged, {campaign.read_back} read back; {load.given_up} batches were given up"
    )
    click.echo(f"the longest waits for an acknowledgement: {', '.join(map(str, load.waits))}")
    if campaign.settled_after is not None:
        click.echo(f"all was as it should be {campaign.settled_after:.1f} s after the last fault")
    click.echo(f"the controller's epoch rose to {campaign.epoch}")
    click.echo("resident memory in the longest life of each:")
    for line in campaign.memory.lines():
        click.echo(f"  {line}")


if __name__ == "__main__":
    main()
