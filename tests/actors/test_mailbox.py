"""The mailbox in front of a task."""

from __future__ import annotations

import threading

import pytest
import trio
from hypothesis import given, strategies as st

from actors import Mailbox, MailboxClosed, MailboxFull
from actors.mailbox import MAX_OVERTAKEN, Barrier


@pytest.fixture
async def mailbox() -> Mailbox[int]:
    return Mailbox()


async def test_items_are_received_in_the_order_in_which_they_were_put(mailbox: Mailbox[int]) -> None:
    assert [mailbox.tell(number) for number in (1, 2, 3)] == [True] * 3
    assert len(mailbox) == 3
    assert [await mailbox.receive() for _ in range(3)] == [1, 2, 3]
    assert len(mailbox) == 0


async def test_a_receiver_waits_for_an_item(mailbox: Mailbox[int], nursery: trio.Nursery) -> None:
    received = []

    async def receive() -> None:
        received.append(await mailbox.receive())

    nursery.start_soon(receive)
    await trio.testing.wait_all_tasks_blocked()
    assert received == []
    mailbox.tell(1)
    await trio.testing.wait_all_tasks_blocked()
    assert received == [1]


async def test_an_item_waits_at_most_once_per_key() -> None:
    mailbox: Mailbox[str] = Mailbox()
    assert mailbox.tell("first", key="brokers")
    assert not mailbox.tell("second", key="brokers")
    assert mailbox.tell("other", key="topics")
    assert mailbox.tell("unkeyed")
    assert mailbox.tell("unkeyed")
    assert await mailbox.receive() == "first"
    assert mailbox.tell("third", key="brokers")  # nothing of that key is waiting any more
    assert [await mailbox.receive() for _ in range(4)] == ["other", "unkeyed", "unkeyed", "third"]


@given(st.lists(st.one_of(st.none(), st.integers(0, 3))))
def test_what_is_waiting_is_bounded_by_its_keys(keys: list[int | None]) -> None:
    mailbox: Mailbox[int | None] = Mailbox()

    async def tell_all_and_receive() -> list[int | None]:
        for key in keys:
            mailbox.tell(key, key)
        return [await mailbox.receive() for _ in range(len(mailbox))]

    received = trio.run(tell_all_and_receive)
    assert received.count(None) == keys.count(None)
    assert [key for key in received if key is not None] == list(dict.fromkeys(key for key in keys if key is not None))


async def test_what_can_wait_is_overtaken_but_not_for_ever() -> None:
    mailbox: Mailbox[str] = Mailbox()
    assert mailbox.tell("patient", later=True)
    assert mailbox.put("more patient", later=True)
    for number in range(2 * MAX_OVERTAKEN + 1):
        assert mailbox.tell(str(number))
    received = [await mailbox.receive() for _ in range(len(mailbox))]
    assert [name for name in received if "patient" not in name] == [str(n) for n in range(2 * MAX_OVERTAKEN + 1)]
    assert (received[MAX_OVERTAKEN], received[2 * MAX_OVERTAKEN + 1]) == ("patient", "more patient")


async def test_a_key_is_one_for_what_can_wait_and_what_cannot() -> None:
    mailbox: Mailbox[str] = Mailbox(capacity=2)
    assert mailbox.tell("first", key="brokers", later=True)
    assert not mailbox.tell("second", key="brokers")
    assert mailbox.tell("third")
    with pytest.raises(MailboxFull):
        mailbox.tell("fourth", later=True)
    assert mailbox.close() == ["third", "first"]


