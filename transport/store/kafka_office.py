"""The znodes that decide who controls a cluster of Apache Kafka's brokers, and their contents.

Kafka's controllers hold `/controller` as an ephemeral. Ours is persistent, so that the brokers elect none of their own
when our process dies; an ephemeral lock below `/klamm` says which of our processes is in office.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import orjson
from attrs import frozen

from transport.store import fields, formats, paths
from transport.store.fields import UndecodableZnode
from transport.store.protocol import Delete, MetadataStore, Op, Znode

DECISIVE: Final = (
    paths.CONTROLLER_EPOCH,
    paths.CONTROLLER,
    paths.OFFICE_LOCK,
    paths.MIGRATION,
    paths.RELEASED,
    paths.TAKE_OVER,
)
"""The znodes that decide who is in office, in the order in which they are read.

The epoch comes first: every election raises it, so a write that checks its version is refused if there was one since.
"""

_OF_MIGRATION: Final = ("version", "kraft_controller_id", "kraft_controller_epoch")
_WRITER: Final = "writer"
_KLAMM: Final = "klamm"
_FORCED: Final = "forced"


class Writer(Enum):
    """The kinds of controllers that write `/controller`."""

    KLAMM = "Klamm"
    KAFKA = "Kafka"
    KRAFT = "KRaft"


@frozen
class Holder:
    """The controller that `/controller` names, and the dataVersion of that znode."""

    controller_id: int
    writer: Writer
    version: int
    is_forced: bool = False
    """Whether an operator took this office over what checks of the controller's settings had found."""


@frozen
class Lock:
    """Our controller that holds the lock, and the session that does."""

    controller_id: int
    session_id: int
    version: int


@frozen
class MigrationZnode:
    """`/migration`: empty, a migration to KRaft, or damaged with a `fault`; and its dataVersion.

    Kafka's zookeeper-security-migration creates it empty (KAFKA-19480): no migration has begun then.
    """

    version: int
    is_empty: bool
    fault: str = ""


@frozen
class OfficeZnodes:
    """The decisive znodes as one read found them. `epoch` is None if no controller has ever been elected."""

    holder: Holder | None
    epoch: int | None
    epoch_version: int
    lock: Lock | None
    migration: MigrationZnode | None
    is_released: bool
    order: int | None
    """The dataVersion of the order to take over; None if there is none."""

    order_zxid: int = 0
    """The czxid of the order, which tells it from others."""

    is_forced: bool = False
    """Whether the order is to be carried out whatever checks of the controller's settings find."""


async def read_office(store: MetadataStore, *, watch: bool = False) -> OfficeZnodes:
    """Read the decisive znodes. Raises UndecodableZnode."""
    epoch, holder, lock, migration, released, order = await store.read(DECISIVE, watch=watch)
    return OfficeZnodes(
        None if holder is None else decode_holder(holder),
        None if epoch is None else formats.decode_controller_epoch(epoch.data),
        0 if epoch is None else epoch.stat.version,
        None if lock is None else _decode_lock(lock),
        None if migration is None else _decode_migration(migration),
        released is not None,
        None if order is None else order.stat.version,
        0 if order is None else order.stat.czxid,
        order is not None and _is_forced(order.data),
    )


def encode_holder(controller_id: int, now_ms: int, *, is_forced: bool = False) -> bytes:
    """Encode a `/controller` of ours: Kafka's version 2, and its writer; Kafka ignores unknown keys."""
    value = orjson.loads(formats.encode_controller(controller_id, now_ms))
    return orjson.dumps(value | {_WRITER: _KLAMM} | ({_FORCED: True} if is_forced else {}))


def decode_holder(znode: Znode) -> Holder:
    """Return the controller that `/controller` names."""
    value = fields.load(paths.CONTROLLER, znode.data)
    controller_id = fields.number(paths.CONTROLLER, value.get("brokerid"), "brokerid")
    return Holder(controller_id, _writer(value), znode.stat.version, value.get(_FORCED) is True)


def _writer(value: dict[str, Any]) -> Writer:
    kraft_epoch = value.get("kraftControllerEpoch")
    if isinstance(kraft_epoch, int) and kraft_epoch > 0:
        return Writer.KRAFT
    return Writer.KLAMM if value.get(_WRITER) == _KLAMM else Writer.KAFKA


def encode_lock(controller_id: int) -> bytes:
    """Encode the lock of a controller in office."""
    return orjson.dumps({"version": 1, "controller": controller_id})


def _decode_lock(znode: Znode) -> Lock:
    value = fields.load(paths.OFFICE_LOCK, znode.data)
    controller_id = fields.number(paths.OFFICE_LOCK, value.get("controller"), "controller")
    return Lock(controller_id, znode.stat.ephemeral_owner, znode.stat.version)


def _decode_migration(znode: Znode) -> MigrationZnode:
    """Return what `/migration` says; Kafka's own reader rejects one without these numbers."""
    version = znode.stat.version
    if not znode.data:
        return MigrationZnode(version, is_empty=True)
    try:
        value = fields.load(paths.MIGRATION, znode.data)
        for name in _OF_MIGRATION:
            fields.integer(paths.MIGRATION, value.get(name), name)
    except UndecodableZnode as damage:
        return MigrationZnode(version, is_empty=False, fault=damage.fault)
    return MigrationZnode(version, is_empty=False)


def encode_mark(now_ms: int, *, is_forced: bool = False) -> bytes:
    """Encode `/klamm/released` or an order to take over; `now_ms` is the time of the operator's command."""
    return orjson.dumps({"version": 1, "timestamp": str(now_ms)} | ({_FORCED: True} if is_forced else {}))


def _is_forced(data: bytes) -> bool:
    """Return whether an order is forced. An order counts whatever is in it."""
    try:
        return fields.load(paths.TAKE_OVER, data).get(_FORCED) is True
    except UndecodableZnode:
        return False


async def registration_of(store: MetadataStore, lock: Lock | None) -> list[Op]:
    """Return the operation that removes the registration as a broker of the controller that holds the lock, if any.

    A controller that leaves the office must not remain among the brokers: Kafka's controller would give it replicas.
    """
    if lock is None:
        return []
    path = paths.broker(lock.controller_id)
    [znode] = await store.read([path])
    return [Delete(path)] if znode is not None and znode.stat.ephemeral_owner == lock.session_id else []
