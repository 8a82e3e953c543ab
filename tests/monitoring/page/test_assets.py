"""The files of the page: what they may load, and how they are served."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest
import trio

from controller.monitoring.page.assets import assets
from tests.kit.service import Controllers

PATHS = ("/", "/page.css", "/page.js", "/events")


async def ask(port: int, method: str, path: str) -> tuple[int, str, bytes]:
    """Return status, head and the beginning of the body."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(f"{method} {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive_some(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), head.decode(), body


@pytest.fixture
async def port(controllers: Controllers) -> int:
    service = await controllers.start(metrics_port=0)
    assert service.metrics_port is not None
    return service.metrics_port


@pytest.mark.parametrize("path", PATHS)
async def test_a_browser_is_kept_to_the_files_of_the_page(path: str, port: int) -> None:
    status, head, _ = await ask(port, "GET", path)
    assert status == HTTPStatus.OK
    [policy] = re.findall(r"Content-Security-Policy: (.*)\r", head)
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed.pop("default-src") == "'none'"
    assert {name for name, sources in allowed.items() if sources == "'self'"} == {
        "script-src",
        "style-src",
        "connect-src",
    }
    assert set(allowed.values()) <= {"'self'", "'none'", "'script'", "data:"}
    assert "X-Content-Type-Options: nosniff" in head
    assert "Access-Control-Allow-Origin" not in head


@pytest.mark.parametrize("path", PATHS)
async def test_it_is_only_read(path: str, port: int) -> None:
    status, head, body = await ask(port, "HEAD", path)
    assert (status, body) == (HTTPStatus.OK, b"")
    assert "Content-Type: text/" in head
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert (await ask(port, method, path))[0] == HTTPStatus.METHOD_NOT_ALLOWED


def test_nothing_comes_from_elsewhere_and_nothing_is_sent() -> None:
    for path, page in assets().items():
        text = page.body.decode()
        assert not re.search(
            r"https?:|//[a-z]|@import|url\(", re.sub(r"^\s*//.*$|\s// .*$", "", text, flags=re.MULTILINE)
        ), path
        assert not re.search(r"<form|method: \"(?!HEAD)", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(| style=", text), (
            path
        )
    links = re.findall(r'(?:href|src)="([^"]*)"', assets()["/"].body.decode())
    assert set(links) == {"data:,", "page.css", "page.js", "#main", "metrics", "readyz", "healthz"}
