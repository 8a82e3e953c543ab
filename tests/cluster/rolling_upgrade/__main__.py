"""`python -m tests.cluster.rolling_upgrade`: a rolling upgrade from the last release to this tree, and back.

One command, which needs Java and the repository's history:

    .venv/bin/python -m tests.cluster.rolling_upgrade

runs two controllers and four brokers on a real ZooKeeper, restarts them one by one from the previous tree to this one
and back, and says whether anything was lost. `--base REVISION` names another previous tree, and `--seed N` draws other
orders of the restarts. It takes two to three minutes. Exit code 1 if anything was wrong; then all logs and data stay
where the last line says. `tests/cluster/test_rolling_upgrade.py` is the same as a test of `make soak`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click
import trio

from tests.cluster.rolling_upgrade.trees import LAST_RELEASE, NoSuchTree, current, previous
from tests.cluster.rolling_upgrade.upgrade import CutShort, upgrade_and_back
from transport.zookeeper_server import DevelopmentServerError


def _leaf(group: BaseExceptionGroup[Exception]) -> BaseException:
    """Return the first exception of a group that is no group."""
    first = group.exceptions[0]
    return _leaf(first) if isinstance(first, BaseExceptionGroup) else first


@click.command()
@click.option("--base", default=LAST_RELEASE, show_default=True, help="The revision of the previous tree.")
@click.option("--seed", type=int, help="Draw the order of the restarts; without it, controllers are first.")
def main(base: str, seed: int | None) -> None:
    """Upgrade a cluster from the previous tree to this one and go back, and see whether anything is lost."""
    folder = Path(tempfile.mkdtemp(prefix="rolling-upgrade-"))
    try:
        old = previous(base, folder / "previous")
    except NoSuchTree as error:
        raise click.ClickException(str(error)) from None
    try:
        upgrade = trio.run(upgrade_and_back, folder, old, current(), seed)
    except* (DevelopmentServerError, CutShort) as group:
        click.echo(f"the run was cut short: {_leaf(group)}\nits logs are in {folder}", err=True)
        sys.exit(1)
    faults = upgrade.all_faults()
    click.echo(f"{upgrade.load.total()} records acknowledged, {upgrade.read_back} read back")
    if faults:
        click.echo("\n".join([f"{len(faults)} things are wrong:", *faults, f"everything is kept in {folder}"]))
        sys.exit(1)
    click.echo("nothing was lost, and no controller resigned")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
