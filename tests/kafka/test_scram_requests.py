"""Kafka's clients change users of SCRAM through the controller, and are refused in Kafka's words."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest

from tests.kafka.test_kafka_node import KAFKA, asking
from tests.kit.service import Controllers
from transport.acls import Operation
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion as Deletion,
    ScramCredentialUpsertion as Upsertion,
)
from transport.security import scram
from transport.store import paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.scram_users import ScramUsers

SHA_256, SHA_512 = 1, 2
ITERATIONS = 4096
SALT = b"salt"


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test a session of its own."""
    async with memory.session() as session:
        yield session


def new(user: str, mechanism: int = SHA_256, iterations: int = ITERATIONS, password: bytes = b"secret") -> Upsertion:
    """Return a new credential as a client sends it, who has salted the password."""
    salted = hashlib.pbkdf2_hmac("sha256" if mechanism == SHA_256 else "sha512", password, SALT, ITERATIONS)
    return Upsertion(user, mechanism, iterations, SALT, salted)


async def alter(client: KafkaConnection, *changes: Deletion | Upsertion) -> dict[str, tuple[int, str | None]]:
    request = kafka.AlterUserScramCredentialsRequest(
        tuple(one for one in changes if isinstance(one, Deletion)),
        tuple(one for one in changes if isinstance(one, Upsertion)),
    )
    answer = await client.send(request, kafka.AlterUserScramCredentialsResponse, 0)
    return {row.user: (row.error_code, row.error_message) for row in answer.results}


async def test_users_are_created_changed_and_removed(controllers: Controllers, store: MemoryStore) -> None:
    service = await controllers.start_active(**KAFKA)
    users = ScramUsers(store)
    async with asking(service) as client:
        assert await alter(client, new("eve smith"), new("eve smith", SHA_512)) == {"eve smith": (0, "")}
        for mechanism, hash_name in scram.MECHANISMS.items():
            known = await users.credential_of(mechanism, "eve smith")
            assert known == scram.credential(hash_name, "secret", SALT, ITERATIONS)
        [notice] = await store.children([paths.CONFIG_CHANGES])
        assert notice is not None
        [znode] = await store.read([f"{paths.CONFIG_CHANGES}/{notice[0]}"])
        assert znode is not None
        assert b'"entity_path":"users/eve%20smith"' in znode.data
        assert await alter(client, Deletion("eve smith", SHA_256)) == {"eve smith": (0, "")}
        assert await users.credential_of("SCRAM-SHA-256", "eve smith") is None
        assert await users.credential_of("SCRAM-SHA-512", "eve smith") is not None
        absent = 91, "Attempt to delete a user credential that does not exist"
        # The new one is not written either.
        assert await alter(client, Deletion("eve smith", SHA_256), new("eve smith", SHA_512, password=b"x")) == {
            "eve smith": absent
        }
        known = await users.credential_of("SCRAM-SHA-512", "eve smith")
        assert known == scram.credential("sha512", "secret", SALT, ITERATIONS)


async def test_changes_that_kafka_refuses(controllers: Controllers, store: MemoryStore) -> None:
    service = await controllers.start_active(**KAFKA)
    async with asking(service) as client:
        told = await alter(
            client,
            new(""),
            new("b1", 7),
            new("b2", iterations=10),
            new("b3", iterations=16_385),
            new(".."),
            Deletion("nobody", SHA_256),
            Deletion("b5", 9),
            new("mixed", iterations=10),
            new("mixed", SHA_512),
            new("twice"),
            Deletion("twice", SHA_256),
            new("good"),
        )
    assert told == {
        "": (93, "Username must not be empty"),
        "..": (93, "Username must not be '.' or '..', or longer than 1000 characters"),
        "b1": (33, "Unknown SCRAM mechanism"),
        "b2": (93, "Too few iterations"),
        "b3": (93, "Too many iterations"),
        "b5": (33, "Unknown SCRAM mechanism"),
        "mixed": (93, "Too few iterations"),
        "nobody": (91, "Attempt to delete a user credential that does not exist"),
        "twice": (92, "A user credential cannot be altered twice in the same request"),
        "good": (0, ""),
    }
    assert await store.children(["/config/users"]) == [["good"]]


async def test_who_may_not_alter_the_cluster_changes_no_user(controllers: Controllers) -> None:
    service = await controllers.start_active(**KAFKA, authorizer=lambda _, operation, __: operation != Operation.ALTER)
    async with asking(service) as client:
        assert await alter(client, new("eve")) == {"eve": (31, None)}


async def test_a_standby_changes_no_user(controllers: Controllers) -> None:
    await controllers.start_active(**KAFKA)
    standby = await controllers.start(1002, **KAFKA)
    async with asking(standby) as client:
        assert await alter(client, new("eve")) == {"eve": (41, None)}
