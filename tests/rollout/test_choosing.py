"""The moves that begin next: limits hold, nothing starves, and each wait is told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import evolve
from hypothesis import given, strategies as st

from controller.rollout.backlog import Backlog
from controller.rollout.choosing import Choice, Hold, InFlight, Limits, Standing, choose
from controller.rollout.moves import Move
from controller.rollout.room import Disk
from controller.rollout.waiting import Reason, Wait
from transport.metadata import TopicPartition

BROKERS = range(1, 7)
WIDE = Limits(100, 100, 100, 100)


def move(partition: int, before: Sequence[int], after: Sequence[int], size: int = 10) -> Move:
    return Move("t", partition, tuple(before), tuple(after), size)


def standing(moves: Iterable[Move], **more: object) -> Standing:
    return Standing({each.tp: each.before[0] for each in moves}, **more)  # type: ignore[arg-type]


def flying(*moves: Move) -> list[InFlight]:
    return [InFlight(each) for each in moves]


def begun(choice: Choice) -> list[int]:
    return [each.partition for each in choice.begin]


def wait_of(choice: Choice, partition: int) -> Wait:
    return choice.waits[TopicPartition("t", partition)]


# --- one limit after the other ------------------------------------------------------------------------------------


def test_a_broker_receives_no_more_than_the_limit() -> None:
    moves = [move(n, [n], [9]) for n in range(1, 5)]
    choice = choose(moves, [], evolve(WIDE, into=2), standing(moves))
    assert begun(choice) == [1, 2]
    assert wait_of(choice, 3) == Wait(Reason.INTO, 9, most=2)
    assert str(wait_of(choice, 3)) == "broker 9 receives 2 replicas, the most at once"
    assert str(evolve(wait_of(choice, 3), most=1)) == "broker 9 receives 1 replica, the most at once"


def test_a_broker_sends_no_more_than_the_limit() -> None:
    moves = [move(n, [1, 2], [1, 2 + n]) for n in range(1, 5)]
    choice = choose(moves, [], evolve(WIDE, out_of=2), standing(moves))
    assert begun(choice) == [1, 2]
    assert wait_of(choice, 4) == Wait(Reason.OUT_OF, 1, most=2)


def test_nothing_that_needs_room_begins_before_its_brokers_have_answered() -> None:
    moves = [move(1, [1], [8]), move(2, [2], [9]), move(3, [3], [9], size=-1), move(4, [9, 4], [4, 9])]
    choice = choose(moves, [], evolve(WIDE, into=1), standing(moves, awaited={9}))
    assert begun(choice) == [1, 3, 4]
    assert str(wait_of(choice, 2)) == "broker 9 has been asked for the room on its disks"


def test_leaders_of_a_broker_are_not_all_moved_at_once() -> None:
    moves = [move(n, [1, 2], [2, 2 + n]) for n in range(1, 7)]
    choice = choose(moves, [], WIDE, standing(moves, led={1: 6}))
    assert begun(choice) == [1, 2, 3]
    assert wait_of(choice, 4) == Wait(Reason.LEADERS, 1, most=3)
    alone = choose(moves[:1], [], WIDE, standing(moves, led={1: 1}))
    assert begun(alone) == [1]


def test_a_move_larger_than_the_limit_of_bytes_goes_alone() -> None:
    moves = [move(1, [1], [2], 50), move(2, [3], [4], 500), move(3, [5], [6], 50)]
    limits = evolve(WIDE, bytes=100)
    choice = choose(moves, [], limits, standing(moves))
    assert begun(choice) == [1]
    assert wait_of(choice, 2) == Wait(Reason.BYTES, most=100)
    assert begun(choose(moves[1:], [], limits, standing(moves))) == [2]


def test_a_move_waits_for_room() -> None:
    moves = [move(n, [n], [9], 40) for n in range(1, 4)]
    choice = choose(moves, [], WIDE, standing(moves, disks={9: Disk(100, 100)}))
    assert begun(choice) == [1, 2]
    assert wait_of(choice, 3) == Wait(Reason.ROOM, 9, 20, 40)


def test_what_has_begun_before_takes_room() -> None:
    moves = [move(n, [n], [9], 40) for n in range(1, 4)]
    choice = choose(moves[1:], [], WIDE, standing(moves, disks={9: Disk(100, 100)}, taken=moves[:1]))
    assert begun(choice) == [2]


def test_a_move_waits_for_room_in_the_directory_that_the_plan_names() -> None:
    moves = [move(n, [n], [9], 40) for n in range(1, 4)]
    named = {(each.tp, 9): path for each, path in zip(moves, ("/a", "/b", "/b"), strict=True)}
    choice = choose(moves, [], WIDE, standing(moves, disks={9: Disk(160, 100, {"/a": 60, "/b": 70})}, to=named))
    assert begun(choice) == [1, 2]
    assert wait_of(choice, 3) == Wait(Reason.ROOM, 9, 30, 40, " in /b")
    assert str(wait_of(choice, 3)) == "broker 9 has room for 30 bytes in /b, and it needs 40"


def test_a_move_to_a_dead_broker_waits_and_nobody_waits_for_it() -> None:
    moves = [move(1, [1], [9]), move(2, [1], [8])]
    choice = choose(moves, [], Limits(1, 1, 1, 2), standing(moves, dead={9}))
    assert begun(choice) == [2]
    assert str(wait_of(choice, 1)) == "broker 9 is not alive"


def test_without_a_leader_nothing_is_copied_but_an_order_may_change() -> None:
    moves = [move(1, [1], [9]), move(2, [1, 2], [2, 1])]
    choice = choose(moves, [], WIDE, Standing())
    assert begun(choice) == [2]
    assert wait_of(choice, 1).reason is Reason.NO_LEADER


# --- order --------------------------------------------------------------------------------------------------------


def test_urgent_moves_come_first() -> None:
    moves = [move(n, [n], [9]) for n in range(1, 4)]
    choice = choose(moves, [], evolve(WIDE, into=1), standing(moves, urgent={moves[2].tp}))
    assert begun(choice) == [3]


def test_a_hold_lets_only_urgent_moves_begin_if_they_are_the_cure() -> None:
    moves = [move(n, [n], [9]) for n in range(1, 3)]
    cure, stop = Hold("under min ISR", spares_urgent=True), Hold("the file is there")
    choice = choose(moves, [], WIDE, standing(moves, urgent={moves[1].tp}, hold=cure))
    assert (begun(choice), str(wait_of(choice, 1))) == ([2], "under min ISR")
    assert begun(choose(moves, [], WIDE, standing(moves, urgent={moves[1].tp}, hold=stop))) == []


def test_the_first_that_waits_keeps_its_turn() -> None:
    wide, small = move(1, [1], [8, 9]), move(2, [2], [8])
    ahead = move(3, [3], [9])
    limits = evolve(WIDE, into=1)
    choice = choose([wide, small], flying(ahead), limits, standing([wide, small, ahead]))
    assert begun(choice) == []
    assert wait_of(choice, 2).reason is Reason.INTO


def test_nobody_keeps_a_turn_behind_a_move_that_is_stuck() -> None:
    wide, small = move(1, [1], [8, 9]), move(2, [2], [8])
    stuck = InFlight(move(3, [3], [9]), is_stalled=True)
    choice = choose([wide, small], [stuck], evolve(WIDE, into=1), standing([wide, small, stuck.move]))
    assert begun(choice) == [2]


# --- properties ---------------------------------------------------------------------------------------------------


replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)
moves_drawn = st.lists(st.tuples(replica_lists, replica_lists, st.integers(0, 50)), min_size=1, max_size=60).map(
    lambda rows: [move(n, *row) for n, row in enumerate(rows)]
)
limits_drawn = st.builds(
    Limits,
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 12),
    st.none() | st.integers(10, 100),
)


def assert_within(limits: Limits, in_flight: Sequence[Move], state: Standing) -> None:
    """Count again, by other means, what is in flight at each broker."""
    into = Counter(broker for each in in_flight for broker in set(each.after) - set(each.before))
    out = Counter(state.leader(each) for each in in_flight if set(each.after) - set(each.before))
    leaving = Counter(state.leader(each) for each in in_flight if state.leader(each) not in each.after)
    assert max(into.values(), default=0) <= limits.into
    assert max(out.values(), default=0) <= limits.out_of
    assert all(count <= min(limits.leaders, max(state.led[b] // 2, 1)) for b, count in leaving.items())
    assert len(in_flight) <= limits.in_all
    with_bytes = [each.bytes for each in in_flight if each.bytes]
    assert limits.bytes is None or len(with_bytes) <= 1 or sum(with_bytes) <= limits.bytes


def run(moves: Sequence[Move], limits: Limits, rng: random.Random) -> int:
    """Carry out moves, which end in any order; return the number of choices."""
    state = standing(moves, led=Counter(each.before[0] for each in moves), urgent={each.tp for each in moves[::7]})
    backlog, numbers = Backlog.of(moves), {each.tp: n for n, each in enumerate(moves)}
    in_flight: list[Move] = []
    choices = 0
    while backlog or in_flight:
        choices += 1
        candidates = [moves[n] for n in backlog.candidates(width=4)]
        choice = choose(candidates, flying(*in_flight), limits, state)
        assert {each.tp for each in candidates} == {each.tp for each in choice.begin} | choice.waits.keys()
        for each in choice.begin:
            backlog.take(numbers[each.tp])
        in_flight += choice.begin
        assert_within(limits, in_flight, state)
        assert in_flight
        in_flight.pop(rng.randrange(len(in_flight)))
    return choices


@given(moves_drawn, limits_drawn, st.randoms(use_true_random=False))
def test_limits_hold_at_every_moment_and_all_moves_are_made(
    moves: list[Move], limits: Limits, rng: random.Random
) -> None:
    assert run(moves, limits, rng) <= len(moves)


@given(st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_wide_move_starves_behind_no_stream_of_small_ones(into: int, out_of: int, rng: random.Random) -> None:
    wide = move(0, [1], BROKERS)
    small = [move(n, [n % 6 + 1], [(n + 1) % 6 + 1]) for n in range(1, 200)]
    limits = Limits(into, out_of, 100, 100)
    state = standing([wide, *small])
    in_flight = list(choose(small[:30], [], limits, state).begin)

    def full() -> set[int]:
        """Return the brokers that have no place for the wide move, its leader as 0."""
        received = Counter(broker for each in in_flight for broker in each.adding)
        has_sent_enough = sum(each.before == wide.before for each in in_flight) >= out_of
        return {broker for broker in wide.adding if received[broker] >= into} | ({0} if has_sent_enough else set())

    left = [each for each in small if each not in in_flight]
    while wide not in in_flight:
        in_flight.pop(rng.randrange(len(in_flight)))
        waits_for = full()
        choice = choose([wide, *left], flying(*in_flight), limits, state)
        in_flight += choice.begin
        left = [each for each in left if each not in choice.begin]
        # A place that became free is kept for it.
        assert wide in in_flight or full() <= waits_for


def test_a_move_in_flight_to_a_dead_broker_uses_up_no_limit_but_those_of_what_it_still_copies() -> None:
    kept_dead = Move("t", 3, (1, 9), (3, 9), 100)
    alive = {1, 2, 3, 4}.__contains__
    waiting = InFlight.of(kept_dead, alive, (1,), is_stalled=False)
    complete = InFlight.of(kept_dead, alive, (1, 3), is_stalled=False)
    assert (waiting.awaits, waiting.receivers) == (9, (3,))
    assert (complete.awaits, complete.receivers) == (9, ())
    one, other = Move("t", 0, (1, 2), (3, 2), 100), Move("t", 1, (2, 1), (4, 1), 100)
    leaders = Standing({kept_dead.tp: 1, one.tp: 1, other.tp: 2}, dead={9})
    limits = Limits(into=1, out_of=1, leaders=1, in_all=1, bytes=100)
    choice = choose([one], [complete], limits, leaders)
    assert choice.begin == (one,)
    assert str(choice.waits[kept_dead.tp]) == (
        "broker 9 is not alive, and moves in flight end once it is in their ISRs"
    )
    assert choose([one], [waiting], limits, leaders).begin == ()
    assert choose([other], [waiting], Limits(into=1, out_of=1, leaders=1, in_all=1), leaders).begin == (other,)
    assert InFlight.of(kept_dead, alive, (1, 9), is_stalled=False).awaits is None
