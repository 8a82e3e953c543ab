"""Notifications for the controller: Kafka's bytes; what cannot be decoded is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.formats import UndecodableZnode

ISR_CHANGE = f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_0000000003"
LOG_DIR_EVENT = f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_0000000003"

DECODERS: dict[str, Callable[[str, bytes], object]] = {
    paths.PREFERRED_REPLICA_ELECTION: formats.decode_partitions,
    ISR_CHANGE: formats.decode_partitions,
    LOG_DIR_EVENT: formats.decode_log_dir_event,
}


@pytest.mark.parametrize("path", [paths.PREFERRED_REPLICA_ELECTION, ISR_CHANGE])
def test_lists_of_partitions_are_read_and_written_byte_for_byte(path: str) -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"a.b","partition":12}]}'
    tps = (TopicPartition("t", 0), TopicPartition("a.b", 12))
    assert formats.encode_partitions(tps) == data
    assert formats.decode_partitions(path, data) == tps


def test_a_partition_that_is_listed_twice_is_read_once_and_unknown_keys_are_ignored() -> None:
    data = b'{"version":2,"partitions":[{"topic":"t","partition":0,"x":1},{"topic":"t","partition":0}],"x":1}'
    assert formats.decode_partitions(ISR_CHANGE, data) == (TopicPartition("t", 0),)


@given(st.lists(st.builds(TopicPartition, st.text(), st.integers(0, 99)), unique=True, max_size=5))
def test_lists_of_partitions_are_read_as_they_were_written(tps: list[TopicPartition]) -> None:
    assert formats.decode_partitions(ISR_CHANGE, formats.encode_partitions(tps)) == tuple(tps)


def test_a_lost_log_directory_is_read_and_written_byte_for_byte() -> None:
    data = b'{"version":1,"broker":3,"event":1}'
    assert formats.encode_log_dir_event(3) == data
    assert formats.decode_log_dir_event(LOG_DIR_EVENT, data) == 3


@pytest.mark.parametrize(
    ("path", "data", "hint"),
    [
        *((path, data, "not ") for path in DECODERS for data in (b"", b"{", b"[]", b"7", b"\xff")),
        (ISR_CHANGE, b"{}", '"partitions"'),
        (ISR_CHANGE, b'{"partitions":[7]}', "partitions[0]"),
        (ISR_CHANGE, b'{"partitions":[{"partition":0}]}', "partitions[0].topic"),
        (paths.PREFERRED_REPLICA_ELECTION, b'{"partitions":[{"topic":"t","partition":"0"}]}', "[0].partition"),
        (LOG_DIR_EVENT, b'{"event":1}', "broker"),
        (LOG_DIR_EVENT, b'{"broker":"3"}', "broker"),
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_is_named(path: str, data: bytes, hint: str) -> None:
    with pytest.raises(UndecodableZnode) as raised:
        DECODERS[path](path, data)
    assert raised.value.path == path
    assert hint in raised.value.fault
