"""Settings of topics and brokers: which one is in force."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.config import ControllerConfig
from controller.handlers.configs import unclean_allowed
from tests.controller.conftest import Bench
from transport.store import formats, paths
from transport.store.protocol import Create

UNCLEAN = "unclean.leader.election.enable"


async def write(bench: Bench, path: str, data: bytes) -> None:
    await bench.store.multi([Create(path, data)])


async def write_setting(bench: Bench, path: str, value: str | None) -> None:
    if value is not None:
        await write(bench, path, formats.encode_config({UNCLEAN: value, "retention.ms": "1"}))


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("topic", "default", "static", "allowed"),
    [
        (None, None, False, False),
        (None, None, True, True),
        (None, "true", False, True),
        (None, "false", True, False),
        ("true", None, False, True),
        ("TRUE ", "false", False, True),
        ("false", "true", True, False),
        ("perhaps", "true", True, False),
        (None, "perhaps", True, False),
    ],
)
async def test_a_topics_setting_outranks_the_default_and_that_the_controllers_own(
    bench: Bench, topic: str | None, default: str | None, static: bool, allowed: bool
) -> None:
    bench.context.config = evolve(bench.context.config, unclean_leader_election_enable=static)
    await write_setting(bench, paths.topic_config("orders"), topic)
    await write_setting(bench, paths.broker_config(None), default)
    found = await bench.run(unclean_allowed(bench.context, ["orders", "orders"]))
    assert found == (frozenset({"orders"}) if allowed else frozenset())


async def test_settings_that_cannot_be_decoded_allow_nothing(bench: Bench) -> None:
    bench.context.config = ControllerConfig(1001, unclean_leader_election_enable=True)
    await write(bench, paths.topic_config("orders"), b"{")
    await write(bench, paths.topic_config("bills"), b"[]")
    await write_setting(bench, paths.topic_config("carts"), None)
    found = await bench.run(unclean_allowed(bench.context, ["orders", "bills", "carts"]))
    assert found == frozenset({"carts"})


async def test_a_default_that_cannot_be_decoded_leaves_what_a_topic_says_itself(bench: Bench) -> None:
    bench.context.config = ControllerConfig(1001, unclean_leader_election_enable=True)
    await write(bench, paths.broker_config(None), b"{")
    await write_setting(bench, paths.topic_config("orders"), "true")
    found = await bench.run(unclean_allowed(bench.context, ["orders", "carts"]))
    assert found == frozenset({"orders"})
