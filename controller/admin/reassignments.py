"""Reassignments as a client sees them (KIP-240): comparable, with an opaque identity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from attrs import field, frozen
from msgspec.structs import replace

from transport.errors import ApiError
from transport.messages import (
    UNKNOWN,
    DescribeReassignmentsResponse,
    ListReassignmentsResponse,
    ReassignmentDescription,
    ReassignmentKey,
)
from transport.metadata import OfPartition


@frozen(order=True)
class Reassignment(OfPartition):
    """A reassignment of a partition, equal only to itself: a later one of the same partition differs."""

    topic: str
    partition: int
    _czxid: int = field(repr=False)

    @property
    def key(self) -> ReassignmentKey:
        """The key of the reassignment in requests."""
        return ReassignmentKey(self.topic, self.partition, self._czxid)


def listed(response: ListReassignmentsResponse) -> tuple[Reassignment, ...]:
    """Return the reassignments of an answer. Raises ApiError if it reports partitions that do not exist."""
    if response.errors:
        raise ApiError(response.errors[0].error, "; ".join(error.message for error in response.errors))
    return tuple(Reassignment(key.topic, key.partition, key.czxid) for key in response.reassignments)


@frozen(eq=False)
class ReassignmentDescriptions(Mapping[Reassignment, ReassignmentDescription]):
    """The descriptions of reassignments in progress. A completed one is missing: KeyError, as in any mapping.

    A key that was not part of the call is a mistake, not a completed reassignment: LookupError, also from `get` and
    `in`. `rate` is the rate of all reassignments in progress in bytes per second, `eta_ms` the time left at that rate;
    UNKNOWN (-1) if not known yet. The czxid of a description is hidden: it is -1.
    """

    _found: Mapping[Reassignment, ReassignmentDescription]
    _asked: frozenset[Reassignment] | None = None
    """None if the call was for all reassignments."""

    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN

    @classmethod
    def of(
        cls, response: DescribeReassignmentsResponse, asked: Iterable[Reassignment] | None
    ) -> ReassignmentDescriptions:
        """Convert the answer to a request for the reassignments in `asked`, None meaning all."""
        found = {
            Reassignment(each.topic, each.partition, each.czxid): replace(each, czxid=UNKNOWN)
            for each in response.reassignments
        }
        return cls(found, None if asked is None else frozenset(asked), response.rate, response.eta_ms)

    def __getitem__(self, reassignment: Reassignment) -> ReassignmentDescription:
        """Return a description. Raises KeyError if the reassignment has ended, LookupError if it was not asked for."""
        if self._asked is not None and reassignment not in self._asked:
            raise LookupError(
                f"this reassignment of {reassignment.tp} was not asked for: name it in describe_reassignments"
            )
        return self._found[reassignment]

    def __iter__(self) -> Iterator[Reassignment]:
        """Yield the reassignments in progress, in the order of their partitions."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of reassignments in progress."""
        return len(self._found)


def naming_dead(move: ReassignmentDescription, live: Collection[int]) -> ReassignmentDescription:
    """Return a description that names the dead brokers for which a move waits, in the words of Klamm's controller.

    The target is complete only with all its replicas, also with those that the partition had before.
    """
    missing = [item.broker for item in move.progress if not item.in_sync]
    dead = [broker for broker in missing if broker not in live]
    if not dead:
        return move
    joining = [str(broker) for broker in missing if broker in live]
    words = [f"broker {broker}, which is not alive" for broker in dead]
    if joining:
        words.append(f"broker{'s' if len(joining) > 1 else ''} {', '.join(joining)} to join the ISR")
    return replace(move, waits_for="; ".join(words))
