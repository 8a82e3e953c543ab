"""The listener of a broker of Kafka's, which also answers the reference broker's own requests.

Controllers speak Kafka's protocol there. Producers and other brokers speak ours: the data of partitions are not what is
simulated. The first frame of a connection says which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

import trio
from attrs import define, field

from simulator.kafka import frames
from simulator.kafka.late_orders import ORDERS, Latest
from simulator.kafka.releases import Release
from simulator.kafka.requests import Handler
from simulator.network.intercepting import InterceptingNetwork
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.header import pack_response, read_api, unpack_request
from transport.kafka.messages import ApiVersionsRequest
from transport.kafka.schema import Message
from transport.kafka.server import pack_api_versions
from transport.network import Network, StreamHandler
from transport.passing_stream import PassingStream
from transport.wire.errors import CodecError, FrameError
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame


@define(eq=False)
class KafkaServer:
    """Answers what controllers send, in the versions of a release.

    A request of another version, or one that cannot be read, ends its connection. So does an order that is late.
    """

    release: Release
    handlers: Mapping[type[Message], Handler]
    _connections: Iterator[int] = field(factory=count, init=False)
    _latest: Latest[str | None] = field(factory=Latest, init=False)
    """The newest connections with orders, by the client ids of controllers."""

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer the requests of one connection, whose first request has arrived."""
        received, number = FrameStream(stream), next(self._connections)
        try:
            while (payload := await received.receive()) is not None:
                answer = await self._answer(number, payload)
                if answer is None:
                    break
                await received.send(frame(answer))
        except (CodecError, FrameError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the connection ends
        finally:
            await received.close()

    async def _answer(self, connection: int, payload: bytes) -> bytes | None:
        key, version = read_api(payload)
        api = KAFKA_APIS.get(key)
        if key == ApiVersionsRequest.api_key:
            offered = {kind.api_key: versions for kind, versions in self.release.offered.items()}
            return pack_api_versions(offered, payload, version)
        handler = None if api is None else self.handlers.get(api.request)
        if api is None or handler is None or version not in self.release.offered[api.request]:
            return None
        header, body = unpack_request(api.request, payload)
        if api.request in ORDERS and not self._latest.admit(header.client_id, connection):
            return None
        response = await handler(decode(api.request, version, body), version)
        return pack_response(api.response, version, header.correlation_id, encode(response, version))


def of_two_protocols(network: Network, kafkas: StreamHandler) -> Network:
    """Return a network whose servers answer connections of both protocols, those of Kafka's by a handler of theirs."""

    async def handle(ours: StreamHandler, stream: trio.abc.Stream) -> None:
        try:
            first = bytes(await stream.receive_some())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            first = b""
        if not first:
            await stream.aclose()
            return
        handler = kafkas if frames.is_kafkas(first) else ours
        await handler(_Begun(stream, first))

    return InterceptingNetwork(network, handle)


class _Begun(PassingStream):
    """A stream of which the first bytes have been received."""

    def __init__(self, stream: trio.abc.Stream, first: bytes) -> None:
        super().__init__(stream)
        self._first = first

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes."""
        if not self._first:
            return bytes(await self._stream.receive_some(max_bytes))
        await trio.lowlevel.checkpoint()
        taken, self._first = self._first[:max_bytes], self._first[len(self._first[:max_bytes]) :]
        return taken
