"""Free ports for processes that start later, or restart, outside the range of outgoing connections."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Final

from transport.zookeeper_server import DevelopmentServerError, free_port

PORTS: Final = range(20_000, 30_000)
"""Below the kernel's range for outgoing connections, which could take the port of a stopped process."""


def lasting_port() -> int:
    """Return a free port that stays free while its process is stopped."""
    [port] = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return several different ports of 127.0.0.1 that are free."""
    found: list[int] = []
    # Drawn at random: concurrent test runs have to find different ports.
    for port in random.Random().sample(PORTS, len(PORTS)):
        with suppress(DevelopmentServerError):
            found.append(free_port(port))
        if len(found) == count:
            break
    return found
