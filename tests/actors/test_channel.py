"""The channel actor."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import structlog
import trio
from hypothesis import given, strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from actors import Actor, Backlog, Backoff, Channel, ChannelStatistics

pytestmark = pytest.mark.usefixtures("autojump_clock")


class Refused(Exception):
    """The peer answers that it will not."""


class LatestByKey:
    """A backlog of (key, value) pairs: a request is all that waits, the newest value of each key."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}

    def add(self, item: tuple[str, int]) -> None:
        self._waiting |= dict([item])

    def take(self) -> dict[str, int] | None:
        taken, self._waiting = self._waiting, {}
        return taken or None

    def __len__(self) -> int:
        return len(self._waiting)


class Peer:
    """A peer that takes a second for each request; what goes wrong follows a script, and after it nothing does."""

    def __init__(self, *script: str) -> None:
        self._script = list(script)
        self.received: list[dict[str, int]] = []
        self.connections = 0
        self.open_connections = 0
        self.attempts: list[float] = []

    def _step(self) -> str:
        return self._script.pop(0) if self._script else "ok"

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Peer, None]:
        self.attempts.append(trio.current_time())
        if self._script[:1] == ["refuse to connect"]:
            self._script.pop(0)
            raise OSError("nobody there")
        await trio.lowlevel.checkpoint()
        self.connections += 1
        self.open_connections += 1
        try:
            yield self
        finally:
            self.open_connections -= 1

    async def call(self, request: dict[str, int], *, timeout: float) -> str:  # noqa: ASYNC109
        step = self._step()
        if step == "hang":
            await trio.sleep(timeout)
            raise trio.TooSlowError
        await trio.sleep(1)
        if step == "lose the request":
            raise OSError("broken")
        self.received.append(request)
        if step == "lose the answer":
            raise OSError("broken")
        if step == "refuse":
            raise Refused
        if step == "crash":
            raise ZeroDivisionError
        return f"answer {len(self.received)}"


Answers = list[tuple[dict[str, int], str | Exception]]
Item = tuple[str, int]


def make_channel(
    peer: Peer, on_response: Callable[[dict[str, int], str | Exception], None] | None = None
) -> tuple[Channel[Item, dict[str, int], str], Answers]:
    answers: Answers = []
    channel: Channel[Item, dict[str, int], str] = Channel(
        "broker 1",
        LatestByKey(),
        peer.connect,
        on_response or (lambda request, response: answers.append((request, response))),
        backoff=Backoff(0.1, 10.0, jitter=lambda: 1.0),
        retry_on=(OSError, trio.TooSlowError),
        answered=(Refused,),
        request_timeout=30.0,
        log=structlog.get_logger(),
    )
    return channel, answers


async def test_it_is_an_actor_for_items_and_the_test_has_a_backlog() -> None:
    channel, _ = make_channel(Peer())
    actor: Actor[Item] = channel
    backlog: Backlog[Item, dict[str, int]] = LatestByKey()
    actor.tell(("a", 1))
    backlog.add(("a", 1))
    assert channel.statistics().queue_size == len(backlog) == 1


async def test_it_connects_when_there_is_something_to_send(nursery: trio.Nursery) -> None:
    peer = Peer()
    channel, answers = make_channel(peer)
    await nursery.start(channel.run)
    await trio.sleep(100)
    assert peer.connections == 0
    channel.tell(("a", 1))
    await trio.sleep(2)
    assert answers == [({"a": 1}, "answer 1")]
    channel.tell(("a", 2))
    await trio.sleep(2)
    assert answers[1:] == [({"a": 2}, "answer 2")]
    assert peer.connections == 1  # kept open
    nursery.cancel_scope.cancel()


class Large(dict[str, int]):
    """A request that can be watched."""

    __hash__ = object.__hash__  # type: ignore[assignment]


async def test_an_answered_request_is_let_go_before_the_next_one_comes(nursery: trio.Nursery) -> None:
    requests: weakref.WeakSet[Large] = weakref.WeakSet()

    class Backlogged(LatestByKey):
        def take(self) -> dict[str, int] | None:
            taken = super().take()
            if taken is None:
                return None
            request = Large(taken)
            requests.add(request)
            return request

    class Forgetful(Peer):
        async def call(self, request: dict[str, int], *, timeout: float) -> str:  # noqa: ARG002, ASYNC109
            await trio.sleep(1)
            assert list(requests) == [request]
            return "answer"

    answers: list[str] = []
    channel: Channel[Item, dict[str, int], str] = Channel(
        "broker 1",
        Backlogged(),
        Forgetful().connect,
        lambda _, response: answers.append(str(response)),
        backoff=Backoff(0.1, 10.0, jitter=lambda: 1.0),
        retry_on=(OSError,),
    )
    await nursery.start(channel.run)
    channel.tell(("a", 1))
    await trio.sleep(2)
    assert (answers, list(requests)) == (["answer"], [])
    nursery.cancel_scope.cancel()


