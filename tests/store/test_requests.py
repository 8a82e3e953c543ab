"""Bounds of requests."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from transport.store.protocol import Check, Create, Delete, Op, Set
from transport.store.requests import MAX_REQUEST_BYTES, Multi, ReadMany, op_bytes
from transport.store.zookeeper import slices

PATHS = st.text(max_size=300)
OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Create, PATHS, st.binary(), st.booleans(), st.booleans()),
    st.builds(Set, PATHS, st.binary(), st.integers(-1, 9)),
    st.builds(Delete, PATHS, st.integers(-1, 9)),
    st.builds(Check, PATHS, st.integers(-1, 9)),
)


@given(st.lists(OPS))
def test_operations_weigh_no_more_than_we_say(ops: list[Op]) -> None:
    empty = len(Multi([]).serialize())
    assert len(Multi(ops).serialize()) - empty <= sum(map(op_bytes, ops))


@pytest.mark.parametrize("character", ["x", "ß", "\N{GRINNING FACE}"])
def test_every_slice_of_a_read_fits_a_request(character: str) -> None:
    paths = [f"/{character * 1000 * number}" for number in range(100)]
    parts = list(slices(paths))
    assert [path for part in parts for path in part] == paths
    assert len(parts) < len(paths)
    assert all(len(ReadMany(part).serialize()) <= MAX_REQUEST_BYTES for part in parts)


def test_slices_are_bounded_in_number() -> None:
    assert [len(part) for part in slices(["/a"] * 2500)] == [1000, 1000, 500]
