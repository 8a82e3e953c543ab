"""The codec writes what Kafka's own classes write, byte for byte, in every version of every message.

Versions that the newest release and 3.9 have are compared with the classes of both.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.kafka import jars
from tests.kafka.kafka_classes import KafkaClasses, kafka_classes
from tests.kafka.random_messages import VERSIONS, name_of, random_entity
from tests.kafka.releases import require_jars
from transport.kafka.codec import decode, encode
from transport.kafka.schema import Message

pytestmark = pytest.mark.real_kafka

_MESSAGES_EACH = 10


@pytest.fixture(scope="session")
def releases() -> Iterator[list[KafkaClasses]]:
    """Give the tests the classes of both releases, each in one JVM for all of them."""
    if shutil.which("javac") is None:
        pytest.skip("no JDK to compile the program with Kafka's classes: apt-get install openjdk-17-jdk-headless")
    for release in (jars.NEWEST, jars.RELEASE):
        require_jars(release)
    with ExitStack() as stack:
        yield [stack.enter_context(kafka_classes(release)) for release in (jars.NEWEST, jars.RELEASE)]


@pytest.mark.parametrize(("kind", "version"), VERSIONS, ids=name_of)
def test_bytes_are_those_of_kafkas_classes(releases: list[KafkaClasses], kind: type[Message], version: int) -> None:
    rng = random.Random(f"{kind.__name__} {version}")
    with_this_version = [release for release in releases if version in release.versions_of(kind)]
    assert with_this_version, "neither release has this version"
    for _ in range(_MESSAGES_EACH):
        message = random_entity(rng, kind, version)
        body = encode(message, version)
        assert decode(kind, version, body) == message
        for release in with_this_version:
            assert release.write(message, version) == body, release.release


def test_no_version_of_either_release_is_missing(releases: list[KafkaClasses]) -> None:
    known = set(VERSIONS)
    for kind in {kind for kind, _ in VERSIONS}:
        for release in releases:
            versions = release.versions_of(kind)
            assert {(kind, version) for version in range(versions.first, versions.last + 1)} <= known
