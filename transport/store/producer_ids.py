"""`/latest_producer_id_block`: the last block of ids for idempotent producers, as Kafka's JSON."""

from __future__ import annotations

import orjson

from transport.settings import LONG_MAX
from transport.store import fields, paths


def encode_producer_ids(broker_id: int, ids: range) -> bytes:
    """Encode the block of ids for producers that a broker was given last."""
    first, last = str(ids.start), str(ids.stop - 1)
    return orjson.dumps({"version": 1, "broker": broker_id, "block_start": first, "block_end": last})


def decode_producer_ids(data: bytes) -> range:
    """Return the block of ids that a broker was given last; an empty one if the znode is empty, as in Kafka."""
    if not data:
        return range(0)
    path = paths.PRODUCER_IDS
    value = fields.load(path, data)
    first, last = (_long(path, value.get(name), name) for name in ("block_start", "block_end"))
    if first > last:
        raise fields.UndecodableZnode(path, f"block_start {first} is greater than block_end {last}")
    return range(first, last + 1)


def _long(path: str, value: object, name: str) -> int:
    text = fields.string(path, value, name)
    if not (text.isascii() and text.isdigit() and int(text) <= LONG_MAX):
        raise fields.UndecodableZnode(path, f"{name} must be a number of 63 bits, is {fields.shown(text)}")
    return int(text)
