"""The verbs of scenarios: the action of each, and the notation of its argument."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from yaml import Node as YamlNode

from simulator.actions import network, processes, sessions
from simulator.actions.requests import CreateTopic
from simulator.actions.scene import Action, Strike
from simulator.random_run import happenings
from simulator.random_run.late_cancels import CancelAfterFailover
from simulator.scenario.admin_verbs import ADMIN_VERBS
from simulator.scenario.arguments import (
    BROKER_NODES,
    CONTROLLER_NODES,
    ERROR,
    NODES,
    ONE_WAY,
    REQUESTED,
    TARGETS,
    TOPICS,
    only,
)
from simulator.scenario.faults import unreadable
from simulator.scenario.names import Names
from simulator.scenario.nouns import BROKER_ID, PARTITIONS, ROUNDS, SECONDS, node
from simulator.scenario.shapes import (
    FLAG,
    Key,
    Shape,
    choice,
    duration,
    integer,
    list_of,
    map_of,
    number,
    object_schema,
    optional,
    read_keys,
    text,
)
from simulator.scenario.verb import Verb, by_keys as _keys, nothing as _nothing, verb as _verb
from transport.wire.apis import OURS

# --- actions within actions -------------------------------------------------------------------------------------


def read_action(node: YamlNode, names: Names) -> Action:
    """Read one verb with its argument, and perhaps for how long it lasts. Raises Unreadable."""
    values = read_keys(node, ACTION_KEYS, names)
    verbs = [name for name in values if name in VERBS]
    if len(verbs) != 1:
        raise unreadable(node, f"write one action here, such as crash: controller; found {len(verbs)}")
    return lasting(node, values[verbs[0]], values)


def lasting(node: YamlNode, action: Action, values: Mapping[str, Any]) -> Action:
    """Return an action that ends as the keys `for` and `then` say, if they are among `values`. Raises Unreadable."""
    if "for" not in values and "then" not in values:
        return action
    ends = values.get("then", ())
    if not isinstance(action, Strike) or "for" not in values or not ends:
        raise unreadable(node, "for and then belong together, with a fault: write for: 5s, then: [{start: same}]")
    return happenings.Lasting(action, values["for"], ends)


def _strike(node: YamlNode, names: Names) -> Strike:
    action = read_action(node, names)
    if not isinstance(action, Strike):
        raise unreadable(node, "a request waits for its answer: write what happens at once")
    return action


STRIKES: Final = list_of(Shape(_strike, {"$ref": "#/$defs/action"}))

LASTS: Final[Mapping[str, Key]] = {
    "for": Key(SECONDS, "The time that a fault lasts."),
    "then": Key(STRIKES, "What ends the fault; `same` are the nodes that it struck."),
}

VERBS: Final[Mapping[str, Verb]] = {
    **ADMIN_VERBS,
    "crash": _keys(
        processes.Crash,
        {
            "nodes": Key(NODES, "The nodes that crash.", is_required=True),
            "noticed": Key(FLAG, "Whether the store ends their sessions at once."),
        },
        NODES,
    ),
    "start": _keys(
        processes.Start,
        {
            "nodes": Key(NODES, "The nodes that start, unless they are alive.", is_required=True),
            "wipe": Key(FLAG, "Whether their disks are empty."),
            "elsewhere": Key(FLAG, "Whether brokers listen on another port."),
        },
        NODES,
    ),
    "restart": _verb(processes.Restart, NODES),
    "wipe": _verb(
        processes.Restart,
        BROKER_NODES,
        partial(processes.Restart, wipe=True),
        "Restart brokers with empty disks; their data is lost.",
    ),
    "change_endpoint": _verb(processes.ChangeEndpoint, BROKER_NODES),
    "stop": _verb(processes.Stop, NODES),
    "rest_without": _verb(processes.RestWithout, BROKER_NODES),
    "pause": _keys(
        processes.Pause,
        {
            "nodes": Key(NODES, "The nodes that are paused.", is_required=True),
            "keeps_session": Key(FLAG, "Whether their sessions with the store survive."),
        },
        NODES,
    ),
    "suspend": _keys(
        processes.Suspend,
        {
            "nodes": Key(NODES, "The nodes that are suspended.", is_required=True),
            "loses_session": Key(FLAG, "Whether their heartbeats stop as well."),
        },
        NODES,
    ),
    "wake": _verb(processes.Wake, NODES),
    "skew": _verb(processes.Skew, map_of(node(), duration(least=-86_400))),
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
    "limit_disks": _verb(processes.LimitDisks, map_of(BROKER_ID, integer("a number of bytes"))),
    "stop_fetching": _verb(processes.StopFetching, map_of(BROKER_ID, PARTITIONS)),
    "resume_fetching": _verb(processes.ResumeFetching, map_of(BROKER_ID, PARTITIONS)),
    "refuse_orders": _keys(
        processes.RefuseOrders,
        {
            "partitions": Key(
                map_of(node(controllers=False), PARTITIONS), "The partitions, by broker.", is_required=True
            ),
            "error": Key(ERROR, "The error; unknown_server_error by default."),
        },
        map_of(node(controllers=False), PARTITIONS),
    ),
    "fail_orders": _keys(
        processes.FailOrders,
        {
            "partitions": Key(
                map_of(node(controllers=False), PARTITIONS), "The partitions, by broker.", is_required=True
            ),
            "calls": Key(list_of(choice(processes.SERVICE_CALLS), or_one=True), "The methods; all by default."),
            "times": Key(integer("a number of times"), "How often each raises; by default until obey_orders."),
        },
        map_of(node(controllers=False), PARTITIONS),
    ),
    "hesitate": _keys(
        processes.Hesitate,
        {
            "nodes": Key(BROKER_NODES, "The brokers.", is_required=True),
            "seconds": Key(SECONDS, "The additional time for each partition of an order; 1 s by default."),
        },
        BROKER_NODES,
    ),
    "obey_orders": _verb(processes.ObeyOrders, BROKER_NODES),
    "refuse_requests": _keys(
        processes.RefuseRequests,
        {
            "nodes": Key(NODES, "The nodes.", is_required=True),
            "apis": Key(
                list_of(choice(tuple(api.name for api in OURS.by_key.values())), or_one=True),
                "The apis of the requests.",
                is_required=True,
            ),
            "error": Key(ERROR, "The error; by default there is no answer."),
            "carried_out": Key(FLAG, "Whether the requests take effect in spite of that."),
        },
    ),
    "answer_requests": _verb(processes.AnswerRequests, NODES),
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
    "slow_store": _verb(sessions.SlowStore, map_of(node(), optional(SECONDS))),
    "lag": _verb(sessions.Lag, map_of(integer("the number of a server", 2), SECONDS)),
    "slow_commits": _verb(sessions.SlowCommits, SECONDS),
    "lose_quorum": _nothing(sessions.LoseQuorum),
    "regain_quorum": _nothing(sessions.RegainQuorum),
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
    "silence_connections": _keys(
        network.SilenceConnections,
        {
            "nodes": Key(NODES, "The two nodes.", is_required=True),
            "one_way": Key(FLAG, "Whether only what the first one sends is lost."),
        },
        NODES,
    ),
    "delay_request": _keys(
        network.DelayRequest,
        {
            "nodes": Key(NODES, "The senders.", is_required=True),
            "to": Key(NODES, "The receivers; by default all others."),
            "seconds": Key(SECONDS, "The additional time that the request takes; 1 s by default."),
            "breaks": Key(FLAG, "Whether the connection breaks for its sender, which then sends the request again."),
            "api": REQUESTED,
        },
    ),
    "tear_request": _keys(
        network.TearRequest,
        {
            "nodes": Key(NODES, "The senders.", is_required=True),
            "to": Key(NODES, "The receivers; by default all others."),
            "api": REQUESTED,
        },
    ),
    "refuse_connections": _verb(network.RefuseConnections, NODES),
    "ignore_connections": _verb(network.IgnoreConnections, NODES),
    "serve_connections": _verb(network.ServeConnections, NODES),
    "slow": _keys(
        network.Slow,
        {
            "nodes": Key(NODES, "The nodes whose links are slow.", is_required=True),
            "latency": Key(SECONDS, "The latency of a message."),
            "bytes_per_second": Key(
                optional(number("a number of bytes", 1)), "The bandwidth of the links; null makes them as usual."
            ),
            "jitter": Key(SECONDS, "The most that a message takes longer than the latency."),
            "from": Key(NODES, "The nodes at the other end of the links; by default all others."),
            "one_way": ONE_WAY,
        },
    ),
    "at_commit": _keys(
        sessions.AtCommit,
        {
            "nodes": Key(NODES, "The nodes that commit.", is_required=True),
            "moment": Key(choice(("before", "after")), "Whether it happens before or after.", is_required=True),
            "then": Key(STRIKES, "What happens to them, as `same`.", is_required=True),
            "path": Key(text("the path of a znode", r"/.+"), "The commit changes this znode, or one below it."),
        },
    ),
    "in_turn": _verb(happenings.InTurn, STRIKES),
    "leave": _keys(
        happenings.Leave,
        {
            "nodes": Key(NODES, "The nodes that leave.", is_required=True),
            "seconds": Key(SECONDS, "The time until they start again.", is_required=True),
            "elsewhere": Key(FLAG, "Whether brokers then listen on another port."),
        },
    ),
    "name_leader": _keys(
        happenings.NameLeader,
        {
            "partitions": Key(PARTITIONS, "The partitions.", is_required=True),
            "place": Key(integer("a place in a list"), "The place of the new first replica.", is_required=True),
        },
    ),
    "request_topic": _verb(
        CreateTopic,
        TOPICS.then(only),
        lambda topic: topic,
        "Create a topic, without waiting until its partitions have leaders.",
    ),
    "create_and_read": _verb(happenings.CreateAndRead, TOPICS.then(only)),
    "replace_topic": _keys(
        happenings.Replace,
        {
            "topic": Key(TOPICS.then(only), "The new topic, with the name of the old.", is_required=True),
            "by_hand": Key(FLAG, "Whether the old one is marked for deletion in the store.", is_required=True),
        },
    ),
    "cancel_after_failover": _keys(
        CancelAfterFailover,
        {
            "by_hand": Key(FLAG, "Whether the cancels are written to the store.", is_required=True),
            "seconds": Key(SECONDS, "The time until the crashed nodes start again.", is_required=True),
        },
    ),
}
"""Every verb of the language."""

ACTION_KEYS: Final[Mapping[str, Key]] = {**{name: Key(verb.shape, verb.text) for name, verb in VERBS.items()}, **LASTS}
"""The keys of an action within another one."""

ACTION_SCHEMA: Final = object_schema(ACTION_KEYS)
