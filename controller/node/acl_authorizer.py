"""The authorizer that decides by Kafka's ACLs, as they are in the metadata store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from controller.model.acls import AclRules, Acls, Entries
from transport.acls import Operation, Pattern, Resource
from transport.log import get_logger
from transport.security.settings import AuthorizerSettings
from transport.store.fields import UndecodableZnode
from transport.store.kafka_acls import (
    CHANGES,
    EXTENDED_CHANGES,
    PERSISTENT,
    changed_pattern,
    list_patterns,
    read_entries,
)
from transport.store.protocol import (
    MetadataStore,
    SessionChanged,
    StoreError,
    StoreEvent,
    ensure_paths,
    require_listed,
)
from transport.wire import Caller

AGAIN_SECONDS: Final = 1.0
"""The time until ACLs that could not be read are read again."""

_WATCHED: Final = (CHANGES, EXTENDED_CHANGES)
_log = get_logger(__name__)


class AclAuthorizer:
    """An authorizer, which follows the ACLs while `follow` runs. Before it has read them, only super users are let in.

    Each change of an ACL is announced by a notification. ACLs that were read stay in effect until newer ones replace
    them: while the store cannot be read, and while all are read again after a lost connection. Only if they may not be
    listed are they given up, because then nothing shows which of them still hold.
    """

    def __init__(self, store: MetadataStore, settings: AuthorizerSettings) -> None:
        """Decide by the ACLs in a store."""
        self._store = store
        self._rules = AclRules(settings.super_users, settings.allow_everyone_if_no_acl_found)
        self._acls = Acls(is_complete=False)
        self._seen: frozenset[str] | None = None
        """The notifications whose changes have been read; None if everything has to be read."""

        self._sessions = 0
        """The number of times that the session has changed."""

        self._awake = trio.Event()

    def __call__(self, caller: Caller, operation: Operation, resource: Resource) -> bool:
        """Return whether a caller may perform an operation on a resource."""
        return self._rules.allow(self._acls, caller.principal, caller.address, operation, resource)

    async def follow(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the ACLs, and again when they change; started once they have been read."""
        unsubscribe = self._store.subscribe(self._on_store_event)
        is_started = False
        try:
            while True:
                self._awake = trio.Event()
                if await self._try_to_catch_up():
                    if not is_started:
                        is_started = True
                        task_status.started()
                    await self._awake.wait()
                else:
                    with trio.move_on_after(AGAIN_SECONDS):
                        await self._awake.wait()
        finally:
            unsubscribe()

    def _on_store_event(self, event: StoreEvent) -> None:
        if isinstance(event, SessionChanged):
            # Watches may be lost, and notifications with them.
            self._seen = None
            self._sessions += 1
        elif event.path not in _WATCHED:
            return
        self._awake.set()

    async def _try_to_catch_up(self) -> bool:
        try:
            await self._catch_up()
        except StoreError as error:
            _log.warning("ACLs could not be read", reason=str(error))
            return False
        return True

    async def _catch_up(self) -> None:
        seen, sessions = self._seen, self._sessions
        if seen is None:
            await ensure_paths(self._store, PERSISTENT)
        lists = await self._store.children(_WATCHED, watch=True)
        pairs = zip(_WATCHED, lists, strict=True)
        found = {f"{parent}/{name}" for parent, names in pairs for name in require_listed(parent, names)}
        changed = None if seen is None else await self._changed(sorted(found - seen))
        # Changes alone say nothing about the ACLs that could not be listed.
        if changed is None or not self._acls.is_complete:
            self._acls = await self._read_all()
        else:
            self._acls = await self._read(changed, self._acls.entries)
        # If the session has changed in the meantime, everything has to be read again.
        if self._sessions == sessions:
            self._seen = frozenset(found)

    async def _changed(self, notifications: list[str]) -> list[Pattern] | None:
        """Return the patterns whose ACLs have changed; None if a notification cannot be read."""
        patterns: dict[Pattern, None] = {}
        for path, znode in zip(notifications, await self._store.read(notifications), strict=True):
            # A notification that is gone was there for a quarter of an hour.
            if znode is None:
                return None
            try:
                pattern = changed_pattern(path, znode.data)
            except UndecodableZnode as error:
                _log.warning("all ACLs are read again: a notification cannot be read", reason=str(error))
                return None
            if pattern is not None:
                patterns[pattern] = None
        return list(patterns)

    async def _read_all(self) -> Acls:
        """Return the ACLs of all patterns; incomplete ones if these may not be listed."""
        patterns = await list_patterns(self._store)
        if patterns is None:
            _log.warning("only super users are let in: the ACLs may not be listed")
            return Acls(is_complete=False)
        return await self._read(patterns, {})

    async def _read(self, patterns: list[Pattern], others: Mapping[Pattern, Entries]) -> Acls:
        """Return the ACLs of patterns as they are now, and those of others as they are known."""
        read = await read_entries(self._store, patterns)
        entries = dict(others)
        for pattern in patterns:
            if pattern not in read:
                entries.pop(pattern, None)
                continue
            entries[pattern], fault = read[pattern]
            if fault:
                _log.warning("an ACL denies everything: it cannot be read", reason=fault)
        return Acls(entries)
