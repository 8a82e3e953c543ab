"""Whatever happens to requests, answers and connections, a broker ends in the state of unmerged delivery."""

from __future__ import annotations

import trio
from hypothesis import event, given, strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from controller.channels.broker_channels import OnResponse
from tests.channels.controller_side import ControllerSide, open_channels, registered
from tests.channels.scripted_broker import Act, MemoryNetwork, ScriptedBroker
from tests.controller.test_backlog_merging import Deliveries, MessageHistory, happenings, known, logs
from transport.messages import Request
from transport.metadata import TopicPartition

LOST_ACTS = [act for act in Act if act not in {Act.REFUSE, Act.ANSWER_TWICE}]
ALL_HAS_ARRIVED_SECONDS = 10_000
"""Longer than all time-outs and pauses that a script can cause together."""

pauses = st.sampled_from([0.0, 0.05, 1.0, 40.0])
"""Seconds between what is published: requests are under way, answered, in back-off, or timed out meanwhile."""


def failing_at(numbers: set[int], near: ControllerSide) -> OnResponse:
    """Return a taker of answers that fails after it has taken those of these numbers."""
    take = near.channels.on_response

    def on_response(broker_id: int, request: Request[object], response: object) -> None:
        take(broker_id, request, response)
        if len(near.answers) in numbers:
            raise ZeroDivisionError

    return on_response


@given(
    st.lists(st.one_of(happenings, pauses), max_size=40),
    st.lists(st.sampled_from(LOST_ACTS), max_size=12),
    st.sets(st.integers(1, 8), max_size=3),
)
def test_merged_delivery_through_a_channel_ends_where_unmerged_delivery_does(
    script: list[tuple[str, TopicPartition, bool] | float], acts: list[Act], faults: set[int]
) -> None:
    history, both = MessageHistory(), Deliveries()
    broker = ScriptedBroker(acts, obey=both.merged.deliver)

    async def publish_and_wait() -> list[Request[object]]:
        async with trio.open_nursery() as nursery:
            near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}))
            near.channels.on_response = failing_at(faults, near)
            near.channels.follow(registered(9091))
            for entry in script:
                if isinstance(entry, float):
                    await trio.sleep(entry)
                    continue
                what, tp, flag = entry
                for publication in history.publications(what, tp, flag=flag):
                    both.publish(publication)
                    near.channels.publish([publication])
            await trio.sleep(ALL_HAS_ARRIVED_SECONDS)
            nursery.cancel_scope.cancel()
        return [request for request, _ in near.answers]

    with capture_logs():
        answered = trio.run(publish_and_wait, clock=MockClock(autojump_threshold=0))

    event("merged" if len(answered) < both.published else "not merged")
    event("repeated" if len(broker.received) > len(answered) else "not repeated")
    assert both.merged.hosted == both.unmerged.hosted
    assert logs(both.merged) == logs(both.unmerged)
    assert known(both.merged) == known(both.unmerged) == history.states
    assert both.merged.metadata.broker(1) == both.unmerged.metadata.broker(1) == both.live
    # Each request was answered once: when the broker answered, and not before.
    assert answered == [request for n, request in enumerate(broker.received) if broker.act(n) is Act.ANSWER]
