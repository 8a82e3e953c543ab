"""The releases of Kafka's brokers, as far as a controller has to know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from transport.kafka.schema import Versions

_ALLOCATE_PRODUCER_IDS: Final = 67


@frozen
class Release:
    """What a connection to a broker has shown of its release."""

    needs_registration: bool
    """Whether it looks for the controller in `/brokers/ids` before it shuts down, as up to 2.8."""


def release_of(offered: Mapping[int, Versions]) -> Release:
    """Return the release of a broker that offers these versions, by the keys of apis."""
    return Release(needs_registration=_ALLOCATE_PRODUCER_IDS not in offered)
