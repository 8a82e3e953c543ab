"""A controller that signals itself, with SIGKILL for example, when it has decided, committed or published a round."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import click
import trio
from attrs import evolve, frozen

import klamm
from klamm.cli.demo import scenario
from klamm.cli.running import configure_logs

TARGET = frozenset(scenario.TARGET)


@frozen
class Executioner(klamm.Observer):
    """An observer that ends the process, or pauses it, once."""

    round: str
    moment: str
    signal: signal.Signals
    topic: str

    def decided(self, decision: klamm.DecidedRound) -> None:
        if (self.round, self.moment) == (decision.round, "decide"):
            os.kill(os.getpid(), self.signal)

    def committed(self, commit: klamm.CommittedRound) -> None:
        if (self.round, self.moment) != (commit.round, "commit"):
            return
        for state in commit.partitions:
            if state.topic == self.topic and (commit.round != "ISR" or set(state.isr) >= TARGET):
                os.kill(os.getpid(), self.signal)

    def published(self, publication: klamm.PublishedRound) -> None:
        is_the_move = any(tp.topic == self.topic for tp in publication.subjects)
        if is_the_move and (self.round, self.moment) == (publication.round, "publish"):
            os.kill(os.getpid(), self.signal)


@click.command()
@click.option("--id", "controller_id", type=int)
@click.option("--port", type=int, default=0)
@click.option("--zookeeper")
@click.option("--session-timeout", type=int)
@click.option("--kafka", is_flag=True)
@click.option("--inter-broker-listener-name", "listener", default="PLAINTEXT")
@click.option("--after", "moment", nargs=2, help='A round, and "decide", "commit" or "publish".')
@click.option("--topic", default=scenario.ORDERS.topic, help="The topic that the round is about.")
@click.option("--signal", "name", default="SIGKILL")
def main(moment: tuple[str, str], topic: str, name: str, **options: Any) -> None:
    configure_logs()
    executioner = Executioner(*moment, signal.Signals[name], topic)

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            service = await nursery.start(partial(klamm.run, settings(**options), observer=executioner))
            click.echo(f"listens on {service.port}")

    trio.run(work)


def settings(
    controller_id: int, port: int, zookeeper: str, session_timeout: int, *, kafka: bool, listener: str
) -> klamm.ControllerConfig:
    """Return the settings of a controller that the options name."""
    own = klamm.ControllerConfig(controller_id, "127.0.0.1", port, zookeeper, session_timeout)
    return evolve(own, kafka=kafka, inter_broker_listener_name=listener)


main()
