"""Requests of administrators see what was acknowledged before them, however much the controller has to do."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.mailbox import MAX_OVERTAKEN
from controller.events import BrokerModifications, PartitionModifications
from controller.handlers import deletion
from controller.node.service import ControllerService
from tests.kit.service import Controllers, until
from transport.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    Request,
)
from transport.metadata import LEADER_DURING_DELETE, BrokerRegistration, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryStore
from transport.store.protocol import Create, ensure_paths

USERS = TopicPartition("users", 0)
CREATION = CreateTopicsRequest((NewTopic("users", 1, 1, ((1,),)),))
DELETION = DeleteTopicsRequest(("users",))
MANY = 3 * MAX_OVERTAKEN
"""So many events that a request which waits is not passed by all of them."""


async def in_office(controllers: Controllers) -> ControllerService:
    """Return a controller of one broker, with nothing to do."""
    async with controllers.memory.session() as tool:
        await ensure_paths(tool, paths.PERSISTENT)
        await tool.multi([Create(paths.broker(1), formats.encode_broker(BrokerRegistration(1, "127.0.0.1", 1, -1), 0))])
    service = await controllers.start_active()
    await until(lambda: service.is_idle)
    return service


async def answered_behind_much(
    service: ControllerService, monkeypatch: pytest.MonkeyPatch, change: Request[object], look: Request[object]
) -> object:
    """Return the answer to a request made right after a change was acknowledged, while much else waits."""
    commit = service.store.multi

    async def commit_while_much_comes(*args: object, **kwargs: object) -> object:
        for number in range(MANY):
            service.tell(BrokerModifications(1000 + number))
        return await commit(*args, **kwargs)  # type: ignore[arg-type]  # what the store takes

    with monkeypatch.context() as patched:
        patched.setattr(service.store, "multi", commit_while_much_comes)
        await service.answer(change)
    with trio.fail_after(10):
        return await service.answer(look)


async def test_a_read_shows_a_topic_whose_creation_was_acknowledged(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await in_office(controllers)
    answer = await answered_behind_much(service, monkeypatch, CREATION, MetadataRequest())
    assert isinstance(answer, MetadataResponse)
    assert [state.tp for state in answer.partitions] == [USERS]


async def test_an_election_finds_a_topic_whose_creation_was_acknowledged(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await in_office(controllers)
    election = ElectLeadersRequest(ElectionType.PREFERRED, (USERS,))
    answer = await answered_behind_much(service, monkeypatch, CREATION, election)
    assert isinstance(answer, ElectLeadersResponse)
    assert [outcome.error.name for outcome in answer.partitions] == ["ELECTION_NOT_NEEDED"]


async def test_a_topic_can_be_deleted_once_its_creation_was_acknowledged(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await in_office(controllers)
    answer = await answered_behind_much(service, monkeypatch, CREATION, DELETION)
    assert isinstance(answer, DeleteTopicsResponse)
    assert [outcome.error.name for outcome in answer.topics] == ["NONE"]


async def test_a_read_shows_that_a_topic_is_deleted_once_that_was_acknowledged(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await in_office(controllers)
    assert isinstance(await service.answer(CREATION), CreateTopicsResponse)
    await until(lambda: service.is_idle)
    answer = await answered_behind_much(service, monkeypatch, DELETION, MetadataRequest())
    assert isinstance(answer, MetadataResponse)
    assert {state.leader for state in answer.partitions} <= {LEADER_DURING_DELETE}


async def test_a_read_shows_that_topics_are_deleted_whose_deletion_takes_several_events(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await in_office(controllers)
    names = [f"users{number}" for number in range(5)]
    await service.answer(CreateTopicsRequest(tuple(NewTopic(name, 1, 1, ((1,),)) for name in names)))
    await until(lambda: service.is_idle)
    # Each event begins to delete one topic.
    monkeypatch.setattr(deletion, "PER_EVENT", 0)
    service.hold_events()
    answers: list[object] = []

    async def ask(request: Request[object]) -> None:
        answers.append(await service.answer(request))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, DeleteTopicsRequest(tuple(names)))
        await until(lambda: service.queue_size() == 1)
        nursery.start_soon(ask, MetadataRequest())
        await until(lambda: service.queue_size() == 1 + 1)
        service.release_events()
    _, answer = answers
    assert isinstance(answer, MetadataResponse)
    assert {state.leader for state in answer.partitions} <= {LEADER_DURING_DELETE}


@pytest.mark.parametrize("change", [CREATION, DELETION], ids=["creation", "deletion"])
async def test_it_does_after_the_answer_was_lost_with_the_connection(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch, change: Request[object]
) -> None:
    service = await in_office(controllers)
    if change is DELETION:
        await service.answer(CREATION)
        await until(lambda: service.is_idle)
    break_at_commit(controllers, service, monkeypatch)
    await service.answer(change)
    with trio.fail_after(10):
        answer = await service.answer(MetadataRequest())
    assert isinstance(answer, MetadataResponse)
    leaders = {state.leader for state in answer.partitions}
    assert leaders <= {LEADER_DURING_DELETE} if change is DELETION else leaders == {1}
    assert service.office is not None
    assert service.office.won.epoch == 1


def break_at_commit(controllers: Controllers, service: ControllerService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the connection right after the next commit, restore it at once, and let much come in between."""
    memory, session_id = controllers.memory, service.store.session_id
    assert isinstance(service.store, MemoryStore)
    watches, commit = service.store.watches, memory.commit

    def commit_and_break(*args: object, **kwargs: object) -> object:
        monkeypatch.undo()
        # What they would tell is lost with the answer.
        watches.clear()
        committed = commit(*args, **kwargs)  # type: ignore[arg-type]  # what the store takes
        memory.disconnect(session_id)
        for number in range(MANY):
            service.tell(PartitionModifications(f"none-{number}"))
        memory.reconnect(session_id)
        return committed

    monkeypatch.setattr(memory, "commit", commit_and_break)
