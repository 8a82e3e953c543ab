"""A controller that signals itself, with SIGKILL for example, when it has decided, committed or published a round."""

from __future__ import annotations

import os
import signal

import click
import trio
from attrs import frozen

import klamm
from klamm.cli.demo import scenario
from klamm.cli.running import configure_logs

TOPIC = scenario.ORDERS.topic
TARGET = frozenset(scenario.TARGET)


@frozen
class Executioner(klamm.Observer):
    """An observer that ends the process, or pauses it, once."""

    round: str
    moment: str
    signal: signal.Signals

    def decided(self, decision: klamm.DecidedRound) -> None:
        if (self.round, self.moment) == (decision.round, "decide"):
            os.kill(os.getpid(), self.signal)

    def committed(self, commit: klamm.CommittedRound) -> None:
        if (self.round, self.moment) != (commit.round, "commit"):
            return
        for state in commit.partitions:
            if state.topic == TOPIC and (commit.round != "ISR" or set(state.isr) >= TARGET):
                os.kill(os.getpid(), self.signal)

    def published(self, publication: klamm.PublishedRound) -> None:
        is_the_move = any(tp.topic == TOPIC for tp in publication.subjects)
        if is_the_move and (self.round, self.moment) == (publication.round, "publish"):
            os.kill(os.getpid(), self.signal)


@click.command()
@click.option("--id", "controller_id", type=int)
@click.option("--port", type=int)
@click.option("--zookeeper")
@click.option("--session-timeout", type=int)
@click.option("--after", "moment", nargs=2, help='A round, and "decide", "commit" or "publish".')
@click.option("--signal", "name", default="SIGKILL")
def main(
    controller_id: int, port: int, zookeeper: str, session_timeout: int, moment: tuple[str, str], name: str
) -> None:
    configure_logs()
    config = klamm.ControllerConfig(controller_id, "127.0.0.1", port, zookeeper, session_timeout)

    async def work() -> None:
        await klamm.run(config, observer=Executioner(*moment, signal.Signals[name]))

    trio.run(work)


main()
