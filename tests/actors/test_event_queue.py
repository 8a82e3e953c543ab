"""The event-queue actor."""

from __future__ import annotations

from collections.abc import Hashable

import attrs
import pytest
import trio
from attrs import define, field

from actors import Actor, Event, EventQueue, EventStatistics, MailboxFull

pytestmark = pytest.mark.usefixtures("autojump_clock")


@define(eq=False)
class Note:
    """An event that takes `seconds`, and notes what becomes of it."""

    name: str
    key: Hashable | None = None
    seconds: float = 0.0
    fate: list[str] = field(factory=list)

    def preempt(self) -> None:
        self.fate.append("preempted")


async def process(note: Note) -> None:
    note.fate.append("begun")
    await trio.sleep(note.seconds)
    if note.name == "bad":
        raise ZeroDivisionError
    note.fate.append("processed")


async def drain(queue: EventQueue[Note]) -> None:
    """Run a queue until nothing is left in it, on a virtual clock."""
    with trio.move_on_after(100):
        await queue.run()


class EventRecorder:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, float]] = []

    def started(self, event: Note, queued_seconds: float) -> None:
        self.seen.append(("started", event.name, round(queued_seconds, 3)))

    def finished(self, event: Note, seconds: float) -> None:
        self.seen.append(("finished", event.name, round(seconds, 3)))


async def test_it_is_an_actor_for_events() -> None:
    queue: Actor[Note] = EventQueue(process)
    event: Event = Note("a")
    assert isinstance(event, Note)
    assert queue.tell(event)


@pytest.mark.requirement("E1")
async def test_events_are_processed_one_at_a_time_in_the_order_in_which_they_came() -> None:
    recorder = EventRecorder()
    queue: EventQueue[Note] = EventQueue(process, observer=recorder)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("c", 2.0)):
        assert queue.tell(Note(name, seconds=seconds))
    await drain(queue)
    assert recorder.seen == [
        ("started", "a", 0),
        ("finished", "a", 3),
        ("started", "b", 3),
        ("finished", "b", 1),
        ("started", "c", 4),
        ("finished", "c", 2),
    ]


@pytest.mark.requirement("E1")
async def test_an_event_that_can_wait_does_so_while_others_come() -> None:
    recorder = EventRecorder()
    queue: EventQueue[Note] = EventQueue(process, observer=recorder)
    queue.tell(Note("patient", seconds=1), later=True)
    queue.tell(Note("more patient", seconds=1), later=True)
    queue.tell(Note("a", seconds=1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, queue)
        await trio.sleep(1.5)
        queue.tell(Note("b"))
    names = [name for what, name, _ in recorder.seen if what == "started"]
    assert names == ["a", "patient", "b", "more patient"]


@pytest.mark.requirement("E1")
async def test_there_is_a_barrier_while_one_is_queued_or_processed(nursery: trio.Nursery) -> None:
    queue: EventQueue[Note] = EventQueue(process, is_barrier=lambda note: note.name == "barrier")
    queue.tell(Note("a", seconds=1.0))
    assert not queue.has_barrier
    queue.tell(Note("barrier", seconds=1.0))
    queue.tell(Note("b", seconds=1.0))
    nursery.start_soon(queue.run)
    seen = []
    for _ in range(3):
        await trio.sleep(0.9)
        seen.append(queue.has_barrier)
        await trio.sleep(0.1)
    assert seen == [True, True, False]
    queue.preempt_and_put(Note("barrier"))
    assert queue.has_barrier


async def test_a_withdrawn_event_is_preempted_unless_its_turn_has_come() -> None:
    queue: EventQueue[Note] = EventQueue(process)
    begun, waiting, kept = (Note(name, key=name, seconds=1) for name in ("begun", "waiting", "kept"))
    for note in (begun, waiting, kept):
        queue.tell(note, later=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, queue)
        await trio.sleep(0.5)
        for note in (begun, waiting, waiting):
            queue.withdraw(note)
    queue.withdraw(kept)
    assert (begun.fate, waiting.fate, kept.fate) == (["begun", "processed"], ["preempted"], ["begun", "processed"])


@pytest.mark.requirement("E1")
async def test_events_that_come_next_join_as_long_as_they_may() -> None:
    joined: list[tuple[str, str]] = []

    def joins(event: Note, later: Note) -> bool:
        may_join = later.name.startswith(event.name)
        joined.extend([(event.name, later.name)] if may_join else [])
        return may_join

    recorder = EventRecorder()
    queue: EventQueue[Note] = EventQueue(process, observer=recorder, joins=joins)
    queue.tell(Note("a patient one"), later=True)
    for name in ("a", "a1", "a2", "b", "a3"):
        queue.tell(Note(name))
    await drain(queue)
    assert joined == [("a", "a1"), ("a", "a2")]
    assert [name for what, name, _ in recorder.seen if what == "started"] == ["a", "b", "a3", "a patient one"]


@pytest.mark.requirement("E1")
async def test_queue_and_processing_time_are_counted_by_event_name() -> None:
    queue: EventQueue[Note] = EventQueue(process)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("a", 2.0)):
        queue.tell(Note(name, seconds=seconds))
    assert queue.statistics() == {}
    await drain(queue)
    queue.tell(Note("b", seconds=0.5))
    await drain(queue)
    rounded = {
        name: EventStatistics(*(round(value, 3) for value in attrs.astuple(statistics)))
        for name, statistics in queue.statistics().items()
    }
    assert rounded == {"a": EventStatistics(2, 4, 4, 5, 3), "b": EventStatistics(2, 3, 3, 1.5, 1)}
    queue.statistics()["a"].count = 99  # a copy
    assert queue.statistics()["a"].count == 2


