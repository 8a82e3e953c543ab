"""Znodes with the ACL of another identity: they affect no other znode, on every metadata store."""

from __future__ import annotations

import pytest

from tests.store.conftest import GiveAway, OpenStore
from transport.store.commit import commit_chunk
from transport.store.protocol import FORBIDDEN, Check, Create, Delete, Op, Rejected, Set, Unlisted


async def test_what_we_may_not_read_costs_no_other_read(open_store: OpenStore, give_away_znode: GiveAway) -> None:
    async with open_store() as store:
        await store.multi(
            [Create("/ours", b"data"), Create("/ours/b"), Create("/theirs", b"data"), Create("/theirs/a")]
        )
        await give_away_znode("/theirs")
        for watch in (False, True):
            ours, theirs, missing = await store.read(["/ours", "/theirs", "/missing"], watch=watch)
            assert (ours is not None and ours.data, theirs, missing) == (b"data", FORBIDDEN, None)
            lists = await store.children(["/ours", "/theirs", "/missing"], watch=watch)
            assert lists == [["b"], [], None]
            assert [type(names) for names in lists] == [list, Unlisted, type(None)]
        assert await store.read(["/theirs/a"]) != [FORBIDDEN]


@pytest.mark.parametrize(
    "op",
    [Set("/theirs", b"", 0), Set("/theirs", b"", 7), Create("/theirs/b"), Delete("/theirs/a"), Check("/theirs", 0)],
    ids=repr,
)
async def test_what_we_may_not_do_is_rejected_and_rolls_back(
    open_store: OpenStore, give_away_znode: GiveAway, op: Op
) -> None:
    async with open_store() as store:
        await store.multi([Create("/theirs", b"data"), Create("/theirs/a")])
        await give_away_znode("/theirs")
        with pytest.raises(Rejected, match=r"^/theirs\S* may not be touched: its ACL") as rejected:
            await store.multi([Create("/ours"), op])
        assert (rejected.value.index, rejected.value.path) == (1, op.path)
        assert await store.read(["/ours"]) == [None]
        await store.multi([Set("/theirs/a", b"", 0)])


async def test_below_an_ephemeral_nothing_can_be_created(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a", ephemeral=True)])
        with pytest.raises(Rejected, match="/a/b cannot be created: its parent is ephemeral") as rejected:
            await store.multi([Check("/a", 0), Create("/a/b")])
        assert rejected.value.index == 1


async def test_a_chunk_is_committed_without_what_we_may_not_do(
    open_store: OpenStore, give_away_znode: GiveAway
) -> None:
    async with open_store() as store:
        await store.multi([Create("/theirs"), Create("/ours"), Create("/fence")])
        await give_away_znode("/theirs")
        groups: list[list[Op]] = [[Set("/ours", b"1", 0)], [Create("/new"), Create("/theirs/a")], [Create("/other")]]
        stale = [Set("/ours", b"2", 7)]
        result = await commit_chunk(store, [*groups, stale], Check("/fence", 0))
        assert (result.committed, result.conflicts, tuple(result.rejected)) == ((0, 2), (3,), (1,))
        assert str(result.rejected[1]).startswith("/theirs/a may not be touched")
        ours, new, other = await store.read(["/ours", "/new", "/other"])
        assert (ours is not None and ours.data, new, other is not None) == (b"1", None, True)
        await give_away_znode("/fence")
        with pytest.raises(Rejected, match="/fence may not be touched"):
            await commit_chunk(store, [[Create("/more")]], Check("/fence", 0))
