"""Values beyond the bounds of a field, which could neither be sent to brokers nor be written again."""

from __future__ import annotations

import orjson
import pytest

from tests.store_formats.test_formats import DECODERS, TP, Decode
from transport.store import formats
from transport.store.formats import UndecodableZnode
from transport.store.protocol import UNREADABLE


def state_with(**fields: object) -> bytes:
    return orjson.dumps({"controller_epoch": 7, "leader": 1, "leader_epoch": 3, "isr": [1, 2]} | fields)


def topic_with(**fields: object) -> bytes:
    return orjson.dumps({"partitions": {"0": [1, 2]}} | fields)


def broker_at(address: str, **fields: object) -> bytes:
    return orjson.dumps({"endpoints": [f"KLAMM://{address}"]} | fields)


BEYOND_BOUNDS: list[tuple[str, bytes, str]] = [
    *(("state", state_with(leader_epoch=epoch), "leader_epoch") for epoch in (-1, 2**30 + 1, 2**31, 2**64 - 1)),
    *(("state", state_with(controller_epoch=epoch), "controller_epoch") for epoch in (-1, 2**31, 2**63)),
    *(("state", state_with(leader=leader), "leader") for leader in (-2, 2**31, 2**64 - 1)),
    *(("state", state_with(isr=isr), "isr") for isr in ([1, 1], [-1], [2**31])),
    *(("topic", topic_with(partitions={"0": r}), "replicas") for r in ([], [-1], [2**31], [1, 2**64 - 1])),
    *(("topic", topic_with(partitions={n: [1]}), "partition numbers") for n in ("2147483648", "1" + "0" * 30)),
    *(("topic", topic_with(partitions={n: [1]}), "partition numbers") for n in ("01", "\u0663", "9" * 5_000, "", " 1")),
    *(("topic", topic_with(topic_id=id_), "topic_id") for id_ in ("", "ab/d+f==", "a b", "a:b", "a\n", "x" * 250)),
    ("topic", topic_with(adding_replicas={"0": [1, 2]}), "no replicas"),
    ("topic", topic_with(removing_replicas={"0": [1, 2]}), "no replicas"),
    ("topic", b'{"partitions":{},"others":' + 300 * b"[" + 300 * b"]" + b"}", "could not be written again"),
    *(("broker", broker_at(f"h:{port}"), "port") for port in (0, 65_536, 2**31)),
    *(("broker", broker_at(f"h:{port}"), "host:port") for port in (10**30, "-1", "\u0663", "9" * 5_000)),
    *(("broker", broker_at(f"{host}:1"), "host") for host in ("", "a b", "a\n", "\0", "h" * 64, "a." * 200, "a..b")),
    ("broker", broker_at("h:1", rack="r" * 40_000), "rack"),
    ("broker", broker_at("h:1", storage_id="s" * 40_000), "storage_id"),
    ("endpoint", b'{"host":"h","port":65536}', "port"),
    ("endpoint", b'{"host":"h\\n","port":1}', "host"),
    ("controller", b'{"brokerid":-1}', "brokerid"),
    ("controller", b'{"brokerid":2147483648}', "brokerid"),
]


@pytest.mark.parametrize(("kind", "data", "hint"), BEYOND_BOUNDS)
def test_what_can_be_neither_told_nor_written_again_is_named(kind: str, data: bytes, hint: str) -> None:
    path, decode = DECODERS[kind]
    with pytest.raises(UndecodableZnode) as raised:
        decode(data)
    assert raised.value.path == path
    assert hint in raised.value.fault
    assert len(raised.value.fault) < 300


@pytest.mark.parametrize(("kind", "decode"), [(kind, decode) for kind, (_, decode) in DECODERS.items()])
def test_what_may_not_be_read_says_so(kind: str, decode: Decode) -> None:
    with pytest.raises(UndecodableZnode, match="may not be read: its ACL forbids it") as raised:
        decode(UNREADABLE)
    assert raised.value.path == DECODERS[kind][0]


@pytest.mark.parametrize("name", ["a:b", "a b", "x" * 250, "ä"])
def test_a_topic_that_kafka_would_not_call_so_is_named(name: str) -> None:
    with pytest.raises(UndecodableZnode, match="cannot have this name"):
        formats.decode_topic(name, topic_with())


def test_epochs_that_leave_room_for_more_are_read() -> None:
    assert formats.decode_partition_state(TP, state_with(leader_epoch=2**30), 0).leader_epoch == 2**30
    assert formats.decode_controller_epoch(str(2**30).encode()) == 2**30
    for data in (str(2**30 + 1).encode(), b"-1", b"9" * 5_000, UNREADABLE):
        with pytest.raises(UndecodableZnode):
            formats.decode_controller_epoch(data)
