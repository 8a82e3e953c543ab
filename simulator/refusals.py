"""Nodes that answer some requests with an error, or not at all, whether or not they carry them out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field, frozen

from simulator.frames import api_name, correlation_id, is_request
from simulator.kafka import frames as kafka
from simulator.network.intercepting import InterceptingNetwork
from transport.errors import ErrorCode
from transport.network import Network, StreamHandler
from transport.passing_stream import PassingStream
from transport.wire import encode, frame
from transport.wire.envelope import ResponseEnvelope

_LENGTH_BYTES: Final = 4


@frozen
class Refusal:
    """A refusal of the requests of some apis, with an error, or with None for no answer."""

    apis: tuple[str, ...]
    error: ErrorCode | None
    is_carried_out: bool = False
    """Whether they take effect in spite of that."""

    noted: Callable[[], object] = field(default=lambda: None, eq=False)
    """Called for each."""

    def concerns(self, chunk: bytes) -> bool:
        """Return whether a frame is such a request."""
        return is_request(chunk) and api_name(chunk) in self.apis

    def answer(self, request: bytes) -> bytes | None:
        """Return the answer to a request; None for none."""
        self.noted()
        if self.error is None:
            return None
        if kafka.is_kafkas(request):
            return kafka.refusal(request, self.error)
        number = correlation_id(request)
        return frame(ResponseEnvelope(number, self.error, encode(f"{self.error.name}, as a fault")).pack())


@define
class Refusals:
    """The refusals of a node, which outlive its process."""

    current: Refusal | None = None
    has_lost_orders: bool = field(default=False, init=False)
    """Whether the running process has been sent an order that it did not carry out, and that is not repeated."""

    def at(self, request: bytes) -> Refusal | None:
        """Return the refusal of a frame that arrives, if any."""
        refusal = self.current
        if refusal is None or not refusal.concerns(request):
            return None
        if not refusal.is_carried_out and not _is_repeated(request, refusal.error):
            self.has_lost_orders = True
        return refusal


def refusing(network: Network, refusals: Refusals) -> Network:
    """Return a node's network whose server refuses requests."""

    async def handle(handler: StreamHandler, stream: trio.abc.Stream) -> None:
        await handler(_RefusingStream(stream, refusals))

    return InterceptingNetwork(network, handle)


class _RefusingStream(PassingStream):
    """The server's end of a connection. It looks at whole frames only: larger ones come in parts, and are served."""

    def __init__(self, stream: trio.abc.Stream, refusals: Refusals) -> None:
        super().__init__(stream)
        self._refusals = refusals
        self._carried_out: dict[int, tuple[Refusal, bytes]] = {}

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes that are not a refused request."""
        while True:
            data = bytes(await self._stream.receive_some(max_bytes))
            refusal = self._refusals.at(data) if _is_frame(data) else None
            if refusal is None:
                return data
            if refusal.is_carried_out:
                self._carried_out[correlation_id(data)] = refusal, data
                return data
            await self._send(refusal.answer(data))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send an answer, or what takes its place."""
        number = correlation_id(bytes(data)) if self._carried_out else 0
        refused = self._carried_out.pop(number, None)
        await self._send(bytes(data) if refused is None else refused[0].answer(refused[1]))

    async def _send(self, answer: bytes | None) -> None:
        if answer is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._stream.send_all(answer)


def _is_repeated(order: bytes, error: ErrorCode | None) -> bool:
    """Return whether the controller repeats an order that is answered with an error, or not at all.

    Brokers of both kinds are sent again what is not stale. Klamm's answer INVALID_REQUEST to late copies.
    """
    api = api_name(order)
    if error is None or api == "StopReplica":
        return True
    is_late_copy = error is ErrorCode.INVALID_REQUEST and not kafka.is_kafkas(order)
    return not is_late_copy and error not in (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH)


def _is_frame(data: bytes) -> bool:
    return len(data) > _LENGTH_BYTES and int.from_bytes(data[:_LENGTH_BYTES]) == len(data) - _LENGTH_BYTES
