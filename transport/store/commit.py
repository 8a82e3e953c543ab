"""Fenced commits of the groups of a chunk. Each group takes effect or turns out to be stale.

A refused multi rolls back as a whole and names only its first conflict. A multi whose connection broke may or may not
have taken effect. Both cases are resolved by reading again the znodes that the operations touch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain

import trio
from attrs import field, frozen

from transport.store.chunks import Group
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Conflict,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    Rejected,
    SessionExpired,
    SessionState,
    Set,
    StoreError,
    Znode,
)

Found = Mapping[str, Znode | None]


class Fenced(StoreError):
    """The fence did not hold: another controller has taken over, and no write of this chunk took effect."""


@frozen
class ChunkResult:
    """The outcomes of the groups of a chunk, as indexes of the groups.

    `zxid` is that of the multi that committed them; None if no group remained to be committed. The operations of a
    group in `conflicts` expect another state of the store. A group in `rejected`, which has the reasons, can never be
    committed.
    """

    zxid: int | None
    committed: tuple[int, ...]
    conflicts: tuple[int, ...]
    rejected: Mapping[int, Rejected] = field(factory=dict)


async def commit_chunk(
    store: MetadataStore, groups: Sequence[Group], fence: Check | None, known: Collection[str] = ()
) -> ChunkResult:
    """Commit all groups whose expectations hold, together and behind `fence`; `known` as in `MetadataStore.multi`.

    Groups that are stale, or can never be committed, are dropped, and the others are retried. After a lost connection,
    the versions of the znodes show the outcome. Sequential znodes do not show it, so they may be created twice.

    Raises:
        Fenced: The fence does not hold.
        Rejected: We may not read the fence.
        SessionExpired: The session ended. If a connection was lost before, the outcome is unknown.
    """
    session_id = store.session_id
    fences = [] if fence is None else [fence]
    remaining = list(range(len(groups)))
    rejected: dict[int, Rejected] = {}
    in_doubt = False
    while remaining:
        ops = [op for index in remaining for op in groups[index]]
        refused: int | None = None
        try:
            committed = await store.multi([*fences, *ops], known=known)
            return _result(committed.zxid, remaining, len(groups), rejected)
        except Conflict as conflict:
            refused = _refused_group(conflict, len(fences), groups, remaining)
        except Rejected as rejection:
            refused = _refused_group(rejection, len(fences), groups, remaining)
            rejected[refused] = rejection
            # The other groups were not refused, so they need not be read again.
            if not in_doubt:
                remaining.remove(refused)
                continue
        except ConnectionLost:
            in_doubt = True
        found = await _read_again(store, session_id, paths_of(ops))
        if in_doubt and has_landed(ops, found):
            # Deletions leave no zxid behind; that of an empty commit after them is the closest.
            zxid = landed_zxid(ops, found) or await _empty_commit(store, fence)
            return _result(zxid, remaining, len(groups), rejected)
        if refused is not None:
            # This answer removes the doubt: if the earlier attempt had taken effect, the znodes would show it by now.
            in_doubt = False
            remaining = [index for index in survivors(groups, remaining, found) if index != refused]
    return _result(None, [], len(groups), rejected)


def _result(zxid: int | None, committed: Sequence[int], groups: int, rejected: Mapping[int, Rejected]) -> ChunkResult:
    done = {*committed, *rejected}
    conflicts = tuple(index for index in range(groups) if index not in done)
    return ChunkResult(zxid, tuple(committed), conflicts, rejected)


def _refused_group(refusal: Conflict | Rejected, fences: int, groups: Sequence[Group], remaining: Sequence[int]) -> int:
    if refusal.index < fences:
        if isinstance(refusal, Rejected):
            raise refusal
        raise Fenced(str(refusal)) from refusal
    owners = [index for index in remaining for _ in groups[index]]
    return owners[refusal.index - fences]


async def _read_again(store: MetadataStore, session_id: int, paths: Sequence[str]) -> Found:
    while True:
        await _connected(store, session_id)
        with suppress(ConnectionLost):
            return dict(zip(paths, await store.read(paths), strict=True))


async def _connected(store: MetadataStore, session_id: int) -> None:
    while store.state is SessionState.SUSPENDED:
        await _next_event(store)
    if store.state is not SessionState.CONNECTED or store.session_id != session_id:
        raise SessionExpired("the session ended during a commit")


async def _next_event(store: MetadataStore) -> None:
    event = trio.Event()
    unsubscribe = store.subscribe(lambda _: event.set())
    try:
        await event.wait()
    finally:
        unsubscribe()


async def _empty_commit(store: MetadataStore, fence: Check | None) -> int | None:
    return (await commit_chunk(store, [()], fence)).zxid


# --- pure: the state that operations expect, and the state after them --------------------------------------------


def paths_of(ops: Sequence[Op]) -> list[str]:
    """List the paths to read to judge operations: their own, and the parents of new znodes."""
    parents = (parent_of(op.path) for op in ops if isinstance(op, Create))
    return list(dict.fromkeys(chain((op.path for op in ops if not _is_sequence(op)), parents)))


def parent_of(path: str) -> str:
    """Return the path of a znode's parent."""
    return path.rpartition("/")[0] or "/"


