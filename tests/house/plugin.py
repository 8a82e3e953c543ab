"""The pytest plugin of this repository; loaded with `-p` in pyproject.toml."""

from __future__ import annotations

import fcntl
import gc
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import trio

from tests.house import requirements

# A slow machine is not a failure: no deadlines. Under CI, hypothesis's own profile repeats the same examples each time.
for profile in ("default", "ci"):
    own = hypothesis.settings.get_profile(profile)
    hypothesis.settings.register_profile(profile, own, deadline=None, max_examples=30)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=1_000, print_blob=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests on Spark first; refuse to run what claims a requirement that is not in docs/requirements.md."""
    # Workers begin with parts of this order and take over from its end: one worker, not each, starts a Spark for them.
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))
    rows = requirements.parse(requirements.DOCUMENT.read_text(encoding="utf-8"))
    problems = ((item, requirements.problem(requirements.claims(item), rows)) for item in items)
    wrong = [f"{item.nodeid}: {problem}" for item, problem in problems if problem]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let one worker compile the tests of a fresh clone, while the others wait: each would compile them all."""
    with Path(__file__).open("rb") as lock:
        if _is_fresh():
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_fresh():
            fcntl.flock(lock, fcntl.LOCK_SH)
        return (yield)


def _is_fresh() -> bool:
    """Return whether most tests will be compiled, and the result kept."""
    tests = Path(__file__).parents[1]
    compiled = sum(1 for _ in tests.rglob("__pycache__/test_*-pytest-*.pyc"))
    return not sys.dont_write_bytecode and 2 * compiled < sum(1 for _ in tests.rglob("test_*.py"))


def pytest_collection_finish() -> None:
    """Keep ten thousand tests and all modules from the collector, which would look at them again and again."""
    gc.freeze()
    # Tests leave few circles behind: looking for them more seldom saves time. The number stays well below the thousands
    # of new objects from which on a controller spares the collector what an event has made.
    gc.set_threshold(3_000, 20, 100)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a trio test on the clock among its fixtures; pytest-trio sees only the one that is a parameter."""
    clocks = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, trio.abc.Clock)]
    if clocks and item.get_closest_marker("trio") is not None:
        item.add_marker(pytest.mark.trio(run=partial(_run_on, clocks[0])), append=False)
    yield


def _run_on(own: trio.abc.Clock, main: Callable[[], Any], **options: Any) -> object:
    return trio.run(main, **{**options, "clock": own})
