"""The verbs of scenarios: the action of each, and the notation of its argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import Factory, frozen
from yaml import Node as YamlNode

from simulator.actions import network, processes, requests, sessions, znodes
from simulator.actions.requests import CreateTopic, CreateTopics, Elect
from simulator.actions.scene import Action
from simulator.scenario.faults import unreadable
from simulator.scenario.names import Names
from simulator.scenario.nouns import PARTITION, ROUNDS, NodeId, NodeShape, PartitionName, SettingValue, TopicName
from simulator.scenario.shapes import (
    Built,
    Choice,
    Duration,
    Either,
    Flag,
    Int,
    Key,
    ListOf,
    MapOf,
    Number,
    Record,
    Schema,
    Shape,
    Text,
)
from transport.dynamic_configs import TOPIC_SETTINGS
from transport.messages import ElectionType


def _text(verb: Verb) -> str:
    return " ".join((inspect.getdoc(verb.kind) or "").partition("\n\n")[0].split())


@frozen
class Verb:
    """The action of a verb; `build` makes one from the value that `shape` reads."""

    kind: type[Action]
    shape: Shape[Any]
    build: Callable[[Any], Action] = Factory(lambda verb: verb.kind, takes_self=True)
    text: str = Factory(_text, takes_self=True)


# --- arguments --------------------------------------------------------------------------------------------------

BROKERS: Final = ListOf(NodeId())
NODES: Final = ListOf(NodeShape(), or_one=True)
BROKER_NODES: Final = ListOf(NodeShape(brokers_only=True), or_one=True)
CONTROLLER_NODES: Final = ListOf(NodeShape(controllers_only=True), or_one=True)
PARTITIONS: Final = ListOf(PartitionName(), or_one=True)
TOPIC_NAMES: Final = ListOf(TopicName(), or_one=True)
SECONDS: Final = Duration()
TARGETS: Final = MapOf(PartitionName(), BROKERS)
TOTALS: Final = MapOf(TopicName(), Int("how many partitions", 1))
ROWS: Final = ListOf(BROKERS)


@frozen
class RowsShape(Shape[Mapping[str, Any]]):
    """The replicas of each partition of a topic."""

    def read(self, node: YamlNode, names: Names) -> Mapping[str, Any]:
        """Return the assignment."""
        rows = ROWS.read(node, names)
        if not rows:
            raise unreadable(node, "a topic has one partition or more: write [[1, 2, 3]]")
        return {"assignment": rows}

    def schema(self) -> Schema:
        """Return a list of lists."""
        return ROWS.schema()


COUNTS: Final[Record[Mapping[str, Any]]] = Record(
    dict,
    {
        "partitions": Key(Int("how many partitions", 1), "How many partitions it has."),
        "replication_factor": Key(Int("how many replicas", 1), "How many replicas each has."),
    },
)
TOPICS: Final[Shape[tuple[CreateTopic, ...]]] = Built(
    MapOf(Text("a topic's name", r"[a-zA-Z0-9._-]{1,249}"), Either(COUNTS, RowsShape())),
    lambda topics: tuple(CreateTopic(name, **how) for name, how in topics.items()),
)


def _nothing(kind: type[Action]) -> Verb:
    return Verb(kind, Flag(), lambda _: kind())


def _keys(kind: type[Action], keys: Mapping[str, Key[Any]], short: Shape[Any] | None = None) -> Verb:
    """Return a verb whose argument is a mapping of the action's fields, or a shorter form of its first one."""

    def build(values: Mapping[str, Any]) -> Action:
        return kind(**{"others" if name == "from" else name: value for name, value in values.items()})

    record: Shape[Action] = Record(lambda **values: build(values), keys)
    return Verb(kind, record if short is None else Either(record, Built(short, kind)), _as_it_is)


def _as_it_is(action: Action) -> Action:
    return action


def _elect(kind: ElectionType, text: str) -> Verb:
    return Verb(Elect, PARTITIONS, partial(Elect, kind), text)


ONE_WAY: Final = Key(Flag(), "Whether the nodes still receive what they are sent.")

