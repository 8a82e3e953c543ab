"""The poller that asks brokers about the progress of moves while any are in progress and this controller is in office.

Each broker has its own task and connection for all its moving partitions, so that a silent one does not delay others.
The longer a broker takes to answer, the less often it is asked. The list of moves comes from the event queue as a
value; the brokers' answers never enter the queue.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import islice
from typing import Final

import structlog
import trio
from attrs import define, field
from msgspec.structs import replace

from actors import Backoff, supervise
from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.disks import disks_of
from controller.progress.report import Survey, Totals, with_progress
from controller.progress.tracker import Moves, MoveTracker
from controller.rollout.room import Disk
from transport.errors import ApiError
from transport.host import Host
from transport.kafka.log_dirs import LogDirsConnection, open_log_dirs
from transport.kafka.volume import Volume
from transport.log import get_logger
from transport.messages import DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeReassignmentsResponse
from transport.metadata import BrokerRegistration, TopicPartition
from transport.network import Network
from transport.wire import Connection, UnsupportedApi, WireError, open_connection

_log = get_logger(__name__)

POLL_SECONDS: Final = 1.0
PAUSE_FACTOR: Final = 9
"""The pause between requests as a multiple of the answer time, so that a broker spends a tenth of its time at most."""

ANSWER_SECONDS: Final = 5.0
"""The timeout of a request to a broker."""

MAX_PARTITIONS: Final = 2_000
"""The most partitions of one request."""

SLICE: Final = 200
"""The number of moves described before other tasks may run, which takes about 10 ms."""

SURVEYED_AT_ONCE: Final = 50
"""The number of moves looked at for totals before other tasks may run, which takes less than 1 ms."""

UNSUPPORTED_SECONDS: Final = 60.0
"""The delay before asking a broker again that does not support the request."""


@define(eq=False)
class _Asked:
    """A broker that is polled, and the partitions to ask for."""

    broker: BrokerRegistration
    partitions: Sequence[TopicPartition]
    since: float = field(factory=trio.current_time, init=False)
    has_told: bool = field(default=False, init=False)
    """Whether it has answered about its disks, with sizes or without."""

    scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)


@define
class ProgressPoller:
    """Keeps the progress of moves up to date during one controllership."""

    nursery: trio.Nursery
    network: Network
    host: Host
    client_id: str
    progress: MoveTracker = field(factory=MoveTracker, init=False)
    disks: dict[int, Disk] = field(factory=dict, init=False)
    """The room on the disks of the brokers that are polled, as far as they tell it."""

    answers: dict[int, float] = field(factory=dict, init=False)
    """The seconds that the last answer of each broker took that copies; infinite if there was none."""

    _asked: dict[int, _Asked] = field(factory=dict, init=False)

    def follow(self, moves: Moves) -> None:
        """Poll for exactly these moves from now on; without them, only brokers that are asked for room are polled."""
        self.progress.follow(moves, trio.current_time())
        wanted = _by_broker(moves)
        live = {broker.id: broker for broker in moves.brokers}
        for broker_id, asked in list(self._asked.items()):
            if broker_id not in wanted or live.get(broker_id) != asked.broker:
                self._stop(broker_id)
        for broker_id, broker in live.items():
            if broker_id in self._asked:
                self._asked[broker_id].partitions = wanted[broker_id]
                if not wanted[broker_id]:
                    self.answers.pop(broker_id, None)
            elif broker_id in wanted:
                self._start(broker, wanted[broker_id])

    @property
    def untold(self) -> frozenset[int]:
        """The brokers that are polled and do not tell their room: they cannot, or have not answered for too long."""
        late = trio.current_time() - ANSWER_SECONDS
        mute = (broker_id for broker_id, asked in self._asked.items() if asked.has_told or asked.since <= late)
        return frozenset(mute) - self.disks.keys()

    async def totals(self) -> Totals:
        """Return the combined progress of all moves."""
        return (await survey_of(self.progress)).totals()

    async def add_to(self, response: DescribeReassignmentsResponse) -> DescribeReassignmentsResponse:
        """Return descriptions with the progress that brokers reported; yields to other tasks in between."""
        all_moves = await self.totals()
        now, now_ms = trio.current_time(), self.host.now_ms()
        told = []
        for described in response.reassignments:
            told.append(with_progress(described, self.progress, all_moves, now, now_ms))
            if len(told) % SLICE == 0:
                await trio.lowlevel.checkpoint()
        return replace(response, reassignments=tuple(told), rate=all_moves.rate, eta_ms=all_moves.eta_ms)

    def close(self) -> None:
        """Stop polling."""
        for broker_id in list(self._asked):
            self._stop(broker_id)

    def _start(self, broker: BrokerRegistration, partitions: Sequence[TopicPartition]) -> None:
        asked = self._asked[broker.id] = _Asked(broker, partitions)
        self.nursery.start_soon(self._keep_asking, asked, name=f"progress-{broker.id}")

    def _stop(self, broker_id: int) -> None:
        self._asked.pop(broker_id).scope.cancel()
        self.disks.pop(broker_id, None)
        self.answers.pop(broker_id, None)

    async def _keep_asking(self, asked: _Asked) -> None:
        # Log lines of this task must not carry the event that happened to start it.
        structlog.contextvars.unbind_contextvars("event_id", "during", "caused_by")
        backoff = Backoff(1.0, 60.0, jitter=self.host.rng.random)
        with asked.scope:
            name = f"progress-{asked.broker.id}"
            await supervise(partial(self._ask_and_pause, asked), name=name, backoff=backoff, log=_log)

    async def _ask_and_pause(self, asked: _Asked) -> None:
        while True:
            try:
                await self._ask_while_answered(asked)
            except UnsupportedApi:
                asked.has_told = True
                await trio.sleep(UNSUPPORTED_SECONDS)
            except (ApiError, WireError):
                self.progress.silent(asked.broker.id)
                self._note_answer(asked, math.inf)
                await trio.sleep(POLL_SECONDS)

    async def _ask_while_answered(self, asked: _Asked) -> None:
        async with self._connected(asked.broker) as connection:
            while True:
                began = trio.current_time()
                await self._ask_once(asked, connection)
                await trio.sleep(max(POLL_SECONDS, PAUSE_FACTOR * (trio.current_time() - began)))

    def _connected(self, broker: BrokerRegistration) -> AbstractAsyncContextManager[Connection | LogDirsConnection]:
        opening = open_log_dirs if broker.is_kafkas else open_connection
        return opening(self.network, broker.host, broker.port, client_id=self.client_id, connect_timeout=ANSWER_SECONDS)

    async def _ask_once(self, asked: _Asked, connection: Connection | LogDirsConnection) -> None:
        for some in [*_chunks(asked.partitions)] or [[]]:
            request = DescribeLogDirsRequest(tuple(some))
            began = trio.current_time()
            response = await connection.call(request, timeout=ANSWER_SECONDS)
            self._note_answer(asked, trio.current_time() - began)
            self.progress.told(asked.broker.id, some, response.log_dirs, trio.current_time())
            self._see_room(asked.broker.id, response)
            asked.has_told = True

    def _note_answer(self, asked: _Asked, seconds: float) -> None:
        if asked.partitions:
            self.answers[asked.broker.id] = seconds

    def _see_room(self, broker_id: int, response: DescribeLogDirsResponse) -> None:
        volumes = {one.path: Volume(one.total, one.usable) for one in response.log_dirs}
        self.disks.update(disks_of({broker_id: BrokerLogDirs(response.log_dirs, volumes=volumes)}))


async def survey_of(progress: MoveTracker) -> Survey:
    """Return a look at all moves; other tasks run in between, so that thousands of moves do not hold them up."""
    survey, now = Survey(progress), trio.current_time()
    for number, tp in enumerate(list(progress.moves), 1):
        survey.look_at(tp, now)
        if number % SURVEYED_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    return survey


def _by_broker(moves: Moves) -> dict[int, list[TopicPartition]]:
    wanted: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for move in moves.partitions:
        for broker_id in move.measured:
            wanted[broker_id].append(move.tp)
    return {**{broker_id: [] for broker_id in moves.asked}, **wanted}


def _chunks(partitions: Sequence[TopicPartition]) -> Iterator[list[TopicPartition]]:
    rest = iter(partitions)
    while some := list(islice(rest, MAX_PARTITIONS)):
        yield some
