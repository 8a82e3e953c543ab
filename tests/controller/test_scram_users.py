"""Users of SCRAM are changed as topics and brokers are: whole, with a notification, or not at all."""

from __future__ import annotations

from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.messages.users import AlterScramUsersRequest, AlterScramUsersResponse, UserChanges
from transport.store import formats, paths
from transport.store.protocol import Create
from transport.store.scram_users import user_path

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


async def alter(bench: Bench, *users: UserChanges) -> dict[str, ErrorCode | None]:
    """Change users; return why each was refused, None for those that were changed."""
    answer = await bench.ask(AlterScramUsersRequest(users), AlterScramUsersResponse)
    return {user: None if fault is None else fault[0] for user, fault in answer.users}


async def credentials(bench: Bench, user: str) -> dict[str, str]:
    znode = await bench.read(user_path(user))
    return {} if znode is None else formats.decode_config(user_path(user), znode.data)


async def test_changes_of_a_user_are_made_together_or_refused(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.store.multi([Create(user_path("bad"), b"{")])
    added = ((SHA_256, "a"), (SHA_512, "b"))
    refused = await alter(
        bench, UserChanges("ann", (), added), UserChanges("bad", (), added), UserChanges("bob", (SHA_256,), added)
    )
    assert refused == {"ann": None, "bad": ErrorCode.INVALID_CONFIG, "bob": ErrorCode.RESOURCE_NOT_FOUND}
    assert await alter(bench, UserChanges("ann", (SHA_256,), ((SHA_512, "c"),))) == {"ann": None}
    assert [await credentials(bench, user) for user in ("ann", "bob")] == [{SHA_512: "c"}, {}]
    [names] = await bench.store.children([paths.CONFIG_CHANGES])
    assert names is not None
    told = [await bench.read(f"{paths.CONFIG_CHANGES}/{name}") for name in names]
    assert [formats.decode_config_change("", znode.data) for znode in told if znode] == ["users/ann", "users/ann"]
