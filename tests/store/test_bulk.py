"""Bulk operations at the size of large clusters: every watch fires once, and the server accepts every chunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from tests.store.conftest import OpenStore
from tests.store.events import Events, changed, children_of, created
from tests.store.interrupted import interrupted
from transport.store.chunks import Group, plan_chunks
from transport.store.commit import commit_chunk
from transport.store.protocol import ANY_VERSION, Check, Create, MetadataStore, Op, Set
from transport.store.zookeeper import open_zookeeper

THERE = [f"/there-{n:05}" for n in range(4_000)]
MISSING = [f"/missing-{n:05}" for n in range(4_000)]
EVERYWHERE = [*THERE, *MISSING]


async def commit_all(store: MetadataStore, ops: Sequence[Op], size: int = 2000) -> None:
    for start in range(0, len(ops), size):
        await store.multi(ops[start : start + size])


async def write(store: MetadataStore, there: Sequence[str], missing: Sequence[str]) -> None:
    await commit_all(store, [Set(path, b"x", ANY_VERSION) for path in there])
    await commit_all(store, [Create(path) for path in missing])


async def write_again_and_end(store: MetadataStore) -> None:
    await commit_all(store, [Set(path, b"again", ANY_VERSION) for path in EVERYWHERE])
    await store.multi([Create("/end/child")])


@pytest.mark.parametrize(
    "open_store",
    [
        "memory",
        "zookeeper",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("simulated", "secured zookeeper")),
    ],
    indirect=True,
)
async def test_8_000_watches_fire_once_each(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        await commit_all(other, [Create(path) for path in [*THERE, "/end"]])
        events = Events(store)
        await store.read(EVERYWHERE, watch=True)
        await store.children(["/end"], watch=True)
        await write(other, THERE, MISSING)
        await write_again_and_end(other)
        await events.expect(*map(changed, THERE), *map(created, MISSING), children_of("/end"))


async def test_of_8_000_watches_those_whose_change_came_before_the_arming_fire_once_too(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        await commit_all(other, [Create(path) for path in [*THERE, "/end"]])
        events = Events(store)
        session.interruption = partial(write, other, THERE[::2], MISSING[::2])
        found = await store.read(EVERYWHERE, watch=True)
        await store.children(["/end"], watch=True)
        await write(other, THERE[1::2], MISSING[1::2])
        await write_again_and_end(other)

        assert [znode is None or znode.data for znode in found] == [b""] * len(THERE) + [True] * len(MISSING)
        fired = await events.until(children_of("/end"))
        expected = [*map(changed, THERE), *map(created, MISSING), children_of("/end")]
        assert sorted(fired, key=str) == sorted(expected, key=str)


async def test_chunks_by_count_and_by_bytes_are_all_taken(open_store: OpenStore) -> None:
    sizes = {"small": 100, "big": 5_000, "huge": 890_000}
    paths = [f"/{name}-{n}" for name, count in (("small", 1200), ("big", 400), ("huge", 2)) for n in range(count)]
    async with open_store() as store:
        await commit_all(store, [Create(path) for path in ["/fence", *paths]])
        groups: list[Group] = [[Set(path, b"x" * sizes[path[1:].partition("-")[0]], 0)] for path in paths]
        chunks = plan_chunks(groups)
        results = [await commit_chunk(store, [groups[i] for i in chunk], Check("/fence", 0)) for chunk in chunks]

        assert [len(chunk) for chunk in chunks[:2]] == [500, 500]
        assert [len(result.committed) for result in results] == [len(chunk) for chunk in chunks]
        assert len({result.zxid for result in results}) == len(chunks) > 6
        versions = [znode.stat.version for znode in await store.read(paths) if znode is not None]
        assert versions == [1] * len(paths)
