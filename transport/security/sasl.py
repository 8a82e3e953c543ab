"""SASL as both wires use it: what a client logs in with, and what a server checks.

A wire carries the messages: `SaslHandshake` names the mechanism, each `SaslAuthenticate` has one message of each end.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Generator, Mapping
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from transport.host import Host
from transport.security import plain, scram
from transport.security.errors import AuthenticationFailed
from transport.security.plain import PLAIN, Login
from transport.security.scram import ScramCredential

if TYPE_CHECKING:
    from transport.security.tokens import Tokens

MECHANISMS: Final = (PLAIN, *scram.MECHANISMS)
"""The mechanisms that a server may offer."""

OAUTHBEARER: Final = "OAUTHBEARER"
CLIENT_MECHANISMS: Final = (*MECHANISMS, OAUTHBEARER)
"""The mechanisms that a client may use."""

MAX_MESSAGE_BYTES: Final = 64 * 1024
"""The limit of what a server reads from a client that has not said who it is."""

LOGIN_SECONDS: Final = 30
"""The time that a server gives a client to log in."""

REFUSAL_SECONDS: Final = 0.1
"""The time for which a refused client is kept from the next attempt, as in Kafka."""

_COMPARE: Final = "compare its tokens (issuer, audience, scope, clock) with what brokers accept"
_FAKE_ITERATIONS: Final = scram.MIN_ITERATIONS
_SALT_BYTES: Final = 16


@frozen
class SaslLogin:
    """The credentials that a client logs in with."""

    mechanism: str
    login: Login | Tokens
    """A user and its password; the tokens of OAUTHBEARER."""

    rng: Random = field(factory=lambda: Host().rng, repr=False, eq=False)

    async def start(self) -> Generator[bytes, bytes, None]:
        """Return the exchange, which yields the client's messages and takes the server's.

        Raises AuthenticationFailed or TokenUnavailable if there is no token; the exchange, AuthenticationFailed.
        """
        if not isinstance(self.login, Login):
            from transport.security import oauthbearer  # noqa: PLC0415  few clusters have it

            return oauthbearer.client(await self.login.token(), self.login.extensions)
        if self.mechanism == PLAIN:
            return plain.client(self.login)
        return scram.client(scram.MECHANISMS[self.mechanism], self.login, _nonce(self.rng))

    @property
    def cure(self) -> str:
        """What to do when a server refuses the login."""
        return _COMPARE if self.mechanism == OAUTHBEARER else "check sasl.jaas.config"

    def refusal(self, text: str) -> str:
        """Return what a server says of a login that it refuses, in words."""
        if self.mechanism != OAUTHBEARER:
            return text
        from transport.security import oauthbearer  # noqa: PLC0415  few clusters have it

        return oauthbearer.refusal(text)


CredentialOf = Callable[[str, str], Awaitable[ScramCredential | None]]
"""Returns the credential of a mechanism and a user; None for an unknown user. What it raises ends the connection."""


async def nobody(mechanism: str, user: str) -> ScramCredential | None:  # noqa: ARG001  the shape of a CredentialOf
    """Know no user."""
    return None


@frozen
class SaslServer:
    """The mechanisms that a server offers, and what it knows of its users."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(factory=lambda: MappingProxyType({}), repr=False)
    """The passwords of the users of PLAIN."""

    credential_of: CredentialOf = field(default=nobody, repr=False)
    rng: Random = field(factory=lambda: Host().rng, repr=False, eq=False)
    secret: bytes = field(init=False, repr=False, eq=False)
    """Makes up the salts of unknown users, which stay the same while the process runs."""

    @secret.default
    def _secret(self) -> bytes:
        return self.rng.randbytes(_SALT_BYTES)

    def start(self, mechanism: str) -> SaslExchange:
        """Return the server's end of a new exchange. Raises AuthenticationFailed for an unknown mechanism."""
        if mechanism not in self.mechanisms:
            raise AuthenticationFailed(
                f"the mechanism {mechanism[:50]!r} is not enabled here: use one of {', '.join(self.mechanisms)}"
            )
        return SaslExchange(self, mechanism)


@define
class SaslExchange:
    """The server's end of an exchange. `user` is the name of the client once it has proved it."""

    server: SaslServer
    mechanism: str
    user: str | None = None
    _claimed: str = ""
    _scram: Generator[bytes, bytes, bytes] | None = None

    async def respond(self, message: bytes) -> bytes:
        """Return the answer to the client's next message. Raises AuthenticationFailed, which names the user."""
        if self.mechanism == PLAIN:
            return self._check_password(plain.read(message))
        if self._scram is None:
            return await self._challenge(message)
        try:
            self._scram.send(message)
        except StopIteration as end:
            self.user = self._claimed
            outcome: bytes = end.value
            return outcome
        except AuthenticationFailed as error:
            raise AuthenticationFailed(f"{error}, or there is no user {self._claimed[:100]!r}") from None
        raise AssertionError("an exchange of SCRAM has two messages of each end")

    def _check_password(self, login: Login) -> bytes:
        expected = self.server.passwords.get(login.user)
        is_right = hmac.compare_digest(login.password.encode(), (expected or "").encode())
        if expected is None or not is_right:
            raise AuthenticationFailed(f"the password is wrong, or there is no user {login.user[:100]!r}")
        self.user = login.user
        return b""

    async def _challenge(self, message: bytes) -> bytes:
        first = scram.read_client_first(message)
        known = await self.server.credential_of(self.mechanism, first.user)
        self._claimed = first.user
        hash_name = scram.MECHANISMS[self.mechanism]
        known = self._made_up(hash_name, first.user) if known is None else known
        self._scram = scram.server(hash_name, first, known, _nonce(self.server.rng))
        return next(self._scram)

    def _made_up(self, hash_name: str, user: str) -> ScramCredential:
        """Return a credential that no password has, so that an unknown user looks like a known one."""
        salt = hmac.digest(self.server.secret, user.encode(), hash_name)[:_SALT_BYTES]
        key = hmac.digest(self.server.rng.randbytes(_SALT_BYTES), b"", hash_name)
        return ScramCredential(salt, key, key, _FAKE_ITERATIONS)


def _nonce(rng: Random) -> str:
    return rng.randbytes(scram.NONCE_BYTES).hex()
