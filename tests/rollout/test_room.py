"""Whether a plan fits the disks while both copies exist, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from controller.rollout.moves import Move
from controller.rollout.room import Disk, Fit, Shortage, fit


def move(partition: int, before: Sequence[int], after: Sequence[int], size: int) -> Move:
    return Move("t", partition, tuple(before), tuple(after), size)


def disk(free: int) -> Disk:
    return Disk(free, free)


def test_what_never_fits_is_told_with_broker_and_bytes() -> None:
    moves = [move(0, [1], [2], 60), move(1, [1], [2], 70)]
    assert fit(moves, {2: disk(100)}, {}, {}).shortages == (Shortage(2, "", 30, 40, 1),)


def test_both_copies_need_room_even_if_the_other_goes_later() -> None:
    swap = [move(0, [1], [2], 60), move(1, [2], [1], 60)]
    assert fit(swap, {1: disk(50), 2: disk(50)}, {}, {}).shortages == (
        Shortage(1, "", 10, 50, 1),
        Shortage(2, "", 10, 50, 1),
    )


def test_what_has_to_wait_for_others_to_leave_fits() -> None:
    moves = [move(0, [1], [2], 60), move(1, [2], [3], 40)]
    assert fit(moves, {2: disk(30), 3: disk(40)}, {}, {}) == Fit((), {1: 0, 2: 20, 3: 40})


def test_a_named_directory_has_to_have_the_room() -> None:
    disks = {2: Disk(150, 100, {"/a": 100, "/b": 50})}
    moves = [move(0, [1], [2], 70)]
    assert fit(moves, disks, {}, {}).shortages == ()
    assert fit(moves, disks, {(moves[0].tp, 2): "/b"}, {}).shortages == (Shortage(2, "/b", 20, 50, 1),)


def test_a_replica_has_to_fit_into_one_directory() -> None:
    disks = {2: Disk(150, 100, {"/a": 100, "/b": 50})}
    assert fit([move(0, [1], [2], 120)], disks, {}, {}).shortages == (Shortage(2, "", 20, 150, 1),)


def test_what_is_not_known_is_not_judged() -> None:
    assert fit([move(0, [1], [2], 120), move(1, [1], [3], -1)], {3: disk(0)}, {}, {}).shortages == ()


replica_lists = st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True)


@given(st.lists(st.tuples(replica_lists, replica_lists, st.integers(1, 30)), max_size=20), st.integers(0, 200))
def test_all_that_fits_stays_within_the_disks(rows: list[tuple[list[int], list[int], int]], free: int) -> None:
    moves = [move(n, *row) for n, row in enumerate(rows)]
    found = fit(moves, {broker: disk(free) for broker in range(1, 5)}, {}, {})
    assert all(peak <= free for peak in found.peaks.values())
    needed = {b: sum(m.size for m in moves if b in m.adding) for b in range(1, 5)}
    assert found.shortages == () or any(free < bytes_ for bytes_ in needed.values())
