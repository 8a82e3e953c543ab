"""A controller that kills itself with SIGKILL right after it published a given round of a given topic."""

from __future__ import annotations

import os
import signal

import click
import trio
from attrs import frozen

import controller
from controller.cli.running import configure_logs


@frozen
class Executioner:
    """An observer that ends the process."""

    round: str
    topic: str

    def committed(self, commit: controller.CommittedRound) -> None:
        pass

    def published(self, publication: controller.PublishedRound) -> None:
        if publication.round == self.round and any(tp.topic == self.topic for tp in publication.subjects):
            os.kill(os.getpid(), signal.SIGKILL)


@click.command()
@click.option("--id", "controller_id", type=int)
@click.option("--port", type=int)
@click.option("--zookeeper")
@click.option("--session-timeout", type=int)
@click.option("--after", "round_")
def main(controller_id: int, port: int, zookeeper: str, session_timeout: int, round_: str) -> None:
    configure_logs()
    config = controller.ControllerConfig(controller_id, "127.0.0.1", port, zookeeper, session_timeout)

    async def work() -> None:
        await controller.run(config, observer=Executioner(round_, "orders"))

    trio.run(work)


main()
