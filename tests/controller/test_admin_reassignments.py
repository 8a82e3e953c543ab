"""Reassignments in a client's hands: compared, looked up, and completed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.admin.reassignments import Reassignment, ReassignmentDescriptions, listed
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    UNTHROTTLED,
    DescribeReassignmentsResponse,
    ListReassignmentsResponse,
    PartitionError,
    ReassignmentDescription,
    ReassignmentKey,
)

FIRST, LATER, OTHER = (
    Reassignment("orders", 0, 70),
    Reassignment("orders", 0, 71),
    Reassignment("orders", 1, 70),
)
DESCRIPTION = ReassignmentDescription(
    "orders", 0, 70, 1_700_000_000_000, 1, UNTHROTTLED, (4, 1), (4,), (1,), (1,), (4,), progress=()
)
ANSWER = DescribeReassignmentsResponse((DESCRIPTION,), rate=5, eta_ms=6)


@pytest.mark.requirement("B2")
def test_one_equals_itself_alone() -> None:
    again = Reassignment("orders", 0, 70)
    assert again == FIRST
    assert hash(again) == hash(FIRST)
    assert len({FIRST, again, LATER, OTHER}) == 3


@pytest.mark.requirement("B2")
def test_the_identity_is_not_shown() -> None:
    assert "70" not in repr(FIRST)
    assert not hasattr(FIRST, "czxid")
    assert "70" not in repr(ReassignmentDescriptions.of(ANSWER, None)[FIRST]).replace("1700000000000", "")


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("asked", [None, [FIRST, OTHER]])
def test_what_is_over_is_missing(asked: list[Reassignment] | None) -> None:
    found = ReassignmentDescriptions.of(ANSWER, asked)
    assert dict(found) == {FIRST: replace(DESCRIPTION, czxid=-1)}
    assert (found.rate, found.eta_ms) == (5, 6)
    assert OTHER not in found
    assert found.get(OTHER) is None
    with pytest.raises(KeyError):
        found[OTHER]


@pytest.mark.requirement("B3")
def test_one_that_was_not_asked_for_is_no_answer() -> None:
    found = ReassignmentDescriptions.of(ANSWER, [FIRST])
    for look in (found.__getitem__, found.get, found.__contains__):
        with pytest.raises(LookupError, match="this reassignment of orders-0 was not asked for") as caught:
            look(LATER)
        assert caught.type is LookupError


@pytest.mark.requirement("B1")
def test_a_partition_that_there_is_not_is_an_error() -> None:
    key = ReassignmentKey("orders", 0, 70)
    assert listed(ListReassignmentsResponse((key,))) == (FIRST,)
    error = PartitionError("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no partition nothing-0")
    with pytest.raises(ApiError, match="there is no partition nothing-0") as caught:
        listed(ListReassignmentsResponse((key,), (error,)))
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
