"""The kinds of clusters of real brokers that tests run on.

Their names are those of Kafka's releases. `2.8.2+3.9.1-ibp-2.8` stands for brokers of both in turn, whose
inter.broker.protocol.version is 2.8 instead of that of their release.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, islice
from typing import Final

import pytest
from attrs import frozen

from tests.kafka import jars

OLDER: Final = ("3.3.2", "2.8.2", "2.8.2-ibp-2.6", "2.7.2", "2.4.1", "2.8.2+3.9.1-ibp-2.8")
RELEASES: Final = [jars.RELEASE, *(pytest.param(name, marks=pytest.mark.soak) for name in OLDER)]
"""The parameters of tests that run on each kind of cluster; all but the first are for `make soak`."""


@frozen
class Brokers:
    """The brokers of one kind of cluster."""

    releases: tuple[str, ...]
    protocol: str

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that this kind needs."""
        return {"inter.broker.protocol.version": self.protocol} if self.protocol else {}

    def first(self, count: int) -> list[str]:
        """Return the releases of a number of brokers."""
        return list(islice(cycle(self.releases), count))


def brokers_of(name: str) -> Brokers:
    """Return what the name of a kind of cluster stands for."""
    releases, _, protocol = name.partition("-ibp-")
    return Brokers(tuple(releases.split("+")), protocol)


def require_jars(name: str) -> None:
    """Skip the test unless there are the jars of all releases of a kind of cluster."""
    missing = [release for release in brokers_of(name).releases if jars.fetched(release) is None]
    if missing:
        pytest.skip(f"no jars of Kafka to test on: python -m tests.kafka.jars {' '.join(missing)}")
