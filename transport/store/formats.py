"""The contents of znodes: Kafka's JSON, read leniently and written byte for byte as Kafka writes it.

Readers ignore unknown keys, and rewriting a topic's znode keeps them (KAFKA-12835). A value that cannot be decoded, or
that could neither be sent to brokers nor be written again, raises `UndecodableZnode`, which names the path and the
fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from attrs import field, frozen

from transport import addresses
from transport.addresses import address_text
from transport.messages import BrokerEndpoint
from transport.metadata import (
    MAX_RISING_EPOCH,
    NO_LEADER,
    BrokerRegistration,
    LeaderAndIsr,
    LeaderRecoveryState,
    ReplicaAssignment,
    TopicPartition,
    is_topic_name,
    number_in,
)
from transport.store import fields, paths, plain_formats
from transport.store.protocol import Delete, Set

UndecodableZnode = fields.UndecodableZnode
"""The exception of all decoders."""

LISTENER: Final = "KLAMM"
TOPIC_KEYS: Final = frozenset({"version", "topic_id", "partitions", "adding_replicas", "removing_replicas"})


# --- /controller, /controller_epoch, /klamm/controllers/ID ------------------------------------------------------


def encode_controller(controller_id: int, now_ms: int) -> bytes:
    """Encode `/controller`; `now_ms` is the time of the election."""
    return orjson.dumps({"version": 2, "brokerid": controller_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1})


def decode_controller(data: bytes) -> int:
    """Return the id of the controller that `/controller` names."""
    return fields.number(paths.CONTROLLER, fields.load(paths.CONTROLLER, data).get("brokerid"), "brokerid")


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode `/controller_epoch`, a decimal number as text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """Return the controller epoch."""
    fields.require_readable(paths.CONTROLLER_EPOCH, data)
    epoch = number_in(data.decode("ascii", "replace").strip())
    if epoch is None:
        raise UndecodableZnode(paths.CONTROLLER_EPOCH, f"not a number: {fields.shown(data)}")
    return fields.number(paths.CONTROLLER_EPOCH, epoch, "the epoch", most=MAX_RISING_EPOCH)


def encode_controller_endpoint(endpoint: BrokerEndpoint) -> bytes:
    """Encode the address of a controller."""
    return orjson.dumps({"version": 1, "host": endpoint.host, "port": endpoint.port})


def decode_controller_endpoint(controller_id: int, data: bytes) -> BrokerEndpoint:
    """Return the address of a controller."""
    path = paths.controller_endpoint(controller_id)
    value = fields.load(path, data)
    return BrokerEndpoint(controller_id, fields.host(path, value.get("host")), fields.port(path, value.get("port")))


# --- /brokers/ids/N ---------------------------------------------------------------------------------------------


def encode_broker(registration: BrokerRegistration, now_ms: int) -> bytes:
    """Encode a broker's registration: Kafka's version 5 with one listener named KLAMM, and a storage id."""
    value: dict[str, Any] = {
        "version": 5,
        "host": None,
        "port": -1,
        "endpoints": [f"{LISTENER}://{address_text(registration.host, registration.port)}"],
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "listener_security_protocol_map": {LISTENER: "PLAINTEXT"},
        "features": {},
    }
    if registration.rack is not None:
        value["rack"] = registration.rack
    if registration.storage_id is not None:
        value["storage_id"] = registration.storage_id
    return orjson.dumps(value)


def decode_broker(broker_id: int, data: bytes, czxid: int) -> BrokerRegistration:
    """Return the registration in `data`; the broker epoch is the znode's `czxid`.

    Raises UndecodableZnode if it has no listener named KLAMM, so that it is not one of our brokers.
    """
    path = paths.broker(broker_id)
    value = fields.load(path, data)
    endpoints = value.get("endpoints") or ()
    if not isinstance(endpoints, list | tuple):
        raise UndecodableZnode(path, f"endpoints must be a list, is {fields.shown(endpoints)}")
    for endpoint in endpoints:
        name, _, address = str(endpoint).partition("://")
        host, port = addresses.split(address)
        if name == LISTENER:
            number = number_in(port)
            if number is None:
                raise UndecodableZnode(path, f"a listener must be {LISTENER}://host:port, is {fields.shown(endpoint)}")
            return BrokerRegistration(
                broker_id,
                fields.host(path, host),
                fields.port(path, number),
                czxid,
                fields.optional_text(path, value.get("rack"), "rack"),
                fields.optional_text(path, value.get("storage_id"), "storage_id"),
            )
    raise UndecodableZnode(path, f"no listener named {LISTENER}: not a broker of this kind of cluster")


def is_foreign(broker_id: int, data: bytes) -> bool:
    """Return whether a registration is that of another kind of broker: with an address, but no listener named KLAMM.

    A registration without any address is damaged, and says nothing about its writer.
    """
    try:
        value = fields.load(paths.broker(broker_id), data)
    except UndecodableZnode:
        return False
    endpoints = value.get("endpoints")
    addresses = [str(each) for each in endpoints if "://" in str(each)] if isinstance(endpoints, list) else []
    is_klamm = any(each.startswith(f"{LISTENER}://") for each in addresses)
    return not is_klamm and (bool(addresses) or isinstance(value.get("host"), str))


# --- /klamm/storage_ids/N ---------------------------------------------------------------------------------------


def encode_storage_id(storage_id: str) -> bytes:
    """Encode a broker's storage id."""
    return orjson.dumps({"version": 1, "storage_id": storage_id})