async def test_an_event_is_queued_at_most_once_per_key_and_again_while_it_is_processed(nursery: trio.Nursery) -> None:
    proceed = trio.Event()
    begun: list[Note] = []

    async def process_slowly(note: Note) -> None:
        begun.append(note)
        await proceed.wait()

    queue: EventQueue[Note] = EventQueue(process_slowly)
    first, merged, again = (Note("topics", key="topics") for _ in range(3))
    assert queue.tell(first)
    assert not queue.tell(merged)
    await nursery.start(queue.run)
    await trio.testing.wait_all_tasks_blocked()
    assert queue.tell(again)  # the change may have come after the first one looked
    proceed.set()
    await trio.testing.wait_all_tasks_blocked()
    assert begun == [first, again]
    assert merged.fate == []  # covered by the first one, and so neither processed nor preempted
    queue.close()


async def test_a_full_queue_refuses() -> None:
    queue: EventQueue[Note] = EventQueue(process, capacity=1)
    kept, refused = Note("a"), Note("b")
    queue.tell(kept)
    with pytest.raises(MailboxFull):
        queue.tell(refused)
    await drain(queue)
    assert kept.fate == ["begun", "processed"]
    assert refused.fate == []  # the caller knows


@pytest.mark.requirement("E1")
async def test_preempting_drops_all_that_is_queued_and_lets_the_running_event_end(nursery: trio.Nursery) -> None:
    queue: EventQueue[Note] = EventQueue(process)
    running, dropped, keyed, expiry, later = (Note(str(n), seconds=5) for n in range(5))
    keyed.key = later.key = "k"
    nursery.start_soon(queue.run)
    queue.tell(running)
    await trio.sleep(1)
    queue.tell(dropped)
    queue.tell(keyed)
    queue.preempt_and_put(expiry)
    assert dropped.fate == keyed.fate == ["preempted"]
    assert queue.tell(later)
    await trio.sleep(60)
    assert running.fate == expiry.fate == later.fate == ["begun", "processed"]
    assert dropped.fate == keyed.fate == ["preempted"]
    queue.close()


@pytest.mark.requirement("E1")
async def test_preempting_cancels_the_running_event_if_asked_to(nursery: trio.Nursery) -> None:
    recorder = EventRecorder()
    queue: EventQueue[Note] = EventQueue(process, observer=recorder)
    running, dropped, expiry = Note("running", seconds=50), Note("dropped"), Note("expiry", seconds=2)
    nursery.start_soon(queue.run)
    queue.tell(running)
    await trio.sleep(1)
    queue.tell(dropped)
    queue.preempt_and_put(expiry, cancel_running=True)
    await trio.sleep(10)
    assert running.fate == ["begun", "preempted"]
    assert dropped.fate == ["preempted"]
    assert expiry.fate == ["begun", "processed"]
    assert recorder.seen == [
        ("started", "running", 0),
        ("finished", "running", 1),
        ("started", "expiry", 0),
        ("finished", "expiry", 2),
    ]
    queue.preempt_and_put(Note("idle"), cancel_running=True)  # with nothing to cancel
    queue.close()