async def test_items_for_later_pass_no_barrier_that_came_before_them() -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.tell(-1, later=True)
    for number in range(2 * MAX_OVERTAKEN):
        mailbox.tell(number)
    mailbox.tell(1000, barrier=Barrier.FOR_LATER)
    mailbox.tell(-2, later=True)
    for number in range(2000, 2000 + 2 * MAX_OVERTAKEN):
        mailbox.tell(number)
    order = [await mailbox.receive() for _ in range(len(mailbox))]
    assert order.index(-1) == MAX_OVERTAKEN, "it came before the barrier"
    assert order.index(-2) == order.index(1000) + 1, "it has waited for long enough"


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_items_for_later_pass_no_barrier_for_all(is_waiting: bool) -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.tell(-1, later=True)
    for number in range(2 * MAX_OVERTAKEN):
        mailbox.tell(number)
    mailbox.tell(1000, barrier=Barrier.FOR_LATER)
    if is_waiting:
        mailbox.tell(2000, key="barrier", barrier=Barrier.FOR_LATER)
    assert mailbox.tell(2000, key="barrier", barrier=Barrier.FOR_ALL) is not is_waiting
    order = [await mailbox.receive() for _ in range(len(mailbox))]
    assert order[-3:] == [1000, 2000, -1]


@pytest.mark.parametrize("ends", ["received", "withdrawn", "preempted"])
async def test_a_barrier_that_waits_no_more_holds_nothing_back(ends: str) -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.tell(0, key="barrier", barrier=Barrier.FOR_LATER)
    states = [mailbox.has_barrier]
    match ends:
        case "received":
            await mailbox.receive()
        case "withdrawn":
            assert mailbox.withdraw("barrier") == [0]
        case "preempted":
            assert mailbox.preempt_and_put(1) == [0]
    assert [*states, mailbox.has_barrier] == [True, False]
    mailbox.tell(-1, later=True)
    for number in range(2 * MAX_OVERTAKEN):
        mailbox.tell(number)
    order = [await mailbox.receive() for _ in range(len(mailbox))]
    assert order.index(-1) == MAX_OVERTAKEN


@pytest.mark.parametrize("later", [False, True])
async def test_what_is_withdrawn_is_not_received_and_frees_its_key(later: bool) -> None:
    mailbox: Mailbox[int] = Mailbox(capacity=2)
    mailbox.tell(1, key="a", later=later)
    mailbox.tell(2, key="b", later=later)
    assert mailbox.withdraw("a") == [1]
    assert mailbox.withdraw("a") == []
    assert mailbox.tell(3, key="a", later=later)
    assert [await mailbox.receive() for _ in range(2)] == [2, 3]
    assert mailbox.withdraw("b") == []


async def test_a_full_mailbox_refuses_in_trio_but_not_what_cannot_be_refused() -> None:
    mailbox: Mailbox[int] = Mailbox(capacity=2)
    mailbox.tell(1, key="a")
    mailbox.tell(2)
    with pytest.raises(MailboxFull, match="2 are waiting"):
        mailbox.tell(3, key="b")
    assert not mailbox.tell(4, key="a")  # what is merged into another one takes no room
    assert mailbox.put(5)
    assert [await mailbox.receive() for _ in range(3)] == [1, 2, 5]
    assert mailbox.tell(6, key="b")  # the key that was refused is free


async def test_preempting_returns_what_was_waiting_and_frees_its_keys() -> None:
    mailbox: Mailbox[int] = Mailbox(capacity=2)
    mailbox.tell(1, key="a")
    mailbox.tell(2)
    assert mailbox.preempt_and_put(3) == [1, 2]
    assert mailbox.tell(4, key="a")
    assert [await mailbox.receive(), await mailbox.receive()] == [3, 4]


async def test_closing_returns_what_was_waiting_and_ends_the_receivers(
    mailbox: Mailbox[int], nursery: trio.Nursery
) -> None:
    ended = []

    async def receive() -> None:
        ended.extend([item async for item in mailbox])
        ended.append(-1)

    nursery.start_soon(receive)
    mailbox.tell(1)
    await trio.testing.wait_all_tasks_blocked()
    mailbox.tell(2)
    assert mailbox.close() == [2]
    await trio.testing.wait_all_tasks_blocked()
    assert ended == [1, -1]
    assert not mailbox.tell(3)
    assert mailbox.preempt_and_put(4) == []
    with pytest.raises(MailboxClosed):
        await mailbox.receive()


