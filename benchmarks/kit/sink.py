"""Brokers that accept every request and do nothing."""

from __future__ import annotations

from collections import deque
from typing import Any

import trio

from benchmarks.kit.controllership import Unreachable
from transport.messages import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Message,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.wire import encode
from transport.wire.apis import OURS
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frames import FrameDecoder, frame


def _answers() -> dict[int, bytes]:
    offers = tuple(ApiVersion(api.key, api.min_version, api.max_version) for api in OURS.by_key.values())
    responses: dict[type[Request[Any]], Message] = {
        ApiVersionsRequest: ApiVersionsResponse(offers),
        LeaderAndIsrRequest: LeaderAndIsrResponse(()),
        StopReplicaRequest: StopReplicaResponse(()),
        UpdateMetadataRequest: UpdateMetadataResponse(),
    }
    return {OURS.by_request[request].key: encode(response) for request, response in responses.items()}


class Gate:
    """A gate for answers, initially open."""

    def __init__(self) -> None:
        self.opened = trio.Event()
        self.open()

    def open(self) -> None:
        """Let answers through."""
        self.opened.set()

    def close(self) -> None:
        """Hold answers back."""
        self.opened = trio.Event()


class SinkStream(trio.abc.Stream):
    """Our end of a connection to a broker that answers each request without reading it."""

    def __init__(self, answering: Gate) -> None:
        self._answering = answering
        self._frames = FrameDecoder()
        self._answers = _answers()
        self._replies: deque[bytes] = deque()
        self._has_replied = trio.Event()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Answer a request."""
        await trio.lowlevel.checkpoint()
        self._frames.feed(bytes(data))
        while (payload := self._frames.next_frame()) is not None:
            request = RequestEnvelope.unpack(payload)
            body = self._answers[request.api_key]
            self._replies.append(frame(ResponseEnvelope(request.correlation_id, 0, body).pack()))
            self._has_replied.set()

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002
        """Return an answer."""
        while not self._replies:
            self._has_replied = trio.Event()
            await self._has_replied.wait()
        await self._answering.opened.wait()
        return self._replies.popleft()

    async def aclose(self) -> None:
        """Close the connection."""
        await trio.lowlevel.checkpoint()


class Sinks(Unreachable):
    """A network in which every address is such a broker. They answer only while the gate is open."""

    def __init__(self) -> None:
        self.answering = Gate()

    async def connect(self, host: str, port: int) -> trio.abc.Stream:  # noqa: ARG002
        """Connect at once; see `Network.connect`."""
        await trio.lowlevel.checkpoint()
        return SinkStream(self.answering)
