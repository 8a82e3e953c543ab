"""The language of scenarios as shapes, which `loader` uses to read and `schema` to describe scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import evolve
from yaml import MappingNode, Node as YamlNode, ScalarNode

from simulator.actions.scene import Request
from simulator.kafka.releases import RELEASES
from simulator.scenario.arguments import TOPICS
from simulator.scenario.faults import unreadable
from simulator.scenario.model import PATIENCE, RATE, STATE, Expectations, LoadPlan, ScenarioEvent, Trigger
from simulator.scenario.names import Names
from simulator.scenario.nouns import PARTITION, PARTITION_PATTERN, SECONDS, WHEN
from simulator.scenario.shapes import (
    FLAG,
    Key,
    Schema,
    Shape,
    choice,
    either,
    flow,
    integer,
    keys_of,
    list_of,
    map_of,
    number,
    object_schema,
    pairs_of,
    read_keys,
    record,
    text,
)
from simulator.scenario.verbs import ACTION_SCHEMA, LASTS, VERBS, lasting
from simulator.settings import Settings
from transport.errors import ErrorCode
from transport.store.limits import LEAST_MAX_BUFFER

# --- cluster, topics, load --------------------------------------------------------------------------------------

SETTINGS: Final[Mapping[str, Key]] = {
    "brokers": Key(integer("a number of brokers", 1), "The number of brokers; their ids are 1, 2, ..."),
    "broker_ids": Key(list_of(integer("a broker's id")), "The ids of the brokers, instead of their number."),
    "first_controller": Key(integer("a controller's id", 101), "The controller that starts first and becomes active."),
    "delete_topic_enable": Key(FLAG, "Whether topics can be deleted."),
    "controllers": Key(integer("a number of controllers", 1), "The number of controllers; their ids are 101, 102, ..."),
    "servers": Key(integer("a number of servers", 1), "The number of servers in the ZooKeeper ensemble."),
    "racks": Key(list_of(text("the name of a rack")), "The racks; broker n is in rack n modulo their number."),
    "releases": Key(
        list_of(choice(tuple(RELEASES))),
        "If any, the brokers are Apache Kafka's: broker n is of the release at index n modulo their number.",
    ),
    "min_insync_replicas": Key(integer("a number of replicas", 1), "The minimum size of the ISR for acks=all."),
    "unclean_leader_election": Key(FLAG, "Whether a replica outside the ISR may lead if no member of it can."),
    "leader_rebalance_interval": Key(
        integer("a number of seconds", 1),
        "The seconds between automatic preferred elections; without it there are none.",
    ),
    "session_timeout": Key(SECONDS, "The time after which the store ends the session of a silent process."),
    "request_timeout": Key(SECONDS, "The time that controllers wait for a broker's answer."),
    "controller_timeout": Key(SECONDS, "The time that brokers wait for the controller's answer."),
    "replica_lag_time": Key(SECONDS, "The time that a follower may lag before its leader removes it from the ISR."),
    "fetch_wait": Key(SECONDS, "The time that a follower's fetch waits for data."),
    "fetch_timeout": Key(SECONDS, "The additional time that a follower waits for the answer before it reconnects."),
    "fetch_bytes": Key(integer("a number of bytes", 1), "The most bytes in the answer to a follower's fetch."),
    "latency": Key(SECONDS, "The latency of a message between two hosts."),
    "bytes_per_second": Key(number("a number of bytes"), "The bandwidth of each link, in each direction."),
    "jute_maxbuffer": Key(
        integer("a number of bytes", LEAST_MAX_BUFFER), "The size of the largest request that the store accepts."
    ),
    "chunk_operations": Key(
        integer("a number of operations", 1), "The most operations that a controller commits together by choice."
    ),
    "store_latency": Key(SECONDS, "The latency of a message from or to the store."),
}

LOAD: Final = either(record(LoadPlan, keys_of(LoadPlan)), RATE.then(LoadPlan))

# --- what is expected -------------------------------------------------------------------------------------------


def expectations(keys: Mapping[str, Key]) -> Shape[Expectations]:
    """Return the shape of expectations: partitions by name, and other keys."""

    def read(node: YamlNode, names: Names) -> Expectations:
        partitions = [(key, value) for key, value in pairs_of(node) if re.fullmatch(PARTITION_PATTERN, key.value)]
        others = [(key, value) for key, value in pairs_of(node) if not re.fullmatch(PARTITION_PATTERN, key.value)]
        return Expectations(
            map_of(PARTITION, STATE).read(_with_pairs(node, partitions), names),
            **read_keys(_with_pairs(node, others), keys, names),
        )

    by_name = {f"^{PARTITION_PATTERN}$": STATE.schema}
    return Shape(read, {**object_schema(keys), "patternProperties": by_name})


def _with_pairs(node: YamlNode, pairs: list[tuple[ScalarNode, YamlNode]]) -> MappingNode:
    """Return a mapping at the place of a node, with these pairs."""
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


END_KEYS: Final = {name: key for name, key in keys_of(Expectations).items() if name != "refused"}
"""The keys of expectations of the end, where no action can be refused."""

# --- events -----------------------------------------------------------------------------------------------------

EVENT_KEYS: Final[Mapping[str, Key]] = {
    "at": Key(SECONDS, "The time of the event, counted from the beginning; with `when`, the time to watch from."),
    "when": Key(
        WHEN,
        "The step at which it happens: TOPIC-NUMBER (or anything) decides, commits, reaches or publishes ROUND.",
    ),
    "after": Key(SECONDS, "The time between the end of the previous event, or the step of `when`, and this one."),
    **{name: Key(verb.shape, verb.text) for name, verb in VERBS.items()},
    **LASTS,
    "expect": Key(expectations(keys_of(Expectations)), "What must hold when the event is done."),
    "waits_for": Key(
        expectations(END_KEYS), "What to wait for after the event, up to `within`; expectations are compared then."
    ),
    "within": Key(SECONDS, "The longest time to wait for the expectations, or for what waits_for says."),
    "stays": Key(SECONDS, "The time for which the expectations must continue to hold."),
}

_TIMES: Final = ("at", "after")


def _event(node: YamlNode, names: Names) -> ScenarioEvent:
    """Read an event: at most one trigger, at most one verb, and optional expectations."""
    if _expects(node, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        names = evolve(names, are_known=False)
    values = read_keys(node, EVENT_KEYS, names)
    keys = {key.value: key for key, _ in pairs_of(node)}
    times, verbs = [k for k in keys if k in _TIMES], [k for k in keys if k in VERBS]
    for several, what in ((times, "time"), (verbs, "action")):
        if len(several) > 1 and not (several is times and "when" in keys):
            raise unreadable(keys[several[1]], f"an event has one {what}: it has {several[0]} already")
    if not verbs and not {"expect", "waits_for"}.intersection(keys):
        raise unreadable(node, f"nothing happens here: write one of {', '.join(VERBS)}, expect or waits_for")
    if _expects(node) and (not verbs or not issubclass(VERBS[verbs[0]].kind, Request)):
        askable = ", ".join(name for name, verb in VERBS.items() if issubclass(verb.kind, Request))
        raise unreadable(keys["expect"], f"no request here that can be refused: write one of {askable}")
    for key, needed in (("within", {"expect", "waits_for"}), ("stays", {"expect"})):
        if key in keys and needed.isdisjoint(keys):
            raise unreadable(keys[key], f"{key} applies to expectations: write {' or '.join(sorted(needed))}, too")
    action = lasting(node, values[verbs[0]], values) if verbs else None
    text = "expect" if "expect" in keys else "waits_for"
    if verbs:
        said = [(key.value, flow(value)) for key, value in pairs_of(node) if key.value in (verbs[0], *LASTS)]
        text = " ".join(f"{word} {value}" for word, value in said)
    trigger = Trigger(values.get("at"), values.get("when"), values.get("after", 0.0))
    expect = values.get("expect", Expectations())
    waits_for = values.get("waits_for")
    within = values.get("within", 0.0 if waits_for is None else PATIENCE)
    return ScenarioEvent(
        node.start_mark.line + 1, text, trigger, action, expect, within, values.get("stays", 0.0), waits_for
    )


def _expects(node: YamlNode, code: ErrorCode | None = None) -> bool:
    """Return whether an event expects a refusal, with the error `code` if given."""
    expected = [value for key, value in pairs_of(node) if key.value == "expect"]
    refused = [value for mapping in expected for key, value in pairs_of(mapping) if key.value == "refused"]
    return any(code is None or value.value == code.name for value in refused)


# --- the whole --------------------------------------------------------------------------------------------------

TOP_KEYS: Final[Mapping[str, Key]] = {
    "cluster": Key(record(Settings, SETTINGS), "The size and the configuration of the cluster."),
    "topics": Key(TOPICS, "The topics that exist at the beginning."),
    "load": Key(LOAD, "Records per second that producers write throughout, with acks=all."),
    "matrix": Key(
        map_of(text("a name of small letters", r"[a-z_]+"), list_of(Shape(lambda node, _: node, {}))),
        "Values with which the scenario runs, in all combinations; $NAME stands for a value anywhere.",
    ),
    "records": Key(integer("a number of records"), "The number of records in each partition at the beginning."),
    "seed": Key(integer("a seed"), "The seed of all that is left to chance, unless another one is given."),
    "in_order": Key(
        FLAG,
        "Whether each event waits for the one before it, and must succeed; true by default. Otherwise events have "
        "times and steps of their own, and those that cannot be done are passed over, as in a random run.",
    ),
    "events": Key(list_of(Shape(_event, object_schema(EVENT_KEYS))), "The events, in order."),
    "lasts": Key(SECONDS, "The time at which all faults are repaired; by default after the last event."),
    "expect": Key(expectations(END_KEYS), "What must hold at the end, after all faults are repaired."),
    "settles": Key(SECONDS, f"The longest time to wait for that, {PATIENCE:g} s by default."),
}
"""The keys of a scenario's file."""


def schema() -> Schema:
    """Return the JSON Schema of a scenario's file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of klamm simulate",
        **object_schema(TOP_KEYS),
        "$defs": {"action": ACTION_SCHEMA},
    }