async def test_a_cancelled_receiver_loses_nothing(mailbox: Mailbox[int]) -> None:
    mailbox.tell(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.receive()
    assert scope.cancelled_caught
    assert await mailbox.receive() == 1


async def test_a_receiver_that_is_cancelled_as_its_item_arrives_does_not_lose_it(
    mailbox: Mailbox[int], nursery: trio.Nursery
) -> None:
    received: list[int] = []
    scope = trio.CancelScope()

    async def receive() -> None:
        with scope:
            received.append(await mailbox.receive())

    nursery.start_soon(receive)
    await trio.testing.wait_all_tasks_blocked()
    mailbox.tell(1)
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert received == [1]


async def test_closing_wakes_every_waiting_receiver(mailbox: Mailbox[int], nursery: trio.Nursery) -> None:
    ended: list[int] = []

    async def receive(number: int) -> None:
        with pytest.raises(MailboxClosed):
            await mailbox.receive()
        ended.append(number)

    for number in (1, 2):
        nursery.start_soon(receive, number)
    await trio.testing.wait_all_tasks_blocked()
    mailbox.close()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(ended) == [1, 2]


async def test_receivers_share_the_items(mailbox: Mailbox[int], nursery: trio.Nursery) -> None:
    received: list[int] = []

    async def receive() -> None:
        received.append(await mailbox.receive())

    for _ in range(3):
        nursery.start_soon(receive)
    await trio.testing.wait_all_tasks_blocked()
    for number in (1, 2, 3):
        mailbox.tell(number)
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(received) == [1, 2, 3]


# --- foreign threads --------------------------------------------------------------------------------------------


def _in_thread(function: object) -> None:
    assert callable(function)
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


async def test_a_foreign_thread_puts_items_in_order(mailbox: Mailbox[int]) -> None:
    told: list[bool] = []
    await trio.to_thread.run_sync(lambda: told.extend(mailbox.tell(number) for number in range(100)))
    assert told == [True] * 100
    assert [await mailbox.receive() for _ in range(100)] == list(range(100))


async def test_a_foreign_thread_wakes_a_waiting_receiver(mailbox: Mailbox[int], nursery: trio.Nursery) -> None:
    release = threading.Event()

    def tell_later() -> None:
        release.wait()
        mailbox.tell(1)

    nursery.start_soon(trio.to_thread.run_sync, tell_later)
    nursery.start_soon(trio.to_thread.run_sync, release.set)
    assert await mailbox.receive() == 1


async def test_items_of_a_foreign_thread_are_merged_by_key_and_not_refused() -> None:
    mailbox: Mailbox[int] = Mailbox(capacity=1)

    def tell() -> None:
        assert mailbox.tell(1, key="a")
        assert mailbox.tell(2, key="a")  # only trio knows that it will be merged
        assert mailbox.tell(3)

    await trio.to_thread.run_sync(tell)
    assert [await mailbox.receive(), await mailbox.receive()] == [1, 3]
    assert len(mailbox) == 0


def test_a_mailbox_made_outside_of_trio_lets_foreign_threads_in_once_bound() -> None:
    mailbox: Mailbox[int] = Mailbox()
    with pytest.raises(RuntimeError, match=r"call bind\(\)"):
        mailbox.tell(0)

    async def main() -> list[int]:
        mailbox.bind()
        await trio.to_thread.run_sync(mailbox.tell, 1)
        mailbox.tell(2)
        return [await mailbox.receive(), await mailbox.receive()]

    assert trio.run(main) == [1, 2]


def test_what_a_foreign_thread_tells_after_the_end_of_trio_is_dropped_quietly() -> None:
    async def make() -> Mailbox[int]:
        await trio.lowlevel.checkpoint()
        return Mailbox()

    mailbox = trio.run(make)
    _in_thread(lambda: mailbox.tell(1))
    assert len(mailbox) == 0
