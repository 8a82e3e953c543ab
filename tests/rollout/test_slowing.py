"""The throttle of a rollout on brokers that are dead when their moves begin."""

from __future__ import annotations

from pathlib import Path

from controller.admin.kafka_admin import open_kafka_admin
from klamm.cli.reassignment.record_file import RecordFile
from klamm.cli.rollout.slowing import Slowing
from tests.kafka.scripted_nodes import scripted_nodes
from tests.kafka.test_kafka_throttles import BROKER, TP, Settings
from transport.dynamic_configs import LEADER_THROTTLED_RATE
from transport.network import TcpNetwork


async def test_a_broker_that_is_back_is_throttled_with_the_moves_in_flight(tmp_path: Path) -> None:
    settings = Settings()
    settings.of[BROKER, "2"][LEADER_THROTTLED_RATE] = "77"
    file = RecordFile(tmp_path / "plan.json")
    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as nodes:
        nodes.show("orders", (1, 2))
        dead = nodes.nodes.pop(2)
        async with open_kafka_admin(TcpNetwork(), nodes.bootstrap) as admin:
            states = (await admin.read_metadata()).partitions
            slowing = Slowing(admin, file, 4000)
            await slowing.begin(states, {TP: (3, 1)})
            assert not await slowing.is_anyone_back()
            assert settings.of[BROKER, "2"] == {LEADER_THROTTLED_RATE: "77"}
            nodes.nodes[2] = dead
            assert await slowing.is_anyone_back()
            assert not await slowing.is_anyone_back(), "said once"
            await slowing.begin(states, {TP: (3, 1)})
            assert settings.of[BROKER, "2"][LEADER_THROTTLED_RATE] == "4000"
            await slowing.end([TP])
    assert [settings.of[BROKER, name] for name in ("1", "2", "3")] == [{}, {LEADER_THROTTLED_RATE: "77"}, {}]


async def test_a_live_broker_that_takes_no_throttle_is_named(tmp_path: Path) -> None:
    settings = Settings()
    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as nodes:
        nodes.show("orders", (1, 2))
        async with open_kafka_admin(TcpNetwork(), nodes.bootstrap) as admin:
            states = (await admin.read_metadata()).partitions
            slowing = Slowing(admin, RecordFile(tmp_path / "plan.json"), 4000)
            settings.refused.add((BROKER, "2"))
            assert list(await slowing.begin(states, {TP: (3, 1)})) == [2]
            settings.refused.clear()
            assert await slowing.begin(states, {TP: (3, 1)}) == {}
