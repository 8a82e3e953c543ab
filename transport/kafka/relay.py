"""Requests of clients that a controller does not answer itself: a broker does, to whom they are passed on as they are.

Clients that share a listener with the brokers are told of the controller as a node, and take it for one more broker:
they ask it what any broker can answer, such as for coordinators. Each of their connections is continued by one to a
broker, in the same order. What is about a leader's partitions is never asked of the controller.

A request that names the controller itself, such as for the settings of a broker of its id, is not passed on: the one in
`own` answers it.

Behind TLS or SASL a request is not passed on, as the client would act as the controller: its connection ends, and it
asks another node. If the controller offered less than a broker, many clients would give up instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import define, field, frozen

from transport.addresses import address_text
from transport.kafka import messages as kafka
from transport.kafka.schema import Message, Versions
from transport.network import Network
from transport.wire.errors import ConnectionBroken, FrameError
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

ANSWER_SECONDS: Final = 60.0
"""The limit of a broker's answer. Clients wait for 30 to 60 s by default."""

_PRODUCE: Final = 0
"""Without acks it has no answer."""

_OF_CONTROLLERS: Final = frozenset({19, 20, 37, 43, 45, 46, 51, 57})
"""CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments,
AlterUserScramCredentials and UpdateFeatures, which brokers without the office do not answer either."""

_OF_CONNECTIONS: Final = (kafka.ApiVersionsRequest, kafka.SaslHandshakeRequest, kafka.SaslAuthenticateRequest)
_ORDERS: Final = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)
_KEPT: Final = _OF_CONTROLLERS | {_PRODUCE} | {one.api_key for one in (*_OF_CONNECTIONS, *_ORDERS)}


@frozen
class Upstream:
    """A broker to which requests can be passed on, and the versions that it offers by the keys of apis."""

    host: str
    port: int
    offered: Mapping[int, Versions]


class NotOurs(Exception):
    """A broker is to answer a request: it does not name the controller, or names a topic that the broker may create."""


Choose = Callable[[], Upstream | None]
"""Returns a broker for another connection, None if there is none."""


@define
class Relay:
    """The continuation of one connection. It connects to the broker with the first request that is passed on."""

    network: Network | None
    """Where the broker is; None if nothing is to be passed on."""

    upstream: Upstream
    own: Mapping[type[Message], Callable[[Any], Awaitable[Message]]] = field(factory=dict)
    """The answers to requests that name the controller; each raises NotOurs for a request that does not."""

    _frames: FrameStream | None = field(default=None, init=False)

    def offers(self) -> dict[int, Versions]:
        """Return the versions in which requests are passed on."""
        return {key: versions for key, versions in self.upstream.offered.items() if key not in _KEPT}

    def takes(self, key: int, version: int) -> bool:
        """Return whether a request is passed on."""
        return key not in _KEPT and version in self.upstream.offered.get(key, ())

    def can_ask(self, key: int, version: int) -> bool:
        """Return whether the broker may answer a request."""
        return self.network is not None and self.takes(key, version)

    async def ask(self, payload: bytes) -> bytes:
        """Return the broker's answer to a request. Raises ConnectionBroken if there is none."""
        if self.network is None:
            raise ConnectionBroken("behind TLS or SASL nothing is passed on")
        where = address_text(self.upstream.host, self.upstream.port)
        with trio.move_on_after(ANSWER_SECONDS):
            try:
                answer = await self._ask(self.network, payload)
            except (OSError, trio.BrokenResourceError, FrameError) as error:
                raise ConnectionBroken(f"the connection to {where} broke: {error}") from error
            if answer is None:
                raise ConnectionBroken(f"{where} closed the connection")
            return answer
        raise ConnectionBroken(f"{where} did not answer within {ANSWER_SECONDS:g} s")

    async def close(self) -> None:
        """Close the connection to the broker."""
        if self._frames is not None:
            await self._frames.close()

    async def _ask(self, network: Network, payload: bytes) -> bytes | None:
        if self._frames is None:
            self._frames = FrameStream(await network.connect(self.upstream.host, self.upstream.port))
        await self._frames.send(frame(payload))
        return await self._frames.receive()
