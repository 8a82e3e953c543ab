"""Messages encoded as msgpack and decoded."""

from __future__ import annotations

import types
from enum import Enum
from typing import Any, get_args, get_origin

import msgpack
import pytest
from hypothesis import given, strategies as st
from msgspec import structs
from msgspec.structs import replace

from tests.kit.examples import examples
from transport import messages
from transport.errors import ErrorCode
from transport.messages import (
    APIS,
    BrokerEndpoint,
    FetchRequest,
    LeaderAndIsrPartition,
    ListPartitionReassignmentsRequest,
    Message,
    PartitionError,
    PartitionState,
    ProduceRequest,
    UpdateMetadataRequest,
)
from transport.metadata import OfPartition, TopicPartition
from transport.wire import CodecError, decode, encode

MESSAGES = [message for api in APIS for message in (api.request, api.response)]
STATE = PartitionState("t", "id", 0, 1, 2, 3, (1, 2), 4, (1, 2, 3))
ENDPOINT = BrokerEndpoint(1, "localhost", 9092)

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    str: st.text(max_size=5),
    TopicPartition: st.builds(TopicPartition, st.text(max_size=5), st.integers(-(2**63), 2**63 - 1)),
    bytes: st.binary(max_size=5),
    types.NoneType: st.none(),
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  annotations have no static type
    """Generate values of a type that a message's field may have, from nothing but its annotation."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return st.builds(annotation, *(values_of(field.type) for field in structs.fields(annotation)))
    args = get_args(annotation)
    if get_origin(annotation) is types.UnionType:
        return st.one_of(*map(values_of, args))
    if get_origin(annotation) is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if get_origin(annotation) is tuple:
        return st.tuples(*map(values_of, args))
    return st.sampled_from(annotation)


def _plain(value: object) -> object:
    """Encode the long way."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Message):
        return [_plain(field) for field in structs.astuple(value)]
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("message_class", MESSAGES)
@examples(10)
@given(data=st.data())
def test_every_message_survives_the_wire_in_the_documented_form(
    message_class: type[object], data: st.DataObject
) -> None:
    message = data.draw(values_of(message_class))
    body = encode(message)
    assert body == msgpack.packb(_plain(message))
    assert decode(message_class, body) == message


def test_more_states_than_a_short_array_header_counts() -> None:
    for count in (15, 16, 65_535, 65_536):
        message = UpdateMetadataRequest(1, 2, 3, ENDPOINT, None, (STATE,) * count)
        assert decode(UpdateMetadataRequest, encode(message)) == message


# --- versions of a message --------------------------------------------------------------------------------------


class _Old(Message, frozen=True):
    name: str
    state: PartitionState | None


class _New(Message, frozen=True):
    name: str
    state: PartitionState | None
    racks: tuple[str, ...] = ("r0",)
    limits: tuple[tuple[str, int], ...] = ()


def test_a_reader_ignores_trailing_fields_that_it_does_not_know() -> None:
    assert decode(_Old, encode(_New("a", STATE, ("r1",), (("x", 1),)))) == _Old("a", STATE)
    assert decode(_Old, msgpack.packb(["a", [*_as_list(STATE), {"an": ["unknown", "field"]}], 9])) == _Old("a", STATE)


def test_missing_trailing_fields_take_their_defaults() -> None:
    assert decode(_New, encode(_Old("a", None))) == _New("a", None, ("r0",), ())
    assert decode(PartitionError, msgpack.packb(["t", 1])) == PartitionError("t", 1, ErrorCode.NONE, "")


def test_a_missing_field_without_a_default_is_refused() -> None:
    with pytest.raises(CodecError, match="PartitionError: Expected `array` of at least length 2"):
        decode(PartitionError, msgpack.packb(["t"]))


def test_an_unknown_error_code_is_an_unknown_error() -> None:
    assert decode(PartitionError, msgpack.packb(["t", 1, 9999])).error is ErrorCode.UNKNOWN_SERVER_ERROR


