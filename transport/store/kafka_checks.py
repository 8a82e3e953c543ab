"""The records of what Klamm's controllers found among Kafka's brokers when an operator ordered one to take office.

Each controller adds its record to its address below `/klamm/controllers`, so that it ends with the controller's
session. Readers of the address ignore it.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from attrs import frozen

from transport.store import fields, paths
from transport.store.protocol import Conflict, MetadataStore, Set, children_of

_KEY = "checked"


@frozen
class Record:
    """The findings of a controller about an order, of which `order_zxid` is the czxid."""

    controller_id: int
    order_zxid: int
    is_refused: bool
    lines: tuple[str, ...]


async def record(store: MetadataStore, found: Record) -> None:
    """Write a controller's record in place of the one before, if the controller has published its address."""
    path = paths.controller_endpoint(found.controller_id)
    while True:
        [znode] = await store.read([path])
        if znode is None:
            return
        value = fields.load(path, znode.data)
        value[_KEY] = {"order": found.order_zxid, "refused": found.is_refused, "findings": found.lines}
        try:
            await store.multi([Set(path, orjson.dumps(value), znode.stat.version)])
        except Conflict:
            continue
        return


async def records(store: MetadataStore, *, watch: bool = False) -> dict[int, Record | None]:
    """Return the record of each live controller, None for one without."""
    ids = paths.numbers(await children_of(store, paths.KLAMM_CONTROLLERS))
    znodes = await store.read([paths.controller_endpoint(id_) for id_ in ids], watch=watch)
    there = [(id_, znode.data) for id_, znode in zip(ids, znodes, strict=True) if znode is not None]
    return {id_: next(_decoded(id_, data), None) for id_, data in there}


def _decoded(controller_id: int, data: bytes) -> Iterator[Record]:
    try:
        value = fields.load(paths.controller_endpoint(controller_id), data).get(_KEY)
    except fields.UndecodableZnode:
        return
    if isinstance(value, dict) and isinstance(value.get("order"), int) and isinstance(value.get("findings"), list):
        lines = tuple(map(str, value["findings"]))
        yield Record(controller_id, value["order"], value.get("refused") is True, lines)
