"""Changes of the store become events, and consecutive changes of topics' znodes become one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import define, field
from trio.testing import MockClock

from controller.events import ControllerEvent, PartitionModifications, Reload, TopicChange
from controller.gathered import LOOKED_AT_TOGETHER
from controller.node.quarantine import FAULTS, WINDOW_SECONDS, Quarantine, refuse
from controller.node.store_changes import StoreChanges
from transport.store import paths


@define
class Queue:
    """An event queue as seen from its entry, and the changes that are to enter it."""

    waiting: list[ControllerEvent] = field(factory=list)
    quarantine: Quarantine = field(factory=Quarantine)
    changes: StoreChanges = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.changes = StoreChanges(self._tell, self.quarantine)

    def _tell(self, event: ControllerEvent) -> bool:
        if event in self.waiting:
            return False
        self.waiting.append(event)
        return True

    def fire(self, *names: str) -> None:
        """Fire the watches of topics' znodes."""
        for name in names:
            self.changes.fired(paths.topic(name))

    def take(self) -> list[Sequence[str] | ControllerEvent]:
        """Process all events: return those about topics as their names, and others as they are."""
        taken, self.waiting = self.waiting, []
        return [
            (event.topic, *event.more.close()) if isinstance(event, PartitionModifications) else event
            for event in taken
        ]


async def test_consecutive_changes_of_topics_are_one_event() -> None:
    queue = Queue()
    queue.fire("a", "b", "c", "b")
    assert queue.take() == [("a", "b", "c")]


async def test_what_changed_in_between_keeps_its_place() -> None:
    queue = Queue()
    queue.fire("a", "b")
    queue.changes.fired(paths.TOPICS)
    queue.fire("c", "d")
    queue.changes.queue(Reload())
    queue.fire("e")
    assert queue.take() == [("a", "b"), TopicChange(), ("c", "d"), Reload(), ("e",)]


async def test_no_topic_joins_an_event_that_is_being_processed() -> None:
    queue = Queue()
    queue.fire("a", "b")
    queue.take()
    queue.fire("c", "d")
    assert queue.take() == [("c", "d")]


async def test_no_topic_joins_an_event_that_was_dropped() -> None:
    queue = Queue()
    queue.fire("a")
    queue.waiting.pop().preempt()
    queue.fire("b")
    assert queue.take() == [("b",)]


async def test_no_topic_joins_an_event_that_waited_already() -> None:
    queue = Queue()
    queue.fire("a", "a", "b")
    assert queue.take() == [("a",), ("b",)]


async def test_a_change_of_the_first_topic_while_the_event_is_processed_is_another_event() -> None:
    queue = Queue()
    queue.fire("a")
    queue.take()
    queue.fire("a")
    assert queue.take() == [("a",)]


async def test_an_event_has_room_for_so_many_topics() -> None:
    queue = Queue()
    names = [f"topic-{number}" for number in range(2 * LOOKED_AT_TOGETHER + 1)]
    queue.fire(*names)
    taken = queue.take()
    assert [len(each) for each in taken if isinstance(each, tuple)] == [LOOKED_AT_TOGETHER, LOOKED_AT_TOGETHER, 1]
    assert [name for each in taken if isinstance(each, tuple) for name in each] == names


# --- faults -----------------------------------------------------------------------------------------------------


async def test_a_fault_of_one_topic_is_its_own_and_of_several_it_is_nobodys() -> None:
    alone, together = PartitionModifications("a"), PartitionModifications("a")
    together.more.add("b")
    assert (alone.subject, together.subject) == ("a", None)
    together.more.close()
    assert together.subject is None


async def test_after_a_fault_topics_are_looked_at_one_by_one_for_a_while(autojump_clock: MockClock) -> None:
    queue = Queue()
    queue.quarantine.fault(None, autojump_clock.current_time())
    queue.fire("a", "b")
    assert queue.take() == [("a",), ("b",)]
    autojump_clock.jump(WINDOW_SECONDS + 1)
    queue.fire("a", "b")
    assert queue.take() == [("a", "b")]


@pytest.mark.parametrize("names", ["ab", "ba"])
async def test_a_topic_that_is_set_aside_is_alone(names: str, autojump_clock: MockClock) -> None:
    queue = Queue()
    for _ in range(FAULTS):
        queue.quarantine.fault("a", autojump_clock.current_time())
    autojump_clock.jump(WINDOW_SECONDS + 1)
    queue.fire(*names)
    assert queue.take() == [(name,) for name in names]


async def test_no_topic_joins_an_event_that_was_refused() -> None:
    queue = Queue()
    queue.fire("a")
    refuse(queue.waiting.pop())
    queue.fire("b")
    assert queue.take() == [("b",)]
