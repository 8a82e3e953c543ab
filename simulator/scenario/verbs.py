"""The verbs of scenarios: the action of each, and the notation of its argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from attrs import frozen

from simulator.actions import network, processes, requests, sessions, znodes
from simulator.actions.requests import CreateTopic, CreateTopics, Elect
from simulator.actions.scene import Action
from simulator.scenario.nouns import (
    BROKER_ID,
    BROKERS,
    NODE_ID,
    PARTITION,
    PARTITION_PATTERN,
    PARTITIONS,
    ROUNDS,
    SECONDS,
    SETTING_VALUE,
    TOPIC,
    node,
)
from simulator.scenario.shapes import (
    FLAG,
    Key,
    Shape,
    choice,
    duration,
    either,
    integer,
    list_of,
    map_of,
    number,
    record,
    text,
)
from transport.dynamic_configs import TOPIC_SETTINGS
from transport.messages import ElectionType


@frozen
class Verb:
    """A kind of action, and the shape of its argument, which makes one."""

    kind: type[Action]
    shape: Shape[Action]
    text: str


def _verb(
    kind: type[Action], argument: Shape[Any], build: Callable[[Any], Action] | None = None, text: str | None = None
) -> Verb:
    """Return a verb described by `text`, or else by the first paragraph of the action's docstring."""
    paragraph = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return Verb(kind, argument.then(build or kind), text or " ".join(paragraph.split()))


def _nothing(kind: type[Action]) -> Verb:
    return _verb(kind, FLAG, lambda _: kind())


def _keys(
    kind: type[Action],
    keys: Mapping[str, Key],
    short: Shape[Any] | None = None,
    build: Callable[..., Action] | None = None,
    text: str | None = None,
) -> Verb:
    """Return a verb whose argument is a mapping of the action's fields, or a shorter form of its first one."""

    def fields(**values: Any) -> dict[str, Any]:
        return {"others" if name == "from" else name: value for name, value in values.items()}

    argument = record(fields, keys)
    if short is not None:
        argument = either(argument, short.then(lambda value: {next(iter(keys)): value}))
    make: Callable[..., Action] = build or kind
    return _verb(kind, argument, lambda values: make(**values), text)


def _elect(kind: ElectionType, text: str) -> Verb:
    return _verb(Elect, PARTITIONS, partial(Elect, kind), text)


# --- arguments --------------------------------------------------------------------------------------------------

NODES: Final = list_of(node(), or_one=True)
BROKER_NODES: Final = list_of(node(controllers=False), or_one=True)
CONTROLLER_NODES: Final = list_of(node(brokers=False), or_one=True)
TOPIC_NAMES: Final = list_of(TOPIC, or_one=True)
TARGETS: Final = map_of(PARTITION, BROKERS)
TOTALS: Final = map_of(TOPIC, integer("a number of partitions", 1))


