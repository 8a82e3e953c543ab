"""Moves of topics that are deleted: a state of their own, and as an earlier release reads it."""

from __future__ import annotations

from controller.events import RolloutLook, TopicChange, TopicDeletion
from controller.model.rollout_parts import CODES
from controller.rollout.states import MoveState
from tests.controller.rollouts.operator import TARGET, Operator, settings
from transport.messages import RolloutMove, RolloutOrder, RolloutSettings, StartRolloutRequest, StartRolloutResponse
from transport.store import paths, rollouts
from transport.store.protocol import ANY_VERSION, Create, Set

FAILED = CODES.index(MoveState.FAILED)


async def begin(operator: Operator, **settings_: object) -> None:
    """Start a rollout of two topics, of which the moves of one wait behind others."""
    bench = operator.bench
    await bench.write_topic("doomed", (1, 2), (1, 2), (1, 2))
    await bench.handle(TopicChange())
    moves = [RolloutMove(topic, n, TARGET, size=100) for topic, n in (("orders", 0), ("orders", 1))]
    moves += [RolloutMove("doomed", n, TARGET, size=100) for n in range(3)]
    assert (await operator.upload(*moves)).left_out == ()
    request = StartRolloutRequest("monday", "digest", len(moves), RolloutSettings(**settings_), "alice")  # type: ignore[arg-type]
    await bench.ask(request, StartRolloutResponse)


async def finish(operator: Operator) -> None:
    """Let the moves of both topics come to their end."""
    while operator.bench.context.reassigning:
        for tp in list(operator.bench.context.reassigning):
            await operator.bench.alter_isr(tp, *operator.bench.context.assignment(tp).replicas)


async def delete(operator: Operator) -> None:
    """Delete the topic; a dead broker of it makes its deletion last."""
    await operator.bench.store.multi([Create(paths.delete_topic("doomed"))])
    await operator.bench.handle(TopicDeletion())


async def test_moves_that_wait_are_deleted_with_their_topic(operator: Operator) -> None:
    await begin(operator, in_all=1)
    await delete(operator)
    assert (await operator.describe()).counts == (("pending", 1), ("in flight", 1), ("deleted", 3))
    assert (await operator.states())[2] == "deleted: its topic was deleted"
    await finish(operator)
    described = await operator.describe()
    assert (described.phase, described.counts) == ("done", (("done", 2), ("deleted", 3)))


async def test_so_are_those_of_a_rollout_that_is_paused(operator: Operator) -> None:
    await begin(operator, in_all=1)
    await operator.order(RolloutOrder.PAUSE)
    await delete(operator)
    assert (await operator.describe()).counts == (("pending", 1), ("in flight", 1), ("deleted", 3))


async def test_moves_in_flight_are_deleted_and_their_throttles_are_gone(operator: Operator) -> None:
    await begin(operator, in_all=4, throttle=1_000)
    assert len(operator.in_flight()) == 4
    await delete(operator)
    await finish(operator)
    assert (await operator.describe()).counts == (("done", 2), ("deleted", 3))
    for broker in (1, 2, 3):
        assert await settings(operator.bench, paths.broker_config(broker)) == {}
    assert await settings(operator.bench, paths.topic_config("orders")) == {}


async def test_the_next_controller_and_an_undo_know_them(operator: Operator) -> None:
    await begin(operator, in_all=1)
    await delete(operator)
    await operator.fail_over()
    assert (await operator.describe()).counts == (("pending", 1), ("in flight", 1), ("deleted", 3))
    await finish(operator)
    await operator.fail_over()
    assert (await operator.describe()).counts == (("done", 2), ("deleted", 3))
    await operator.order(RolloutOrder.UNDO)
    await finish(operator)
    described = await operator.describe()
    assert (described.phase, described.counts) == ("undone", (("back", 2), ("deleted", 3)))


async def test_finished_moves_whose_topic_is_deleted_before_they_are_taken_back_are_deleted(operator: Operator) -> None:
    await begin(operator)
    await finish(operator)
    await delete(operator)
    await operator.order(RolloutOrder.UNDO)
    await finish(operator)
    described = await operator.describe()
    assert (described.phase, described.counts) == ("undone", (("back", 2), ("deleted", 3)))


async def test_an_earlier_release_reads_them_as_failed_and_what_it_writes_is_read_again(operator: Operator) -> None:
    await begin(operator, in_all=1)
    await delete(operator)
    path = paths.rollout_marks("monday", 0)
    marks = rollouts.decode_marks(path, (await operator.bench.znode(path)).data)
    assert list(marks.marks[2:]) == [FAILED] * 3
    # It writes the marks as it has read them, and the tallies without what it does not know.
    await operator.bench.store.multi([Set(path, rollouts.encode_marks(marks), ANY_VERSION)])
    await finish(operator)
    state = paths.rollout("monday")
    znode = await operator.bench.znode(state)
    [part] = rollouts.decode_state("monday", znode.data).parts
    assert (part.tally, part.deleted) == ({"done": 2, "failed": 3}, 3)
    older = znode.data.replace(b',"deleted":3', b"")
    assert older != znode.data
    await operator.bench.store.multi([Set(state, older, ANY_VERSION)])
    await operator.fail_over()
    assert (await operator.describe()).counts == (("done", 2), ("failed", 3))
    await operator.order(RolloutOrder.UNDO)
    await finish(operator)
    assert (await operator.describe()).counts == (("back", 2), ("deleted", 3))


async def test_moves_of_a_topic_that_the_next_controller_cannot_read_wait(operator: Operator) -> None:
    await begin(operator, in_all=1)
    path = paths.topic("doomed")
    sound = (await operator.bench.znode(path)).data
    await operator.bench.store.multi([Set(path, b"{", ANY_VERSION)])
    await operator.fail_over()
    await finish(operator)
    await operator.bench.handle(RolloutLook())
    counts = dict((await operator.describe()).counts)
    assert "deleted" not in counts
    assert "failed" not in counts
    await operator.bench.store.multi([Set(path, sound, ANY_VERSION)])
    await operator.bench.handle(TopicChange())
    await operator.bench.handle(RolloutLook())
    await finish(operator)
    assert (await operator.describe()).counts == (("done", 5),)
