"""The pages for probes, scrapers and browsers, and the answers to other clients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus

import pytest
import trio
from attrs import define, field
from trio.testing import MemorySendStream, memory_stream_pair

from transport.http import MAX_CLIENTS, MAX_HEAD_BYTES, PIECE_SECONDS, Page, Send, Stream, not_found, serve_http
from transport.network import StreamHandler

PAGES = {"/metrics": Page(b"up 1\n")}


@define
class OneListener:
    """A network in memory on which one server listens."""

    handler: StreamHandler = field(init=False)

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        raise NotImplementedError

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        assert (host, port) == ("127.0.0.1", 80)
        self.handler = handler
        task_status.started(port)
        await trio.sleep_forever()


async def page(path: str) -> Page:
    return PAGES.get(path) or not_found(PAGES)


async def listen(nursery: trio.Nursery) -> OneListener:
    network = OneListener()
    await nursery.start(partial(serve_http, network, page, "127.0.0.1", 80))
    return network


async def connect(nursery: trio.Nursery, network: OneListener) -> trio.abc.Stream:
    ours, theirs = memory_stream_pair()

    async def serve_one() -> None:
        async with theirs:
            await network.handler(theirs)

    nursery.start_soon(serve_one)
    return ours


async def ask(nursery: trio.Nursery, network: OneListener, request: bytes, *, ends: bool = False) -> str:
    stream = await connect(nursery, network)
    await stream.send_all(request)
    if ends:
        await stream.send_eof()  # type: ignore[attr-defined]
    return await answer(stream)


async def answer(stream: trio.abc.Stream) -> str:
    received = b""
    while chunk := await stream.receive_some(65536):
        received += chunk
    return received.decode()


def status(response: str) -> int:
    return int(response.split(" ", 2)[1])


@pytest.mark.requirement("D11")
async def test_a_page_is_got(nursery: trio.Nursery) -> None:
    network = await listen(nursery)
    response = await ask(nursery, network, b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n")
    head, _, body = response.partition("\r\n\r\n")
    assert head.split("\r\n")[0] == "HTTP/1.1 200 OK"
    assert "Content-Length: 5" in head
    assert "Connection: close" in head
    assert body == "up 1\n"


async def test_head_gets_the_length_and_no_body(nursery: trio.Nursery) -> None:
    network = await listen(nursery)
    response = await ask(nursery, network, b"HEAD /metrics HTTP/1.0\r\n\r\n")
    assert "Content-Length: 5" in response
    assert response.endswith("\r\n\r\n")


async def test_an_unknown_path_says_which_there_are(nursery: trio.Nursery) -> None:
    response = await ask(nursery, await listen(nursery), b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    assert status(response) == HTTPStatus.NOT_FOUND
    assert response.endswith("not found: try /metrics\n")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET /metrics\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET metrics HTTP/1.1\r\nHost: here\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /metrics HTTP/2.0\r\nHost: here\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /metrics HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),  # HTTP/1.1 demands a Host header
        (b"HEAD metrics HTTP/1.1\r\nHost: here\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"\xff\xfe\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"x" * (MAX_HEAD_BYTES + 1), HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
async def test_garbage_is_refused(nursery: trio.Nursery, request_: bytes, expected: HTTPStatus) -> None:
    assert status(await ask(nursery, await listen(nursery), request_)) == expected


async def test_a_request_that_ends_early_is_refused(nursery: trio.Nursery) -> None:
    response = await ask(nursery, await listen(nursery), b"GET /metrics HTTP/1.1\r\n", ends=True)
    assert status(response) == HTTPStatus.BAD_REQUEST


async def test_a_probe_that_only_connects_is_no_fault(nursery: trio.Nursery) -> None:
    assert await ask(nursery, await listen(nursery), b"", ends=True) == ""


@pytest.mark.usefixtures("autojump_clock")
async def test_a_client_that_sends_nothing_is_sent_away(nursery: trio.Nursery) -> None:
    assert status(await ask(nursery, await listen(nursery), b"GET")) == HTTPStatus.REQUEST_TIMEOUT


@pytest.mark.usefixtures("autojump_clock")
async def test_silent_clients_keep_nobody_out(nursery: trio.Nursery) -> None:
    network = await listen(nursery)
    silent = [await connect(nursery, network) for _ in range(MAX_CLIENTS)]
    await trio.testing.wait_all_tasks_blocked()
    assert status(await ask(nursery, network, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")) == HTTPStatus.OK
    [longest, *others] = sorted([await answer(stream) for stream in silent])
    assert longest == ""
    assert {status(response) for response in others} == {HTTPStatus.REQUEST_TIMEOUT}


async def test_clients_that_are_being_answered_keep_others_out(nursery: trio.Nursery) -> None:
    network, may_go = OneListener(), trio.Event()

    async def slow_page(path: str) -> Page:
        await may_go.wait()
        return await page(path)

    await nursery.start(partial(serve_http, network, slow_page, "127.0.0.1", 80))
    served = [await connect(nursery, network) for _ in range(MAX_CLIENTS)]
    for stream in served:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    await trio.testing.wait_all_tasks_blocked()
    assert await answer(await connect(nursery, network)) == ""
    may_go.set()
    assert {status(await answer(stream)) for stream in served} == {HTTPStatus.OK}


async def test_a_client_that_goes_away_costs_nobody_else(nursery: trio.Nursery) -> None:
    network = await listen(nursery)
    gone = await connect(nursery, network)
    await gone.send_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    await gone.aclose()
    assert status(await ask(nursery, network, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")) == HTTPStatus.OK


# --- streams ----------------------------------------------------------------------------------------------------


@define
class Clock:
    """A stream without end: a piece each second."""

    told: list[bytes] = field(factory=list, init=False)
    has_begun: bool = field(default=False, init=False)
    is_over: trio.Event = field(factory=trio.Event, init=False)

    async def write(self, send: Send) -> None:
        self.has_begun = True
        try:
            while True:
                piece = b"tick %d\n" % len(self.told)
                await send(piece)
                self.told.append(piece)
                await trio.sleep(1)
        finally:
            self.is_over.set()


@pytest.fixture
async def clock(nursery: trio.Nursery, autojump_clock: object) -> tuple[OneListener, Clock]:  # noqa: ARG001
    going, network = Clock(), OneListener()
    stream = Stream(going.write, "text/event-stream", (("X-Own", "yes"),))

    async def streaming(_: str) -> Stream:
        return stream

    await nursery.start(partial(serve_http, network, streaming, "127.0.0.1", 80))
    return network, going


async def test_a_stream_comes_piece_by_piece(nursery: trio.Nursery, clock: tuple[OneListener, Clock]) -> None:
    network, _ = clock
    stream = await connect(nursery, network)
    await stream.send_all(b"GET /events HTTP/1.1\r\nHost: here\r\n\r\n")
    received = b""
    while b"tick 2" not in received:
        received += await stream.receive_some(65536)
    head, _, body = received.decode().partition("\r\n\r\n")
    assert head.split("\r\n")[0] == "HTTP/1.1 200 OK"
    assert "Content-Length" not in head
    assert "X-Own: yes" in head
    assert body == "".join(f"7\r\ntick {n}\n\r\n" for n in range(3))


async def test_head_of_a_stream_ends_at_once(nursery: trio.Nursery, clock: tuple[OneListener, Clock]) -> None:
    network, going = clock
    response = await ask(nursery, network, b"HEAD /events HTTP/1.1\r\nHost: here\r\n\r\n")
    assert status(response) == HTTPStatus.OK
    assert response.endswith("\r\n\r\n")
    assert not going.has_begun


@pytest.mark.parametrize("leaves", ["goes away", "says more"])
async def test_a_stream_ends_with_its_client(
    leaves: str, nursery: trio.Nursery, clock: tuple[OneListener, Clock]
) -> None:
    network, going = clock
    stream = await connect(nursery, network)
    await stream.send_all(b"GET /events HTTP/1.1\r\nHost: here\r\n\r\n")
    await stream.receive_some(65536)
    await (stream.aclose() if leaves == "goes away" else stream.send_all(b"more"))
    await trio.testing.wait_all_tasks_blocked()
    assert going.is_over.is_set()


async def test_a_client_that_takes_nothing_is_sent_away(
    nursery: trio.Nursery, clock: tuple[OneListener, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, going = clock
    stream = await connect(nursery, network)
    await stream.send_all(b"GET /events HTTP/1.1\r\nHost: here\r\n\r\n")
    await stream.receive_some(65536)
    began = trio.current_time()
    monkeypatch.setattr(MemorySendStream, "send_all", takes_nothing)
    await going.is_over.wait()
    assert PIECE_SECONDS <= trio.current_time() - began <= PIECE_SECONDS + 1


async def takes_nothing(_stream: object, _data: bytes) -> None:
    await trio.sleep_forever()
