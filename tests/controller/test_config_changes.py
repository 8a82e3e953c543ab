"""Changes of settings at run time: refusals, writes, and their effect on the controller."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from controller.events import ConfigChange, TopicChange
from controller.handlers.config_changes import EXPIRY_MS, PURGED_AT_ONCE, config_change
from tests.controller.conftest import TP, Bench
from tests.controller.meddler import Meddler
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreateTopicsRequest,
    CreateTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    NewTopic,
    ResourceError,
    TopicError,
)
from transport.metadata import NO_LEADER, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set, Znode

UNCLEAN = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"
REPLICAS = "leader.replication.throttled.replicas"
ORDERS = ConfigResource(ConfigResourceType.TOPIC, "orders")
BROKER_3 = ConfigResource(ConfigResourceType.BROKER, "3")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


def altered(resource: ConfigResource, **settings: str | None) -> AlterConfigsResource:
    """Return changes: a value to set, None to delete; underscores stand for dots."""
    changes = []
    for name, value in settings.items():
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        changes.append(AlterableConfig(name.replace("_", "."), operation, value or ""))
    return AlterConfigsResource(resource, tuple(changes))


async def alter(bench: Bench, *resources: AlterConfigsResource) -> tuple[ResourceError, ...]:
    return (await bench.ask(IncrementalAlterConfigsRequest(resources), IncrementalAlterConfigsResponse)).resources


async def settings_at(bench: Bench, path: str) -> dict[str, str] | None:
    znode = await bench.read(path)
    return None if znode is None else formats.decode_config(path, znode.data)


async def announced(bench: Bench) -> list[str]:
    [names] = await bench.store.children([paths.CONFIG_CHANGES])
    found = await bench.store.read([f"{paths.CONFIG_CHANGES}/{name}" for name in names or ()])
    return [formats.decode_config_change("", znode.data) for znode in found if znode is not None]


# --- what is written --------------------------------------------------------------------------------------------


async def test_settings_are_written_and_announced_as_kafka_does_it(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    outcomes = await alter(bench, altered(ORDERS, min_insync_replicas="2"), altered(BROKER_3, min_insync_replicas="1"))
    assert [outcome.error for outcome in outcomes] == [ErrorCode.NONE, ErrorCode.NONE]
    written = await bench.znode("/config/topics/orders")
    assert written.data == b'{"version":1,"config":{"min.insync.replicas":"2"}}'
    assert await settings_at(bench, "/config/brokers/3") == {MIN_ISR: "1"}
    [names] = await bench.store.children([paths.CONFIG_CHANGES])
    assert names == ["config_change_0000000000", "config_change_0000000001"]
    assert await announced(bench) == ["topics/orders", "brokers/3"]
    await alter(bench, altered(ALL_BROKERS, min_insync_replicas="2"))
    assert (await announced(bench))[-1] == "brokers/<default>"
    # A topic and its notification stand or fall together.
    assert bench.seen.rounds[-1] == "configs"


async def test_changes_that_are_only_checked_are_judged_and_not_made(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    asked = (
        altered(ORDERS, min_insync_replicas="2"),
        altered(BROKER_3, min_insync_replicas="none"),
        altered(ConfigResource(ConfigResourceType.TOPIC, "nowhere"), min_insync_replicas="2"),
    )
    request = IncrementalAlterConfigsRequest(asked, validate_only=True)
    checked = (await bench.ask(request, IncrementalAlterConfigsResponse)).resources
    expected = [ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [outcome.error for outcome in checked] == expected
    assert await settings_at(bench, "/config/topics/orders") is None
    assert await announced(bench) == []
    # What would be refused because of the settings there is refused, too.
    await bench.store.multi([Create(paths.topic_config("orders"), b"{")])
    request = IncrementalAlterConfigsRequest(asked[:1], validate_only=True)
    [damaged] = (await bench.ask(request, IncrementalAlterConfigsResponse)).resources
    assert (damaged.error, "repair or delete it first" in damaged.message) == (ErrorCode.INVALID_CONFIG, True)
    made = await alter(bench, *asked)
    assert [outcome.error for outcome in made][1:] == expected[1:]


async def test_a_change_leaves_other_settings_alone_also_those_that_nobody_here_knows(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    data = formats.encode_config({"retention.ms": "1", "cleanup.policy": "compact", MIN_ISR: "2"})
    await bench.store.multi([Create(paths.topic_config("orders"), data)])
    changes = altered(ORDERS, min_insync_replicas=None, retention_ms=None, max_message_bytes="9")
    [outcome] = await alter(bench, changes)
    assert outcome.error is ErrorCode.NONE
    expected = {"cleanup.policy": "compact", "max.message.bytes": "9"}
    assert await settings_at(bench, paths.topic_config("orders")) == expected
    [outcome] = await alter(bench, altered(ORDERS, cleanup_policy=None, max_message_bytes=None))
    assert await settings_at(bench, paths.topic_config("orders")) == {}


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, ConfigOperation.APPEND, "0:2,0:1", "0:1,0:2"),
        ("1:3", ConfigOperation.APPEND, "0:10,0:9,1:3", "0:9,0:10,1:3"),
        ("*", ConfigOperation.APPEND, "0:1", "*"),
        ("0:1", ConfigOperation.APPEND, "*", "*"),
        ("0:1,1:3", ConfigOperation.SUBTRACT, "0:1,0:2", "1:3"),
        ("0:1", ConfigOperation.SUBTRACT, "0:1", None),
        ("*", ConfigOperation.SUBTRACT, "0:1", "*"),
        (None, ConfigOperation.SUBTRACT, "0:1", None),
    ],
)
async def test_replicas_are_appended_to_a_list_and_subtracted_from_it(
    bench: Bench, before: str | None, operation: ConfigOperation, value: str, after: str | None
) -> None:
    await bench.start((1, 2, 3))
    if before is not None:
        await alter(bench, altered(ORDERS, leader_replication_throttled_replicas=before))
    change = AlterableConfig(REPLICAS, operation, value)
    [outcome] = await alter(bench, AlterConfigsResource(ORDERS, (change,)))
    assert outcome.error is ErrorCode.NONE
    assert await settings_at(bench, "/config/topics/orders") == ({} if after is None else {REPLICAS: after})


async def test_a_change_that_another_overtook_is_made_on_what_that_left(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    path = paths.topic_config("orders")
    await bench.store.multi([Create(path, formats.encode_config({"retention.ms": "1"}))])
    meddler = Meddler(bench.store, path, [Set(path, formats.encode_config({"retention.ms": "2"}), 0)])
    bench.runner.store = meddler
    [outcome] = await alter(bench, altered(ORDERS, min_insync_replicas="2"))
    assert (outcome.error, meddler.overtaken) == (ErrorCode.NONE, 1)
    assert await settings_at(bench, path) == {"retention.ms": "2", MIN_ISR: "2"}


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "hint"),
    [
        (altered(ORDERS, min_insinc_replicas="2"), ErrorCode.INVALID_CONFIG, "did you mean min.insync.replicas?"),
        (altered(ORDERS, min_insync_replicas="two"), ErrorCode.INVALID_CONFIG, "an integer from 1, is 'two'"),
        (altered(ORDERS, min_insync_replicas="0"), ErrorCode.INVALID_CONFIG, "an integer from 1, is 0"),
        (altered(ORDERS, min_insync_replicas="1.5"), ErrorCode.INVALID_CONFIG, "an integer from 1"),
        (altered(ORDERS, max_message_bytes="99999999"), ErrorCode.INVALID_CONFIG, "from 0 to 16777216"),
        (altered(ORDERS, unclean_leader_election_enable="yes"), ErrorCode.INVALID_CONFIG, "true or false"),
        (altered(ORDERS, leader_replication_throttled_replicas="0-1"), ErrorCode.INVALID_CONFIG, "PARTITION:BROKER"),
        (altered(ORDERS, message_max_bytes="9"), ErrorCode.INVALID_CONFIG, "did you mean max.message.bytes?"),
        (altered(ORDERS, min_insync_replica=None), ErrorCode.INVALID_CONFIG, "did you mean min.insync.replicas?"),
        (altered(BROKER_3, leader_replication_throttled_rate="-1"), ErrorCode.INVALID_CONFIG, "from 0"),
        (altered(BROKER_3, unclean_leader_election_enable="true"), ErrorCode.INVALID_CONFIG, "--entity-default"),
        (
            AlterConfigsResource(ORDERS, (AlterableConfig(MIN_ISR, ConfigOperation.SET, "2"),) * 2),
            ErrorCode.INVALID_CONFIG,
            "min.insync.replicas may be altered once",
        ),
        (
            AlterConfigsResource(ORDERS, (AlterableConfig(MIN_ISR, ConfigOperation.APPEND, "2"),)),
            ErrorCode.INVALID_CONFIG,
            "min.insync.replicas is not a list",
        ),
        (
            altered(ConfigResource(ConfigResourceType.TOPIC, "carts"), min_insync_replicas="2"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "there is no topic carts: see `klamm topic list`",
        ),
        (
            altered(ConfigResource(ConfigResourceType.BROKER, "x"), min_insync_replicas="2"),
            ErrorCode.INVALID_REQUEST,
            "'x' is no broker's id",
        ),
    ],
)
async def test_what_is_not_valid_is_refused_and_nothing_is_written(
    bench: Bench, asked: AlterConfigsResource, error: ErrorCode, hint: str
) -> None:
    await bench.start((1, 2, 3))
    good = altered(ALL_BROKERS, min_insync_replicas="2")
    refused, granted = await alter(bench, asked, good)
    assert (refused.resource, refused.error) == (asked.resource, error)
    assert hint in refused.message
    assert granted.error is ErrorCode.NONE
    assert await announced(bench) == ["brokers/<default>"]


async def test_changes_of_one_resource_are_made_together_or_not_at_all(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    [outcome] = await alter(bench, altered(ORDERS, min_insync_replicas="2", max_message_bytes="none"))
    assert outcome.error is ErrorCode.INVALID_CONFIG
    assert await settings_at(bench, paths.topic_config("orders")) is None


async def test_a_topic_stands_in_a_request_once(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    outcomes = await alter(bench, altered(ORDERS, min_insync_replicas="2"), altered(ORDERS, min_insync_replicas="1"))
    assert {outcome.error for outcome in outcomes} == {ErrorCode.INVALID_REQUEST}
    assert await announced(bench) == []


async def test_settings_that_cannot_be_decoded_are_not_written_over(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.store.multi([Create(paths.topic_config("orders"), b"{")])
    [outcome] = await alter(bench, altered(ORDERS, min_insync_replicas="2"))
    assert outcome.error is ErrorCode.INVALID_CONFIG
    assert "repair or delete it first" in outcome.message


async def test_a_topic_that_was_deleted_meanwhile_gets_no_settings(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.delete_topic("orders", 1)
    [outcome] = await alter(bench, altered(ORDERS, min_insync_replicas="2"))
    assert outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await settings_at(bench, paths.topic_config("orders")) is None


# --- what the controller makes of it ----------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(("resource", "is_led"), [(ORDERS, True), (ALL_BROKERS, True), (BROKER_3, False)])
async def test_partitions_without_a_leader_are_tried_again_once_an_unclean_election_is_allowed(
    bench: Bench, resource: ConfigResource, is_led: bool
) -> None:
    await bench.write_topic("carts", (4, 3))
    await bench.start((1, 2))
    await bench.kill(2, 3)
    await bench.kill(1, 4)
    await bench.revive(2, 3)
    for tp in (TP, TopicPartition("carts", 0)):
        assert bench.context.leadership[tp].leader == NO_LEADER
    await alter(bench, altered(resource, unclean_leader_election_enable="true"))
    bench.seen.clear()
    await bench.handle(ConfigChange())
    assert await bench.leader_and_isr() == ((2, (2,)) if is_led else (NO_LEADER, (1,)))
    # Another topic is as it was, unless the default of all brokers allows it too.
    assert (bench.context.leadership[TopicPartition("carts", 0)].leader == 3) is (resource == ALL_BROKERS)
    # What is not allowed is not even tried.
    tried = {tp for commit in bench.seen.commits for tp in commit.partitions}
    assert len(tried) == (0 if not is_led else 2 if resource == ALL_BROKERS else 1)
    bench.seen.clear()
    await bench.handle(ConfigChange())
    assert bench.seen.rounds == []


async def paths_read(bench: Bench, *changes: str | bytes) -> list[str]:
    """Announce changes, of entities or in other words, and return which settings the controller reads then."""
    seen: list[str] = []
    store = bench.store

    class Reader(Meddler):
        async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
            seen.extend(path for path in paths if not path.startswith("/config/changes/"))
            return await super().read(paths, watch=watch)

    data = [formats.encode_config_change(each) if isinstance(each, str) else each for each in changes]
    await store.multi([Create(f"{paths.CONFIG_CHANGES}/config_change_", each, sequence=True) for each in data])
    bench.runner.store = Reader(store, "", ())
    await bench.handle(ConfigChange())
    bench.runner.store = store
    return sorted(set(seen))


async def test_of_the_settings_only_those_are_read_that_new_notifications_name(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await create(bench, NewTopic("carts", 1, 3), NewTopic("users", 1, 3))
    await bench.handle(TopicChange())
    of = {name: paths.topic_config(name) for name in ("carts", "orders", "users")}
    default = paths.broker_config(None)
    assert await paths_read(bench, "topics/orders") == [default, of["orders"]]
    assert await paths_read(bench, "topics/carts", "topics/carts", "topics/gone") == [default, of["carts"]]
    assert await paths_read(bench) == []
    with capture_logs() as logs:
        assert await paths_read(bench, "brokers/3", "users/alice") == []
    assert logs == []
    everything = sorted([default, *of.values()])
    assert await paths_read(bench, "brokers/<default>") == everything
    assert await paths_read(bench, b"what nobody can read") == everything
    await bench.fail_over()
    assert await paths_read(bench) == []
    assert await paths_read(bench, "topics/users") == [default, of["users"]]


async def test_a_notification_of_others_that_has_the_next_name_is_stepped_over(bench: Bench) -> None:
    """A copied tree contains notifications, and the counter of its sequence begins again at 0."""
    await bench.start((1, 2, 3))
    theirs = [f"{paths.CONFIG_CHANGES}/config_change_{number:010}" for number in (3, 4, 5)]
    await bench.store.multi([Create(path, formats.encode_config_change("topics/theirs")) for path in theirs])
    outcome = await alter(bench, altered(ORDERS, min_insync_replicas="2"), altered(BROKER_3, min_insync_replicas="2"))
    assert {item.error for item in outcome} == {ErrorCode.NONE}
    assert await announced(bench) == ["topics/theirs"] * 3 + ["topics/orders", "brokers/3"]


async def test_notifications_are_purged_after_a_quarter_of_an_hour(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await alter(bench, altered(ORDERS, min_insync_replicas="2"))
    await bench.run(config_change(bench.context, EXPIRY_MS))
    assert await announced(bench) == ["topics/orders"]
    await bench.run(config_change(bench.context, EXPIRY_MS + 1))
    assert await announced(bench) == []


async def test_many_notifications_are_purged_in_turns_oldest_first(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    path, data = f"{paths.CONFIG_CHANGES}/config_change_", formats.encode_config_change("topics/orders")
    await bench.store.multi([Create(path, data, sequence=True) for _ in range(PURGED_AT_ONCE + 1)])
    await bench.run(config_change(bench.context, EXPIRY_MS + 1))
    assert (await bench.store.children([paths.CONFIG_CHANGES])) == [[f"config_change_{PURGED_AT_ONCE:010d}"]]
    await bench.run(config_change(bench.context, EXPIRY_MS + 1))
    assert await announced(bench) == []


async def test_every_change_is_heard_of_also_by_the_next_controller(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    for _ in range(2):
        heard: list[object] = []
        unsubscribe = bench.store.subscribe(heard.append)
        await alter(bench, altered(ORDERS, min_insync_replicas="2"))
        assert [getattr(event, "path", None) for event in heard] == [paths.CONFIG_CHANGES]
        await bench.handle(ConfigChange())
        await alter(bench, altered(ORDERS, min_insync_replicas="3"))
        assert [getattr(event, "path", None) for event in heard] == [paths.CONFIG_CHANGES] * 2
        unsubscribe()
        await bench.fail_over()


# --- of new topics ----------------------------------------------------------------------------------------------


async def create(bench: Bench, *topics: NewTopic) -> tuple[TopicError, ...]:
    return (await bench.ask(CreateTopicsRequest(topics), CreateTopicsResponse)).topics


@pytest.mark.requirement("D8")
async def test_a_new_topic_has_settings_of_its_own_and_none_of_a_namesake(bench: Bench) -> None:
    await bench.start()
    await bench.store.multi([Create(paths.topic_config("orders"), formats.encode_config({MIN_ISR: "3"}))])
    outcomes = await create(bench, NewTopic("orders", 1, 3), NewTopic("carts", 1, 3, configs=((UNCLEAN, "true"),)))
    assert [outcome.error for outcome in outcomes] == [ErrorCode.NONE, ErrorCode.NONE]
    znodes = [await bench.read(paths.topic_config(name)) for name in ("orders", "carts")]
    assert [znode and znode.data for znode in znodes] == [
        b'{"version":1,"config":{}}',
        b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}',
    ]
    # Nobody can see a topic before its settings.
    settings, topic = znodes[1], await bench.read(paths.topic("carts"))
    assert settings is not None
    assert topic is not None
    assert settings.stat.czxid == topic.stat.czxid


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        (("unclean.election.enable", "true"), "did you mean unclean.leader.election.enable?"),
        ((UNCLEAN, "1"), "true or false"),
    ],
)
async def test_a_topic_with_settings_that_are_not_valid_is_not_created(
    bench: Bench, config: tuple[str, str], hint: str
) -> None:
    await bench.start()
    [outcome] = await create(bench, NewTopic("orders", 1, 3, configs=(config,)))
    assert outcome.error is ErrorCode.INVALID_CONFIG
    assert hint in outcome.message
    assert await bench.read(paths.topic("orders")) is None
    assert await bench.read(paths.topic_config("orders")) is None
