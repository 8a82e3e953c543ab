"""Which protocol the servers at some addresses speak: ours, or Apache Kafka's.

A server is first asked for its versions in Kafka's protocol: one of ours closes such a connection without a word, while
a broker of Kafka's would log an error for a question in ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Final

import trio

from controller.admin.active_controller import ClusterUnreachable
from transport.addresses import Address, address_text
from transport.kafka.probe import KafkaProbe
from transport.network import Network
from transport.wire import ConnectionBroken, NotServed, Untrusted, WireError, open_connection
from transport.wire.client import connect
from transport.wire.secured import beneath

DOUBT_SECONDS: Final = 2.0
"""The seconds after which an address that has neither answered nor failed counts as served."""

_NAME_OTHERS: Final = "name brokers or controllers with --bootstrap-server"


class Protocol(Enum):
    """The protocols of servers."""

    KLAMM = "Klamm"
    KAFKA = "Kafka"


async def recognize(addresses: Sequence[Address], network: Network) -> Protocol:
    """Return the protocol of the first server that answers at one of the addresses, ours if one may still do so.

    Raises ClusterUnreachable if it is certain that none of the addresses has one, so that waiting would not help: the
    host is unknown, nothing listens, or something else does.
    """
    faults: dict[Address, NotServed] = {}
    found = [Protocol.KLAMM]

    async def look(address: Address) -> None:
        try:
            spoken = await _protocol_of(address, network)
        except NotServed as fault:
            faults[address] = fault
        except WireError:
            return
        else:
            found.append(spoken)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for address in dict.fromkeys(addresses):
            nursery.start_soon(look, address)
    if len(faults) == len(set(addresses)):
        said = "; ".join(str(faults[address]) for address in dict.fromkeys(addresses))
        is_trust = any(isinstance(fault, Untrusted) for fault in faults.values())
        cure = "name the security of the cluster with --command-config" if is_trust else _NAME_OTHERS
        raise ClusterUnreachable(f"{said}: {cure}")
    return found[-1]


async def _protocol_of(address: Address, network: Network) -> Protocol:
    """Return the protocol of one server. Raises NotServed if it speaks neither; WireError if that is not certain."""
    host, port = address
    below, _, _ = beneath(network)
    make = partial(KafkaProbe, peer=address_text(host, port))
    try:
        connection = await connect(below, host, port, make, DOUBT_SECONDS)
    except NotServed as fault:
        if not isinstance(fault.__cause__, ConnectionBroken):
            raise
    else:
        await connection.close()
        return Protocol.KAFKA
    async with open_connection(network, host, port, client_id="klamm", connect_timeout=DOUBT_SECONDS):
        return Protocol.KLAMM
