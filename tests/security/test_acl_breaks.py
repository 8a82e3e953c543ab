"""The verdicts of ACLs while the connection to the metadata store breaks again and again."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import trio
from attrs import define, field

from controller.model.acls import AclRules, Acls
from controller.node.acl_authorizer import AclAuthorizer
from simulator.store.session import SimulatedStore
from tests.kit.passing_store import PassingStore
from tests.kit.tcp_relay import tcp_relay
from tests.simulation.ensembles import MOMENT, TIMEOUT, World, on_ensemble
from transport.acls import ANY_USER, AclEntry, Operation, Pattern, PatternType, Resource, ResourceType
from transport.security.principal import Principal
from transport.security.settings import AuthorizerSettings
from transport.store import kafka_acls
from transport.store.protocol import (
    ANY_VERSION,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    SessionState,
    Set,
    Znode,
    ensure_paths,
)
from transport.store.tree import Access
from transport.store.zookeeper import open_zookeeper
from transport.wire import Caller

ALICE: Final = Caller("client", "10.0.0.1", Principal("User", "alice"))
BOB: Final = Principal("User", "bob")
ROOT: Final = Caller("client", "10.0.0.1", Principal("User", "root"))
SETTINGS: Final = AuthorizerSettings(
    is_enabled=True, super_users=frozenset({ROOT.principal}), allow_everyone_if_no_acl_found=True
)
RULES: Final = AclRules(SETTINGS.super_users, SETTINGS.allow_everyone_if_no_acl_found)

CHOICES: Final[tuple[frozenset[AclEntry], ...]] = (
    frozenset({AclEntry(ALICE.principal, True, "*", Operation.READ)}),  # noqa: FBT003
    frozenset({AclEntry(ALICE.principal, False, "*", Operation.READ)}),  # noqa: FBT003
    frozenset({AclEntry(BOB, True, "*", Operation.READ)}),  # noqa: FBT003
    frozenset({AclEntry(ANY_USER, False, "*", Operation.ALL)}),  # noqa: FBT003
)
"""The entries that a pattern may have: allowed, and denied in three ways."""

BREAKS_OF_A_RUN: Final = 50
RUNS: Final = 4
"""Breaks and runs on the simulated store: 200 breaks together."""

AUTHORIZER: Final = "authorizer"
"""The host of the authorizer."""


@define
class Patterns:
    """The patterns of a cluster, each about one topic, and the entries that each has had since they settled.

    Attributes:
        store: The session of their administrator.
        candidates: By pattern, the entries before a change and after it; None for no ACL.
    """

    store: MetadataStore
    candidates: dict[Pattern, list[frozenset[AclEntry] | None]] = field(factory=dict)

    async def create(self, count: int) -> None:
        """Write patterns of which some deny Alice, some allow her, and some allow others only."""
        await ensure_paths(self.store, kafka_acls.PERSISTENT)
        for number in range(count):
            kind = PatternType.PREFIXED if number % 3 == 0 else PatternType.LITERAL
            pattern = Pattern(kind, Resource(ResourceType.TOPIC, f"topic-{number:02}"))
            entries = CHOICES[number % len(CHOICES)]
            self.candidates[pattern] = [entries]
            await self.store.multi(
                [Create(kafka_acls.path_of(pattern), kafka_acls.encode_entries(sorted(entries, key=str)))]
            )

    async def change(self, pattern: Pattern, entries: frozenset[AclEntry] | None) -> None:
        """Give a pattern other entries, or none, and announce that as Kafka's tools do."""
        path, before = kafka_acls.path_of(pattern), self.candidates[pattern][-1]
        if entries == before:
            return
        self.candidates[pattern].append(entries)
        data = b"" if entries is None else kafka_acls.encode_entries(sorted(entries, key=str))
        write: Op = Set(path, data, ANY_VERSION)
        if before is None:
            write = Create(path, data)
        elif entries is None:
            write = Delete(path)
        await self.store.multi([write])
        await self.store.multi([_announcement(pattern)])

    def settle(self) -> None:
        """Forget the entries before the latest changes: from now on, no verdict may follow from them."""
        for entries in self.candidates.values():
            del entries[:-1]

    def wrong_verdicts(self, authorizer: AclAuthorizer) -> list[str]:
        """Return the verdicts that neither the entries before a change nor those after it give."""
        wrong = []
        for pattern, candidates in self.candidates.items():
            verdict = authorizer(ALICE, Operation.READ, pattern.resource)
            if verdict not in {_verdict(pattern, entries) for entries in candidates}:
                wrong.append(f"{pattern.resource.name}: {'allowed' if verdict else 'denied'}")
        return wrong


def _announcement(pattern: Pattern) -> Create:
    name = pattern.resource.name
    if pattern.type is PatternType.LITERAL:
        return Create(f"{kafka_acls.CHANGES}/acl_changes_", f"Topic:{name}".encode(), sequence=True)
    data = f'{{"version":1,"resourceType":"TOPIC","name":"{name}","patternType":"PREFIXED"}}'.encode()
    return Create(f"{kafka_acls.EXTENDED_CHANGES}/acl_changes_", data, sequence=True)


def _verdict(pattern: Pattern, entries: frozenset[AclEntry] | None) -> bool:
    known: Mapping[Pattern, frozenset[AclEntry] | None] = {} if entries is None else {pattern: entries}
    return RULES.allow(Acls(known), ALICE.principal, ALICE.address, Operation.READ, pattern.resource)


