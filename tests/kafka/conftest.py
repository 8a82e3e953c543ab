"""The jars of Apache Kafka, without which the tests on real brokers are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka import jars


@pytest.fixture
def kafka_jars() -> Path:
    """Give the test the folder of a release's jars; tasks of a test lose the reason of a skip, so it is done here."""
    found = jars.fetched(jars.RELEASE)
    if found is None:
        pytest.skip(f"no jars of Kafka to test on: python -m tests.kafka.jars {jars.RELEASE}")
    return found
