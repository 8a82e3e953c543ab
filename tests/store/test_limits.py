"""The limits of requests that follow from the servers' `jute.maxbuffer`."""

from __future__ import annotations

import pytest

from transport.store.limits import DEFAULT_LIMITS, LEAST_MAX_BUFFER, RequestLimits
from transport.store.protocol import Set, StoreError
from transport.store.requests import require_sendable
from transport.store.zookeeper import slices


def test_the_limits_of_a_server_without_settings() -> None:
    limits = DEFAULT_LIMITS
    assert (limits.request, limits.group, limits.chunk) == (1_000_000, 999_000, 900_000)
    assert (limits.found_topic, limits.topic, limits.new_topic) == (950_000, 900_000, 800_000)


@pytest.mark.parametrize("max_buffer", [LEAST_MAX_BUFFER, 0xFFFFF, 64 << 20])
def test_what_is_written_together_fits_into_a_request(max_buffer: int) -> None:
    limits = RequestLimits(max_buffer)
    assert 0 < limits.new_topic < limits.topic < limits.found_topic <= limits.group < limits.request < max_buffer
    # An op that writes the topic, and one that moves its only partition, fit beside the fence.
    assert limits.group - limits.topic >= 1_000


@pytest.mark.parametrize("max_buffer", [LEAST_MAX_BUFFER, 0xFFFFF])
def test_bulk_reads_fit_into_a_request(max_buffer: int) -> None:
    limits = RequestLimits(max_buffer)
    for path in ("/a", "/" + "x" * 250):
        paths = [path] * 3000
        parts = list(slices(paths, limits))
        assert [each for part in parts for each in part] == paths
        assert max(sum(len(each) + 20 for each in part) for part in parts) < max_buffer


def test_larger_requests_are_sent_where_the_servers_accept_them() -> None:
    ops = [Set("/a", b"x" * 1_100_000, 0)]
    with pytest.raises(StoreError, match="over ZooKeeper's limit"):
        require_sendable(ops)
    require_sendable(ops, RequestLimits(2 << 20))
