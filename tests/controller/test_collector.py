"""The cycle collector: paused for a block, and left alone if it is paused already."""

from __future__ import annotations

import gc

import pytest

from controller.node.collector import MANY, paused_collector, release


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


def test_it_is_spared_many_objects_that_are_kept_until_they_are_released() -> None:
    before = gc.get_freeze_count()
    made: list[list[object]] = []
    for keeps, size in ((True, 10), (False, 2 * MANY)):
        with paused_collector(keeps=keeps):
            made += [[] for _ in range(size)]
        assert gc.get_freeze_count() == before
    with paused_collector(keeps=True):
        made += [[] for _ in range(2 * MANY)]
    assert gc.get_freeze_count() > before + MANY
    release()
    assert gc.get_freeze_count() == 0


def test_nothing_is_released_for_whoever_has_paused_it() -> None:
    gc.disable()
    gc.freeze()
    try:
        release()
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
        gc.enable()
