"""Blocks that wait for several brokers are taken as they are, unless something newer concerns one of their entries."""

from __future__ import annotations

from attrs import define, field
from hypothesis import event, given, strategies as st
from msgspec.structs import replace

from controller.channels.blocks import Block, Key, key_of, newer_state, topic_of
from controller.channels.waiting import Waiting
from transport.messages import PartitionState
from transport.messages.shared import SharedRows

STATE = PartitionState("orders", "id-1", 0, 1, 1, 1, (1, 2), 1, (1, 2))
LIMIT = 40
"""With twenty small blocks in a request, those of two entries are not small."""


def state(number: int, epoch: int = 1, topic: str = "orders") -> PartitionState:
    return replace(STATE, topic=topic, partition=number, leader_epoch=epoch)


def block(*states: PartitionState) -> Block[PartitionState]:
    return Block(SharedRows(states), key_of, topic_of)


def numbers(*of: int) -> Block[PartitionState]:
    return block(*map(state, of))


def waiting(*blocks: Block[PartitionState], limit: int = LIMIT) -> Waiting[PartitionState]:
    found = Waiting[PartitionState](limit)
    for each in blocks:
        found.add([each], newer_state)
    return found


def test_a_block_is_taken_as_it_is() -> None:
    shared = numbers(0, 1, 2)
    assert waiting(shared).take(LIMIT) is shared.rows


def test_blocks_leave_together_as_far_as_a_request_has_room_and_are_not_packed_again() -> None:
    first, second, third = numbers(*range(15)), numbers(*range(15, 30)), numbers(*range(30, 45))
    found = waiting(first, second, third)
    taken = found.take(LIMIT)
    assert taken == first.rows + second.rows
    packed: list[int] = []

    def pack(row: PartitionState) -> bytes:
        packed.append(row.partition)
        return b"x"

    assert isinstance(taken, SharedRows)
    taken.pieces("form", pack)
    first.rows.pieces("form", pack)
    assert packed == list(range(30))
    assert found.take(LIMIT) is third.rows
    assert not found


def test_a_newer_entry_takes_the_place_of_an_older_one() -> None:
    shared = numbers(0, 1, 2)
    found = waiting(shared, block(state(1, 2), state(3)))
    assert len(found) == 4
    assert found.take(LIMIT) == (state(0), state(1, 2), state(2), state(3))
    assert shared.rows == (state(0), state(1), state(2)), "other brokers have this block as well"


def test_small_blocks_become_one_list() -> None:
    found = waiting(*(numbers(n) for n in range(50)))
    assert found.take(LIMIT) == tuple(map(state, range(LIMIT)))
    assert found.take(LIMIT) == tuple(map(state, range(LIMIT, 50)))


def test_a_block_with_an_entry_that_stays_behind_is_passed() -> None:
    held, free = numbers(0, 1), block(state(0, topic="paid"), state(1, topic="paid"))
    found = waiting(held, free)
    assert found.take(LIMIT, {key_of(state(1))}) is free.rows
    assert found.take(LIMIT, waiting(numbers(1))) == (state(0),)
    assert found.take(LIMIT, {key_of(state(1))}) == ()
    assert found.take(LIMIT) == (state(1),)


def test_entries_that_are_not_kept_leave_their_block() -> None:
    shared = numbers(0, 1)
    found = waiting(shared, numbers(2, 3))
    found.keep(lambda each: each.partition != 1)
    assert list(found) == [key_of(state(n)) for n in (0, 2, 3)]
    assert len(shared) == 2


def test_a_block_that_is_too_large_for_a_request_is_taken_in_parts() -> None:
    found = waiting(numbers(*range(5)), limit=2)
    assert [len(found.take(2)) for _ in range(4)] == [2, 2, 1, 0]


@define
class OneByOne:
    """The entries that wait, without blocks."""

    entries: dict[Key, PartitionState] = field(factory=dict)

    def add(self, states: list[PartitionState]) -> None:
        for each in states:
            key = key_of(each)
            before = self.entries.get(key)
            self.entries[key] = each if before is None else newer_state(before, each)

    def free(self, behind: set[Key]) -> list[Key]:
        return [key for key in self.entries if key not in behind]


keys = st.tuples(st.sampled_from(["orders", "paid"]), st.integers(0, 9))
blocks = st.dictionaries(keys, st.integers(1, 3), min_size=1, max_size=8)
publications = st.lists(blocks, min_size=1, max_size=3)
takes = st.sets(keys)
"""The keys that have to stay behind."""


@given(st.lists(st.one_of(publications, takes), max_size=30), st.sampled_from([1, 5, 20, 200]))
def test_what_waits_in_blocks_is_what_waits_one_by_one(
    script: list[list[dict[Key, int]] | set[Key]], limit: int
) -> None:
    found, oracle = Waiting[PartitionState](limit), OneByOne()
    for entry in script:
        if isinstance(entry, set):
            take(found, oracle, entry, limit)
        else:
            publish(found, oracle, entry)
        assert set(found) == oracle.entries.keys()
        assert len(found) == len(oracle.entries)
        assert bool(found) == bool(oracle.entries)
        assert set(found.topics()) == {topic for topic, _ in oracle.entries}
    while oracle.entries:
        take(found, oracle, set(), limit)


def publish(found: Waiting[PartitionState], oracle: OneByOne, published: list[dict[Key, int]]) -> None:
    """Add blocks that have no key in common."""
    known: set[Key] = set()
    added = []
    for each in published:
        states = [
            state(number, epoch, topic) for (topic, number), epoch in each.items() if (topic, number) not in known
        ]
        known.update(each)
        oracle.add(states)
        added += [block(*states)] if states else []
    found.add(added, newer_state)


def take(found: Waiting[PartitionState], oracle: OneByOne, behind: set[Key], limit: int) -> None:
    """Compare what is taken: as it is alone, never what has to stay behind, and something if there is anything."""
    taken, free = found.take(limit, behind), oracle.free(behind)
    assert len(taken) <= limit
    assert bool(taken) == bool(free)
    event("a part" if len(taken) < len(free) else "all")
    if len(free) <= limit and not behind.intersection(oracle.entries):
        # Blocks are never the reason for more requests if all has room in one.
        assert [key_of(each) for each in taken] == free
    for each in taken:
        assert key_of(each) not in behind
        assert oracle.entries.pop(key_of(each)) == each
