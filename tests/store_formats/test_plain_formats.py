"""Znodes decoded by one compiled call are those that the lenient decoders accept, with the same values."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example, given, strategies as st

from transport.metadata import MAX_NUMBER, MAX_RISING_EPOCH, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, plain_formats
from transport.store.formats import TopicZnode, UndecodableZnode

TP = TopicPartition("orders", 3)
STATE = b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":3,"isr":[1,2]}'
TOPIC = b'{"version":3,"partitions":{"0":[1,2],"1":[2,1]},"adding_replicas":{},"removing_replicas":{},"topic_id":"id"}'

raw_numbers = st.sampled_from(
    ["0", "-0", "1", "-1", "-2", "01", "+1", "1.0", "1e0", "1E2", "true", "null", '"1"', "NaN", "[]", "{}", " 2 ", ""]
    + [str(bound + by) for bound in (MAX_RISING_EPOCH, MAX_NUMBER, 2**63, 2**64) for by in (-1, 0, 1)]
    + ["9" * 400, "-" + "9" * 30, "1},{", '1},{"leader":2', "1]", "[1"]
)
raw_lists = st.one_of(raw_numbers, st.lists(raw_numbers, max_size=4).map(lambda each: f"[{','.join(each)}]"))
raw_maps = st.one_of(
    raw_numbers,
    st.lists(
        st.tuples(st.sampled_from(["0", "1", "2", "10", "01", "-1", "x", "", " 1", str(2**31)]), raw_lists), max_size=4
    ).map(lambda items: "{" + ",".join(f'"{key}":{value}' for key, value in items) + "}"),
)
raw_texts = st.sampled_from(
    ['"id"', '"a b"', '""', "null", "1", '"' + "x" * 300 + '"', '"\\ud800"', '"\\u0061"', '"\x01"']
)


def raw_objects(values: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[bytes]:
    """Return texts of almost JSON: entries may be missing, repeated, unknown or broken."""
    entry = st.sampled_from(sorted(values)).flatmap(
        lambda name: values[name].map(lambda value: f'"{name}":{value}')
    ) | st.sampled_from(['"other":{}', '"other":"\\ud800"', '"l\\u0065ader":4', "", "}", "{", '"version"', "\x0b"])
    return st.tuples(st.lists(entry, max_size=8), st.sampled_from(["}", "} ", "}\x00", "}x", "", "}}", "},{}"])).map(
        lambda made: ("{" + ",".join(made[0]) + made[1]).encode()
    )


def sound(names: dict[str, st.SearchStrategy[str]], base: bytes) -> st.SearchStrategy[bytes]:
    """Return a sound znode with up to two of its values replaced."""

    def replaced(changes: dict[str, str]) -> bytes:
        entries = {name: orjson.dumps(value).decode() for name, value in orjson.loads(base).items()} | changes
        return ("{" + ",".join(f'"{name}":{value}' for name, value in entries.items()) + "}").encode()

    return st.fixed_dictionaries({}, optional=names).map(replaced)


STATE_VALUES = {
    **dict.fromkeys(("controller_epoch", "leader", "version", "leader_epoch", "leader_recovery_state"), raw_numbers),
    "isr": raw_lists,
}
TOPIC_VALUES = {
    **dict.fromkeys(("partitions", "adding_replicas", "removing_replicas"), raw_maps),
    "version": raw_numbers,
    "topic_id": raw_texts,
}


def leniently_decoded_state(data: bytes) -> LeaderAndIsr | None:
    try:
        return formats.decode_partition_state_leniently(TP, data, 9)
    except UndecodableZnode:
        return None


def leniently_decoded_topic(data: bytes) -> TopicZnode | None:
    try:
        return formats.decode_topic_leniently("/brokers/topics/t", data)
    except UndecodableZnode:
        return None


@given(raw_objects(STATE_VALUES) | sound(STATE_VALUES, STATE) | st.binary(max_size=20))
@example(STATE.replace(b'"version":1', b'"version":' + b"9" * 400))
@example(STATE.replace(b'"leader":1', b'"leader":1},{"leader":2'))
def test_a_state_is_plain_only_if_the_lenient_decoder_returns_the_same(data: bytes) -> None:
    plain = plain_formats.partition_state(data, 9)
    assert plain is None or plain == leniently_decoded_state(data)


@given(raw_objects(TOPIC_VALUES) | sound(TOPIC_VALUES, TOPIC) | st.binary(max_size=20))
@example(TOPIC.replace(b'"version":3', b'"version":' + b"9" * 400))
@example(TOPIC.replace(b'"0"', b'"-0"'))
@example(TOPIC.replace(b'"0"', b'"\\u002d0"'))
def test_a_topic_is_plain_only_if_the_lenient_decoder_returns_the_same(data: bytes) -> None:
    plain = plain_formats.topic(data)
    assert plain is None or TopicZnode(*plain) == leniently_decoded_topic(data)


def test_what_kafka_and_klamm_write_is_plain() -> None:
    assert plain_formats.partition_state(STATE, 9) == LeaderAndIsr(1, 3, (1, 2), 9, 7)
    first, second = ReplicaAssignment((1, 2)), ReplicaAssignment((2, 1))
    assert plain_formats.topic(TOPIC) == ({0: first, 1: second}, "id")
    assert plain_formats.topic(formats.encode_topic(TopicZnode({0: first}, "id"))) == ({0: first}, "id")


@pytest.mark.parametrize("isr", [b"[1,1]", b"[-1]", b"[2147483648]", b"[1.0]", b"[true]", b"1"])
def test_a_damaged_isr_is_left_to_the_lenient_decoder(isr: bytes) -> None:
    data = STATE.replace(b"[1,2]", isr)
    assert plain_formats.partition_state(data, 9) is None
    with pytest.raises(UndecodableZnode):
        formats.decode_partition_state(TP, data, 9)


def test_a_topic_that_is_being_reassigned_is_left_to_the_lenient_decoder() -> None:
    data = TOPIC.replace(b'"adding_replicas":{}', b'"adding_replicas":{"0":[2]}')
    assert plain_formats.topic(data) is None
    assert formats.decode_topic("t", data).partitions[0] == ReplicaAssignment((1, 2), (2,))


def test_equal_lists_of_brokers_are_one_object() -> None:
    first, second = (formats.decode_partition_state(TP, STATE, version) for version in (1, 2))
    assert first.isr is second.isr
    topics = [formats.decode_topic(name, TOPIC) for name in ("a", "b")]
    assert topics[0].partitions[0] is topics[1].partitions[0]
    assert list(topics[0].partitions) == [0, 1]
    moved = TOPIC.replace(b'{"0":[1,2],"1":[2,1]}', b'{"1":[2,1],"0":[1,2]}')
    assert list(formats.decode_topic("t", moved).partitions) == [0, 1]