async def test_an_event_that_ends_in_spite_of_its_cancellation_counts_as_processed(nursery: trio.Nursery) -> None:
    async def finish_first(note: Note) -> None:
        with trio.CancelScope(shield=True):
            await proceed.wait()
        note.fate.append("processed")

    proceed = trio.Event()
    queue: EventQueue[Note] = EventQueue(finish_first)
    running = Note("running")
    queue.tell(running)
    nursery.start_soon(queue.run)
    await trio.testing.wait_all_tasks_blocked()
    queue.preempt_and_put(Note("expiry"), cancel_running=True)
    proceed.set()
    await trio.testing.wait_all_tasks_blocked()
    assert running.fate == ["processed"]
    queue.close()


async def test_a_fault_ends_the_run_and_leaves_the_rest_for_the_next_one() -> None:
    recorder = EventRecorder()
    queue: EventQueue[Note] = EventQueue(process, observer=recorder)
    bad, left = Note("bad"), Note("left")
    queue.tell(bad)
    queue.tell(left)
    with pytest.raises(ZeroDivisionError):
        await queue.run()
    assert bad.fate == ["begun", "preempted"]
    assert left.fate == []
    assert [step for step, *_ in recorder.seen] == ["started", "finished"]
    assert queue.statistics()["bad"].count == 1
    await drain(queue)
    assert left.fate == ["begun", "processed"]


async def test_cancelling_the_run_preempts_the_running_event_and_leaves_the_rest() -> None:
    async def process_in_a_nursery(note: Note) -> None:
        async with trio.open_nursery() as nursery:  # which wraps what it raises
            nursery.start_soon(process, note)

    queue: EventQueue[Note] = EventQueue(process_in_a_nursery)
    running, left = Note("running", seconds=50), Note("left")
    queue.tell(running)
    queue.tell(left)
    with trio.move_on_after(1) as scope:
        await queue.run()
    assert scope.cancelled_caught
    assert running.fate == ["begun", "preempted"]
    assert left.fate == []
    assert len(queue) == 1


async def test_closing_preempts_what_is_queued_and_what_comes_later_and_lets_the_running_event_end(
    nursery: trio.Nursery,
) -> None:
    queue: EventQueue[Note] = EventQueue(process)
    running, queued, later, last = (Note(str(n), seconds=5) for n in range(4))
    ended = trio.Event()

    async def run() -> None:
        await queue.run()
        ended.set()

    nursery.start_soon(run)
    queue.tell(running)
    await trio.sleep(1)
    queue.tell(queued)
    queue.close()
    assert not queue.tell(later)
    queue.preempt_and_put(last, cancel_running=True)
    await ended.wait()
    assert running.fate == ["begun", "processed"]
    assert queued.fate == later.fate == last.fate == ["preempted"]


@pytest.mark.requirement("E1")
async def test_foreign_threads_may_tell_events(nursery: trio.Nursery) -> None:
    processed: list[str] = []
    all_done = trio.Event()

    async def collect(note: Note) -> None:
        await trio.lowlevel.checkpoint()
        processed.append(note.name)
        if note.name == "99":
            all_done.set()

    queue: EventQueue[Note] = EventQueue(collect, capacity=1)
    await nursery.start(queue.run)

    def tell_all() -> None:
        assert all(queue.tell(Note(str(number))) for number in range(100))

    await trio.to_thread.run_sync(tell_all)
    await all_done.wait()
    assert processed == [str(number) for number in range(100)]
    assert queue.statistics()["7"].count == 1
    queue.close()


async def test_what_a_foreign_thread_tells_a_closed_queue_is_preempted_in_trio() -> None:
    queue: EventQueue[Note] = EventQueue(process)
    queue.close()
    late = Note("late")
    assert await trio.to_thread.run_sync(queue.tell, late)
    await trio.testing.wait_all_tasks_blocked()
    assert late.fate == ["preempted"]


def test_a_queue_made_outside_of_trio_is_bound_before_foreign_threads_use_it() -> None:
    async def process_and_close(note: Note) -> None:
        await process(note)
        queue.close()

    async def main() -> None:
        queue.bind()
        await trio.to_thread.run_sync(queue.tell, note)
        await queue.run()

    queue: EventQueue[Note] = EventQueue(process_and_close)
    note = Note("a")
    with pytest.raises(RuntimeError, match=r"call bind\(\)"):
        queue.tell(note)
    trio.run(main)
    assert note.fate == ["begun", "processed"]


async def test_it_is_idle_while_nothing_waits_and_nothing_is_processed() -> None:
    queue = EventQueue(process)
    seen = [queue.is_idle]
    queue.tell(Note("a", seconds=1))
    seen.append(queue.is_idle)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, queue)
        await trio.sleep(0.5)
        seen.append(queue.is_idle)
        await trio.sleep(1)
        seen.append(queue.is_idle)
        nursery.cancel_scope.cancel()
    assert seen == [True, False, False, True]
