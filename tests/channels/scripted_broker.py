"""The broker's end of a channel: a broker that answers on the wire by a script, and ways to reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

import trio
import trio.testing
from attrs import define, field

from transport.errors import ErrorCode
from transport.messages import (
    APIS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.network import StreamHandler, TcpNetwork
from transport.wire import decode, encode, frame
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frame_stream import FrameStream

OFFERED: Final = ApiVersionsResponse(tuple(ApiVersion(api.key, api.min_version, api.max_version) for api in APIS))
REQUESTS: Final = {api.key: api.request for api in APIS}


class Act(Enum):
    """A broker's reaction to a request; it obeys the request first, unless it loses it."""

    ANSWER = auto()
    REFUSE = auto()
    LOSE_THE_REQUEST = auto()
    NEVER_ANSWER = auto()
    ANSWER_LATE = auto()
    ANSWER_GARBAGE = auto()
    ANSWER_ANOTHER_REQUEST = auto()
    ANSWER_TWICE = auto()
    CLOSE_BEFORE_THE_ANSWER = auto()
    CLOSE_WITHIN_THE_ANSWER = auto()


@define
class ScriptedBroker:
    """A broker that treats each request as `script` says, in turn, and answers when there is no more of it."""

    script: Sequence[Act] = ()
    gates: dict[int, trio.Event] = field(factory=dict)
    """Events to wait for before acting, by the number of the request."""

    obey: Callable[[Request[object]], None] = lambda _: None
    received: list[Request[object]] = field(factory=list)
    connections: int = 0
    open_connections: int = 0
    _news: trio.Condition = field(factory=trio.Condition)

    def act(self, number: int) -> Act:
        """Return what it does with a request, by the number of it."""
        return self.script[number] if number < len(self.script) else Act.ANSWER

    async def has_received(self, count: int) -> None:
        """Wait until so many requests have come."""
        await self._until(lambda: len(self.received) >= count)

    async def is_left(self) -> None:
        """Wait until no connection is open."""
        await self._until(lambda: not self.open_connections)

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection."""
        self.connections += 1
        self.open_connections += 1
        frames = FrameStream(stream)
        async with stream:
            try:
                while (payload := await frames.receive()) is not None:
                    await self._take(frames, RequestEnvelope.unpack(payload))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        self.open_connections -= 1
        await self._tell_news()

    async def _take(self, frames: FrameStream, envelope: RequestEnvelope) -> None:
        request = decode(REQUESTS[envelope.api_key], envelope.body)
        if isinstance(request, ApiVersionsRequest):
            await frames.send(_answer(envelope, OFFERED))
            return
        number = len(self.received)
        self.received.append(request)
        await self._tell_news()
        if number in self.gates:
            await self.gates[number].wait()
        act = self.act(number)
        if act is not Act.LOSE_THE_REQUEST:
            self.obey(request)
        await self._act(act, frames, envelope, _answer(envelope, response_to(request)))

    async def _act(self, act: Act, frames: FrameStream, envelope: RequestEnvelope, answer: bytes) -> None:
        match act:
            case Act.ANSWER:
                await frames.send(answer)
            case Act.REFUSE:
                sentence = encode("The epoch is stale.")
                refusal = ResponseEnvelope(envelope.correlation_id, ErrorCode.STALE_BROKER_EPOCH, sentence)
                await frames.send(frame(refusal.pack()))
            case Act.NEVER_ANSWER:
                assert await frames.receive() is None, "another request came before the answer"
            case Act.ANSWER_LATE:
                assert await frames.receive() is None, "another request came before the answer"
                await frames.send(answer)
            case Act.ANSWER_GARBAGE:
                await frames.send(frame(b"\xc1 and so on"))
            case Act.ANSWER_ANOTHER_REQUEST:
                await frames.send(frame(ResponseEnvelope(envelope.correlation_id + 1, 0, b"\x91\x90").pack()))
            case Act.ANSWER_TWICE:
                await frames.send(answer + answer)
            case Act.LOSE_THE_REQUEST | Act.CLOSE_BEFORE_THE_ANSWER:
                await frames.close()
            case Act.CLOSE_WITHIN_THE_ANSWER:
                await frames.send(answer[:-1])
                await frames.close()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._news:
            while not condition():
                await self._news.wait()

    async def _tell_news(self) -> None:
        async with self._news:
            self._news.notify_all()


async def listen(nursery: trio.Nursery, broker: ScriptedBroker) -> int:
    """Let a broker listen on a loopback socket, and return its port."""
    port: int = await nursery.start(TcpNetwork().serve, broker.handle, "127.0.0.1", 0)
    return port


def response_to(request: Request[object]) -> object:
    """Return the response of a broker with which all is well."""
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(())
        case UpdateMetadataRequest():
            return UpdateMetadataResponse()
        case StopReplicaRequest():
            return StopReplicaResponse(())
    raise AssertionError(request)


def _answer(envelope: RequestEnvelope, response: object) -> bytes:
    return frame(ResponseEnvelope(envelope.correlation_id, 0, encode(response)).pack())


@define
class MemoryNetwork:
    """A network of streams in memory, on which a virtual clock may run. Who is not in `brokers` refuses to connect."""

    nursery: trio.Nursery
    brokers: dict[int, StreamHandler] = field(factory=dict)
    """By port."""

    attempts: list[float] = field(factory=list)
    """The times of attempts to connect."""

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:  # noqa: ARG002
        """Connect to the broker at `port`."""
        self.attempts.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if port not in self.brokers:
            raise ConnectionRefusedError(f"nobody listens on {host}:{port}")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.brokers[port], theirs)
        return ours

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Brokers here are put into `brokers`."""
        raise NotImplementedError
