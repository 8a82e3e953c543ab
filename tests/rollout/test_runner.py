"""The runner of a rollout that is carried out from outside: what it keeps in mind from one step to the next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import define, field

from controller.admin.move_admin import MoveAdmin
from controller.rollout.choosing import Limits
from controller.rollout.moves import Move
from controller.rollout.states import Happening, MoveState, Phase
from klamm.cli.reassignment.files import MoveFile
from klamm.cli.rollout import brakes
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options
from klamm.cli.rollout.plan_files import Plan
from klamm.cli.rollout.run import end_of
from klamm.cli.rollout.runner import Runner
from klamm.cli.rollout.slowing import Slowing
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.messages import (
    BrokerEndpoint,
    ConfigEntry,
    ConfigResource,
    MetadataResponse,
    PartitionState,
    ResourceConfigs,
)
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

MOVE = Move("t", 0, (1, 2), (3, 2), 1_000)
OPTIONS = Options(
    Limits(),
    throttle=None,
    pause_file=None,
    go_url=None,
    ignore_min_isr=False,
    skip_changed=False,
    ignore_room=True,
    elects=False,
    dry_run=False,
)


@define
class Brokers:
    """A cluster of which only the live brokers are of interest."""

    live: set[int] = field(factory=lambda: {1, 2, 3})
    partitions: tuple[PartitionState, ...] = ()

    async def read_metadata(self, _topics: object = None) -> MetadataResponse:
        found = tuple(BrokerEndpoint(broker, "host", 9092, None) for broker in sorted(self.live))
        return MetadataResponse(controller=None, controller_epoch=0, brokers=found, partitions=self.partitions)

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> tuple[ResourceConfigs, ...]:
        entry = ConfigEntry(MIN_INSYNC_REPLICAS, "2", "DYNAMIC_TOPIC_CONFIG")
        return tuple(ResourceConfigs(one, (entry,)) for one in resources)


@define
class Course:
    """A runner, and what it works on."""

    brokers: Brokers
    journal: Journal
    runner: Runner

    def note(self, kind: str, **more: Any) -> None:
        """Add an entry to the journal, as operators do, and let the runner read it."""
        self.journal.add(kind, **more)
        self.runner._take_entries()  # noqa: SLF001

    async def look(self) -> str | None:
        """Look around, a while after the look before; return why nothing may begin."""
        self.runner._around._next_look = self.runner._around.brakes._next = float("-inf")  # noqa: SLF001
        await self.runner._look_around({})  # noqa: SLF001
        self.runner._take_entries()  # noqa: SLF001
        hold = self.runner._around.hold  # noqa: SLF001
        return None if hold is None else hold.text


@pytest.fixture
def course(tmp_path: Path) -> Course:
    brokers, journal, history = Brokers(), Journal(tmp_path / "rollout.jsonl"), History()
    topics = {"t": "id"}
    journal.add("started", plan="p", cluster_id=None, moves=1, topics=topics, brokers=[1, 2, 3], before=[], skipped=[])
    history.take(journal.read())
    admin = cast("MoveAdmin", brokers)
    plan = Plan(MoveFile({TopicPartition("t", 0): (3, 2)}), "p")
    runner = Runner(admin, plan, [MOVE], OPTIONS, journal, history, Slowing(admin, None, None))
    return Course(brokers, journal, runner)


async def test_a_broker_that_dies_after_others_were_let_go_holds_it_up(course: Course) -> None:
    course.brokers.live.remove(3)
    assert await course.look() == "broker 3 died"
    course.note("brokers", brokers=[])
    assert await course.look() is None
    course.brokers.live.remove(2)
    assert await course.look() == "broker 2 died"


async def test_partitions_under_min_isr_hold_it_up_until_an_operator_says_otherwise(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brakes, "ClusterAdmin", Brokers)
    course.brokers.partitions = (PartitionState("u", "id", 0, 1, 1, 1, (1,), 1, (1, 2)),)
    assert await course.look() == "u-0 is under min ISR"
    course.note("min_isr", ignored=True)
    assert await course.look() is None
    history = History()
    history.take(Journal(course.journal.path).read())
    assert history.ignores_min_isr


async def test_the_time_left_of_an_undo_is_by_what_is_moved_back(course: Course) -> None:
    runner = course.runner
    runner._time_left.add(0, 1_000)  # noqa: SLF001
    runner._time_left.add(10, 0)  # noqa: SLF001
    course.note("happened", what=Happening.UNDO.value)
    await runner._abort()  # noqa: SLF001
    assert runner.history.state.phase is Phase.UNDOING
    runner._time_left.add(20, 1_000)  # noqa: SLF001
    runner._time_left.add(30, 500)  # noqa: SLF001
    assert runner._time_left.seconds == 10  # noqa: SLF001


async def test_waiting_moves_of_a_topic_that_two_looks_do_not_find_are_deleted_and_end_the_rollout(
    course: Course,
) -> None:
    for _ in range(2):
        assert course.runner.history.counts(1)[MoveState.PENDING] == 1
        await course.look()
    assert course.runner.history.why == {MOVE.tp: "its topic was deleted"}
    assert course.runner.history.counts(1)[MoveState.DELETED] == 1
    assert course.runner._work.is_over  # noqa: SLF001
    course.note("happened", what=Happening.FINISHED.value)
    assert end_of("plan", course.runner.plan, course.runner.history, Phase.DONE).code == 1


async def test_waiting_moves_of_a_topic_that_is_found_again_wait(course: Course) -> None:
    await course.look()
    course.brokers.partitions = (PartitionState("t", "id", 0, 1, 1, 1, (1, 2), 1, (1, 2)),)
    await course.look()
    course.brokers.partitions = ()
    await course.look()
    assert course.runner.history.counts(1)[MoveState.PENDING] == 1


async def test_moves_of_a_topic_that_is_being_deleted_are_deleted_and_not_overridden(course: Course) -> None:
    course.runner._work.begin([MOVE], 0.0)  # noqa: SLF001
    state = PartitionState("t", "id", 0, 1, LEADER_DURING_DELETE, 1, (1, 2), 1, (1, 2))
    course.brokers.partitions = (state,)
    await course.runner._settle({})  # noqa: SLF001
    course.runner._take_entries()  # noqa: SLF001
    assert course.runner.history.counts(1)[MoveState.DELETED] == 1


async def test_an_earlier_release_takes_a_move_of_a_deleted_topic_for_a_failed_one(course: Course) -> None:
    course.journal.add_end(MoveState.DELETED, [MOVE.tp], "its topic was deleted")
    *_, entry = Journal(course.journal.path).read()
    assert (entry["state"], entry["why"]) == ("failed", "its topic was deleted")


@define
class Throttle:
    """A throttle that some brokers do not take."""

    faults: dict[int | str, str]
    rate: int | None = 1_000
    lifted: list[TopicPartition] = field(factory=list)

    async def begin(self, _states: object, _targets: object) -> dict[int | str, str]:
        return self.faults

    async def end(self, over: Sequence[TopicPartition]) -> None:
        self.lifted += over


async def test_a_move_waits_for_a_live_broker_that_cannot_be_throttled(course: Course) -> None:
    runner, brokers = course.runner, course.brokers
    throttle = Throttle({3: "broker 3 cannot be throttled: it does not answer"})
    runner.slowing = cast("Slowing", throttle)
    brokers.partitions = (PartitionState("t", "id", 0, 1, 1, 1, (1, 2), 1, (1, 2)),)
    await course.look()
    for _ in range(2):
        await runner._begin_next({})  # noqa: SLF001
        assert runner._work.in_flight == []  # noqa: SLF001
    assert throttle.lifted == [MOVE.tp]
    assert list(map(str, runner._work.waits.values())) == [throttle.faults[3]]  # noqa: SLF001
