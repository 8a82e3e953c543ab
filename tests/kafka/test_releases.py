"""The release of a broker, from the versions that it offers and from its settings."""

from __future__ import annotations

import pytest

from transport.kafka.releases import (
    WITH_TOPIC_IDS,
    WITHOUT_STORED_ISRS,
    Protocol,
    Release,
    parse_protocol,
    release_of,
)
from transport.kafka.schema import Versions

ALTER_PARTITION, ALLOCATE_PRODUCER_IDS = 56, 67


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.7-IV1", Protocol(2, 7, 1)),
        ("3.9-IV0", Protocol(3, 9, 0)),
        ("0.10.2-IV0", Protocol(0, 10, 0)),
        (" 2.6 ", Protocol(2, 6)),
        ("2.8.1", Protocol(2, 8)),
        ("3", None),
        ("", None),
        ("new", None),
        ("2.8-", None),
    ],
)
def test_a_protocol_is_a_release_and_a_change(text: str, expected: Protocol | None) -> None:
    assert parse_protocol(text) == expected


@pytest.mark.parametrize(
    ("text", "stores_isrs", "has_ids"),
    [
        ("2.6", True, False),
        ("2.7-IV1", True, False),
        ("2.7-IV2", False, False),
        ("2.7", False, False),
        ("2.8-IV0", False, False),
        ("2.8-IV1", False, True),
        ("2.8", False, True),
        ("3.0-IV0", False, True),
    ],
)
def test_a_release_without_a_change_means_its_last_one(text: str, stores_isrs: bool, has_ids: bool) -> None:
    protocol = parse_protocol(text)
    assert protocol is not None
    assert (protocol < WITHOUT_STORED_ISRS, protocol >= WITH_TOPIC_IDS) == (stores_isrs, has_ids)


@pytest.mark.parametrize(
    ("offered", "needs_registration", "needs_epochs"),
    [
        ({}, True, False),
        ({ALTER_PARTITION: 0}, True, True),
        ({ALTER_PARTITION: 0, ALLOCATE_PRODUCER_IDS: 0}, False, True),
        ({ALTER_PARTITION: 1, ALLOCATE_PRODUCER_IDS: 0}, False, False),
    ],
    ids=["2.6", "2.7 and 2.8", "3.0 and 3.1", "3.2 and later"],
)
def test_a_release_is_told_by_what_it_offers(
    offered: dict[int, int], needs_registration: bool, needs_epochs: bool
) -> None:
    versions = {key: Versions(0, last) for key, last in offered.items()}
    expected = Release(needs_registration=needs_registration, needs_epochs=needs_epochs, protocol=Protocol(2, 6))
    assert release_of(versions, {"inter.broker.protocol.version": "2.6"}) == expected
