"""The checker of linearizability finds wrong histories, and accepts those that some order explains."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from simulator.linearizability import operations, partition, settings, topic
from simulator.linearizability.checker import MOST_INTERVALS, Interval, Operation, TooLong, unexplained
from simulator.linearizability.partition import Doom, Elect, ModelPartition, Reassign
from simulator.linearizability.topic import ModelTopic
from transport.errors import ErrorCode
from transport.messages import ConfigResource, ConfigResourceType, ElectionType, OngoingReassignment, ResourceError
from transport.metadata import ReplicaAssignment

S = TypeVar("S")

OLD, NEW, THIRD = (1, 2, 3), (4, 5, 6), (7, 8, 9)
SETTLED = ModelPartition(exists=True, replicas=OLD, leader=1)
MOVING = partition.List(OngoingReassignment("orders", 0, NEW + OLD, NEW, OLD, 1, OLD))
NOT_MOVING = partition.List(None)
AT_REST = partition.Describe(SETTLED)
CANCEL = Reassign(None)
THERE = ModelTopic(exists=True, topic_id="first", count=3)


def of_partition(*intervals: tuple[Operation[ModelPartition], int, int | None]) -> str | None:
    """Return what is wrong with a history of a partition that begins settled."""
    return judged(SETTLED, intervals, partition.drifts)


def of_topic(*intervals: tuple[Operation[ModelTopic], int, int | None]) -> str | None:
    """Return what is wrong with a history of a topic that begins with three partitions."""
    return judged(THERE, intervals, topic.drifts)


def judged(
    first: S, intervals: Iterable[tuple[Operation[S], int, int | None]], drifts: Callable[[S], Iterable[S]]
) -> str | None:
    """Return the operation that no order explains."""
    found = unexplained(first, [Interval(*interval) for interval in intervals], drifts)
    return None if found is None else f"{found.interval}"


def stored(replicas: tuple[int, ...], *, moving: bool) -> ModelPartition:
    return ModelPartition(exists=True, replicas=replicas, moving=moving, leader=1)


def commit(
    before: ModelPartition, after: ModelPartition, at: int
) -> list[tuple[Operation[ModelPartition], int, int | None]]:
    """Return how a commit shows in a history of the partition; it takes two of its moments."""
    return [(partition.Stored(before, checks=True), at, at), (partition.Stored(after), at + 1, at + 1)]


# --- wrong histories ----------------------------------------------------------------------------------------------


def test_a_stale_read_after_a_newer_one() -> None:
    found = of_partition((Reassign(NEW), 1, 10), (MOVING, 2, 3), (partition.Describe(SETTLED), 4, 5))
    assert found == "description as [1, 2, 3] led by 1"


def test_a_cancel_that_is_granted_where_nothing_moves() -> None:
    assert of_partition((NOT_MOVING, 1, 2), (CANCEL, 3, 4)) == "cancel answered NONE"


def test_two_cancels_of_one_move_that_are_both_granted() -> None:
    at_once = partition.Stored(SETTLED)
    assert of_partition((Reassign(NEW), 1, 2), (CANCEL, 3, 4), (at_once, 5, 5), (CANCEL, 6, 7)) is not None


def test_a_creation_that_succeeds_twice() -> None:
    once = topic.Create((OLD,))
    assert judged(topic.ABSENT, [(once, 1, 2), (once, 3, 4)], topic.drifts) == "creation of 1 partitions answered NONE"


def test_two_creations_at_the_same_time_that_both_succeed() -> None:
    once = topic.Create((OLD,))
    assert judged(topic.ABSENT, [(once, 1, 4), (once, 2, 3)], topic.drifts) is not None


def test_a_lost_update() -> None:
    found = of_partition(
        (Reassign(NEW), 1, 2), (Reassign(THIRD), 3, 4), (partition.Describe(stored(NEW, moving=False)), 5, 6)
    )
    assert found == "description as [4, 5, 6] led by 1"


def test_a_read_from_the_future() -> None:
    assert of_partition((MOVING, 1, 2), (Reassign(NEW), 3, 4)) == "list shows a move to [4, 5, 6]"


def test_an_override_whose_predecessor_is_completed() -> None:
    done = partition.Stored(stored(NEW, moving=False))
    assert of_partition((Reassign(NEW), 1, 2), (Reassign(THIRD), 3, 4), (done, 5, 5)) == str(done)


def test_an_override_that_is_granted_without_a_commit() -> None:
    began = commit(SETTLED, stored(NEW, moving=True), 2)
    assert of_partition((Reassign(NEW), 1, 4), *began, (Reassign(THIRD), 5, 6)) == "move to [7, 8, 9] answered NONE"


def test_a_topic_that_is_described_after_its_deletion_was_granted() -> None:
    assert of_topic((topic.Delete(), 1, 2), (topic.Describe(THERE), 3, 4)) == f"description as {THERE}"
    assert of_partition((partition.Delete(), 1, 2), (AT_REST, 3, 4)) is not None


def test_a_topic_that_is_described_after_another_of_its_name_was() -> None:
    second = replace(THERE, topic_id="second")
    history = [(topic.Delete(), 1, 2), (topic.Create((OLD,) * 3), 3, 4), (topic.Describe(second), 5, 6)]
    assert of_topic(*history) is None
    assert of_topic(*history, (topic.Describe(THERE), 7, 8)) == f"description as {THERE}"


def test_partitions_that_are_added_twice() -> None:
    assert of_topic((topic.Grow(5), 1, 2), (topic.Grow(5), 3, 4)) == "growth to 5 partitions answered NONE"


def test_a_refused_request_that_takes_effect() -> None:
    refused = Reassign(NEW, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    assert of_partition((refused, 1, 2), (MOVING, 3, 4)) == "list shows a move to [4, 5, 6]"


def test_answers_to_two_administrators_that_contradict_each_other() -> None:
    granted = Elect(ElectionType.PREFERRED, (2, 1, 3))
    other = Elect(ElectionType.PREFERRED, (3, 2, 1))
    seen = [partition.Describe(replace(SETTLED, replicas=order, leader=None)) for order in ((2, 1, 3), (3, 2, 1))]
    together = [(granted, 1, 10), (other, 1, 10)]
    assert of_partition(*together, (seen[0], 11, 12)) is None
    assert of_partition(*together, (seen[0], 2, 3), (seen[1], 4, 5), (seen[0], 6, 7)) is not None


def test_a_move_that_is_denied_while_the_store_has_it() -> None:
    moving = partition.Stored(stored(NEW, moving=True))
    denied = Reassign(None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    ends = partition.Stored(stored(NEW, moving=True), checks=True)
    assert of_partition((Reassign(NEW), 1, 3), (moving, 2, 2), (denied, 4, 5), (ends, 6, 6)) is not None


def test_a_change_of_the_store_that_nobody_asked_for() -> None:
    assert of_partition((partition.Stored(stored(NEW, moving=True)), 1, 1)) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        topic.Create((OLD,), ErrorCode.NONE),
        topic.Delete(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        topic.Grow(3),
        topic.Grow(4, ErrorCode.INVALID_PARTITIONS),
        topic.Grow(4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        topic.Grow(4, ErrorCode.INVALID_TOPIC_EXCEPTION),
        topic.Describe(None),
        topic.Describe(replace(THERE, doom=Doom.GRANTED)),
        topic.Describe(replace(THERE, count=4)),
        topic.Stored(replace(THERE, count=4)),
        topic.Stored(topic.ABSENT),
    ],
    ids=str,
)
def test_wrong_answers_about_a_topic_of_three_partitions(wrong: Operation[ModelTopic]) -> None:
    assert of_topic((wrong, 1, 2)) == str(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        Reassign(()),
        Reassign(NEW, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        Elect(ElectionType.PREFERRED, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        Elect(ElectionType.PREFERRED, None, ErrorCode.INVALID_TOPIC_EXCEPTION),
        Elect(ElectionType.PREFERRED, (2, 1, 3), ErrorCode.REASSIGNMENT_IN_PROGRESS),
        Elect(ElectionType.PREFERRED, (2, 1)),
        partition.Create(OLD),
        partition.Describe(None),
        partition.Describe(replace(SETTLED, leader=2)),
        partition.Stored(replace(SETTLED, doom=Doom.MARKED)),
    ],
    ids=str,
)
def test_wrong_answers_about_a_partition_at_rest(wrong: Operation[ModelPartition]) -> None:
    assert of_partition((wrong, 1, 2)) == str(wrong)


def test_an_election_that_is_not_needed_where_another_leads() -> None:
    for error in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
        election = Elect(ElectionType.PREFERRED, None, error)
        assert judged(replace(SETTLED, leader=2), [(election, 1, 2)], partition.drifts) == str(election)


def test_settings_that_nobody_altered_or_that_an_alteration_lost() -> None:
    set_, other = settings.Alter((("a", "1"),)), settings.Alter((("b", "2"),))
    for values in ({"a": "1"}, {"b": "2"}, {"a": "1", "b": "3"}, {}):
        seen = settings.Describe(settings.of(values))
        assert judged(settings.NONE_SET, [(set_, 1, 2), (other, 3, 4), (seen, 5, 6)], settings.drifts) == str(seen)
    seen = settings.Describe(settings.of({"a": "1", "b": "2"}))
    assert judged(settings.NONE_SET, [(set_, 1, 2), (other, 3, 4), (seen, 5, 6)], settings.drifts) is None


def test_refused_settings_that_the_store_has() -> None:
    refused = settings.Alter((("a", "1"),), ErrorCode.INVALID_CONFIG)
    found = settings.Stored(settings.of({"a": "1"}))
    assert judged(settings.NONE_SET, [(refused, 1, 4), (found, 2, 2)], settings.drifts) == str(found)


@pytest.mark.parametrize(
    ("name", "values", "is_valid"),
    [
        ("t", {"min.insync.replicas": "2", "unclean.leader.election.enable": " True "}, True),
        ("t", {"min.insync.replicas": None}, True),
        ("", {"min.insync.replicas": "2"}, True),
        ("t", {"min.insync.replicas": "x", "retention.ms": None}, False),
        ("t", {"retention.ms": "1"}, False),
        ("t", {"retention.ms": None}, None),
    ],
)
def test_settings_that_are_refused_or_granted_for_no_reason(
    name: str, values: dict[str, str | None], is_valid: bool | None
) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC if name else ConfigResourceType.BROKER, name)
    wrong = {True: ErrorCode.INVALID_CONFIG, False: ErrorCode.NONE, None: None}[is_valid]
    errors = ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.OPERATION_NOT_ATTEMPTED
    for error, only in product(errors, (False, True)):
        answered = [ResourceError(resource, error)]
        asked = operations.alterations_answered({name: values}, answered, validate_only=only)
        [altered] = asked.settings.values()
        found = judged(settings.NONE_SET, [(altered, 1, 2)], settings.drifts)
        assert found == (str(altered) if error is wrong else None)


@pytest.mark.parametrize("seen", [settings.Stored, settings.Describe])
def test_a_check_of_settings_changes_nothing(seen: Callable[[settings.ModelSettings], Operation[Any]]) -> None:
    check = settings.Alter((("a", "1"),), is_valid=True, validate_only=True)
    before, after = seen(settings.NONE_SET), seen(settings.of({"a": "1"}))
    assert judged(settings.NONE_SET, [(check, 1, 2), (before, 3, 3)], settings.drifts) is None
    assert judged(settings.NONE_SET, [(check, 1, 4), (after, 2, 2)], settings.drifts) == str(after)


def test_a_check_that_contradicts_the_topic_or_changes_it() -> None:
    creation, growth = topic.Create((OLD,) * 4, validate_only=True), topic.Grow(4, validate_only=True)
    for wrong in (creation, topic.Grow(3, validate_only=True)):
        assert of_topic((wrong, 1, 2)) == str(wrong)
    assert of_topic((growth, 1, 2), (topic.Describe(THERE), 3, 4)) is None
    more = topic.Describe(replace(THERE, count=4))
    assert of_topic((growth, 1, 2), (more, 3, 4)) == str(more)
    assert topic.on_partition(growth, 3) is None


# --- right histories ----------------------------------------------------------------------------------------------


def test_a_move_that_ends_at_any_time() -> None:
    done = partition.Describe(stored(NEW, moving=False))
    assert of_partition((Reassign(NEW), 1, 2), (MOVING, 3, 4), (done, 5, 6), (NOT_MOVING, 7, 8)) is None


def test_a_target_with_all_that_a_move_had_is_an_order_if_the_move_was_turned_back() -> None:
    turned_back = replace(stored((3, 4, 5), moving=True), origin=(4, 5, 3))
    targets = {target: list(turned_back.moved_to(target)) for target in ((4, 5, 1, 3), (4, 1, 2))}
    assert [[state.moving for state in states] for states in targets.values()] == [[True, False], [True]]


def test_reads_during_a_request_that_see_it_in_the_order_of_time() -> None:
    assert of_partition((Reassign(NEW), 1, 10), (AT_REST, 2, 3), (MOVING, 4, 5)) is None


@pytest.mark.parametrize("later", [AT_REST, MOVING, partition.Describe(stored(NEW, moving=False))], ids=str)
def test_a_request_whose_answer_is_lost_may_take_effect_late_or_never(later: Operation[ModelPartition]) -> None:
    assert of_partition((Reassign(NEW), 1, None), (AT_REST, 5, 6), (later, 7, 8)) is None


def test_a_request_whose_answer_is_lost_takes_effect_once() -> None:
    gone = partition.Stored(SETTLED)
    history = [(Reassign(NEW), 1, None), (MOVING, 2, 3), (CANCEL, 4, 5), (gone, 6, 6)]
    assert of_partition(*history) is None
    assert of_partition(*history, (MOVING, 7, 8)) is not None


def test_a_cancel_that_moves_back() -> None:
    began = commit(SETTLED, stored(NEW, moving=True), 2)
    back = commit(stored(NEW, moving=True), stored(OLD, moving=True), 6)
    home = commit(stored(OLD, moving=True), SETTLED, 11)
    history = [(Reassign(NEW), 1, 4), *began, (CANCEL, 5, 8), *back, (CANCEL, 9, 10), *home]
    assert of_partition(*history) is None


def test_a_cancel_returns_to_where_the_first_of_several_targets_began() -> None:
    began = commit(SETTLED, stored(NEW, moving=True), 2)
    overridden = commit(stored(NEW, moving=True), stored(THIRD, moving=True), 6)
    moves = [(Reassign(NEW), 1, 4), *began, (Reassign(THIRD), 5, 8), *overridden, (CANCEL, 9, 12)]
    assert of_partition(*moves, *commit(stored(THIRD, moving=True), SETTLED, 10)) is None
    assert of_partition(*moves, *commit(stored(THIRD, moving=True), stored(NEW, moving=False), 10)) is not None


def test_an_order_alone_is_no_move() -> None:
    order = (3, 2, 1)
    assert of_partition((Reassign(order), 1, 2), (partition.Describe(replace(SETTLED, replicas=order)), 3, 4)) is None


def test_replicas_that_the_controller_placed_are_what_the_first_answer_shows() -> None:
    history: Sequence[tuple[Operation[ModelPartition], int, int | None]] = [
        (partition.Create(None), 1, 2),
        (partition.Describe(SETTLED), 3, 4),
    ]
    assert judged(partition.ABSENT, history, partition.drifts) is None
    other = partition.Describe(stored(NEW, moving=False))
    assert judged(partition.ABSENT, [*history, (other, 5, 6)], partition.drifts) == str(other)


def test_requests_in_the_store_begin_moves_at_any_time() -> None:
    requested = partition.Written(target=NEW)
    assert of_partition((requested, 1, 1), (AT_REST, 2, 3), (MOVING, 4, 5)) is None
    assert of_partition((requested, 6, 6), (MOVING, 4, 5)) is not None


def test_a_marker_by_hand_may_be_noticed_late() -> None:
    marker = topic.Marked()
    assert of_topic((marker, 1, 1), (topic.Describe(THERE), 2, 3), (topic.Describe(None), 4, 5)) is None


def test_settings_are_compared_in_the_form_in_which_they_are_described() -> None:
    asked = settings.Alter((("min.insync.replicas", " 2 "), ("unclean.leader.election.enable", "TRUE"), ("own", " ")))
    shown = settings.Describe(
        settings.of({"min.insync.replicas": "2", "own": "", "unclean.leader.election.enable": "true"})
    )
    assert judged(settings.NONE_SET, [(asked, 1, 2), (shown, 3, 4)], settings.drifts) is None


def test_settings_end_with_their_topic_and_with_an_alteration() -> None:
    first, inherited = settings.of({"a": "1"}), settings.Alter((("a", None),))
    history: list[tuple[Operation[settings.ModelSettings], int, int | None]] = [
        (settings.Alter((("a", "1"),)), 1, 4),
        (settings.Stored(settings.NONE_SET, checks=True), 2, 2),
        (settings.Stored(first), 3, 3),
    ]
    gone = (settings.Describe(settings.NONE_SET), 10, 11)
    assert judged(settings.NONE_SET, [*history, gone], settings.drifts) is not None
    assert (
        judged(settings.NONE_SET, [*history, (settings.Reset(settings.NONE_SET), 5, 5), gone], settings.drifts) is None
    )
    ends = [(settings.Stored(first, checks=True), 6, 6), (settings.Stored(settings.NONE_SET), 7, 7)]
    assert judged(settings.NONE_SET, [*history, (inherited, 5, 8), *ends, gone], settings.drifts) is None


def test_a_topic_of_the_same_name_after_a_deletion() -> None:
    again = topic.Create((OLD,))
    assert of_topic((topic.Delete(), 1, 2), (again, 3, 4)) is None
    assert of_topic((again, 1, 2)) is not None


def test_a_move_ends_at_the_commit_that_ends_it() -> None:
    moving = stored(NEW, moving=True)
    commits = [*commit(SETTLED, moving, 2), *commit(moving, stored(NEW, moving=False), 8)]
    assert of_partition((Reassign(NEW), 1, 4), *commits, (MOVING, 5, 6), (NOT_MOVING, 10, 11)) is None
    assert of_partition((Reassign(NEW), 1, 4), *commits, (NOT_MOVING, 5, 6)) == "list shows no move"


def test_the_model_reads_assignments_as_the_store_has_them() -> None:
    moving = partition.of(ReplicaAssignment(NEW + OLD, NEW, OLD), leader=1)
    assert (moving.replicas, moving.moving) == (NEW, True)


# --- the bounds ---------------------------------------------------------------------------------------------------


def test_a_history_that_is_too_long_is_given_up() -> None:
    with pytest.raises(TooLong):
        of_partition(*((AT_REST, n, n) for n in range(MOST_INTERVALS + 1)))


def test_too_many_lost_answers_are_given_up() -> None:
    lost = [(Reassign((n, n + 1)), n, None) for n in range(1, 30)]
    with pytest.raises(TooLong):
        of_partition(*lost, (partition.Describe(stored((100, 101), moving=True)), 50, 51))


# --- all histories ------------------------------------------------------------------------------------------------


TARGETS = st.permutations(range(1, 6)).map(lambda order: tuple(order[:3]))
REQUESTS = st.one_of(
    TARGETS.map(Reassign),
    st.just(CANCEL),
    st.permutations(OLD).map(lambda order: Elect(ElectionType.PREFERRED, tuple(order))),
    st.just(partition.Delete()),
    st.just(partition.Create(OLD)),
)


def sequence(requests: Sequence[Operation[ModelPartition]], rng: random.Random) -> list[Operation[ModelPartition]]:
    """Carry requests out one at a time, and return those that are possible, each with a description after it."""
    done: list[Operation[ModelPartition]] = []
    state = SETTLED
    for request in requests:
        state = rng.choice(list(partition.drifts(state)))
        possible = list(request.after(state))
        if possible:
            state = rng.choice(possible)
            done += [request, partition.Describe(state if state.exists else None)]
            state = replace(state, doom=Doom.NONE) if not state.exists else state
    return [each for each in done if not _is_doomed(each)]


def _is_doomed(operation: Operation[ModelPartition]) -> bool:
    """Return whether an operation shows a topic being deleted, which brokers are told in another form."""
    shown = operation.partition if isinstance(operation, partition.Describe) else None
    return shown is not None and shown.doom is not Doom.NONE


@given(st.lists(REQUESTS, max_size=8), st.randoms(use_true_random=False), st.data())
def test_what_happened_in_some_order_is_accepted_however_it_overlaps(
    requests: list[Operation[ModelPartition]], rng: random.Random, data: st.DataObject
) -> None:
    """Each operation takes effect at its place in the order, within an interval that overlaps those of others."""
    done = sequence(requests, rng)
    spread = st.integers(min_value=0, max_value=60)
    history = []
    for number, operation in enumerate(done):
        at, is_lost = 20 * number, data.draw(st.integers(min_value=0, max_value=5)) == 0
        answered = None if is_lost else at + data.draw(spread)
        history.append((operation, at - data.draw(spread), answered))
    rng.shuffle(history)
    assert of_partition(*history) is None
