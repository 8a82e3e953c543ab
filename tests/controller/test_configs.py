"""Settings of topics and brokers: the value in effect."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.config import ControllerConfig
from controller.handlers.configs import unclean_allowed
from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.messages import (
    ConfigResource,
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ResourceConfigs,
)
from transport.store import formats, paths
from transport.store.protocol import Create

UNCLEAN = "unclean.leader.election.enable"


def topic(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name)


def broker(broker_id: int | None = None) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))


ORDERS = topic("orders")


async def write(bench: Bench, path: str, data: bytes) -> None:
    await bench.store.multi([Create(path, data)])


async def write_setting(bench: Bench, path: str, value: str | None) -> None:
    if value is not None:
        await write(bench, path, formats.encode_config({UNCLEAN: value, "retention.ms": "1"}))


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("own", "default", "static", "allowed"),
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
    bench: Bench, own: str | None, default: str | None, static: bool, allowed: bool
) -> None:
    bench.context.config = evolve(bench.context.config, unclean_leader_election_enable=static)
    await write_setting(bench, paths.topic_config("orders"), own)
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


# --- telling them -----------------------------------------------------------------------------------------------


async def describe(bench: Bench, resource: ConfigResource) -> ResourceConfigs:
    [answer] = (await bench.ask(DescribeConfigsRequest((resource,)), DescribeConfigsResponse)).resources
    return answer


async def test_a_topics_settings_are_told_with_where_they_are_from(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    bench.context.config = ControllerConfig(1001, min_insync_replicas=2)
    await write(bench, paths.topic_config("orders"), formats.encode_config({"retention.ms": "1", UNCLEAN: "true"}))
    await write(bench, paths.broker_config(None), formats.encode_config({"message.max.bytes": "7", UNCLEAN: "false"}))
    entries = {entry.name: (entry.value, entry.source) for entry in (await describe(bench, ORDERS)).entries}
    assert entries == {
        UNCLEAN: ("true", "DYNAMIC_TOPIC_CONFIG"),
        "min.insync.replicas": ("2", "STATIC_BROKER_CONFIG"),
        "max.message.bytes": ("7", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        "leader.replication.throttled.replicas": ("", "DEFAULT_CONFIG"),
        "follower.replication.throttled.replicas": ("", "DEFAULT_CONFIG"),
        "retention.ms": ("1", "DYNAMIC_TOPIC_CONFIG"),
    }


async def test_a_broker_inherits_from_the_default_of_all_brokers(bench: Bench) -> None:
    await bench.start()
    await write(bench, paths.broker_config(None), formats.encode_config({"min.insync.replicas": "2", UNCLEAN: "true"}))
    data = formats.encode_config({"leader.replication.throttled.rate": "10", UNCLEAN: "false"})
    await write(bench, paths.broker_config(3), data)
    of_broker = {e.name: (e.value, e.source) for e in (await describe(bench, broker(3))).entries}
    assert of_broker["leader.replication.throttled.rate"] == ("10", "DYNAMIC_BROKER_CONFIG")
    assert of_broker["min.insync.replicas"] == ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    # No single broker decides about this one.
    assert of_broker[UNCLEAN] == ("true", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    of_all = {e.name: (e.value, e.source) for e in (await describe(bench, broker())).entries}
    assert of_all["leader.replication.throttled.rate"] == (str(2**63 - 1), "DEFAULT_CONFIG")
    assert of_all["min.insync.replicas"] == ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG")


async def test_a_broker_that_is_down_has_settings_and_one_that_nobody_knows_has_none(bench: Bench) -> None:
    # 3 is down and has a replica, 7 has settings, 8 was there with a disk of its own.
    await bench.start((1, 2, 3), brokers=(1, 2))
    await write(bench, paths.broker_config(7), formats.encode_config({"leader.replication.throttled.rate": "10"}))
    await write(bench, paths.storage_id(8), formats.encode_storage_id("disk"))
    for known in (broker(), broker(1), broker(3), broker(7), broker(8)):
        assert (await describe(bench, known)).error is ErrorCode.NONE
    answer = await describe(bench, broker(9))
    assert (answer.error, answer.entries) == (ErrorCode.BROKER_NOT_AVAILABLE, ())
    assert answer.message == "there is no broker 9, and nothing is known of it: see `klamm broker list`"


async def test_settings_of_what_is_not_there_cannot_be_told(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await write(bench, paths.topic_config("orders"), b"{")
    answers = [await describe(bench, resource) for resource in (ORDERS, topic("carts"), broker(-1))]
    assert [answer.error for answer in answers] == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert "/config/topics/orders" in answers[0].message
