"""Gives znodes of a real ZooKeeper to another identity, as another tool's ACL does, and back."""

from __future__ import annotations

from functools import partial

import trio
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

_OTHER = "somebody", "else"


async def give_away(address: str, *paths: str, owner: str | None = None) -> None:
    """Give znodes below `address` (host:port/chroot) to another identity, authenticated as `owner` (user:password)."""
    await trio.to_thread.run_sync(partial(_set_acls, address, paths, [make_digest_acl(*_OTHER, all=True)], owner))


async def give_back(address: str, *paths: str) -> None:
    """Let everybody access the znodes again. ZooKeeper fires no watch for that."""
    await trio.to_thread.run_sync(partial(_set_acls, address, paths, OPEN_ACL_UNSAFE))


def _set_acls(address: str, paths: tuple[str, ...], acls: list[object], owner: str | None = None) -> None:
    identities = [":".join(_OTHER), *([] if owner is None else [owner])]
    client = KazooClient(address, auth_data=[("digest", identity) for identity in identities])
    client.start()
    try:
        for path in paths:
            client.set_acls(path, acls)
    finally:
        client.stop()
        client.close()