def decode_storage_id(broker_id: int, data: bytes) -> str:
    """Return the storage id that a broker had."""
    path = paths.storage_id(broker_id)
    return fields.text(path, fields.load(path, data).get("storage_id"), "storage_id")


# --- /brokers/topics/T and below --------------------------------------------------------------------------------


@frozen
class TopicZnode:
    """A topic's assignment and id. `unknown` has the unknown keys, to be written back."""

    partitions: Mapping[int, ReplicaAssignment]
    topic_id: str | None = None
    unknown: Mapping[str, Any] = field(factory=dict)


def encode_topic(topic: TopicZnode) -> bytes:
    """Encode a topic's znode: Kafka's version 3."""
    moving = [(p, a) for p, a in topic.partitions.items() if a.adding_replicas or a.removing_replicas]
    value: dict[str, Any] = {
        "version": 3,
        "partitions": {p: a.replicas for p, a in topic.partitions.items()},
        "adding_replicas": {p: a.adding_replicas for p, a in moving if a.adding_replicas},
        "removing_replicas": {p: a.removing_replicas for p, a in moving if a.removing_replicas},
    }
    if topic.topic_id is not None:
        value["topic_id"] = topic.topic_id
    return orjson.dumps(value | dict(topic.unknown), option=orjson.OPT_NON_STR_KEYS)


def decode_topic(name: str, data: bytes) -> TopicZnode:
    """Return a topic's assignment, from any of Kafka's versions."""
    path = paths.topic(name)
    if not is_topic_name(name):
        raise UndecodableZnode(path, "a topic cannot have this name: delete the znode")
    plain = plain_formats.topic(data)
    return TopicZnode(*plain) if plain else decode_topic_leniently(path, data)


def decode_topic_leniently(path: str, data: bytes) -> TopicZnode:
    """Return a topic's assignment, also where it is being reassigned or has values of others."""
    value = fields.load(path, data)
    partitions = value.get("partitions")
    if not isinstance(partitions, dict) or None in map(number_in, partitions):
        raise UndecodableZnode(path, "partitions must map partition numbers to replicas")
    adding = fields.mapping(path, value.get("adding_replicas") or {}, "adding_replicas")
    removing = fields.mapping(path, value.get("removing_replicas") or {}, "removing_replicas")
    assignments: dict[int, ReplicaAssignment] = {}
    for key, listed in partitions.items():
        replicas = fields.brokers(path, listed, "replicas")
        added = fields.brokers(path, adding.get(key, []), "adding_replicas")
        removed = fields.brokers(path, removing.get(key, []), "removing_replicas")
        assignments[int(key)] = _consistent(path, ReplicaAssignment(replicas, added, removed))
    topic_id = fields.optional_topic_id(path, value.get("topic_id"), "topic_id")
    return TopicZnode(dict(sorted(assignments.items())), topic_id, _unknown(path, value))


def _unknown(path: str, value: Mapping[str, Any]) -> dict[str, Any]:
    unknown = {key: item for key, item in value.items() if key not in TOPIC_KEYS}
    try:
        orjson.dumps(unknown)
    except orjson.JSONEncodeError as error:
        raise UndecodableZnode(path, f"its unknown keys could not be written again ({error})") from error
    return unknown


def _consistent(path: str, assignment: ReplicaAssignment) -> ReplicaAssignment:
    replicas, adding, removing = assignment.replicas, assignment.adding_replicas, assignment.removing_replicas
    if replicas and not adding and not removing:
        return assignment
    if not {*adding, *removing} <= set(replicas) or not set(adding).isdisjoint(removing):
        raise UndecodableZnode(path, f"{list(adding)} added and {list(removing)} removed do not fit {list(replicas)}")
    if not assignment.target_replicas or not assignment.origin_replicas:
        raise UndecodableZnode(path, f"a partition has no replicas before or after a move: {list(replicas)}")
    return assignment


def encode_partition_state(state: LeaderAndIsr) -> bytes:
    """Encode a partition's state. Its partition epoch is the version of the znode, and not in the data."""
    return _partition_state(
        state.controller_epoch, state.leader, state.leader_epoch, state.isr, state.leader_recovery_state
    )


@lru_cache(maxsize=10_000)
def _partition_state(
    controller_epoch: int, leader: int, leader_epoch: int, isr: tuple[int, ...], recovery: LeaderRecoveryState
) -> bytes:
    """Return a state as JSON. Where leaders of many partitions change together, few of the states are different."""
    rest = "" if recovery is LeaderRecoveryState.RECOVERED else f',"leader_recovery_state":{int(recovery)}'
    return (
        f'{{"controller_epoch":{controller_epoch},"leader":{leader},"version":1,'
        f'"leader_epoch":{leader_epoch},"isr":{_json_of(isr)}{rest}}}'
    ).encode()


