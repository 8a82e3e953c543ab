"""The tokens of OAUTHBEARER: one for all logins of a process, renewed while it is still valid.

A login takes the token that there is, and fetches another one when most of its life has passed. There is no task in the
background: a connection logs in again before the token of its session expires, and that is when a new one is needed.

An endpoint that is busy is asked again, after pauses that grow, while the login has time; all logins share the pauses.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import inf
from random import Random
from types import MappingProxyType
from typing import Final, Protocol

import orjson
import trio
from attrs import define, field, frozen

from transport.host import Host
from transport.log import get_logger
from transport.security.errors import AuthenticationFailed, EndpointBusy, TokenUnavailable

_log = get_logger(__name__)

UNSIGNED_SECONDS: Final = 3600.0
"""The life of a token without a signature, unless it is set."""

RETRY_SECONDS: Final = 0.1
MAX_RETRY_SECONDS: Final = 10.0
"""The first and the longest pause before a busy endpoint is asked again, as in Kafka (`sasl.login.retry.backoff.*`)."""

PATIENCE_SECONDS: Final = 30.0
"""The time for these attempts, if the login has no earlier deadline."""

_NO_SIGNATURE: Final = b'{"alg":"none"}'


@frozen
class Token:
    """A token, and the seconds for which it is valid from when it was asked for; None if that is not known."""

    text: str = field(repr=False)
    seconds: float | None


@frozen
class Refresh:
    """The time at which a token is renewed: the settings `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    """The part of a token's life after which it is renewed."""

    window_jitter: float = 0.05
    """The most that is added to this part by chance."""

    min_period_seconds: float = 60
    buffer_seconds: float = 300

    def after(self, lifetime: float, draw: float) -> float:
        """Return the seconds after which a token is renewed, given its life and a number from 0 to 1."""
        seconds = lifetime * (self.window_factor + self.window_jitter * draw)
        # As in Kafka, a life that has no room for both limits has none of them.
        if self.min_period_seconds + self.buffer_seconds > lifetime:
            return seconds
        return max(min(seconds, lifetime - self.buffer_seconds), self.min_period_seconds)


class TokenSource(Protocol):
    """The place from which tokens come."""

    @property
    def user(self) -> str:
        """The name of the client, for errors."""

    async def fetch(self) -> Token:
        """Return a new token. Raises TokenUnavailable if there is none now, AuthenticationFailed if none is given.

        Raises EndpointBusy if another attempt is worth it.
        """


@define
class _Current:
    """The token that there is, two times of trio's clock, and the state of a busy endpoint."""

    lock: trio.Lock = field(factory=trio.Lock)
    token: Token | None = None
    renewed_at: float = -inf
    expires_at: float = -inf
    fault: EndpointBusy | None = None
    """The last answer of the endpoint, if that is busy."""

    pause: float = RETRY_SECONDS
    asked_again_at: float = -inf

    def busy(self, fault: EndpointBusy) -> None:
        """Note an answer of a busy endpoint, and when the next attempt is due."""
        pause = min(max(self.pause, fault.retry_after), MAX_RETRY_SECONDS)
        self.fault, self.asked_again_at = fault, trio.current_time() + pause
        self.pause = min(2 * self.pause, MAX_RETRY_SECONDS)


def _current() -> trio.lowlevel.RunVar[_Current]:
    # The clock of a run begins anywhere, so that no time of one is a time of the next one.
    return trio.lowlevel.RunVar("the token of OAUTHBEARER")


@frozen(eq=False)
class Tokens:
    """The tokens of a source, as logins need them."""

    source: TokenSource
    refresh: Refresh = field(factory=Refresh)
    extensions: Mapping[str, str] = field(factory=lambda: MappingProxyType({}))
    """More that a login tells the server (SASL extensions)."""

    rng: Random = field(factory=lambda: Host().rng, repr=False)
    _variable: trio.lowlevel.RunVar[_Current] = field(factory=_current, init=False, repr=False)

    @property
    def user(self) -> str:
        """The name of the client, for errors."""
        return self.source.user

    async def token(self) -> str:
        """Return a valid token. Raises TokenUnavailable if there is none for now, AuthenticationFailed if for good."""
        current = self._of_this_run()
        deadline = min(trio.current_time() + PATIENCE_SECONDS, trio.current_effective_deadline())
        while True:
            try:
                async with current.lock:
                    now = trio.current_time()
                    if current.token is None or now >= current.renewed_at:
                        await self._renew(current, now)
                    assert current.token is not None
                    return current.token.text
            except EndpointBusy:
                if current.asked_again_at >= deadline:
                    raise
            # Without the lock, so that each login keeps its own deadline.
            await trio.sleep_until(current.asked_again_at)

    def _of_this_run(self) -> _Current:
        try:
            return self._variable.get()
        except LookupError:
            current = _Current()
            self._variable.set(current)
            return current

    async def _renew(self, current: _Current, now: float) -> None:
        try:
            token = await self._fetch(current, now)
        except TokenUnavailable as error:
            if current.token is not None and now < current.expires_at:
                _log.warning("token not renewed, the old one is still valid", reason=str(error))
                return
            if current.token is None and current.fault is None:
                # The place has never answered, so that a wrong setting is more likely than a fault that will pass.
                raise AuthenticationFailed(str(error)) from error
            raise
        current.token, current.fault, current.pause = token, None, RETRY_SECONDS
        current.renewed_at = now + (
            0 if token.seconds is None else self.refresh.after(token.seconds, self.rng.random())
        )
        current.expires_at = now + (token.seconds or 0)

    async def _fetch(self, current: _Current, now: float) -> Token:
        """Fetch a token, unless the endpoint was busy a moment ago. Raises as `TokenSource.fetch`."""
        if current.fault is not None and now < current.asked_again_at:
            raise EndpointBusy(str(current.fault))
        try:
            return await self.source.fetch()
        except EndpointBusy as fault:
            current.busy(fault)
            raise


@frozen
class UnsignedTokens:
    """Makes tokens without a signature, for brokers that accept them: those of tests."""

    claims: Mapping[str, object]
    principal_claim: str = "sub"
    lifetime_seconds: float = UNSIGNED_SECONDS
    host: Host = field(factory=Host, repr=False)

    @property
    def user(self) -> str:
        """The name that the token gives the client."""
        return str(self.claims[self.principal_claim])

    async def fetch(self) -> Token:
        """Return a new token."""
        await trio.lowlevel.checkpoint()
        now = self.host.now_ms() / 1000
        claims = orjson.dumps({**self.claims, "iat": now, "exp": now + self.lifetime_seconds})
        return Token(f"{_base64(_NO_SIGNATURE)}.{_base64(claims)}.", self.lifetime_seconds)


def seconds_of_claim(token: str, now_ms: int) -> float | None:
    """Return for how many seconds a token is valid by its claim `exp`; None if it has none that can be read."""
    parts = token.split(".")
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return float(claims["exp"]) - now_ms / 1000
    except (ValueError, LookupError, TypeError):
        return None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