VERBS: Final[Mapping[str, Verb]] = {
    "create_topic": Verb(CreateTopics, TOPICS),
    "delete_topic": Verb(requests.DeleteTopic, TOPIC_NAMES),
    "add_partitions": Verb(requests.AddPartitions, TOTALS),
    "alter_topic": Verb(requests.AlterTopic, MapOf(TopicName(), MapOf(Choice(tuple(TOPIC_SETTINGS)), SettingValue()))),
    "reassign": Verb(requests.Reassign, TARGETS),
    "cancel": Verb(
        requests.Reassign,
        PARTITIONS,
        lambda names: requests.Reassign(dict.fromkeys(names)),
        "Cancel reassignments through the admin api.",
    ),
    "elect_preferred": _elect(ElectionType.PREFERRED, "Elect the preferred leaders of partitions."),
    "elect_in_order": Verb(
        Elect,
        TARGETS,
        partial(Elect, ElectionType.PREFERRED, ()),
        "Put the replicas of partitions into a new order, and elect the first of it.",
    ),
    "elect_unclean": _elect(ElectionType.UNCLEAN, "Elect leaders of partitions, from outside the ISR too."),
    "produce": Verb(requests.Produce, MapOf(PartitionName(), Int("how many records", 1))),
    "write_requests": Verb(znodes.WriteRequests, MapOf(Text("a partition", PARTITION), ListOf(Int("a broker's id")))),
    "rewrite_topic": Verb(znodes.RewriteTopic, TOPICS),
    "write_election": Verb(znodes.WriteElection, PARTITIONS),
    "mark_for_deletion": Verb(znodes.MarkForDeletion, TOPIC_NAMES),
    "notify_isr_change": Verb(znodes.NotifyIsrChange, PARTITIONS),
    "notify_log_dir": Verb(znodes.NotifyLogDir, NodeId()),
    "crash": _keys(
        processes.Crash,
        {
            "nodes": Key(NODES, "The nodes that crash.", is_required=True),
            "noticed": Key(Flag(), "Whether the store ends their sessions at once."),
        },
        NODES,
    ),
    "start": Verb(processes.Start, NODES),
    "restart": Verb(processes.Restart, NODES),
    "wipe": Verb(
        processes.Restart,
        BROKER_NODES,
        partial(processes.Restart, wipe=True),
        "Restart brokers on an empty disk: theirs is lost.",
    ),
    "stop": Verb(processes.Stop, NODES),
    "pause": _keys(
        processes.Pause,
        {
            "nodes": Key(NODES, "The nodes that are paused.", is_required=True),
            "keeps_session": Key(Flag(), "Whether their sessions with the store survive."),
        },
        NODES,
    ),
    "wake": Verb(processes.Wake, NODES),
    "skew": Verb(processes.Skew, MapOf(NodeId(brokers_only=False), Duration(least=-86_400))),
    "fail_disk": _keys(
        processes.FailDisk,
        {
            "nodes": Key(BROKER_NODES, "The brokers.", is_required=True),
            "directory": Key(Int("the number of a log directory"), "Which log directory fails: 0 or 1."),
            "noticed": Key(Flag(), "Whether the brokers check their directories, and find out by themselves."),
        },
        BROKER_NODES,
    ),
    "mend_disk": Verb(processes.MendDisk, BROKER_NODES),
    "stop_fetching": Verb(processes.StopFetching, MapOf(NodeId(), PARTITIONS)),
    "resume_fetching": Verb(processes.ResumeFetching, MapOf(NodeId(), PARTITIONS)),
    "keep_out_of_isr": Verb(processes.KeepOutOfIsr, TARGETS),
    "hold_queue": Verb(processes.HoldQueue, CONTROLLER_NODES),
    "release_queue": Verb(processes.ReleaseQueue, CONTROLLER_NODES),
    "crash_on_arrival": _keys(
        processes.CrashOnArrival,
        {
            "round": Key(Choice(ROUNDS), "The round.", is_required=True),
            "brokers": Key(BROKER_NODES, "The brokers; without it, all that run."),
        },
        Choice(ROUNDS),
    ),
    "expire": Verb(sessions.Expire, NODES),
    "disconnect": Verb(sessions.Disconnect, NODES),
    "reconnect": Verb(sessions.Reconnect, NODES),
    "lose_answer": Verb(
        sessions.AtCommit,
        Either(
            Record(
                sessions.lose_answer,
                {
                    "nodes": Key(NODES, "The nodes that commit.", is_required=True),
                    "applied": Key(Flag(), "Whether the commit takes effect; it does, unless false."),
                    "path": Key(Text("the path of a znode", r"/.+"), "The commit changes this znode, or one below it."),
                },
            ),
            Built(NODES, sessions.lose_answer),
        ),
        _as_it_is,
        "Lose the answer to the next commit of nodes.",
    ),
    "slow_store": Verb(sessions.SlowStore, MapOf(NodeId(brokers_only=False), SECONDS)),
    "lag": Verb(sessions.Lag, MapOf(Int("the number of a server", 2), SECONDS)),
    "depose": _nothing(sessions.Depose),
    "isolate": _keys(
        network.Isolate,
        {
            "nodes": Key(NODES, "The nodes that are isolated.", is_required=True),
            "from": Key(NODES, "The nodes they are isolated from; without it, all others."),
            "one_way": ONE_WAY,
        },
    ),
    "heal": _nothing(network.Heal),
    "break_connections": Verb(network.BreakConnections, NODES),
    "silence_connections": Verb(network.SilenceConnections, NODES),
    "slow": _keys(
        network.Slow,
        {
            "nodes": Key(NODES, "The nodes whose links are slow.", is_required=True),
            "latency": Key(SECONDS, "What a message takes."),
            "bytes_per_second": Key(Number("a number of bytes", 1), "How fast the links are."),
            "from": Key(NODES, "The nodes at the other end of the links; without it, all others."),
            "one_way": ONE_WAY,
        },
    ),
}
"""Every verb of the language."""
