"""A network with TLS: the streams of another network, encrypted, with the names that certificates prove."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import trio
from attrs import field, frozen

from transport.log import get_logger
from transport.network import Network, StreamHandler
from transport.security.distinguished_name import subject_of
from transport.security.errors import AuthenticationFailed, SecurityError
from transport.security.peers import IdentifiedStream, Peer, peer_of
from transport.security.principal import ANONYMOUS, BY_DEFAULT, MappingRule, Principal, mapped_principal
from transport.security.tls import fault_of

HANDSHAKE_SECONDS: Final = 10
"""The time that a server gives a client for the handshake."""

ALERT_SECONDS: Final = 1
"""The time for which an end waits for the other one to take note of a failure."""

_ENDED: Final = "it ended the connection in the middle of a TLS handshake"

_log = get_logger(__name__)


class TlsStream(IdentifiedStream):
    """A stream with TLS. What TLS finds wrong is told in words."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Receive bytes."""
        try:
            return await super().receive_some(max_bytes)
        except trio.BrokenResourceError as error:
            raise _told(error) from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        try:
            await super().send_all(data)
        except trio.BrokenResourceError as error:
            raise _told(error) from error


class _Handshake:
    """A handshake whose failure the other end is told: trio's SSLStream keeps the alert to itself."""

    def __init__(self, stream: trio.abc.Stream, context: ssl.SSLContext, host: str | None = None) -> None:
        """Begin as a client of a host, or as a server."""
        self._stream = stream
        self._context = context
        self._outgoing: ssl.MemoryBIO | None = None
        self.secured: trio.SSLStream[trio.abc.Stream] = trio.SSLStream(
            stream,
            cast("ssl.SSLContext", self),
            server_hostname=host,
            server_side=host is None,
            https_compatible=True,
        )

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: Any) -> ssl.SSLObject:
        """Take the place of the context, which SSLStream asks for its end."""
        self._outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, **options)

    async def run(self) -> None:
        """Shake hands. Raises BrokenResourceError with the reason as its cause, and closes the stream then."""
        try:
            await self.secured.do_handshake()
        except trio.BrokenResourceError:
            await self._send_alert()
            raise

    async def _send_alert(self) -> None:
        alert = self._outgoing.read() if self._outgoing is not None else b""
        with trio.move_on_after(ALERT_SECONDS), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if alert:
                await self._stream.send_all(alert)
                # A stream that is closed with bytes unread is reset, and the alert may be lost.
                if isinstance(self._stream, trio.abc.HalfCloseableStream):
                    await self._stream.send_eof()
                while await self._stream.receive_some():
                    pass


@frozen
class TlsNetwork:
    """TLS over another network. Each direction needs its context; without one, it is as in the other network."""

    network: Network
    client: ssl.SSLContext | None = None
    server: ssl.SSLContext | None = None
    rules: Sequence[MappingRule] = field(default=BY_DEFAULT)
    """The rules by which a client's certificate names a principal."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of a host, as the other network finds them."""
        return await self.network.addresses(host)

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect, with a handshake. Raises OSError as the other network does, and AuthenticationFailed."""
        stream = await self.network.connect(host, port, address)
        if self.client is None:
            return stream
        handshake = _Handshake(stream, self.client, host)
        try:
            await handshake.run()
        except BaseException as error:
            await trio.aclose_forcefully(handshake.secured)
            if isinstance(error, trio.BrokenResourceError):
                raise AuthenticationFailed(fault_of(error, host) or _ENDED) from error
            raise
        return TlsStream(handshake.secured, peer_of(stream))

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections and handle those whose handshake succeeds; see `Network.serve`."""
        if self.server is not None:
            handler = partial(self._handle, self.server, handler)
        await self.network.serve(handler, host, port, task_status=task_status)

    async def _handle(self, context: ssl.SSLContext, handler: StreamHandler, stream: trio.abc.Stream) -> None:
        peer = peer_of(stream)
        handshake = _Handshake(stream, context)
        try:
            peer = Peer(peer.address, await self._principal(handshake))
        except SecurityError as error:
            _log.warning("connection closed: no TLS with the client", address=peer.address, reason=str(error))
            await trio.aclose_forcefully(handshake.secured)
            return
        await handler(TlsStream(handshake.secured, peer))

    async def _principal(self, handshake: _Handshake) -> Principal:
        """Shake hands, and return the principal that the client's certificate names. Raises AuthenticationFailed."""
        try:
            with trio.fail_after(HANDSHAKE_SECONDS):
                await handshake.run()
        except trio.TooSlowError:
            raise AuthenticationFailed(f"the handshake took more than {HANDSHAKE_SECONDS} s") from None
        except trio.BrokenResourceError as error:
            raise AuthenticationFailed(fault_of(error) or _ENDED) from None
        certificate: bytes | None = handshake.secured.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        return mapped_principal(self.rules, subject_of(certificate))


def _told(error: trio.BrokenResourceError) -> trio.BrokenResourceError:
    return trio.BrokenResourceError(fault_of(error) or str(error))
