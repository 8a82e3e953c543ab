"""Rows that several brokers are sent are encoded once, and arrive as any others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from controller.channels.sendable import without_faults
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    UpdateMetadataRequest,
)
from transport.messages.shared import CommonRows, SharedRows
from transport.wire import CodecError, decode, encode

ENDPOINT = BrokerEndpoint(1, "localhost", 9092)
STATES = tuple(PartitionState("orders", "id", number, 3, 2, 4, (2, 1), 5, (1, 2)) for number in range(100))
ORDERS = [LeaderAndIsrPartition(state, is_new=state.partition % 2 == 0) for state in STATES]
BAD = replace(STATES[1], leader=2**70)


def metadata(rows: tuple[PartitionState, ...]) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(1, 2, 3, ENDPOINT, (ENDPOINT,), rows, (("orders", "id"),), 7)


def orders(rows: tuple[LeaderAndIsrPartition, ...]) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(1, 2, 3, rows, 7)


# A list of more than 15 rows has a longer header.
@pytest.mark.parametrize("count", [0, 1, 15, 16, 100])
def test_metadata_has_the_same_bytes(count: int) -> None:
    shared = SharedRows(STATES[:count])
    assert shared == STATES[:count]
    for _ in range(2):
        assert encode(metadata(shared)) == encode(metadata(STATES[:count]))
    assert decode(UpdateMetadataRequest, encode(metadata(shared))) == metadata(shared)


@given(st.lists(st.lists(st.integers(0, 99), unique=True, max_size=20), max_size=4))
def test_orders_have_the_same_bytes(selections: list[list[int]]) -> None:
    batch = CommonRows(list(ORDERS))
    lists = [batch.select(places) for places in selections]
    for places, rows in zip(selections, lists, strict=True):
        plain = tuple([ORDERS[place] for place in places])
        assert encode(orders(rows)) == encode(orders(plain))
    joined = SharedRows.joined([*lists, tuple(ORDERS[:2])])
    plain = tuple([ORDERS[place] for place in (*chain.from_iterable(selections), 0, 1)])
    assert encode(orders(joined)) == encode(orders(plain))


def test_what_is_joined_has_the_bytes_of_its_parts() -> None:
    joined = SharedRows.joined([SharedRows(STATES[:3]), STATES[5:20], SharedRows(STATES[30:])])
    assert encode(metadata(joined)) == encode(metadata((*STATES[:3], *STATES[5:20], *STATES[30:])))
    only = SharedRows(STATES)
    assert SharedRows.joined([only]) is only


def counting(packed: list[int]) -> Callable[[PartitionState], bytes]:
    def pack(row: PartitionState) -> bytes:
        packed.append(row.partition)
        return b"x"

    return pack


def test_each_row_of_a_batch_is_packed_once_in_each_form() -> None:
    batch, packed = CommonRows(list(STATES[:5])), list[int]()
    for form in ("one", "other", "one"):
        for places in ([0, 1, 2], [1, 2, 4]):
            assert batch.select(places).pieces(form, counting(packed)) == [b"x"] * 3
    assert packed == [0, 1, 2, 4] * 2


def test_a_shared_row_that_cannot_be_encoded_is_left_out_for_each_broker() -> None:
    rows = SharedRows((STATES[0], BAD, STATES[2]))
    sound = (STATES[0], STATES[2])
    for _ in range(2):
        with pytest.raises(CodecError, match="UpdateMetadataRequest cannot be encoded"):
            encode(metadata(rows))
        left, faults = without_faults(metadata(rows))
        assert (left, faults) == (metadata(sound), [BAD])
    bad = LeaderAndIsrPartition(BAD, is_new=True)
    of_broker = CommonRows([ORDERS[0], bad]).select([0, 1])
    with pytest.raises(CodecError, match="LeaderAndIsrRequest cannot be encoded"):
        encode(orders(of_broker))
    assert without_faults(orders(of_broker)) == (orders((ORDERS[0],)), [bad])