def _assignment(rows: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    if not rows:
        raise ValueError("a topic has one partition or more: write [[1, 2, 3]]")
    return {"assignment": rows}


COUNTS: Final = record(
    dict[str, Any],
    {
        "partitions": Key(integer("a number of partitions", 1), "The number of partitions."),
        "replication_factor": Key(integer("a number of replicas", 1), "The number of replicas of each."),
    },
)
TOPICS: Final = map_of(
    text("a topic's name", r"[a-zA-Z0-9._-]{1,249}"), either(COUNTS, list_of(BROKERS).then(_assignment))
).then(lambda topics: tuple(CreateTopic(name, **how) for name, how in topics.items()))

ONE_WAY: Final = Key(FLAG, "Whether messages to the nodes still arrive.")

VERBS: Final[Mapping[str, Verb]] = {
    "create_topic": _verb(CreateTopics, TOPICS),
    "delete_topic": _verb(requests.DeleteTopic, TOPIC_NAMES),
    "add_partitions": _verb(requests.AddPartitions, TOTALS),
    "alter_topic": _verb(requests.AlterTopic, map_of(TOPIC, map_of(choice(tuple(TOPIC_SETTINGS)), SETTING_VALUE))),
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
    "produce": _verb(requests.Produce, map_of(PARTITION, integer("a number of records", 1))),
    "write_requests": _verb(
        znodes.WriteRequests, map_of(text("a partition", PARTITION_PATTERN), list_of(integer("a broker's id")))
    ),
    "rewrite_topic": _verb(znodes.RewriteTopic, TOPICS),
    "write_election": _verb(znodes.WriteElection, PARTITIONS),
    "mark_for_deletion": _verb(znodes.MarkForDeletion, TOPIC_NAMES),
    "damage": _verb(znodes.Damage, map_of(text("the path of a znode", r"/.+"), text("data", r".*"))),
    "notify_isr_change": _verb(znodes.NotifyIsrChange, PARTITIONS),
    "notify_log_dir": _verb(znodes.NotifyLogDir, BROKER_ID),
    "crash": _keys(
        processes.Crash,
        {
            "nodes": Key(NODES, "The nodes that crash.", is_required=True),
            "noticed": Key(FLAG, "Whether the store ends their sessions at once."),
        },
        NODES,
    ),
    "start": _verb(processes.Start, NODES),
    "restart": _verb(processes.Restart, NODES),
    "wipe": _verb(
        processes.Restart,
        BROKER_NODES,
        partial(processes.Restart, wipe=True),
        "Restart brokers with empty disks; their data is lost.",
    ),
    "change_endpoint": _verb(processes.ChangeEndpoint, BROKER_NODES),
    "stop": _verb(processes.Stop, NODES),
    "pause": _keys(
        processes.Pause,
        {
            "nodes": Key(NODES, "The nodes that are paused.", is_required=True),
            "keeps_session": Key(FLAG, "Whether their sessions with the store survive."),
        },
        NODES,
    ),
    "wake": _verb(processes.Wake, NODES),
    "skew": _verb(processes.Skew, map_of(NODE_ID, duration(least=-86_400))),
    "fail_disk": _keys(
        processes.FailDisk,
        {
            "nodes": Key(BROKER_NODES, "The brokers.", is_required=True),
            "directory": Key(integer("the number of a log directory"), "The log directory that fails, 0 or 1."),
            "noticed": Key(FLAG, "Whether the brokers check their directories and detect the failure themselves."),
        },
        BROKER_NODES,
    ),
    "mend_disk": _verb(processes.MendDisk, BROKER_NODES),
    "stop_fetching": _verb(processes.StopFetching, map_of(BROKER_ID, PARTITIONS)),
    "resume_fetching": _verb(processes.ResumeFetching, map_of(BROKER_ID, PARTITIONS)),
    "keep_out_of_isr": _verb(processes.KeepOutOfIsr, TARGETS),
    "hold_queue": _verb(processes.HoldQueue, CONTROLLER_NODES),
    "release_queue": _verb(processes.ReleaseQueue, CONTROLLER_NODES),
    "crash_on_arrival": _keys(
        processes.CrashOnArrival,
        {
            "round": Key(choice(ROUNDS), "The round.", is_required=True),
            "brokers": Key(BROKER_NODES, "The brokers; by default all that run."),
        },
        choice(ROUNDS),
    ),
    "expire": _verb(sessions.Expire, NODES),
    "disconnect": _verb(sessions.Disconnect, NODES),
    "reconnect": _verb(sessions.Reconnect, NODES),
    "lose_answer": _keys(
        sessions.AtCommit,
        {
            "nodes": Key(NODES, "The nodes that commit.", is_required=True),
            "applied": Key(FLAG, "Whether the commit takes effect; by default it does."),
            "path": Key(text("the path of a znode", r"/.+"), "The commit changes this znode, or one below it."),
        },
        NODES,
        sessions.lose_answer,
        "Lose the answer to the next commit of nodes.",
    ),
    "slow_store": _verb(sessions.SlowStore, map_of(NODE_ID, SECONDS)),
    "lag": _verb(sessions.Lag, map_of(integer("the number of a server", 2), SECONDS)),
    "depose": _nothing(sessions.Depose),
    "isolate": _keys(
        network.Isolate,
        {
            "nodes": Key(NODES, "The nodes that are isolated.", is_required=True),
            "from": Key(NODES, "The nodes they are isolated from; by default all others."),
            "one_way": ONE_WAY,
        },
    ),
    "heal": _nothing(network.Heal),
    "break_connections": _verb(network.BreakConnections, NODES),
    "silence_connections": _verb(network.SilenceConnections, NODES),
    "slow": _keys(
        network.Slow,
        {
            "nodes": Key(NODES, "The nodes whose links are slow.", is_required=True),
            "latency": Key(SECONDS, "The latency of a message."),
            "bytes_per_second": Key(number("a number of bytes", 1), "The bandwidth of the links."),
            "from": Key(NODES, "The nodes at the other end of the links; by default all others."),
            "one_way": ONE_WAY,
        },
    ),
}
"""Every verb of the language."""
