"""Small, realistic bugs to plant in the product, one at a time, which random runs must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pytest

from tests.simulation.planted import brokers, channels, classics, damage, elections, isrs, moves, node, topics

Plant = Callable[[pytest.MonkeyPatch], None]

AREAS: Final[Mapping[str, tuple[Plant, ...]]] = {
    "classics": classics.BUGS,
    "elections": elections.BUGS,
    "moves": moves.BUGS,
    "topics": topics.BUGS,
    "brokers": brokers.BUGS,
    "ISRs": isrs.BUGS,
    "channels": channels.BUGS,
    "node": node.BUGS,
    "damage and sizes": damage.BUGS,
}

BUGS: Final[Mapping[str, Plant]] = {plant.__name__: plant for plants in AREAS.values() for plant in plants}

AREA_OF: Final[Mapping[str, str]] = {plant.__name__: area for area, plants in AREAS.items() for plant in plants}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a bug for the duration of the block."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        yield