@lru_cache(maxsize=10_000)
def _json_of(numbers: tuple[int, ...]) -> str:
    """Return a list as JSON. Even large clusters have few different ISRs."""
    return orjson.dumps(numbers).decode()


def decode_partition_state(tp: TopicPartition, data: bytes, version: int) -> LeaderAndIsr:
    """Return a partition's state; `version` is the znode's dataVersion."""
    return plain_formats.partition_state(data, version) or decode_partition_state_leniently(tp, data, version)


def decode_partition_state_leniently(tp: TopicPartition, data: bytes, version: int) -> LeaderAndIsr:
    """Return a partition's state, also where it has values of others."""
    path = paths.partition_state(tp)
    value = fields.load(path, data)
    try:
        recovery = LeaderRecoveryState(value.get("leader_recovery_state", LeaderRecoveryState.RECOVERED))
    except ValueError as error:
        raise UndecodableZnode(path, f"{error!s:.200}") from error
    return LeaderAndIsr(
        fields.number(path, value.get("leader"), "leader", NO_LEADER),
        fields.number(path, value.get("leader_epoch"), "leader_epoch", most=MAX_RISING_EPOCH),
        fields.brokers(path, value.get("isr"), "isr"),
        version,
        fields.number(path, value.get("controller_epoch"), "controller_epoch"),
        recovery,
    )


# --- /admin/reassign_partitions ---------------------------------------------------------------------------------


def encode_reassign_partitions(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """Encode `/admin/reassign_partitions`, which is Kafka's reassignment JSON."""
    return orjson.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "replicas": replicas} for tp, replicas in targets.items()
            ],
        }
    )


def requests_write(targets: Mapping[TopicPartition, tuple[int, ...]], version: int) -> Set | Delete:
    """Return the operation that sets `/admin/reassign_partitions` to `targets`, or deletes it if there are none."""
    if targets:
        return Set(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(targets), version)
    return Delete(paths.REASSIGN_PARTITIONS, version)


def decode_reassign_partitions(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the new replicas by partition."""
    return reassign_targets(fields.load(paths.REASSIGN_PARTITIONS, data))


def reassign_targets(value: Mapping[str, Any]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the new replicas by partition from Kafka's reassignment JSON, in the order of its entries."""
    path = paths.REASSIGN_PARTITIONS
    entries = value.get("partitions")
    if not isinstance(entries, list):
        raise UndecodableZnode(path, 'there must be a list "partitions"')
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    for number, entry in enumerate(entries):
        where = f"partitions[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str):
            raise UndecodableZnode(path, f"{where} must be an object with a topic")
        tp = TopicPartition(entry["topic"], fields.integer(path, entry.get("partition"), f"{where}.partition"))
        if tp in targets:
            raise UndecodableZnode(path, f"{where}: duplicate partition {tp}")
        targets[tp] = fields.integers(path, entry.get("replicas"), f"{where}.replicas")
    return targets


# --- /admin/preferred_replica_election, /isr_change_notification/* ----------------------------------------------


def encode_partitions(tps: Iterable[TopicPartition]) -> bytes:
    """Encode a list of partitions for `/admin/preferred_replica_election` and for ISR change notifications."""
    return orjson.dumps({"version": 1, "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in tps]})


def decode_partitions(path: str, data: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in the znode at `path`, or in a file of Kafka's election JSON, without duplicates."""
    entries = fields.load(path, data).get("partitions")
    if not isinstance(entries, list):
        raise UndecodableZnode(path, 'there must be a list "partitions"')
    found: dict[TopicPartition, None] = {}
    for number, entry in enumerate(entries):
        where = f"partitions[{number}]"
        value = fields.mapping(path, entry, where)
        topic = fields.text(path, value.get("topic"), f"{where}.topic")
        found[TopicPartition(topic, fields.integer(path, value.get("partition"), f"{where}.partition"))] = None
    return tuple(found)


# --- /log_dir_event_notification/* ------------------------------------------------------------------------------


def encode_log_dir_event(broker_id: int) -> bytes:
    """Encode the notification that a log directory of a broker failed."""
    return orjson.dumps({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Return the id of the broker whose log directory failed."""
    return fields.number(path, fields.load(path, data).get("broker"), "broker")


# --- /config ----------------------------------------------------------------------------------------------------


def encode_config(settings: Mapping[str, str]) -> bytes:
    """Encode the settings of a topic or broker."""
    return orjson.dumps({"version": 1, "config": dict(settings)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return the settings of a topic or broker; none if the znode is empty, as in Kafka."""
    if not data:
        return {}
    settings = fields.mapping(path, fields.load(path, data).get("config"), "config")
    # No bound on the length: a list of throttled replicas grows with the number of moves.
    return {name: fields.string(path, value, name) for name, value in settings.items()}


def encode_config_change(entity_path: str) -> bytes:
    """Encode the notification that settings changed; `entity_path` is "topics/T" or "brokers/N"."""
    return orjson.dumps({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> str:
    """Return the entity whose settings changed, as "topics/T" or "brokers/N"."""
    return fields.text(path, fields.load(path, data).get("entity_path"), "entity_path")