@define
class JudgedStore(PassingStore):
    """A store that judges all verdicts whenever its reader, the authorizer, begins to wait for it.

    An authorizer changes its mind only between two such moments, so no verdict escapes.
    """

    patterns: Patterns
    authorizer: AclAuthorizer | None = None
    wrong: set[str] = field(factory=set)

    def judge(self) -> None:
        """Note the wrong verdicts of this moment."""
        if self.authorizer is not None:
            self.wrong.update(self.patterns.wrong_verdicts(self.authorizer))

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Judge, and read."""
        self.judge()
        return await self.store.read(paths, watch=watch)

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """Judge, and list."""
        self.judge()
        return await self.store.children(paths, watch=watch)


@on_ensemble(servers=2, seeds=RUNS)
async def test_no_verdict_differs_from_those_before_and_after_while_connections_break(world: World) -> None:
    rng = random.Random(world.seed)
    world.ensemble.set_lag(2, 0.05)
    async with world.session("admin-tool") as admin, world.session(AUTHORIZER) as store, trio.open_nursery() as nursery:
        patterns = Patterns(admin)
        judged = JudgedStore(store, patterns)
        authorizer = AclAuthorizer(judged, SETTINGS)
        await patterns.create(12)
        await nursery.start(authorizer.follow)
        judged.authorizer = authorizer
        breaks = 0
        while breaks < BREAKS_OF_A_RUN:
            nursery.start_soon(_change_some, rng, patterns)
            for _ in range(rng.randint(1, 3)):
                await _break(rng, world, store)
                breaks += 1
            await _until_connected(store)
            await trio.sleep(MOMENT)
            patterns.settle()
            assert patterns.wrong_verdicts(authorizer) == []
        assert judged.wrong == set()
        nursery.cancel_scope.cancel()


async def _change_some(rng: random.Random, patterns: Patterns) -> None:
    """Change a few patterns, each at a drawn moment before or while they are read again."""
    for pattern in rng.sample(sorted(patterns.candidates, key=str), rng.randint(0, 3)):
        await trio.sleep(rng.uniform(0, 0.3))
        await patterns.change(pattern, rng.choice([*CHOICES, None]))


async def _break(rng: random.Random, world: World, store: SimulatedStore) -> None:
    """Break the connection at a drawn moment after the last one: for a moment, or until the session has expired."""
    await _until_connected(store)
    await trio.sleep(rng.choice([rng.uniform(0, 0.15), rng.uniform(0, 1)]))
    world.ensemble.disconnect(AUTHORIZER)
    await trio.sleep(2 * TIMEOUT if rng.random() < 0.1 else rng.uniform(0, 1))
    world.ensemble.reconnect(AUTHORIZER)


async def _until_connected(store: MetadataStore) -> None:
    while store.state is not SessionState.CONNECTED:
        await trio.sleep(0.01)


@on_ensemble(seeds=1)
async def test_acls_that_may_no_longer_be_listed_let_only_super_users_in(world: World) -> None:
    root = kafka_acls.ROOTS[PatternType.LITERAL] + "/Topic"
    async with world.session("admin-tool") as admin, world.session(AUTHORIZER) as store, trio.open_nursery() as nursery:
        patterns, authorizer = Patterns(admin), AclAuthorizer(store, SETTINGS)
        await patterns.create(4)
        await nursery.start(authorizer.follow)
        others = Resource(ResourceType.TOPIC, "without-acls")
        assert authorizer(ALICE, Operation.READ, others)
        world.ensemble.allow(root, Access.NONE)
        world.ensemble.disconnect(AUTHORIZER)
        world.ensemble.reconnect(AUTHORIZER)
        await trio.sleep(2 * MOMENT)
        # A change that is announced makes none of the other patterns known.
        for number, allowed in enumerate([False, False, True]):
            if number == 1:
                await patterns.change(_prefixed(patterns.candidates), CHOICES[0])
            elif number == 2:
                world.ensemble.allow(root, Access.ALL)
                await patterns.change(_prefixed(patterns.candidates), CHOICES[1])
            await trio.sleep(MOMENT)
            assert authorizer(ALICE, Operation.READ, others) is allowed
            assert authorizer(ROOT, Operation.READ, others)
        patterns.settle()
        assert patterns.wrong_verdicts(authorizer) == []
        nursery.cancel_scope.cancel()


def _prefixed(patterns: Sequence[Pattern] | Mapping[Pattern, object]) -> Pattern:
    return next(pattern for pattern in patterns if pattern.type is PatternType.PREFIXED)


async def test_no_verdict_differs_while_connections_to_zookeeper_break(zookeeper: str) -> None:
    host, _, port = zookeeper.rpartition(":")
    chroot = "/test-acl-breaks"
    async with (
        tcp_relay(int(port)) as relay,
        open_zookeeper(f"{host}:{port}{chroot}") as admin,
        open_zookeeper(f"{relay.address}{chroot}") as store,
        trio.open_nursery() as nursery,
    ):
        patterns = Patterns(admin)
        judged = JudgedStore(store, patterns)
        authorizer = AclAuthorizer(judged, SETTINGS)
        await patterns.create(12)
        await nursery.start(authorizer.follow)
        judged.authorizer = authorizer
        for number, pattern in enumerate(list(patterns.candidates)[:5]):
            relay.cut()
            await patterns.change(pattern, CHOICES[(number + 1) % 2])
            wanted = _verdict(pattern, patterns.candidates[pattern][-1])
            with trio.fail_after(20):
                while authorizer(ALICE, Operation.READ, pattern.resource) is not wanted:
                    await _round_trip(store)
        assert judged.wrong == set()
        nursery.cancel_scope.cancel()


async def _round_trip(store: MetadataStore) -> None:
    """Wait for an answer of the store, or until its connection is back."""
    try:
        await store.read([kafka_acls.CHANGES])
    except ConnectionLost:
        await trio.sleep(0.01)
