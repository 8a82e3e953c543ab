"""Snapshots for listeners: made only while some listen, at most once a second, and only if something changed."""

from __future__ import annotations

from http import HTTPStatus
from itertools import pairwise

import pytest
import trio
from attrs import define, field
from structlog.testing import capture_logs

from controller.monitoring.page.broadcast import ALIVE, ALIVE_SECONDS, MAX_LISTENERS, PAUSE_FACTOR, Broadcast
from transport.http import Page, Stream

pytestmark = pytest.mark.usefixtures("autojump_clock")


@define
class Source:
    """The source of snapshots."""

    content: int = 0
    taken: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    is_volatile: bool = field(default=False, init=False)
    is_broken: bool = field(default=False, init=False)

    def stamp(self) -> int | None:
        return None if self.is_volatile else self.content

    async def take(self) -> bytes:
        self.taken += 1
        content = self.content
        await trio.sleep(self.seconds)
        if self.is_broken:
            raise ValueError("out of order")
        return b"%d" % content


@define
class Listener:
    """The pieces that one listener was sent, and their times."""

    received: list[tuple[float, bytes]] = field(factory=list, init=False)
    takes: trio.Event = field(factory=trio.Event, init=False)
    scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame in self.received if frame != ALIVE]

    async def send(self, frame: bytes) -> None:
        await self.takes.wait()
        self.received.append((trio.current_time(), frame))

    async def listen(self, live: Broadcast) -> None:
        answer = live.answer(())
        assert isinstance(answer, Stream)
        with self.scope:
            await answer.write(self.send)


def listening(nursery: trio.Nursery, live: Broadcast, *, is_slow: bool = False) -> Listener:
    listener = Listener()
    if not is_slow:
        listener.takes.set()
    nursery.start_soon(listener.listen, live)
    return listener


def started(nursery: trio.Nursery) -> tuple[Source, Broadcast]:
    source = Source()
    live = Broadcast(source.stamp, source.take)
    nursery.start_soon(live.run)
    return source, live


async def test_nothing_is_made_while_nobody_listens(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    for _ in range(100):
        source.content += 1
        await trio.sleep(1)
    assert source.taken == 0
    listener = listening(nursery, live)
    await trio.sleep(0.5)
    assert listener.frames == [b"data: 100\n\n"]
    listener.scope.cancel()
    await trio.sleep(1.5)
    taken = source.taken
    source.content += 1
    await trio.sleep(100)
    assert source.taken == taken
    # The next one does not get what was true when the last one left.
    later = listening(nursery, live)
    await trio.sleep(1)
    assert later.frames == [b"data: 101\n\n"]


async def test_what_was_made_for_one_who_left_is_not_kept_for_the_next(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    source.seconds = 0.5
    first = listening(nursery, live)
    await trio.sleep(0.2)
    first.scope.cancel()
    await trio.sleep(10)
    source.content, source.seconds = 1, 0.0
    second = listening(nursery, live)
    await trio.sleep(5)
    assert (first.frames, second.frames) == ([], [b"data: 1\n\n"])


async def test_many_changes_within_a_second_are_one_snapshot(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    listener = listening(nursery, live)
    for _ in range(1000):
        source.content += 1
        await trio.sleep(0.01)
    times = [time for time, frame in listener.received if frame != ALIVE]
    assert 9 <= len(times) <= 11
    assert min(b - a for a, b in pairwise(times)) >= 1


async def test_all_listeners_share_one_snapshot(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    listeners = [listening(nursery, live) for _ in range(MAX_LISTENERS)]
    await trio.sleep(0.5)
    assert source.taken == 1
    assert [listener.frames for listener in listeners] == [[b"data: 0\n\n"]] * MAX_LISTENERS


async def test_what_did_not_change_is_neither_made_nor_sent_again(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    listener = listening(nursery, live)
    await trio.sleep(5.5 * ALIVE_SECONDS)
    assert source.taken == 1
    assert listener.received[1:] == [(listener.received[0][0] + n * ALIVE_SECONDS, ALIVE) for n in range(1, 6)]
    source.is_volatile = True
    await trio.sleep(10)
    assert source.taken >= 9
    assert listener.frames == [b"data: 0\n\n"]


async def test_a_snapshot_that_takes_long_is_made_more_rarely(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    source.seconds, source.is_volatile = 1.0, True
    listening(nursery, live)
    await trio.sleep(10 * (1 + PAUSE_FACTOR) - 0.5)
    assert source.taken == 10


async def test_a_slow_listener_misses_some_and_gets_the_latest(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    slow, quick = listening(nursery, live, is_slow=True), listening(nursery, live)
    for _ in range(5):
        await trio.sleep(1.1)
        source.content += 1
    await trio.sleep(1.1)
    assert len(quick.frames) == 6
    slow.takes.set()
    await trio.sleep(0.1)
    assert slow.frames == [b"data: 0\n\n", b"data: 5\n\n"]


async def test_more_listeners_than_there_is_room_for_are_refused(nursery: trio.Nursery) -> None:
    _, live = started(nursery)
    listeners = [listening(nursery, live) for _ in range(MAX_LISTENERS)]
    await trio.sleep(0.1)
    refused = live.answer(())
    assert isinstance(refused, Page)
    assert refused.status is HTTPStatus.SERVICE_UNAVAILABLE
    listeners[0].scope.cancel()
    await trio.sleep(0.1)
    assert isinstance(live.answer(()), Stream)


async def test_those_that_come_at_once_find_no_more_room(nursery: trio.Nursery) -> None:
    _, live = started(nursery)
    answers = [live.answer(()) for _ in range(MAX_LISTENERS + 1)]
    streams = [answer for answer in answers if isinstance(answer, Stream)]
    assert len(streams) > MAX_LISTENERS
    listeners = [Listener() for _ in streams]
    async with trio.open_nursery() as those:
        for stream, listener in zip(streams, listeners, strict=True):
            listener.takes.set()
            those.start_soon(stream.write, listener.send)
        await trio.sleep(0.5)
        those.cancel_scope.cancel()
    assert sum(bool(listener.frames) for listener in listeners) == MAX_LISTENERS


async def test_a_fault_in_a_snapshot_ends_nothing(nursery: trio.Nursery) -> None:
    source, live = started(nursery)
    source.is_broken = True
    with capture_logs() as logs:
        listener = listening(nursery, live)
        await trio.sleep(0.5)
    assert [line["event"] for line in logs] == ["the page cannot be made"]
    source.is_broken = False
    await trio.sleep(1)
    assert listener.frames == [b"data: 0\n\n"]
