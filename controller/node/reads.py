"""Requests that only read: answered in their turn or, while that takes long, from what has been applied so far.

An answer waits for the events before it, so whoever has changed something sees it. But a broker that leads thousands of
partitions may be lost, or thousands of topics deleted, and nobody who looks at the cluster should have to wait for all
of that. Whatever decides keeps its turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Final

from attrs import frozen
from msgspec.structs import replace

from controller.events import RequestEvent
from controller.handlers.reassignment_views import list_reassignments
from controller.model.reassignment import UNIDENTIFIED
from controller.node import dispatch
from controller.node.office import Office
from controller.node.waiting_requests import Early
from transport import messages
from transport.errors import ApiError
from transport.host import Host
from transport.log import get_logger

log = get_logger(__name__)

DESCRIBED_AT_ONCE: Final = 250
"""The number of moves that are described in one turn: it takes a few milliseconds."""

READS: Final = (
    messages.DescribeClusterRequest,
    messages.DescribeReassignmentsRequest,
    messages.ListPartitionReassignmentsRequest,
    messages.ListReassignmentsRequest,
    messages.MetadataRequest,
)


READABLE_EVENTS: Final = frozenset(
    {
        "AutoPreferredReplicaLeaderElection",
        "BrokerChange",
        "ControlledShutdown",
        "ElectLeaders",
        "ReplicasDeleted",
        "TopicsDeleted",
    }
)
"""The events that change leaders, and end moves one by one, and those by which topics go that are being deleted: what
they have done so far explains itself. Others pass through states that nobody has asked for."""


@frozen
class Reads:
    """Answers requests; `in_turn` does so through the event queue, unless what it is given can do so before."""

    in_turn: Callable[[messages.Request[object], Early | None], Awaitable[object]]
    office: Callable[[], Office | None]
    host: Host

    async def answer(self, request: messages.Request[object]) -> object:
        """Answer a request. Raises ApiError."""
        return await self.in_turn(request, self._from_what_is_applied if isinstance(request, READS) else None)

    async def _from_what_is_applied(self, request: messages.Request[object]) -> object | None:
        """Answer a request between two chunks of an event: all that the store has is applied then."""
        office = self.office()
        if office is None or not _is_readable(office) or not office.contact.is_connected or not await office.is_held():
            return None
        async with office.runner.turn:
            # The controller may have been deposed while this waited.
            if self.office() is not office or not (office.contact.is_certain and _is_readable(office)):
                return None
            try:
                rounds = dispatch.rounds_for(office.context, RequestEvent(request), self.host)
                return await office.runner.observe(rounds)
            except ApiError as refusal:
                return refusal
            except Exception as fault:  # noqa: BLE001  in its turn, it finds the store or the context in order again
                log.debug("a request waits for its turn", request=type(request).__name__, fault=str(fault))
                return None

    async def describe_moves(
        self, request: messages.DescribeReassignmentsRequest
    ) -> messages.DescribeReassignmentsResponse:
        """Describe reassignments a few at a time, so that events wait for none of the others. Raises ApiError."""
        office, keys = self.office(), request.reassignments
        if keys is None and office is not None and len(office.context.reassigning) > DESCRIBED_AT_ONCE:
            keys = list_reassignments(office.context, None).reassignments
        cuts = range(0, len(keys or ()) or 1, DESCRIBED_AT_ONCE)
        parts = [replace(request, reassignments=keys and keys[at : at + DESCRIBED_AT_ONCE]) for at in cuts]
        answers = []
        for part in parts:
            described = await self.answer(part)
            assert isinstance(described, messages.DescribeReassignmentsResponse)
            answers.append(described.reassignments)
        return messages.DescribeReassignmentsResponse(tuple(chain.from_iterable(answers)))


def _is_readable(office: Office) -> bool:
    """Return whether all that is known may be shown: a move that has just begun has no identity yet."""
    is_explained = office.is_loaded and office.runner.event in READABLE_EVENTS
    return is_explained and UNIDENTIFIED not in office.context.reassigning.values()
