"""The pytest plugin: `pytest_plugins = ["klamm.testing.plugin"]` in a conftest.py at the root of the tests.

It needs pytest-trio. A test with the fixture `cluster` runs on virtual time, and is a trio test without a marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from klamm.testing.asyncio_cluster import AsyncioCluster, open_asyncio_cluster
from klamm.testing.opening import ClusterFactory


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the seed to the command line."""
    parser.getgroup("klamm").addoption(
        "--klamm-seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of simulated clusters; a failure tells which it had",
    )


@pytest.fixture
def klamm_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of the test's clusters, from `--klamm-seed`; parametrize `klamm_seed` for other seeds."""
    seed: int = request.config.getoption("--klamm-seed")
    return seed


@pytest.fixture
def cluster(request: pytest.FixtureRequest, klamm_seed: int) -> ClusterFactory:
    """Return a factory of clusters with the seed; see `open_cluster`."""
    if not request.config.pluginmanager.hasplugin("trio"):
        raise pytest.UsageError("the fixture cluster needs pytest-trio: pip install 'klamm[testing]'")
    return ClusterFactory(klamm_seed)


@pytest.fixture
def asyncio_cluster(klamm_seed: int) -> Callable[..., AbstractAsyncContextManager[AsyncioCluster]]:
    """Return `open_asyncio_cluster` with the seed."""
    return partial(open_asyncio_cluster, seed=klamm_seed)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test with our `cluster` on virtual time, before pytest-trio decides how to run it."""
    if isinstance(getattr(item, "funcargs", {}).get("cluster"), ClusterFactory):
        item.add_marker(pytest.mark.trio(run=_run_on_virtual_time), append=False)
    yield


def _run_on_virtual_time(
    main: Callable[[], Any], *, clock: trio.abc.Clock | None, instruments: Sequence[trio.abc.Instrument]
) -> object:
    clock = clock or MockClock(autojump_threshold=0)
    return trio.run(partial(main), clock=clock, instruments=instruments)
