"""The znodes of a rollout on each store: under the size that the servers accept, and enough for the next controller."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from controller.config import ControllerConfig
from controller.events import ControllerEvent, RequestEvent, RolloutLook, RolloutsDue
from controller.handlers.failover import failover
from controller.model.context import ControllerContext
from controller.model.rollout_parts import CODES
from controller.model.rounds import Publication
from controller.node import dispatch
from controller.node.round_runner import RoundRunner
from controller.observation.observer import Observer
from controller.rollout.states import HeldBy
from tests.controller.conftest import ENDPOINT, HOST
from tests.store.conftest import OpenStore
from transport.messages import RolloutMove, RolloutSettings, StartRolloutRequest, UploadRolloutRequest
from transport.metadata import BrokerRegistration, ReplicaAssignment
from transport.store import formats, paths
from transport.store.limits import DEFAULT_MAX_BUFFER, LEAST_MAX_BUFFER
from transport.store.protocol import Create, MetadataStore, Set, ensure_paths
from transport.store.rollouts import StoredMarks, encode_marks, encode_state

TOPICS, PARTITIONS = 10, 120
RANDOM = random.Random(1)
BROKERS = range(1, 13)


class _Nobody:
    """Hears what brokers are told."""

    def follow(self, fact: object) -> None:
        """There are no channels."""

    def publish(self, publications: tuple[Publication, ...]) -> None:
        """Nobody listens."""


class _Office:
    """A controllership over a store."""

    def __init__(self, store: MetadataStore, epoch: int, max_buffer: int) -> None:
        self.store, config = store, ControllerConfig(1001, jute_maxbuffer=max_buffer)
        self.context = ControllerContext(ENDPOINT, epoch, epoch, config=config)
        self.runner = RoundRunner(store, self.context, _Nobody(), Observer())  # type: ignore[arg-type]

    async def begin(self) -> None:
        """Take office."""
        epoch = self.context.epoch
        await self.store.multi([Set(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(epoch), epoch - 1)])
        await self.runner.run("failover", failover(self.context, iter(())))

    async def handle(self, event: ControllerEvent) -> None:
        """Process an event."""
        await self.runner.run(event.name, dispatch.rounds_for(self.context, event, HOST))

    async def advance(self) -> None:
        """Let the rollout go on until nothing more can begin."""
        self.context.rollouts.stir()
        while self.context.rollouts.is_stirred:
            await self.handle(RolloutsDue())


async def fill(store: MetadataStore) -> None:
    """Create a cluster of long names and replicas that are all different."""
    await ensure_paths(store, paths.PERSISTENT)
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"0")])
    for id_ in BROKERS:
        data = formats.encode_broker(BrokerRegistration(id_, "127.0.0.1", 9000 + id_, -1), 0)
        await store.multi([Create(paths.broker(id_), data, ephemeral=True)])
    for number in range(TOPICS):
        partitions = {n: ReplicaAssignment(before(n)) for n in range(PARTITIONS)}
        topic = formats.TopicZnode(partitions, f"id-of-{number}")
        await store.multi([Create(paths.topic(name(number)), formats.encode_topic(topic))])


def name(number: int) -> str:
    return f"{number:05}-{'x' * 90}"


def before(number: int) -> tuple[int, ...]:
    return number % 5 + 1, number % 3 + 6


def after(number: int) -> tuple[int, ...]:
    return number % 4 + 9, number % 3 + 6


def plan() -> tuple[RolloutMove, ...]:
    """Return moves of all partitions."""
    return tuple(
        RolloutMove(name(topic), number, after(number), before(number), f"id-of-{topic}", RANDOM.randrange(10**12))
        for topic in range(TOPICS)
        for number in range(PARTITIONS)
    )


async def _started(
    store: MetadataStore, max_buffer: int, moves: tuple[RolloutMove, ...], settings: RolloutSettings
) -> _Office:
    """Return the office of a controller that has started a rollout of these moves."""
    await fill(store)
    office = _Office(store, 1, max_buffer)
    await office.begin()
    await office.handle(RequestEvent(UploadRolloutRequest("monday", "digest", 0, moves)))
    await office.handle(RequestEvent(StartRolloutRequest("monday", "digest", len(moves), settings)))
    return office


@pytest.mark.parametrize("max_buffer", [LEAST_MAX_BUFFER, DEFAULT_MAX_BUFFER])
async def test_parts_and_state_fit_and_the_next_controller_finds_them(open_store: OpenStore, max_buffer: int) -> None:
    async with open_store() as store:
        moves = plan()
        office = await _started(store, max_buffer, moves, RolloutSettings(in_all=20, ignore_room=True))
        await office.advance()
        flying = set(office.context.reassigning)
        assert len(flying) == 20

        [parts] = await store.children([paths.rollout_plans("monday")])
        [marks] = await store.children([f"{paths.rollout('monday')}/marks"])
        written = [
            paths.rollout("monday"),
            *(paths.rollout_plan("monday", int(first)) for first in parts or ()),
            *(paths.rollout_marks("monday", int(first)) for first in marks or ()),
        ]
        sizes = [len(znode.data) for znode in await store.read(written) if znode is not None]
        assert len(sizes) == len(written)
        assert max(sizes) < max_buffer * 0.9
        assert (len(parts or ()) > 1) is (max_buffer == LEAST_MAX_BUFFER)

        following = _Office(store, 2, max_buffer)
        await following.begin()
        await following.handle(RolloutLook())
        await following.advance()
        assert set(following.context.rollouts.flying) == flying == set(following.context.reassigning)
        described = following.context.rollouts.by_name["monday"].counts
        assert sum(described.values()) == len(moves)


@pytest.mark.parametrize("max_buffer", [LEAST_MAX_BUFFER, DEFAULT_MAX_BUFFER])
async def test_there_is_room_for_whatever_may_become_of_the_moves(open_store: OpenStore, max_buffer: int) -> None:
    async with open_store() as store:
        moves = plan()
        office = await _started(store, max_buffer, moves, RolloutSettings())

        stored = office.context.rollouts.by_name["monday"].stored
        assert stored.moves == len(moves)
        for part in stored.parts:
            why = {number: f"has replicas {some_brokers()}, not {some_brokers()}" for number in range(part.moves)}
            marks = StoredMarks(bytes(RANDOM.choices(range(len(CODES)), k=part.moves)), why)
            assert len(encode_marks(marks)) < max_buffer * 0.9
        tally = {state.value: PARTITIONS for state in CODES}
        parts = tuple(replace(part, opened=True, closed=True, tally=tally) for part in stored.parts)
        holds = tuple(hold.value for hold in HeldBy)
        assert len(encode_state(replace(stored, parts=parts, holds=holds))) < max_buffer * 0.9


def some_brokers() -> list[int]:
    """Return replicas as an administrator may have chosen them."""
    return RANDOM.sample(range(1_000), 5)
