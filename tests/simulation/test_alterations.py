"""Settings are altered exactly as asked, with a notification: anything else is reported."""

from __future__ import annotations

import pytest

from tests.simulation.histories import FIRST, History
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    NewTopic,
)
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Set

pytestmark = pytest.mark.usefixtures("autojump_clock")

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
PATH = paths.topic_config("orders")
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
RAISED = AlterConfigsResource(TOPIC, (AlterableConfig(MIN_ISR, ConfigOperation.SET, "2"),))


class Altered(History):
    """A history in which topic orders has a setting that is not the subject of any request."""

    def __init__(self) -> None:
        super().__init__()
        parents = ("/config", paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS, paths.CONFIG_CHANGES)
        self.commit("admin", *(Create(path) for path in parents))
        self.commit("admin", Create(PATH, formats.encode_config({UNCLEAN: "true"})))

    def request(self, item: AlterConfigsResource, *, validate_only: bool = False) -> None:
        self.safety.asked(IncrementalAlterConfigsRequest((item,), validate_only))

    def alter(self, *, notify: str = "topics/orders", host: str = FIRST, **settings: str) -> None:
        """Write settings, given with _ for a dot, and the notification of an entity."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        told = Create(f"{paths.CONFIG_CHANGES}/config_change_", formats.encode_config_change(notify), sequence=True)
        self.commit(host, Set(PATH, formats.encode_config(named), -1), *([told] if notify else []))


async def test_what_was_asked_for_is_not_reported() -> None:
    history = Altered()
    history.request(RAISED)
    history.alter(unclean_leader_election_enable="true", min_insync_replicas="2")
    history.safety.settings_answered(0, RAISED)
    history.request(AlterConfigsResource(TOPIC, (AlterableConfig(UNCLEAN, ConfigOperation.DELETE, ""),)))
    history.alter(min_insync_replicas="2")
    history.alter(host="admin", min_insync_replicas="1", notify="")
    assert history.found is None


@pytest.mark.parametrize(("value", "why"), [("2", "although the request was to check it only"), ("3", "which nobody")])
async def test_a_request_that_only_checks_explains_no_alteration(value: str, why: str) -> None:
    history = Altered()
    history.request(RAISED, validate_only=True)
    history.alter(unclean_leader_election_enable="true", min_insync_replicas=value)
    assert why in (history.found or "")


async def test_a_check_does_not_contradict_the_same_request_in_earnest() -> None:
    history = Altered()
    history.request(RAISED)
    history.request(RAISED, validate_only=True)
    history.alter(unclean_leader_election_enable="true", min_insync_replicas="2")
    history.safety.settings_answered(0, RAISED)
    assert history.found is None


@pytest.mark.parametrize(
    "settings",
    [
        {"min_insync_replicas": "2"},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": "3"},
        {"unclean_leader_election_enable": "false", "min_insync_replicas": "2"},
        {"unclean_leader_election_enable": "true", "min_insync_replicas": "2", "retention_ms": "1"},
        {"unclean_leader_election_enable": "true"},
    ],
)
async def test_settings_that_nobody_asked_for_are_seen(settings: dict[str, str]) -> None:
    history = Altered()
    history.request(RAISED)
    history.alter(**settings)
    assert "controller-101 altered /config/topics/orders from" in (history.found or "")


@pytest.mark.parametrize("notify", ["", "topics/others"])
async def test_an_alteration_without_its_notification_is_seen(notify: str) -> None:
    history = Altered()
    history.request(RAISED)
    history.alter(unclean_leader_election_enable="true", min_insync_replicas="2", notify=notify)
    assert history.found == "controller-101 altered /config/topics/orders and notified nobody"


async def test_an_answer_without_the_alteration_is_seen() -> None:
    history = Altered()
    history.request(RAISED)
    history.alter(unclean_leader_election_enable="true", min_insync_replicas="2")
    since = history.safety.settings.number
    history.safety.settings_answered(since, RAISED)
    assert history.found == "/config/topics/orders was reported to be altered, but was not: SET min.insync.replicas=2"


async def test_lists_may_be_merged() -> None:
    history = Altered()
    name = "follower.replication.throttled.replicas"
    history.request(AlterConfigsResource(TOPIC, (AlterableConfig(name, ConfigOperation.APPEND, "0:1"),)))
    history.alter(unclean_leader_election_enable="true", follower_replication_throttled_replicas="0:1,0:2")
    assert history.found is None


@pytest.mark.parametrize(("value", "is_reported"), [("2", False), ("1", True)])
async def test_a_new_topic_has_the_settings_asked_for(value: str, is_reported: bool) -> None:
    history = Altered()
    topic = NewTopic("new", 1, 1, configs=((MIN_ISR, "2"),))
    history.safety.asked(CreateTopicsRequest((topic,)))
    config = Create(paths.topic_config("new"), formats.encode_config({MIN_ISR: value}))
    znode = Create(paths.topic("new"), b'{"partitions": {"0": [4]}, "topic_id": "another"}')
    history.commit(FIRST, config, znode)
    assert ("which nobody asked for" in (history.found or "")) is is_reported


async def test_settings_that_go_with_their_topic_are_not_reported() -> None:
    history = Altered()
    history.commit(FIRST, Delete(PATH))
    assert history.found is None
