"""The contents of znodes: Kafka's bytes, read leniently, written exactly, and named where they cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import orjson
import pytest
from attrs import evolve
from hypothesis import given, strategies as st
from msgspec.structs import replace

from transport.messages import BrokerEndpoint
from transport.metadata import (
    MAX_RISING_EPOCH,
    NO_LEADER,
    BrokerRegistration,
    LeaderAndIsr,
    LeaderRecoveryState,
    ReplicaAssignment,
    Stray,
    TopicPartition,
)
from transport.store import formats, paths
from transport.store.formats import TopicZnode, UndecodableZnode
from transport.store.protocol import Delete, Set

TP = TopicPartition("t", 0)
MOVING = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))

ids = st.integers(0, 2**31 - 1)
rising_epochs = st.integers(0, MAX_RISING_EPOCH)
replicas = st.lists(ids, unique=True, min_size=1, max_size=5).map(tuple)
hosts = st.from_regex(r"[a-z0-9]{1,63}(\.[a-z0-9]{1,63}){0,2}|[0-9a-f]{1,4}::[0-9a-f]{1,4}", fullmatch=True)
names = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)


# --- /controller, /controller_epoch, /klamm/controllers/ID ------------------------------------------------------


def test_the_controller_is_written_as_kafka_3_4_writes_it() -> None:
    data = b'{"version":2,"brokerid":1,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    assert formats.encode_controller(1, 1_700_000_000_000) == data
    assert formats.decode_controller(data) == 1


def test_the_controller_of_an_older_kafka_is_read() -> None:
    assert formats.decode_controller(b'{"version":1,"brokerid":1,"timestamp":"1700000000000"}') == 1


def test_the_controller_epoch_is_decimal_text() -> None:
    assert formats.encode_controller_epoch(7) == b"7"
    assert formats.decode_controller_epoch(b"7") == 7


@given(controller_id=ids, host=hosts, port=st.integers(1, 65535))
def test_where_a_controller_listens_is_read_as_it_was_written(controller_id: int, host: str, port: int) -> None:
    endpoint = BrokerEndpoint(controller_id, host, port)
    data = formats.encode_controller_endpoint(endpoint)
    assert formats.decode_controller_endpoint(controller_id, data) == endpoint


# --- /klamm/storage_ids/N ---------------------------------------------------------------------------------------


@given(broker_id=ids, storage_id=st.text())
def test_the_storage_of_a_broker_is_read_as_it_was_written(broker_id: int, storage_id: str) -> None:
    assert formats.decode_storage_id(broker_id, formats.encode_storage_id(storage_id)) == storage_id


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"storage_id":1}'])
def test_a_storage_id_that_cannot_be_decoded_names_its_path(data: bytes) -> None:
    with pytest.raises(formats.UndecodableZnode, match="/klamm/storage_ids/3: "):
        formats.decode_storage_id(3, data)


# --- /brokers/ids/N ---------------------------------------------------------------------------------------------

CZXID = 77


def test_a_broker_is_registered_in_kafkas_version_5() -> None:
    broker = BrokerRegistration(3, "h", 9092, CZXID, rack="r1", storage_id="s1")
    data = formats.encode_broker(broker, 1_700_000_000_000)
    assert data == (
        b'{"version":5,"host":null,"port":-1,"endpoints":["KLAMM://h:9092"],"jmx_port":-1,"timestamp":"1700000000000",'
        b'"listener_security_protocol_map":{"KLAMM":"PLAINTEXT"},"features":{},"rack":"r1","storage_id":"s1"}'
    )
    assert formats.decode_broker(3, data, CZXID) == broker


def test_a_rack_and_a_storage_id_that_are_not_set_are_left_out() -> None:
    broker = BrokerRegistration(3, "h", 9092, CZXID)
    data = formats.encode_broker(broker, 0)
    assert orjson.loads(data).keys().isdisjoint({"rack", "storage_id"})
    assert formats.decode_broker(3, data, CZXID) == broker


@pytest.mark.parametrize("host", ["::1", "2001:db8::1", "127.0.0.1", "broker-3.example"])
def test_a_broker_may_listen_on_any_kind_of_address(host: str) -> None:
    endpoint = f"KLAMM://[{host}]:9092" if ":" in host else f"KLAMM://{host}:9092"
    data = orjson.dumps({"version": 5, "endpoints": ["PLAINTEXT://h:1", endpoint], "unheard_of": [1]})
    assert formats.decode_broker(3, data, CZXID) == BrokerRegistration(3, host, 9092, CZXID)


@given(broker_id=ids, port=st.integers(1, 65535), rack=st.none() | st.text(), storage_id=st.none() | st.text())
def test_a_registration_is_read_as_it_was_written(
    broker_id: int, port: int, rack: str | None, storage_id: str | None
) -> None:
    broker = BrokerRegistration(broker_id, "h", port, CZXID, rack, storage_id)
    assert formats.decode_broker(broker_id, formats.encode_broker(broker, 0), CZXID) == broker


# --- /brokers/topics/T ------------------------------------------------------------------------------------------

FULL = (
    b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{"0":[4,5,6,1,2,3]},'
    b'"adding_replicas":{"0":[4,5,6]},"removing_replicas":{"0":[1,2,3]}}'
)


@pytest.mark.parametrize(
    ("data", "topic"),
    [
        (b'{"version":1,"partitions":{"0":[1,2,3]}}', TopicZnode({0: ReplicaAssignment((1, 2, 3))})),
        (
            b'{"version":2,"partitions":{"1":[2],"0":[1]},"adding_replicas":{},"removing_replicas":{}}',
            TopicZnode({0: ReplicaAssignment((1,)), 1: ReplicaAssignment((2,))}),
        ),
        (FULL, TopicZnode({0: MOVING}, "AAAAAAAAAAAAAAAAAAAAAQ")),
        (
            b'{"version":3,"partitions":{"0":[1]},"adding_replicas":null,"removing_replicas":null}',
            TopicZnode({0: ReplicaAssignment((1,))}),
        ),
    ],
    ids=["up to 2.3", "2.4 to 2.7", "from 2.8", "nulls"],
)
def test_topics_of_every_version_of_kafka_are_read(data: bytes, topic: TopicZnode) -> None:
    decoded = formats.decode_topic("t", data)
    assert decoded == topic
    assert list(decoded.partitions) == sorted(decoded.partitions)


def test_a_topic_is_written_as_kafkas_version_3_without_whitespace() -> None:
    data = formats.encode_topic(formats.decode_topic("t", FULL))
    # The order of the keys has no meaning.
    assert orjson.loads(data) == orjson.loads(FULL)
    assert len(data) == len(FULL)


def test_only_partitions_that_move_are_among_adding_and_removing() -> None:
    topic = TopicZnode({0: MOVING, 1: ReplicaAssignment((1, 2)), 2: ReplicaAssignment((1, 2, 3), (3,))}, "id")
    value = orjson.loads(formats.encode_topic(topic))
    assert value["adding_replicas"] == {"0": [4, 5, 6], "2": [3]}
    assert value["removing_replicas"] == {"0": [1, 2, 3]}


def test_keys_that_are_not_known_survive_a_rewrite() -> None:
    value = {**orjson.loads(FULL), "from_the_future": {"a": [1, None, "ä"]}, "version": 4}
    topic = formats.decode_topic("t", orjson.dumps(value))
    moved = evolve(topic, partitions={0: ReplicaAssignment((4, 5, 6))})
    rewritten = orjson.loads(formats.encode_topic(moved))
    assert rewritten["from_the_future"] == {"a": [1, None, "ä"]}
    assert rewritten["partitions"] == {"0": [4, 5, 6]}
    assert rewritten["topic_id"] == value["topic_id"]


@st.composite
def consistent_assignments(draw: st.DrawFn) -> ReplicaAssignment:
    brokers = draw(st.lists(st.integers(0, 1000), unique=True, max_size=6))
    parts = draw(st.lists(st.sampled_from(["kept", "adding", "removing"]), min_size=6, max_size=6))
    adding = tuple(b for b, part in zip(brokers, parts, strict=False) if part == "adding")
    removing = tuple(b for b, part in zip(brokers, parts, strict=False) if part == "removing")
    return ReplicaAssignment(tuple(brokers), adding, removing)


assignments = consistent_assignments().filter(lambda each: bool(each.origin_replicas and each.target_replicas))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    partitions=st.dictionaries(st.integers(0, 100), assignments, max_size=5),
    topic_id=st.none() | st.from_regex(r"[a-zA-Z0-9_-]{22}", fullmatch=True),
    unknown=st.dictionaries(st.text().filter(lambda key: key not in formats.TOPIC_KEYS), json_values, max_size=3),
)
def test_a_topic_is_read_as_it_was_written(
    partitions: dict[int, ReplicaAssignment], topic_id: str | None, unknown: dict[str, object]
) -> None:
    topic = TopicZnode(partitions, topic_id, unknown)
    assert formats.decode_topic("t", formats.encode_topic(topic)) == topic


# --- /brokers/topics/T/partitions/P/state -----------------------------------------------------------------------

STATE = LeaderAndIsr(1, 3, (1, 2), 9, 7)


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":3,"isr":[1,2]}', STATE),
        (
            b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":3,"isr":[1,2],"leader_recovery_state":1}',
            replace(STATE, leader_recovery_state=LeaderRecoveryState.RECOVERING),
        ),
        (
            b'{"controller_epoch":7,"leader":-1,"version":1,"leader_epoch":4,"isr":[1]}',
            LeaderAndIsr(-1, 4, (1,), 9, 7),
        ),
    ],
    ids=["recovered", "recovering", "without a leader"],
)
def test_a_state_is_read_and_written_byte_for_byte(data: bytes, state: LeaderAndIsr) -> None:
    assert formats.encode_partition_state(state) == data
    assert formats.decode_partition_state(TP, data, version=9) == state


def test_a_state_may_say_recovered_and_more() -> None:
    data = b'{"isr":[1,2],"leader_epoch":3,"leader_recovery_state":0,"leader":1,"controller_epoch":7,"more":{}}'
    assert formats.decode_partition_state(TP, data, version=9) == STATE


@given(
    state=st.builds(
        LeaderAndIsr,
        st.integers(NO_LEADER, 9),
        rising_epochs,
        replicas,
        ids,
        rising_epochs,
        leader_recovery_state=st.sampled_from(LeaderRecoveryState),
    )
)
def test_a_state_is_read_as_it_was_written(state: LeaderAndIsr) -> None:
    data = formats.encode_partition_state(state)
    assert formats.decode_partition_state(TP, data, state.partition_epoch) == state


# --- /admin/reassign_partitions ---------------------------------------------------------------------------------


def test_requests_are_read_and_written_byte_for_byte() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    targets = {TP: (4, 5, 6)}
    assert formats.encode_reassign_partitions(targets) == data
    assert formats.decode_reassign_partitions(data) == targets


def test_requests_of_kafkas_tools_may_name_log_dirs() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4],"log_dirs":["any"]}],"more":1}'
    assert formats.decode_reassign_partitions(data) == {TP: (4,)}


@given(st.dictionaries(st.builds(TopicPartition, names, st.integers(0, 99)), st.just(()) | replicas, max_size=5))
def test_requests_are_read_as_they_were_written(targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    assert formats.decode_reassign_partitions(formats.encode_reassign_partitions(targets)) == targets


def test_the_znode_of_requests_goes_with_the_last_of_them() -> None:
    left = {TP: (4, 5)}
    path = paths.REASSIGN_PARTITIONS
    assert formats.requests_write(left, 3) == Set(path, formats.encode_reassign_partitions(left), 3)
    assert formats.requests_write({}, 3) == Delete(path, 3)


# --- /klamm/strays ----------------------------------------------------------------------------------------------


@given(st.builds(Stray, st.from_regex(r"[a-zA-Z0-9_-]{22}", fullmatch=True), names, ids, ids))
def test_a_stray_is_read_from_its_name(stray: Stray) -> None:
    parent, _, name = paths.stray(stray).rpartition("/")
    assert parent == paths.STRAYS
    assert paths.parse_stray(name) == stray


@pytest.mark.parametrize(
    "name",
    [
        *("", "a", "id:t:0", "id:t:x:1", "id:t:0:-1", "id:t:0:1:2", ":t:0:1", "a=:t:0:1", "id:a b:0:1", "id::0:1"),
        *("id:t:2147483648:1", "id:t:0:2147483648", f"id:t:{10**30}:1", "id:t:00:1", "id:t:\u0663:1"),
    ],
)
def test_another_name_is_no_stray(name: str) -> None:
    assert paths.parse_stray(name) is None


# --- what cannot be decoded -------------------------------------------------------------------------------------

Decode = Callable[[bytes], object]

DECODERS: dict[str, tuple[str, Decode]] = {
    "controller": (paths.CONTROLLER, formats.decode_controller),
    "endpoint": (paths.controller_endpoint(3), lambda data: formats.decode_controller_endpoint(3, data)),
    "broker": (paths.broker(3), lambda data: formats.decode_broker(3, data, CZXID)),
    "topic": (paths.topic("t"), lambda data: formats.decode_topic("t", data)),
    "state": (paths.partition_state(TP), lambda data: formats.decode_partition_state(TP, data, 0)),
    "requests": (paths.REASSIGN_PARTITIONS, formats.decode_reassign_partitions),
}

NOT_AN_OBJECT = [b"", b"{", b"[]", b"7", b"null", b'"x"', b"\xff\xfe", b'{"a":1}{"b":2}']

FAULTS: list[tuple[str, bytes, str]] = [
    *((kind, data, "not ") for kind in DECODERS for data in NOT_AN_OBJECT),
    ("controller", b"{}", "brokerid"),
    ("controller", b'{"brokerid":"1"}', "brokerid"),
    ("controller", b'{"brokerid":true}', "brokerid"),
    ("endpoint", b'{"host":"h"}', "port"),
    ("endpoint", b'{"host":"h","port":"1"}', "port"),
    ("broker", b"{}", "KLAMM"),
    ("broker", b'{"endpoints":null}', "KLAMM"),
    ("broker", b'{"endpoints":["PLAINTEXT://h:9092"]}', "KLAMM"),
    ("broker", b'{"endpoints":["KLAMM://h:port"]}', "KLAMM"),
    ("broker", b'{"endpoints":["KLAMM"]}', "KLAMM"),
    ("topic", b"{}", "partitions"),
    ("topic", b'{"partitions":[]}', "partitions"),
    ("topic", b'{"partitions":{"one":[1]}}', "partitions"),
    ("topic", b'{"partitions":{"-1":[1]}}', "partitions"),
    ("topic", b'{"partitions":{"0":1}}', "replicas"),
    ("topic", b'{"partitions":{"0":["1"]}}', "replicas"),
    ("topic", b'{"partitions":{"0":[1.5]}}', "replicas"),
    ("topic", b'{"partitions":{"0":[1]},"adding_replicas":{"0":"1"}}', "adding_replicas"),
    ("topic", b'{"partitions":{"0":[1]},"removing_replicas":{"0":{}}}', "removing_replicas"),
    ("state", b"{}", "leader"),
    ("state", b'{"controller_epoch":7,"leader":"1","leader_epoch":3,"isr":[1]}', "leader"),
    ("state", b'{"controller_epoch":7,"leader":1,"isr":[1]}', "leader_epoch"),
    ("state", b'{"controller_epoch":7,"leader":1,"leader_epoch":3}', "isr"),
    ("state", b'{"controller_epoch":7,"leader":1,"leader_epoch":3,"isr":[null]}', "isr"),
    ("state", b'{"leader":1,"leader_epoch":3,"isr":[1]}', "controller_epoch"),
    ("state", b'{"controller_epoch":7,"leader":1,"leader_epoch":3,"isr":[1],"leader_recovery_state":2}', "2"),
    ("state", b'{"controller_epoch":7,"leader":1,"leader_epoch":3,"isr":[1],"leader_recovery_state":[]}', "[]"),
    ("requests", b"{}", "partitions"),
    ("requests", b'{"partitions":{}}', "partitions"),
    ("requests", b'{"partitions":[7]}', "partitions[0]"),
    ("requests", b'{"partitions":[{"partition":0,"replicas":[1]}]}', "partitions[0]"),
    ("requests", b'{"partitions":[{"topic":"t","replicas":[1]}]}', "partitions[0].partition"),
    ("requests", b'{"partitions":[{"topic":"t","partition":0}]}', "partitions[0].replicas"),
    ("requests", b'{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}', "partitions[0].replicas"),
    (
        "requests",
        b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}',
        "t-0",
    ),
]


@pytest.mark.parametrize(("kind", "data", "hint"), FAULTS, ids=[f"{kind} {data!r}" for kind, data, _ in FAULTS])
def test_what_cannot_be_decoded_is_named(kind: str, data: bytes, hint: str) -> None:
    path, decode = DECODERS[kind]
    with pytest.raises(UndecodableZnode) as raised:
        decode(data)
    assert raised.value.path == path
    assert hint in raised.value.fault
    assert str(raised.value) == f"{path}: {raised.value.fault}"


@pytest.mark.parametrize("data", [b"", b"seven", b"7.5", b"\xff"])
def test_an_epoch_that_is_no_number_is_named(data: bytes) -> None:
    with pytest.raises(UndecodableZnode) as raised:
        formats.decode_controller_epoch(data)
    assert raised.value.path == paths.CONTROLLER_EPOCH


CONTRADICTIONS = [
    ("topic", b'{"partitions":{"0":[1]},"adding_replicas":[1]}'),
    ("topic", b'{"partitions":{"0":[1]},"removing_replicas":"0"}'),
    ("topic", b'{"partitions":{"0":[1]},"topic_id":5}'),
    ("broker", b'{"endpoints":5}'),
    ("broker", b'{"endpoints":["KLAMM://h:1"],"rack":5}'),
    ("endpoint", b'{"host":null,"port":1}'),
    ("topic", b'{"partitions":{"0":[1,2,1]}}'),
    ("topic", b'{"partitions":{"0":[1,2]},"adding_replicas":{"0":[3]}}'),
    ("topic", b'{"partitions":{"0":[1,2]},"removing_replicas":{"0":[3]}}'),
    ("topic", b'{"partitions":{"0":[1,2]},"adding_replicas":{"0":[1]},"removing_replicas":{"0":[1]}}'),
]


@pytest.mark.parametrize(("kind", "data"), CONTRADICTIONS, ids=[f"{kind} {data!r}" for kind, data in CONTRADICTIONS])
def test_values_of_another_type_or_that_contradict_each_other_are_named(kind: str, data: bytes) -> None:
    path, decode = DECODERS[kind]
    with pytest.raises(UndecodableZnode) as raised:
        decode(data)
    assert raised.value.path == path


@given(st.sampled_from(sorted(DECODERS)), st.binary(max_size=40) | json_values.map(orjson.dumps))
def test_nothing_but_undecodable_comes_out_of_a_decoder(kind: str, data: bytes) -> None:
    _, decode = DECODERS[kind]
    with suppress(UndecodableZnode):
        decode(data)
