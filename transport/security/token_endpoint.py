"""Tokens from a token endpoint by client credentials (RFC 6749, section 4.4): one POST over HTTP/1.1, which h11 speaks.

No message shows the secret or a token.
"""

from __future__ import annotations

import base64
import re
import socket
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, quote_plus, urlencode, urlsplit

import h11
import orjson
import trio
from attrs import field, frozen

from transport.host import Host
from transport.network import Network, TcpNetwork
from transport.pages import shown
from transport.security.errors import AuthenticationFailed, EndpointBusy, SecurityError, TokenUnavailable
from transport.security.network import TlsNetwork
from transport.security.tls import Tls
from transport.security.tokens import Token, seconds_of_claim

ANSWER_SECONDS: Final = 4.0
"""The time for a whole answer: an attempt to reach a broker, which includes it, takes 5 s."""

MAX_ANSWER_BYTES: Final = 256 * 1024

URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CHECK_URL: Final = f"check {URL}"
_CHECK_CLIENT: Final = "check the id and the secret of the client"
_CHECK_SCOPE: Final = "check sasl.oauthbearer.scope, or the scope in sasl.jaas.config"
_MAX_WORDS: Final = 200
_PIECE_BYTES: Final = 16 * 1024
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_NEVER: Final = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})
"""The faults of a server that do not pass. As in Kafka, all others are worth another attempt."""

_SECONDS: Final = re.compile(r"[0-9]+")


@frozen
class _Answer:
    """What a token endpoint answers; `retry_after` is the pause that it asks for, in seconds."""

    status: int
    body: bytes
    retry_after: float


@frozen
class ClientCredentials:
    """A client of a token endpoint."""

    url: str
    client: str
    secret: str = field(repr=False)
    scope: str | None = None
    tls: Tls = field(factory=Tls)
    encodes_header: bool = False
    """Whether the id and the secret are encoded as in a URL before anything else (RFC 6749, section 2.3.1)."""

    network: Network = field(factory=TcpNetwork, repr=False, eq=False)
    host: Host = field(factory=Host, repr=False, eq=False)

    @property
    def user(self) -> str:
        """The id of the client."""
        return self.client

    async def fetch(self) -> Token:
        """Ask for a token. Raises TokenUnavailable if there is no answer, AuthenticationFailed for one without it.

        Raises EndpointBusy for an answer that asks for another attempt.
        """
        answer = await self._post(urlsplit(self.url))
        status, document = answer.status, _document(answer.body)
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return self._token_in(document)
        words = self._words(status, document)
        if status in _LATER or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NEVER):
            raise EndpointBusy(f"cannot get a token from {shown(self.url)}: it answers {words}", answer.retry_after)
        raise AuthenticationFailed(
            f"{shown(self.url)} gives the client {self.client} no token ({words}): {_cure(status, document)}"
        )

    def _token_in(self, document: dict[str, object]) -> Token:
        token, seconds = document.get("access_token"), document.get("expires_in")
        if not isinstance(token, str) or not _BEARER.fullmatch(token):
            raise AuthenticationFailed(f"{shown(self.url)} does not answer as a token endpoint does: {_CHECK_URL}")
        try:
            lifetime = float(seconds) if isinstance(seconds, int | float | str) else None
        except (ValueError, OverflowError):
            lifetime = None
        if lifetime is None:
            lifetime = seconds_of_claim(token, self.host.now_ms())
        if lifetime is not None and not lifetime > 0:
            raise AuthenticationFailed(f"the token of {shown(self.url)} has expired already: check the clocks")
        return Token(token, lifetime)

    def _words(self, status: int, document: dict[str, object]) -> str:
        """Return what a refusal says."""
        error, description = document.get("error"), document.get("error_description")
        text = ": ".join(part for part in (error, description) if isinstance(part, str) and part)
        text = " ".join(text.split()).replace(self.secret, "...")[:_MAX_WORDS]
        return f"{status} {text}".rstrip()

    # --- HTTP ---------------------------------------------------------------------------------------------------

    async def _post(self, url: SplitResult) -> _Answer:
        """Return the answer. Raises TokenUnavailable."""
        try:
            with trio.fail_after(ANSWER_SECONDS):
                return await self._talk(url)
        except trio.TooSlowError:
            fault = f"no answer within {ANSWER_SECONDS:g} s"
        except socket.gaierror as error:
            fault = f"the host {url.hostname} cannot be found ({error.strerror})"
        except ConnectionRefusedError:
            fault = "nothing listens there"
        except OSError as error:
            fault = error.strerror or str(error)
        except SecurityError as error:
            fault = str(error)
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            fault = "it does not answer as a server of HTTP does"
        raise TokenUnavailable(f"cannot get a token from {shown(self.url)}: {fault}: {_CHECK_URL}")

    async def _talk(self, url: SplitResult) -> _Answer:
        assert url.hostname is not None
        network = self.network
        if url.scheme == "https":
            network = TlsNetwork(network, self.tls.client_context())
        connection = h11.Connection(h11.CLIENT)
        async with await network.connect(url.hostname, url.port or _DEFAULT_PORTS[url.scheme]) as stream:
            await stream.send_all(self._request(connection, url))
            return await _receive(connection, stream)

    def _request(self, connection: h11.Connection, url: SplitResult) -> bytes:
        body = urlencode({"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})).encode()
        client, secret = self.client, self.secret
        if self.encodes_header:
            client, secret = quote_plus(client), quote_plus(secret)
        headers = [
            ("Host", url.netloc.rpartition("@")[2]),
            ("Authorization", f"Basic {base64.b64encode(f'{client}:{secret}'.encode()).decode()}"),
            ("Accept", "application/json"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
        head = h11.Request(method="POST", target=target, headers=headers)
        return b"".join(connection.send(event) or b"" for event in (head, h11.Data(data=body), h11.EndOfMessage()))


async def _receive(connection: h11.Connection, stream: trio.abc.Stream) -> _Answer:
    status, retry_after, body = 0, 0.0, bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(_PIECE_BYTES)))
        elif isinstance(event, h11.Response):
            status, retry_after = event.status_code, _retry_after(event)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_ANSWER_BYTES:
                raise h11.RemoteProtocolError(f"more than {MAX_ANSWER_BYTES} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return _Answer(status, bytes(body), retry_after)


def _retry_after(response: h11.Response) -> float:
    """Return the seconds of the header Retry-After; 0 without one. A date is as good as none."""
    text = next((value for name, value in response.headers if name == b"retry-after"), b"").decode("latin-1").strip()
    return float(text) if _SECONDS.fullmatch(text) else 0.0


def _document(body: bytes) -> dict[str, object]:
    """Return the object of JSON in a body; an empty one if it is something else."""
    try:
        document = orjson.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _cure(status: int, document: dict[str, object]) -> str:
    match document.get("error"):
        case "invalid_scope":
            return _CHECK_SCOPE
        case "invalid_client" | "unauthorized_client" | "access_denied":
            return _CHECK_CLIENT
    return _CHECK_CLIENT if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else _CHECK_URL
