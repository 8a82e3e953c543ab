"""A token endpoint on a port of its own: a server of HTTP, which gives tokens without a signature."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final, cast
from urllib.parse import parse_qs

from attrs import define, field, frozen

from transport.host import Host
from transport.zookeeper_server import HOST

CLIENT, SECRET = "klamm", "klamm-secret"
PATH: Final = "/oauth/token"


@frozen
class Asked:
    """One request: the client and its secret, and the form."""

    authorization: str
    form: Mapping[str, list[str]]
    path: str


@define
class TokenEndpoint:
    """The endpoint as a test sees it, and changes it."""

    url: str
    lifetime: float = 20
    has_expires_in: bool = False
    answer: tuple[int, bytes] | None = None
    """The status and the body of all answers, instead of tokens."""

    retry_after: str | None = None
    """The header Retry-After of these answers."""

    asked: list[Asked] = field(factory=list)
    given: list[str] = field(factory=list)
    """The tokens."""

    def take(self, asked: Asked) -> tuple[int, bytes]:
        """Answer a request."""
        self.asked.append(asked)
        if self.answer is not None:
            return self.answer
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if asked.authorization != f"Basic {expected}":
            return 401, json.dumps({"error": "invalid_client", "error_description": "Bad credentials"}).encode()
        now = Host().now_ms() / 1000
        claims = {"sub": CLIENT, "iat": now, "exp": now + self.lifetime, "jti": len(self.given)}
        token = ".".join((_base64({"alg": "none"}), _base64(claims), ""))
        self.given.append(token)
        document: dict[str, object] = {"access_token": token, "token_type": "Bearer"}
        if self.has_expires_in:
            document["expires_in"] = self.lifetime
        return 200, json.dumps(document).encode()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, endpoint: TokenEndpoint, *rest: object) -> None:
        self._endpoint = endpoint
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status, body = self._endpoint.take(Asked(self.headers["Authorization"], parse_qs(text), self.path))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != HTTPStatus.OK and self._endpoint.retry_after is not None:
            self.send_header("Retry-After", self._endpoint.retry_after)
        self.end_headers()
        # Without a length, the body ends with the connection.
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def token_endpoint(keys: Path | None = None) -> Iterator[TokenEndpoint]:
    """Run an endpoint for the block, with TLS if it has keys."""
    endpoint = TokenEndpoint("")
    server = ThreadingHTTPServer((HOST, 0), cast("type[_Handler]", partial(_Handler, endpoint)))
    if keys is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    endpoint.url = f"{'http' if keys is None else 'https'}://{HOST}:{server.server_port}{PATH}"
    thread = Thread(target=partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _base64(claims: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
