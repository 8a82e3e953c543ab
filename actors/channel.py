"""An actor that delivers requests to one peer, in order and at least once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import trio
from attrs import frozen

from actors.backoff import Backoff

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Item = TypeVar("Item")
Req = TypeVar("Req")
Resp = TypeVar("Resp")
Item_contra = TypeVar("Item_contra", contravariant=True)
Req_co = TypeVar("Req_co", covariant=True)
Req_contra = TypeVar("Req_contra", contravariant=True)
Resp_co = TypeVar("Resp_co", covariant=True)

REQUEST_TIMEOUT_SECONDS: Final = 30.0


class Backlog(Protocol[Item_contra, Req_co]):
    """Items that wait to be sent. Merging keeps it bounded."""

    def add(self, item: Item_contra) -> None:
        """Merge an item into those that wait."""

    def take(self) -> Req_co | None:
        """Remove and return the next request to send; None if nothing waits."""

    def __len__(self) -> int:
        """Return the number of waiting items, which may become fewer requests."""


class PeerConnection(Protocol[Req_contra, Resp_co]):
    """A connection to the peer."""

    async def call(self, request: Req_contra, *, timeout: float) -> Resp_co:  # noqa: ASYNC109
        """Send a request and return its response within `timeout` seconds."""


@frozen
class ChannelStatistics:
    """Counts of waiting items, answered requests, and failures that were retried."""

    queue_size: int
    answered: int
    retries: int


class Channel(Generic[Item, Req, Resp]):
    """A backlog of requests to one peer, and the loop that sends them one at a time.

    A request that could not be delivered, or whose answer was lost, is retried before any other, over a new connection
    and after a back-off, until the channel is cancelled. Requests therefore arrive in order, each at least once. While
    a request is under way, later items merge in the backlog. A channel that is run again resumes where it stopped.
    """

    def __init__(  # noqa: PLR0913  keyword-only, except the four that every channel needs
        self,
        name: str,
        backlog: Backlog[Item, Req],
        connect: Callable[[], AbstractAsyncContextManager[PeerConnection[Req, Resp]]],
        on_response: Callable[[Req, Resp | Exception], None],
        *,
        backoff: Backoff,
        retry_on: tuple[type[Exception], ...],
        answered: tuple[type[Exception], ...] = (),
        unsendable: tuple[type[Exception], ...] = (),
        mend: Callable[[Req, Exception], Req | None] = lambda _request, _fault: None,
        request_timeout: float = REQUEST_TIMEOUT_SECONDS,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        """Send to the peer `name` over the connections that `connect` opens.

        Exceptions of a call are told apart by their types. Those in `answered` are answers of the peer: they are passed
        to `on_response` like responses. Those in `retry_on`, which `connect` may raise as well, lead to a retry. Those
        in `unsendable` mean that the request itself is at fault, so that no retry would help: `mend` returns a request
        to send in its place, or None to drop it. Any other exception, and any that `on_response` raises, ends `run`.
        Retries are logged to `log`.
        """
        self._name = name
        self._backlog = backlog
        self._connect = connect
        self._on_response = on_response
        self._backoff = backoff
        self._retry_on = retry_on
        self._answers = answered
        self._unsendable = unsendable
        self._mend = mend
        self._request_timeout = request_timeout
        self._log = log
        self._under_way: Req | None = None
        self._work = trio.Event()
        self._answered = 0
        self._retries = 0

    def tell(self, item: Item) -> None:
        """Merge an item into the backlog. Call this in the trio thread."""
        self._backlog.add(item)
        self._work.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send requests until cancelled; connect only when there is one to send."""
        task_status.started()
        while True:
            await self._next_request()
            try:
                await self._send_over_one_connection()
            except self._retry_on as error:
                # The request stays under way, so the next connection begins with it.
                delay = self._backoff.next()
                self._retries += 1
                if self._log is not None:
                    shown = round(delay, 3)
                    self._log.warning("trying again", channel=self._name, reason=str(error), delay_seconds=shown)
                await trio.sleep(delay)

    @property
    def under_way(self) -> Req | None:
        """The request that has been taken from the backlog and not been answered."""
        return self._under_way

    def statistics(self) -> ChannelStatistics:
        """Return the current counts. The request under way does not count as waiting."""
        return ChannelStatistics(len(self._backlog), self._answered, self._retries)

    async def _send_over_one_connection(self) -> None:
        async with self._connect() as peer:
            while True:
                request = await self._next_request()
                try:
                    response = await self._ask(peer, request)
                except self._unsendable as fault:
                    # Nothing was sent, so the connection is still in order.
                    self._under_way = self._mend(request, fault)
                    continue
                self._under_way = None
                self._answered += 1
                self._backoff.reset()
                self._on_response(request, response)
                del request, response  # The next ones may come much later, and these may be large.

    async def _ask(self, peer: PeerConnection[Req, Resp], request: Req) -> Resp | Exception:
        try:
            return await peer.call(request, timeout=self._request_timeout)
        except self._answers as answer:
            return answer

    async def _next_request(self) -> Req:
        """Return the request under way; if there is none, wait for one and take it from the backlog."""
        while self._under_way is None:
            self._work = trio.Event()
            self._under_way = self._backlog.take()
            if self._under_way is None:
                await self._work.wait()
        return self._under_way
