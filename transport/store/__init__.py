"""The metadata store: ZooKeeper through kazoo, or the same semantics in memory, and fenced commits on either."""

from __future__ import annotations

from transport.store.chunks import Group, plan_chunks
from transport.store.commit import ChunkResult, Fenced, commit_chunk
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Committed,
    Conflict,
    ConflictReason,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    SessionChanged,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    StoreError,
    StoreEvent,
    StoreUnavailable,
    WatchFired,
    WatchKind,
    Znode,
    ensure_paths,
)
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper

__all__ = [
    "ANY_VERSION",
    "Check",
    "ChunkResult",
    "Committed",
    "Conflict",
    "ConflictReason",
    "ConnectionLost",
    "Create",
    "Delete",
    "Fenced",
    "Group",
    "MemoryStore",
    "MemoryZooKeeper",
    "MetadataStore",
    "Op",
    "SessionChanged",
    "SessionExpired",
    "SessionState",
    "Set",
    "Stat",
    "StoreError",
    "StoreEvent",
    "StoreUnavailable",
    "WatchFired",
    "WatchKind",
    "Znode",
    "ZooKeeperStore",
    "commit_chunk",
    "ensure_paths",
    "open_zookeeper",
    "plan_chunks",
]
