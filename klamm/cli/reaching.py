"""Faults in the addresses given to a command, if they are certain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from controller.admin.active_controller import Address, ClusterUnreachable
from transport.network import TcpNetwork
from transport.wire import NotServed, WireError, open_connection

DOUBT_SECONDS: Final = 2.0
"""The seconds after which an address that has neither answered nor failed counts as served."""


async def require_served(addresses: Sequence[Address]) -> None:
    """Return as soon as a broker or controller answers at one of the addresses, or may still do so.

    Raises ClusterUnreachable if it is certain that none of the addresses has one, so that waiting would not help: the
    host is unknown, nothing listens, or something else does.
    """
    faults: dict[Address, str] = {}

    async def look(address: Address) -> None:
        try:
            async with open_connection(TcpNetwork(), *address, client_id="klamm", connect_timeout=DOUBT_SECONDS):
                nursery.cancel_scope.cancel()
        except NotServed as fault:
            faults[address] = str(fault)
        except WireError:
            return

    async with trio.open_nursery() as nursery:
        for address in dict.fromkeys(addresses):
            nursery.start_soon(look, address)
    if len(faults) == len(set(addresses)):
        said = "; ".join(faults[address] for address in dict.fromkeys(addresses))
        raise ClusterUnreachable(f"{said}: name brokers or controllers with --bootstrap-server")
