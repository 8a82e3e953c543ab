"""Reassignments as a client sees them (KIP-240): comparable, with an identity that it cannot look into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

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
    """A reassignment of a partition, equal to itself alone: a later one of the same partition differs."""

    topic: str
    partition: int
    _czxid: int = field(repr=False)

    @property
    def key(self) -> ReassignmentKey:
        """What requests name it by."""
        return ReassignmentKey(self.topic, self.partition, self._czxid)


def listed(response: ListReassignmentsResponse) -> tuple[Reassignment, ...]:
    """Return the reassignments of an answer. Raises ApiError if it names partitions that there are not."""
    if response.errors:
        raise ApiError(response.errors[0].error, "; ".join(error.message for error in response.errors))
    return tuple(Reassignment(key.topic, key.partition, key.czxid) for key in response.reassignments)


@frozen(eq=False)
class ReassignmentDescriptions(Mapping[Reassignment, ReassignmentDescription]):
    """What goes on, by reassignment. One that is over is missing, which is a KeyError as in any mapping.

    Asking for one that was not in the call is a mistake, not an end: LookupError, from `get` and `in` too. `rate` is
    what all that is under way gains in bytes per second, `eta_ms` how long it takes at that rate; UNKNOWN (-1) where
    nothing moves yet. The czxid of a description is not told: it is -1.
    """

    _found: Mapping[Reassignment, ReassignmentDescription]
    _asked: frozenset[Reassignment] | None = None
    """None if the call was about all."""

    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN

    @classmethod
    def of(
        cls, response: DescribeReassignmentsResponse, asked: Iterable[Reassignment] | None
    ) -> ReassignmentDescriptions:
        """Take an answer to the question about those in `asked`, or with None about all."""
        found = {
            Reassignment(each.topic, each.partition, each.czxid): evolve(each, czxid=UNKNOWN)
            for each in response.reassignments
        }
        return cls(found, None if asked is None else frozenset(asked), response.rate, response.eta_ms)

    def __getitem__(self, reassignment: Reassignment) -> ReassignmentDescription:
        """Return the description. Raises KeyError if it is over, LookupError if it was not asked for."""
        if self._asked is not None and reassignment not in self._asked:
            raise LookupError(
                f"this reassignment of {reassignment.tp} was not asked for: name it in describe_reassignments"
            )
        return self._found[reassignment]

    def __iter__(self) -> Iterator[Reassignment]:
        """Yield the reassignments that go on, in order of their partitions."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return how many go on."""
        return len(self._found)
