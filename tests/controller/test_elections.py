"""Leader elections as tables: the leader, the ISR and the epochs."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from controller.model import elections
from controller.model.elections import Candidate, Choice, Strategy
from transport.metadata import NO_LEADER, LeaderAndIsr, LeaderRecoveryState

CONTROLLER_EPOCH = 9


def leadership(leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return LeaderAndIsr(leader, leader_epoch=5, isr=isr, partition_epoch=7, controller_epoch=3)


def candidate(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    live: tuple[int, ...],
    leaving: tuple[int, ...] = (),
    *,
    unclean: bool = False,
) -> Candidate:
    """Return a candidate; those in `leaving` are alive and shutting down."""
    online = tuple(r for r in replicas if r in live and r not in leaving)
    shutting_down = tuple(r for r in replicas if r in leaving)
    return Candidate(replicas, online, leadership(2, isr), shutting_down, unclean)


Ids = tuple[int, ...]

# (strategy, assignment or target, ISR, live) -> leader, ISR and who is told, None: nobody. The first rows are those of
# Kafka's PartitionLeaderElectionAlgorithmsTest.
CASES: list[tuple[str, Strategy, Ids, Ids, Ids, Choice | None]] = [
    ("offline", elections.offline, (2, 4), (2, 4), (4,), Choice(4, (4,), (4,))),
    ("offline: last ISR member dead", elections.offline, (2, 4), (2,), (4,), None),
    ("reassign", elections.reassign, (2, 4), (2, 4), (4,), Choice(4, (2, 4), (2, 4))),
    ("reassign: no live ISR", elections.reassign, (2, 4), (2,), (), None),
    ("reassign: empty ISR", elections.reassign, (2, 4), (), (2,), None),
    ("preferred", elections.preferred, (2, 4), (2, 4), (2, 4), Choice(2, (2, 4), (2, 4))),
    ("preferred: not in the ISR", elections.preferred, (2, 4), (4,), (2, 4), None),
    ("preferred: not alive", elections.preferred, (2, 4), (2, 4), (4,), None),
    ("offline: empty ISR is never clean", elections.offline, (2, 4), (), (2, 4), None),
    ("offline: in the order of the assignment, ISR in its own", elections.offline, (1, 2, 3), (3, 2, 1), (1, 2, 3),
     Choice(1, (3, 2, 1), (1, 2, 3))),
    ("offline: the dead leave the ISR", elections.offline, (1, 2, 3), (3, 1, 2), (2, 3), Choice(2, (3, 2), (2, 3))),
    ("offline: live but not in the ISR", elections.offline, (1, 2, 3), (1, 3), (2, 3), Choice(3, (3,), (2, 3))),
    ("reassign: in the order of the target", elections.reassign, (6, 5, 4), (1, 4, 5, 6), (4, 5, 6),
     Choice(6, (1, 4, 5, 6), (6, 5, 4))),
    ("reassign: the dead stay in the ISR", elections.reassign, (4, 5, 6), (1, 4, 5, 6), (5, 6),
     Choice(5, (1, 4, 5, 6), (4, 5, 6))),
    ("reassign: a live replica outside the target", elections.reassign, (4, 5), (1, 2), (1, 2, 4, 5), None),
    ("preferred: the dead stay in the ISR", elections.preferred, (1, 2, 3), (3, 1, 2), (1, 2),
     Choice(1, (3, 1, 2), (1, 2, 3))),
    ("preferred: nobody is assigned", elections.preferred, (), (), (), None),
]  # fmt: skip


@pytest.mark.requirement("C1", "D4")
@pytest.mark.parametrize(
    ("strategy", "replicas", "isr", "live", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_who_is_elected(strategy: Strategy, replicas: Ids, isr: Ids, live: Ids, expected: Choice | None) -> None:
    assert strategy(candidate(replicas, isr, live)) == expected


# (assignment, ISR, live) -> what an election chooses that may be unclean
UNCLEAN: list[tuple[str, Ids, Ids, Ids, Choice | None]] = [
    ("last ISR member dead", (2, 4), (2,), (4,), Choice(4, (4,), (4,), is_unclean=True)),
    ("a live ISR member goes first all the same", (2, 4), (4,), (2, 4), Choice(4, (4,), (2, 4))),
    ("nobody is alive", (2, 4), (2,), (), None),
    ("all members lost their disks", (1, 2, 3), (), (3, 2), Choice(2, (2,), (2, 3), is_unclean=True)),
]


@pytest.mark.requirement("C4", "D4")
@pytest.mark.parametrize(
    ("replicas", "isr", "live", "expected"), [case[1:] for case in UNCLEAN], ids=[case[0] for case in UNCLEAN]
)
def test_who_is_elected_where_an_unclean_election_is_allowed(
    replicas: Ids, isr: Ids, live: Ids, expected: Choice | None
) -> None:
    assert elections.offline(candidate(replicas, isr, live, unclean=True)) == expected


# (strategy, assignment, ISR, live, shutting down) -> leader, ISR and who is told
LEAVING: list[tuple[str, Strategy, Ids, Ids, Ids, Ids, Choice | None]] = [
    ("shutdown", elections.controlled_shutdown, (2, 4), (2, 4), (2, 4), (2,), Choice(4, (4,), (2, 4))),
    ("shutdown: last in the ISR", elections.controlled_shutdown, (2, 4), (2,), (2, 4), (2,), None),
    ("shutdown: all of the ISR leave", elections.controlled_shutdown, (2, 4), (2, 4), (2, 4), (2, 4), None),
    ("shutdown: the dead stay in the ISR", elections.controlled_shutdown, (1, 2, 3), (1, 2, 3), (1, 3), (1,),
     Choice(3, (2, 3), (1, 3))),
    ("offline: who leaves neither leads nor stays in the ISR", elections.offline, (1, 2, 3), (1, 2, 3), (2, 3), (2,),
     Choice(3, (3,), (3,))),
    ("preferred: not who leaves", elections.preferred, (1, 2), (1, 2), (1, 2), (1,), None),
    ("reassign: not who leaves", elections.reassign, (1, 2), (1, 2), (1, 2), (1,), Choice(2, (1, 2), (1, 2))),
]  # fmt: skip


@pytest.mark.requirement("D4", "D6")
@pytest.mark.parametrize(
    ("strategy", "replicas", "isr", "live", "leaving", "expected"),
    [case[1:] for case in LEAVING],
    ids=[case[0] for case in LEAVING],
)
def test_who_is_elected_when_brokers_shut_down(
    strategy: Strategy, replicas: Ids, isr: Ids, live: Ids, leaving: Ids, expected: Choice | None
) -> None:
    assert strategy(candidate(replicas, isr, live, leaving)) == expected


@pytest.mark.requirement("D4")
def test_an_election_adds_one_to_the_leader_epoch_and_a_failed_one_changes_nothing() -> None:
    good, bad = candidate((2, 4), (2, 4), (4,)), candidate((2, 4), (2,), (4,))
    choice = elections.offline(good)
    assert choice is not None
    assert choice.recipients == (4,)
    assert elections.led_by(choice, good.leadership, CONTROLLER_EPOCH) == LeaderAndIsr(4, 6, (4,), 8, CONTROLLER_EPOCH)
    assert elections.offline(bad) is None


def test_an_election_keeps_the_recovery_state() -> None:
    recovering = LeaderAndIsr(2, 5, (2, 4), 7, 3, LeaderRecoveryState.RECOVERING)
    choice = elections.offline(Candidate((2, 4), (4,), recovering))
    assert choice is not None
    after = elections.led_by(choice, recovering, CONTROLLER_EPOCH)
    assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert not choice.is_unclean


@pytest.mark.requirement("C4")
def test_a_leader_from_outside_the_isr_has_to_recover_and_is_reported() -> None:
    among = candidate((2, 4), (2,), (4,), unclean=True)
    choice = elections.offline(among)
    assert choice is not None
    assert choice.is_unclean
    after = elections.led_by(choice, among.leadership, 9)
    assert (after.leader, after.isr) == (4, (4,))
    assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_the_first_live_replica_of_a_new_partition_leads_all_live_ones() -> None:
    assert elections.initial((3, 1, 2), CONTROLLER_EPOCH) == LeaderAndIsr(3, 0, (3, 1, 2), 0, CONTROLLER_EPOCH)
    assert elections.initial((), CONTROLLER_EPOCH) is None


# (leader, ISR, gone) -> leader and ISR
SHRINKING: list[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, tuple[int, ...]]]] = [
    (1, (1, 2, 3), (3,), (1, (1, 2))),
    (1, (3, 1, 2), (1,), (NO_LEADER, (3, 2))),
    (1, (1, 2, 3), (2, 3), (1, (1,))),
    (1, (1, 2), (4,), (1, (1, 2))),
    (1, (1,), (1,), (NO_LEADER, (1,))),
    (NO_LEADER, (1,), (1,), (NO_LEADER, (1,))),
    (NO_LEADER, (1, 2), (1,), (NO_LEADER, (2,))),
    (1, (1,), (), (1, (1,))),
]


@pytest.mark.parametrize(("leader", "isr", "gone", "expected"), SHRINKING)
def test_who_is_left_without_some_replicas(
    leader: int, isr: tuple[int, ...], gone: tuple[int, ...], expected: tuple[int, tuple[int, ...]]
) -> None:
    assert elections.without_replicas(leadership(leader, isr), gone) == expected


# (leader, ISR, lost, live) -> leader and ISR, of replicas 1, 2, 3
LOSSES: list[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, tuple[int, ...]]]] = [
    (1, (1, 2, 3), (3,), (1, 2, 3), (1, (1, 2))),
    (1, (3, 2, 1), (1,), (1, 2, 3), (2, (3, 2))),
    (1, (1, 2, 3), (1,), (1, 3), (3, (2, 3))),
    (1, (1, 2), (1,), (1,), (NO_LEADER, (2,))),
    (1, (1, 2), (1, 2), (1, 2, 3), (NO_LEADER, ())),
    (2, (1, 2), (3,), (1, 2, 3), (2, (1, 2))),
    (1, (1, 2), (3,), (2, 3), (2, (1, 2))),
    (NO_LEADER, (1, 2), (1,), (2,), (2, (2,))),
    (NO_LEADER, (), (1,), (1, 2, 3), (NO_LEADER, ())),
]


@pytest.mark.requirement("D4", "D5")
@pytest.mark.parametrize(("leader", "isr", "lost", "live", "expected"), LOSSES)
def test_who_leads_when_replicas_have_lost_their_data(
    leader: int,
    isr: tuple[int, ...],
    lost: tuple[int, ...],
    live: tuple[int, ...],
    expected: tuple[int, tuple[int, ...]],
) -> None:
    choice = elections.without_data(Candidate((1, 2, 3), live, leadership(leader, isr)), lost)
    assert (choice.leader, choice.isr) == expected
    assert choice.recipients == tuple(r for r in live if r not in lost)
    assert choice.is_change, "the leader epoch rises in any case"


def test_an_empty_isr_elects_and_loses_nobody() -> None:
    empty = Candidate((1, 2), (1, 2), leadership(NO_LEADER, ()))
    assert elections.offline(empty) is None
    assert elections.reassign(empty) is None
    assert elections.without_replicas(empty.leadership, (1, 2)) == (NO_LEADER, ())


brokers = st.integers(1, 6)
replica_sets = st.lists(brokers, unique=True, max_size=5).map(tuple)


@pytest.mark.requirement("D4")
@given(replicas=replica_sets, live=replica_sets, leaving=replica_sets, unclean=st.booleans(), data=st.data())
def test_an_elected_leader_is_a_live_replica_of_the_isr(
    replicas: Ids, live: Ids, leaving: Ids, unclean: bool, data: st.DataObject
) -> None:
    isr = tuple(data.draw(st.permutations(replicas)))[: data.draw(st.integers(0, len(replicas)))]
    able = set(live) - set(leaving)
    for strategy in (elections.offline, elections.reassign, elections.preferred, elections.controlled_shutdown):
        choice = strategy(candidate(replicas, isr, live, leaving, unclean=unclean))
        if choice is None:
            assert strategy is elections.preferred or able.isdisjoint(isr)
            continue
        assert choice.leader in able
        assert choice.leader in choice.isr
        is_unclean = choice.leader not in isr
        assert is_unclean <= (unclean and strategy is elections.offline and able.isdisjoint(isr))
        assert choice.isr == (choice.leader,) if is_unclean else set(choice.isr) <= set(isr)
        assert choice.leader in choice.recipients
        assert set(choice.recipients) <= set(replicas)


@given(isr=replica_sets.filter(bool), gone=replica_sets, leads=st.booleans())
def test_an_isr_does_not_become_empty_and_its_leader_is_in_it(
    isr: tuple[int, ...], gone: tuple[int, ...], leads: bool
) -> None:
    leader, left = elections.without_replicas(leadership(isr[0] if leads else NO_LEADER, isr), gone)
    assert left
    assert leader == NO_LEADER or leader in left
    assert left == isr or set(left).isdisjoint(gone)
