"""The cycle collector: paused for a block, and left alone if it is paused already."""

from __future__ import annotations

import gc

import pytest

from controller.node.round_runner import paused_collector


def test_it_is_paused_for_the_block_even_if_that_fails() -> None:
    states = []

    def look_and_fail() -> None:
        with paused_collector():
            states.append(gc.isenabled())
            raise LookupError

    with pytest.raises(LookupError):
        look_and_fail()
    assert [*states, gc.isenabled()] == [False, True]


def test_whoever_has_paused_it_resumes_it() -> None:
    gc.disable()
    try:
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
