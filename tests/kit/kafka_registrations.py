"""Registrations as brokers of Apache Kafka 3.9 write them, and the state of a migration as its KRaft controllers do."""

from __future__ import annotations

from typing import Final

import orjson

from transport.metadata import Listener
from transport.store import paths
from transport.store.protocol import Create, MetadataStore, ensure_paths

MIGRATION: Final = orjson.dumps(
    {
        "version": 0,
        "kraft_metadata_offset": 34,
        "kraft_controller_id": 3000,
        "kraft_metadata_epoch": 2,
        "kraft_controller_epoch": 2,
    }
)
"""`/migration` once KRaft controllers migrate the cluster."""


def encode(*listeners: Listener, rack: str | None = None) -> bytes:
    """Encode a registration of version 5."""
    value = {
        "features": {},
        "listener_security_protocol_map": {at.name: at.protocol.name for at in listeners},
        "endpoints": [f"{at.name}://{at.host}:{at.port}" for at in listeners],
        "jmx_port": -1,
        "port": -1,
        "host": None,
        "version": 5,
        "timestamp": "1700000000000",
    }
    return orjson.dumps(value if rack is None else value | {"rack": rack})


async def register(store: MetadataStore, broker_id: int, *listeners: Listener, rack: str | None = None) -> None:
    """Register a broker in the session of a store."""
    data = encode(*listeners, rack=rack)
    await store.multi([Create(paths.broker(broker_id), data, ephemeral=True)])


async def begin_cluster(store: MetadataStore) -> None:
    """Write the id of a cluster, as its first broker does, unless there is one."""
    if await store.read([paths.CLUSTER_ID]) == [None]:
        await ensure_paths(store, ["/cluster"])
        await store.multi([Create(paths.CLUSTER_ID, b'{"version":"1","id":"MkU3OEVBNTcwNTJENDM2Qg"}')])
