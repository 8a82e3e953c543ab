"""The check of limits by commit traces finds what is too much, across controllers too."""

from __future__ import annotations

from controller.rollout.choosing import Limits
from tests.cluster.rollout_limits import LOADED, excesses, gaps
from transport.messages import PartitionState, TracedCommit

LIMITS = Limits(into=1, out_of=2, leaders=1, in_all=2)


def moving(number: int, *, to: int = 3, leader: int = 1, leaves: int = 2) -> PartitionState:
    replicas = (to, *dict.fromkeys((leader, leaves)))
    return PartitionState("t", "", number, 1, leader, 1, (leader,), 1, replicas, (to,), (leaves,))


def still(number: int) -> PartitionState:
    return PartitionState("t", "", number, 1, 1, 1, (1,), 1, (1,))


def commit(sequence: int, *states: PartitionState, epoch: int = 1, round: str = "U1") -> TracedCommit:  # noqa: A002
    return TracedCommit(sequence, 1, epoch, "event", round, sequence, (), states)


def test_limits_are_checked_after_each_commit() -> None:
    fine = [commit(0, moving(0)), commit(1, moving(1, to=4)), commit(2, still(0)), commit(3, moving(2))]
    assert excesses(fine, LIMITS)[0] == []
    for state, said in (
        (moving(5), "epoch 1, 2: 2 in at broker 3, the most is 1"),
        (moving(5, to=5, leader=2, leaves=2), "epoch 1, 2: 3 in all, the most is 2"),
        (moving(5, to=5), "epoch 1, 2: 3 out at broker 1, the most is 2"),
    ):
        assert said in excesses([*fine[:2], commit(2, state)], LIMITS)[0]
    left = [commit(n, moving(n, to=3 + n, leader=1, leaves=1)) for n in (0, 1)]
    assert excesses(left, LIMITS)[0] == ["epoch 1, 1: 2 leaders at broker 1, the most is 1"]


def test_what_a_controller_loads_is_all_there_is() -> None:
    later = [commit(0, moving(3), epoch=2, round=LOADED), commit(1, moving(4, to=4), epoch=2)]
    assert excesses([*later, commit(7, moving(0), moving(1, to=4))], LIMITS)[0] == []
    assert gaps([*later, commit(3, epoch=2), commit(7)]) == [(2, 1, 3)]
