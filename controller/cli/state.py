"""`klamm state dump`: what is in ZooKeeper."""

from __future__ import annotations

from typing import Any

import click

from controller.cli.cluster import zookeeper_option
from controller.cli.output import print_json
from controller.cli.running import run
from controller.monitoring.state_dump import dump as dump_state
from transport.store.security import security_of_environment
from transport.store.zookeeper import open_zookeeper


@click.group()
def state() -> None:
    """Look at what is in ZooKeeper."""


@state.command()
@zookeeper_option
def dump(zookeeper: str) -> None:
    """Print brokers and partitions as JSON, read from ZooKeeper without being controller."""

    async def work() -> dict[str, Any]:
        async with open_zookeeper(zookeeper, security=security_of_environment()) as store:
            return await dump_state(store)

    print_json(run(work))
