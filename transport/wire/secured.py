"""A network with the security that settings ask for: TLS, and on our own wire a login by SASL.

Who connects through it or listens on it needs to know nothing of that. What speaks Kafka's protocol, which has its own
messages for a login, uses what is `beneath`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import trio
from attrs import frozen

from transport.log import get_logger
from transport.metadata import SecurityProtocol
from transport.network import Network, StreamHandler
from transport.security.errors import InvalidSecurity, SecurityError
from transport.security.network import TlsNetwork
from transport.security.peers import IdentifiedStream, Peer, peer_of
from transport.security.sasl import CredentialOf, SaslLogin, SaslServer, nobody
from transport.security.settings import Security
from transport.wire.login import admit, log_in

_log = get_logger(__name__)


@frozen
class SecuredNetwork:
    """A network whose clients log in, and whose servers let nobody else in."""

    network: Network
    login: SaslLogin | None = None
    sasl: SaslServer | None = None

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of a host, as the other network finds them."""
        return await self.network.addresses(host)

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect and log in. Raises OSError if there is no connection, SecurityError if there is no trust."""
        stream = await self.network.connect(host, port, address)
        if self.login is None:
            return stream
        try:
            await log_in(stream, self.login)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections and handle those of clients that log in; see `Network.serve`."""
        if self.sasl is not None:
            handler = partial(_handle, self.sasl, handler)
        await self.network.serve(handler, host, port, task_status=task_status)


def secured(
    network: Network, security: Security, credential_of: CredentialOf = nobody, *, serves: bool = True
) -> Network:
    """Return a network with security over another one. Raises InvalidSecurity if a key store cannot be used.

    What only connects (`serves` is false) needs no key store.
    """
    if security.has_tls:
        client = security.tls.client_context()
        server = security.tls.server_context() if serves else None
        network = TlsNetwork(network, client, server, security.rules)
    if security.has_sasl and serves and not security.mechanisms:
        raise InvalidSecurity("OAUTHBEARER is for logins elsewhere: set sasl.enabled.mechanisms for the clients")
    if security.has_sasl:
        return SecuredNetwork(network, security.login, security.sasl_server(credential_of))
    return network


def beneath(network: Network) -> tuple[Network, SaslLogin | None, SaslServer | None]:
    """Return a network without the login of our own wire, what to log in with, and what clients log in at."""
    if isinstance(network, SecuredNetwork):
        return network.network, network.login, network.sasl
    return network, None, None


def protocol_of(network: Network) -> SecurityProtocol:
    """Return the protocol that servers on a network have."""
    below, _, sasl = beneath(network)
    if isinstance(below, TlsNetwork):
        return SecurityProtocol.SSL if sasl is None else SecurityProtocol.SASL_SSL
    return SecurityProtocol.PLAINTEXT if sasl is None else SecurityProtocol.SASL_PLAINTEXT


async def _handle(sasl: SaslServer, handler: StreamHandler, stream: trio.abc.Stream) -> None:
    peer = peer_of(stream)
    try:
        principal = await admit(stream, sasl)
    except SecurityError as error:
        _log.warning("connection closed: the client did not log in", address=peer.address, reason=str(error))
        await trio.aclose_forcefully(stream)
        return
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the peer is gone
    if principal is not None:
        await handler(IdentifiedStream(stream, Peer(peer.address, principal)))
