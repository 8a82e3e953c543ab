"""Ports for processes that start later, or again: free, and out of the way of outgoing connections."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Final

from transport.zookeeper_server import DevelopmentServerError, free_port

PORTS: Final = range(20_000, 30_000)
"""Below those that the kernel gives to outgoing connections, which could take the port of a process that is away."""


def free_ports(count: int) -> list[int]:
    """Return several different ports of 127.0.0.1 that are free."""
    found: list[int] = []
    # Drawn by chance: two test runs at a time have to find different ones.
    for port in random.Random().sample(PORTS, len(PORTS)):
        with suppress(DevelopmentServerError):
            found.append(free_port(port))
        if len(found) == count:
            break
    return found
