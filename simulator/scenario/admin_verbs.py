"""The verbs of scenarios for what administrators and tools request, and write to the store themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulator.actions import edits, placements, recreations, requests, signals, znodes
from simulator.actions.producer_ids import AskForProducerIds
from simulator.actions.proposals import ProposeIsr
from simulator.actions.requests import CreateTopics, Elect
from simulator.actions.rollouts import OrderRollout, StartRollout
from simulator.scenario.arguments import FLAWS, KINDS, SETTING, TARGETS, TOPIC_NAMES, TOPICS, TOTALS, words
from simulator.scenario.nouns import (
    BROKER_ID,
    PARTITION,
    PARTITION_PATTERN,
    PARTITIONS,
    SECONDS,
    SETTING_VALUE,
    TOPIC,
    node,
)
from simulator.scenario.shapes import FLAG, Key, choice, integer, list_of, map_of, text
from simulator.scenario.verb import Verb, by_keys as _keys, nothing as _nothing, verb as _verb
from transport.messages import ElectionType, RolloutOrder
from transport.store.tree import Access

_ROLLOUT: Final = text("the name of a rollout", r"[A-Za-z0-9._-]+")
_CONTROLLERS: Final = list_of(node(brokers=False), or_one=True)
_LIMIT: Final = integer("a limit", 1)
_URL: Final = text("the URL of a page")


def _elect(kind: ElectionType, text: str) -> Verb:
    return _verb(Elect, PARTITIONS, partial(Elect, kind), text)


ADMIN_VERBS: Final[Mapping[str, Verb]] = {
    "create_topic": _verb(CreateTopics, TOPICS),
    "validate_topics": _verb(requests.ValidateTopics, TOPICS),
    "validate_partitions": _verb(requests.ValidatePartitions, TOTALS),
    "delete_topic": _verb(requests.DeleteTopic, TOPIC_NAMES),
    "add_partitions": _verb(requests.AddPartitions, TOTALS),
    "alter_topic": _verb(requests.AlterTopic, map_of(TOPIC, map_of(SETTING, SETTING_VALUE))),
    "alter_broker": _verb(requests.AlterBroker, map_of(BROKER_ID, map_of(SETTING, SETTING_VALUE))),
    "validate_settings": _verb(requests.ValidateSettings, map_of(TOPIC, map_of(SETTING, SETTING_VALUE))),
    "validate_broker_settings": _verb(
        requests.ValidateBrokerSettings, map_of(BROKER_ID, map_of(SETTING, SETTING_VALUE))
    ),
    "reassign": _verb(requests.Reassign, TARGETS),
    "cancel": _verb(
        requests.Reassign,
        PARTITIONS,
        lambda names: requests.Reassign(dict.fromkeys(names)),
        "Cancel reassignments through the admin api.",
    ),
    "elect_preferred": _elect(ElectionType.PREFERRED, "Elect the preferred leaders of partitions."),
    "elect_in_order": _verb(
        Elect,
        TARGETS,
        partial(Elect, ElectionType.PREFERRED, ()),
        "Put the replicas of partitions into a new order, and elect the first one.",
    ),
    "elect_unclean": _elect(ElectionType.UNCLEAN, "Elect leaders of partitions, even from outside the ISR."),
    "elect": _keys(
        Elect,
        {
            "kind": Key(choice(tuple(KINDS)).then(KINDS.__getitem__), "The kind of election.", is_required=True),
            "partitions": Key(PARTITIONS, "The partitions; by default all that need a leader."),
            "orders": Key(TARGETS, "The new orders of partitions' replicas."),
        },
        text="Ask for an election, sensible or not: its kind, partitions and orders are independent.",
    ),
    "propose_isr": _keys(
        ProposeIsr,
        {
            "partition": Key(PARTITION, "The partition.", is_required=True),
            "flaw": Key(choice(tuple(FLAWS)).then(FLAWS.__getitem__), "Why it must be refused.", is_required=True),
        },
    ),
    "ask_for_producer_ids": _verb(AskForProducerIds, node(controllers=False)),
    "start_rollout": _keys(
        StartRollout,
        {
            "name": Key(_ROLLOUT, "The name of the rollout.", is_required=True),
            "targets": Key(TARGETS, "The new replicas of partitions.", is_required=True),
            "into": Key(_LIMIT, "The most replicas in flight into a broker; by default 5."),
            "out_of": Key(_LIMIT, "The most replicas in flight out of a leader; by default 5."),
            "leaders": Key(_LIMIT, "The most moves in flight that take away a broker's leadership; by default 5."),
            "in_all": Key(_LIMIT, "The most moves in flight; by default 500."),
            "throttle": Key(_LIMIT, "Bytes per second and broker; by default there is no throttle."),
            "bytes": Key(_LIMIT, "The most bytes in flight; by default there is no limit."),
            "pause_file": Key(text("the path of a file"), "The file that holds it up while it exists; see touch_file."),
            "go_url": Key(_URL, "The page that holds it up while it does not answer 2xx; see break_page."),
            "adapts": Key(FLAG, "Whether the throttle is changed by how brokers do."),
        },
    ),
    "order_rollout": _keys(
        OrderRollout,
        {
            "name": Key(_ROLLOUT, "The name of the rollout.", is_required=True),
            "order": Key(words(RolloutOrder), "The order.", is_required=True),
            "into": Key(_LIMIT, "The most replicas in flight into a broker from now on."),
            "out_of": Key(_LIMIT, "The most replicas in flight out of a leader from now on."),
            "leaders": Key(_LIMIT, "The most moves in flight that take away a broker's leadership from now on."),
            "in_all": Key(_LIMIT, "The most moves in flight from now on."),
            "throttle": Key(_LIMIT, "Bytes per second and broker from now on."),
        },
    ),
    "touch_file": _verb(signals.TouchFile, text("the path of a file")),
    "remove_file": _verb(signals.RemoveFile, text("the path of a file")),
    "break_page": _keys(
        signals.BreakPage,
        {
            "url": Key(_URL, "The page.", is_required=True),
            "silent": Key(FLAG, "Whether it does not answer at all."),
        },
        _URL,
    ),
    "mend_page": _verb(signals.MendPage, _URL),
    "list_reassignments": _nothing(requests.ListReassignments),
    "describe_topics": _nothing(requests.DescribeTopics),
    "read_from": _keys(
        requests.ReadFrom,
        {
            "nodes": Key(_CONTROLLERS, "The controllers.", is_required=True),
            "times": Key(_LIMIT, "The number of reads; by default one."),
            "every": Key(SECONDS, "The seconds between them."),
        },
        _CONTROLLERS,
    ),
    "produce": _verb(requests.Produce, map_of(PARTITION, integer("a number of records", 1))),
    "write_requests": _verb(
        znodes.WriteRequests, map_of(text("a partition", PARTITION_PATTERN), list_of(integer("a broker's id")))
    ),
    "rewrite_topic": _verb(znodes.RewriteTopic, TOPICS),
    "place_topic": _verb(placements.PlaceTopic, TOPICS),
    "recreate_topic": _verb(recreations.RecreateTopic, TOPICS),
    "write_election": _verb(znodes.WriteElection, PARTITIONS),
    "mark_for_deletion": _verb(znodes.MarkForDeletion, TOPIC_NAMES),
    "damage": _verb(znodes.Damage, map_of(text("the path of a znode", r"/.+"), text("data", r".*"))),
    "damage_existing": _verb(znodes.DamageExisting, map_of(text("the path of a znode", r"/.+"), text("data", r".*"))),
    "write_settings": _verb(
        znodes.WriteSettings, map_of(text("an entity such as topics/orders"), map_of(SETTING, text("a value", r".*")))
    ),
    "allow": _keys(
        znodes.Allow,
        {
            "path": Key(text("the path of a znode", r"/.+"), "The znode.", is_required=True),
            "access": Key(words(Access), "The access: all, read or none; by default all."),
        },
    ),
    "assign_strays": _verb(znodes.AssignStrays, TOPIC),
    "edit_topic": _keys(
        edits.EditTopic,
        {
            "topic": Key(TOPIC, "The topic.", is_required=True),
            "edit": Key(words(edits.TopicEdit), "What becomes of its znode.", is_required=True),
        },
    ),
    "edit_state": _keys(
        edits.EditState,
        {
            "partition": Key(PARTITION, "The partition.", is_required=True),
            "edit": Key(words(edits.StateEdit), "What becomes of its znode.", is_required=True),
        },
    ),
    "notify_isr_change": _verb(znodes.NotifyIsrChange, PARTITIONS),
    "notify_log_dir": _verb(znodes.NotifyLogDir, node(controllers=False)),
}