# --- what is refused --------------------------------------------------------------------------------------------


def _as_list(message: object) -> list[Any]:
    encoded: list[Any] = msgpack.unpackb(encode(message))
    return encoded


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("topic", b"t"),
        ("topic", None),
        ("partition", True),
        ("partition", 1.0),
        ("partition", "1"),
        ("isr", 1),
        ("isr", "12"),
        ("isr", [1, "2"]),
        ("isr", [1, True]),
        ("isr", {"1": 2}),
        ("isr", None),
    ],
)
def test_a_field_of_another_type_is_refused(field: str, value: object) -> None:
    values = _as_list(STATE)
    values[PartitionState.__struct_fields__.index(field)] = value
    with pytest.raises(CodecError, match=r"PartitionState: Expected .* - at `\$\["):
        decode(PartitionState, msgpack.packb(values))


@pytest.mark.parametrize(
    ("message_class", "values"),
    [
        pytest.param(ProduceRequest, ["t", 0, 1, 1, ["str"]], id="str for bytes"),
        pytest.param(LeaderAndIsrPartition, [_as_list(STATE), 1], id="int for bool"),
        pytest.param(PartitionError, ["t", 0, True], id="bool for an error code"),
        pytest.param(PartitionError, ["t", 0, [0]], id="array for an error code"),
        pytest.param(ListPartitionReassignmentsRequest, [[["t", 1, 2]]], id="a pair of three"),
        pytest.param(ListPartitionReassignmentsRequest, [[[1, "t"]]], id="a pair turned round"),
        pytest.param(FetchRequest, [1, 1, [7]], id="int for a message"),
        pytest.param(FetchRequest, {"replica_id": 1}, id="map for a message"),
    ],
)
def test_a_message_of_another_shape_is_refused(message_class: type[object], values: object) -> None:
    with pytest.raises(CodecError):
        decode(message_class, msgpack.packb(values))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1", id="no msgpack"),
        pytest.param(encode(STATE)[:-1], id="cut off"),
        pytest.param(encode(STATE) + b"\x00", id="followed by more"),
        pytest.param(b"\x91" * 100_000 + b"\xc0", id="nested"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="a claim of four billion elements"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="a claim of four billion pairs"),
        pytest.param(b"\xdd\x00\x0f\xff\xff" * 1000 + b"\x00" * 1_048_575, id="nested claims within the body's size"),
        pytest.param(b"\x91\xd6\xff\x00\x00\x00\x01", id="timestamp"),
        pytest.param(b"\x91\xd4\x05\x01", id="extension"),
        pytest.param(b"\x91\xa1\xff", id="no UTF-8"),
        pytest.param(b"\x91\x81\x90\x00", id="a key that is no string"),
    ],
)
def test_bytes_beyond_the_limits_are_refused(body: bytes) -> None:
    with pytest.raises(CodecError, match="not msgpack within limits"):
        decode(PartitionState, body)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_codec_error(body: bytes) -> None:
    for message_class in (UpdateMetadataRequest, ListPartitionReassignmentsRequest):
        try:
            decode(message_class, body)
        except CodecError:
            continue


@pytest.mark.parametrize("value", [2**70, "\ud800", object()])
def test_a_value_that_msgpack_does_not_have_is_refused_and_leaves_nothing_behind(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(CodecError, match="PartitionState cannot be encoded"):
        encode(replace(STATE, topic=value))
    assert decode(PartitionState, encode(replace(STATE))) == STATE


def test_every_row_with_a_topic_and_a_partition_names_its_partition() -> None:
    classes = [item for item in vars(messages).values() if isinstance(item, type) and issubclass(item, Message)]
    rows = {cls for cls in classes if {"topic", "partition"} <= set(cls.__struct_fields__)}
    assert STATE.tp == TopicPartition("t", 0)
    assert PartitionState in rows
    assert {cls.__name__ for cls in rows if not issubclass(cls, OfPartition)} == set()
