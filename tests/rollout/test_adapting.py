"""`--throttle auto`: the rate grows while brokers answer quickly and replicas keep up, and is halved otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import trio
from attrs import define

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.move_admin import MoveAdmin
from controller.rollout.adapting import FIRST, LEAST, SECONDS
from klamm.cli.rollout.adapting import Adapting
from transport.metadata import TopicPartition

LAGGING = [TopicPartition("orders", 3), TopicPartition("orders", 1)]


@define
class Brokers:
    """Brokers that take some time to answer."""

    seconds: float = 0.01
    fault: str = ""

    async def describe_log_dirs(
        self, broker_ids: Sequence[int], partitions: Sequence[TopicPartition]
    ) -> dict[int, BrokerLogDirs]:
        assert partitions == ()
        await trio.sleep(self.seconds)
        return {broker: BrokerLogDirs(fault=self.fault if broker == 2 else "") for broker in broker_ids}


@define
class Scene:
    """A rate, and the brokers that it depends on."""

    brokers: Brokers
    adapting: Adapting

    async def after(self, looks: int, lagging: Sequence[TopicPartition] = (), copied: float = 1e9) -> str | None:
        """Return what the last of some looks says."""
        said = None
        for _ in range(looks):
            said = await self.adapting.look(cast("MoveAdmin", self.brokers), [1, 2], lagging, copied)
            await trio.sleep(SECONDS)
        return said


async def test_it_grows_while_all_is_well_but_not_far_beyond_what_is_copied(autojump_clock: object) -> None:
    assert autojump_clock
    scene = Scene(Brokers(), Adapting())
    assert await scene.after(3) is None
    assert scene.adapting.rate == FIRST * 5**3 // 4**3
    await scene.after(20, copied=20_000_000)
    assert scene.adapting.rate == 40_000_000


async def test_it_is_halved_by_slow_answers_by_silence_and_by_lag(autojump_clock: object) -> None:
    assert autojump_clock
    for brokers, lagging, said in (
        (Brokers(seconds=0.8), (), "throttle lowered to 5.0 MB/s: an answer of a broker took 0.8 s"),
        (Brokers(fault="gone"), (), "throttle lowered to 5.0 MB/s: broker 2 does not answer"),
        (Brokers(), LAGGING, "throttle lowered to 5.0 MB/s: orders-1 and 1 more lost a replica from its ISR"),
    ):
        scene = Scene(brokers, Adapting())
        assert await scene.after(1, lagging) == said
        await scene.after(10, lagging)
        assert scene.adapting.rate == LEAST


async def test_a_rate_below_the_least_is_not_raised_by_trouble(autojump_clock: object) -> None:
    assert autojump_clock
    scene = Scene(Brokers(fault="gone"), Adapting(rate=LEAST // 2))
    await scene.after(1)
    assert scene.adapting.rate == LEAST // 2


async def test_it_is_changed_only_every_few_seconds(autojump_clock: object) -> None:
    assert autojump_clock
    adapting, admin = Adapting(), cast("MoveAdmin", Brokers(seconds=1))
    assert await adapting.look(admin, [1], [], 1e9) is not None
    assert await adapting.look(admin, [1], [], 1e9) is None
    assert adapting.rate == FIRST // 2