@pytest.mark.requirement("E2")
async def test_one_request_is_under_way_while_what_comes_merges(nursery: trio.Nursery) -> None:
    peer = Peer()
    channel, answers = make_channel(peer)
    channel.tell(("a", 1))
    nursery.start_soon(channel.run)
    await trio.sleep(0.5)
    for item in (("a", 2), ("b", 1), ("a", 3)):
        channel.tell(item)
    assert channel.statistics() == ChannelStatistics(queue_size=2, answered=0, retries=0)
    await trio.sleep(5)
    assert [request for request, _ in answers] == [{"a": 1}, {"a": 3, "b": 1}]
    assert channel.statistics() == ChannelStatistics(queue_size=0, answered=2, retries=0)
    nursery.cancel_scope.cancel()


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("failure", "deliveries"),
    [("refuse to connect", 1), ("lose the request", 1), ("lose the answer", 2), ("hang", 1)],
)
async def test_after_a_failure_the_same_request_is_sent_first_over_a_new_connection(
    nursery: trio.Nursery, failure: str, deliveries: int
) -> None:
    peer = Peer(failure)
    channel, answers = make_channel(peer)
    channel.tell(("a", 1))
    nursery.start_soon(channel.run)
    await trio.sleep(0.5)
    channel.tell(("a", 2))
    await trio.sleep(100)
    assert peer.received == [{"a": 1}] * deliveries + [{"a": 2}]
    assert [request for request, _ in answers] == [{"a": 1}, {"a": 2}]
    assert peer.open_connections == 1  # the one that failed is closed
    assert channel.statistics().retries == 1
    nursery.cancel_scope.cancel()


async def test_it_tries_for_ever_with_back_off_which_a_success_resets(nursery: trio.Nursery) -> None:
    peer = Peer(*["refuse to connect"] * 10, "ok", "lose the request", "ok")
    channel, answers = make_channel(peer)
    channel.tell(("a", 1))
    nursery.start_soon(channel.run)
    with capture_logs() as logs:
        await trio.sleep(200)
    pauses = [later - earlier for earlier, later in zip(peer.attempts, peer.attempts[1:], strict=False)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10], abs=0.05)
    assert len(answers) == 1
    assert {(log["channel"], log["reason"]) for log in logs} == {("broker 1", "nobody there")}
    channel.tell(("a", 2))
    await trio.sleep(1)
    failed_at = trio.current_time()
    await trio.sleep(10)
    assert peer.attempts[-1] - failed_at == pytest.approx(0.1, abs=0.05)
    assert channel.statistics() == ChannelStatistics(queue_size=0, answered=2, retries=11)
    nursery.cancel_scope.cancel()


async def test_an_answered_error_is_the_response_and_is_not_retried(nursery: trio.Nursery) -> None:
    peer = Peer("refuse")
    channel, answers = make_channel(peer)
    nursery.start_soon(channel.run)
    channel.tell(("a", 1))
    await trio.sleep(2)
    channel.tell(("a", 2))
    await trio.sleep(2)
    assert isinstance(answers[0][1], Refused)
    assert answers[1] == ({"a": 2}, "answer 2")
    assert peer.connections == 1
    nursery.cancel_scope.cancel()


async def test_a_fault_of_ours_ends_the_run_and_the_next_one_begins_with_the_same_request() -> None:
    peer = Peer("crash")
    channel, answers = make_channel(peer)
    channel.tell(("a", 1))
    with pytest.raises(ZeroDivisionError):
        await channel.run()
    channel.tell(("a", 2))
    with trio.move_on_after(10):
        await channel.run()
    assert [request for request, _ in answers] == [{"a": 1}, {"a": 2}]


async def test_a_fault_of_who_takes_the_responses_ends_the_run_and_the_request_counts_as_answered() -> None:
    def fail(request: dict[str, int], response: str | Exception) -> None:
        raise ZeroDivisionError(request, response)

    peer = Peer()
    channel, _ = make_channel(peer, fail)
    channel.tell(("a", 1))
    for value in (2, 3):
        with pytest.raises(ZeroDivisionError):
            await channel.run()
        channel.tell(("a", value))
    assert peer.received == [{"a": 1}, {"a": 2}]
    assert peer.open_connections == 0


async def test_a_cancelled_run_goes_on_with_the_request_under_way() -> None:
    peer = Peer()
    channel, answers = make_channel(peer)
    channel.tell(("a", 1))
    with trio.move_on_after(0.5):
        await channel.run()
    assert peer.open_connections == 0
    channel.tell(("a", 2))
    with trio.move_on_after(10):
        await channel.run()
    assert [request for request, _ in answers] == [{"a": 1}, {"a": 2}]


FAILURES = ("refuse to connect", "lose the request", "lose the answer", "hang", "refuse", "ok")


@given(
    st.lists(st.sampled_from(FAILURES), max_size=12),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.3, 1.0, 40.0])), max_size=10),
)
def test_whatever_fails_the_peer_ends_up_with_the_newest_of_everything_and_never_goes_back(
    script: list[str], tells: list[tuple[str, float]]
) -> None:
    peer = Peer(*script)

    async def main() -> Answers:
        channel, answers = make_channel(peer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.run)
            for version, (key, pause) in enumerate(tells):
                channel.tell((key, version))
                await trio.sleep(pause)
            await trio.sleep(1000)
            nursery.cancel_scope.cancel()
        return answers

    answers = trio.run(main, clock=MockClock(autojump_threshold=0))
    final: dict[str, int] = {}
    for request in peer.received:
        assert all(final.get(key, -1) <= value for key, value in request.items())
        final |= request
    assert final == {key: version for version, (key, _) in enumerate(tells)}
    delivered = [request for number, request in enumerate(peer.received) if request not in peer.received[:number]]
    assert [request for request, _ in answers] == delivered  # each answered once