def survivors(groups: Sequence[Group], candidates: Sequence[int], found: Found) -> list[int]:
    """Return the candidates that would succeed, one after the other, on the state found."""
    versions = {path: None if znode is None else znode.stat.version for path, znode in found.items()}
    alive = []
    for index in candidates:
        after = _replay(groups[index], versions)
        if after is not None:
            versions.update(after)
            alive.append(index)
    return alive


def _replay(ops: Group, versions: Mapping[str, int | None]) -> Mapping[str, int | None] | None:
    """Return the versions after operations (None for a deleted znode), or None if one would be refused."""
    after: dict[str, int | None] = {}
    for op in ops:
        version = after.get(op.path, versions.get(op.path))
        if isinstance(op, Create):
            parent = parent_of(op.path)
            if version is not None or after.get(parent, versions.get(parent)) is None:
                return None
        elif version is None or op.version not in (ANY_VERSION, version):
            return None
        after.update(_left_by(op, version))
    return after


def _left_by(op: Op, version: int | None) -> dict[str, int | None]:
    match op:
        case Create():
            return {} if op.sequence else {op.path: 0}
        case Set():
            return {op.path: (version or 0) + 1}
        case Delete():
            return {op.path: None}
        case Check():
            return {}


def has_landed(ops: Sequence[Op], found: Found) -> bool:
    """Return whether operations that were sent together, with an unknown outcome, took effect.

    All or none of them did. They did if at least one znode is in the state after them, and none shows the opposite.
    """
    evidence = [_evidence(effect, found[path]) for path, effect in _effects(ops).items()]
    return True in evidence and False not in evidence


def landed_zxid(ops: Sequence[Op], found: Found) -> int | None:
    """Return the zxid of operations that took effect; None if the znodes do not show it."""
    written = [found[path] for path, effect in _effects(ops).items() if _evidence(effect, found[path])]
    return max((znode.stat.mzxid for znode in written if znode is not None), default=None)


@frozen
class _Effect:
    """The effect of operations on one znode: its `expected` version before (None: missing), and its state after them.

    `data` is None for a deleted znode; `version` is `ANY_VERSION` if it does not follow from the operations.
    """

    expected: int | None
    data: bytes | None
    version: int


def _effects(ops: Sequence[Op]) -> dict[str, _Effect]:
    effects: dict[str, _Effect] = {}
    for op in ops:
        if not isinstance(op, Check) and not _is_sequence(op):
            effects[op.path] = _fold(effects.get(op.path), op)
    return effects


def _fold(before: _Effect | None, op: Create | Set | Delete) -> _Effect:
    if isinstance(op, Create):
        return _Effect(before.expected if before else None, op.data, 0)
    expected = before.expected if before else op.version
    if isinstance(op, Delete):
        return _Effect(expected, None, ANY_VERSION)
    version = before.version if before else op.version
    return _Effect(expected, op.data, version if version == ANY_VERSION else version + 1)


def _evidence(effect: _Effect, znode: Znode | None) -> bool | None:
    """Return True if a znode shows that operations took effect, False if it shows the opposite, None if neither."""
    if effect.data is None:
        return _deletion_evidence(effect, znode)
    # Missing: either it was not created, or it has been deleted since.
    if znode is None:
        return False if effect.expected is None else None
    # Written unconditionally, so only the data can show it.
    if effect.version == ANY_VERSION:
        return znode.data == effect.data
    # A later write hides the outcome.
    if znode.stat.version > effect.version:
        return None
    return znode.stat.version == effect.version and znode.data == effect.data


def _deletion_evidence(effect: _Effect, znode: Znode | None) -> bool | None:
    if znode is None:
        return True
    return False if effect.expected in (ANY_VERSION, znode.stat.version) else None


def _is_sequence(op: Op) -> bool:
    return isinstance(op, Create) and op.sequence
